"""Operations on the features of a Gram matrix: textbook examples, explicit features, oracles."""

from contextlib import nullcontext
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import kneighbors_graph

import dhsk
from dhsk.execution.threads import Threads
from dhsk.gram.neighbors import SLACK, Side, _limits, _sweep, nearest, squared_distances
from dhsk.gram.passes import over_groups

pytestmark = pytest.mark.threads

N, M, DIM, TILE = 53, 31, 6, 10
EPS = np.finfo(float).eps
LINEAR, SQUARE = dhsk.LinearKernel(), dhsk.PolynomialKernel(2, 1.0)


def made(X: Any, kernel: Any = LINEAR, Y: Any = None, **options: Any) -> dhsk.GramMatrix:
    """A matrix of small tiles, computed on demand."""
    return dhsk.compute_gram(X, kernel, Y, **({"tile": TILE} | options))


def monomials(X: Any) -> Any:
    """Features of (1 + <x, y>)²: all monomials of degree 2 of (1, x)."""
    X = np.column_stack([np.ones(len(X)), X])
    pairs = combinations_with_replacement(range(X.shape[1]), 2)
    return np.column_stack([X[:, i] * X[:, j] * (1 if i == j else 2**0.5) for i, j in pairs])


FEATURES: dict[str, tuple[Any, Any]] = {
    "linear": (LINEAR, lambda X: X),
    "polynomial": (SQUARE, monomials),
}


@pytest.fixture(params=FEATURES)
def explicit(request: Any) -> tuple[Any, Any]:
    """A kernel and its features."""
    return FEATURES[request.param]


