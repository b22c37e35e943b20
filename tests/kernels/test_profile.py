"""The certified profile of the heat kernel: its bound, its shape, and that it can be refuted."""

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb, arb_poly, ctx
from scipy.special import ndtri

from dhsk import errors
from dhsk.gram.prepare import check_kernels
from dhsk.kernels import HeatKernel
from dhsk.kernels.certified import profile as profile_module
from dhsk.kernels.certified.certify import proven_bound
from dhsk.kernels.certified.evaluate import DOUBLE, SINGLE
from dhsk.kernels.certified.exponent import ONE, WORK_BITS, heat_exponent, log2_kernel, with_factors
from dhsk.kernels.certified.form import LOWEST, RELATIVE_BOUND, Form
from dhsk.kernels.certified.profile import heat_profile
from dhsk.kernels.certified.series import heat_series
from dhsk.samples import open_samples

EPS = np.finfo(np.float64).eps
BITS = 1240  # weights this exact resolve 1e-290 to 80 digits


def random_parameters(count: int, seed: int) -> list[tuple[int, float]]:
    """Pairs (dim, time), log-uniform over the domain that is promised, its three parts in turn."""
    rng = np.random.default_rng(seed)

    def log_uniform(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    pairs = []
    for i in range(count):
        if i % 3 == 2:
            pairs.append((int(rng.integers(2, 51)), log_uniform(1e-4, 100.0)))
        else:
            most, least = ((10**6, 0.2), (10**4, 0.05))[i % 3]
            dim = round(log_uniform(2, most))
            pairs.append((dim, log_uniform(least, 50.0) * math.log(dim) / dim))
    return pairs


def random_cosines(count: int, time: float, rng: np.random.Generator) -> np.ndarray:
    """Cosines all over [-1, 1], and as many where the kernel falls: angles of a few sqrt(2t)."""
    angles = np.sqrt(2 * time * rng.exponential(20.0, count // 2))
    near = np.cos(np.minimum(angles, math.pi))
    return np.concatenate([rng.uniform(-1, 1, count - near.size), near])


def exact_values(dim: int, time: float, cosines: np.ndarray) -> list[arb]:
    """Balls of K at float64 cosines that are multiples of 2^-52, straight from the series."""
    series = heat_series(dim, time, BITS)
    return [series.value(round(c * ONE)) for c in cosines.tolist()]


def on_grid(cosines: np.ndarray) -> np.ndarray:
    """Nearest multiples of 2^-52."""
    return np.round(cosines * ONE) / ONE


def worst_relative_error(dim: int, time: float, cosines: np.ndarray) -> float:
    """Largest error where K >= 1e-290, relative to 1e-290 below; checks [0, 1e-290] there."""
    computed = HeatKernel(dim, time).of_cosine(cosines)
    worst = 0.0
    with ctx.workprec(BITS + 64):
        for value, exact in zip(computed.tolist(), exact_values(dim, time, cosines), strict=True):
            if exact > arb(10) ** -290:
                worst = max(worst, float(abs(arb(value) / exact - 1).upper()))
            else:
                assert 0.0 <= value <= LOWEST
    return worst


PARAMETERS = random_parameters(125, seed=20261121)  # with 80 cosines each: 10,000 points


@pytest.mark.slow
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(range(63), id="first-half"),
        pytest.param(range(63, 125), id="second-half"),
    ],
)
def test_float64_is_right_to_1e_12_all_over_the_domain(which):
    """At 10,000 random (dim, time, c) the error is below the proven bound, and that below 1e-12."""
    rng = np.random.default_rng(which.start)
    for dim, time in (PARAMETERS[i] for i in which):
        kernel = HeatKernel(dim, time)
        cosines = on_grid(random_cosines(80, time, rng))
        error = worst_relative_error(dim, time, cosines)
        assert error <= kernel.error_bound.relative <= RELATIVE_BOUND, (dim, time)


@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize(("dim", "time"), PARAMETERS[:60])
def test_float32_is_right_to_4e_7(dim, time):
    """In float32 the absolute error at float32 cosines is below the bound, which is below 4e-7."""
    kernel = HeatKernel(dim, time)
    rng = np.random.default_rng(dim)
    cosines = random_cosines(2000, time, rng).astype(np.float32)
    exact = kernel.of_cosine(cosines.astype(np.float64))
    error = np.abs(kernel.of_cosine(cosines) - exact).max()
    assert error <= heat_profile(dim, time).single.error.absolute <= 4e-7


@pytest.mark.slow
@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_values_grow_with_the_cosine(number):
    """On 100,000 cosines, 50 random kernels never fall by more than one unit in the last place."""
    cosines = np.linspace(-1, 1, 100_000).astype(number)
    for dim, time in PARAMETERS[:50]:
        values = HeatKernel(dim, time).of_cosine(cosines)
        assert (values[1:] >= np.nextafter(values[:-1], number(-1))).all(), (dim, time)
        assert values[-1] == 1.0
        assert values.max() == 1.0
        assert values.min() >= 0.0


@pytest.mark.slow
def test_next_to_the_source_values_stay_at_most_1():
    """The 2000 float64 and float32 numbers below 1 have values of at most 1, and 1 has 1."""
    for dim, time in PARAMETERS[:30]:
        for number in (np.float64, np.float32):
            below = 1 - np.arange(2000, dtype=number) * np.finfo(number).epsneg
            values = HeatKernel(dim, time).of_cosine(below)
            assert values[0] == 1.0
            assert values.max() == 1.0


@pytest.mark.slow(beyond=8)
@pytest.mark.parametrize(("dim", "time"), random_parameters(12, seed=3))
def test_exponent_is_within_its_remainder(dim, time):
    """The interpolated exponent misses the exact one by less than the proven remainder."""
    rng = np.random.default_rng(dim)
    with ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)
        for piece in exponent.pieces:
            local = with_factors(piece, ())
            for point in rng.integers(piece.left, min(piece.right, ONE - 1), 5).tolist():
                y = arb(2 * point - piece.left - piece.right) / (piece.right - piece.left)
                exact = -log2_kernel(exponent.series, point) * ONE / (ONE - point)
                # 1e-90: what is left of the precision of the sum
                assert abs(local.polynomial(y) - exact) < arb(local.remainder) + 1e-90


