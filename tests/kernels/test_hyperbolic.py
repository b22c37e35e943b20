"""Hyperbolic heat kernels against their formulas to 40 digits, and against what heat must do."""

import json
import math
import pickle
import tracemalloc

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.special import gamma

import dhsk
from dhsk import errors
from dhsk.kernels import HyperbolicHeatKernel, LinearKernel, kernel_from_spec

EPS = np.finfo(np.float64).eps
DIMS = range(2, 12)
PROMISED = 1e-10


def rows_of(n: int, dim: int, seed: int = 0) -> np.ndarray:
    """Random rows (mu, sigma), (n, dim)."""
    X = np.random.default_rng(seed).normal(size=(n, dim))
    X[:, -1] = np.exp(0.5 * X[:, -1])
    return X


def odd_density(dim: int, time: float, rho: float) -> mp.mpf:
    """Closed form of odd dimensions, its derivatives taken numerically to 50 digits."""
    with mp.workdps(50):
        m, t = (dim - 1) // 2, mp.mpf(time)
        slope = mp.diff(lambda z: mp.re(mp.exp(-(mp.acosh(z) ** 2) / (4 * t))), mp.cosh(rho), m)
        return (-1 / (2 * mp.pi)) ** m / mp.sqrt(4 * mp.pi * t) * mp.exp(-(m**2) * t) * mp.re(slope)


@pytest.mark.parametrize("dim", [3, 5, 7, 9, 11])
def test_odd_dimensions_are_the_closed_forms(dim):
    """At random times and distances, both normalisations are within a hundredth of the promise."""
    rng = np.random.default_rng(dim)
    for _ in range(15):
        time = 10 ** rng.uniform(-3, 2)
        rho = min(10 ** rng.uniform(-2, math.log10(30)), math.sqrt(4 * time * 600))
        kernel = HyperbolicHeatKernel(dim, time)
        expected = mp.log(odd_density(dim, time, rho))
        peak = mp.log(odd_density(dim, time, 0.0))
        value = kernel.of_distance(rho)
        if value > 1e-290:
            assert abs(mp.log(mp.mpf(float(value))) - expected + peak) < PROMISED / 100
        if expected > -660:
            density = HyperbolicHeatKernel(dim, time, normalize=False).of_distance(rho)
            assert abs(mp.log(mp.mpf(float(density))) - expected) < PROMISED / 100


# log K(rho) of the densities, computed with mpmath at 40 digits from the formula
# K = (-1)^m/(2π)^m √2 (4πt)^{-3/2} exp(-(2m+1)²t/4) (d/dz)^m ∫_ρ^∞ s e^{-s²/4t}/√(cosh s - z) ds,
# z = cosh ρ, with s = ρ + u², mp.quad over 30 pieces of u and mp.diff.
EVEN = [
    (2, 0.001, 1.5, -558.29875124639263218),
    (2, 0.02, 0.05, 1.3428784734682246084),
    (2, 0.5, 1.0, -2.5806237774892765403),
    (2, 3.0, 12.0, -20.846430065860539908),
    (2, 100.0, 25.0, -44.828511682443457177),
    (4, 0.001, 1.5, -554.27404671941319874),
    (4, 0.02, 0.05, 2.6900952799111100303),
    (4, 0.5, 1.0, -5.4379732455585697219),
    (4, 3.0, 12.0, -39.093312494628609403),
    (4, 100.0, 25.0, -271.4972519068326819),
    (6, 0.001, 1.5, -550.25075830661295915),
    (6, 0.02, 0.05, 4.0105026026576062487),
    (6, 0.5, 1.0, -9.0448600440150398239),
    (6, 3.0, 12.0, -63.018758136208717534),
    (6, 100.0, 25.0, -697.18370789157476887),
    (8, 0.001, 1.5, -546.22888622774766535),
    (8, 0.02, 0.05, 5.3039962030289744195),
    (8, 0.5, 1.0, -13.437925583981542475),
    (8, 3.0, 12.0, -92.697269286656277402),
    (8, 100.0, 25.0, -1322.3817696763556075),
    (10, 0.001, 1.5, -542.20843070245482856),
    (10, 0.02, 0.05, 6.5704729005294247333),
    (10, 0.5, 1.0, -18.646119181162167934),
    (10, 3.0, 12.0, -128.17589399246190239),
    (10, 100.0, 25.0, -2147.2526825927301765),
]


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize(("dim", "time", "rho", "log_density"), EVEN)
def test_even_dimensions_are_the_integrals(dim, time, rho, log_density):
    """Reference values of the integral formula are met to a hundredth of the promise."""
    profile = HyperbolicHeatKernel(dim, time)._profile
    computed = profile.log_ratio(np.array([rho]))[0] + profile.log_peak
    assert computed == pytest.approx(log_density, rel=0, abs=PROMISED / 100)
    if log_density > -660:
        value = HyperbolicHeatKernel(dim, time, normalize=False).of_distance(rho)
        assert value == pytest.approx(math.exp(log_density), rel=PROMISED / 100)


