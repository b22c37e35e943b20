"""The heat kernel's series on the sphere: weights with a proven tail, and their sum."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import AccuracyError
from dhsk.kernels.base import strips

TAIL_TOLERANCE: Final = 2.0**-60
"""Largest sum of the weights left out: a 256th of eps, so truncation never shows in float64."""

MAX_LEVELS: Final = 1_000_000
"""Largest number of levels: 8 MB of weights, and about a millisecond for each cosine."""


@dataclass(frozen=True, eq=False)
class SeriesWeights:
    """Weights a_l of K = Σ_l a_l P_l, as many as float64 can see."""

    weights: Floats
    """a_0 ... a_L, (levels,): not negative, normalised to sum 1; at least two."""
    tail_bound: float
    """Bound of Σ_{l>L} a_l; the kernel is off by at most twice that, as the rest is scaled up."""


def series_weights(dim: int, time: float) -> SeriesWeights:
    """Weights of the normalised heat kernel on S^{dim-1} in Legendre polynomials of that sphere.

    a_l ∝ exp(-l(l+n-2)t) d_l, n = dim, with d_l the number of harmonics of degree l. The ratio
    a_{l+1}/a_l decreases with l. So the weights have one peak, the logs of the ratios are smallest
    around it, and summing them outward from it keeps full digits where the weights are large
    (gammaln differences lose four digits at n = 1e4); and beyond the last level the weights lie
    below a geometric series, which proves the tail.

    Parameters
    ----------
    dim
        Ambient dimension n, at least 2.
    time
        Diffusion time t, above 0.

    Returns
    -------
    SeriesWeights
        The weights up to the level where the tail falls below `TAIL_TOLERANCE`.

    Raises
    ------
    AccuracyError
        If that takes more than `MAX_LEVELS` levels.

    References
    ----------
    Zhao & Song (2017), Theorem 1 and Definition 4.
    """
    peak, levels = _peak(dim, time), _levels(dim, time)
    if levels > MAX_LEVELS:
        raise _too_many_levels(dim, time, levels)
    log_ratios = _log_ratios(dim, time, levels)
    logs = np.zeros(levels)  # relative to the peak
    logs[peak + 1 :] = np.cumsum(log_ratios[peak:-1])
    logs[:peak] = -np.cumsum(log_ratios[:peak][::-1])[::-1]
    last = max(1, _last_level(logs, log_ratios, peak))
    relative = np.exp(logs[: last + 1])
    total = math.fsum(relative)
    ratio = math.exp(log_ratios[last])
    return SeriesWeights(relative / total, float(relative[-1] / total * ratio / (1.0 - ratio)))


def _last_level(logs: Floats, log_ratios: Floats, peak: int) -> int:
    # Past level l the weights are below a_l (r_l + r_l² + ...) = a_l r_l/(1 - r_l).
    with np.errstate(divide="ignore"):  # r = 1 is possible at the peak: an infinite bound
        log_tail = logs + log_ratios - np.log(-np.expm1(np.minimum(log_ratios, 0.0)))
    return peak + int(np.argmax(log_tail[peak:] <= math.log(TAIL_TOLERANCE)))


def _log_ratios(dim: int, time: float, levels: int) -> Floats:
    """log(a_{l+1}/a_l) for l = 0 ... levels - 1, (levels,)."""
    level = np.arange(1.0, levels)
    growth = np.log1p(2.0 / (2.0 * level + (dim - 2))) + np.log1p((dim - 3) / (level + 1.0))
    with np.errstate(over="ignore"):  # a huge time leaves level 0 alone
        decay = (2.0 * np.arange(levels) + (dim - 1)) * time
    log_growth: Floats = np.concatenate([[math.log(dim)], growth])
    return log_growth - decay


def _log_ratio(dim: int, time: float, level: int) -> float:
    if level == 0:
        return math.log(dim) - (dim - 1) * time
    growth = math.log1p(2 / (2 * level + dim - 2)) + math.log1p((dim - 3) / (level + 1))
    return growth - (2 * level + dim - 1) * time


def _peak(dim: int, time: float) -> int:
    """First level whose weight does not grow any more."""
    # The log of d_{l+1}/d_l is at most (n-1)/l, so the weights fall from l² = (n-1)/(2t) on.
    high = math.ceil(math.sqrt(dim - 1) / math.sqrt(2.0 * time))
    return _first(0, high, lambda level: _log_ratio(dim, time, level) <= 0.0)


def _levels(dim: int, time: float) -> int:
    """Bound the number of levels from above: enough for `TAIL_TOLERANCE`."""
    # Up to k levels past the peak the log ratio falls by s(k) or more a level, so the weight there
    # is below exp(-s k(k-1)/2), the ratio below exp(-s k) and the tail below
    # exp(-s k²/2)/(1 - exp(-s k)).
    peak = _peak(dim, time)
    digits = -math.log(TAIL_TOLERANCE)

    def enough(k: int) -> bool:
        last = peak + k
        fall = 2.0 * time + math.log1p(max(0, dim - 3) / ((last + 1) * (last + dim - 1)))
        return fall * k * k / 2.0 >= digits - math.log(-math.expm1(-fall * k))

    # The same with s = 2t alone, where 1/(1 - exp(-2kt)) is largest at the smallest such k.
    most = digits - math.log(-math.expm1(-2.0 * math.sqrt(digits) * math.sqrt(time)))
    return peak + _first(1, math.ceil(math.sqrt(most) / math.sqrt(time)), enough) + 2


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Smallest number in [low, high] where a monotone condition holds; high if nowhere below."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _too_many_levels(dim: int, time: float, levels: int) -> AccuracyError:
    # Search on a grid of 1 % steps in time; from t = 64 on, two levels are enough in any dimension.
    def later(step: int) -> float:
        return math.exp(math.log(time) + 0.01 * step)

    steps = math.ceil((math.log(64.0) - math.log(time)) / 0.01)
    step = _first(0, steps, lambda k: _levels(dim, later(k)) <= MAX_LEVELS)
    enough = later(step + 1)  # one more step, for three digits may round down
    return AccuracyError(
        f"the heat kernel of dim={dim} at time={time:.6g} takes {levels:.3g} levels, and at most"
        f" {MAX_LEVELS:.3g} are allowed: use a time of {enough:.3g} or more"
    )


def evaluate_series(weights: Floats, dim: int, cosines: Floats, out: Floats) -> None:
    """Sum Σ_l a_l P_l(c), with |P_l| <= 1 and P_l(1) = 1, by Clenshaw's recurrence.

    The polynomials obey P_0 = 1, P_1 = c, P_{l+1} = ((2l+n-2) c P_l - l P_{l-1})/(l+n-2), n = dim.
    Clenshaw's backward form of it takes five passes a level where the forward one takes six
    (16 against 21 ns an entry at n = 393, t = log n/n) and is as accurate: measured errors are
    below eps times the number of levels for n = 2 to 10000.

    Parameters
    ----------
    weights
        a_0 ... a_L, (levels,), at least two.
    dim
        Ambient dimension n, at least 2.
    cosines
        c in [-1, 1], (size,).
    out
        Takes the sums, (size,); may be `cosines`.

    References
    ----------
    Clenshaw (1955), "A note on the summation of Chebyshev series".
    """
    for part in strips(cosines.size):
        _clenshaw(weights.tolist(), dim, cosines[part], out[part])


def _clenshaw(weights: list[float], dim: int, c: Floats, out: Floats) -> None:
    # b_l = a_l + (2l+n-2)/(l+n-2) c b_{l+1} - (l+1)/(l+n-1) b_{l+2};  sum = a_0 + c b_1 - b_2/(n-1)
    b1, b2, scratch = np.full_like(c, weights[-1]), np.zeros_like(c), np.empty_like(c)
    for level in range(len(weights) - 2, 0, -1):
        np.multiply(c, b1, out=scratch)
        scratch *= (2 * level + dim - 2) / (level + dim - 2)
        b2 *= (level + 1) / (level + dim - 1)
        np.subtract(scratch, b2, out=b2)
        b2 += weights[level]
        b1, b2 = b2, b1
    np.multiply(c, b1, out=out)
    b2 /= dim - 1
    out -= b2
    out += weights[0]
