"""Centred and normalised views: numpy's matrices, identities, and no second store."""

import pickle
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import KernelCenterer

import dhsk
from dhsk.execution.threads import Threads

pytestmark = pytest.mark.threads

N, DIM, TILE = 53, 12, 10
EPS = np.finfo(float).eps
KERNELS = [dhsk.HeatKernel(DIM, 0.1), dhsk.LinearKernel(), dhsk.PolynomialKernel(2, 1.0)]

ROUNDING = 200 * EPS
"""Sums of N numbers in another order, and the few operations of a view, relative to the largest."""


def made(kernel: Any, X: Any, **options: Any) -> dhsk.GramMatrix:
    """A matrix of small tiles, computed on demand."""
    return dhsk.compute_gram(X, kernel, tile=TILE, **options)


def centred(K: Any) -> Any:
    """(I - 11'/N) K (I - 11'/N), as it is written."""
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def normalised(K: Any) -> Any:
    """Every entry over the roots of its two diagonal entries."""
    return K / np.sqrt(np.outer(np.diagonal(K), np.diagonal(K)))


VIEWS: dict[str, tuple[Any, Any]] = {
    "centered": (lambda G: G.centered(), centred),
    "normalized": (lambda G: G.normalized(), normalised),
    "normalized of centered": (
        lambda G: G.centered().normalized(),
        lambda K: normalised(centred(K)),
    ),
    "centered of normalized": (
        lambda G: G.normalized().centered(),
        lambda K: centred(normalised(K)),
    ),
}


@pytest.fixture(params=VIEWS)
def view(request: Any) -> tuple[Any, Any]:
    """A view, and what it is in numpy."""
    return VIEWS[request.param]