def test_examples_of_the_textbook() -> None:
    """Zaki & Meira, examples of section 5.3: five irises, linear kernel, printed digits."""
    X = np.array([[5.9, 3.0], [6.9, 3.1], [6.6, 2.9], [4.6, 3.2], [6.0, 2.2]])
    G = made(X)
    K = [
        [43.81, 50.01, 47.64, 36.74, 42.00],
        [50.01, 57.22, 54.53, 41.66, 48.22],
        [47.64, 54.53, 51.97, 39.64, 45.98],
        [36.74, 41.66, 39.64, 31.40, 34.64],
        [42.00, 48.22, 45.98, 34.64, 40.84],
    ]
    np.testing.assert_array_equal(G[:, :].round(2), K)
    assert G.norms()[0].round(2) == 6.62  # sqrt(43.81)
    assert G.distances()[0, 1].round(3) == 1.005  # sqrt(43.81 + 57.22 - 2 * 50.01) = sqrt(1.01)
    assert round(G.mean_norm2(), 2) == 44.29  # of the mean (6.0, 2.88)
    assert round(G.total_variance(), 3) == 0.754
    centred = [
        [0.02, -0.06, -0.06, 0.18, -0.08],
        [-0.06, 0.86, 0.54, -1.19, -0.15],
        [-0.06, 0.54, 0.36, -0.83, -0.01],
        [0.18, -1.19, -0.83, 2.06, -0.22],
        [-0.08, -0.15, -0.01, -0.22, 0.46],
    ]
    C = X - X.mean(axis=0)
    np.testing.assert_allclose(G.centered()[:, :], C @ C.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(G.centered()[:, :], centred, rtol=0, atol=0.0051)
    normalised = [1.0000, 0.9988, 0.9984, 0.9906, 0.9929]
    np.testing.assert_array_equal(G.normalized()[0].round(4), normalised)


def test_norms_and_variance_are_those_of_the_features(explicit: Any, counts: Any) -> None:
    """Of the matrix, and of its centred and its normalised view."""
    kernel, features = explicit
    X = counts(N, DIM)
    G, F = made(X, kernel), features(X)
    unit = F / np.linalg.norm(F, axis=1, keepdims=True)
    for matrix, own in (
        (G, F),
        (G.centered(), F - F.mean(axis=0)),
        (G.normalized(), unit),
        (G.normalized().centered(), unit - unit.mean(axis=0)),
    ):
        rounding = 200 * EPS * np.square(F).sum(axis=1).max()
        np.testing.assert_allclose(matrix.norms(), np.linalg.norm(own, axis=1), atol=rounding)
        mean = own.mean(axis=0)
        np.testing.assert_allclose(matrix.mean_norm2(), mean @ mean, rtol=0, atol=rounding)
        variance = own.var(axis=0).sum()
        np.testing.assert_allclose(matrix.total_variance(), variance, rtol=0, atol=rounding)


def test_distances_are_those_of_the_features(explicit: Any, counts: Any) -> None:
    """Symmetric, centred, normalised and rectangular; a part as of the whole; never below 0."""
    kernel, features = explicit
    X, Y = counts(N, DIM), counts(M, DIM)
    F, P = features(X), features(Y)
    scale = np.square(F).sum(axis=1).max()
    rounding = {"atol": np.sqrt(100 * EPS * scale), "rtol": 1e-10}
    G, R = made(X, kernel), made(X, kernel, Y)
    np.testing.assert_allclose(G.distances(), euclidean_distances(F), **rounding)
    np.testing.assert_allclose(R.distances(), euclidean_distances(F, P), **rounding)
    np.testing.assert_allclose(G.centered().distances(), euclidean_distances(F), **rounding)
    unit = F / np.linalg.norm(F, axis=1, keepdims=True)
    found = G.normalized().distances()
    np.testing.assert_allclose(found, euclidean_distances(unit), rtol=1e-10, atol=1e-7)
    rows, cols = np.array([50, 3, 3]), np.arange(N) % 3 == 0
    np.testing.assert_array_equal(G.distances(rows, cols), G.distances()[rows][:, cols])
    assert not np.diagonal(G.distances()).any()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kernel", [LINEAR, SQUARE, dhsk.HeatKernel(DIM, 0.1)], ids=str)
def test_equal_samples_have_distance_0(rng: Any, kernel: Any, dtype: Any) -> None:
    """Exactly, although K_ij of equal rows differs from K_ii by rounding; others do not."""
    X = rng.uniform(1.0, 2.0, (N, DIM)) * rng.uniform(1, 9, (N, 1))
    X[20:40] = X[:20]
    equal = (X[:, None] == X).all(axis=2)
    G = made(X, kernel, dtype=dtype)
    assert (G.distances()[equal] == 0).all()
    assert (G.distances()[~equal] > 0).all()
    indices, distances = G.neighbors(2)
    np.testing.assert_array_equal(indices[:20, 0], np.arange(20, 40))
    assert not distances[:40, 0].any()
    assert distances[:, 1].all()
    R = made(X, kernel, X[:20], dtype=dtype)
    assert (R.distances()[equal[:, :20]] == 0).all()
    np.testing.assert_array_equal(R.neighbors(1)[0][20:40, 0], np.arange(20))


def test_rounding_hides_no_equal_sample() -> None:
    """A block is looked at if rounding alone keeps an equal sample above the limit."""
    marks = np.array([7], dtype=np.uint64)
    rows = np.ones(1), marks, np.full((1, 1), np.inf), np.full((1, 1), -1), np.array([1e-20])
    cols = np.ones(1), marks, np.full((1, 1), np.inf), np.full((1, 1), -1), np.array([1e-20])
    values = np.array([[1 - 1e-13]])
    _sweep(values, rows, cols, np.array([0, 5]), SLACK["float64"], True, True)
    for found, index in ((rows, 5), (cols, 0)):
        assert (found[2].item(), found[3].item()) == (0.0, index)


def test_equal_hashes_make_no_samples_equal(rng: Any) -> None:
    """Two hashes of 64 bits may be the same by chance: samples far apart stay so."""
    G = made(rng.uniform(1.0, 2.0, (N, DIM)))
    side = Side(np.asarray(G.diagonal()), np.zeros(N, np.uint64))
    rows, cols = slice(0, 5), slice(20, 40)
    (values,) = G.submatrices([(rows, cols)])
    assert (squared_distances(values, side.take(rows), side.take(cols)) > 0).all()
    found = nearest(G.source, G.tiling, (side, side), 3, "float64")
    for one, right in zip(found, G.neighbors(3)[::-1], strict=True):
        np.testing.assert_array_equal(one, right)


def test_a_tie_with_a_smaller_index_is_seen_below_a_rounded_root() -> None:
    """The square of the root of 3 is below 3."""
    root = np.sqrt(3.0)
    assert root**2 < 3.0
    none, limit = np.empty(0, np.uint64), _limits(np.array([root]))
    rows = np.full(1, 2.0), none, np.full((1, 2), root), np.array([[7, 9]]), limit
    cols = np.full(1, 2.0), none, np.full((1, 2), root), np.array([[7, 9]]), limit.copy()
    _sweep(np.full((1, 1), 0.5), rows, cols, np.array([1, 8]), 0.0, True, True)
    assert (rows[3].tolist(), cols[3].tolist()) == ([[7, 8]], [[1, 7]])


def oracle(distances: Any, k: int, *, itself: bool) -> tuple[Any, Any]:
    """Neighbours by sorting whole rows, equally distant ones by index."""
    D = distances.copy()
    if itself:
        np.fill_diagonal(D, np.inf)
    indices = np.argsort(D, axis=1, kind="stable")[:, :k]
    return indices, np.take_along_axis(D, indices, axis=1)


@pytest.mark.parametrize("tile", [pytest.param(3, marks=pytest.mark.slow), 10, 60])
@pytest.mark.parametrize("k", [1, 7, N - 1])
def test_neighbours_are_those_of_sorted_rows(counts: Any, k: int, tile: int) -> None:
    """With many ties, as squared distances of counts are whole numbers; and without any."""
    X = counts(N, DIM)
    for kernel in (LINEAR, dhsk.HeatKernel(DIM, 0.1)):
        G = made(X, kernel, tile=tile)
        for view in (G, G.centered(), G.normalized()):
            expected = oracle(view.distances(), k, itself=True)
            for found, right in zip(view.neighbors(k), expected, strict=True):
                np.testing.assert_array_equal(found, right)
    R = made(X, LINEAR, counts(M, DIM), tile=tile)
    for found, right in zip(
        R.neighbors(min(k, M)), oracle(R.distances(), min(k, M), itself=False), strict=True
    ):
        np.testing.assert_array_equal(found, right)


def test_new_samples_have_neighbours_among_others(counts: Any) -> None:
    """A sample that is on both sides is its own neighbour; the pass is told."""
    X = np.unique(counts(N, DIM), axis=0)
    seen: list[dhsk.Progress] = []
    R = made(X[:20], LINEAR, X, tile=10)
    indices, distances = R.neighbors(3, progress=seen.append)
    np.testing.assert_array_equal(indices[:, 0], np.arange(20))
    assert not distances[:, 0].any()
    assert distances[:, 1:].all()
    assert [event.done for event in seen][-1] == R.tiling.n_tiles


def test_graph_is_that_of_scikit_learn(rng: Any) -> None:
    """Connectivity and distances; a rectangular matrix gives a rectangular graph."""
    X, Y = rng.normal(size=(N, DIM)), rng.normal(size=(M, DIM))
    for mode in ("connectivity", "distance"):
        expected = kneighbors_graph(X, 5, mode=mode).toarray()
        graph = made(X).neighbors_graph(5, mode)
        assert isinstance(graph, csr_array)
        assert graph.indices.dtype == graph.indptr.dtype == np.int32
        np.testing.assert_allclose(graph.toarray(), expected, rtol=1e-7)
    assert made(X, LINEAR, Y).neighbors_graph(3).shape == (N, M)
    with pytest.raises(dhsk.InputError, match="mode must be 'connectivity' or 'distance'"):
        made(X).neighbors_graph(3, "weights")
    with pytest.raises(dhsk.InputError, match="k must be at most 52, the samples to"):
        made(X).neighbors(N)


def aligned(K: Any, T: Any) -> float:
    """Cosine of the angle between two centred matrices."""
    H = np.eye(len(K)) - 1 / len(K)
    K, T = H @ K @ H, H @ T @ H
    return float((K * T).sum() / np.linalg.norm(K) / np.linalg.norm(T))


@pytest.mark.slow
def test_alignment_is_the_cosine_of_centred_matrices(counts: Any, rng: Any) -> None:
    """With classes of any type, numbers of a regression, and features of labels."""
    X = counts(N, DIM)
    names = np.array(["a", "b", "c"])[rng.integers(0, 3, N)]
    signs, target, many = 2 * (names == "a") - 1, rng.normal(size=N), rng.normal(size=(N, 4))
    for kernel in (LINEAR, dhsk.HeatKernel(DIM, 0.05)):
        G = made(X, kernel)
        for matrix in (G, G.centered(), G.normalized()):
            K = np.asarray(matrix)
            for y, T in (
                (names, np.equal.outer(names, names) * 1.0),
                (signs, np.outer(signs, signs)),
                (target, np.outer(target, target)),
                (many, many @ many.T),
            ):
                np.testing.assert_allclose(matrix.alignment(y), aligned(K, T), rtol=1e-11)


def test_alignment_of_features_with_themselves_is_1(rng: Any) -> None:
    """Features at a distance d from 0 lose d³ eps; without care it would be d⁴ eps."""
    X = rng.normal(size=(N, 3))
    for far in (0.0, 1e3):
        distance = max(1.0, far * 3**0.5)
        found = made(X + far).alignment(X)
        np.testing.assert_allclose(found, 1.0, rtol=0, atol=max(4 * N, distance**3) * EPS)


def test_what_cannot_be_aligned_is_refused(counts: Any) -> None:
    """Constant labels and kernels, labels of other samples."""
    G = made(counts(N, DIM))
    for y, words in (
        (np.ones(N), "y: all 53 labels are 1, but at least two classes are needed"),
        (np.ones((N, 2)), "all rows of y are the same"),
        (np.ones(N - 1), "y: 52 labels for 53 samples"),
        (np.full(N - 1, 0.5), r"a row for each of the 53 samples, but its shape is \(52,\)"),
        (np.full(N, np.nan), "y must be finite numbers"),
        (["a", None] * 26 + ["a"], "y: row 1 .* has no label"),
        ([["a", "b"]] * N, "y must be finite numbers"),
    ):
        with pytest.raises(dhsk.InputError, match=words):
            G.alignment(y)
    for same in (np.ones((N, DIM)), np.full((N, 1000), 0.1)):  # with rounding
        with pytest.raises(dhsk.InputError, match="the kernel is constant on these samples"):
            made(same).alignment(np.arange(N) % 7)


def test_whole_numbers_like_counts_are_classes_with_a_warning(counts: Any) -> None:
    """The warning says how to give them as numbers."""
    G, y = made(counts(N, DIM)), np.arange(N)
    with pytest.warns(dhsk.InputWarning, match=r"53 different .* give them as y\[:, None\]"):
        as_classes = G.alignment(y)
    assert as_classes == G.alignment(y.astype(str)) != G.alignment(y[:, None])


def test_rectangular_matrices_are_refused(counts: Any) -> None:
    """Where samples are needed on both sides, in words that say what to do."""
    R = made(counts(N, DIM), LINEAR, counts(M, DIM))
    for ask in (
        R.norms,
        R.mean_norm2,
        R.total_variance,
        lambda: R.alignment(np.arange(N)),
        lambda: dhsk.maximum_mean_discrepancy(R, np.arange(N) % 2),
    ):
        with pytest.raises(dhsk.InputError, match="53 samples with 31 others: compute it without"):
            ask()


def test_negative_diagonals_have_no_norms() -> None:
    """The cube of a Laplacian is indefinite: norms, distances and neighbours refuse it."""
    path = csr_array(np.diag([-1.0, -2.0, -1.0]) + np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1))
    G = dhsk.graph_gram(path, kind="power", power=3)
    for ask in (G.norms, G.distances, lambda: G.neighbors(1)):
        with pytest.raises(dhsk.InputError, match=r"sample 0 .* has K\(x, x\) = -5 below 0"):
            ask()
    with pytest.raises(dhsk.InputError, match=r"sample 0 .* has no norm in <GramMatrix"):
        G.normalized().diagonal()


