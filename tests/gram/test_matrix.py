"""A stored matrix behaves like the array that it stands for."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import cg, eigsh

import dhsk
from dhsk.errors import InputWarning

pytestmark = pytest.mark.threads

N, M, DIM, TILE = 53, 31, 12, 10
KERNEL = dhsk.HeatKernel(DIM, 0.1)

ROUNDING = 200 * np.finfo(float).eps
"""Sums of up to N + M products of numbers up to 1, in another order."""


def made(origin: str, path: Path, X: Any, Y: Any = None) -> dhsk.GramMatrix:
    """A matrix that is read from its store, derived from stored cosines, or computed on demand."""
    if origin == "derived":
        cosines = dhsk.compute_gram(X, dhsk.CosineKernel(), Y, store=path, tile=TILE)
        return cosines.with_kernel(KERNEL)
    return dhsk.compute_gram(X, KERNEL, Y, store=path if origin == "stored" else None, tile=TILE)


@pytest.fixture(params=["stored", "derived", "computed"])
def origin(request: Any) -> str:
    """Where the entries of a matrix come from."""
    return request.param


@pytest.fixture
def G(origin: str, tmp_path: Path, counts: Any) -> dhsk.GramMatrix:
    """A symmetric matrix of each origin."""
    return made(origin, tmp_path / "s", counts(N, DIM))


@pytest.fixture
def R(origin: str, tmp_path: Path, counts: Any) -> dhsk.GramMatrix:
    """A rectangular matrix of each origin."""
    return made(origin, tmp_path / "r", counts(N, DIM), counts(M, DIM))


@pytest.fixture
def stored(tmp_path: Path, counts: Any) -> dhsk.GramMatrix:
    """A symmetric matrix in a store."""
    return made("stored", tmp_path / "s", counts(N, DIM))


@pytest.mark.slow(beyond=4)
@pytest.mark.parametrize(
    "key",
    [
        (3, 40),
        (-1, -53),
        5,
        slice(2, 5),
        (slice(2, 5), slice(10, 30)),
        (slice(None, None, 7), slice(40, None, -3)),
        (slice(5, 5), slice(None)),
        (slice(8, 33), 20),
        (20, slice(8, 33)),
        ([4, 50, 4, 9], slice(None)),
        (slice(20, 25), np.array([1, 0, 44])),
        (np.arange(53) % 3 == 0, 7),
        ...,
        (),
        (..., slice(3)),
        (slice(3), ...),
        (2, ...),
        (..., [2, 5]),
        (3, ..., slice(4)),
    ],
    ids=str,
)
def test_indexing_is_that_of_numpy(G: dhsk.GramMatrix, key: Any) -> None:
    """Integers, slices of any step, index and boolean arrays give numpy's shapes and values."""
    whole = np.asarray(G)
    np.testing.assert_array_equal(G[key], whole[key], strict=True)


def test_tiles_of_another_size_are_not_ignored_silently(
    tmp_path: Path, counts: Any, recwarn: pytest.WarningsRecorder
) -> None:
    """A store keeps its tiles, and the call that wanted others is told."""
    X = counts(N, DIM)
    for tile in (TILE, None, TILE):
        dhsk.compute_gram(X, KERNEL, store=tmp_path / "g", tile=tile)
    assert not recwarn.list
    with pytest.warns(InputWarning, match=rf"has tiles of {TILE} x {TILE}, which stay: tile=20"):
        dhsk.compute_gram(X, KERNEL, store=tmp_path / "g", tile=20)


def test_both_sides_are_named(counts: Any) -> None:
    """Of arrays, which have no names."""
    with pytest.raises(dhsk.InputError, match="X has 12 features but Y, for the columns, has 11"):
        dhsk.compute_gram(counts(5, 12), KERNEL, counts(5, 11))


def test_rectangular_indexing(R: dhsk.GramMatrix) -> None:
    """Without symmetry nothing is mirrored."""
    whole = np.asarray(R)
    assert whole.shape == (N, M)
    np.testing.assert_array_equal(R[5:30, 7:9], whole[5:30, 7:9])