@pytest.mark.parametrize(("dim", "time"), [(2, 0.1), (3, 0.05), (5, 0.2), (17, 0.03), (64, 0.02)])
def test_zeros_of_the_kernel_are_beyond_the_proven_distance(dim, time):
    """K is positive to the left of -1 up to the proven distance, and changes sign soon after."""
    with ctx.workprec(WORK_BITS):
        exponent = heat_exponent(dim, time)

        def sign(distance: float) -> bool:
            return exponent.series.sum(-ONE - round(distance * ONE)) > 0

        inside = np.linspace(0, exponent.distance, 30)
        assert all(sign(x) for x in inside)
        assert not all(sign(x) for x in exponent.distance * np.linspace(1, 2, 100))


def test_theorem_on_real_zeros_in_an_odd_dimension():
    """In dimension 3 the zeros below -1 are as many as a polynomial of that degree can have."""
    # 40 levels at 1/8 of their own scale: the truncated series is a polynomial of degree 40, whose
    # zeros far out may be complex, but the first ones are simple and real.
    with ctx.workprec(WORK_BITS):
        series = heat_series(3, 0.1, 400)
        distances = np.geomspace(1e-3, 50.0, 4000)
        signs = np.array([series.sum(-ONE - round(x * ONE)) > 0 for x in distances])
        changes = distances[1:][signs[1:] != signs[:-1]]
    # Near -1, K is proportional to I_0 of pi sqrt(2 (1+c))/(2t): zeros at those of the Bessel J_0.
    bessel = np.array([2.404825557695773, 5.520078110286311])
    expected = (2 * 0.1 * bessel / math.pi) ** 2 / 2
    np.testing.assert_allclose(changes[:2], expected, rtol=0.1)
    assert changes.size >= 8


