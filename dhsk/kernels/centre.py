"""CSR rows with a mark, which stand for rows without zeros.

A row less its mean has no zeros, and neither has the centre of the positive orthant, the unit
vector with 1/sqrt(dim) in every coordinate, which is the image of an all-zero sample. They would
take dim entries: a gigabyte for a thousand empty texts of 100,000 words. So such a CSR row has one
entry more than its sparse part, NaN, in the first column without one. With other entries it stands
for these less their mean; without, for the centre. Arithmetic that does not handle it gives NaN,
never a wrong number.

A marked row is a sparse part x and a constant b in every column: -sum(x)/dim, or 1/sqrt(dim). The
inner product with y and c is xy + b sum(y) + c sum(x) + b c dim.

Rejected: rows without entries as the mark of the centre (kernels of unmapped rows would take true
zeros for it); leaving all-zero samples out (labels, weights and ids would have to follow, and
predictions need one answer a sample); balances, an orthonormal basis in which centred rows keep
zeros (Egozcue et al. 2003: 964 entries for 215 of 5,000, and five times the time of a product).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import ROWS, Floats, Indices, Rows, blocks, stacked
from dhsk.kernels.certified.evaluate import Reals


def with_centres(rows: Rows, numbers: Indices) -> Rows:
    """Set the rows `numbers` (ascending), which have no entries, to the centre.

    A dense array, (n, dim), is modified in place. CSR rows get a mark.
    """
    if isinstance(rows, np.ndarray):
        rows[numbers] = np.sqrt(1.0 / rows.shape[1])
        return rows
    at, added = rows.indptr[numbers], np.zeros(rows.shape[0] + 1, np.int64)
    added[numbers + 1] = 1
    data, indices = np.insert(rows.data, at, np.nan), np.insert(rows.indices, at, 0)
    index: Any = np.int32 if len(data) < 2**31 else np.int64
    indptr = (rows.indptr + np.cumsum(added)).astype(index)
    return csr_array((data, indices, indptr), shape=rows.shape)


def with_marks(rows: Any) -> Rows:
    """CSR rows, (n, dim), that stand for those less their mean, where they have entries.

    At least one column of each has none.
    """
    lengths = np.diff(rows.indptr)
    own = np.flatnonzero(lengths)
    if not len(own):
        return rows  # type: ignore[no-any-return]
    place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], lengths)
    after = np.where(rows.indices == place, np.repeat(lengths, lengths), place)
    free = np.minimum.reduceat(after, rows.indptr[own])
    at = rows.indptr[own] + free
    data, indices = np.insert(rows.data, at, np.nan), np.insert(rows.indices, at, free)
    indptr = rows.indptr + np.concatenate([[0], np.cumsum(lengths > 0)])
    return csr_array((data, indices, indptr.astype(rows.indptr.dtype)), shape=rows.shape)


def marked_rows(rows: Rows) -> NDArray[np.bool_] | None:
    """Mask of the CSR rows that have a mark, (n,); None if there are none."""
    if isinstance(rows, np.ndarray) or not np.isnan(rows.data).any():
        return None
    marks = np.zeros(rows.shape[0], np.bool_)
    places = np.flatnonzero(np.isnan(rows.data))
    marks[np.searchsorted(rows.indptr, places, side="right") - 1] = True
    return marks


def without_marks(rows: Rows, marks: NDArray[np.bool_] | None) -> Rows:
    """The sparse parts of rows."""
    if marks is None or isinstance(rows, np.ndarray):
        return rows
    kept = ~np.isnan(rows.data)
    indptr = rows.indptr.copy()
    indptr[1:] -= np.cumsum(marks, dtype=indptr.dtype)
    return csr_array((rows.data[kept], rows.indices[kept], indptr), shape=rows.shape)


def with_all_entries(rows: Rows) -> Rows:
    """The same rows, with dim entries in those that have a mark."""
    marks = marked_rows(rows)
    if marks is None or isinstance(rows, np.ndarray):
        return rows
    inner: Any = without_marks(rows, marks)
    constants = constants_of(inner, marks)
    dense = inner[marks].toarray() + constants[marks, None].astype(inner.dtype)
    order = np.argsort(np.concatenate([np.flatnonzero(~marks), np.flatnonzero(marks)]))
    return stacked([inner[~marks], csr_array(dense)])[order]


def centres_of(inner: Rows, marks: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Mask of the rows that stand for the centre, (n,), by their sparse parts and marks."""
    if marks is None or isinstance(inner, np.ndarray):
        return np.zeros(inner.shape[0], np.bool_)
    found: NDArray[np.bool_] = marks & (np.diff(inner.indptr) == 0)
    return found


def constants_of(inner: Rows, marks: NDArray[np.bool_] | None) -> Floats:
    """What sparse parts have in every column besides, (n,)."""
    n, dim = inner.shape
    if marks is None or isinstance(inner, np.ndarray):
        return np.zeros(n)
    of_marked = np.where(centres_of(inner, marks), np.sqrt(1.0 / dim), -sums_of(inner) / dim)
    return np.where(marks, of_marked, 0.0)


def add_constants(
    product: Reals, X: Rows, Y: Rows, of_x: NDArray[np.bool_] | None, of_y: NDArray[np.bool_] | None
) -> None:
    """Add to inner products of sparse parts, (a, b), what the constants make of them, in place.

    `of_x`, (a,), and `of_y`, (b,), mark rows; None if there are none.
    """
    dim, (sums_x, sums_y) = X.shape[1], map(sums_of, (X, Y))
    of_rows, of_columns = constants_of(X, of_x), constants_of(Y, of_y)
    all_y = sums_y + dim * of_columns
    for part in blocks(len(of_rows), ROWS):
        product[part] += of_rows[part, None] * all_y + sums_x[part, None] * of_columns
    product[np.ix_(centres_of(X, of_x), centres_of(Y, of_y))] = 1.0  # exactly


def sums_of(rows: Rows) -> Floats:
    """Sums of rows, (n,), in float64."""
    ones: Any = np.ones(rows.shape[1])
    return np.asarray(rows @ ones)
