"""Representatives of classes: against K-means of scikit-learn, and what they refuse."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans

import dhsk
from dhsk.progress import Progress
from dhsk.validation import representatives as home

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def blobs() -> tuple[Any, Any]:
    """Two classes of eight tight clusters each, some with many samples and some with few."""
    rng = np.random.default_rng(0)
    sizes = np.array([40, 30, 20, 10, 5, 5, 5, 5])
    centres = 10 * rng.normal(size=(16, 5))
    X = np.vstack(
        [c + 0.1 * rng.normal(size=(n, 5)) for c, n in zip(centres, np.tile(sizes, 2), strict=True)]
    )
    return X, np.repeat(["a", "b"], 120)


def test_each_cluster_has_one_representative(blobs: Any) -> None:
    """With as many representatives as clusters: the samples nearest to the clusters' means."""
    X, y = blobs
    chosen = dhsk.representatives(X, y, 8, repeats=30)
    expected = []
    ends = np.cumsum(np.tile([40, 30, 20, 10, 5, 5, 5, 5], 2))
    for begin, end in zip(np.append(0, ends), ends, strict=False):
        own = X[begin:end]
        distances = np.linalg.norm(own - own.mean(axis=0), axis=1)
        expected.append(begin + int(distances.argmin()))
    np.testing.assert_array_equal(chosen, expected)


@pytest.mark.slow
def test_counts__are_those_of_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that scikit-learn's K-means takes most often are the ones that are chosen."""
    X = np.random.default_rng(3).normal(size=(60, 3))
    y = np.zeros(60, int)
    taken: Counter[int] = Counter()
    for seed in range(150):
        centroids = KMeans(6, n_init=1, random_state=seed).fit(X).cluster_centers_
        distances = ((X[:, None] - centroids) ** 2).sum(axis=2)
        taken.update(set(distances.argmin(axis=0).tolist()))
    (
        (first, most),
        *_,
    ) = taken.most_common()
    assert most > 1.2 * taken.most_common()[1][1], "the case needs a clear winner"
    assert first in dhsk.representatives(X, y, 6, repeats=150)


def test_classes_do_not_depend_on_each_other(blobs: Any) -> None:
    """The representatives of a class are the same without the other classes."""
    X, y = blobs
    both = dhsk.representatives(X, y, 5, repeats=7, random_state=3)
    alone = dhsk.representatives(X[:120], y[:120], 5, repeats=7, random_state=3)
    np.testing.assert_array_equal(both[both < 120], alone)
    assert np.bincount(both // 120).tolist() == [5, 5]


def test_same_seed_same_choice__on_any_number_of_threads(
    blobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which clusterings end changes nothing; another seed does."""
    X, y = blobs
    found = []
    for cores in (1, 4):
        monkeypatch.setattr(home, "core_count", lambda cores=cores: cores)
        found.append(dhsk.representatives(X, y, 11, repeats=9).tolist())
    assert found[0] == found[1]
    assert found[0] != dhsk.representatives(X, y, 11, repeats=9, random_state=1).tolist()


@pytest.mark.slow
def test_large_classes_are_clustered_by_scikit_learn(
    blobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the matrix of inner products the clusters are the same, dense and sparse."""
    X, y = blobs
    expected = dhsk.representatives(X, y, 8, repeats=12)
    monkeypatch.setattr(home, "_MOST_PRODUCTS", 10)
    for samples in (X, csr_array(X)):
        found = dhsk.representatives(samples, y, 8, repeats=12)
        np.testing.assert_array_equal(found, expected)


def test_sparse_samples_and_maps() -> None:
    """CSR gives what the dense array gives; a map clusters the points on the sphere."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.7, size=(90, 12)) * rng.uniform(0.8, 1.2, size=(90, 12))  # no ties
    counts[:, 0] += 0.1
    y = np.repeat([0, 1, 2], 30)
    for name, image in (
        ("identity", counts),
        ("hyperspherical", dhsk.hyperspherical_map(counts)),
        ("projective", dhsk.projective_map(counts)),
    ):
        expected = dhsk.representatives(image, y, 4, repeats=5)
        for X in (counts, csr_array(counts)):
            found = dhsk.representatives(X, y, 4, repeats=5, sphere_map=name)
            np.testing.assert_array_equal(found, expected)


def test_whole_classes__and_equal_samples() -> None:
    """As many as there are means all of them, also where samples are equal."""
    X = np.ones((6, 2))
    np.testing.assert_array_equal(dhsk.representatives(X, [0, 0, 0, 1, 1, 1], 3), np.arange(6))
    assert len(dhsk.representatives(X, [0, 0, 0, 1, 1, 1], 2)) == 4


def test_progress_counts_clusterings(blobs: Any) -> None:
    """One event before the first and one after each."""
    events: list[Progress] = []
    dhsk.representatives(*blobs, 3, repeats=4, progress=events.append)
    assert [event.done for event in events] == list(range(9))
    assert {(event.stage, event.total) for event in events} == {("clusterings", 8)}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"m": 121}, "class a has 120 samples, fewer than m = 121: choose m of at most 120"),
        ({"m": 0}, "m must be a whole number, at least 1"),
        ({"m": 2, "repeats": 0}, "repeats must be a whole number, at least 1"),
        ({"m": 2, "random_state": -1}, "random_state must be"),
        ({"m": 2, "sphere_map": "hyperspherical"}, "row 0"),
    ],
)
def test_refused(blobs: Any, options: Any, words: str) -> None:
    """What cannot be used is told before anything is clustered."""
    with pytest.raises(dhsk.InputError, match=words):
        dhsk.representatives(*blobs, **options)
