"""Centred log-ratios of compositions (Aitchison 1986)."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows, stacked
from dhsk.kernels.centre import with_marks
from dhsk.samples.images import exact_scale, reduce_rows, scaled_values, spread, values_of

PseudoCount: TypeAlias = float | None
"""What is added to every value before its logarithm is taken; None for the smallest value above 0
of each sample."""


def log_ratios(block: Rows, pseudo_count: PseudoCount = None) -> Rows:
    """Centred logarithms of x + c by row, divided by their length; c is the pseudo-count.

    Where all logarithms are equal, the centre. Centring leaves no zeros: CSR rows with at most half
    of the entries keep those before it, and a mark (`dhsk.kernels.centre`). Those with more have
    all: the more entries, the less is left of their logarithms, and the more digits would be lost.

    Measured on seven tables of microbes (balanced accuracy of the heat kernel, mean of five folds),
    c the smallest value m above 0 of each sample: 0.825; m/2 0.822, half the smallest value of all
    samples 0.820, one share of all samples 0.819 (1e-6) and 0.797 (1e-4), 1/dim 0.799; square roots
    of proportions 0.789.

    Rejected: c chosen within folds. m follows the depth already: in the median 5e-4 to 4e-3 of a
    sample in the four shallow tables, 4e-7 in deep ones. Measured on the same tables in nested ten
    folds of eight seeds, as points of accuracy from m, paired (`SVC` on the heat kernel): a choice
    of half the least share of the training part, 1e-4 and 1e-2 has -0.07 ± 0.26 (shallow -0.04 ±
    0.37), the first without a choice +0.38 ± 0.26; a choice of m and m/2 +0.12 ± 0.13, m/2 +0.53 ±
    0.21, but +0.30 ± 0.31 in the whole search; 1e-4 -1.39 ± 0.34, 1e-2 -4.07 ± 0.44.

    Rejected: vectors as long as they are, for Gaussian and linear kernels (Aitchison's geometry).
    On the same tables, kernel and C chosen within each of forty folds, accuracy was 0.795 with and
    0.802 without their lengths (scikit-learn's SVC on precomputed kernels).
    """
    logs = _logs(block, pseudo_count)
    if not isinstance(block, csr_array):
        return _centred(logs)
    sparse = csr_array((logs, block.indices, block.indptr), block.shape)
    full = 2 * np.diff(block.indptr) > block.shape[1]
    if not full.any():
        return _marked(sparse)
    order: Any = np.argsort(np.concatenate([np.flatnonzero(~full), np.flatnonzero(full)]))
    others: Any = csr_array(_centred(sparse[full].toarray()))
    return csr_array(stacked([_marked(csr_array(sparse[~full])), others])[order])


def most_entries(lengths: Any, dim: int) -> Any:
    """Most entries of images of CSR rows with so many, in an array of the same shape."""
    return np.where(2 * lengths > dim, dim, lengths + 1)


def _logs(block: Rows, pseudo_count: PseudoCount) -> Floats:
    """log(1 + x/c) of the stored values: 0 where x is 0, and log(x + c) less log(c).

    Times a power of two for each row, so that no square vanishes where c is far above x.
    """
    if pseudo_count is None:
        values = scaled_values(block)
        least = -reduce_rows(np.maximum, np.where(values > 0, -values, -np.inf), block)
        divisors = spread(np.where(np.isfinite(least) & (least > 0), least, 1.0), block)
    else:
        values, divisors = values_of(block).copy(), np.array(pseudo_count)
    with np.errstate(over="ignore"):  # a ratio that is out of range counts as the largest
        values /= divisors
    logs: Floats = np.log1p(np.minimum(values, np.finfo(np.float64).max, out=values), out=values)
    logs *= spread(exact_scale(reduce_rows(np.maximum, logs, block)), block)
    return logs


def _centred(logs: NDArray[np.float64]) -> Floats:
    """Dense logarithms less their mean, of norm 1, in place."""
    flat = logs.max(axis=1) == logs.min(axis=1)
    logs -= logs.mean(axis=1, keepdims=True)
    logs[flat] = 1.0
    logs /= np.sqrt(np.square(logs).sum(axis=1, keepdims=True))
    return logs


def _marked(logs: Any) -> Rows:
    """CSR logarithms, over the length that they have less their mean; marked as such."""
    values = logs.data
    sums = reduce_rows(np.add, values, logs)
    lengths2 = reduce_rows(np.add, np.square(values), logs) - sums * (sums / logs.shape[1])
    values /= spread(np.sqrt(np.where(lengths2 > 0, lengths2, 1.0)), logs)
    return with_marks(logs)
