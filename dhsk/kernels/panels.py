"""Inner products with few entries to a row: each row's entries times panels of columns, compiled.

Of the second factor, `PANEL_BYTES` of each feature, of as many rows, lie side by side. The entries
of a row of the first factor are multiplied with theirs and added up in registers, one after the
other, so that zeros cost nothing and nothing is read twice. GEMM, which adds up tiles of rows and
columns, is faster from some features on, see `DENSE_FEATURES` and `MULTIPLY_COST`.

A sum has the same bits on every machine, at every place of a block, with both factors exchanged,
and for a CSR row as for the same row with its zeros.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dhsk.arrays import Rows, blocks
from dhsk.compiled import assign, compiled
from dhsk.kernels.certified.evaluate import Reals
from dhsk.simd import Vector, VectorCode, cgutils

PANEL_BYTES: Final = 512
"""Eight registers of AVX-512: a sum waits for none before it. Half of that took 1.4 times as long
on 14 entries of 123 features, and on 150 of 784, in float32."""

DENSE_FEATURES: Final = {4: 24, 8: 12}
"""Most features of dense rows, by the bytes of an entry. Measured on blocks of 1,024, against one
thread of OpenBLAS: 3 features took 0.2 of its time in float32 and 0.4 in float64, 10 and 20 took
0.6 in float32, 10 and 12 took 0.6 and 0.8 in float64; 32 in float32 took as long."""

MULTIPLY_COST: Final = 2.0
"""Cost of a multiply-add, in multiply-adds of GEMM, where a panel stays in the second cache.

Measured on blocks of 1,024 in float32 and float64: 1.2 to 2.0 for 42 entries of 126 features, 14 of
123, 12 of 300 and 150 of 784; 3.7 for 20 of 2,000; 13 for 10 of 6,700.
"""

_ENTRY_COST: Final = 5.0
"""Cost of an entry of the product, whatever its terms, for the panels and the loops."""

_NEAR_FEATURES: Final = 1024
"""Features from which on the cost grows with their number, as panels leave the caches."""

LEAST_ROWS: Final = 32
"""Fewest rows of either factor: panels have to be made first."""

_STRIP_BYTES: Final = 8 * 2**20
"""Most bytes of panels at a time."""


def panel_cost(entries: float, features: int) -> float:
    """Cost of an entry of the product in multiply-adds of GEMM, for rows of so many entries."""
    return _ENTRY_COST + MULTIPLY_COST * max(1.0, features / _NEAR_FEATURES) * entries


def suits_dense(X: Any, Y: Any) -> bool:
    """Whether panels are faster than GEMM for two dense blocks, (a, d) and (b, d)."""
    few = X.shape[1] <= DENSE_FEATURES.get(X.dtype.itemsize, 0)
    return few and are_enough(X, Y)


def are_enough(X: Rows, Y: Rows) -> bool:
    """Whether two blocks are of one type, and worth the panels."""
    return bool(X.dtype == Y.dtype and min(X.shape[0], Y.shape[0]) >= LEAST_ROWS)


def panel_bytes(columns: int, features: int) -> int:
    """Bytes of the panels of so many rows that are in memory at a time, for entries of float64."""
    panel = PANEL_BYTES * features
    return int(min(max(_STRIP_BYTES, panel), -(-columns * 8 // PANEL_BYTES) * panel))


def panel_product(X: Rows, Y: Rows, out: Reals) -> None:
    """Write X Yᵀ, (a, b), of two dense or two CSR blocks of the type of `out`, C-ordered."""
    width = PANEL_BYTES // out.itemsize
    row: tuple[Any, ...]
    if isinstance(X, np.ndarray):
        row, starts = (np.ascontiguousarray(X).reshape(-1),), np.arange(len(X) + 1) * X.shape[1]
    else:
        row, starts = (X.data, X.indices), X.indptr
    at_once = max(1, _STRIP_BYTES // max(1, PANEL_BYTES * X.shape[1]))
    for part in blocks(Y.shape[0], at_once * width):
        _multiply(row, starts, _panels(Y[part], width), part.start, out)


def _panels(Y: Rows, width: int) -> Reals:
    """Panels of so many rows, (panels, d, width), the last one with zeros."""
    n, d = Y.shape
    panels: Any = np.zeros((-(-n // width), d, width), Y.dtype)
    if isinstance(Y, np.ndarray):
        full = n // width
        panels[:full] = Y[: full * width].reshape(full, width, d).transpose(0, 2, 1)
        if full < len(panels):
            panels[full, :, : n - full * width] = Y[full * width :].T
    else:
        _scatter(Y.data, Y.indices, Y.indptr, panels)
    return np.asarray(panels)


@compiled()
def _scatter(data: Any, indices: Any, indptr: Any, panels: Any) -> None:
    width = panels.shape[2]
    for j in range(len(indptr) - 1):
        for k in range(indptr[j], indptr[j + 1]):
            panels[j // width, indices[k], j % width] += data[k]


def _type_sum(_context: Any, row: Any, span: Any, panel: Any, target: Any) -> Any:
    """Sum of the entries of a row, each times the numbers of its feature in a panel.

    `row` has the entries, and their features if zeros are left out; `span` is the first of them,
    and the one after the last. `panel` is an array and the place in it, `target` likewise.
    """
    values, panels, out = row[0], panel[0], target[0]
    assert values.dtype == panels.dtype == out.dtype

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        def part(argument: int, number: int) -> Any:
            return builder.extract_value(args[argument], number)

        element = context.get_value_type(values.dtype)
        width = PANEL_BYTES // (8 if values.dtype == types.float64 else 4)
        code = VectorCode(context, builder, width)
        entries, start = code.pointer(values, part(0, 0)), part(1, 0)
        numbers, base = code.pointer(panels, part(2, 0)), part(2, 1)
        features = code.pointer(row[1], part(0, 1)) if len(row) > 1 else None
        zero = code.constant(0.0, element)
        total = cgutils.alloca_once_value(builder, zero.value)  # a register, by mem2reg
        with cgutils.for_range(builder, builder.sub(part(1, 1), start)) as loop:
            k, feature = builder.add(start, loop.index), loop.index
            if features is not None:
                feature = builder.load(builder.gep(features, [k]))
                if feature.type != base.type:
                    feature = builder.sext(feature, base.type)
            place = builder.add(base, builder.mul(feature, ir.Constant(base.type, width)))
            factor = code.repeated(builder.load(builder.gep(entries, [k])))
            so_far = Vector(builder, builder.load(total))
            builder.store(code.load(numbers, place).times_plus(factor, so_far).value, total)
        code.store(Vector(builder, builder.load(total)), code.pointer(out, part(3, 0)), part(3, 1))
        return context.get_dummy_value()

    return types.void(row, span, panel, target), generate


_sum: Any = intrinsic(_type_sum)


@compiled()
def _multiply(row: Any, starts: Any, panels: Any, first: int, out: Any) -> None:
    """Write products with panels from a column on.

    `row` has the entries of all rows, and their features if zeros are left out; `starts` the place
    of the first entry of each row, and the end.
    """
    (count, d, width), columns = panels.shape, out.shape[1]
    numbers, target = panels.reshape(panels.size), out.reshape(out.size)
    last = np.empty(width, out.dtype)
    for p in range(count):
        column, base = first + p * width, p * d * width
        whole = column + width <= columns
        for i in range(out.shape[0]):
            span = (np.int64(starts[i]), np.int64(starts[i + 1]))
            if whole:
                _sum(row, span, (numbers, base), (target, i * columns + column))
            else:
                _sum(row, span, (numbers, base), (last, 0))
                assign(out[i, column:], last)
