"""Equal rows: found by a hash of their bits, so that their cosine can be exactly 1.

The computed product of a unit row with itself is off 1 by up to 60 eps at 10,000 columns (one after
the other, equal terms round with a bias), so no tolerance tells equal rows from near ones without
bending the kernel for the near ones: a tolerance was tried, and made matrices of tight clusters
indefinite in float32.
"""

from functools import cache
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.kernels.evaluate import Reals

_Marks = NDArray[np.uint64]

_NEAR_ONE: Final = 1e-2
"""Equal marks whose cosine is farther from 1 are those of different rows."""


def set_cosines_of_equal_rows(product: Reals, rows: Rows, columns: Rows) -> None:
    """Set the cosine of equal unit rows to 1, in place.

    Parameters
    ----------
    product
        Inner products, (a, b).
    rows
        Unit rows, (a, dim).
    columns
        Unit rows, (b, dim); if they are `rows` itself, the diagonal is left alone.
    """
    row_marks = _marks(rows)
    column_marks = row_marks if columns is rows else _marks(columns)
    if columns is rows:
        repeated = _repeated(row_marks)
    else:
        # Mostly there are none, and to see that takes a quarter of the time of an intersection.
        both = _repeated(np.concatenate([row_marks, column_marks]))
        repeated = np.intersect1d(row_marks, column_marks) if both.size else both
    for mark in repeated:
        equal = np.ix_(row_marks == mark, column_marks == mark)
        cosines = product[equal]
        product[equal] = np.where(np.abs(cosines - 1.0) < _NEAR_ONE, 1.0, cosines)


def _repeated(marks: _Marks) -> _Marks:
    """Marks that are there more than once."""
    found, counts = np.unique(marks, return_counts=True)
    return np.asarray(found[counts > 1])


def _marks(rows: Rows) -> _Marks:
    """64-bit hash of each row, the same for a dense row and for its sparse form."""
    data: Any = rows if isinstance(rows, np.ndarray) else rows.data
    bits = data.view(np.uint32 if data.dtype == np.float32 else np.uint64)
    marks: _Marks = np.empty(rows.shape[0], np.uint64)
    if isinstance(rows, np.ndarray):
        columns = np.arange(rows.shape[1], dtype=np.uint64)
        _compiled()[0](bits, _scattered(columns), marks)
    else:
        _compiled()[1](bits, _scattered(rows.indices.astype(np.uint64)), rows.indptr, marks)
    return marks


def _scattered(numbers: _Marks) -> _Marks:
    """Odd numbers that look random (the finaliser of SplitMix64, Steele et al. 2014)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((z ^ (z >> np.uint64(31))) | np.uint64(1))


@cache
def _compiled() -> tuple[Any, Any]:
    """Sums of bits times weights modulo 2^64: exact, so their order does not matter."""

    @numba.njit(nogil=True, cache=True)
    def dense(bits: Any, weights: Any, marks: Any) -> None:
        minus_zero = bits.dtype.type(1) << bits.dtype.type(8 * bits.itemsize - 1)
        for i in range(bits.shape[0]):
            total = np.uint64(0)
            for j in range(bits.shape[1]):
                entry = bits[i, j]
                total += np.uint64(0 if entry == minus_zero else entry) * weights[j]
            marks[i] = total

    @numba.njit(nogil=True, cache=True)
    def sparse(bits: Any, weights: Any, indptr: Any, marks: Any) -> None:
        minus_zero = bits.dtype.type(1) << bits.dtype.type(8 * bits.itemsize - 1)
        for i in range(marks.size):
            total = np.uint64(0)
            for j in range(indptr[i], indptr[i + 1]):
                entry = bits[j]
                total += np.uint64(0 if entry == minus_zero else entry) * weights[j]
            marks[i] = total

    return dense, sparse
