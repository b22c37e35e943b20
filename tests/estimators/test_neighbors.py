"""HeatKernelNeighbors beside scikit-learn's KNeighborsTransformer, and what takes its graph."""

import tracemalloc
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import DBSCAN, HDBSCAN, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.kernels.centre import marked_rows
from dhsk.progress import Progress

Neighbors = dhsk.HeatKernelNeighbors

N, NEW, DIM = 90, 20, 64
TIME = 0.5

ROUNDING = {"rtol": 1e-9, "atol": float(np.sqrt(64 * np.finfo(np.float64).eps))}
"""A squared distance is off by some units of rounding of K(x, x) = 1, so 0 is off by their root."""


ROUNDED = 1e-12
"""Of distances near 1: some hundred units of rounding are 2e-14, and half of the bits are not lost
as they are near 0."""


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, Any]:
    """Images, their labels, and other images."""
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:N], y[:N], X[N : N + NEW]


@cache
def heat_kernel() -> dhsk.HeatKernel:
    """The kernel, which is proven once."""
    return dhsk.HeatKernel.at_scale(DIM, TIME)


def heat_distance(x: Any, y: Any) -> float:
    """Distance of the heat kernel's features, from unit vectors."""
    K = heat_kernel().of_cosine([x @ y])[0]
    return float(np.sqrt(max(0.0, 2.0 - 2.0 * K)))


def theirs(n_neighbors: int = 5, mode: str = "distance", metric: Any = heat_distance) -> Any:
    """scikit-learn's transformer, by brute force on the images of samples on the sphere."""
    found = KNeighborsTransformer(
        mode=mode, n_neighbors=n_neighbors, metric=metric, algorithm="brute"
    )
    return make_pipeline(FunctionTransformer(dhsk.hyperspherical_map), found)


def assert_same_graph(found: Any, expected: Any) -> None:
    """Same neighbours in the same order, and distances up to rounding."""
    assert isinstance(found, csr_array)
    assert found.shape == expected.shape
    assert found.indices.dtype == found.indptr.dtype == np.int32
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, **ROUNDING)


# The graph


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("sparse", [False, True])
def test_graph_is_that_of_scikit_learn(digits: Any, mode: str, sparse: bool) -> None:
    """Of the samples, each its own first neighbour, and of others; dense and sparse."""
    X, _, new = digits
    kind = csr_array if sparse else np.asarray
    ours, other = Neighbors(5, TIME, mode=mode), theirs(5, mode).fit(X)
    graph = ours.fit_transform(kind(X))
    assert_same_graph(graph, other.transform(X))
    np.testing.assert_array_equal(graph.indices[graph.indptr[:-1]], np.arange(N))
    assert_same_graph(ours.transform(kind(X)), other.transform(X))
    assert_same_graph(ours.transform(kind(new)), other.transform(new))


def test_neighbours_are_those_of_the_angle_at_any_time(digits: Any) -> None:
    """The time changes distances alone."""
    X, _, new = digits
    other = theirs(7, "connectivity", "cosine").fit(X)
    for time in (0.1, 1.0, 3.0):
        ours = Neighbors(7, time, mode="connectivity").fit(X)
        assert_same_graph(ours.transform(new), other.transform(new))
        assert_same_graph(ours.fit_transform(X), other.transform(X))


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        ("linear", "float64"),
        ("linear", "float32"),
        ("polynomial", "float64"),
        ("gaussian", "float64"),
        ("cosine", "float32"),
        (dhsk.SmoothedKernel(dhsk.CosineKernel(), 0.5), "float64"),
    ],
    ids=str,
)
def test_graph_of_other_kernels(digits: Any, kernel: Any, dtype: str) -> None:
    """By the formula, from the whole matrix."""
    X, _, new = digits
    ours = Neighbors(4, kernel=kernel, mode="connectivity", dtype=dtype).fit(X)
    for given in (X, new):
        Y = None if given is X else X
        D = np.asarray(dhsk.compute_gram(given, ours.kernel_, Y).distances())
        indices = np.argsort(D, axis=1, kind="stable")[:, :4]
        np.testing.assert_array_equal(ours.transform(given).indices.reshape(-1, 4), indices)
        if given is X:
            np.testing.assert_array_equal(ours.fit_transform(X).indices.reshape(N, 4), indices)


def test_equal_samples_and_ties_are_in_the_order_of_their_indices() -> None:
    """More equal ones than neighbours, so that a sample may be missing among its own."""
    X = np.repeat(np.eye(3), 6, axis=0)
    for ours in (Neighbors(3, 1.0), Neighbors(3, kernel="linear"), Neighbors(9, 1.0)):
        expected = np.argsort(1 - X @ X.T, axis=1, kind="stable")[:, : ours.n_neighbors + 1]
        for graph in (ours.fit_transform(X), ours.transform(X)):
            np.testing.assert_array_equal(graph.indices.reshape(18, -1), expected)
            assert (graph.data.reshape(18, -1)[:, :4] == 0).all()


