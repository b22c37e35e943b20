"""Certified profiles of the heat kernel's derivative in time, dK/dt = K (1-c) R.

K is the kernel's own form and R = P/Q, or P alone, of few coefficients, fitted to R in relative
error, see `rate` for why that is as good as fitting the exponent: R is positive, smooth, and has
the same poles. So dK/dt is as right, relative to itself, as K is: next to c = 1, where it
vanishes, and where K is small. It is 0 at c = 1, to the bit, and nowhere below 0. K and R are
evaluated in one pass and share y and 1-c.

Rejected: the series with each term times its eigenvalue in float64 (it cancels next to c = 1 and
where K is small); K' and K'' by raising the dimension (three kernels, and cancellation: it is the
tests' oracle); the derivative of the fitted exponent in time (coefficients are not smooth in time);
a pass of its own for R (it reads and clips the cosines twice).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from flint import ctx

from dhsk.caching import cached_value
from dhsk.kernels.certified.certify import Candidate, ErrorBound, proven_derivative_bound
from dhsk.kernels.certified.exponent import (
    ONE,
    WORK_BITS,
    Exponent,
    Local,
    heat_exponent,
    with_factors,
)
from dhsk.kernels.certified.form import LOWEST, Form, TimeDerivativeForm
from dhsk.kernels.certified.kept import kept_profile
from dhsk.kernels.certified.profile import (
    HOPELESS,
    HeatProfile,
    Shape,
    building,
    cost,
    expected_error,
    fitted_shapes,
    is_promising,
    out_of_reach,
    parts,
)
from dhsk.kernels.certified.rate import flat_rate, heat_rate
from dhsk.kernels.certified.rational import Rational, interpolate_rationally

# Single steps where one more coefficient may gain fifteen digits: see `heat_rate`.
_SHAPES: Final = sorted(
    [(size, 1, 0) for size in range(4, 17, 2)]
    + [(size, size, 0) for size in (2, 3, 4, 5, 6, 7, 8, 9, *range(10, 29, 2))],
    key=cost,
)
_SHAPES_SINGLE: Final = tuple(shape for shape in _SHAPES if shape[0] <= 12)
# Largest number of coefficients, and error of R, tried in turn: below rounding while that is cheap.
_FINE: Final = 16, 1e-15
_COARSE: Final = 28, 1e-13
_SEEN_ERROR_SINGLE: Final = 4e-8
_WHAT: Final = "time derivative of the heat kernel"

DERIVATIVE_BOUND: Final = 2e-12
"""Largest proven relative error in float64 of a derivative that is not refused."""

PEAK_BOUND_SINGLE: Final = 2e-5
"""Largest proven error in float32, relative to the largest dK/dt."""


@dataclass(frozen=True, eq=False)
class HeatDerivativeProfile:
    """The time derivative of one heat kernel, compiled to a function of the cosine."""

    kernel: HeatProfile
    largest: float
    """The largest dK/dt at any cosine, to a percent or so."""
    double: TimeDerivativeForm

    @cached_value
    def single(self) -> TimeDerivativeForm:
        """The form in float32, proven at its first use."""
        kernel, form = self.kernel, self.kernel.single
        with building, ctx.workprec(WORK_BITS):
            exponent = heat_exponent(kernel.dim, kernel.time)
            if exponent.flat:
                return _flat_form(form, float(flat_rate(kernel.dim, kernel.time).mid()))
            return _single_form(exponent, heat_rate(exponent), form, self.largest)

    def explain(self) -> str:
        """Say in words how the derivative is evaluated and what is proven."""
        form, bound = self.double, self.double.error
        q = f" and {form.denominator.size - 1}" if form.denominator.size > 1 else ""
        return (
            f"Time derivative of the heat kernel of dim={self.kernel.dim},"
            f" time={self.kernel.time:.6g}: at most {self.largest:.4g}.\n"
            f"Series: {self.kernel.levels} levels, summed in ball arithmetic at {self.kernel.nodes}"
            f" cosines on {self.kernel.pieces} piece(s).\n"
            f"float64: dK/dt = K (1-c) {'P/Q' if q else 'P'} with {form.numerator.size}{q}"
            f" coefficients, K from its own form; proven: relative error at most"
            f" {bound.relative:.2g} wherever K >= 1e-290, absolute error at most"
            f" {bound.absolute:.2g}, dK/dt >= 0 and 0 at c = 1.\n"
            f"float32: {self.single.numerator.size} coefficients; proven: absolute error at"
            f" most {self.single.error.absolute:.2g} beside the rounding of the cosine."
        )


@lru_cache(maxsize=256)
def heat_derivative_profile(dim: int, time: float) -> HeatDerivativeProfile:
    """Build and certify the profile of a time derivative in float64; the last 256 are kept.

    Raises `AccuracyError` if the time is too small for the proof, as for the kernel itself.
    """
    kernel = kept_profile(dim, time)
    with building, ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        if exponent.flat:
            double = _flat_form(kernel.double, float(flat_rate(dim, time).mid()))
        else:
            double = _double_form(exponent, heat_rate(exponent), kernel.double)
    return HeatDerivativeProfile(kernel, _largest(double), double)


def _largest(form: TimeDerivativeForm) -> float:
    """Largest value, on a grid of 2000 distances 1 - c from 2e-9 to 2."""
    values = 1.0 - 2.0 * np.logspace(-9, 0, 2000)
    form.apply(values, values)
    return float(values.max())


def _flat_form(kernel: Form, rate: float) -> TimeDerivativeForm:
    """R is a constant, and K is 1 to 2^-59 (see `flat_rate`); 0 if it is below the type's range."""
    number = kernel.numerator.dtype.type
    lowest = LOWEST if number is np.float64 else float(np.finfo(np.float32).tiny)
    p: Any = np.zeros(4, number)
    q: Any = np.ones(1, number)
    if rate < lowest:
        return TimeDerivativeForm(kernel, p, q, ErrorBound(2.0 * lowest, math.inf))
    p[0] = rate
    # R to 2^-54, the roundings of R, 1-c and two products, and K: 2^-59 and its own.
    relative = 2.0**-54 + 4.0 * float(np.finfo(number).eps) / 2.0 + kernel.error.relative
    absolute = 2.0 * rate * relative * (1.0 + relative) + float(np.finfo(number).tiny)
    return TimeDerivativeForm(kernel, p, q, ErrorBound(absolute, relative))


