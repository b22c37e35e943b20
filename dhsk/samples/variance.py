"""Variance of all entries of samples, by which Gaussian kernels are scaled."""

import math
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from dhsk.arrays import Floats, Rows, numbered
from dhsk.errors import InputError
from dhsk.kernels.centre import with_all_entries
from dhsk.samples.base import Samples
from dhsk.samples.maps import SphereMap, apply_map, map_of
from dhsk.samples.refusals import naming
from dhsk.samples.scan import BLOCK_BYTES, rows_within
from dhsk.samples.zeros import ZeroRows

SMALLEST: Final = 1e-300
"""Features times variance up to which samples count as constant: 1 over it must be in the range."""

DIGITS: Final = 3
"""Digits of a width, as of other parameters that the samples choose."""


def gamma_of_scale(blocks: Iterable[Rows], weights: Floats | None = None) -> float:
    """scikit-learn's ``gamma="scale"``: 1 over the features times the variance of all entries.

    It is 1 for constant samples. With weights, (N,), a sample counts as often as it weighs. The
    variance is added up block by block, from the mean of each [1]_. Raises InputError if it is not
    in the range of float64.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm
       for computing sample variances", COMPSTAT 1982.
    """
    count, mean, squares, dim, first = 0.0, 0.0, 0.0, 1, 0
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks:
            end = first + block.shape[0]
            own_weights = None if weights is None else weights[first:end]
            own, own_mean, own_squares = _moments(block, own_weights)
            dim, total, first = block.shape[1], count + own, end
            if not own:
                continue
            apart = own_mean - mean
            squares += own_squares + apart * apart * (count * own / total)
            mean, count = mean + apart * (own / total), total
        variance = squares / count
    if not np.isfinite(dim * variance):
        raise InputError("the variance of X overflows float64: scale the samples, X / abs(X).max()")
    return 1.0 / (dim * variance) if dim * variance > SMALLEST else 1.0


def mapped_gamma(
    samples: Samples, sphere_map: SphereMap | None, weights: Floats | None = None
) -> float:
    """`gamma_of_scale` of samples as a map makes them; None for none."""
    name, rows = sphere_map or "identity", rows_within(samples, BLOCK_BYTES)
    if map_of(name).most_entries is not None:  # images may have all entries
        rows = min(rows, max(1, BLOCK_BYTES // (8 * samples.shape[1])))

    def mapped(first: int, block: Rows) -> Rows:
        with naming(samples.source, samples.feature_names):
            return apply_map(name, block, first, ZeroRows())

    blocks = numbered(samples.blocks(rows))
    return gamma_of_scale((mapped(first, block) for first, block in blocks), weights)


def usual_width(gamma: float) -> float:
    """Width of a Gaussian kernel that is given by its name: that of `gamma_of_scale`, rounded."""
    return float(f"{math.sqrt(0.5 / gamma):.{DIGITS}g}")


def width_of(
    samples: Samples, sphere_map: SphereMap | None, weights: Floats | None = None
) -> Callable[[], float]:
    """What finds the usual width of a Gaussian kernel of mapped samples."""
    return lambda: usual_width(mapped_gamma(samples, sphere_map, weights))


def _moments(block: Rows, weights: Floats | None) -> tuple[float, float, float]:
    """Number of entries of a block, their mean, and the sum of their squared distances from it."""
    block = with_all_entries(block)
    each = np.ones(block.shape[0]) if weights is None else weights
    count = float(each.sum()) * block.shape[1]
    if isinstance(block, np.ndarray):
        values, lengths = block.ravel(), np.full(block.shape[0], block.shape[1])
    else:
        values, lengths = block.data, np.diff(block.indptr)
    full = values != 0  # so that dense and sparse samples have the same bits
    values, of_values = values[full], None
    if weights is not None:
        of_values = np.repeat(weights, lengths)[full]
    if not count:
        return 0.0, 0.0, 0.0
    mean = _total(values, of_values) / count
    zeros = count - (values.size if of_values is None else float(of_values.sum()))
    return count, mean, _total(np.square(values - mean), of_values) + zeros * mean * mean


def _total(values: Floats, weights: Floats | None) -> float:
    return float(values.sum() if weights is None else (values * weights).sum())
