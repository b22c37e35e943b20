"""Several kernels from one product, float32 products, and the files of chunks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from distributed import Client
from scipy.sparse import csr_array

import dhsk
from dhsk.gram.storage.chunks import chunk_size, read_chunk, write_chunk

pytestmark = pytest.mark.threads

N, DIM, TILE = 53, 12, 10
KERNELS = [dhsk.HeatKernel.at_scale(DIM, scale) for scale in (0.3, 0.7, 1.4)]

GOLDEN = Path(__file__).parent / "golden"

SUMS = 200 * np.finfo(float).eps
"""Sums of up to N products of numbers up to 1, in another order."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_one_pass_gives_what_each_kernel_gives_alone(
    tmp_path: Path, counts: Any, sparse: bool, dtype: str
) -> None:
    """Arrays of several kernels are those of one at a time, bit for bit, and open again."""
    X = csr_array(counts(N, DIM)) if sparse else counts(N, DIM)
    together = dhsk.compute_gram(X, KERNELS, store=tmp_path / "all", dtype=dtype, tile=TILE)
    assert len(together) == 3
    opened = dhsk.open_gram(tmp_path / "all")
    for number, kernel in enumerate(KERNELS):
        alone = dhsk.compute_gram(X, kernel, store=tmp_path / str(number), dtype=dtype, tile=TILE)
        np.testing.assert_array_equal(together[number][:, :], alone[:, :])
        np.testing.assert_array_equal(opened.with_kernel(kernel)[:, :], alone[:, :])


def test_kernels_of_other_kinds_go_together(tmp_path: Path, rng: Any) -> None:
    """On unit rows a linear, a Gaussian and a heat kernel can share a store."""
    X = rng.normal(size=(N, DIM))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernels = [KERNELS[0], dhsk.LinearKernel(), dhsk.GaussianKernel(0.5)]
    grams = dhsk.compute_gram(X, kernels, sphere_map="identity", store=tmp_path, tile=TILE)
    for G, kernel in zip(grams, kernels, strict=True):
        np.testing.assert_allclose(G[:, :], kernel(X), rtol=1e-12, atol=SUMS)


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "computed"])
def test_products_of_all_kernels_in_one_pass(
    tmp_path: Path, counts: Any, rng: Any, stored: bool
) -> None:
    """Each is the product of its own matrix."""
    grams = dhsk.compute_gram(
        counts(N, DIM), KERNELS, store=tmp_path if stored else None, tile=TILE
    )
    V = rng.normal(size=(N, 2))
    together = grams @ V
    assert together.shape == (3, N, 2)
    for G, product in zip(grams, together, strict=True):
        np.testing.assert_allclose(product, np.asarray(G) @ V, rtol=0, atol=SUMS)


def test_missing_tile_of_any_kernel_is_made_again(tmp_path: Path, counts: Any) -> None:
    """A store is complete when every array is."""
    X = counts(N, DIM)
    dhsk.compute_gram(X, KERNELS, store=tmp_path / "g", tile=TILE)
    chunk = tmp_path / "g" / "gram-2" / "c" / "1" / "4"
    before = chunk.read_bytes()
    chunk.unlink()
    with pytest.raises(dhsk.IncompleteStoreError, match="lacks 1 of 21 tiles"):
        dhsk.open_gram(tmp_path / "g")
    dhsk.compute_gram(X, KERNELS, store=tmp_path / "g", tile=TILE)
    assert chunk.read_bytes() == before


@pytest.mark.parametrize(
    ("kernels", "message"),
    [
        ([], "no kernel was given"),
        ([dhsk.CosineKernel(), dhsk.LinearKernel()], "different maps .hyperspherical, identity."),
    ],
    ids=["none", "maps"],
)
def test_kernels_that_do_not_go_together(counts: Any, kernels: Any, message: str) -> None:
    """They are refused before any row is read."""
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.compute_gram(counts(5, DIM), kernels)


