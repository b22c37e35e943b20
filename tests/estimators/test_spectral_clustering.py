"""Spectral clustering: scikit-learn's embedding and labels, in memory and by passes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.manifold import SpectralEmbedding
from sklearn.metrics import adjusted_rand_score

import dhsk
from dhsk.solvers import eigenpairs

pytestmark = pytest.mark.threads

DIM, K = 30, 3


@pytest.fixture
def topics(rng: np.random.Generator) -> tuple[Any, Any]:
    """Counts of three groups of samples, and their groups."""
    rates = rng.gamma(0.3, 1.0, (K, DIM))
    groups = np.repeat(np.arange(K), 30)
    X = rng.poisson(40 * rates[groups] / rates[groups].sum(axis=1, keepdims=True))
    return X.astype(float), groups


@pytest.mark.parametrize("way", ["in memory", "in passes"])
@pytest.mark.parametrize("assign_labels", ["kmeans", "cluster_qr"])
def test_labels_and_embedding_are_scikit_learns(
    topics: tuple[Any, Any], way: str, assign_labels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same affinity, up to the names of the clusters and the signs of eigenvectors."""
    if way == "in passes":
        monkeypatch.setattr(eigenpairs, "SMALL", 20)
    X, groups = topics
    model = dhsk.HeatSpectralClustering(
        K, time_scale=0.7, assign_labels=assign_labels, tol=1e-12
    ).fit(X)
    affinity = model.kernel_(dhsk.hyperspherical_map(X))
    expected = SpectralClustering(
        K, affinity="precomputed", assign_labels=assign_labels, random_state=0
    ).fit(affinity)
    assert adjusted_rand_score(groups, expected.labels_) == 1  # well separated
    assert adjusted_rand_score(model.labels_, expected.labels_) == 1
    # SpectralEmbedding leaves out the first vector, which is constant.
    own = SpectralEmbedding(K - 1, affinity="precomputed").fit_transform(affinity)
    others = model.embedding_[:, 1:]
    signs = np.sign((own * others).sum(axis=0))
    assert np.abs(own * signs - others).max() <= 1e-8
    assert np.ptp(model.embedding_[:, 0]) <= 1e-8
    assert model.eigenvalues_[0] == pytest.approx(1, abs=1e-12)
    assert model.residuals_.max() <= 1e-12


def test_passes_memory_and_journal(
    topics: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By passes, from a store, and once more from the journal: the same labels."""
    X, _ = topics
    plain = dhsk.HeatSpectralClustering(K).fit_predict(X)
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    options: dict[str, Any] = {"store": tmp_path / "gram", "journal": tmp_path / "journal"}
    for _ in range(2):
        assert (dhsk.HeatSpectralClustering(K, **options).fit_predict(X) == plain).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 91}, "n_clusters=91 is above the number of samples, n_samples=90"),
        ({"n_init": 0}, "n_init"),
        ({"assign_labels": [1, 2]}, r"must be 'kmeans' or 'cluster_qr', but it is \[1, 2\]"),
        (
            {"assign_labels": "discretize"},
            "must be 'kmeans' or 'cluster_qr', but it is 'discretize'",
        ),
    ],
)
def test_wrong_parameters_are_refused(topics: tuple[Any, Any], options: Any, words: str) -> None:
    """In words."""
    with pytest.raises(dhsk.InputError, match=words):
        dhsk.HeatSpectralClustering(**options).fit(topics[0])


def test_a_sample_without_affinity_is_named() -> None:
    """Orthogonal to all others."""
    X = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(dhsk.InputError, match=r"kernel values of sample 2 .* sum to 0"):
        dhsk.HeatSpectralClustering(2, kernel="cosine").fit(X)
