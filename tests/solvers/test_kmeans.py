"""K-means on inner products against scikit-learn's on the samples."""

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from dhsk.solvers.kmeans import lloyd, nearest_to_centroids, spread_seeds


@pytest.fixture
def X() -> Any:
    """Three hundred samples in clusters of very different sizes."""
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(12, 6))
    return centres[rng.integers(0, 12, 300) ** 2 // 12] + 0.3 * rng.normal(size=(300, 6))


def fitted(X: Any, seeds: Any) -> KMeans:
    """The oracle, from the same seeds and to the end."""
    return KMeans(len(seeds), init=X[seeds], n_init=1, tol=0, algorithm="lloyd").fit(X)


@pytest.mark.parametrize("m", [1, 2, 30, 299, 300])
def test_lloyd_is_that_of_scikit_learn(X: Any, m: int) -> None:
    """Same seeds, same labels, same distances to the centroids."""
    seeds = np.random.default_rng(m).choice(300, m, replace=False)
    labels, distances = lloyd(X @ X.T, seeds)
    expected = fitted(X, seeds)
    np.testing.assert_array_equal(labels, expected.labels_)
    # Distances are differences of squared norms of up to 10: their rounding, under the root.
    np.testing.assert_allclose(
        np.sqrt(np.maximum(distances.T, 0)), expected.transform(X), atol=1e-6
    )


def test_empty_clusters_take_the_farthest_samples(X: Any) -> None:
    """Two of three seeds are equal: the third cluster goes where scikit-learn puts it."""
    X = np.round(100 * np.vstack([X, X[:1]]))  # whole numbers: equal distances are equal exactly
    seeds = np.array([0, 300, 5])
    expected = fitted(X, seeds)
    labels, _ = lloyd(X @ X.T, seeds)
    np.testing.assert_array_equal(labels, expected.labels_)
    assert len(np.unique(labels)) == 3


def test_nearest__is_the_sample_nearest_to_each_centroid(X: Any) -> None:
    """By the centroids of scikit-learn's clusters from the seeds that are drawn."""
    P = X @ X.T
    seeds = spread_seeds(P, 20, np.random.default_rng(7))
    distances = fitted(X, seeds).transform(X)
    nearest = nearest_to_centroids(P, 20, np.random.default_rng(7))
    assert set(nearest.tolist()) == set(distances.argmin(axis=0).tolist())


def test_seeds_are_far_apart() -> None:
    """Where four points each have fifty copies, four seeds are at the four points."""
    X = np.repeat(np.eye(4), 50, axis=0)
    for seed in range(20):
        seeds = spread_seeds(X @ X.T, 4, np.random.default_rng(seed))
        assert set(seeds // 50) == {0, 1, 2, 3}


def test_seeds__of_fewer_points_than_clusters_are_distinct_samples() -> None:
    """Copies are drawn when all points are: and the representatives are one sample a point."""
    X = np.repeat(np.eye(4), 50, axis=0)
    rng = np.random.default_rng(0)
    assert len(set(spread_seeds(X @ X.T, 9, rng).tolist())) == 9
    nearest = nearest_to_centroids(X @ X.T, 9, rng)
    assert set(nearest // 50) == {0, 1, 2, 3}
    assert len(nearest) == 4
