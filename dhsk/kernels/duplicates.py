"""Hashes of rows, which find equal rows, so that their kernel value is exactly 1.

The computed inner product of a unit row with itself is off 1 by up to 60 eps at 10,000 columns, as
equal terms round with a bias. A tolerance cannot distinguish equal rows from near ones: when tried,
it made matrices of tight clusters indefinite in float32.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows, blocks
from dhsk.compiled import compiled
from dhsk.kernels.certified.evaluate import Reals

Marks: TypeAlias = NDArray[np.uint64]
"""Hashes of rows, (rows,)."""

_NEAR: Final = 1e-2
"""Rows with equal hashes whose product is relatively farther from their squared norm differ."""

_PAIRS: Final = 1 << 16
"""Pairs of equal rows whose products are set at a time."""


def set_cosines_of_equal_rows(product: Reals, rows: Rows, columns: Rows) -> None:
    """Set the cosine of equal unit rows to 1 in `product`, (a, b), in place.

    If `columns` is `rows` itself, the diagonal is not set.
    """
    set_products_of_equal_rows(product, rows, columns, np.ones(1, product.dtype))


def set_products_of_equal_rows(
    product: Reals, rows: Rows, columns: Rows, row_norms2: Reals
) -> None:
    """Set the inner product of equal rows to their squared norm in `product`, (a, b), in place.

    `row_norms2` are the squared norms of `rows`, (a,), or one of all, (1,). If `columns` is `rows`
    itself, the diagonal is not set.
    """
    row_marks = row_hashes(rows)
    column_marks = row_marks if columns is rows else row_hashes(columns)
    for i, j in equal_pairs(row_marks, column_marks, but_itself=columns is rows):
        expected: Any = row_norms2[i if len(row_norms2) > 1 else np.zeros_like(i)]
        set_near(np, product, (i, j), expected)


def set_near(xp: Any, product: Any, pair: tuple[Any, Any], expected: Any) -> None:
    """Set entries of a product to what is expected, but where they are far from it.

    `xp` is numpy, or the module of a device for its arrays.
    """
    found = product[pair]
    near = xp.abs(found - expected) < found.dtype.type(_NEAR) * expected
    product[pair] = xp.where(near, expected, found)


def equal_pairs(
    row_marks: Marks, column_marks: Marks, *, but_itself: bool = False
) -> Iterator[tuple[Indices, Indices]]:
    """Rows and columns of equal hashes, `_PAIRS` at a time.

    With `but_itself` both are the same rows, and those that only equal themselves are left out.
    """
    # Usually none is repeated, which this finds in a quarter of the time of what follows.
    marks = row_marks if but_itself else np.concatenate([row_marks, column_marks])
    if not _has_repeated(marks):
        return
    order = np.argsort(column_marks, kind="stable")
    ascending = column_marks[order]
    first = np.searchsorted(ascending, row_marks, side="left")
    counts = np.searchsorted(ascending, row_marks, side="right") - first
    if but_itself:
        counts[counts == 1] = 0  # the row itself
    ends = np.cumsum(counts)
    for part in blocks(int(counts.sum()), _PAIRS):
        pair = np.arange(part.start, part.stop)
        i = np.searchsorted(ends, pair, side="right")
        yield i, order[first[i] + pair - (ends[i] - counts[i])]


def _has_repeated(marks: Marks) -> bool:
    """Whether a hash occurs more than once."""
    ascending = np.sort(marks)
    return bool((ascending[1:] == ascending[:-1]).any())


def are_apart(sides: Sequence[Marks | None]) -> bool:
    """Whether no two rows are equal, by the hashes of one side, or of two of which none repeats."""
    known = [marks for marks in sides if marks is not None]
    return len(known) == len(sides) and not _has_repeated(np.concatenate(known))


def are_distinct(rows: Rows) -> bool:
    """Whether no two rows are equal."""
    return not _has_repeated(row_hashes(rows))


def row_hashes(rows: Rows) -> Marks:
    """64-bit hash of each row, the same for a dense row and for its sparse form; -0.0 is 0.0.

    `rows` is dense and C-ordered, or CSR without duplicates. Rows that differ in one entry only
    have different hashes.
    """
    data: Any = rows if isinstance(rows, np.ndarray) else rows.data
    bits = data.view(np.uint32 if data.dtype == np.float32 else np.uint64)
    marks: Marks = np.empty(rows.shape[0], np.uint64)
    weights, dense, sparse = _compiled()
    if isinstance(rows, np.ndarray):
        dense(bits, weights(np.arange(rows.shape[1])), marks)
    else:
        sparse(bits, weights(rows.indices), rows.indptr, marks)
    return marks


@cache
def _compiled() -> tuple[Any, Any, Any]:
    """Compile sums of folded bits times weights modulo 2^64, which are exact in any order.

    Small integers in float64 differ in their upper bits only, of which a product modulo 2^64 keeps
    few, so the upper half is folded onto the lower one. Zeros are typed, as numba would make floats
    of ``0 if ... else bits``. The functions do not call each other, as numba would then compile
    them in every process.
    """

    @compiled()
    def weights(numbers: Any) -> Any:
        """Pseudo-random odd numbers (the finaliser of SplitMix64, Steele et al. 2014)."""
        found = np.empty(numbers.size, np.uint64)
        for k in range(numbers.size):
            z = (np.uint64(numbers[k]) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            found[k] = (z ^ (z >> np.uint64(31))) | np.uint64(1)
        return found

    @compiled()
    def dense(bits: Any, weights: Any, marks: Any) -> None:
        minus_zero = bits.dtype.type(1) << bits.dtype.type(8 * bits.itemsize - 1)
        for i in range(bits.shape[0]):
            total = np.uint64(0)
            for j in range(bits.shape[1]):
                entry = np.uint64(0) if bits[i, j] == minus_zero else np.uint64(bits[i, j])
                total += (entry ^ (entry >> np.uint64(32))) * weights[j]
            marks[i] = total

    @compiled()
    def sparse(bits: Any, weights: Any, indptr: Any, marks: Any) -> None:
        minus_zero = bits.dtype.type(1) << bits.dtype.type(8 * bits.itemsize - 1)
        for i in range(marks.size):
            total = np.uint64(0)
            for j in range(indptr[i], indptr[i + 1]):
                entry = np.uint64(0) if bits[j] == minus_zero else np.uint64(bits[j])
                total += (entry ^ (entry >> np.uint64(32))) * weights[j]
            marks[i] = total

    return weights, dense, sparse
