"""Gram matrices by tiles against direct sums, and what a restart trusts."""

import inspect
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array
import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array, save_npz

import dhsk
from dhsk.execution.resources import Resources
from dhsk.gram.compute import GramOptions
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import compute_group, groups_of
from dhsk.gram.tiles import TileSource

DIM = 37
KERNEL = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=0.7)

FLOAT64_BAR = 1e-14
"""|dK/dc| (below 10 at this dim and time) times a few roundings of the cosine, 2e-16 each."""

FLOAT32_BAR = 6e-8
"""Entries are computed in float64, so one rounding to float32 is left: 2^-24."""


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("n", [1, 5, 50, 101])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_equals_direct_sum(
    n: int, sparse: bool, counts: Any, heat_oracle: Any, client: Any
) -> None:
    """One sample, fewer than a tile, and not a multiple of it; dense and sparse; both types."""
    X = counts(n, DIM)
    expected = heat_oracle(X, DIM, KERNEL.time)
    samples = csr_array(X) if sparse else X
    G = dhsk.compute_gram(samples, KERNEL, tile=20, client=client)
    np.testing.assert_allclose(G[:, :], expected, rtol=0, atol=FLOAT64_BAR)
    assert G.dtype == np.float64
    single = dhsk.compute_gram(samples, KERNEL, tile=20, dtype="float32", client=client)
    np.testing.assert_allclose(single[:, :], expected, rtol=0, atol=FLOAT32_BAR)
    assert single[:, :].dtype == np.float32


def test_two_sets_of_samples(counts: Any, heat_oracle: Any, client: Any) -> None:
    """The rectangular matrix of all pairs, dense against sparse."""
    X, Y = counts(45, DIM), counts(23, DIM)
    G = dhsk.compute_gram(X, KERNEL, csr_array(Y), tile=10, client=client)
    assert G.shape == (45, 23)
    expected = heat_oracle(X, DIM, KERNEL.time, Y)
    np.testing.assert_allclose(G[:, :], expected, rtol=0, atol=FLOAT64_BAR)


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("source", ["x.zarr", "x.h5ad", "zarr", "dask"])
def test_chunked_samples_equal_a_file(
    source: str, counts: Any, client: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Samples read by chunks give the matrix of the .npy file, bit for bit, and its fingerprint."""
    X = counts(50, DIM)
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    array = zarr.create_array("x.zarr", shape=X.shape, chunks=(8, 10), dtype="float64")
    array[...] = X
    with h5py.File("x.h5ad", "w") as file:
        file.create_dataset("X", data=X, chunks=(7, 5), compression="gzip")
    samples = {"zarr": array, "dask": dask.array.from_array(X, chunks=(9, 9))}.get(source, source)
    expected = dhsk.compute_gram("x.npy", KERNEL, tile=20, client=client)
    G = dhsk.compute_gram(samples, KERNEL, tile=20, client=client)
    np.testing.assert_array_equal(G[:, :], expected[:, :])
    assert G.header.fingerprints == expected.header.fingerprints


def test_csr_group_equals_a_file(
    counts: Any, client: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """The CSR matrix of AnnData, in both formats, gives the matrix of scipy's archive."""
    A = csr_array(counts(50, DIM))
    monkeypatch.chdir(tmp_path)
    save_npz("x.npz", A)
    with h5py.File("x.h5ad", "w") as file:
        for group in (file.create_group("X"), zarr.create_group("x.zarr")):
            group.attrs.update({"encoding-type": "csr_matrix", "shape": list(A.shape)})
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(A, name)
    expected = dhsk.compute_gram("x.npz", KERNEL, tile=20, client=client)
    for source in ("x.h5ad", "x.zarr"):
        G = dhsk.compute_gram(source, KERNEL, tile=20, client=client)
        np.testing.assert_array_equal(G[:, :], expected[:, :])
        assert G.header.fingerprints == expected.header.fingerprints


@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL,
        dhsk.ParametrixKernel.at_scale(DIM, 0.7),
        dhsk.CosineKernel(),
        dhsk.LinearKernel(),
        dhsk.GaussianKernel(2.0),
        dhsk.PolynomialKernel(3, 1.0),
    ],
    ids=lambda kernel: kernel.name,
)
def test_tiles_equal_one_block(kernel: Any, counts: Any, client: Any) -> None:
    """Cut into tiles, every kernel gives what it gives in one piece."""
    X = counts(60, DIM)
    rows = dhsk.hyperspherical_map(X) if kernel.spherical else X
    whole = kernel(rows)
    G = dhsk.compute_gram(X, kernel, tile=16, client=client)[:, :]
    # Products may round differently where a tile ends: some eps of the largest entry.
    np.testing.assert_allclose(G, whole, rtol=0, atol=8 * np.finfo(float).eps * whole.max())
    np.testing.assert_array_equal(G, G.T)