def test_two_published_values():
    """Known values at rho = 1, t = 0.5 in dimensions 3 and 2."""
    half = [HyperbolicHeatKernel(dim, 0.5, normalize=False).of_distance(1.0) for dim in (3, 2)]
    assert half == pytest.approx([0.0198757484520657, 0.0757267526435692], rel=1e-14)


@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize("dim", DIMS)
def test_total_mass_is_1(dim):
    """Heat is neither lost nor made: the density integrates to 1 over the whole space."""
    sphere = 2 * math.pi ** (dim / 2) / gamma(dim / 2)
    for time in (0.02, 1.5):
        kernel = HyperbolicHeatKernel(dim, time, normalize=False)
        spread = 2 * (dim - 1) * time + 12 * math.sqrt(2 * time)  # drift (d-1)t, twelve deviations

        def mass(rho: float) -> float:
            return float(kernel.of_distance(rho)) * math.sinh(rho) ** (dim - 1)  # noqa: B023

        total = quad(mass, 0, spread, epsabs=0, epsrel=1e-11, limit=200)[0] * sphere
        assert total == pytest.approx(1.0, rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("dim", DIMS)
def test_heat_equation_holds(dim):
    """dK/dt = K'' + (d-1) coth(rho) K', by central differences in time and distance."""
    time, rho, h = 0.7, 1.3, 1e-3

    def log_density(t: float, r: float) -> float:
        profile = HyperbolicHeatKernel(dim, t)._profile
        return float(profile.log_ratio(np.array([r]))[0]) + profile.log_peak

    rate = (log_density(time + h, rho) - log_density(time - h, rho)) / (2 * h)
    before, here, after = (log_density(time, rho + k * h) for k in (-1, 0, 1))
    first, second = (after - before) / (2 * h), (after - 2 * here + before) / h**2
    laplacian = second + first**2 + (dim - 1) / math.tanh(rho) * first  # of K, over K
    # The differences are off by h²/6 of third derivatives (up to 100) and by 1e-13/h².
    assert rate == pytest.approx(laplacian, abs=200 * h**2)


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("dim", [2, 3, 10, 11])
@pytest.mark.parametrize("time", [1e-6, 1e-3, 1.0, 100.0])
def test_values_fall_from_1_to_0(dim, time):
    """K(0) = 1 to the bit, values never rise by more than rounding, and end at exactly 0."""
    kernel = HyperbolicHeatKernel(dim, time)
    profile = kernel._profile
    end = profile.coefficients.shape[1] * profile.length
    values = kernel.of_distance(np.linspace(0, end, 20_001))
    assert values[0] == 1.0
    assert (np.diff(values) <= 1e-12 * values[:-1]).all()
    assert values[-1] == 0.0
    assert values[-20] < 1e-290
    assert 1.0 - PROMISED / 1000 <= kernel.of_distance(1e-300) <= 1.0
    assert kernel.of_distance([2 * end, 1e300, np.inf]).tolist() == [0.0, 0.0, 0.0]


def distance(x: list[float], y: list[float]) -> mp.mpf:
    """Distance of two rows by its definition, in mpmath's precision."""
    squares = mp.fsum((mp.mpf(a) - mp.mpf(b)) ** 2 for a, b in zip(x, y, strict=True))
    return mp.acosh(1 + squares / (2 * mp.mpf(x[-1]) * mp.mpf(y[-1])))


def test_distance_is_that_of_the_half_space():
    """Rows give the kernel of arccosh(1 + |x - y|²/(2 sigma sigma')), here to 40 digits."""
    X, Y = rows_of(6, 4, 1), rows_of(5, 4, 2)
    kernel = HyperbolicHeatKernel(4, 0.8)
    with mp.workdps(40):
        rho = [[distance(x, y) for y in Y.tolist()] for x in X.tolist()]
    expected = kernel.of_distance(np.array(rho, dtype=np.float64))
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-13)


def test_neighbours_keep_their_distance():
    """Rows that differ in the last digits far from the origin have the distance that they have."""
    X = np.array([[1e6, 1.0], [1e6 + 1e-3, 1.0]])
    gap = X[1, 0] - X[0, 0]  # exact
    expected = math.exp(-(gap**2) / 4e-6)  # on this scale the plane is flat to gap²
    computed = HyperbolicHeatKernel(2, 1e-6)(X[:1], X[1:])[0, 0]
    assert computed == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@settings(max_examples=30)  # a table for each dimension
