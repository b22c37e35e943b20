"""The exact heat kernel against oracles, limits and invariants."""

import math
import pickle

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial import Chebyshev

from dhsk import errors
from dhsk.kernels import HeatKernel
from dhsk.kernels.profile import heat_profile

EPS = np.finfo(np.float64).eps


def rounding(kernel: HeatKernel) -> float:
    """Absolute error to expect: eps for each level (measured: below a quarter of it)."""
    return EPS * kernel.n_levels


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("dim", [2, 3, 4, 64, 393, 1312, 10_000])
def test_values_match_the_series_in_50_digits(dim, scale, oracle):
    """Values agree with mpmath's to eps a level, which is below 1e-14 at usual times."""
    kernel = HeatKernel.at_scale(dim, scale)
    random = np.random.default_rng([dim, int(10 * scale)]).uniform(-1, 1, 3)
    cosines = [-1.0, 0.0, 0.9, 1 - 1e-9, *random.tolist()]
    exact = oracle(dim, kernel.time, cosines)
    computed = kernel.of_cosine(cosines).tolist()
    error = max(abs(float(mp.mpf(a) - b)) for a, b in zip(computed, exact, strict=True))
    assert error < rounding(kernel)
    if scale >= 0.7:
        assert error < 1e-14


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


@pytest.mark.parametrize("time", [0.02, 0.3, 2.0])
def test_circle_is_the_wrapped_gaussian(time):
    """On S^1 the kernel is Σ_k exp(-(theta + 2 pi k)²/4t), normalised."""
    kernel = HeatKernel(2, time)
    theta = np.linspace(0, math.pi, 50)
    turns = 2 * math.pi * np.arange(-12, 13)[:, None]
    wrapped = np.exp(-((theta + turns) ** 2) / (4 * time)).sum(axis=0)
    np.testing.assert_allclose(
        kernel.of_cosine(np.cos(theta)), wrapped / wrapped[0], rtol=0, atol=rounding(kernel)
    )


@pytest.mark.parametrize("time", [0.02, 0.3, 2.0])
def test_three_sphere_has_its_closed_form(time):
    """On S^3 it is Σ_k (theta + 2 pi k)/sin(theta) exp(-(theta + 2 pi k)²/4t), normalised."""
    kernel = HeatKernel(4, time)
    cosines = np.linspace(-0.99, 0.99, 23)
    with mp.workdps(30):
        t = mp.mpf(time)
        at_source = mp.fsum(
            (1 - (2 * mp.pi * k) ** 2 / (2 * t)) * mp.exp(-((2 * mp.pi * k) ** 2) / (4 * t))
            for k in range(-12, 13)
        )

        def closed(cosine: float) -> float:
            theta = mp.acos(mp.mpf(cosine))
            angles = [theta + 2 * mp.pi * k for k in range(-12, 13)]
            total = mp.fsum(a * mp.exp(-(a**2) / (4 * t)) for a in angles)
            return float(total / mp.sin(theta) / at_source)

        expected = [closed(c) for c in cosines]
    np.testing.assert_allclose(kernel.of_cosine(cosines), expected, rtol=0, atol=rounding(kernel))


@pytest.mark.parametrize("dim", [2, 3, 5, 64])
def test_kernel_solves_the_heat_equation(dim):
    """∂K/∂t = ΔK - K ΔK(1), ΔK = (1-c²)K'' - (n-1)cK': the heat equation, normalised."""
    time = math.log(dim) / dim
    degree = 20
    in_c = Chebyshev.interpolate(lambda c: HeatKernel(dim, time).of_cosine(c), degree)
    c = np.linspace(-0.9, 0.9, 7)

    def laplacian(x):
        return (1 - x**2) * in_c.deriv(2)(x) - (dim - 1) * x * in_c.deriv(1)(x)

    def history(cosine):
        return Chebyshev.interpolate(
            lambda times: np.array([HeatKernel(dim, s).of_cosine(cosine) for s in times]),
            degree,
            domain=[0.8 * time, 1.2 * time],
        )

    rate = np.array([history(x).deriv(1)(time) for x in c])
    expected = laplacian(c) - in_c(c) * laplacian(1.0)
    # Markov: a first derivative on a half-width w magnifies an error by degree²/w, a second in c
    # by degree⁴/3 (all of [-1, 1]); ten eps is what the values and the interpolation carry.
    tolerance = 10 * EPS * (degree**2 / (0.2 * time) + dim * degree**2 + degree**4 / 3)
    np.testing.assert_allclose(rate, expected, rtol=0, atol=tolerance)


def test_diffusion_for_s_and_then_t_is_diffusion_for_their_sum():
    """On S^1 the kernels of times s and t convolve to that of s + t."""
    s, t, points = 0.1, 0.25, 256  # the rule is exact for harmonics below 128, far past the tail
    angles = 2 * math.pi * np.arange(points) / points

    def density(time: float, at: np.ndarray) -> np.ndarray:
        """Kernel with mean 1 on the circle."""
        kernel = HeatKernel(2, time)
        return kernel.of_cosine(np.cos(at)) / kernel.of_cosine(np.cos(angles)).mean()

    ends = np.linspace(0, math.pi, 9)
    convolved = [(density(s, angles) * density(t, angles - end)).mean() for end in ends]
    peak = density(s, np.zeros(1)) * density(t, np.zeros(1))
    tolerance = 4 * float(peak[0]) * rounding(HeatKernel(2, s))
    np.testing.assert_allclose(convolved, density(s + t, ends), rtol=0, atol=tolerance)


@pytest.mark.parametrize("dim", [2, 3, 393])
def test_long_diffusion_is_constant(dim):
    """As time grows the kernel tends to 1 everywhere."""
    np.testing.assert_array_equal(HeatKernel(dim, 50.0).of_cosine(np.linspace(-1, 1, 9)), 1.0)


def test_large_dimension_is_an_exponential_kernel():
    """For large dim at the sweet spot the kernel tends to exp(c - 1)."""
    kernel = HeatKernel.at_scale(10**8, 1.0)
    cosines = np.linspace(-1, 1, 21)
    # Poisson weights up to O(t) and P_l = c^l up to l²/n, with E[l²] = 2.
    np.testing.assert_allclose(
        kernel.of_cosine(cosines), np.exp(cosines - 1), rtol=0, atol=5 * kernel.time
    )


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("dim", [3, 50])
def test_gram_matrices_are_positive_semidefinite(dim, scale, unit_rows):
    """No eigenvalue falls below 0 by more than the rounding of the entries allows."""
    kernel = HeatKernel.at_scale(dim, scale)
    gram = kernel(unit_rows(80, dim))
    # Entries carry the kernel's rounding, and that of the cosine times dK/dc <= 1/(2t) (roughly).
    entry = rounding(kernel) + EPS * math.sqrt(dim) / (2 * kernel.time)
    assert np.linalg.eigvalsh(gram).min() > -len(gram) * entry


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
