"""The Gaussian kernel: against scikit-learn's in float64, and its error in float32."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise

import dhsk
from dhsk import errors
from dhsk.kernels import GaussianKernel
from dhsk.kernels.gaussian import SINGLE_TOLERANCE

EPS = np.finfo(np.float64).eps
EPS32 = float(np.finfo(np.float32).eps)
DIM = 30


@pytest.fixture
def samples() -> tuple[np.ndarray, np.ndarray]:
    """Two sets of normal samples, (40, 30) and (25, 30)."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(40, DIM)), rng.normal(size=(25, DIM))


def product_rounding(X: np.ndarray, Y: np.ndarray) -> float:
    """Largest rounding of an inner product: dim eps |x| |y|, for each of the two programs."""
    norms = np.linalg.norm(X, axis=1).max() * np.linalg.norm(Y, axis=1).max()
    return float(2 * DIM * EPS * norms)


@pytest.mark.parametrize("sigma", [0.5, 3.0, 100.0])
def test_gaussian_matches_scikit_learn(samples, sigma):
    """Gaussians agree to the rounding of the squared distance over 2 sigma²."""
    gamma = 1 / (2 * sigma**2)
    squared = 4 * product_rounding(np.vstack(samples), np.vstack(samples))
    np.testing.assert_allclose(
        GaussianKernel(sigma)(*samples),
        pairwise.rbf_kernel(*samples, gamma=gamma),
        rtol=0,
        atol=gamma * squared + 2 * EPS,
    )


def test_gaussian_distances_do_not_fall_below_0():
    """Equal samples far from the origin give exactly 1 at most, though the norms cancel."""
    X = 1e8 + np.random.default_rng(4).normal(size=(1, 50)).repeat(30, axis=0)
    values = GaussianKernel(1e-3)(X, X + 0.0)
    assert values.max() <= 1.0
    assert np.diagonal(GaussianKernel(1e-3)(X)).tolist() == [1.0] * 30


def test_gaussian_of_far_samples_is_0():
    """An exponent beyond float64 gives 0 without a warning."""
    X = np.array([[0.0], [1e150]])
    assert GaussianKernel(1e-3)(X).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_gaussian_works_on_rows_longer_than_a_strip():
    """A tile wider than a strip has the same values as its parts."""
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(3, 4)), rng.normal(size=(20_000, 4))
    kernel = GaussianKernel(1.5)
    whole, part = kernel(X, Y), kernel(X, Y[:10])
    np.testing.assert_allclose(whole[:, :10], part, rtol=0, atol=40 * EPS)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, 1e-200, 1e200])
def test_bad_sigma_is_refused(sigma):
    """A width is above 0 and its square a float64."""
    with pytest.raises(errors.InputError, match="sigma"):
        GaussianKernel(sigma)


# In float32