def test_each_takes_one_pass(counts: Any, monkeypatch: Any) -> None:
    """Neighbours, alignment and all permutations; and reads no tile twice."""
    passes: list[str] = []

    def counted(function: Any, *given: Any) -> Any:
        passes.append(function.__name__)
        return over_groups(function, *given)

    for module in ("passes", "neighbors", "moments"):
        monkeypatch.setattr(f"dhsk.gram.{module}.over_groups", counted)
    G = made(counts(N, DIM))
    G.neighbors(3)
    G.alignment(np.arange(N) % 7)
    dhsk.maximum_mean_discrepancy(G, np.arange(N) % 2, permutations=300)
    assert passes == ["_nearest_of_group", "_of_group", "_of_group"]


@pytest.mark.slow
def test_bits_are_the_same_on_all_executors(
    counts: Any, client: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Threads in any number and workers, stored, derived and computed; tiles of two rows."""
    X = counts(40, DIM)
    X[30:] = X[:10]
    groups = np.arange(40) % 2
    stored = made(X, LINEAR, store=tmp_path / "s", tile=2)

    def everything(G: Any) -> list[Any]:
        G = G.with_kernel(G.kernel)  # without what it keeps
        found = dhsk.maximum_mean_discrepancy(G, groups, 20)
        numbers = [G.alignment(groups), G.total_variance(), found.unbiased, found.p_value]
        return [*G.neighbors(5), *G.normalized().neighbors(3), numbers]

    for G in (stored, stored.with_kernel(SQUARE), made(X, SQUARE, tile=2)):
        on_workers = everything(G)
        for cores in (1, 4):
            here = nullcontext(Threads(cores))
            with monkeypatch.context() as patch:
                patch.setattr("dhsk.gram.passes.current_executor", lambda here=here: here)
                for found, expected in zip(everything(G), on_workers, strict=True):
                    np.testing.assert_array_equal(found, expected)