def test_kneighbors_are_those_of_scikit_learn(digits: Any) -> None:
    """Of new samples, and of those of the fit without themselves."""
    X, _, new = digits
    ours, other = Neighbors(5, TIME).fit(X), theirs().fit(X)
    on_sphere = dhsk.hyperspherical_map(new)
    for given, mapped, options in ((new, on_sphere, {}), (None, None, {"n_neighbors": 8})):
        distances, indices = other[-1].kneighbors(mapped, **options)
        found = ours.kneighbors(given, **options)
        np.testing.assert_array_equal(found[1], indices)
        np.testing.assert_allclose(found[0], distances, **ROUNDING)
        alone = ours.kneighbors(given, **options, return_distance=False)
        np.testing.assert_array_equal(alone, indices)
        for mode in ("connectivity", "distance"):
            assert_same_graph(
                ours.kneighbors_graph(given, **options, mode=mode),
                other[-1].kneighbors_graph(mapped, **options, mode=mode),
            )


def test_a_client_finds_the_same(client: Any) -> None:
    """For both ways, which agree; new samples in several blocks, each against several."""
    X = np.random.default_rng(0).random((2000, DIM))
    here, there = Neighbors(5, TIME).fit(X), Neighbors(5, TIME, client=client)
    graph = here.fit_transform(X)
    assert_same_graph(there.fit_transform(X), graph)
    seen: list[Progress] = []
    with dhsk.show_progress(seen.append):
        found = there.transform(X[:1600])
    assert len({event.done for event in seen if event.stage == "predictions"}) > 2
    assert_same_graph(found, here.transform(X[:1600]))
    assert_same_graph(found, graph[:1600])