def test_diagonal_is_exactly_one(counts: Any, client: Any) -> None:
    """K(x, x) = 1 without rounding."""
    G = dhsk.compute_gram(counts(50, DIM), KERNEL, tile=16, client=client)
    np.testing.assert_array_equal(G.diagonal(), np.ones(50))


def test_layout_without_tiles_is_no_choice(tmp_path: Path, counts: Any) -> None:
    """A store that lacks its tiles would be read as if other kernels followed from them."""
    with pytest.raises(
        dhsk.InputError, match="layout must be 'triangle' or 'full', but it is 'none'"
    ):
        dhsk.compute_gram(counts(5, 8), KERNEL, layout="none", store=tmp_path / "g")


def test_full_layout_opens_in_zarr(tmp_path: Path, counts: Any, client: Any) -> None:
    """The full layout is a plain zarr array of the whole matrix."""
    import zarr

    X = counts(50, DIM)
    G = dhsk.compute_gram(X, KERNEL, tile=16, layout="full", store=tmp_path / "g", client=client)
    triangle = dhsk.compute_gram(X, KERNEL, tile=16, client=client)
    plain = zarr.open_array(str(tmp_path / "g" / "gram"), mode="r")[:, :]
    np.testing.assert_array_equal(plain, triangle[:, :])
    np.testing.assert_array_equal(G[:, :], triangle[:, :])


def test_restart_computes_only_what_is_missing(
    contents: Any, tmp_path: Path, counts: Any, client: Any
) -> None:
    """Tiles that are there are not touched; the rest is made again, bit for bit."""
    X, path = counts(60, DIM), tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=16, store=path, client=client)
    whole = contents(path)
    lost = ["gram/c/0/2", "gram/c/1/1", "gram/c/3/3"]
    for name in lost:
        (path / name).unlink()
    stamps = {name: (path / name).stat().st_mtime_ns for name in contents(path)}
    events: list[dhsk.Progress] = []
    dhsk.compute_gram(X, KERNEL, tile=16, store=path, client=client, progress=events.append)
    assert contents(path) == whole
    touched = {n for n in stamps if (path / n).stat().st_mtime_ns != stamps[n]}
    assert touched == {"gram/zarr.json"}  # whose record they leave first
    tiles = dict.fromkeys((e.done, e.total) for e in events if e.stage == "tiles")
    assert list(tiles) == [(7, 10), (8, 10), (9, 10), (10, 10)]


def test_half_staged_samples_are_staged_again(
    contents: Any, tmp_path: Path, counts: Any, client: Any
) -> None:
    """A run killed while it put samples into the store does not poison the next."""
    X, path = counts(60, DIM), tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=16, store=path, client=client)
    whole = contents(path)
    shutil.rmtree(path / "gram" / "c")
    shutil.rmtree(path / "rows" / "dense" / "c")
    store = GramStore.open(path)
    store.samples.start("rows")
    store.samples.write("rows", 0, 0, np.full((16, DIM), 0.5))
    dhsk.compute_gram(X, KERNEL, tile=16, store=path, client=client)
    assert contents(path) == whole


def test_tile_task_needs_only_the_store(
    contents: Any, tmp_path: Path, counts: Any, client: Any
) -> None:
    """A task needs the store alone: it fetches nothing from another."""
    path = tmp_path / "g"
    dhsk.compute_gram(counts(60, DIM), KERNEL, tile=16, store=path, client=client)
    whole = contents(path)
    (path / "gram" / "c" / "1" / "2").unlink()
    (path / "gram" / "c" / "0" / "2").unlink()
    source = TileSource(path, [KERNEL], compute=True)
    assert compute_group(source, ((0, 2), (1, 2))) == 2
    assert contents(path) == whole


def test_few_missing_tiles_are_tasks_for_all_threads(counts: Any, tmp_path: Path) -> None:
    """A run that goes on takes smaller squares of tiles than one that begins."""
    G = dhsk.compute_gram(counts(160, DIM), KERNEL, tile=10, store=tmp_path / "g")
    resources = Resources(workers=0, threads=4, memory=10**12)
    plan = replace(plan_of(G.header, resources), group=4)
    tiles = list(G.tiling.tiles())
    many, few = (groups_of(missing, G.header, plan) for missing in (tiles, tiles[:16]))
    assert max(map(len, many)) == 9  # squares of 3 are 21: the first with 3 tasks a thread
    assert [len(group) for group in few] == [1] * 16
    assert sorted(sum(few, ())) == tiles[:16]


