"""Proof of a form's error: of its approximation in ball arithmetic, of its rounding a priori."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from flint import arb, arb_poly
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.kernels.certified.evaluate import DOUBLE, EXPM1_ERROR, SINGLE, Arithmetic, Reals
from dhsk.kernels.certified.exponent import ONE, Local, largest_value

Candidate: TypeAlias = tuple[float, NDArray[Any], NDArray[Any]]
"""A, and the coefficients of P and of Q, in the type that they are evaluated in."""

_CELLS: Final = 256  # parts of a piece in which rounding is bounded
_SLACK: Final = 1.0 + 1e-5  # over bounds that are computed in float64 themselves
_LN2: Final = math.log(2.0)
_UNRESOLVED: Final = 291 * math.log(10.0)  # -log K from where no relative error is promised


@dataclass(frozen=True)
class ErrorBound:
    """Proven bound of |computed - true| over all cosines in [-1, 1], in float64."""

    absolute: float
    """Everywhere."""
    relative: float
    """Wherever the true value is at least 1e-290."""
    difference: float = math.inf
    """Of 1 - K, relative to it, everywhere; of forms in float64."""


_NOTHING_PROVEN: Final = ErrorBound(math.inf, math.inf)


def proven_bound(
    locals_: Sequence[Local],
    exact: tuple[arb_poly, arb_poly],
    rounded: Candidate,
    factors: tuple[float, ...],
    coefficient_roundings: int,
    allowed: ErrorBound = _NOTHING_PROVEN,
) -> ErrorBound:
    """Bound the error of a form on intervals, under `ctx.workprec(WORK_BITS)`.

    To that of the approximation it adds the roundings. With u the unit of rounding, Horner's rule
    is off by at most u Σ (i+1) |p_i| y^i in P and (1 + E) u Q in Q, E = Σ i q_i y^i / Q. The
    division, the sum with A, d and its product take a rounding each (d none for c >= 1/2, by
    Sterbenz' lemma); that of y moves h by at most u |y h'|. A factor takes three. Nothing is
    proven, the bound is infinite, if a coefficient of Q is not positive, or one of P subnormal.

    1 - K is 1 - 2^E, E <= 0, and |E 2^E / (1 - 2^E)| log 2 <= 1: its relative error is at most that
    of E, which is that of h and of d, and its own rounding. With factors 1 - u_j d it is the sum of
    two parts of one sign, and the product of these, less 1, takes three roundings each.

    `locals_` are h on neighbouring intervals up to c = 1, without the part of the factors, whose
    u_j are `factors`. The quotient of the polynomials `exact` stands for h: with the coefficients
    that `rounded` has, or with those before rounding if `coefficient_roundings` is 1 and not 0.
    Once roundings alone make an error of more than is `allowed`, that is given.
    """
    if not _is_normal(rounded):
        return _NOTHING_PROVEN
    left = locals_[0].piece.left
    relative = absolute = difference = 0.0
    for local in reversed(locals_):  # roundings weigh most where K is largest
        cells = _cells(local, rounded, factors, coefficient_roundings, left)
        least = cells.bound(0.0, 0.0)
        if least.absolute > allowed.absolute or least.relative > allowed.relative:
            return least
        own = cells.bound(*_approximation_error(local, *exact, left))
        relative, absolute = max(relative, own.relative), max(absolute, own.absolute)
        difference = max(difference, own.difference)
    difference += EXPM1_ERROR + 3 * (len(factors) + 1) * _arithmetic(rounded).unit
    return ErrorBound(absolute, relative, difference)


def proven_derivative_bound(
    locals_: Sequence[Local],
    rates: Sequence[Local],
    kernel: Candidate,
    factors: tuple[float, ...],
    rate: Candidate,
) -> ErrorBound:
    """Bound the error of dK/dt = K (1-c) R, under `ctx.workprec(WORK_BITS)`.

    `locals_` are h on neighbouring intervals up to c = 1, without the part of the factors, and
    `rates` are R on the same intervals; `kernel` and `rate` have the coefficients of their forms.
    That of R has no A. Relative errors of products add up: those of K, of R, whose rounding is that
    of an exponent without A (with a rounding to spare, for the sum with A), and of the product. R
    falls and K R grows with c, so the ends of a cell bound all in it. Below the left end, K and R
    stay what they are there, and dK/dt is at most 2/(1-c) of what it is there (see `rate`).
    """
    if not (_is_normal(kernel) and _is_normal(rate)):
        return _NOTHING_PROVEN
    left, unit = locals_[0].piece.left, _arithmetic(rate).unit
    relative = absolute = 0.0
    for local, rate_local in zip(locals_, rates, strict=True):
        cells = _cells(local, kernel, factors, 0, left)
        of_kernel = cells.error(_approximation_error(local, *as_exact(kernel), left)[0])
        points, of_rate = cells.points, _exponent(rate_local, cells.points)
        _, missed = _approximation_error(rate_local, *as_exact(rate), left)
        roundings = _roundings(rate_local, points, left, of_rate, rate, 0)
        in_rate = (missed + unit * roundings) / of_rate[1:]
        error = np.expm1((np.log1p(of_kernel) + np.log1p(in_rate) + unit) * _SLACK)
        relative = max(relative, float((error * cells.promised(of_kernel)).max()) * _SLACK)
        d = (ONE - points) / ONE
        largest = np.exp(-cells.fall[1:]) * of_rate[1:] * d[:-1]
        absolute = max(absolute, float((error * largest).max()) * _SLACK)
        if points[0] == left > -ONE:
            at_left = float(np.exp(-cells.fall[0]) * of_rate[0]) * (1.0 + float(error[0]))
            absolute = max(absolute, 2.0 * at_left * _SLACK)
    return ErrorBound(absolute, relative)


def as_exact(candidate: Candidate) -> tuple[arb_poly, arb_poly]:
    """P + A Q and Q of a form, with the coefficients that it has."""
    offset, p, q = candidate
    numerator, denominator = (arb_poly([arb(a) for a in part.tolist()]) for part in (p, q))
    return numerator + arb(offset) * denominator, denominator


def _is_normal(rounded: Candidate) -> bool:
    """Whether the coefficients of Q are positive, and none of Q or P subnormal."""
    _, p, q = rounded
    tiny = np.finfo(p.dtype).tiny
    return bool(q.min() >= tiny and (np.abs(p[p != 0.0]) >= tiny).all())


def _arithmetic(rounded: Candidate) -> Arithmetic:
    return DOUBLE if rounded[1].dtype == np.float64 else SINGLE


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of a piece, by whose ends all errors between two points are bounded."""

    points: Floats
    fall: Floats
    """-log K at the points."""
    h: Floats
    """The exponent's h at the points."""
    roundings: Floats
    """Error of h by rounding, in units of it, in each cell."""
    unit: float
    fixed: float
    """Relative error of K by what follows the exponent."""

    def error(self, missed: float) -> Floats:
        """Relative error of K, if the approximation misses log K by so much."""
        d = (ONE - self.points[:-1]) / ONE
        return np.expm1((missed + _LN2 * d * self.unit * self.roundings) * _SLACK) + self.fixed

    def promised(self, error: Floats) -> NDArray[np.bool_]:
        """Whether a relative error of K is promised."""
        # Twice too large, values from 1e-291 down come out below 1e-290, as promised.
        return (self.fall[1:] < _UNRESOLVED) | (error > 1.0)

    def bound(self, missed: float, missed_of_h: float) -> ErrorBound:
        """Largest errors of K, and of h in place of 1 - K."""
        error = self.error(missed)
        absolute = float((error * np.exp(-self.fall[1:])).max()) * _SLACK
        relative = float((error * self.promised(error)).max()) * _SLACK
        in_exponent = (missed_of_h + self.unit * self.roundings) / self.h[1:]
        return ErrorBound(absolute, relative, float(in_exponent.max()) * _SLACK)


def _cells(
    local: Local,
    rounded: Candidate,
    factors: tuple[float, ...],
    coefficient_roundings: int,
    left: int,
) -> _Cells:
    arithmetic = _arithmetic(rounded)
    points = np.linspace(local.piece.left, local.piece.right, _CELLS + 1)
    h, fall = _exponent(local, points), minus_log(local, factors, points)
    roundings = _roundings(local, points, left, h, rounded, coefficient_roundings)
    fixed = arithmetic.exp2_error + 3 * len(factors) * arithmetic.unit
    return _Cells(points, fall, h, roundings, arithmetic.unit, fixed)


def _roundings(
    local: Local,
    points: Floats,
    left: int,
    h: Floats,
    rounded: Candidate,
    coefficient_roundings: int,
) -> Floats:
    """Error of the exponent's h in units of rounding, at most, in the cells between points."""
    offset, p, q = rounded
    y = (points - left) / ONE
    # h falls and is convex, and the sums grow with y: the ends of a cell bound all in it.
    p_sum, p_power = _sums(np.abs(p), y)
    q_sum, q_power = _sums(q, y)
    quotient = np.abs(h - offset)
    quotient = np.maximum(quotient[:-1], quotient[1:])
    in_numerator = ((1 + coefficient_roundings) * p_sum + p_power)[1:] / q_sum[:-1]
    in_denominator = 2 + coefficient_roundings + (q_power / q_sum)[1:]
    in_d = points[:-1] < ONE / 2
    roundings = in_numerator + in_denominator * quotient + (2 + in_d) * h[:-1]
    roundings += y[1:] * np.abs(_exponent(local, points[:-1], derivative=1))
    return roundings


def _sums(coefficients: Reals, y: Floats) -> tuple[Floats, Floats]:
    """Σ a_i y^i and Σ i a_i y^i at each y."""
    powers = np.arange(coefficients.size)
    terms = coefficients.astype(np.float64) * y[:, None] ** powers
    return terms.sum(axis=1), terms @ powers


def _exponent(local: Local, points: Floats, derivative: int = 0) -> Floats:
    """h, or a derivative in c, at points of a piece to float64's accuracy (h is smooth there)."""
    left, right = local.piece.left, local.piece.right
    half, y = (right - left) / 2, (2.0 * points - left - right) / (right - left)
    polynomial = Polynomial([float(a) for a in local.polynomial.coeffs()])
    value: Floats = polynomial.deriv(derivative)(y) * (ONE / half) ** derivative
    return value


def minus_log(local: Local, factors: tuple[float, ...], points: Floats) -> Floats:
    """-log K at points (cosines times 2^52) of a piece, to float64's accuracy.

    `local` is h on the piece without the part of the factors, whose u_j are `factors`.
    """
    d = (ONE - points) / ONE
    fall: Floats = d * _exponent(local, points) * _LN2
    for factor in factors:
        fall -= np.log1p(-factor * d)
    return fall


def _approximation_error(
    local: Local, numerator: arb_poly, denominator: arb_poly, left: int
) -> tuple[float, float]:
    """Bounds of the errors of log K and of h on a piece, in exact arithmetic."""
    piece = local.piece
    half, middle = arb(piece.right - piece.left) / 2 / ONE, arb(piece.right + piece.left) / 2 / ONE
    y, d = arb_poly([middle - arb(left) / ONE, half]), arb_poly([1 - middle, -half])
    p, q = numerator(y), denominator(y)
    # With a polynomial T near 1/Q, |h - P/Q| = |(h Q - P) T| / |Q T|: Q varies much on a piece.
    inverse = _near_inverse(q)
    miss = (local.polynomial * q - p) * inverse
    missed, of_h = largest_value(d * miss), largest_value(miss)
    smallest = 1.0 - largest_value(q * inverse - 1)
    if not smallest > 0.5:
        return math.inf, math.inf
    farthest = (ONE - piece.left) / ONE
    of_log = (missed / smallest + farthest * local.remainder) * _LN2 * _SLACK
    return of_log, (of_h / smallest + local.remainder) * _SLACK


def _near_inverse(polynomial: arb_poly) -> arb_poly:
    """Interpolate 1/p on [-1, 1]."""
    places = [arb(math.cos((2 * i + 1) * math.pi / 56)) for i in range(28)]
    inverse = arb_poly.interpolate(places, [1 / polynomial(y) for y in places])
    return arb_poly([a.mid() for a in inverse.coeffs()])