@given(
    dim=st.integers(2, 11),
    scale=st.floats(1e-100, 1e100),
    shift=st.floats(-10, 10),
    seed=st.integers(0, 99),
)
def test_isometries_change_nothing(dim, scale, shift, seed):
    """Shifting all means and scaling all rows are motions of the hyperbolic space."""
    X = rows_of(4, dim, seed)
    moved = X.copy()
    moved[:, 0] += shift
    moved *= scale
    kernel = HyperbolicHeatKernel(dim, 2.0)
    # Shifting loses 10 eps of a mean, in units of sigmas that are 0.1 at least.
    np.testing.assert_allclose(kernel(moved), kernel(X), rtol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_gram_matrix_is_symmetric_positive_and_has_its_diagonal(normalize):
    """Symmetric bit for bit, the diagonal K(0) to the bit, no negative eigenvalue."""
    kernel = HyperbolicHeatKernel(5, 0.3, normalize)
    X = rows_of(150, 5)
    gram = kernel(X)
    np.testing.assert_array_equal(gram, gram.T)
    peak = float(kernel.of_distance(0.0))
    assert (np.diagonal(gram) == peak).all()
    assert peak == 1.0 or not normalize
    assert np.linalg.eigvalsh(gram)[0] > -len(X) * EPS * peak
    np.testing.assert_allclose(kernel(X, X.copy()), gram, rtol=1e-12)
    np.testing.assert_array_equal(kernel(csr_array(X)), gram)


def test_no_temporary_of_the_tiles_size():
    """An 8 MB tile takes the result and a few strips."""
    X, Y = rows_of(1000, 11, 1), rows_of(1000, 11, 2)
    kernel = HyperbolicHeatKernel(11, 1.0)
    kernel(X[:1], Y[:1])
    tracemalloc.start()
    try:
        kernel(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * 8 * 1000 * 1000


def test_compute_gram_and_open_gram(tmp_path):
    """Normal distributions go through the engine like other samples."""
    X, kernel = rows_of(50, 3), HyperbolicHeatKernel(3, 0.5)
    G = dhsk.compute_gram(X, kernel, store=tmp_path / "g", tile=16)
    np.testing.assert_array_equal(G[:, :], kernel(X))
    assert dhsk.open_gram(tmp_path / "g").kernel == kernel
    Y = rows_of(20, 3, 5)
    rectangle = dhsk.compute_gram(X, kernel, Y, tile=16)
    np.testing.assert_array_equal(rectangle[:, :], kernel(X, Y))
    with pytest.raises(errors.InputError, match="hyperbolic kernel cannot be derived"):
        dhsk.compute_gram(X, LinearKernel()).with_kernel(kernel)


@pytest.mark.slow
def test_cross_validation_takes_hyperbolic_kernels():
    """Two times compete, labelled by their absolute time."""
    X = rows_of(40, 3)
    y = (X[:, 0] > 0).astype(int)
    kernels = [HyperbolicHeatKernel(3, time) for time in (0.1, 1.0)]
    result = dhsk.cross_validate(X, y, kernels=kernels, C=[1.0], cv=2)
    assert {row["label"] for row in result.results_} == {"hyperbolic t=0.1", "hyperbolic t=1"}


def test_bad_rows_are_refused(tmp_path):
    """A sigma that is not above 0 is an error that names the row, before anything is written."""
    X = rows_of(40, 3)
    X[33, 2] = 0.0
    kernel = HyperbolicHeatKernel(3, 0.5)
    with pytest.raises(errors.InputError, match=r"row 33 of X .* sigma 0 .*last column"):
        kernel(X)
    with pytest.raises(errors.InputError, match="row 33 of X"):
        dhsk.compute_gram(X, kernel, store=tmp_path / "g", tile=8)
    assert not (tmp_path / "g").exists()
    with pytest.raises(errors.InputError, match=r"X has 4 columns.*dim=3"):
        kernel(np.ones((2, 4)))
    with pytest.raises(errors.InputError, match="negative or NaN"):
        kernel.of_distance([1.0, math.nan])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((12, 1.0), errors.InputError, "dim 2 to 11, but dim is 12"),
        ((1, 1.0), errors.InputError, "dim must be a whole number, at least 2"),
        ((3, 0.0), errors.InputError, "time must be above 0"),
        ((3, 101.0), errors.AccuracyError, "times 1e-06 to 100, but time is 101"),
        ((3, 1e-7), errors.AccuracyError, "times 1e-06 to 100, but time is 1e-07"),
        ((3, 1.0, "no"), errors.InputError, "normalize must be True or False, but it is 'no'"),
    ],
)
def test_bad_parameters_are_refused(arguments, error, message):
    """Dimensions and times out of the checked domain are errors with the domain in them."""
    with pytest.raises(error, match=message):
        HyperbolicHeatKernel(*arguments)


def test_density_too_small_for_float64_is_refused():
    """Heat that has spread until no density is left in float64 is an error, not a zero matrix."""
    with pytest.raises(errors.AccuracyError, match=r"at most exp\(-2519\), .*normalize=True"):
        HyperbolicHeatKernel(11, 100.0, normalize=False).of_distance(0.0)
    assert HyperbolicHeatKernel(11, 100.0).of_distance(0.0) == 1.0


def test_spec_and_pickle_come_back_equal():
    """A description through JSON, and a small pickle that does not carry the table."""
    for kernel in (HyperbolicHeatKernel(4, 0.25), HyperbolicHeatKernel(4, 0.25, normalize=False)):
        kernel.of_distance(1.0)
        assert kernel_from_spec(json.loads(json.dumps(kernel.to_spec()))) == kernel
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert len(pickle.dumps(kernel)) < 300
    assert kernel.label == "hyperbolic t=0.25 density"
