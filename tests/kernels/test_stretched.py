"""K - 1 to full relative precision where K is nearly 1, and kernels stretched by it."""

import json
import math
import pickle
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from flint import arb, ctx
from scipy.sparse import csr_array

from dhsk import errors
from dhsk.kernels import (
    CosineKernel,
    GaussianKernel,
    HeatKernel,
    Kernel,
    LinearKernel,
    ParametrixKernel,
    SmoothedKernel,
    StretchedKernel,
    kernel_from_spec,
    mean_difference,
    stretched,
    unit_of,
)
from dhsk.kernels.certified.evaluate import DOUBLE, EXPM1_ERROR
from dhsk.kernels.certified.exponent import ONE, WORK_BITS, heat_exponent
from dhsk.kernels.certified.form import Form
from dhsk.kernels.certified.profile import DIFFERENCE_BOUND, heat_profile
from dhsk.kernels.certified.series import heat_series

EPS = np.finfo(np.float64).eps
BITS = 1100  # weights this exact resolve 1 - K >= 1e-290 to 40 digits


def random_parameters(count: int, seed: int) -> list[tuple[int, float]]:
    """Pairs (dim, time scale), log-uniform from the sweet spot to where 1 - K is 1e-100."""
    rng = np.random.default_rng(seed)
    dims = np.exp(rng.uniform(math.log(2), math.log(10**6), count)).round().astype(int)
    largest = np.minimum(100 / np.log10(dims), 100.0)
    return list(zip(dims.tolist(), np.exp(rng.uniform(0.0, np.log(largest))).tolist(), strict=True))


