"""The exact heat kernel against oracles, limits and invariants."""

import math
import pickle

import numpy as np
import pytest

from dhsk import errors
from dhsk.kernels import HeatKernel
from dhsk.kernels.certified.profile import heat_profile

EPS = np.finfo(np.float64).eps


def rounding(kernel: HeatKernel) -> float:
    """Absolute error to expect: eps for each level (measured: below a quarter of it)."""
    return EPS * kernel.n_levels


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("dim", [2, 3, 4, 64, 393, 1312, 10_000])
def test_values_match_the_series_in_50_digits(dim, scale, oracle):
    """Values agree with mpmath's to the proven relative error, wherever 50 digits show it."""
    kernel = HeatKernel.at_scale(dim, scale)
    random = np.random.default_rng([dim, int(10 * scale)]).uniform(-1, 1, 3)
    cosines = [-1.0, 0.0, 0.9, 1 - 1e-9, *random.tolist()]
    exact = oracle(dim, kernel.time, cosines)
    computed = kernel.of_cosine(cosines).tolist()
    bound = kernel.error_bound.relative
    assert bound <= 1e-12
    for value, b in zip(computed, exact, strict=True):
        assert abs(value - b) <= bound * b + 1e-45  # the oracle's own: 50 digits of terms below 1


@pytest.mark.parametrize(
    ("dim", "scale", "cosine", "exact"),
    [
        (3, 0.3, -1.0, 2.9331692562586e-9),
        (3, 0.3, 0.0, 4.5759497592987e-3),
        (100, 0.3, 0.0, 1.1723526433296e-11),
        (393, 1.0, 0.25, 0.47248063521985),
        (1312, 0.3, 0.25, 8.7253189847545e-45),
        (10_000, 0.3, 0.9, 7.9279080351854e-24),
        (10_000, 0.3, 0.0, 1.2717073764103e-252),
    ],
)
def test_values_match_the_reference_table(dim, scale, cosine, exact):
    """Values agree with the table of 14 digits to 1e-12, down to 1e-252."""
    assert HeatKernel.at_scale(dim, scale).of_cosine(cosine) == pytest.approx(exact, rel=1e-12)


def test_values_grow_with_the_cosine():
    """Heat falls with distance from the source, up to rounding."""
    kernel = HeatKernel.at_scale(393, 1.0)
    values = kernel.of_cosine(np.linspace(-1, 1, 2001))
    assert np.diff(values).min() > -2 * rounding(kernel)


def test_float32_stays_float32_and_keeps_its_bound():
    """Single precision in gives the double result to 4e-7, in the same shape."""
    kernel = HeatKernel.at_scale(393, 0.7)
    cosines = np.random.default_rng(2).uniform(-1, 1, (7, 5, 600)).astype(np.float32)
    computed = kernel.of_cosine(cosines)
    assert computed.dtype == np.float32
    exact = kernel.of_cosine(cosines.astype(np.float64))
    np.testing.assert_allclose(computed, exact, rtol=0, atol=4e-7)


def test_shapes_are_kept():
    """Scalars, empty arrays and strided views come back in their own shape."""
    kernel = HeatKernel(3, 0.5)
    assert kernel.of_cosine(0.5).shape == ()
    assert kernel.of_cosine(np.empty((0, 3))).shape == (0, 3)
    strided = np.linspace(-1, 1, 24).reshape(4, 6)[::2, ::3]
    before = strided.copy()
    computed = kernel.of_cosine(strided)
    np.testing.assert_array_equal(computed, kernel.of_cosine(strided.copy()))
    np.testing.assert_array_equal(strided, before)


def test_values_lie_between_0_and_1_where_rounding_would_not():
    """Where the true kernel is far below eps the noise is clipped to [0, 1]."""
    values = HeatKernel.at_scale(1312, 0.3).of_cosine(np.linspace(-1, 1, 4001))
    assert values.min() >= 0.0
    assert values.max() <= 1.0


@pytest.mark.slow
def test_source_has_exactly_1():
    """K(1) is 1 to the bit, also where the series rounds to less or the cosine to more than 1."""
    for dim in range(2, 60):
        values = HeatKernel.at_scale(dim, 0.7).of_cosine([1.0, 1 + EPS, 2.0])
        assert values.tolist() == [1.0, 1.0, 1.0]


def test_cosines_below_minus_1_are_clipped():
    """A cosine rounded below -1 has the value of the antipode."""
    kernel = HeatKernel(3, 0.5)
    assert kernel.of_cosine(-1 - 1e-12) == kernel.of_cosine(-1.0)


def test_nan_cosine_is_refused():
    """NaN is an error that says where, not a value."""
    with pytest.raises(errors.InputError, match=r"cosine number 20001 .* is NaN"):
        HeatKernel(3, 0.5).of_cosine(np.where(np.arange(30_000) == 20_001, np.nan, 0.5))


@pytest.mark.parametrize("cosines", [[1j], ["a"], [None], [True]])
def test_cosines_that_are_not_numbers_are_refused(cosines):
    """Complex, text, object and boolean cosines are errors."""
    with pytest.raises(errors.InputError, match="cosines must be real numbers"):
        HeatKernel(3, 0.5).of_cosine(cosines)


@pytest.mark.parametrize("dim", [1, 0, -3, 2.0, "393", None, True])
def test_bad_dimension_is_refused(dim):
    """A dimension is a whole number of at least 2."""
    with pytest.raises(errors.InputError, match="dim must be a whole number, at least 2"):
        HeatKernel(dim, 0.1)


@pytest.mark.parametrize("time", [0.0, -0.1, math.inf, math.nan, "1", None, True])
def test_bad_time_is_refused(time):
    """A time is a finite number above 0."""
    with pytest.raises(errors.InputError, match="time must be"):
        HeatKernel(3, time)
    with pytest.raises(errors.InputError, match="time_scale must be"):
        HeatKernel.at_scale(3, time)


def test_numpy_parameters_become_plain_numbers():
    """NumPy scalars give the same kernel as Python numbers."""
    kernel = HeatKernel(np.int64(3), np.float64(0.5))
    assert kernel == HeatKernel(3, 0.5)
    assert type(kernel.dim) is int
    assert type(kernel.time) is float


@pytest.mark.parametrize("scale", [0.1, 0.7, 1.0, 3.0])
def test_time_scale_comes_back(scale):
    """`at_scale` and `time_scale` are inverse up to the rounding of four operations."""
    kernel = HeatKernel.at_scale(393, scale)
    assert kernel.time == pytest.approx(scale * math.log(393) / 393, rel=2 * EPS)
    assert kernel.time_scale == pytest.approx(scale, rel=4 * EPS)


def test_pickle_carries_the_profile():
    """A kernel pickles to 3 kB or less, and the copy gives the same bits, building nothing."""
    kernel = HeatKernel.at_scale(10_000, 0.3)
    cosines = np.linspace(-1, 1, 11)
    values = kernel.of_cosine(cosines)
    frozen = pickle.dumps(kernel)
    assert len(frozen) < 3000
    heat_profile.cache_clear()
    copy = pickle.loads(frozen)
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    np.testing.assert_array_equal(copy.of_cosine(cosines), values)
    assert heat_profile.cache_info().misses == 0
