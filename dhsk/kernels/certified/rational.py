"""Rational approximation P/Q of the heat kernel's exponent, and the kernel's zeros next to -1."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from flint import arb, arb_poly, ctx

from dhsk.kernels.certified import rounded
from dhsk.kernels.certified.exponent import ONE, Local, exponents_at
from dhsk.kernels.certified.series import HeatSeries

_ROUNDS = 8  # of moving the nodes; measured: four bring the largest error within a factor 3
# Times the goal: a larger error after one round, two, and so on is given up. Measured in dimensions
# 2 to 200: of 198 forms that came below their goal, the worst were at 330, 17, 5.0, 2.7, 1.6 and
# 1.2 times it after two to seven rounds.
_FAR = 1e6, 1e3, 30.0, 8.0, 5.0, 3.0, 2.0
_TARGET = 1e-17  # an error that is small enough
_PULL = 0.35  # how far a gap between nodes gives way to its error; 0.5 oscillates
_SOLVE_BITS = 400, 22  # at least, and for each node: the equations are that ill-conditioned
_SEEN_BITS = 192  # of errors that are looked at, 1e-17 and more
_SAMPLES = (0.2, 0.5, 0.8)  # places in a gap where the error is looked at
_LN2 = 0.6931471805599453  # log 2


@dataclass(frozen=True, eq=False)
class Rational:
    """P(y)/Q(y) near h, y = c - left, Q(0) = 1."""

    numerator: arb_poly
    denominator: arb_poly
    error: float
    """Largest weighed error of log K, or relative error of it, seen (not proven)."""


def interpolate_rationally(
    locals_: Sequence[Local],
    sizes: tuple[int, int],
    spread: float,
    goal: float,
    lightest: float = 1.0,
    *,
    relative: bool = False,
) -> Rational:
    """Interpolate h by P/Q, at nodes that are moved until the error of (1-c) h is even.

    h is a Stieltjes function, so P and Q have negative zeros alone and positive coefficients, and
    the error falls geometrically with the size, at a rate that depends on the logarithm of the
    interval's length over its distance from the zeros (Stahl & Totik 1992, chapter 6).

    `locals_` are h on an interval, and `sizes` the numbers of coefficients of P and of Q, which
    take as many nodes, less one. The nodes begin to thin out at `spread`, about the distance to the
    next zero. The result is the best of the rounds; these are few if `goal`, the wanted error, is
    out of reach. The error of log K is weighed by K, but at least by `lightest`: 1 stands for no
    weights. If `relative`, it is in units of log K instead: where log K is small all over, that of
    K says nothing about 1 - K.
    """
    left = locals_[0].piece.left
    width = (ONE - left) / ONE
    low, high = rounded.log(spread), rounded.log(spread + width)
    count = sum(sizes) - 1
    angles = [(2 * i + 1) * math.pi / (2 * count) for i in range(count)]
    knots = [low, *((low + high - (high - low) * rounded.cos(a)) / 2 for a in angles), high]
    best: Rational | None = None
    for done in range(1, _ROUNDS + 1):
        nodes = _points(left, spread, knots[1:-1])
        fit = _solve(locals_, left, nodes, sizes)
        errors = _gap_errors(locals_, spread, knots, fit, None if relative else lightest)
        found = Rational(*fit, max(errors))
        if best is None or found.error < best.error:
            best = found
        if best.error < _TARGET or best.error > _FAR[min(done, len(_FAR)) - 1] * goal:
            break
        knots = _balanced(knots, errors)
    assert best is not None
    return best


def _points(left: int, spread: float, knots: Sequence[float]) -> list[int]:
    reached = (math.floor((away - spread) * ONE) for away in rounded.exps(knots))
    return [min(left + max(0, steps), ONE - 1) for steps in reached]


def _solve(
    locals_: Sequence[Local], left: int, nodes: list[int], sizes: tuple[int, int]
) -> tuple[arb_poly, arb_poly]:
    """P and Q with P(y) - h Q(y) = 0 at the nodes and Q(0) = 1."""
    values = exponents_at(locals_, nodes)
    with ctx.workprec(_SOLVE_BITS[0] + _SOLVE_BITS[1] * len(nodes)):
        places = [arb(node - left) / ONE for node in nodes]
        if sizes[1] == 1:
            return _middle(arb_poly.interpolate(places, values)), arb_poly([1])
        numerator, denominator = _convergent(places, _inverse_differences(places, values))
        scale = 1 / denominator[0]
        return _middle(scale * numerator), _middle(scale * denominator)


def _inverse_differences(places: Sequence[arb], values: Sequence[arb]) -> list[arb]:
    """Terms of Thiele's continued fraction b_0 + (y - y_0)/(b_1 + (y - y_1)/(b_2 + ...))."""
    terms: list[arb] = []
    while values:
        (place, *places), (term, *values) = places, values
        terms.append(term)
        values = [(y - place) / (v - term) for y, v in zip(places, values, strict=True)]
    return terms