def test_no_matrix_of_all_pairs_is_in_memory() -> None:
    """Neither of a fit nor of new samples."""
    n = 5000
    X = np.random.default_rng(0).random((n, 8))
    ours = Neighbors(5, 1.0)
    ours.fit_transform(X[:50])  # compiled
    for call in (ours.fit_transform, ours.transform):
        tracemalloc.start()
        call(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * n * n / 4


def few_counts(n: int, dim: int) -> Any:
    """CSR counts in 20 features of each sample."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([rng.choice(dim, 20, replace=False) for _ in range(n)])
    data = rng.integers(1, 30, columns.size).astype(float)
    return csr_array((data, columns, np.arange(0, columns.size + 1, 20)), shape=(n, dim))


def test_log_ratios_of_sparse_samples_are_those_of_dense_ones() -> None:
    """Marked rows, full ones, and the centre; of those of the fit and of others."""
    X = few_counts(N, DIM).toarray()
    X[::7] += 1.0
    X[5] = 0.0
    ours = Neighbors(5, TIME, sphere_map="clr", zero_rows="center")
    with pytest.warns(dhsk.ZeroRowsWarning):
        dense, sparse = (clone(ours).fit(kind(X)) for kind in (np.asarray, csr_array))
    marks = marked_rows(sparse._rows)
    assert marks is not None
    assert 0 < marks.sum() < len(X)
    for given in (None, X[:10] + X[10:20]):
        own = given if given is None else csr_array(given)
        distances, indices = dense.kneighbors(given)
        found = sparse.kneighbors(own)
        np.testing.assert_array_equal(found[1], indices)
        np.testing.assert_allclose(found[0], distances, rtol=ROUNDED)
    with pytest.warns(dhsk.ZeroRowsWarning):
        graph, other = (clone(ours).fit_transform(kind(X)) for kind in (csr_array, np.asarray))
    np.testing.assert_array_equal(graph.indices, other.indices)
    np.testing.assert_allclose(graph.data, other.data, rtol=ROUNDED)


def test_log_ratios_of_sparse_samples_are_not_filled_in() -> None:
    """All their entries would take 480 MB."""
    X = few_counts(1_000, 40_000)
    ours = Neighbors(5, kernel="cosine", sphere_map="clr")
    ours.fit_transform(X[:50])  # compiled
    for call in (lambda: ours.fit_transform(X), lambda: ours.transform(X), ours.kneighbors):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 8 * X.shape[0] * X.shape[1] / 4


# Before what takes it

NEAREST = "precomputed_nearest_neighbors"
SMALL = {"perplexity": 4.0, "init": "random", "random_state": 0, "max_iter": 300}


@pytest.mark.parametrize(
    ("last", "found"),
    [
        (SpectralClustering(4, affinity=NEAREST, n_neighbors=30, random_state=0), "labels_"),
        (DBSCAN(eps=0.62, min_samples=4, metric="precomputed"), "labels_"),
        (Isomap(metric="precomputed", n_neighbors=30), "dist_matrix_"),
        (LocalOutlierFactor(metric="precomputed", n_neighbors=8), "negative_outlier_factor_"),
        (TSNE(**SMALL, metric="precomputed"), "kl_divergence_"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_pipelines_of_scikit_learn_take_it(digits: Any, last: Any, found: str) -> None:
    """With the result that they have after scikit-learn's transformer."""
    X = digits[0]
    with threadpool_limits(1):  # threads of t-SNE that wait for one another on a busy machine
        ours = make_pipeline(Neighbors(30, TIME), clone(last)).fit(X)[-1]
        expected = make_pipeline(theirs(30), clone(last)).fit(X)[-1]
    if found == "labels_":
        assert len(set(ours.labels_)) >= 3, ours.labels_
        np.testing.assert_array_equal(ours.labels_, expected.labels_)
    else:
        np.testing.assert_allclose(getattr(ours, found), getattr(expected, found), rtol=1e-6)


def test_a_classifier_takes_it(digits: Any) -> None:
    """Fitted to one part, predicting the other, with fewer neighbours than the graph has."""
    X, y, new = digits
    last = KNeighborsClassifier(6, metric="precomputed", weights="distance")
    ours = make_pipeline(Neighbors(8, TIME), last).fit(X, y).predict_proba(new)
    expected = make_pipeline(theirs(8), clone(last)).fit(X, y).predict_proba(new)
    np.testing.assert_allclose(ours, expected, rtol=1e-6)


def test_hdbscan_takes_it_made_symmetric(digits: Any) -> None:
    """With the clusters of all distances; equal samples, whose distances are 0, are near ones."""
    X = np.concatenate([digits[0], digits[0][::3]])
    graph = Neighbors(30, TIME).fit_transform(X)
    graph.data.clip(1e-9, out=graph.data)
    clustering = HDBSCAN(metric="precomputed", min_samples=3, copy=True)
    ours = clone(clustering).fit(graph.maximum(graph.T))
    expected = clone(clustering).fit(np.asarray(dhsk.compute_gram(X, heat_kernel()).distances()))
    assert ours.labels_.max() >= 1
    assert adjusted_rand_score(ours.labels_, expected.labels_) == 1.0


def test_columns_have_names_and_steps_take_options(digits: Any) -> None:
    """One name for each sample of the fit."""
    ours = Neighbors(3, TIME).fit(digits[0])
    assert ours.n_samples_fit_ == N
    names = ours.get_feature_names_out()
    assert (len(names), names[0]) == (N, "heatkernelneighbors0")


# Refusals and progress


def test_too_many_neighbours_are_refused_before_any_pass(
    digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the largest number that there may be."""
    X, _, new = digits
    monkeypatch.setattr("dhsk.gram.neighbors.over_groups", None)
    connected = Neighbors(N, TIME, mode="connectivity")
    assert connected.fit(X).transform(X[:2]).shape == (2, N)
    for call, most in (
        (lambda: Neighbors(N, TIME).fit_transform(X), "at most 89 in mode 'distance', as a sample"),
        (lambda: Neighbors(N, TIME).fit(X).transform(new), "at most 89 in mode 'distance'"),
        (lambda: Neighbors(2, TIME).fit(X).kneighbors(n_neighbors=N), "at most 89, but it is 90"),
        (lambda: Neighbors(2, TIME).fit(X).kneighbors(new, 91), "91: n_samples_fit=90"),
    ):
        with pytest.raises(dhsk.InputError, match=f"n_neighbors must be .*{most}"):
            call()
    for wrong in ("weights", np.zeros(2)):
        with pytest.raises(dhsk.InputError, match="mode must be 'connectivity' or 'distance', but"):
            Neighbors(3, TIME, mode=wrong).fit(X)  # type: ignore[arg-type]
        with pytest.raises(dhsk.InputError, match="mode must be"):
            connected.kneighbors_graph(new, mode=wrong)  # type: ignore[arg-type]
    with pytest.raises(dhsk.InputError, match="n_neighbors must be a whole number"):
        Neighbors(2.5, TIME).fit(X)  # type: ignore[arg-type]


def test_a_single_sample_has_itself() -> None:
    """And no other."""
    graph = Neighbors(1, 1.0, mode="connectivity").fit_transform(np.ones((1, 3)))
    assert graph.toarray().tolist() == [[1.0]]


def test_the_pass_and_predictions_are_told(digits: Any) -> None:
    """By the argument of `fit_transform`, and within `show_progress`."""
    seen: list[Progress] = []
    ours = Neighbors(3, TIME)
    ours.fit_transform(digits[0], progress=seen.append)
    ends = {event.stage: event for event in seen}
    assert {"reading", "tiles"} <= set(ends)
    assert all(event.done == event.total for event in ends.values())
    assert seen[-1].share == 1.0
    for call, stage in ((ours.transform, "predictions"), (ours.kneighbors, "tiles")):
        seen.clear()
        with dhsk.show_progress(seen.append):
            call(*((digits[2],) if call == ours.transform else ()))
        assert seen[-1].stage == stage