@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_values_and_products_are_those_of_numpy(
    view: Any, kernel: Any, counts: Any, rng: Any
) -> None:
    """Entries by tile and by index, the diagonal, means, and products from both sides."""
    seen, of_numpy = view
    G = made(kernel, counts(N, DIM))
    V, K = seen(G), of_numpy(np.asarray(G))
    tolerance = ROUNDING * np.abs(np.asarray(G)).max() / np.diagonal(np.asarray(G)).min()
    tolerance *= max(1.0, np.abs(K).max())
    for found, expected in (
        (np.asarray(V), K),
        (V[3:40, 7:11], K[3:40, 7:11]),
        (V.submatrix([50, 2, 2], [0, 33]), K[np.ix_([50, 2, 2], [0, 33])]),
        (V.diagonal(), np.diagonal(K)),
        (V.mean(1), K.mean(1)),
        (V.to_dask().compute(), K),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    for W in (rng.normal(size=N), rng.normal(size=(N, 3))):
        many = N * np.abs(W).max() * tolerance
        np.testing.assert_allclose(V @ W, K @ W, rtol=0, atol=many)
        np.testing.assert_allclose(W.T @ V, W.T @ K, rtol=0, atol=many)
        np.testing.assert_allclose(V.as_linear_operator() @ W, K @ W, rtol=0, atol=many)
    assert (V.shape, V.dtype, V.symmetric, V.T is V) == (G.shape, G.dtype, True, True)


def test_bits_are_symmetric(view: Any, counts: Any) -> None:
    """Mirrored tiles and those on the diagonal; of an entry alone as of the whole matrix."""
    V = view[0](made(dhsk.LinearKernel(), counts(N, DIM)))
    whole = np.asarray(V)
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(np.diagonal(whole), V.diagonal())
    assert V[11, 40] == whole[40, 11]


def test_rows_of_the_centred_matrix_sum_to_zero(counts: Any) -> None:
    """Exactly in products, and in entries up to the rounding of each."""
    C = made(KERNELS[0], counts(N, DIM)).centered()
    assert not np.any(C @ np.ones(N))
    assert C.mean() == 0
    assert np.abs(np.asarray(C).sum(axis=1)).max() <= 4 * N * EPS
    far = 1e8 + np.arange(N) / 7  # whose mean a float64 cannot hold exactly
    np.testing.assert_allclose(C @ far, C @ (far - 1e8), rtol=0, atol=N * N * EPS)


def test_views_are_idempotent(counts: Any) -> None:
    """The same view, and the same values once they are centred in numpy again."""
    G = made(KERNELS[1], counts(N, DIM))
    for V in (G.centered(), G.normalized()):
        assert getattr(V, V.name)() is V
    C = np.asarray(G.centered())
    np.testing.assert_allclose(KernelCenterer().fit_transform(C), C, rtol=0, atol=50 * EPS * N)
    np.testing.assert_array_equal(G.normalized().diagonal(), np.ones(N))


def test_nothing_is_lost_where_the_mean_is_large(counts: Any) -> None:
    """Samples far from 0: the features less their mean are small beside the kernel's values."""
    X = counts(N, DIM)
    near = X - X.mean(axis=0)
    C = made(dhsk.LinearKernel(), X + 1000.0).centered()
    error = 8 * EPS * (1000.0**2 * DIM)  # that of an entry of K, which nothing can repair
    np.testing.assert_allclose(np.asarray(C), near @ near.T, rtol=0, atol=error)
    np.testing.assert_allclose(C @ near, near @ (near.T @ near), rtol=0, atol=error * N)


def test_float32_loses_nothing_more(counts: Any) -> None:
    """Entries of a float32 matrix are adjusted and summed in float64."""
    G = made(KERNELS[0], counts(N, DIM), dtype="float32")
    K = np.asarray(G, dtype=np.float64)
    assert G.centered()[:, :].dtype == np.float32
    exact = centred(K)
    (block,) = G.centered().submatrices([(slice(None), slice(None))])
    np.testing.assert_allclose(G.centered() @ np.eye(N), exact, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(block, exact, rtol=0, atol=np.finfo("f4").eps * np.abs(exact).max())


def test_a_sample_of_norm_0_is_named(counts: Any) -> None:
    """Of the kernel, and of the centred matrix, where rounding leaves a little of it."""
    X = counts(N, DIM)
    X[17] = 0.0
    with pytest.raises(dhsk.InputError, match=r"sample 17 .* has norm 0 in <GramMatrix .* 1 of 53"):
        _ = made(dhsk.LinearKernel(), X).normalized()[0, 0]
    X[:] -= X.mean(axis=0)
    X[30] = 0.0
    X[:30] -= X.sum(axis=0) / 30
    for shift in (7.3, 11.1, 30.7, 99.9):  # with rounding above 0, and below
        V = made(dhsk.LinearKernel(), X + shift).centered().normalized()
        with pytest.raises(dhsk.InputError, match=r"sample 30 .* in <centered view of <GramMatrix"):
            _ = V @ np.ones(N)


def test_rectangular_matrices_are_refused(counts: Any) -> None:
    """In words that say what to do."""
    R = made(KERNELS[0], counts(N, DIM), Y=counts(31, DIM))
    for name in ("centered", "normalized"):
        with pytest.raises(dhsk.InputError, match="of 53 samples with 31 others: compute it witho"):
            getattr(R, name)()
    with pytest.raises(dhsk.InputError, match=r"cannot multiply \(53, 53\) by \(31,\)"):
        made(KERNELS[0], counts(N, DIM)).centered() @ np.ones(31)


def test_statistics_take_one_pass_and_are_kept(counts: Any, monkeypatch: Any) -> None:
    """Also by another view of the same matrix; a product of a centred view needs none."""
    G, passes = made(KERNELS[1], counts(N, DIM)), []
    product = dhsk.GramMatrix.__matmul__

    def counted(self: Any, V: Any) -> Any:
        passes.append(np.shape(V))
        return product(self, V)

    monkeypatch.setattr(dhsk.GramMatrix, "__matmul__", counted)
    G.centered() @ np.ones((N, 2))
    assert passes == [(N, 2)]
    for _ in range(2):
        C = G.centered()
        assert np.asarray(C).shape == (N, N)
        C.diagonal()
        C.normalized()[:5, :5]
        G.mean()
    assert passes == [(N, 2), (N,)]


def test_pickled_with_its_numbers(counts: Any, monkeypatch: Any, tmp_path: Path) -> None:
    """So a worker makes no pass for them; a part of a pass gets its own part of them."""
    G = made(KERNELS[0], counts(N, DIM), store=tmp_path / "s")
    V = G.centered().normalized()
    expected, data = np.asarray(V), pickle.dumps(V)
    monkeypatch.setattr(dhsk.GramMatrix, "__matmul__", None)
    np.testing.assert_array_equal(np.asarray(pickle.loads(data)), expected)
    part = V.source.part(slice(20, 40), slice(50, 53))
    assert [len(margin) for margin in part.margins] == [20, 3]
    (tile,) = part(((3, 5),))
    np.testing.assert_array_equal(tile.values, expected[30:40, 50:53])


@pytest.mark.slow
def test_bits_are_the_same_on_all_executors(counts: Any, client: Any, monkeypatch: Any) -> None:
    """Threads in any number and the workers of a client; tiles of two rows make six groups."""
    G = dhsk.compute_gram(counts(40, DIM), KERNELS[1], tile=2)
    W = np.random.default_rng(0).normal(size=(40, 2))
    for look, _ in VIEWS.values():
        on_workers = look(G) @ W
        for cores in (1, 4):
            here = nullcontext(Threads(cores))
            with monkeypatch.context() as patch:
                patch.setattr("dhsk.gram.passes.current_executor", lambda here=here: here)
                fresh = look(G.with_kernel(G.kernel))  # without its means
                np.testing.assert_array_equal(fresh @ W, on_workers)
