"""The heat kernel's series on the sphere, summed exactly enough to prove things with it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flint import arb, ctx

from dhsk.errors import AccuracyError

POINT_BITS: Final = 52
"""Cosines are given as whole numbers over 2^52: each is a float64, exactly."""

MAX_LEVELS: Final = 150_000
"""Largest number of levels: about five seconds for a profile."""

_GUARD_BITS: Final = 96  # of the weights' own arithmetic: L² roundings of L <= 2^18 levels, and 60
_DERIVATIVE_BITS: Final = 64  # that the eigenvalues take: l(l+n-2) < 2^45 at 2^18 levels, n <= 1e8


@dataclass(frozen=True, eq=False)
class HeatSeries:
    """Weights a_l of K = Σ_l a_l P_l as whole numbers over 2^bits, and the sum itself.

    The weights are positive and sum to 1. Each is right to one unit, and all those left out
    together are below one unit.
    """

    dim: int
    time: float
    bits: int
    weights: tuple[int, ...]
    """a_0 ... a_L times 2^bits; at least two."""

    @property
    def error_units(self) -> int:
        """Bound of the error of a sum, in units of 2^-bits.

        A rounding by δ in step l of Clenshaw's recurrence is a change of a_l by δ, and |P_l| <= 1
        on [-1, 1]. There are two roundings down a level, of a unit each, and one unit of the
        weight; the last step and the tail add at most four.
        """
        return 3 * len(self.weights) + 4

    def value(self, point: int) -> arb:
        """Ball of radius `error_units` that holds K at a cosine times 2^52, in [-2^52, 2^52]."""
        return arb(self.sum(point), self.error_units) * arb(2) ** -self.bits

    def sum(self, point: int) -> int:
        """Sum the series at a point, in units of 2^-bits, by Clenshaw's recurrence.

        P_0 = 1, P_1 = c, P_{l+1} = ((2l+n-2) c P_l - l P_{l-1})/(l+n-2), n = dim. Backwards:
        b_l = a_l + (2l+n-2)/(l+n-2) c b_{l+1} - (l+1)/(l+n-1) b_{l+2}, and the sum is
        a_0 + c b_1 - b_2/(n-1). See Clenshaw (1955), "A note on the summation of Chebyshev series".
        """
        shift, offset, weights = POINT_BITS, self.dim - 2, self.weights
        b1, b2 = weights[-1], 0
        for level in range(len(weights) - 2, 0, -1):
            # ((x >> k) // m is x // (2^k m): one rounding down.)
            step = ((2 * level + offset) * point * b1 >> shift) // (level + offset)
            b1, b2 = weights[level] + step - (level + 1) * b2 // (level + offset + 1), b1
        return weights[0] + (point * b1 >> shift) - b2 // (offset + 1)


def heat_series(dim: int, time: float, bits: int) -> HeatSeries:
    """Weights, in units of 2^-bits, of the normalised heat kernel on S^{dim-1}.

    a_l ∝ exp(-l(l+n-2)t) d_l, n = dim, with d_l the number of harmonics of degree l. The ratio
    a_{l+1}/a_l = (2l+n)(l+n-2)/((2l+n-2)(l+1)) exp(-(2l+n-1)t) falls with l, so past the last
    level kept the weights lie below a geometric series, which proves the tail. There are as many
    levels as the precision sees; `AccuracyError` if these are more than `MAX_LEVELS`.

    References
    ----------
    Zhao & Song (2017), Theorem 1 and Definition 4.
    """
    refuse_too_many_levels(dim, time, bits)
    with ctx.workprec(bits + _GUARD_BITS):
        relative = _relative_weights(dim, arb(time), bits)
        unit = arb(2) ** bits / sum(relative, arb(0))
        weights = tuple(_rounded(weight * unit) for weight in relative)
    return HeatSeries(dim, time, bits, weights)


def derivative_series(series: HeatSeries) -> HeatSeries:
    """Series of dK/dt = Σ_l a_l (m - l(l+n-2)) P_l, m = Σ_l a_l l(l+n-2), from that of K.

    It has the same levels, and 64 bits less. The weights are not all positive, and sum to 0. They
    are right to one unit, for all that the levels left out add is in the balls: a weight left out
    is below a geometric series, and so is that times l(l+n-2), whose ratio falls too.
    """
    dim, time, bits = series.dim, series.time, series.bits - _DERIVATIVE_BITS
    with ctx.workprec(series.bits + _GUARD_BITS):
        relative = _relative_weights(dim, arb(time), series.bits)
        eigenvalues = [level * (level + dim - 2) for level in range(len(relative) + 1)]
        ratio = relative[-1] / relative[-2]
        growth = ratio * eigenvalues[-1] / eigenvalues[-2]
        assert growth < 1, "the weights left out fall too slowly"
        tail = _between_0_and(relative[-1] * ratio / (1 - ratio))
        tail_rate = _between_0_and(relative[-1] * eigenvalues[-2] * growth / (1 - growth))
        total = sum(relative, tail)
        rate = sum((w * e for w, e in zip(relative, eigenvalues, strict=False)), tail_rate) / total
        unit = arb(2) ** bits
        # Nor may the sum of what is left out, |m - l(l+n-2)| a_l, come to a unit.
        assert (tail_rate + rate * tail) / total * unit < 0.25, "too many bits"
        scaled = unit / total
        weights = tuple(
            _rounded(w * (rate - e) * scaled) for w, e in zip(relative, eigenvalues, strict=False)
        )
    return HeatSeries(dim, time, bits, weights)


def _between_0_and(largest: arb) -> arb:
    """Ball of the numbers from 0 to another."""
    return arb(0).union(largest)


def _relative_weights(dim: int, time: arb, bits: int) -> list[arb]:
    """Weights over that of level 0, until the tail is below 2^-bits of the largest."""
    tolerance = arb(2) ** -bits
    decay, step = (-(dim - 1) * time).exp(), (-2 * time).exp()
    weights, largest, level = [arb(1)], arb(1), 0
    while True:
        growth = arb(dim) if level == 0 else _harmonics_ratio(dim, level)
        ratio = growth * decay
        weights.append(weights[-1] * ratio)
        decay *= step
        level += 1
        if ratio >= 1:
            largest = weights[-1]
        # Past level l the weights are below a_l (r + r² + ...) = a_l r/(1 - r).
        elif ratio < 1 and weights[-1] * ratio < tolerance * largest * (1 - ratio):
            return weights


def _harmonics_ratio(dim: int, level: int) -> arb:
    return arb((2 * level + dim) * (level + dim - 2)) / ((2 * level + dim - 2) * (level + 1))


def _rounded(ball: arb) -> int:
    """Whole number next to all of a ball."""
    assert ball.rad() < 0.25, "the guard bits of the weights do not suffice"
    whole = ball.mid().floor().unique_fmpz()
    assert whole is not None
    return int(whole)


def level_bound(dim: int, time: float, bits: int) -> int:
    """Number of levels that suffice for the weights left out to sum to less than 2^-bits."""
    # Up to k levels past the peak the log ratio falls by s(k) or more a level, so the weight there
    # is below exp(-s k(k-1)/2), the ratio below exp(-s k) and the tail below
    # exp(-s k²/2)/(1 - exp(-s k)).
    peak = _peak(dim, time)
    digits = bits * math.log(2.0)

    def enough(k: int) -> bool:
        last = peak + k
        fall = 2.0 * time + math.log1p(max(0, dim - 3) / ((last + 1) * (last + dim - 1)))
        return fall * k * k / 2.0 >= digits - math.log(-math.expm1(-fall * k))

    # The same with s = 2t alone, where 1/(1 - exp(-2kt)) is largest at the smallest such k.
    most = digits - math.log(-math.expm1(-2.0 * math.sqrt(digits) * math.sqrt(time)))
    return peak + _first(1, math.ceil(math.sqrt(most) / math.sqrt(time)), enough) + 2


def _peak(dim: int, time: float) -> int:
    """First level whose weight does not grow any more."""
    # The log of d_{l+1}/d_l is at most (n-1)/l, so the weights fall from l² = (n-1)/(2t) on.
    high = math.ceil(math.sqrt(dim - 1) / math.sqrt(2.0 * time))
    return _first(0, high, lambda level: _log_ratio(dim, time, level) <= 0.0)


def _log_ratio(dim: int, time: float, level: int) -> float:
    if level == 0:
        return math.log(dim) - (dim - 1) * time
    growth = math.log1p(2 / (2 * level + dim - 2)) + math.log1p((dim - 3) / (level + 1))
    return growth - (2 * level + dim - 1) * time


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Smallest number in [low, high] where a monotone condition holds; high if nowhere below."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def refuse_too_many_levels(dim: int, time: float, bits: int) -> None:
    """Raise `AccuracyError` if a precision sees more than `MAX_LEVELS` levels.

    It names a time that would do.
    """
    levels = level_bound(dim, time, bits)
    if levels <= MAX_LEVELS:
        return

    # Search on a grid of 1 % steps in time; from t = 64 on, few levels are enough in any dimension.
    def later(step: int) -> float:
        return math.exp(math.log(time) + 0.01 * step)

    steps = math.ceil((math.log(64.0) - math.log(time)) / 0.01)
    step = _first(0, steps, lambda k: level_bound(dim, later(k), bits) <= MAX_LEVELS)
    enough = later(step + 1)  # one more step, for three digits may round down
    raise AccuracyError(
        f"the heat kernel of dim={dim} at time={time:.6g} takes {levels:.3g} levels, and at most"
        f" {MAX_LEVELS:.3g} are allowed: use a time of {enough:.3g} or more"
    )