def test_float32_products_are_off_by_the_slope_of_the_kernel(tmp_path: Path, counts: Any) -> None:
    """Entries move by the rounding of a float32 cosine times the kernel's slope, and no more."""
    X, kernel = counts(N, DIM), KERNELS[0]
    exact = dhsk.compute_gram(X, kernel, tile=TILE)[:, :]
    single = dhsk.compute_gram(
        X, kernel, store=tmp_path, dtype="float32", product_dtype="float32", tile=TILE
    )
    assert single.dtype == np.float32
    slope = (1 - float(kernel.of_cosine(1 - 1e-6))) / 1e-6  # largest at 1: K is convex
    # Terms of one sign, DIM of them: a sum is off by at most DIM roundings of 2^-24, and the rows
    # and the kernel add a few.
    bound = (slope * (DIM + 3) + 8) * 2.0**-24
    error = np.abs(single[:, :] - exact).max()
    assert 2.0**-24 < error <= bound
    np.testing.assert_array_equal(single.diagonal(), np.ones(N, np.float32))


def test_float32_products_are_refused_where_digits_cancel(counts: Any) -> None:
    """Distances from inner products lose everything next to 0, unless samples are near it."""
    X = counts(5, DIM)
    X[1] *= 1000
    with pytest.raises(dhsk.InputError, match=r"row 1 of X .* float32 products are off"):
        dhsk.compute_gram(X, dhsk.GaussianKernel(1.0), product_dtype="float32")


@pytest.mark.slow
def test_workers_compute_products_on_demand(counts: Any, rng: Any) -> None:
    """On worker processes G @ V has the same bits as here."""
    X, V = counts(N, DIM), rng.normal(size=(N, 3))
    G = dhsk.compute_gram(X, KERNELS[0], tile=TILE)
    here = G @ V
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        np.testing.assert_array_equal(G @ V, here)
        np.testing.assert_allclose(G.mean(1), here_mean(G), rtol=1e-14)


def here_mean(G: dhsk.GramMatrix) -> Any:
    """Row means of the whole matrix."""
    return np.asarray(G).mean(axis=1)


def test_temporary_samples_go_with_the_matrix(counts: Any) -> None:
    """What is computed on demand leaves no folder behind, and keeps it while it is used."""
    G = dhsk.compute_gram(counts(N, DIM), KERNELS[0], tile=TILE)
    other, folder = G.with_kernel(KERNELS[1]), G.path
    del G
    assert other[0, 0] == 1.0
    del other
    assert not folder.exists()


@pytest.mark.parametrize("shape", [(4, 6), (4, 5), (3, 6), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chunk_files_are_those_of_zarr(tmp_path: Path, rng: Any, shape: Any, dtype: str) -> None:
    """Zarr reads what is written here, edges included, and its own files are read here."""
    values = rng.normal(size=shape).astype(dtype)
    made = zarr.create_array(
        str(tmp_path / "a"),
        shape=shape,
        chunks=(4, 6),
        dtype=dtype,
        fill_value=float("nan"),
        compressors=[zarr.codecs.Crc32cCodec()],
        filters=None,
    )
    chunk = tmp_path / "a" / "c" / "0" / "0"
    write_chunk(chunk, values, (4, 6))
    assert chunk.stat().st_size == chunk_size((4, 6), np.dtype(dtype))
    np.testing.assert_array_equal(made[:], values, strict=True)
    ours = chunk.read_bytes()
    made[:] = values
    assert chunk.read_bytes() == ours
    whole = np.empty((4, 6), dtype)
    read_chunk(chunk, whole)
    np.testing.assert_array_equal(whole[: shape[0], : shape[1]], values)


BOUNDS = 1e-14
"""Two versions of the kernel, each within its proven bound at this time, 5e-15."""


def test_golden_store_opens() -> None:
    """A rectangular store of two kernels on CSR samples, as it was written once."""
    G = dhsk.open_gram(GOLDEN)
    X = np.add.outer(np.arange(10), np.arange(5)) % 7 + 1.0
    X[3], X[:, 2] = X[8], 0.0
    unit = dhsk.hyperspherical_map(X)
    for kernel in (dhsk.HeatKernel(dim=5, time=0.25), dhsk.CosineKernel()):
        other = G.with_kernel(kernel)
        np.testing.assert_allclose(other[:, :], kernel(unit, unit[:6]), rtol=0, atol=BOUNDS)
    assert (G.dtype, G.shape, G.tiling.tile) == (np.float64, (10, 6), 4)
    assert G.verify() == 6
