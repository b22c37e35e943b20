"""Leading eigenvalues against a full decomposition."""

from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.solvers.eigenvalues import (
    OVERSAMPLING,
    PASSES,
    SMALL,
    largest_pairs,
    leading_eigenvalues,
)
from dhsk.solvers.sources import ArraySource


def matrix(n: int) -> Any:
    """Gram matrix of the heat kernel on random counts."""
    X = np.random.default_rng(0).poisson(1.0, size=(n, 10)) + 0.5
    return dhsk.HeatKernel.at_scale(10, 1.0)(dhsk.hyperspherical_map(X))


@pytest.mark.parametrize("count", [5, 300])
def test_small_matrices_are_decomposed(count: int) -> None:
    """All digits, largest first, at most as many as there are."""
    K = matrix(200)
    found, exact = leading_eigenvalues(ArraySource(K), count)
    assert exact
    expected = np.linalg.eigvalsh(K)[::-1][:count]
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * 2.3e-16 * expected[0])


def test_large_ones_by_passes_come_close_from_below() -> None:
    """Ritz values never exceed the eigenvalues; where those fall, most digits agree."""
    n, count = SMALL + 1, 30
    K = matrix(n)
    assert n > (PASSES + 1) * (count + OVERSAMPLING)
    found, exact = leading_eigenvalues(ArraySource(K), count)
    assert not exact
    expected = np.linalg.eigvalsh(K)[::-1][:count]
    rounding = n * 2.3e-16 * expected[0]
    assert (found <= expected + rounding).all()
    np.testing.assert_allclose(found[:10], expected[:10], rtol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=0.05)


@pytest.mark.parametrize("n", [3, 300])
def test_largest_pairs_of_a_cluster(n: int) -> None:
    """Of the centred identity, all but one are 1: asked for two, LAPACK finds none."""
    S = np.eye(n) - 1 / n
    found, vectors = largest_pairs(S, 2)
    np.testing.assert_allclose(found, 1.0, rtol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(S @ vectors, vectors, atol=1e-12)
    K = matrix(n)
    found, vectors = largest_pairs(K, 2)
    np.testing.assert_allclose(K @ vectors, vectors * found, atol=1e-12 * found.max() * n)
    assert found[0] <= found[1]
