"""LLVM vectors under construction, for loops that numba does not vectorise.

Every multiply-add is LLVM's fma and nothing may be reassociated, so results have the same bits on
every machine. numba's cache sees no change of this file: touch those that compile with it.
"""

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils as _cgutils

cgutils: Any = _cgutils  # (it has no types)

DOUBLE: Final = ir.DoubleType()
SINGLE: Final = ir.FloatType()
_INDEX: Final = ir.IntType(32)


class Vector:
    """A vector under construction, with the operators that formulas are written in."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _new(self, value: Any) -> "Vector":
        return Vector(self.builder, value)

    def __add__(self, other: "Vector") -> "Vector":
        return self._new(self.builder.fadd(self.value, other.value))

    def __sub__(self, other: "Vector") -> "Vector":
        return self._new(self.builder.fsub(self.value, other.value))

    def __mul__(self, other: "Vector") -> "Vector":
        return self._new(self.builder.fmul(self.value, other.value))

    def __truediv__(self, other: "Vector") -> "Vector":
        return self._new(self.builder.fdiv(self.value, other.value))

    def __lt__(self, other: "Vector") -> Any:
        return self.builder.fcmp_ordered("<", self.value, other.value)

    def where(self, mask: Any, other: "Vector") -> "Vector":
        """Keep the entries where a mask holds, and take another vector's elsewhere."""
        return self._new(self.builder.select(mask, self.value, other.value))

    def times_plus(self, factor: "Vector", term: "Vector") -> "Vector":
        """LLVM's fma: a product and a sum, rounded once."""
        kind = self.value.type
        name = f"llvm.fma.v{kind.count}{kind.element.intrinsic_name}"
        signature = ir.FunctionType(kind, [kind] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, signature, name)
        return self._new(self.builder.call(fma, [self.value, factor.value, term.value]))

    def times_power_of_2(self, shifted: "Vector", mantissa_bits: int) -> "Vector":
        """Multiply by 2^k, k in the low bits of `shifted`: add k to the bits of the exponent."""
        kind = self.value.type
        whole = ir.VectorType(ir.IntType(64 if mantissa_bits > 32 else 32), kind.count)
        k = self.builder.bitcast(shifted.value, whole)
        k = self.builder.shl(k, ir.Constant(whole, mantissa_bits))
        bits = self.builder.add(self.builder.bitcast(self.value, whole), k)
        return self._new(self.builder.bitcast(bits, kind))

    def to(self, element: Any) -> "Vector":
        """Entries rounded to another type, or widened to it."""
        kind = self.value.type
        if kind.element == element:
            return self
        cast = self.builder.fptrunc if element == SINGLE else self.builder.fpext
        return self._new(cast(self.value, ir.VectorType(element, kind.count)))

    def extreme(self, relation: str, other: "Vector | None") -> "Vector":
        """The larger (">") or smaller ("<") of two vectors, entry by entry; or this alone."""
        if other is None:
            return self
        return self.where(self.builder.fcmp_ordered(relation, self.value, other.value), other)

    def over_all(self, relation: str) -> Any:
        """The largest or smallest entry."""
        whole, count = self, self.value.type.count
        while count > 1:
            count //= 2
            nothing = ir.Constant(whole.value.type, ir.Undefined)
            low, high = (
                ir.Constant(ir.VectorType(_INDEX, count), list(range(first, first + count)))
                for first in (0, count)
            )
            half = self._new(self.builder.shuffle_vector(whole.value, nothing, low))
            other = self._new(self.builder.shuffle_vector(whole.value, nothing, high))
            whole = half.extreme(relation, other)
        return self.builder.extract_element(whole.value, _INDEX(0))


class VectorCode:
    """Code of a function that works on vectors of `count` entries.

    LLVM cuts these into the registers that there are. numba gives `context` and `builder` to what
    generates code.
    """

    def __init__(self, context: Any, builder: Any, count: int) -> None:
        self._context, self._builder, self._count = context, builder, count

    def pointer(self, kind: Any, array: Any) -> Any:
        """Pointer to the first entry of an array of a numba type."""
        return self._context.make_array(kind)(self._context, self._builder, value=array).data

    def load(self, pointer: Any, place: Any) -> Vector:
        """Read a vector from an entry on."""
        at, itemsize = self._at(pointer, place)
        return Vector(self._builder, self._builder.load(at, align=itemsize))

    def store(self, vector: Vector, pointer: Any, place: Any) -> None:
        """Write a vector, in the type of the array, from an entry on."""
        at, itemsize = self._at(pointer, place)
        self._builder.store(vector.to(pointer.type.pointee).value, at, align=itemsize)

    def _at(self, pointer: Any, place: Any) -> tuple[Any, int]:
        element = pointer.type.pointee
        kind = ir.VectorType(element, self._count).as_pointer()
        at = self._builder.bitcast(self._builder.gep(pointer, [place]), kind)
        return at, 4 if element == SINGLE else 8

    def repeated(self, number: Any) -> Vector:
        """Vector of one number."""
        nothing = ir.Constant(ir.VectorType(number.type, self._count), ir.Undefined)
        first = self._builder.insert_element(nothing, number, _INDEX(0))
        zeros = ir.Constant(ir.VectorType(_INDEX, self._count), 0)
        return Vector(self._builder, self._builder.shuffle_vector(first, nothing, zeros))

    def constant(self, value: float, element: Any = DOUBLE) -> Vector:
        """Vector of a number that is known now."""
        kind = ir.VectorType(element, self._count)
        return Vector(self._builder, ir.Constant(kind, [value] * self._count))
