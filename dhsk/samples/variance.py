"""Variance of all entries of samples, by which scikit-learn scales its kernels."""

from collections.abc import Iterable

import numpy as np

from dhsk.arrays import Rows
from dhsk.errors import InputError


def gamma_of_scale(blocks: Iterable[Rows]) -> float:
    """scikit-learn's ``gamma="scale"``: 1 over the features times the variance of all entries.

    It is 1 for constant samples. The variance is added up block by block, from the mean of each
    [1]_. Raises InputError if it is not in the range of float64.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm
       for computing sample variances", COMPSTAT 1982.
    """
    count, mean, squares, dim = 0, 0.0, 0.0, 1
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks:
            own, own_mean, own_squares = _moments(block)
            dim, total = block.shape[1], count + own
            apart = own_mean - mean
            squares += own_squares + apart * apart * (count * own / total)
            mean, count = mean + apart * (own / total), total
        variance = squares / count
    if not np.isfinite(dim * variance):
        raise InputError("the variance of X overflows float64: scale the samples, X / abs(X).max()")
    return 1.0 / (dim * variance) if dim * variance > 0 else 1.0


def _moments(block: Rows) -> tuple[int, float, float]:
    """Number of entries of a block, their mean, and the sum of their squared distances from it."""
    count = block.shape[0] * block.shape[1]
    values = block if isinstance(block, np.ndarray) else block.data
    values = values[values != 0]  # so that dense and sparse samples have the same bits
    mean = float(values.sum()) / count
    squares = float(np.square(values - mean).sum()) + (count - values.size) * mean * mean
    return count, mean, squares
