"""The derivative of the heat kernel in time against oracles, limits and invariants."""

import json
import math
import pickle
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from flint import arb, ctx

from dhsk import errors
from dhsk.kernels import (
    HeatKernel,
    HeatTimeDerivative,
    SmoothedKernel,
    as_rows,
    kernel_from_spec,
)
from dhsk.kernels.certified.certify import proven_derivative_bound
from dhsk.kernels.certified.derivative import (
    DERIVATIVE_BOUND,
    PEAK_BOUND_SINGLE,
    heat_derivative_profile,
)
from dhsk.kernels.certified.exponent import WORK_BITS, heat_exponent, with_factors
from dhsk.kernels.certified.rate import heat_rate
from dhsk.kernels.certified.series import POINT_BITS, heat_series

EPS = np.finfo(np.float64).eps
ONE = 1 << POINT_BITS
TURNS = range(-12, 13)  # images of the source; the next is exp(-(24 pi)²/4t) < 1e-300 for t <= 2

CASES = [
    (3, 1.0), (100, 0.7), (2, 0.1), (10_000, 0.3), (4, 5.0), (2, 1.0), (3, 0.1), (4, 0.3),
    (100, 0.1), (100, 5.0), (10_000, 1.0), (100_000, 0.3), (100_000, 2.0),
]  # fmt: skip


def at_scale(dim: int, scale: float) -> HeatTimeDerivative:
    """Derivative at a multiple of the sweet spot."""
    return HeatKernel.at_scale(dim, scale).time_derivative()


def some_cosines(seed: int, size: int = 4) -> list[float]:
    """Ends, neighbours of 1, and random cosines, all multiples of 2^-52 so that balls take them."""
    random = np.random.default_rng(seed).uniform(-1, 1, size)
    given = [-1.0, 0.0, 0.9, 1 - 1e-6, 1 - 2.0**-52, *random.tolist()]
    return [round(c * ONE) / ONE for c in given]


def exact_derivatives(dim: int, time: float, cosines: list[float]) -> list[arb]:
    """dK/dt from the heat equation, without the series of the derivative.

    dK/dt = (1-c²) K'' - (n-1) c K' + (n-1) K'(1) K, the last as K(1) = 1, and K' = K'(1) times the
    kernel of dimension n+2 at the same time. Terms cancel next to c = 1, by 2^52 at most.
    """
    bits = 1500
    series = [heat_series(dim + raised, time, bits) for raised in (0, 2, 4)]
    slopes = [
        sum(a * level * (level + n - 2) for level, a in enumerate(of_n.weights)) / arb(n - 1)
        for n, of_n in zip((dim, dim + 2), series, strict=False)
    ]
    slopes = [slope / arb(2) ** bits for slope in slopes]
    exact = []
    for cosine in cosines:
        point = round(cosine * ONE)
        k, k2, k4 = (of_n.value(point) for of_n in series)
        c = arb(point) / ONE
        first, second = slopes[0] * k2, slopes[0] * slopes[1] * k4
        exact.append((1 - c**2) * second - (dim - 1) * (c * first - slopes[0] * k))
    return exact


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize(("dim", "scale"), CASES)
def test_values_solve_the_heat_equation_to_their_bound(dim, scale):
    """In ball arithmetic the error relative to dK/dt is within the proven bound, below 2e-12."""
    derivative, cosines = at_scale(dim, scale), some_cosines(dim)
    values = derivative.of_cosine(cosines)
    kernel = HeatKernel(dim, derivative.time).of_cosine(cosines)
    with ctx.workprec(1600):
        exact = exact_derivatives(dim, derivative.time, cosines)
        seen = [abs(float((v - e) / e)) for v, e in zip(values.tolist(), exact, strict=True)]
    promised = kernel > 1e-290
    assert promised.sum() > 2
    bound = derivative.error_bound
    assert np.array(seen)[promised].max() <= bound.relative <= DERIVATIVE_BOUND
    assert (values[~promised] <= bound.absolute).all()


@pytest.mark.parametrize(("dim", "time"), [(2, 0.9514263990934876), (2, 0.16496223164686113)])
def test_poles_far_apart_leave_something_to_fit(dim, time):
    """One more coefficient gains many digits there: too few nodes, or too many, prove nothing."""
    assert HeatTimeDerivative(dim, time).error_bound.relative < 1e-14


def random_parameters(count: int, seed: int) -> list[tuple[int, float]]:
    """Dimensions from 2 to 2000 and time scales from 0.1 to 5, both even in logarithm."""
    rng = np.random.default_rng(seed)
    dims = np.exp(rng.uniform(math.log(2), math.log(2000), count)).astype(int)
    scales = np.exp(rng.uniform(math.log(0.1), math.log(5), count))
    return list(zip(dims.tolist(), scales.tolist(), strict=True))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(("dim", "scale"), random_parameters(8, seed=1))