def _convergent(places: Sequence[arb], terms: Sequence[arb]) -> tuple[arb_poly, arb_poly]:
    """Quotient that such a fraction is: as many coefficients above as below, or one more."""
    above = arb_poly([1]), arb_poly([terms[0]])
    below = arb_poly([0]), arb_poly([1])
    for place, term in zip(places[:-1], terms[1:], strict=True):
        step = arb_poly([-place, 1])
        above = above[1], term * above[1] + step * above[0]
        below = below[1], term * below[1] + step * below[0]
    return above[1], below[1]


def _middle(polynomial: arb_poly) -> arb_poly:
    return arb_poly([coefficient.mid() for coefficient in polynomial.coeffs()])


def _gap_errors(
    locals_: Sequence[Local],
    spread: float,
    knots: list[float],
    fit: tuple[arb_poly, arb_poly],
    lightest: float | None,
) -> list[float]:
    numerator, denominator = fit
    left = locals_[0].piece.left
    seen = [a + (b - a) * place for a, b in pairwise(knots) for place in _SAMPLES]
    points = _points(left, spread, seen)
    errors = []
    with ctx.workprec(_SEEN_BITS):
        for point, h in zip(points, exponents_at(locals_, points), strict=True):
            y, d = arb(point - left) / ONE, (ONE - point) / ONE
            miss = numerator(y) / denominator(y) - h
            if lightest is None:
                errors.append(abs(float((miss / h).mid())))
            else:
                weight = 1.0 if lightest == 1.0 else max(lightest, rounded.exp2(-d * float(h)))
                errors.append(abs(float(miss.mid())) * d * _LN2 * weight)
    places = len(_SAMPLES)
    return [max(errors[i : i + places]) for i in range(0, len(errors), places)]


def _balanced(knots: list[float], errors: list[float]) -> list[float]:
    tiny = max(errors) * 1e-6 + 1e-300
    gaps = [
        (b - a) * rounded.power(max(error, tiny), -_PULL / 2)
        for a, b, error in zip(knots[:-1], knots[1:], errors, strict=True)
    ]
    scale = (knots[-1] - knots[0]) / rounded.total(gaps)
    moved = [knots[0]]
    for gap in gaps[:-1]:
        moved.append(moved[-1] + gap * scale)
    return [*moved, knots[-1]]


def next_zeros(series: HeatSeries, distance: float, count: int) -> list[float]:
    """Distances -1 - z_j of the kernel's zeros below -1, increasing (about ten digits, not proven).

    Newton's method from the right, which all zeros being real makes monotone, on the function
    divided by the zeros found (Maehly 1954). `distance` is a lower bound of the first one. There
    are fewer than `count` if the precision ends before.
    """
    found: list[float] = []
    start = distance * 0.5
    while len(found) < count:
        last = found[-1] if found else 0.0
        zero = _newton(lambda x: _log_slope(series, x), found, start)
        if not last < zero < math.inf:
            break
        found.append(zero)
        start = zero + 0.01 * (zero - last)
    return found


def _newton(slope: Callable[[float], float], found: list[float], start: float) -> float:
    x = start
    for _ in range(60):
        total = slope(x) - rounded.total(1.0 / (z - x) for z in found)
        if not abs(total) > 1e-3:  # beyond a distance of 1000 nothing is gained
            return math.inf
        step = 1.0 / total
        x += step
        if abs(step) < 1e-11 * x:
            break
    return x


def _log_slope(series: HeatSeries, x: float) -> float:
    """K'/K at c = -1 - x."""
    point = -ONE - math.floor(x * ONE)
    step = max(1, math.floor(x * 1e-7 * ONE))
    low, high = series.sum(point - step), series.sum(point + step)
    return float(arb(high - low) / arb(high + low)) * ONE / step
