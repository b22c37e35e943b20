"""Linear, polynomial and cosine kernels against scikit-learn's, and rows that overflow."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import pairwise

import dhsk
from dhsk import errors
from dhsk.kernels import CosineKernel, LinearKernel, PolynomialKernel

EPS = np.finfo(np.float64).eps
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


def test_linear_matches_scikit_learn(samples):
    """Inner products agree to their rounding."""
    np.testing.assert_allclose(
        LinearKernel()(*samples),
        pairwise.linear_kernel(*samples),
        rtol=0,
        atol=product_rounding(*samples),
    )


@pytest.mark.parametrize(("degree", "offset"), [(1, 0.0), (2, 1.0), (3, 0.5), (7, 2)])
def test_polynomial_matches_scikit_learn(samples, degree, offset):
    """Powers agree to the rounding of the inner product, magnified by the power's slope."""
    expected = pairwise.polynomial_kernel(*samples, degree=degree, gamma=1.0, coef0=offset)
    largest = np.abs(pairwise.linear_kernel(*samples)).max() + offset
    slope = degree * largest ** (degree - 1)
    np.testing.assert_allclose(
        PolynomialKernel(degree, offset)(*samples),
        expected,
        rtol=4 * EPS,
        atol=slope * product_rounding(*samples),
    )


def test_cosine_of_unit_rows_matches_scikit_learn(samples):
    """Cosines agree to rounding."""
    units = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in samples]
    np.testing.assert_allclose(
        CosineKernel()(*units), pairwise.cosine_similarity(*samples), rtol=0, atol=2 * DIM * EPS
    )


@pytest.mark.parametrize(
    ("degree", "offset", "message"),
    [
        (0, 1.0, "degree must be a whole number, at least 1"),
        (2.5, 1.0, "degree must be a whole number"),
        (2, -1.0, "offset must be at least 0"),
        (2, math.inf, "offset must be a finite number"),
    ],
)
def test_bad_polynomial_is_refused(degree, offset, message):
    """A degree is a whole number of at least 1, an offset finite and not negative."""
    with pytest.raises(errors.InputError, match=message):
        PolynomialKernel(degree, offset)


@pytest.mark.slow
@pytest.mark.parametrize("value", [1e308, -1e308, 1e155])
@pytest.mark.parametrize(
    "kernel", [dhsk.LinearKernel(), dhsk.GaussianKernel(1.0), dhsk.PolynomialKernel(2, 1.0)]
)
def test_rows_whose_values_overflow_are_refused(kernel: Any, value: float, tmp_path: Any) -> None:
    """At every door, with the row and the norm up to which values are in range; not a warning."""
    X = np.ones((4, 3))
    X[2, 0] = value
    said = r"row 2 of X \(counted from 0\) has a norm above .* overflow float64: scale the samples"
    y = [0, 0, 1, 1]
    doors = (
        lambda: kernel(X),
        lambda: dhsk.compute_gram(X, kernel, store=tmp_path / "g"),
        lambda: dhsk.HeatSVC(kernel=kernel).fit(X, y),
        lambda: dhsk.NystromSVC(2, kernel=kernel, dtype="float64").fit(X, y),
        lambda: dhsk.cross_validate(X, y, kernels=[kernel], cv=2, low_rank=dhsk.LowRank(2)),
    )
    for door in doors:
        with pytest.raises(dhsk.InputError, match=said):
            door()
    with pytest.raises(dhsk.InputError, match=r"row 2 of .* has a norm above .* overflow float64"):
        dhsk.cross_validate(X, y, kernels=[kernel], cv=2)
    assert not (tmp_path / "g").exists()


def test_rows_below_the_bound_do_not_overflow() -> None:
    """The greatest norms that are taken give finite values of every pair."""
    for kernel in (dhsk.LinearKernel(), dhsk.GaussianKernel(1.0), dhsk.PolynomialKernel(3, 2.0)):
        norm = np.sqrt(kernel.largest_norm2()) * (1 - 1e-9)
        X = norm * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
        assert np.isfinite(kernel(X)).all()


def test_store_of_float32_holds_no_infinity(tmp_path: Any) -> None:
    """The range is that of the stored type."""
    X = np.full((4, 3), 1e20)
    with pytest.raises(dhsk.InputError, match="overflow float32"):
        dhsk.compute_gram(X, "linear", store=tmp_path / "g", dtype="float32")
    assert np.isfinite(np.asarray(dhsk.compute_gram(X, "linear"))).all()


@pytest.mark.parametrize("value", [1e308, 1e-308])
def test_cosines_of_extreme_rows_are_theirs_scaled(value: float) -> None:
    """Maps divide before they square: powers of ten change cosines by rounding only."""
    X = np.random.default_rng(0).random((5, 3)) + 0.5
    for sphere_map in ("hyperspherical", "projective"):
        expected = dhsk.compute_gram(X, "cosine", sphere_map=sphere_map)
        found = dhsk.compute_gram(X / 2 * value, "cosine", sphere_map=sphere_map)
        eps = np.finfo(np.float64).eps
        # Of subnormal numbers the last of 52 bits is 2^-1074 / 1e-308, relative.
        lost = 2.0**-1074 / 1e-308 if value < 1 else 0.0
        np.testing.assert_allclose(
            np.asarray(found), np.asarray(expected), rtol=0, atol=8 * eps + 8 * lost
        )


def test_powers_that_overflow_say_nothing_themselves() -> None:
    """Samples whose powers overflow are refused by name; numpy's warning would come before."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dhsk.PolynomialKernel(10**6, 1.0).of_product(np.full((1, 1), 9.0), *np.ones((2, 1)))
    assert np.isinf(found).all()