def test_values_are_differences_in_time(dim, scale, oracle):
    """Central differences of the kernel to 50 digits agree, as far as those show it."""
    derivative = at_scale(dim, scale)
    cosines = some_cosines(dim, size=6)
    t = derivative.time
    with mp.workdps(50):
        step = mp.mpf(t) * mp.mpf(10) ** -12
        before, after = (oracle(dim, mp.mpf(t) + sign * step, cosines) for sign in (-1, 1))
        slopes = [(b - a) / (2 * step) for a, b in zip(before, after, strict=True)]
    # The differences: h² f'''/6 of the size of 1/t³ times levels, and 50 digits over h.
    tolerance = 1e-18 * derivative.largest
    bound = derivative.error_bound.relative
    for value, slope in zip(derivative.of_cosine(cosines).tolist(), slopes, strict=True):
        assert abs(value - slope) <= bound * abs(slope) + tolerance


def circle(theta: mp.mpf, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """Kernel of S^1 up to a constant, Σ exp(-a²/4t) over all images of the source, and its d/dt."""
    squares = [(theta + 2 * mp.pi * k) ** 2 / (4 * t) for k in TURNS]
    return mp.fsum(mp.exp(-x) for x in squares), mp.fsum(x / t * mp.exp(-x) for x in squares)


def three_sphere(theta: mp.mpf, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """Kernel of S^3 up to a factor of time alone, Σ a exp(-a²/4t)/sin(theta), and its d/dt."""
    angles = [theta + 2 * mp.pi * k for k in TURNS]
    pairs = [(a, a**2 / (4 * t)) for a in angles]
    if theta == 0:
        value = mp.fsum((1 - 2 * x) * mp.exp(-x) for _, x in pairs)
        return value, mp.fsum(x / t * (3 - 2 * x) * mp.exp(-x) for _, x in pairs)
    value = mp.fsum(a * mp.exp(-x) for a, x in pairs)
    slope = mp.fsum(a * x / t * mp.exp(-x) for a, x in pairs)
    return value / mp.sin(theta), slope / mp.sin(theta)


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize(("dim", "closed_form"), [(2, circle), (4, three_sphere)])
@pytest.mark.parametrize("time", [0.3, 0.02, 2.0])
def test_circle_and_three_sphere_have_their_closed_forms(time, dim, closed_form):
    """On S^1 and S^3 it is the derivative of a sum of Gaussians over the images of the source."""
    derivative = HeatTimeDerivative(dim, time)
    cosines = np.linspace(-0.999, 0.999, 21)
    expected = []
    with mp.workdps(60):  # images cancel next to -1, and the quotient's terms next to 1
        source, source_slope = closed_form(mp.mpf(0), mp.mpf(time))
        for c in cosines.tolist():
            value, slope = closed_form(mp.acos(mp.mpf(c)), mp.mpf(time))
            expected.append(float((slope * source - value * source_slope) / source**2))
    tolerance = derivative.error_bound.relative + EPS  # and the rounding of expected
    assert tolerance < 2e-12
    np.testing.assert_allclose(derivative.of_cosine(cosines), expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize("tail", [1e-2, 1e-6, 1e-17, 1e-25, 1e-200])
@pytest.mark.parametrize("dim", [2, 3, 393])
def test_long_diffusion_leaves_the_first_level(dim, tail):
    """As time grows, dK/dt tends to (n-1) q (1-c)/(1+q)², q = n exp(-(n-1)t), relative to it."""
    time = math.log(dim / tail) / (dim - 1)
    derivative = HeatTimeDerivative(dim, time)
    cosines = np.linspace(-1, 0.9, 20)
    q = dim * math.exp(-(dim - 1) * time)
    expected = (dim - 1) * q * (1 - cosines) / (1 + q) ** 2
    # The second level adds 4 to 16 q or less of it (see `flat_rate`); exp(-(n-1)t) rounds t.
    tolerance = 17 * q + EPS * (dim * time + 4) + derivative.error_bound.relative
    np.testing.assert_allclose(derivative.of_cosine(cosines), expected, rtol=tolerance, atol=0)


@pytest.mark.parametrize("dim", [2, 393])
def test_very_long_diffusion_has_ended(dim):
    """At time 2000 nothing changes any more: 0 everywhere, within the absolute bound."""
    derivative = HeatTimeDerivative(dim, 2000.0)
    np.testing.assert_array_equal(derivative.of_cosine(np.linspace(-1, 1, 9)), 0.0)
    assert derivative.error_bound.absolute < 1e-289


@pytest.mark.parametrize("number", [np.float64, np.float32])
@pytest.mark.parametrize(("dim", "scale"), CASES[:4])
def test_it_is_positive_and_nothing_at_the_source(dim, scale, number):
    """It is exactly 0 at c = 1 and above; elsewhere positive, and over 1-c it grows with c."""
    derivative = at_scale(dim, scale)
    assert not np.signbit(derivative.of_cosine(np.array([1.0, 1.5, np.inf], number))).any()
    np.testing.assert_array_equal(derivative.of_cosine(np.array([1.0, 1.5], number)), 0.0)
    cosines = np.linspace(-1, 1 - 1e-3, 5000).astype(number)
    values = derivative.of_cosine(cosines)
    assert (values >= 0).all()
    if number is np.float64:
        resolved = HeatKernel(dim, derivative.time).of_cosine(cosines) > 1e-290
        quotients = (values / (1 - cosines))[resolved]
        allowed = 2 * derivative.error_bound.relative + 4 * EPS
        assert (values[resolved] > 0).all()
        assert (np.diff(quotients) >= -allowed * quotients[1:]).all()


@pytest.mark.parametrize(("dim", "scale"), CASES[:6])
def test_float32_is_right_to_a_share_of_the_peak(dim, scale):
    """In float32 the error at float32 cosines is within its bound, below 2e-5 of the peak."""
    derivative = at_scale(dim, scale)
    cosines = np.random.default_rng(dim).uniform(-1, 1, 20_000).astype(np.float32)
    cosines[:1000] = 1 - np.logspace(-7, 0, 1000)
    exact = derivative.of_cosine(cosines.astype(np.float64))
    found = derivative.of_cosine(cosines)
    assert found.dtype == np.float32
    bound = heat_derivative_profile(dim, derivative.time).single.error.absolute
    error = np.abs(found - exact).max()
    assert 0 < error <= bound <= PEAK_BOUND_SINGLE * derivative.largest
    assert exact.max() <= 1.01 * derivative.largest


@pytest.mark.slow
def test_a_wrong_coefficient_is_not_proven():
    """A coefficient of R that is off by 1e-9 of itself raises the proven bound above that."""
    dim, time = 50, 0.02
    form = heat_derivative_profile(dim, time).double
    kernel = form.kernel.offset, form.kernel.numerator, form.kernel.denominator
    factors = tuple(form.kernel.slopes.tolist())
    with ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        exponents = [with_factors(piece, factors) for piece in exponent.pieces]
        parts = exponents, heat_rate(exponent), kernel, factors
        right = proven_derivative_bound(*parts, (0.0, form.numerator, form.denominator))
        wrong = form.numerator.copy()
        wrong[0] *= 1 + 1e-9
        bound = proven_derivative_bound(*parts, (0.0, wrong, form.denominator))
    assert right == form.error
    assert bound.relative > 1e-10
    seen, cosines = np.empty(5), np.linspace(-1, -0.9, 5)
    replace(form, numerator=wrong).apply(cosines, seen)
    expected = HeatTimeDerivative(dim, time).of_cosine(cosines)
    assert np.abs(seen / expected - 1).max() > 10 * right.relative


def test_form_does_not_depend_on_length_or_place():
    """Vector body and scalar rest of the loop give the same bits, in float64 and float32."""
    profile = heat_derivative_profile(3, 0.3)
    for form in (profile.double, profile.single):
        cosines = np.random.default_rng(1).uniform(-1, 1, 259).astype(form.numerator.dtype)
        whole, single = np.empty_like(cosines), cosines.copy()
        form.apply(cosines, whole)
        for i in range(single.size):
            form.apply(single[i : i + 1], single[i : i + 1])
        np.testing.assert_array_equal(whole, single)


def test_too_short_a_time_is_refused():
    """Where the kernel takes too many levels, its derivative does."""
    with pytest.raises(errors.AccuracyError, match=r"dim=3 at time=1e-10 takes .* levels"):
        HeatTimeDerivative(3, 1e-10).of_cosine(0.5)


def test_it_is_described_and_pickled_like_a_kernel(unit_rows):
    """Spec through JSON, pickle with its profile, and a name; equal rows have exactly 0."""
    derivative = HeatKernel(12, 0.1).time_derivative()
    assert kernel_from_spec(json.loads(json.dumps(derivative.to_spec()))) == derivative
    copy = pickle.loads(pickle.dumps(derivative))
    assert "_profile" in vars(copy)
    assert copy == derivative
    assert derivative.label == "d/dt heat t=0.1"
    assert "proven: relative error at most" in derivative.explain()
    assert HeatTimeDerivative.at_scale(12, 0.5).time_scale == pytest.approx(0.5)
    assert not derivative.unit_diagonal
    assert not derivative.positive_semidefinite
    X = unit_rows(9, 12)
    values = derivative(np.concatenate([X, X]))
    for block in (values[:9, :9], values[:9, 9:]):
        np.testing.assert_array_equal(np.diagonal(block), 0.0)
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(values[:9, :9], derivative(X, X))


def test_smoothed_counts_have_a_derivative_too():
    """The derivative of a smoothed kernel is its inner kernel's, smoothed: 0 for equal rows."""
    counts = np.random.default_rng(0).integers(0, 5, (6, 12)).astype(float)
    kernel, step = HeatKernel(12, 0.1), 1e-6
    smoothed = SmoothedKernel(kernel.time_derivative(), 0.5)
    before, after = (
        SmoothedKernel(HeatKernel(12, kernel.time + sign * step), 0.5)(counts) for sign in (-1, 1)
    )
    values = smoothed.of_rows(as_rows(counts, "counts"))
    np.testing.assert_array_equal(np.diagonal(values), 0.0)
    np.testing.assert_allclose(values, (after - before) / (2 * step), rtol=1e-7, atol=1e-8)
