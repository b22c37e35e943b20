"""Time scales with which a search starts: where the heat kernel tells the samples apart.

At a small time all samples but equal ones have kernel values near 0, at a large time all have
values near 1. In between the mean of 1 - K over pairs of samples, their spread, falls from 1 to 0,
in high dimension within a narrow range of times, which depends on the cosines of the samples: for
word counts of 20 Newsgroups in 42,000 dimensions from time scale 0.88 (spread 0.9) to 1.2 (0.1),
for images of digits in 64 dimensions from 0.4 to 1.2.

The spread at any time takes one pass over the cosines of a sample of pairs: 1 - K = 1 - Σ a_l P_l
with weights a_l that depend on the time alone (Zhao & Song 2017, Theorem 1), so the means of P_l
over the pairs serve all times.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.prepare import check_kernels
from dhsk.gram.row_map import RowMap
from dhsk.kernels import TIME_SCALES, CosineKernel, time_at_scale
from dhsk.samples import Samples, SphereMap, ZeroRows, ZeroRule

SPREADS: Final = (0.9, 0.6, 0.3, 0.1)
"""Spreads at the time scales of the coarse grid."""

_SAMPLES: Final = 512
"""Samples whose cosines are computed: those of 131,000 pairs."""

_QUANTILES: Final = 500
"""Quantiles that stand for all cosines."""

_LARGEST: Final = 10.0
"""Time scale above which no search starts: even opposite samples are alike from 3 or so on."""

_TAIL: Final = 50.0
"""Levels with weights below exp(-50) times the largest are left out."""

MOST_FEATURES: Final = 1_000_000
"""Features for which `HeatKernel` promises proofs; with more the search starts as of old."""

_HALVINGS: Final = 30


def first_scales(
    source: GramMatrix | Samples, sphere_map: SphereMap | None, zero_rows: ZeroRule
) -> list[float]:
    """Time scales of the coarse grid for some samples, or stored cosines of them.

    Ascending, to two digits, one or more: those at which the spread is one of `SPREADS`, as far as
    the heat kernel is proven there. `sphere_map` and `zero_rows` are for samples. Raises InputError
    if samples have no image on the sphere.
    """
    dim = source.dim if isinstance(source, GramMatrix) else source.shape[1]
    if dim > MOST_FEATURES:
        return list(TIME_SCALES)
    return scales_at(_cosines(source, sphere_map, zero_rows), dim, SPREADS)


def least_scale(dim: int) -> float:
    """Smallest time scale of a search: those of `HeatKernel` with a promise of a proof."""
    if dim <= 50:
        return 1e-4 / time_at_scale(dim, 1.0)
    if dim > MOST_FEATURES:
        return min(TIME_SCALES)
    return 0.05 if dim <= 10_000 else 0.2


def scales_at(cosines: Floats, dim: int, spreads: Sequence[float]) -> list[float]:
    """Time scales at which pairs of samples have these spreads, to two digits, ascending."""
    if not len(cosines):
        return [1.0]
    spread_at = heat_spread(cosines, dim)
    return sorted({rounded(scale_at(spread_at, spread, dim), 2) for spread in spreads})


def heat_spread(
    cosines: Floats, dim: int, weights: Floats | None = None
) -> Callable[[float], float]:
    """Spread, by time scale, of pairs of samples with these cosines, and weights."""
    middles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    quantiles = np.quantile(
        np.clip(cosines, -1.0, 1.0), middles, weights=weights, method="inverted_cdf"
    )
    return _Sums(quantiles, dim).spread


def scale_at(spread_at: Callable[[float], float], wanted: float, dim: int) -> float:
    """Time scale at which a spread is the wanted one, within its bounds, by bisection."""
    low, high = least_scale(dim), _LARGEST
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spread_at(middle) > wanted else (low, middle)
    return math.sqrt(low * high)


def rounded(value: float, digits: int) -> float:
    """A value that a person can type, and that does not hang on the last bits of a sum."""
    return float(f"{value:.{digits}g}")


def few_of(n: int) -> Indices:
    """Indices of up to 512 of n samples, chosen at random, ascending."""
    chosen: Indices = np.random.default_rng(0).choice(n, min(n, _SAMPLES), replace=False)
    return np.sort(chosen)


class _Sums:
    """Mean of the heat kernel over some cosines at any time, in float64 to some ten digits."""

    def __init__(self, cosines: Floats, dim: int) -> None:
        self._dim = dim
        self._levels = _levels(dim, time_at_scale(dim, least_scale(dim)))
        self._means = _mean_polynomials(cosines, dim, len(self._levels))

    def spread(self, scale: float) -> float:
        """1 less the mean of the kernel."""
        level, time = np.arange(len(self._levels)), time_at_scale(self._dim, scale)
        logs = self._levels - level * (level + self._dim - 2.0) * time
        weights = np.exp(logs - logs.max())
        mean = float(np.average(self._means, weights=weights))
        return 1.0 - mean


def _levels(dim: int, least_time: float) -> Floats:
    """Logarithms of the dimensions d_l of the harmonics, l = 0, 1, ..., as many as are needed."""
    logs, largest, level = [0.0, float(np.log(dim))], 0.0, 1
    while True:
        now = logs[-1] - level * (level + dim - 2.0) * least_time
        largest = max(largest, now)
        if now < largest - _TAIL:
            return np.array(logs)
        level += 1
        ratio = (2 * level + dim - 2) * (level + dim - 3) / ((2 * level + dim - 4) * level)
        logs.append(logs[-1] + float(np.log(ratio)))


def _mean_polynomials(cosines: Floats, dim: int, levels: int) -> Floats:
    """Means over the cosines of P_l, l below `levels`, by their recurrence."""
    before, now, means = np.ones_like(cosines), cosines, np.empty(levels)
    means[:2] = 1.0, now.mean()
    for level in range(1, levels - 1):
        following = (2 * level + dim - 2) * cosines * now - level * before
        before, now = now, following / (level + dim - 2)
        means[level + 1] = now.mean()
    return means


def _cosines(
    source: GramMatrix | Samples, sphere_map: SphereMap | None, zero_rows: ZeroRule
) -> Floats:
    """Cosines of the pairs of up to 512 samples, chosen at random."""
    chosen, kernel = few_of(source.shape[0]), CosineKernel()
    rows: Any
    if isinstance(source, GramMatrix):
        rows = source.staged_rows(chosen)
    else:
        wanted = check_kernels([kernel], [source], sphere_map)
        rows = RowMap(kernel, wanted, zero_rows=ZeroRows(zero_rows)).some_of(source, chosen)
    found = np.asarray(kernel.of_rows(rows), dtype=np.float64)
    return found[np.triu_indices(len(chosen), 1)]
