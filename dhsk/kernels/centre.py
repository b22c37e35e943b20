"""CSR rows that stand for the centre of the positive orthant, the image of an all-zero sample.

The centre is the unit vector with 1/sqrt(dim) in every coordinate. In a CSR row it would take dim
entries: a gigabyte for a thousand empty texts of 100,000 words. So such a row has one entry
instead, NaN in the first column. No other sample has this image, and arithmetic that does not
handle it gives NaN, never a wrong number. Its inner product with a row x is sum(x)/sqrt(dim).

Rejected: rows without entries as the mark (kernels of unmapped rows would take true zeros for the
centre); leaving such samples out (labels, weights and ids would have to follow, and predictions
need one answer a sample).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Indices, Rows
from dhsk.kernels.certified.evaluate import Reals


def with_centres(rows: Rows, numbers: Indices, *, compact: bool) -> Rows:
    """Set the rows `numbers` (ascending), which have no entries, to the centre.

    A dense array, (n, dim), is modified in place. CSR rows get one entry that stands for the centre
    if `compact`, else dim entries.
    """
    dim = rows.shape[1]
    entry = np.sqrt(1.0 / dim)
    if isinstance(rows, np.ndarray):
        rows[numbers] = entry
        return rows
    width = 1 if compact else dim
    lengths = np.diff(rows.indptr).astype(np.int64)
    lengths[numbers] = width
    index: Any = np.int32 if max(dim, int(lengths.sum())) < 2**31 else np.int64
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    own = np.repeat(np.isin(np.arange(rows.shape[0]), numbers), lengths)
    data, indices = np.empty(len(own), rows.dtype), np.empty(len(own), index)
    data[own], data[~own] = np.nan if compact else entry, rows.data
    indices[own], indices[~own] = np.tile(np.arange(width), len(numbers)), rows.indices
    return csr_array((data, indices, indptr), shape=rows.shape)


def centres_of(rows: Rows) -> NDArray[np.bool_] | None:
    """Mask of the CSR rows that stand for the centre, (n,); None if there are none."""
    if isinstance(rows, np.ndarray) or not rows.nnz:
        return None
    starts = np.minimum(rows.indptr[:-1], rows.nnz - 1)
    # For a row without entries this is the first entry of a later row.
    found: NDArray[np.bool_] = np.isnan(rows.data[starts]) & (np.diff(rows.indptr) == 1)
    return found if found.any() else None


def without_centres(rows: Rows, centres: NDArray[np.bool_] | None) -> Rows:
    """The same rows, with no entries in those that stand for the centre."""
    if centres is None or isinstance(rows, np.ndarray):
        return rows
    kept = np.ones(rows.nnz, np.bool_)
    kept[rows.indptr[:-1][centres]] = False
    indptr = rows.indptr.copy()
    indptr[1:] -= np.cumsum(centres, dtype=indptr.dtype)
    return csr_array((rows.data[kept], rows.indices[kept], indptr), shape=rows.shape)


def with_all_entries(rows: Rows) -> Rows:
    """The same rows, with dim entries in those that stand for the centre."""
    centres = centres_of(rows)
    if centres is None:
        return rows
    return with_centres(without_centres(rows, centres), np.flatnonzero(centres), compact=False)


def set_products_of_centres(
    product: Reals, X: Rows, Y: Rows, of_x: NDArray[np.bool_] | None, of_y: NDArray[np.bool_] | None
) -> None:
    """Set the inner products, (a, b), of rows that stand for the centre, in place.

    X and Y have no entries in these rows. `of_x`, (a,), and `of_y`, (b,), mark them; None if there
    are none.
    """
    entry = np.sqrt(1.0 / X.shape[1])
    if of_x is not None:
        product[of_x] = entry * _sums(Y)
    if of_y is not None:
        product[:, of_y] = entry * _sums(X)[:, None]
    if of_x is not None and of_y is not None:
        product[np.ix_(of_x, of_y)] = 1.0


def _sums(rows: Rows) -> Floats:
    """Sums of rows, (n,), in float64."""
    ones: Any = np.ones(rows.shape[1])
    return np.asarray(rows @ ones)