def test_submatrix_takes_all_pairs(G: dhsk.GramMatrix, rng: Any) -> None:
    """Rows and columns in any order and with repeats, as np.ix_ gives."""
    rows, cols = rng.integers(0, N, 40), rng.permutation(N)[:20]
    expected = np.asarray(G)[np.ix_(rows, cols)]
    np.testing.assert_array_equal(G.submatrix(rows, cols), expected)
    with pytest.raises(dhsk.InputError, match=r"use G.submatrix"):
        G[rows, cols]


@pytest.mark.parametrize(
    "key", [None, (0, None), (0, 0, 0), (..., ...), np.ix_([1], [2]), np.eye(53) > 0]
)
def test_other_indices_are_refused(R: dhsk.GramMatrix, key: Any) -> None:
    """Never read as row 0."""
    with pytest.raises(dhsk.InputError, match=r"use G\.submatrix"):
        R[key]


@pytest.mark.slow(beyond=5)
@pytest.mark.parametrize("key", [(53, 0), (0, -54), ([1, 99], 0)])
def test_out_of_range_is_an_index_error(G: dhsk.GramMatrix, key: Any) -> None:
    """As in numpy."""
    with pytest.raises(IndexError, match="out of range for axis of 53"):
        G[key]


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("shape", [(N,), (N, 1), (N, 4)])
def test_product(G: dhsk.GramMatrix, R: dhsk.GramMatrix, rng: Any, shape: Any) -> None:
    """Products with vectors and matrices from both sides."""
    V = rng.normal(size=shape)
    np.testing.assert_allclose(G @ V, np.asarray(G) @ V, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(V.T @ G, V.T @ np.asarray(G), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(V.T @ R, V.T @ np.asarray(R), rtol=0, atol=ROUNDING)
    with pytest.raises(dhsk.InputError, match=r"cannot multiply \(53, 31\) by"):
        R @ V


@pytest.mark.slow(beyond=1)
def test_means(G: dhsk.GramMatrix, R: dhsk.GramMatrix) -> None:
    """Of rows, of columns and of everything, as numpy gives them."""
    for matrix in (G, R):
        for axis in (None, 0, 1):
            expected = np.asarray(matrix).mean(axis=axis)
            np.testing.assert_allclose(matrix.mean(axis), expected, rtol=1e-13)
    with pytest.raises(dhsk.InputError, match="axis must be None, 0 or 1, but it is 2"):
        G.mean(2)


def test_another_kernel_of_the_same_samples(counts: Any) -> None:
    """What is computed on demand serves every kernel that takes its rows."""
    X, other = counts(N, DIM), dhsk.HeatKernel(DIM, 0.5)
    computed = dhsk.compute_gram(X, KERNEL, tile=TILE)
    expected = dhsk.compute_gram(X, other, tile=TILE)
    np.testing.assert_array_equal(computed.with_kernel(other)[:, :], expected[:, :])


def test_dask_array_holds_the_same(G: dhsk.GramMatrix, R: dhsk.GramMatrix) -> None:
    """Mirrored below the diagonal, one chunk a tile, lazy until computed."""
    for matrix in (G, R):
        lazy = matrix.to_dask()
        assert (lazy.shape, lazy.dtype) == (matrix.shape, matrix.dtype)
        assert lazy.numblocks == (matrix.tiling.row_blocks, matrix.tiling.col_blocks)
        np.testing.assert_array_equal(lazy.compute(), np.asarray(matrix))


def test_attributes_are_those_of_the_dask_array(G: dhsk.GramMatrix, R: dhsk.GramMatrix) -> None:
    """Shape, size, bytes and chunks are what Dask says of the same matrix."""
    for matrix in (G, R):
        lazy = matrix.to_dask()
        for name in ("shape", "dtype", "ndim", "size", "nbytes", "chunks"):
            assert getattr(matrix, name) == getattr(lazy, name)
    assert R.chunks == ((10, 10, 10, 10, 10, 3), (10, 10, 10, 1))


def test_transposed_matrix(G: dhsk.GramMatrix, R: dhsk.GramMatrix) -> None:
    """A symmetric matrix is its own transpose; that of a rectangular one is lazy."""
    assert G.T is G
    assert R.T.shape == (M, N)
    assert np.array_equal(np.asarray(R.T), np.asarray(R).T)


def test_table_for_notebooks(R: dhsk.GramMatrix) -> None:
    """It shows sizes of the matrix and of a tile, and escapes the path."""
    R.path = R.path / "a<b"
    html = R._repr_html_()
    for cells in (
        '<th scope="row">Bytes</th><td>12.84 kiB</td><td>800 B</td>',
        '<th scope="row">Shape</th><td>(53, 31)</td><td>(10, 10)</td>',
        f"<td>24, {'computed on demand' if R.computed else 'stored'}</td>",
        "<td>heat t=0.1</td>",
        "a&lt;b",
    ):
        assert cells in html


@pytest.mark.slow
def test_scipy_solvers_run_on_it(G: dhsk.GramMatrix, R: dhsk.GramMatrix, rng: Any) -> None:
    """Eigenvalues and linear systems through the linear operator."""
    whole = np.asarray(G)
    operator = G.as_linear_operator()
    largest = eigsh(operator, k=3, return_eigenvectors=False, v0=np.ones(N))
    np.testing.assert_allclose(np.sort(largest), np.linalg.eigvalsh(whole)[-3:], rtol=1e-10)
    b = rng.normal(size=N)
    x, failed = cg(whole + np.eye(N), b, rtol=1e-12)
    assert not failed
    np.testing.assert_allclose(operator @ x + x, b, atol=1e-10)
    V = rng.normal(size=N)
    other = R.as_linear_operator()
    np.testing.assert_allclose(other.rmatvec(V), np.asarray(R).T @ V, rtol=0, atol=ROUNDING)


def test_opened_again_it_is_the_same(stored: dhsk.GramMatrix) -> None:
    """The store alone is enough."""
    again = dhsk.open_gram(stored.path)
    assert (again.shape, again.dtype, again.kernel) == (stored.shape, stored.dtype, KERNEL)
    np.testing.assert_array_equal(np.asarray(again), np.asarray(stored))


def test_incomplete_store_does_not_open(stored: dhsk.GramMatrix) -> None:
    """A missing tile is found at the door."""
    (stored.path / "gram" / "c" / "2" / "4").unlink()
    with pytest.raises(dhsk.IncompleteStoreError, match="lacks 1 of 21 tiles"):
        dhsk.open_gram(stored.path)


def test_verify_names_the_damaged_tiles(stored: dhsk.GramMatrix) -> None:
    """A flipped bit is found by reading everything."""
    assert stored.verify() == 21
    chunk = stored.path / "gram" / "c" / "1" / "3"
    damaged = bytearray(chunk.read_bytes())
    damaged[100] ^= 1
    chunk.write_bytes(damaged)
    with pytest.raises(dhsk.CorruptTileError, match=r"1 of 21 tiles .* damaged: \(1, 3\)"):
        stored.verify()


def test_pickled_it_finds_its_store(G: dhsk.GramMatrix) -> None:
    """Tasks get a path, not the data."""
    data = pickle.dumps(G)
    assert len(data) < 2000
    np.testing.assert_array_equal(np.asarray(pickle.loads(data)), np.asarray(G))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_stored_cosines_serve_every_time(tmp_path: Path, counts: Any, dtype: str) -> None:
    """A derived kernel is the computed one, up to the rounding of the stored cosine."""
    X = counts(N, DIM)
    cosines = dhsk.compute_gram(X, dhsk.CosineKernel(), store=tmp_path, tile=TILE, dtype=dtype)
    for kernel in (KERNEL, dhsk.HeatKernel(DIM, 0.5), dhsk.ParametrixKernel(0.2)):
        derived = cosines.with_kernel(kernel)
        assert derived.kernel == kernel
        exact = dhsk.compute_gram(X, kernel, tile=TILE)
        tolerance = 8 * np.finfo(dtype).eps  # |dK/dc| is below 8 at these times
        np.testing.assert_allclose(derived[:, :], exact[:, :], rtol=0, atol=tolerance)
        np.testing.assert_array_equal(derived.diagonal(), np.ones(N))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivative_in_time_is_derived_and_computed(
    tmp_path: Path, counts: Any, dtype: str
) -> None:
    """dK/dt comes from stored cosines, on demand and from a store of its own; 0 for equal rows."""
    X = counts(N, DIM)
    X[7] = X[40]
    derivative = KERNEL.time_derivative()
    exact = derivative(dhsk.hyperspherical_map(X))
    cosines = dhsk.compute_gram(
        X, dhsk.CosineKernel(), store=tmp_path / "c", tile=TILE, dtype=dtype
    )
    demand = dhsk.compute_gram(X, KERNEL, tile=TILE, dtype=dtype)
    dhsk.compute_gram(X, derivative, store=tmp_path / "d", tile=TILE, dtype=dtype)
    stored = dhsk.open_gram(tmp_path / "d")
    assert stored.kernel == derivative
    tolerance = 40 * np.finfo(dtype).eps * derivative.largest  # |d/dc dK/dt| is below 40 of it
    for G in (cosines.with_kernel(derivative), demand.with_kernel(derivative), stored):
        values = G[:, :]
        np.testing.assert_allclose(values, exact, rtol=0, atol=tolerance)
        np.testing.assert_array_equal(G.diagonal(), np.zeros(N))
        np.testing.assert_array_equal(np.diagonal(values), np.zeros(N))
        assert values[7, 40] == values[40, 7] == 0.0
        np.testing.assert_array_equal(values, values.T)
    both = dhsk.compute_gram(X, [derivative, KERNEL], tile=TILE, dtype=dtype)
    np.testing.assert_array_equal(np.diagonal(both[0][:, :]), np.zeros(N))
    np.testing.assert_array_equal(np.diagonal(both[1][:, :]), np.ones(N))


def test_stored_products_serve_distances(tmp_path: Path, counts: Any) -> None:
    """Gaussian and polynomial kernels come from plain inner products."""
    X = counts(N, DIM)
    products = dhsk.compute_gram(X, dhsk.LinearKernel(), store=tmp_path, tile=TILE)
    for kernel in (dhsk.GaussianKernel(3.0), dhsk.PolynomialKernel(2, 1.0)):
        exact = kernel(X)
        derived = products.with_kernel(kernel)[:, :]
        np.testing.assert_allclose(derived, exact, rtol=1e-12)


def test_what_is_not_determined_is_refused(
    stored: dhsk.GramMatrix, counts: Any, tmp_path: Path
) -> None:
    """Heat kernel values give no other kernel, and cosines no distances."""
    with pytest.raises(dhsk.InputError, match="cannot be derived from stored heat values"):
        stored.with_kernel(dhsk.HeatKernel(DIM, 0.5))
    computed = made("computed", tmp_path, counts(N, DIM))
    with pytest.raises(dhsk.InputError, match="takes rows that are mapped differently"):
        computed.with_kernel(dhsk.GaussianKernel(1.0))
    cosines = dhsk.compute_gram(counts(N, DIM), dhsk.CosineKernel(), store=tmp_path / "c")
    with pytest.raises(dhsk.InputError, match="gaussian matrix cannot be derived"):
        cosines.with_kernel(dhsk.GaussianKernel(1.0))
    with pytest.raises(dhsk.InputError, match="dim 99, the samples have dim 12"):
        cosines.with_kernel(dhsk.HeatKernel(99, 0.5))


@pytest.mark.parametrize("chosen", [[5, 44, 3, 3], slice(None), np.arange(N) % 7 == 0])
def test_samples_come_back_as_they_were_multiplied(counts: Any, chosen: Any) -> None:
    """Mapped, in the order asked for, dense or CSR."""
    X = counts(N, DIM)
    expected = dhsk.hyperspherical_map(X)[chosen]
    dense = dhsk.compute_gram(X, KERNEL, tile=TILE).samples(chosen)
    np.testing.assert_array_equal(dense, expected)
    sparse = dhsk.compute_gram(csr_array(X), KERNEL, tile=TILE).samples(chosen)
    np.testing.assert_allclose(sparse.toarray(), expected, rtol=4 * np.finfo(float).eps)