def _double_form(exponent: Exponent, rates: tuple[Local, ...], kernel: Form) -> TimeDerivativeForm:
    factors = tuple(kernel.slopes.tolist())
    exponents = [with_factors(piece, factors) for piece in exponent.pieces]
    seen = proven = math.inf
    for most, largest_error in (_FINE, _COARSE):
        shapes = [s for s in _SHAPES if s[0] <= most and is_promising(exponent, s)]
        for shape, fit in _fits(rates, shapes, exponent.distance, largest_error):
            seen = min(seen, fit.error)
            if fit.error < largest_error:
                form = _certified(exponents, rates, fit, shape, kernel)
                if form.error.relative <= DERIVATIVE_BOUND:
                    return form
                proven = min(proven, form.error.relative)
    raise out_of_reach(exponent, "float64", DERIVATIVE_BOUND, proven, seen, _WHAT)


def _single_form(
    exponent: Exponent, rates: tuple[Local, ...], kernel: Form, largest: float
) -> TimeDerivativeForm:
    left = round(kernel.left * ONE)
    exponents = list(parts([with_factors(piece, ()) for piece in exponent.pieces], left))
    cut = [_part(rates, local.piece.left, local.piece.right) for local in exponents]
    spread = exponent.distance + (left - exponent.left) / ONE
    seen = proven = math.inf
    for shape, fit in _fits(cut, _SHAPES_SINGLE, spread, _SEEN_ERROR_SINGLE):
        seen = min(seen, fit.error)
        if fit.error < _SEEN_ERROR_SINGLE:
            form = _certified(exponents, cut, fit, shape, kernel)
            if form.error.absolute <= PEAK_BOUND_SINGLE * largest:
                return form
            proven = min(proven, form.error.absolute / largest)
    raise out_of_reach(exponent, "float32", PEAK_BOUND_SINGLE, proven, seen, _WHAT)


def _fits(
    rates: Sequence[Local], shapes: Iterable[Shape], spread: float, goal: float
) -> Iterator[tuple[Shape, Rational]]:
    """Fits of the shapes that may reach the goal, with the shapes that hold them."""
    errors: dict[Shape, float] = {}
    for shape in shapes:
        for fitted in fitted_shapes(shape):
            if expected_error(errors, fitted) <= HOPELESS * goal:
                fit = interpolate_rationally(rates, fitted[:2], spread, goal, relative=True)
                errors[fitted] = fit.error
                yield shape, fit


def _part(rates: Sequence[Local], left: int, right: int) -> Local:
    """R on a part of one of the pieces."""
    return next(r for r in rates if right <= r.piece.right).part(left, right)


def _certified(
    exponents: Sequence[Local],
    rates: Sequence[Local],
    fit: Rational,
    shape: Shape,
    kernel: Form,
) -> TimeDerivativeForm:
    number = kernel.numerator.dtype.type
    p: Any = np.zeros(shape[0], number)
    q: Any = np.zeros(shape[1], number)
    leading = fit.denominator[shape[1] - 1]
    for rounded, exact in ((p, fit.numerator), (q, fit.denominator)):
        coefficients = [float(a / leading) for a in exact.coeffs()]
        rounded[: len(coefficients)] = coefficients
    of_kernel: Candidate = kernel.offset, kernel.numerator, kernel.denominator
    factors = tuple(kernel.slopes.tolist())
    error = proven_derivative_bound(exponents, rates, of_kernel, factors, (0.0, p, q))
    return TimeDerivativeForm(kernel, p, q, error)