def kinds(dim: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows of one kind, (120, dim), some of which are equal or nearly equal."""
    X = rng.normal(size=(120, dim))
    if kind == "counts":
        X = np.asarray(dhsk.hyperspherical_map(rng.poisson(1.0, (120, dim)) + np.eye(1, dim)))
    if kind == "far":
        X = 30.0 + X / 10
    if kind == "equal terms":
        X = (1.0 + (rng.random((120, 1)) < 0.5)) * np.ones((120, dim)) * 0.7
    X[40:60] = X[:20]
    X[60:80] = X[:20] * (1 + 1e-5 * rng.normal(size=(20, dim)))
    return X


def bound_of(kernel: GaussianKernel, X: np.ndarray) -> float:
    """Bound on the error of all values in float32."""
    norms2 = np.square(X).sum(axis=1)
    return float(kernel.single_errors(np.count_nonzero(X, axis=1), norms2).max())


def smallest_sigma(X: np.ndarray) -> float:
    """Width at which the bound of the error is just below the tolerance."""
    low, high = 1e-6, 1e6
    for _ in range(60):
        middle = math.sqrt(low * high)
        refused = bound_of(GaussianKernel(middle), X) > SINGLE_TOLERANCE
        low, high = (middle, high) if refused else (low, middle)
    return high


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("kind", ["normal", "counts", "far", "equal terms"])
@pytest.mark.parametrize("dim", [3, 100, 3000])
@pytest.mark.parametrize("wider", [1.0, 5.0])
def test_values_in_float32_are_within_the_bound(dim, kind, form, wider):
    """Of the distances of the rows in float64, at the narrowest width that is taken and wider."""
    X = kinds(dim, kind, np.random.default_rng(dim))
    kernel = GaussianKernel(wider * 1.001 * smallest_sigma(X))
    kernel.check_products(form(X), dtype="float32")
    rows = form(X).astype(np.float32)
    exact = np.exp(-cdist(X, X, "sqeuclidean") / (2 * kernel.sigma**2))
    bound = bound_of(kernel, X) + 4 * EPS32
    assert bound <= SINGLE_TOLERANCE + 4 * EPS32
    for found in (kernel.of_rows(rows), kernel.of_rows(rows, rows.copy())):
        assert found.dtype == np.float32
        assert found.max() == 1.0
        assert np.abs(found - exact).max() <= bound


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dim", [2, 17, 393, 3000])
def test_equal_rows_have_exactly_1_in_float32(dim, form):
    """Within one block and between two, whatever order products are summed in."""
    X = kinds(dim, "counts", np.random.default_rng(dim))
    rows = form(X).astype(np.float32)
    kernel = GaussianKernel(0.4)
    for found in (kernel.of_rows(rows), kernel.of_rows(rows, rows.copy())):
        assert (np.diagonal(found) == 1.0).all()
        assert (np.diagonal(found, 40)[:20] == 1.0).all()
        assert found.max() == 1.0


@pytest.mark.parametrize("kind", ["normal", "counts", "far"])
def test_no_eigenvalue_in_float32_is_below_rounding(kind):
    """Errors of N² entries below the bound move no eigenvalue by more than N times it."""
    X = kinds(50, kind, np.random.default_rng(2))
    kernel = GaussianKernel(2 * smallest_sigma(X))
    found = kernel.of_rows(X.astype(np.float32)).astype(np.float64)
    assert (found == found.T).all()
    bound = bound_of(kernel, X)
    assert np.linalg.eigvalsh(found).min() >= -math.sqrt(len(X)) * bound


def fits(X: Any, y: Any, kernel: Any) -> dict[str, Any]:
    """Every door that takes a type."""
    single = {"kernel": kernel, "dtype": "float32"}
    return {
        "svc": lambda: dhsk.HeatSVC(**single).fit(X, y),
        "ridge": lambda: dhsk.HeatKernelRidge(**single).fit(X, y),
        "one class": lambda: dhsk.HeatOneClassSVM(**single).fit(X),
        "low rank": lambda: dhsk.NystromSVC(20, **single).fit(X, y),
        "features": lambda: dhsk.NystromFeatures(20, **single).fit(X),
        "matrix": lambda: dhsk.compute_gram(X, kernel, product_dtype="float32"),
    }


@pytest.fixture
def labelled() -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap a little, (150, 20)."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 150)
    return rng.normal(size=(150, 20)) + y[:, None] * 0.7, y


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("door", ["svc", "ridge", "one class", "low rank", "features", "matrix"])
def test_rows_beyond_the_bound_are_refused_everywhere(labelled, door, form):
    """With the row, the bound and what to do; the same rows are taken about the origin."""
    X, y = labelled
    far = X.copy()
    far[7] += 1000.0
    said = (
        r"row 7 of X \(counted from 0\) has norm 4.47e\+03, at which values of the gaussian "
        r"sigma=3 kernel from float32 products are off by up to 1, and at most 0.0001 is allowed: "
        r"centre the samples"
    )
    kernel = GaussianKernel(3.0)
    with pytest.raises(dhsk.InputError, match=said):
        fits(form(far), y, kernel)[door]()
    fits(form(X), y, kernel)[door]()


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "csr"])
def test_classifiers_in_float32_agree_with_float64(labelled, form):
    """Decisions are off by some float32 errors of kernel values, times the coefficients."""
    X, y = labelled
    kernel = GaussianKernel(3.0)
    double = dhsk.HeatSVC(C=1.0, kernel=kernel, tol=1e-6).fit(form(X), y)
    single = dhsk.HeatSVC(C=1.0, kernel=kernel, tol=1e-6, dtype="float32").fit(form(X), y)
    error = bound_of(kernel, X)
    apart = np.abs(double.decision_function(X) - single.decision_function(X)).max()
    assert 0.0 < apart <= np.abs(double.dual_coef_).sum() * error


def test_far_samples_are_predicted_in_float32(labelled):
    """Rows are checked in training; one that lies farther out only meets those."""
    X, y = labelled
    model = dhsk.HeatSVC(kernel=GaussianKernel(3.0), dtype="float32").fit(X, y)
    far = np.full((1, 20), 1e4)
    np.testing.assert_allclose(model.decision_function(far), model.intercept_, rtol=1e-6)


def test_mapped_rows_are_checked_after_the_map(labelled):
    """Counts may be large if the map makes unit rows of them."""
    counts = np.random.default_rng(0).poisson(400.0, (30, 20))
    options: dict[str, Any] = {"product_dtype": "float32", "sphere_map": "hyperspherical"}
    G = dhsk.compute_gram(counts, GaussianKernel(0.5), **options)
    exact = dhsk.compute_gram(counts, GaussianKernel(0.5), sphere_map="hyperspherical")
    np.testing.assert_allclose(np.asarray(G), np.asarray(exact), rtol=0, atol=1e-5)


def test_nearly_constant_kernels_need_digits_of_differences(labelled):
    """At a large width the problem is in differences from 1, which far rows lose in float32."""
    X, y = labelled
    wide = {"kernel": GaussianKernel(1e4), "dtype": "float32", "C": 1e6}
    near = dhsk.HeatSVC(**wide).fit(X, y)
    assert near.score(X, y) == dhsk.HeatSVC(**wide | {"dtype": "float64"}).fit(X, y).score(X, y)
    with pytest.raises(dhsk.InputError, match=r"a few samples .* centre the samples"):
        dhsk.HeatSVC(**wide).fit(X + 300.0, y)


def test_a_narrower_kernel_is_not_derived_from_float32(labelled):
    """Rows were checked for the width of the matrix."""
    G = dhsk.compute_gram(labelled[0], GaussianKernel(3.0), product_dtype="float32")
    wider = G.with_kernel(GaussianKernel(6.0))
    exact = dhsk.compute_gram(labelled[0], GaussianKernel(6.0))
    np.testing.assert_allclose(np.asarray(wider), np.asarray(exact), rtol=0, atol=1e-5)
    with pytest.raises(dhsk.InputError, match="were not checked for the gaussian sigma=1 kernel"):
        G.with_kernel(GaussianKernel(1.0))


@pytest.mark.parametrize("types", [("float32", "float32"), ("float32", "float64")])
def test_stored_products_in_float32_determine_near_rows_only(labelled, types, tmp_path):
    """A Gaussian kernel of stored inner products is refused if they lack its digits."""
    X, kernel = labelled[0], GaussianKernel(3.0)
    options = dict(zip(("dtype", "product_dtype"), types, strict=True))
    near = dhsk.compute_gram(X, "linear", store=tmp_path / "near", **options)
    exact = np.asarray(dhsk.compute_gram(X, kernel))
    bound = bound_of(kernel, X)
    assert 0.0 < np.abs(near.with_kernel(kernel)[:, :] - exact).max() <= bound
    far = dhsk.compute_gram(X + 100.0, "linear", store=tmp_path / "far", **options)
    with pytest.raises(dhsk.InputError, match=r"row 0 of the samples .* float32 products are off"):
        far.with_kernel(kernel)[:, :]
    linear = dhsk.compute_gram(X + 100.0, "linear", store=tmp_path / "double")
    np.testing.assert_allclose(linear.with_kernel(kernel)[:, :], exact, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (dhsk.PolynomialKernel(3, 1.0), "a power of 3 makes rounding as many times as large"),
        (dhsk.SmoothedKernel(dhsk.ParametrixKernel(0.1), 0.5), "from the samples themselves"),
    ],
)
def test_kernels_without_float32_say_why(kernel, reason):
    """And what to do."""
    said = f"takes no float32, as .*{reason}.*: leave dtype and product_dtype at float64"
    with pytest.raises(dhsk.InputError, match=said):
        dhsk.compute_gram(np.eye(4), kernel, product_dtype="float32")
