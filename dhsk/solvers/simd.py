"""Vector loops of the SVM solver, in LLVM's own vector type: 64 entries at a time.

Each keeps the extreme values of what it computes. LLVM does not vectorise a loop with such a
reduction by itself: with numba alone, the two take 2.2 ns an entry together, here 0.85 in a solve
of 2,765 samples.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.core import cgutils as _cgutils
from numba.extending import intrinsic

cgutils: Any = _cgutils  # (it has no types)

BLOCK: Final = 64
"""Entries of a call: arrays are padded to a multiple of it."""

_WIDTH: Final = 16  # entries of a vector: LLVM cuts it into the registers that there are
_DOUBLE, _SINGLE, _INDEX = ir.DoubleType(), ir.FloatType(), ir.IntType(32)
_DOUBLES, _SINGLES = ir.VectorType(_DOUBLE, _WIDTH), ir.VectorType(_SINGLE, _WIDTH)

SMALLEST_CURVATURE: Final = 1e-12
"""What stands for K_ii + K_jj - 2 K_ij where that is 0 or, of an indefinite matrix, below: TAU of
LIBSVM."""


class _Code:
    """Builds the instructions of one call."""

    def __init__(self, context: Any, builder: Any, start: Any) -> None:
        self._context = context
        self._builder = builder
        self._start = start

    def data(self, kind: Any, array: Any) -> Any:
        """Pointer to the first entry of an array."""
        return self._context.make_array(kind)(self._context, self._builder, value=array).data

    def places(self) -> Iterator[Any]:
        """Index of the first entry of each vector of the block."""
        for offset in range(0, BLOCK, _WIDTH):
            yield self._builder.add(self._start, ir.Constant(self._start.type, offset))

    def _at(self, data: Any, place: Any) -> tuple[Any, int]:
        kind = _SINGLES if data.type.pointee == _SINGLE else _DOUBLES
        pointer = self._builder.bitcast(self._builder.gep(data, [place]), kind.as_pointer())
        return pointer, 4 if kind is _SINGLES else 8

    def load(self, data: Any, place: Any) -> Any:
        """Read a vector, in double precision."""
        pointer, itemsize = self._at(data, place)
        values = self._builder.load(pointer, align=itemsize)
        return values if itemsize == 8 else self._builder.fpext(values, _DOUBLES)

    def store(self, values: Any, data: Any, place: Any) -> None:
        """Write a vector of doubles."""
        self._builder.store(values, self._at(data, place)[0], align=8)

    def repeated(self, number: Any) -> Any:
        """Vector of one number."""
        nothing = ir.Constant(_DOUBLES, ir.Undefined)
        first = self._builder.insert_element(nothing, number, _INDEX(0))
        zeros = ir.Constant(ir.VectorType(_INDEX, _WIDTH), 0)
        return self._builder.shuffle_vector(first, nothing, zeros)

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """Compute x y + z, rounded once."""
        name = f"llvm.fma.v{_WIDTH}f64"
        signature = ir.FunctionType(_DOUBLES, [_DOUBLES] * 3)
        function = cgutils.get_or_insert_function(self._builder.module, signature, name)
        return self._builder.call(function, [x, y, z])

    def extreme(self, relation: str, x: Any, y: Any) -> Any:
        """The larger (">") or smaller ("<") of two vectors, entry by entry."""
        return self._builder.select(self._builder.fcmp_ordered(relation, x, y), x, y)

    def over_all(self, relation: str, values: Any) -> Any:
        """The largest or smallest entry of a vector."""
        count = values.type.count
        while count > 1:
            count //= 2
            nothing = ir.Constant(values.type, ir.Undefined)
            halves = [
                self._builder.shuffle_vector(
                    values,
                    nothing,
                    ir.Constant(ir.VectorType(_INDEX, count), list(range(first, first + count))),
                )
                for first in (0, count)
            ]
            values = self.extreme(relation, *halves)
        return self._builder.extract_element(values, _INDEX(0))


def _type_update(
    _context: Any, f: Any, shut: Any, row_i: Any, row_j: Any, step: Any, start: Any
) -> tuple[Any, Callable[..., Any]]:
    """In a block, f -= step (row_i - row_j); returns the largest f + shut."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        code = _Code(context, builder, args[5])
        values, closed, first, second = (
            code.data(kind, array)
            for kind, array in zip((f, shut, row_i, row_j), args[:4], strict=True)
        )
        steps, largest = code.repeated(args[4]), None
        for at in code.places():
            difference = builder.fsub(code.load(second, at), code.load(first, at))
            new = code.fma(difference, steps, code.load(values, at))
            code.store(new, values, at)
            open_ = builder.fadd(new, code.load(closed, at))
            largest = open_ if largest is None else code.extreme(">", open_, largest)
        return code.over_all(">", largest)

    return types.float64(f, shut, row_i, row_j, step, start), generate


def _type_gain(
    _context: Any, f: Any, shut: Any, diagonal: Any, row: Any, highest: Any, own: Any, start: Any
) -> tuple[Any, Callable[..., Any]]:
    """Largest gain, and smallest f + shut, of a block: what a step from i to each j would bring.

    With d = highest - f_j - shut_j and a = own + diagonal_j - 2 row_j the gain is d^2 / a. It only
    ranks steps: single precision will do.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        code = _Code(context, builder, args[6])
        values, closed, norms, products = (
            code.data(kind, array)
            for kind, array in zip((f, shut, diagonal, row), args[:4], strict=True)
        )
        top, norm = code.repeated(args[4]), code.repeated(args[5])
        minus_two = ir.Constant(_DOUBLES, [-2.0] * _WIDTH)
        least = ir.Constant(_SINGLES, [SMALLEST_CURVATURE] * _WIDTH)
        nothing = ir.Constant(_SINGLES, [0.0] * _WIDTH)
        best = smallest = None
        for at in code.places():
            open_ = builder.fadd(code.load(values, at), code.load(closed, at))
            smallest = open_ if smallest is None else code.extreme("<", open_, smallest)
            d = builder.fptrunc(builder.fsub(top, open_), _SINGLES)
            both = builder.fadd(norm, code.load(norms, at))
            a = builder.fptrunc(code.fma(code.load(products, at), minus_two, both), _SINGLES)
            d, a = code.extreme(">", d, nothing), code.extreme(">", a, least)
            gain = builder.fmul(d, builder.fdiv(d, a))
            best = gain if best is None else code.extreme(">", gain, best)
        found = builder.fpext(code.over_all(">", best), _DOUBLE), code.over_all("<", smallest)
        return context.make_tuple(builder, signature.return_type, found)

    pair = types.UniTuple(types.float64, 2)  # type: ignore[no-untyped-call]
    return pair(f, shut, diagonal, row, highest, own, start), generate


update_block: Any = intrinsic(_type_update)
gain_of_block: Any = intrinsic(_type_gain)
