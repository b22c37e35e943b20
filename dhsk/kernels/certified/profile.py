"""Certified profiles: the heat kernel as a function of the cosine, with a proven error.

K(c) = Π_j (u_j y + 1 - 2 u_j) · 2^(-d (A + P(y)/Q(y))),   d = 1 - c,  y = c - left,

with no more than four factors (mostly none), A = h(1) or halfway from there to h(left), which
rounds less where K is smallest, and P, Q of few coefficients, those of Q
positive; where the zeros of K are far, Q = 1 and nothing is divided. In this form K(1) = 1 to the
bit, K never passes 1, d is exact next to c = 1 where K is steep, and there is neither table nor
branch, so the loop runs in vector registers. Measured in cache on one core (AVX-512, 2.6 GHz), an
entry in float64 takes 0.62 ns, and 0.034 ns for each coefficient of P and of Q, 0.11 ns for the
division and 0.08 ns for a factor: 0.8 ns for 6 coefficients without a Q, 1.2 ns for 6 and 6,
1.95 ns for 16 and 16 with two factors. float32 takes 0.3 to 0.5 ns. The cheapest form that can be
proven is taken. It depends on the distance of the kernel's zeros from -1, not on the number of
levels: 2 ns are passed only in small dimensions at small times (2.5 ns, from 23 and 23 coefficients
and three factors, at dim = 2 and t = 0.004, where K(-1) comes to the end of float64's range).

Rejected, by measurement: one polynomial for log K takes 70 coefficients and more in small
dimensions; two pieces of [-1, 1] whose coefficients are blended take half the coefficients and the
same time (2.1 ns for 10 and 10, as for 20 and 20 in one piece), as blends are not free and spill
the registers; so do pieces in a table looked up by the bits of c (6 to 9 ns: gathers do not
vectorise on this machine); Eve's form of a polynomial halves the multiplications but cancels (it
loses 4 to 8 digits here); the exponent in theta needs arccos.
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from flint import arb, ctx

from dhsk.caching import cached_value
from dhsk.errors import AccuracyError
from dhsk.kernels.certified import rounded
from dhsk.kernels.certified.certify import (
    Candidate,
    ErrorBound,
    as_exact,
    minus_log,
    proven_bound,
)
from dhsk.kernels.certified.exponent import (
    ONE,
    WORK_BITS,
    Exponent,
    Local,
    exponent_at,
    flat_exponent,
    heat_exponent,
    with_factors,
)
from dhsk.kernels.certified.form import LOWEST, RELATIVE_BOUND, Form
from dhsk.kernels.certified.rational import Rational, interpolate_rationally, next_zeros

ABSOLUTE_BOUND_SINGLE: Final = 4e-7
"""Largest proven absolute error in float32."""

DIFFERENCE_BOUND: Final = 1e-12
"""Largest proven relative error of 1 - K where K is above 1/e everywhere."""

_LOWEST_SINGLE_BITS: Final = 40.0  # in float32 the kernel is held constant below about 2^-40

Shape: TypeAlias = tuple[int, int, int]
"""Number of coefficients of P and of Q (1 stands for Q = 1), and of factors."""


def cost(shape: Shape) -> float:
    """Nanoseconds an entry, as measured (module docstring)."""
    p, q, factors = shape
    division = 0.034 * q + 0.11 if q > 1 else 0.0
    return 0.62 + 0.034 * p + division + 0.08 * factors


_MOST_FACTORS: Final = 4
# Odd sizes only where they count, as each machine compiles each of these forms that it meets.
_SHAPES: Final = sorted(
    [(size, 1, 0) for size in range(4, 17)]
    + [
        (size, size, factors)
        for size in (4, 6, 8, 10, 12, *range(13, 29))
        for factors in range(_MOST_FACTORS + 1)
    ],
    key=cost,
)
_SHAPES_SINGLE: Final = tuple(shape for shape in _SHAPES if shape[2] == 0 and shape[0] <= 12)
_NO_ZERO_NEAR: Final = 0.25  # distance of the next zero from which factors do not pay
_POLYNOMIALS_FROM: Final = 0.5  # and over the interval's length, up to which polynomials do not
# Cost, lightest weight, largest error of log K, and where A lies, tried in turn. An error of some
# eps is smooth where rounding is not: in small dimensions it shows as eigenvalues of Gram matrices
# below 0, by so many N eps. So the first trial asks for errors below rounding.
_FINEST: Final = 1.5, 1.0, 1e-16, 0.0
_FINE: Final = 1.8, 1.0, 3e-15, 0.0
_COARSE: Final = math.inf, 0.15, 1e-13, 0.5  # larger errors, and most where K is small
HOPELESS: Final = 10.0
"""An error expected to be so many times too large is not looked at."""

_SEEN_ERROR_SINGLE: Final = 4e-8  # of log K in float32, weighed
_LIGHTEST_SINGLE: Final = 2.0**-18

_Number = TypeVar("_Number", bound=np.floating[Any])

_Factored: TypeAlias = tuple[tuple[float, ...], tuple[Local, ...], float]

building = threading.Lock()  # flint's precision belongs to the process, not to the thread


@dataclass(frozen=True, eq=False)
class HeatProfile:
    """The heat kernel of one dimension and time, compiled to a function of the cosine."""

    dim: int
    time: float
    levels: int
    """Levels of the series that was summed."""
    bits: int
    """Precision of the weights, in bits."""
    pieces: int
    """Intervals on which the exponent was interpolated."""
    nodes: int
    """Cosines at which the series was summed for that."""
    double: Form

    @cached_value
    def single(self) -> Form:
        """The form in float32, proven at its first use."""
        return single_form(self.dim, self.time)

    def explain(self) -> str:
        """Say in words how the kernel is evaluated and what is proven."""
        form, bound = self.double, self.double.error
        q = f" and {form.denominator.size - 1}" if form.denominator.size > 1 else ""
        quotient = "A + P/Q" if q else "A + P"
        low = "" if form.left == -1.0 else f" down to c = {form.left:.6g}, where K passes 1e-290"
        return (
            f"Heat kernel of dim={self.dim}, time={self.time:.6g}.\n"
            f"Series: {self.levels} levels, weights of {self.bits} bits, summed in ball arithmetic"
            f" at {self.nodes} cosines on {self.pieces} piece(s){low}.\n"
            f"float64: K = 2^(-(1-c) ({quotient})) with {form.numerator.size}{q} coefficients"
            f" and {form.slopes.size} linear factors; proven: relative error at most"
            f" {bound.relative:.2g} wherever K >= 1e-290 (below, values lie in [0, 1e-290]),"
            f" absolute error at most {bound.absolute:.2g}, K(1) = 1 exactly and K <= 1.\n"
            f"float32: {self.single.numerator.size} coefficients; proven: absolute error at"
            f" most {self.single.error.absolute:.2g} beside the rounding of the cosine."
        )


@lru_cache(maxsize=256)
def heat_profile(dim: int, time: float) -> HeatProfile:
    """Build and certify the profile of a heat kernel in float64; the last 256 are kept.

    Raises `AccuracyError` if the time is too small for the proof: the series takes too many levels,
    or no form reaches a relative error of 1e-12.
    """
    with building, ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        return HeatProfile(
            dim,
            time,
            levels=len(exponent.series.weights),
            bits=exponent.series.bits,
            pieces=len(exponent.pieces),
            nodes=sum(len(piece.nodes) for piece in exponent.pieces),
            double=_flat_form(exponent, np.float64) if exponent.flat else _double_form(exponent),
        )


@lru_cache(maxsize=256)
def single_form(dim: int, time: float) -> Form:
    """Build and certify the form of a heat kernel in float32; the last 256 are kept.

    Raises `AccuracyError` if no form reaches an absolute error of 4e-7.
    """
    with building, ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        return _flat_form(exponent, np.float32) if exponent.flat else _single_form(exponent)


def _flat_form(exponent: Exponent, number: type[_Number]) -> Form:
    """K = 1, for 0 <= 1 - K <= 2^-60; 1 - K is proven unless it is out of the range of float64."""
    zeros: Any = np.zeros(4, number)
    one: Any = np.ones(1, number)
    slope = float(flat_exponent(exponent.series.dim, exponent.series.time).mid())
    proven = slope > LOWEST and number is np.float64
    difference = 2.0**-50 if proven else math.inf
    bound = ErrorBound(2.0**-59, 2.0**-59, difference)
    offset = slope if proven else 0.0
    return Form(-1.0, offset, zeros, one, one[:0], one[:0], bound)


def _double_form(exponent: Exponent) -> Form:
    zeros = cache(lambda: next_zeros(exponent.series, exponent.distance, _MOST_FACTORS + 1))
    factored = cache(lambda n_factors: _factored(exponent, n_factors, zeros))
    seen = proven = math.inf
    for slowest, lightest, largest_error, share in (_FINEST, _FINE, _COARSE):
        errors: dict[Shape, float] = {}
        for shape in _SHAPES:
            if cost(shape) > slowest or not is_promising(exponent, shape):
                continue
            given = factored(shape[2])
            if given is None:
                continue
            factors, locals_, spread = given
            for fitted in fitted_shapes(shape):
                if expected_error(errors, fitted) > HOPELESS * largest_error:
                    continue
                fit = interpolate_rationally(
                    locals_, fitted[:2], spread, largest_error, lightest, relative=exponent.is_small
                )
                errors[fitted] = fit.error
                seen = min(seen, fit.error)
                if fit.error < largest_error:
                    form = _certified_double(locals_, fit, factors, shape, share)
                    within = form.error.difference <= DIFFERENCE_BOUND or not exponent.is_small
                    if form.error.relative <= RELATIVE_BOUND and within:
                        return form
                    proven = min(proven, form.error.relative)
    raise out_of_reach(exponent, "float64", RELATIVE_BOUND, proven, seen)


def expected_error(errors: Mapping[Shape, float], shape: Shape) -> float:
    """Error of a form, from its two next smaller ones: it falls geometrically, or more slowly."""
    size, q, factors = shape
    smaller = [(p, e) for (p, o, f), e in errors.items() if f == factors and (o > 1) == (q > 1)]
    if len(smaller) < 2:
        return 0.0
    (p0, e0), (p1, e1) = smaller[-2:]
    return e1 * rounded.power(min(1.0, e1 / e0), (size - p1) / (p1 - p0))


def is_promising(exponent: Exponent, shape: Shape) -> bool:
    """Whether a form is worth a try: polynomials are where the zeros of K are far."""
    length = (ONE - exponent.left) / ONE
    return shape[1] > 1 or exponent.distance > _POLYNOMIALS_FROM * length


def out_of_reach(
    exponent: Exponent,
    number: str,
    promised: float,
    proven: float,
    seen: float,
    what: str = "heat kernel",
) -> AccuracyError:
    """Make the error to raise if no form is proven, or seen, as right as promised."""
    dim, time = exponent.series.dim, exponent.series.time
    reached = f"{proven:.1g} could be proven" if proven < math.inf else f"{seen:.1g} is seen"
    return AccuracyError(
        f"the {what} of dim={dim} at time={time:.6g} cannot be proven right to {promised:g} in"
        f" {number} (of the forms tried, at best {reached}): use a larger time, {2 * time:.3g} say"
    )


def fitted_shapes(shape: Shape) -> list[Shape]:
    """Shapes to try for a form: fewer coefficients round less, and the rest are zeros."""
    size, q, factors = shape
    sizes = (1, 2, 3, 4) if shape == (4, 1, 0) else (size,)
    return [(fitted, q, factors) for fitted in sizes]


def _factored(
    exponent: Exponent, n_factors: int, zeros: Callable[[], list[float]]
) -> _Factored | None:
    """Factors, the exponent without their part, and the distance to the zero after theirs."""
    if n_factors == 0:
        return (), tuple(with_factors(piece, ()) for piece in exponent.pieces), exponent.distance
    # A factor is exact at c = 1 only for y = c + 1.
    if exponent.left > -ONE or exponent.distance > _NO_ZERO_NEAR:
        return None
    found = zeros()
    if len(found) <= n_factors:
        return None
    factors = tuple(_factor(zero) for zero in found[:n_factors])
    return factors, tuple(with_factors(p, factors) for p in exponent.pieces), found[n_factors]


def _factor(zero: float) -> float:
    """Reciprocal u of 1 - z, of so many bits that 1 - 2u is exact."""
    return round(math.ldexp(1.0 / (2.0 + zero), 54)) * 2.0**-54


def _certified_double(
    locals_: Sequence[Local], fit: Rational, factors: tuple[float, ...], shape: Shape, share: float
) -> Form:
    candidate = rounded_candidate(locals_, fit, np.float64, shape, share)
    offset, p, q = candidate
    allowed = ErrorBound(math.inf, RELATIVE_BOUND)
    error = proven_bound(locals_, as_exact(candidate), candidate, factors, 0, allowed)
    error = replace(error, absolute=max(error.absolute, LOWEST))
    slopes = np.array(factors, dtype=np.float64)
    left = locals_[0].piece.left / ONE
    return Form(left, offset, p, q, slopes, 1.0 - 2.0 * slopes, error)


def _single_form(exponent: Exponent) -> Form:
    whole = tuple(with_factors(piece, ()) for piece in exponent.pieces)
    left = _left_end_single(whole)
    locals_ = tuple(parts(whole, left))
    spread = exponent.distance + (left - exponent.left) / ONE
    seen = proven = math.inf
    for shape in _SHAPES_SINGLE:
        for fitted in fitted_shapes(shape):
            fit = interpolate_rationally(
                locals_, fitted[:2], spread, _SEEN_ERROR_SINGLE, _LIGHTEST_SINGLE
            )
            seen = min(seen, fit.error)
            if fit.error < _SEEN_ERROR_SINGLE:
                form = _certified_single(locals_, fit, shape)
                if form.error.absolute <= ABSOLUTE_BOUND_SINGLE:
                    return form
                proven = min(proven, form.error.absolute)
    raise out_of_reach(exponent, "float32", ABSOLUTE_BOUND_SINGLE, proven, seen)


def _certified_single(locals_: Sequence[Local], fit: Rational, shape: Shape) -> Form:
    candidate = rounded_candidate(locals_, fit, np.float32, shape)
    offset, p, q = candidate
    exact = fit.numerator, fit.denominator
    allowed = ErrorBound(ABSOLUTE_BOUND_SINGLE, math.inf)
    error = proven_bound(locals_, exact, candidate, (), 1, allowed)
    left = locals_[0].piece.left
    if left > -ONE:  # K is held constant below
        error = ErrorBound(max(error.absolute, 2.0 ** (1 - _LOWEST_SINGLE_BITS)), error.relative)
    none = np.zeros(0, np.float32)
    return Form(left / ONE, offset, p, q, none, none, error)


def parts(locals_: Sequence[Local], left: int) -> Iterator[Local]:
    """Pieces from `left` on, cut to parts over which K changes by a factor of e² or so."""
    for local in locals_:
        start, end = max(left, local.piece.left), local.piece.right
        if start < end:
            ends = np.array([start, end], dtype=np.float64)
            falls = minus_log(local, (), ends)
            cuts = np.linspace(start, end, 2 + int((falls[0] - falls[1]) / 2)).astype(np.int64)
            cuts[[0, -1]] = start, end
            for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                yield local.part(a, b)


def _left_end_single(locals_: Sequence[Local]) -> int:
    """Point that float32 holds where K is about 2^-40, and below 2^-39; or -1."""

    def bits(point: int) -> float:
        return float(exponent_at(locals_, point).mid()) * (ONE - point) / ONE

    low, high = locals_[0].piece.left, ONE
    if low == -ONE and bits(low) < _LOWEST_SINGLE_BITS:
        return low
    for _ in range(60):
        middle = (low + high) // 2
        if bits(middle) > _LOWEST_SINGLE_BITS:
            low = middle
        else:
            high = middle
    number = np.float32(low / ONE)
    return round(float(np.nextafter(number, np.float32(-1))) * ONE)


def rounded_candidate(
    locals_: Sequence[Local],
    fit: Rational,
    number: type[_Number],
    shape: Shape,
    share: float = 0.0,
) -> Candidate:
    """A, and coefficients of P and Q, rounded; Q leads with 1.

    A is h(1), or a share of the way to h(left): P/Q rounds less where K is smallest.
    """
    low, high = exponent_at(locals_, ONE - 1), exponent_at(locals_, locals_[0].piece.left)
    offset = float(number(low + (high - low) * share))
    p, q = np.zeros(shape[0], number), np.zeros(shape[1], number)
    leading = fit.denominator[shape[1] - 1]
    for coefficients, exact in (
        (p, fit.numerator - arb(offset) * fit.denominator),
        (q, fit.denominator),
    ):
        found = [float(a / leading) for a in exact.coeffs()]
        coefficients[: len(found)] = found
    return offset, p, q