def test_a_wrong_coefficient_is_noticed():
    """One coefficient off by 1e-11 of itself breaks the comparison with the series."""
    dim, time = 50, 0.02
    profile = heat_profile(dim, time)
    numerator = profile.double.numerator.copy()
    numerator[0] *= 1 + 1e-11
    wrong: Form = replace(profile.double, numerator=numerator)
    cosines = on_grid(np.linspace(-1, -0.9, 5))
    values = np.empty_like(cosines)
    wrong.apply(cosines, values)
    with ctx.workprec(BITS):
        exact = np.array([float(ball) for ball in exact_values(dim, time, cosines)])
    assert np.abs(values / exact - 1).max() > 10 * profile.double.error.relative


@pytest.mark.slow
def test_form_does_not_depend_on_length_or_place():
    """Vector body and scalar rest of the loop give the same bits, in float64 and float32."""
    for dim, time in random_parameters(10, seed=4):
        for form in (heat_profile(dim, time).double, heat_profile(dim, time).single):
            cosines = np.random.default_rng(1).uniform(-1, 1, 259).astype(form.numerator.dtype)
            whole, single = np.empty_like(cosines), cosines.copy()
            form.apply(cosines, whole)
            for i in range(single.size):
                form.apply(single[i : i + 1], single[i : i + 1])
            np.testing.assert_array_equal(whole, single)


@pytest.mark.parametrize("arithmetic", [DOUBLE, SINGLE], ids=["float64", "float32"])
def test_power_of_two_has_its_error(arithmetic):
    """The coefficients of 2^r are right to what the error bound leaves beside rounding."""
    rounding = 1.6 * arithmetic.unit
    with ctx.workprec(100):
        for r in np.linspace(-0.5, 0.5, 401).tolist():
            terms = (arb(float(e)) * arb(r) ** k for k, e in enumerate(arithmetic.exp2))
            error = abs(sum(terms, arb(0)) / arb(2) ** arb(r) - 1)
            assert error < arithmetic.exp2_error - rounding


def test_flat_kernel_is_1():
    """At long times K rounds to 1, and the bound says how much it lacks."""
    kernel = HeatKernel(50, 100.0)
    assert (kernel.of_cosine(np.linspace(-1, 1, 9)) == 1.0).all()
    assert 0 < kernel.error_bound.absolute <= EPS / 64


def test_nearly_flat_kernel_keeps_what_is_left():
    """At K = 1 - 1e-12 (1-c) or so the values are right to half a unit in the last place."""
    time = 14.5
    values = HeatKernel(3, time).of_cosine([-1.0, 0.0])
    # Two levels: K = (1 + 3 e^{-2t} c)/(1 + 3 e^{-2t}).
    slope = 3 * math.exp(-2 * time)
    np.testing.assert_allclose(values, 1 - slope * np.array([2, 1]), rtol=0, atol=EPS)


def test_explanation_states_what_is_proven():
    """The words hold the levels, the sizes and the bound."""
    kernel = HeatKernel.at_scale(393, 1.0)
    text = kernel.explain()
    assert f"{kernel.n_levels} levels" in text
    assert f"relative error at most {kernel.error_bound.relative:.2g}" in text
    assert "float32" in text


@pytest.mark.parametrize(("dim", "time"), [(10**6, 1e-8), (2, 1e-9), (50, 1e-9)])
def test_times_out_of_reach_are_refused(dim, time):
    """Too small a time is an AccuracyError that says from where on it works."""
    kernel = HeatKernel(dim, time)
    with pytest.raises(errors.AccuracyError, match=r"levels, .* use a time of .* or more"):
        kernel.of_cosine(0.5)