def cosines_near_and_far(rng: np.random.Generator, count: int) -> np.ndarray:
    """Multiples of 2^-52 all over [-1, 1], and as many next to 1."""
    near = 1.0 - 10.0 ** rng.uniform(-15, 0, count // 2)
    cosines = np.concatenate([rng.uniform(-1, 1, count - count // 2), near])
    return np.round(cosines * ONE) / ONE


def worst_relative_error(kernel: HeatKernel, form: Form, cosines: np.ndarray) -> float:
    """Largest error of K - 1, relative to it, against the series in ball arithmetic."""
    values = np.empty_like(cosines)
    form.apply_less_one(cosines, values, 1.0, 0.0)
    worst = 0.0
    with ctx.workprec(BITS + 64):
        series = heat_series(kernel.dim, kernel.time, BITS)
        for value, cosine in zip(values.tolist(), cosines.tolist(), strict=True):
            if cosine == 1.0:
                assert value == 0.0
                continue
            exact = series.value(round(cosine * ONE)) - 1
            worst = max(worst, float(abs(arb(value) / exact - 1).upper()))
    return worst


@pytest.mark.slow
def test_heat_kernel_less_one_is_right_to_full_relative_precision():
    """At random dim, time and cosine the error is below its bound, and that below 1e-12.

    With 1 - K down to 1e-80, where K itself has none of its digits.
    """
    rng, smallest = np.random.default_rng(1), 1.0
    for dim, scale in random_parameters(100, seed=20261122):
        kernel = HeatKernel.at_scale(dim, scale)
        form = heat_profile(kernel.dim, kernel.time).double
        error = worst_relative_error(kernel, form, cosines_near_and_far(rng, 30))
        assert error <= form.error.difference, (dim, scale)
        if heat_is_small(kernel):
            assert form.error.difference <= DIFFERENCE_BOUND
        smallest = min(smallest, -float(kernel.of_cosine_minus_one(-1.0)))
    assert smallest < 1e-80


def heat_is_small(kernel: HeatKernel) -> bool:
    """Whether the kernel is promised, not only seen, to have its differences right."""
    with ctx.workprec(WORK_BITS):
        return heat_exponent(kernel.dim, kernel.time).is_small


def test_small_kernels_are_those_above_1_over_e():
    """K(-1) decides what is promised of 1 - K."""
    for dim, scale in random_parameters(40, seed=3):
        kernel = HeatKernel.at_scale(dim, scale)
        lowest = float(kernel.of_cosine(-1.0))
        if heat_is_small(kernel):
            assert lowest > math.exp(-1) * (1 - 1e-9)
        if lowest > 0.7:  # the bound of the slope is that at -1, above the mean one
            assert heat_is_small(kernel)


@pytest.mark.parametrize(("dim", "scale"), [(400, 3.0), (10, 8.0)])
def test_a_wrong_coefficient_is_noticed(dim, scale):
    """One coefficient off by 1e-11 of itself breaks the comparison with the series."""
    kernel = HeatKernel.at_scale(dim, scale)
    form = heat_profile(kernel.dim, kernel.time).double
    numerator = form.numerator.copy()
    numerator[0] *= 1 + 1e-11
    wrong = replace(form, numerator=numerator, offset=form.offset * (1 + 1e-11))
    cosines = cosines_near_and_far(np.random.default_rng(0), 20)
    assert worst_relative_error(kernel, wrong, cosines) > 1e-12
    assert worst_relative_error(kernel, form, cosines) < 1e-14


def test_power_of_two_less_one_has_its_error():
    """(2^r - 1)/r is right to what the error bound leaves beside rounding."""
    rounding = 3.5 * DOUBLE.unit
    with ctx.workprec(120):
        for r in np.linspace(-0.5, 0.5, 401).tolist():
            if r == 0.0:
                continue
            terms = (arb(float(e)) * arb(r) ** k for k, e in enumerate(DOUBLE.exp2[1:]))
            exact = (arb(2) ** arb(r) - 1) / arb(r)
            assert abs(sum(terms, arb(0)) / exact - 1) < EXPM1_ERROR - rounding


@pytest.mark.slow
def test_values_do_not_depend_on_length_or_place():
    """Vector body and rest of the loop give the same bits, with and without factors and a Q."""
    for dim, time in ((3, 0.018), (50, 0.015), (400, 0.05), (400, 1.0)):
        form = heat_profile(dim, time).double
        cosines = np.random.default_rng(1).uniform(-1, 1, 259)
        whole, single = np.empty_like(cosines), cosines.copy()
        form.apply_less_one(cosines, whole, 3.0, 0.5)
        for i in range(single.size):
            form.apply_less_one(single[i : i + 1], single[i : i + 1], 3.0, 0.5)
        np.testing.assert_array_equal(whole, single)


@pytest.mark.parametrize(("dim", "scale"), [(2, 9.0), (20, 3.0), (500, 1.2), (500, 2.0), (64, 8.0)])
def test_nonlinearity_bounds_the_distance_from_the_linear_kernel(dim, scale, oracle_weights):
    """It is the sum that its definition says, and 1 - K stays between the bounds that it proves."""
    kernel = HeatKernel.at_scale(dim, scale)
    weights = oracle_weights(dim, kernel.time)
    with mp.workdps(50):
        slopes = [mp.mpf(k * (k + dim - 2)) / (dim - 1) for k in range(len(weights))]
        exact = mp.fsum(w * p for w, p in zip(weights[2:], slopes[2:], strict=True)) / weights[1]
        assert abs(kernel.nonlinearity / exact - 1) < 0.01
    cosines = np.linspace(-1, 0.999, 50)
    ratios = -kernel.of_cosine_minus_one(cosines) / (float(weights[1]) * (1 - cosines)) - 1
    assert ratios.min() > -1e-13
    assert ratios.max() < kernel.nonlinearity * 1.01 + 1e-13


def test_nonlinearity_of_a_small_time_is_infinite():
    """The sum ends where no kernel is near a linear one; below the sweet spot it is large."""
    assert HeatKernel.at_scale(50, 0.05).nonlinearity == math.inf
    assert HeatKernel.at_scale(10**6, 0.5).nonlinearity > 1


@pytest.mark.parametrize("time", [0.05, 5.0, 1e7])
def test_parametrix_less_one(time):
    """exp(-θ²/4t) - 1 by mpmath, relative to it; an expansion is within the rounding of K."""
    cosines = np.array([-1.0, -0.3, 0.0, 0.5, 1 - 2.0**-30])
    with mp.workdps(40):
        exact = np.array(
            [float(mp.expm1(-(mp.acos(mp.mpf(c)) ** 2) / (4 * time))) for c in cosines]
        )
    found = ParametrixKernel(time).of_cosine_minus_one(cosines)
    np.testing.assert_allclose(found, exact, rtol=20 * EPS)
    circle = ParametrixKernel(time, order=1, dim=2).of_cosine_minus_one(cosines)
    np.testing.assert_allclose(circle, exact, rtol=20 * EPS)
    expansion = ParametrixKernel(time, order=1, dim=5)
    inner = cosines[1:]
    np.testing.assert_array_equal(
        expansion.of_cosine_minus_one(inner), expansion.of_cosine(inner) - 1
    )


def test_gaussian_less_one():
    """exp(-d²/2σ²) - 1 at a width of a million distances, relative to it."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (6, 5)).astype(float)  # inner products without rounding
    kernel = GaussianKernel(1e6)
    norms2 = (X**2).sum(axis=1)
    found = kernel.of_product_less_one(X @ X.T, norms2, norms2)
    distances2 = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.expm1(-distances2 / 2e12), rtol=4 * EPS)
    assert (kernel(X) - 1 == 0).mean() < 1  # K has digits left, but few:
    off = np.abs((kernel(X) - 1)[distances2 > 0] / found[distances2 > 0] - 1)
    assert off.max() > 1e-7


def test_not_a_number_is_refused_and_shapes_are_kept():
    """The door of `of_cosine_minus_one` is that of `of_cosine`."""
    kernel = HeatKernel.at_scale(50, 4.0)
    with pytest.raises(errors.InputError, match="cosine number 1 "):
        kernel.of_cosine_minus_one([0.0, math.nan])
    single = kernel.of_cosine_minus_one(np.zeros((2, 3), np.float32))
    assert single.dtype == np.float32
    assert single.shape == (2, 3)
    assert kernel.of_cosine_minus_one(1.5) == 0.0


KERNELS = [
    HeatKernel.at_scale(40, 1.4),
    ParametrixKernel.at_scale(40, 1.4),
    CosineKernel(),
    GaussianKernel(3.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_stretched_values_are_those_of_the_kernel(kernel, dtype, unit_rows):
    """1 - (1 - K)/spread where K has its digits; symmetric, with ones on the diagonal."""
    rows = unit_rows(70, 40)
    if kernel.spherical:
        rows = rows.astype(dtype)
    wide = stretched(kernel, 0.125)
    values, K = wide.of_rows(rows), kernel.of_rows(rows)
    assert values.dtype == rows.dtype
    eps = np.finfo(rows.dtype).eps
    # The product rounds by 40 eps, the kernels are no steeper than 10, and K rounds once.
    np.testing.assert_allclose(values, 1 - (1 - K) / 0.125, atol=8 * 500 * eps)
    np.testing.assert_array_equal(values, values.T)
    assert (np.diagonal(values) == 1.0).all()
    np.testing.assert_allclose(wide.of_rows(rows, rows[:9].copy()), values[:, :9], atol=4000 * eps)


def test_stretched_kernel_of_smoothed_counts():
    """The inner kernel is stretched, and takes the same counts."""
    counts = csr_array(np.random.default_rng(0).poisson(1.0, (20, 12)).astype(float))
    kernel = SmoothedKernel(HeatKernel.at_scale(12, 2.0), 0.5)
    wide = stretched(kernel, 0.01)
    assert isinstance(wide, SmoothedKernel)
    np.testing.assert_allclose(wide(counts), 1 - (1 - kernel(counts)) / 0.01, atol=1e-12)


def test_other_kernels_are_not_stretched():
    """A linear kernel has no value that it nears."""
    assert stretched(LinearKernel(), 0.1) is None
    assert mean_difference(LinearKernel(), np.eye(3)) is None
    assert unit_of(LinearKernel(), np.eye(3)) is None


@pytest.mark.parametrize("scale", [1.5, 4.0, 8.0, 20.0])
def test_mean_difference_has_its_digits(scale, unit_rows, oracle):
    """However small: at scale 8 and more of 100 features, K is 1 to the last bit."""
    rows = np.abs(unit_rows(12, 100))
    kernel = HeatKernel.at_scale(100, scale)
    cosines = np.clip(rows @ rows.T, -1, 1)
    np.fill_diagonal(cosines, 1.0)
    exact = oracle(100, kernel.time, cosines.ravel().tolist())
    with mp.workdps(50):
        expected = float(mp.fsum(1 - value for value in exact) / len(exact))
    assert mean_difference(kernel, rows) == pytest.approx(expected, rel=1e-9)
    unit = unit_of(kernel, rows)
    assert unit is not None
    assert 0.7 < expected / unit < 1.5
    assert math.frexp(unit)[0] == 0.5


def test_nothing_is_stretched_where_nothing_is_gained(unit_rows):
    """Not at small times, nor where all samples are the same."""
    rows = unit_rows(50, 40)
    assert unit_of(HeatKernel.at_scale(40, 0.7), rows) is None
    same = np.repeat(rows[:1], 5, axis=0)
    assert mean_difference(HeatKernel.at_scale(40, 2.0), same) == 0.0
    assert unit_of(HeatKernel.at_scale(40, 2.0), same) is None
    assert unit_of(HeatKernel.at_scale(40, 1e4), rows) is None  # 1 - K is below float64's range


@pytest.mark.parametrize("kernel", [*KERNELS, SmoothedKernel(KERNELS[0], 1.0)], ids=type)
def test_specs_and_pickles(kernel: Kernel):
    """A stretched kernel comes back from JSON and from a pickle."""
    wide = stretched(kernel, 2.0**-40)
    assert kernel_from_spec(json.loads(json.dumps(wide.to_spec()))) == wide
    assert pickle.loads(pickle.dumps(wide)) == wide
    if isinstance(wide, StretchedKernel):
        assert wide.row_length == kernel.row_length
        assert wide.label.startswith(kernel.label)


def test_a_spread_that_is_none_is_refused():
    """It divides."""
    with pytest.raises(errors.InputError, match="spread must be above 0"):
        StretchedKernel(CosineKernel(), 0.0)


def test_preparing_proves_the_inner_kernel() -> None:
    """A time too small for the proof is refused before any work, as for the kernel itself."""
    with pytest.raises(errors.AccuracyError):
        StretchedKernel(HeatKernel(100_000, 1e-9), 0.5).prepare()
