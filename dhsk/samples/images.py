"""Images of samples on the sphere, block by block: what the maps compute of checked rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows

EMBEDDED: Final = 50
"""Least number of columns of embeddings: tables that people write seldom have as many z-scores, and
the narrowest embeddings in use, of words, have 50."""


@dataclass(frozen=True)
class MapToSphere:
    """A map of samples to unit rows."""

    does: str
    """What it does, in words."""
    image: Callable[[Rows], Rows]
    """Unit rows, (n, dim), of a block of finite samples, dense or canonical CSR, which it leaves as
    it is. Of an all-zero sample any row: the centre takes its place."""
    counts: bool = False
    """Whether samples are counts, so that values below 0 are refused."""
    most_entries: Callable[[Any, int], Any] | None = None
    """Most entries of the images of sparse samples, by their numbers of entries and of features;
    None if an image has no more entries than its sample."""


def roots_of_shares(block: Rows) -> Rows:
    """Square roots of proportions, sqrt(x / sum x) by row of non-negative samples."""
    return sqrt_shares(scaled_values(block), block)


def directions(block: Rows) -> Rows:
    """Rows divided by their length, x / ||x||."""
    values = scaled_values(block)
    norms = np.sqrt(reduce_rows(np.add, np.square(values), block))
    values /= spread(_above_zero(norms), block)
    return _rebuilt(values, block)


def values_of(block: Rows) -> Floats:
    """Return the stored values: (rows, dim) dense, (nnz,) for CSR."""
    return block.data if isinstance(block, csr_array) else block


def _rebuilt(values: Floats, block: Rows) -> Rows:
    """Return a block of the same structure with other values, without zeros."""
    if not isinstance(block, csr_array):
        return values
    # Copies, because dropping the entries that underflowed moves indices in place.
    structure = block.indices.copy(), block.indptr.copy()
    rebuilt = csr_array((values, *structure), shape=block.shape)
    rebuilt.eliminate_zeros()
    return rebuilt


def spread(per_row: NDArray[Any], block: Rows) -> NDArray[Any]:
    """Broadcast one number per row to the shape of `values_of`."""
    if isinstance(block, csr_array):
        return np.asarray(np.repeat(per_row, np.diff(block.indptr)))
    return per_row.reshape(-1, 1)


def reduce_rows(operation: np.ufunc, values: Floats, block: Rows) -> Floats:
    """Reduce each row over its stored values, (rows,); 0 for a row that stores none.

    numpy sums pairwise here: the error grows with log(dim), not with dim.
    """
    if not isinstance(block, csr_array):
        return np.asarray(operation.reduce(values, axis=1), dtype=np.float64)
    reduced = np.zeros(block.shape[0])
    filled = np.diff(block.indptr) > 0
    if filled.any():
        reduced[filled] = operation.reduceat(values, block.indptr[:-1][filled])
    return reduced


def peaks_of(block: Rows) -> Floats:
    """Return the largest magnitude of each row, (rows,)."""
    values = values_of(block)
    highest = reduce_rows(np.maximum, values, block)
    return np.maximum(highest, -reduce_rows(np.minimum, values, block))


def exact_scale(peaks: Floats) -> Floats:
    """Return powers of two that scale the peaks to about 1; multiplying by them is exact."""
    _, exponents = np.frexp(peaks)
    scale: Floats = np.ldexp(1.0, -np.clip(exponents, -1022, 1022))
    return scale


def scaled_values(block: Rows) -> Floats:
    """Return new values, scaled by row so that neither sums nor squares overflow or vanish."""
    scaled: Floats = values_of(block) * spread(exact_scale(peaks_of(block)), block)
    return scaled


def sqrt_shares(scaled: Floats, block: Rows) -> Rows:
    """Return sqrt(x / sum x) by row of scaled values, which it overwrites."""
    scaled /= spread(_above_zero(reduce_rows(np.add, scaled, block)), block)
    return _rebuilt(np.sqrt(scaled, out=scaled), block)


def _above_zero(divisors: Floats) -> Floats:
    """The same divisors, with ones in place of the zeros of all-zero rows."""
    return np.where(divisors == 0, 1.0, divisors)
