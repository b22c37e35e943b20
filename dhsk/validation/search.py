"""Search for the diffusion time and C: which to try next, from the scores so far.

Accuracy as a function of the time scale has one broad hill, where the kernel tells the samples
apart (`dhsk.validation.start`): a coarse grid finds its side, and one refinement its top. C counts
in units of the spread of the samples in feature space: where a large time makes all kernel values
nearly 1, the same margin needs a C that is larger in proportion.

In these units the classifiers have a limit at large times: the linear one. 1 - K is a multiple of
1 - c up to a factor between 1 and 1 + δ, with a proven δ that falls like n^(1-s), see
`HeatKernel.nonlinearity`. Where δ is below a thousandth the search goes no further.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from dhsk.kernels import HeatKernel
from dhsk.solvers.sources import Combination, Source

SPREAD_C: Final = (0.5, 1.5, 5.0, 15.0)
"""C of the coarse grid, times the spread of the samples."""

PENALTIES: Final = (0.005, 0.015, 0.05, 0.15, *SPREAD_C, 50.0, 150.0, 500.0, 1500.0, 5000.0)
"""All values of C that a search may try, times the spread: its limits are the first and last."""

_MORE_C: Final = 2
"""Values of C that are tried beyond an end at a time."""

FINEST: Final = 1.15
"""Ratio of neighbouring time scales below which the hill is flat."""

MOST_STAGES: Final = 4

SEARCHED: Final = 5
"""Kernels that a search tries after its first ones, as seen: three to six."""

SPREAD_COLUMNS: Final = 1024
"""Columns from which the spread is estimated where the whole matrix is not computed."""

LINEAR: Final = 1e-3
"""Nonlinearity of a kernel that is taken for linear: squared distances in feature space are those
of the linear kernel to a thousandth, some way below what tells neighbouring values of C apart."""


def is_linear(dim: int) -> Callable[[float], bool]:
    """Return a predicate: whether the heat kernel at a time scale is taken for linear."""
    return lambda scale: HeatKernel.at_scale(dim, scale).nonlinearity <= LINEAR


def spread_of(source: Source, columns: int | None = None) -> float:
    """Mean squared distance of the samples from their mean in feature space.

    It is the mean of the diagonal less the mean of all entries [1]_, at least 1e-12 of the former,
    and 1 where all samples are 0.
    The mean of all entries takes one pass, or is estimated by that of a random sample of columns.

    References
    ----------
    .. [1] M. J. Zaki and W. Meira, "Data Mining and Analysis", section 5.3.
    """
    n = source.n
    diagonal = float(source.diagonal().mean())
    if columns is None:
        mean = float(source.product(np.ones((n, 1))).sum()) / n**2
    else:
        rng = np.random.default_rng(0)  # a fixed seed: the same matrix gives the same C
        chosen = np.sort(rng.choice(n, min(n, columns), replace=False))
        ones = np.ones((len(chosen), 1))
        (found,) = source.combine([Combination(np.arange(n), chosen, ones)])
        mean = float(found.sum()) / (n * len(chosen))
    return max(diagonal - mean, 1e-12 * diagonal) or 1.0


def scaled(values: Sequence[float], spread: float) -> list[float]:
    """Values of C for samples of some spread, to six digits: more is noise of the spread."""
    return [float(f"{value / spread:.6g}") for value in values]


def next_penalties(tried: Mapping[float, float]) -> list[float]:
    """Values of C, times the spread, beyond the end of the grid that the best one lies at.

    None if it lies inside, or at a limit of `PENALTIES`, or is the only one. `tried` is the mean
    score by C times the spread; of equals the smallest is the best. Where all are equal, C may be
    too small to tell any samples apart: larger ones are tried, once.
    """
    values = sorted(tried)
    best = max(values, key=lambda C: tried[C])
    if tried[best] == -np.inf or len(values) == 1:
        return []
    flat = len(set(tried.values())) == 1
    if flat and values[-1] > SPREAD_C[-1]:
        return []
    if best == values[-1] or flat:
        return [C for C in PENALTIES if values[-1] < C][:_MORE_C]
    if best == values[0] and tried[best] > tried[values[1]]:
        return [C for C in PENALTIES if values[0] > C][-_MORE_C:]
    return []


def next_scales(
    tried: Mapping[float, float],
    stage: int,
    linear: Callable[[float], bool],
    least: float = 0.0,
) -> tuple[list[float], str]:
    """Time scales of the next stage, none if the search has ended, and why, in a sentence.

    `tried` is the best mean score by time scale, `stage` the number of stages so far. `linear`
    tells of a time scale whether its kernel, and that of all larger ones, is taken for linear;
    there is no proof below the time scale `least`.
    """
    scales = sorted(tried)
    best = max(scales, key=lambda s: tried[s])  # of equals the smallest
    place = scales.index(best)
    if stage >= MOST_STAGES:
        return [], f"ended after {stage} rounds of time scales"
    if len(set(tried.values())) == 1 < len(scales):
        return [], "ended: all time scales have the same score"
    if place == 0:
        smaller = [scale for scale in _rounded(best / 2**0.5, best / 2) if scale >= least]
        if not smaller:
            return [], f"ended: below {best:g} the kernel is not proven"
        return smaller, f"{best:g} was the smallest: now smaller ones"
    if place == len(scales) - 1 and not linear(best):
        larger = _rounded(best * 2**0.5, best * 2)
        kept = larger[:1] if linear(larger[0]) else larger
        return kept, f"{best:g} was the largest: now larger ones"
    around = [
        (low * high) ** 0.5
        for low, high in pairwise(scales[place - 1 : place + 2])
        if high / low > FINEST and not linear(low)
    ]
    flat = ""
    if linear(best):
        first = next(scale for scale in scales if linear(scale))
        flat = f"from {first:g} on the kernel is linear, and larger times change nothing; "
    if not around:
        return [], f"ended: {flat}the neighbours of time scale {best:g} were tried, and are close"
    return _rounded(*around), f"{flat}between {best:g} and its neighbours"


def _rounded(*scales: float) -> list[float]:
    return sorted(float(f"{scale:.2g}") for scale in scales)


WIDTHS: Final = (0.5, 1.0, 2.0, 4.0)
"""Widths of Gaussian kernels on scaled columns, in units of the usual one."""


def usual_widths(dim: int) -> list[float]:
    """Widths of Gaussian kernels of columns of variance 1, about that of gamma="scale"."""
    return [float(f"{factor * math.sqrt(dim / 2):.3g}") for factor in WIDTHS]


MOST_WIDTHS: Final = 8
"""Most widths that are tried while the best is the last of them."""


def next_width(best: Mapping[float, float]) -> tuple[float | None, str]:
    """Width beyond the last one if that is the best by its mean, and why; None if it is not."""
    widths = sorted(best)
    if not 1 < len(widths) < MOST_WIDTHS or list(best.values()).count(max(best.values())) > 1:
        return None, ""
    for last, factor, how in ((widths[0], 0.5, "small"), (widths[-1], 2.0, "larg")):
        if best[last] == max(best.values()):
            words = f"the {how}est width was the best: now a {how}er one"
            return float(f"{last * factor:.3g}"), words
    return None, ""