def test_other_samples_or_kernel_are_refused(
    contents: Any, tmp_path: Path, counts: Any, client: Any
) -> None:
    """A store is never filled with tiles of something else."""
    X, path = counts(30, DIM), tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, store=path, client=client)
    before = contents(path)
    changed = X.copy()
    changed[7, 3] += 1
    with pytest.raises(dhsk.StoreMismatchError, match="made with other samples"):
        dhsk.compute_gram(changed, KERNEL, store=path, client=client)
    with pytest.raises(dhsk.StoreMismatchError, match="made with other kernel"):
        dhsk.compute_gram(X, dhsk.CosineKernel(), store=path, client=client)
    assert contents(path) == before


@pytest.mark.parametrize(
    ("row", "column", "value", "options", "message"),
    [
        (11, 3, np.nan, {}, "row 11.* column 3"),
        (11, 3, np.inf, {"sphere_map": "projective"}, "row 11.* column 3"),
        (11, 3, -1.0, {}, "row 11.* column 3.*projective"),
        (11, slice(None), 0.0, {"zero_rows": "error"}, "row 11.*drop"),
        (0, 0, 0.5, {"sphere_map": "identity"}, "row 0"),
        (
            0,
            0,
            1.0,
            {"sphere_map": "sqrt"},
            "no map 'sqrt': choose one of hyperspherical, projective, clr, identity",
        ),
        (0, 0, 1.0, {"dtype": "int8"}, "float32 or float64"),
        (0, 0, 1.0, {"memory": "lots"}, "positive size such as 2GB"),
    ],
)
def test_bad_input_leaves_nothing_behind(
    tmp_path: Path, counts: Any, row: Any, column: Any, value: float, options: Any, message: str
) -> None:
    """The error names the place and comes before anything is written."""
    X = counts(30, DIM)
    X[row, column] = value
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.compute_gram(X, KERNEL, store=tmp_path / "g", **options)
    assert not (tmp_path / "g").exists()


def test_dimensions_must_agree(counts: Any) -> None:
    """Kernel against samples, and samples against samples."""
    with pytest.raises(dhsk.InputError, match=r"dim 37 but .* has 12 features"):
        dhsk.compute_gram(counts(5, 12), KERNEL)
    with pytest.raises(dhsk.InputError, match=r"has 37 features but .* has 12"):
        dhsk.compute_gram(counts(5, DIM), KERNEL, counts(5, 12))


def test_too_little_memory_is_refused_first(tmp_path: Path, counts: Any) -> None:
    """What cannot fit is refused before samples are read."""
    X = counts(30, DIM)
    X[3, 3] = np.nan  # would be an InputError if it were read
    with pytest.raises(dhsk.BudgetError, match=r"but 9\.54 MiB are allowed"):
        dhsk.compute_gram(X, KERNEL, store=tmp_path / "g", memory="10MB")


def test_other_servers_are_refused_in_words(counts: Any) -> None:
    """Only s3:// is known."""
    with pytest.raises(dhsk.InputError, match="give a local path, or s3://BUCKET/PREFIX"):
        dhsk.compute_gram(counts(5, DIM), KERNEL, store="gs://bucket/g")


def test_temporary_store_goes_with_the_matrix(counts: Any) -> None:
    """Without a store the tiles live as long as the matrix or a view of it."""
    G = dhsk.compute_gram(counts(30, DIM), dhsk.CosineKernel())
    view, path = G.with_kernel(KERNEL), G.path
    del G
    assert view[0, 0] == 1.0
    del view
    assert not path.exists()


def test_current_client_is_used(tmp_path: Path, counts: Any, client: Any) -> None:
    """With a Dask client around, the tiles run there, and so do products."""

    def known() -> int:
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.task_prefixes))

    before = known()
    G = dhsk.compute_gram(counts(30, DIM), KERNEL, store=tmp_path / "g")
    between = known()
    G @ np.ones(30)
    assert before < between < known()


def test_both_signatures_have_every_option() -> None:
    """Type checkers see the options of `GramOptions`; these are the function's own."""
    parameters = inspect.signature(dhsk.compute_gram).parameters.values()
    own = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    assert GramOptions.__optional_keys__ == own


@pytest.mark.parametrize("odd", [np.zeros(3), "", 1])
def test_what_is_no_map_is_refused(counts: Any, odd: Any) -> None:
    """By its value; no map is None."""
    with pytest.raises(dhsk.InputError, match="there is no map"):
        dhsk.compute_gram(counts(6, 4), "heat", sphere_map=odd)