@pytest.mark.parametrize(
    ("bound", "number", "prove"),
    [
        ("RELATIVE_BOUND", "float64", profile_module.heat_profile),
        ("ABSOLUTE_BOUND_SINGLE", "float32", profile_module.single_form),
    ],
)
def test_what_cannot_be_proven_is_refused_with_numbers(bound, number, prove, monkeypatch):
    """A promise out of reach is an AccuracyError with type, promise, best proof and a way out."""
    monkeypatch.setattr(profile_module, bound, 1e-30)
    for shapes in ("_SHAPES", "_SHAPES_SINGLE"):
        monkeypatch.setattr(profile_module, shapes, ((6, 1, 0), (8, 1, 0), (16, 1, 0)))
    message = rf"dim=900 .* 1e-30 in {number} .* at best .* could be proven\): .* time, 0.04"
    with pytest.raises(errors.AccuracyError, match=message):
        prove.__wrapped__(900, 0.02)


def test_what_float32_cannot_do_is_refused_before_work_begins(monkeypatch):
    """By `check_kernels` for products of that type, which nothing in float64 minds."""
    monkeypatch.setattr(profile_module, "ABSOLUTE_BOUND_SINGLE", 1e-30)
    kernel, sides = HeatKernel(7, 0.1357246), [open_samples(np.eye(7))]
    check_kernels([kernel], sides, None, "float64")
    with pytest.raises(errors.AccuracyError, match="1e-30 in float32"):
        check_kernels([kernel], sides, None, "float32")


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize(
    ("dim", "time", "polynomial", "factors"),
    [(784, 0.006, True, 0), (50, 0.015, False, 0), (3, 0.018, False, 3)],
)
def test_forms_follow_the_distance_of_the_zeros(dim, time, polynomial, factors):
    """Polynomials far from the zeros of K, quotients nearer, and factors next to them."""
    form = heat_profile(dim, time).double
    assert (form.denominator.size == 1) is polynomial
    assert form.slopes.size == factors
    assert form.denominator[-1] == 1.0
    assert (form.denominator > 0).all()


@pytest.mark.parametrize("wrong", ["negative", "subnormal"])
def test_no_bound_where_the_argument_does_not_hold(wrong):
    """A negative coefficient of Q and a subnormal one of P leave nothing proven."""
    with ctx.workprec(WORK_BITS):
        local = with_factors(heat_exponent(3, 1.0).pieces[0], ())
        p, q = np.ones(4, np.float32), np.ones(4, np.float32)
        if wrong == "negative":
            q[1] = -1e-3
        else:
            p[1] = 1e-40
        one = arb_poly([arb(1)])
        assert proven_bound([local], (one, one), (0.0, p, q), (), 1).relative == math.inf


def unit_rows(kind: str, rows: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Random unit rows on all the sphere, in the positive orthant, in clusters, with duplicates."""
    X = ndtri(rng.random((rows, dim)))
    if kind == "orthant":
        X = np.abs(X)
    if kind == "clusters":
        X = X[rng.integers(0, 20, rows)] + 1e-3 * X
    if kind == "duplicates":
        X = X[rng.integers(0, rows // 4, rows)]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("dim", [3, 50, 400, 3000])
def test_duplicates_have_exactly_1(dim):
    """Equal rows in two sets, or at two places of one, have K = 1 to the bit, in both types."""
    X = unit_rows("orthant", 60, dim, np.random.default_rng(dim))
    kernel = HeatKernel.at_scale(dim, 0.3)
    assert (np.diagonal(kernel(X, X.copy())) == 1.0).all()
    twice = kernel(np.concatenate([X, X]))
    assert (np.diagonal(twice, len(X)) == 1.0).all()
    single = X.astype(np.float32)
    values = kernel.of_rows(single, single.copy())
    assert values.dtype == np.float32
    assert (np.diagonal(values) == 1.0).all()
    assert values.max() == 1.0


@pytest.mark.slow
def test_no_small_dimension_is_refused_where_rounding_weighs_most():
    """At dim 3 and t = 0.00375 the proof has little to spare of its 1e-12, and succeeds."""
    assert HeatKernel(3, 0.00375).error_bound.relative <= 1e-12
