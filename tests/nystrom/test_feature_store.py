"""Features in row blocks: a lazy Dask array, and a zarr array that a killed run goes on with."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from hashlib import sha256
from pathlib import Path
from time import sleep
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import dhsk
from dhsk.commands.cli import commands
from dhsk.errors import BudgetError, CorruptTileError, InputError, StoreError, StoreMismatchError
from dhsk.estimators.nystrom import NystromFeatures
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.lock import one_of_several, sole_writer
from dhsk.execution.run import Run
from dhsk.nystrom import feature_blocks, features
from dhsk.nystrom.feature_store import ATTRIBUTE, FeatureStore
from dhsk.objects.path import ObjectPath
from dhsk.progress import Progress

N, DIM, ROWS = 150, 12, 16
"""Ten blocks, the last of six rows."""

SAME = 1e-13
"""Products of blocks of other sizes: a few eps of kernel values times the root, below 100."""


@pytest.fixture
def X(counts: Callable[[int, int], Any]) -> Any:
    """Counts."""
    return counts(N, DIM)


@pytest.fixture
def model(X: Any) -> NystromFeatures:
    """Fitted to some of the samples."""
    return NystromFeatures(20, random_state=0).fit(X[:100])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of 8 rows, blocks of two pieces."""
    monkeypatch.setattr(features, "ROWS", 8)
    monkeypatch.setattr(feature_blocks, "ROWS", 8)
    monkeypatch.setattr(feature_blocks, "CHUNK_BYTES", ROWS * 20 * 8)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the blocks whose features are computed."""
    numbers: list[int] = []
    write = feature_blocks._write_block

    def counted(*task: Any) -> None:
        numbers.append(task[2])
        write(*task)

    monkeypatch.setattr(feature_blocks, "_write_block", counted)
    return numbers


def in_one_piece(model: NystromFeatures, X: Any) -> Any:
    """Features of an array, of which one thread of BLAS decides every bit."""
    with threadpool_limits(limits=1):
        return model.transform(X)


def contents(folder: Path) -> dict[str, str]:
    """Every file of a folder, by a hash."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(f.relative_to(folder)): sha256(f.read_bytes()).hexdigest() for f in files}


def sabotage(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """End with an error in the middle of writing one block."""
    write = feature_blocks.FeatureStore.write

    def broken(self: Any, number: int, values: Any) -> None:
        if number == block:
            raise KeyboardInterrupt
        write(self, number, values)

    monkeypatch.setattr(feature_blocks.FeatureStore, "write", broken)


# Lazily


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [DIM, 5])
def test_a_dask_array_gives_a_lazy_one(X: Any, dtype: str, columns: int) -> None:
    """Of the same chunks of rows, computed only when it is asked for."""
    model = NystromFeatures(20, dtype=dtype, random_state=0).fit(X[:100])
    asked: list[int] = []

    def watched(block: Any) -> Any:
        asked.append(len(block))
        return block

    lazy = da.from_array(X, chunks=(64, columns)).map_blocks(watched, meta=X[:0])
    Z = model.transform(lazy)
    assert isinstance(Z, da.Array)
    assert Z.shape == (N, 20)
    assert Z.chunks == ((64, 64, 22), (20,))
    assert Z.dtype == dtype
    assert type(Z._meta) is np.ndarray
    assert not asked
    found = Z.compute(scheduler="sync")
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.transform(X), atol=SAME if dtype == "float64" else 1e-5)
    assert model.fit_transform(lazy).chunks == Z.chunks


def test_landmarks_are_one_key_of_the_graph(model: NystromFeatures, X: Any) -> None:
    """However many chunks there are; and equal calls have equal names."""
    Z = model.transform(da.from_array(X, chunks=(10, DIM)))
    graph = dict(Z.__dask_graph__())
    shared = [key for key in graph if isinstance(key, str) and key.startswith("nystrom-")]
    tasks = [key for key in graph if key[0] == Z.name]
    assert len(shared) == 1
    assert len(tasks) == 15
    assert all(graph[key].dependencies >= set(shared) for key in tasks)
    again = model.transform(da.from_array(X, chunks=(10, DIM)))
    assert again.name == Z.name
    other = NystromFeatures(20, random_state=1).fit(X)
    assert other.transform(da.from_array(X, chunks=(10, DIM))).name != Z.name


def test_chunks_of_unknown_size_and_empty_ones(model: NystromFeatures, X: Any) -> None:
    """As a selection by a condition leaves them."""
    lazy = da.from_array(X, chunks=(30, 5))
    kept = X[:, 0] > np.r_[np.full(30, 99.0), np.full(N - 30, 0.5)]
    Z = model.transform(lazy[da.from_array(kept, chunks=30)])
    assert np.isnan(Z.shape[0])
    np.testing.assert_allclose(Z.compute(), model.transform(X[kept]), atol=SAME)


def test_sparse_chunks(X: Any) -> None:
    """Blocks of a Dask array may be CSR."""
    model = NystromFeatures(20, random_state=0).fit(csr_array(X))
    lazy = da.from_array(X, chunks=(40, DIM)).map_blocks(csr_array)
    found = model.transform(lazy).compute()
    np.testing.assert_allclose(found, model.transform(csr_array(X)), atol=SAME)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_bad_row_of_a_dask_array_is_named(model: NystromFeatures, X: Any, value: float) -> None:
    """As that of an array; in chunks of unknown size by the chunk."""
    wrong = X.copy()
    wrong[107, 3] = value
    with pytest.raises(InputError, match=f"X: row 107, column 3 .* holds {value}"):
        model.transform(wrong)
    lazy = da.from_array(wrong, chunks=(25, 4))
    with pytest.raises(InputError, match=f"X: row 107, column 3 .* holds {value}"):
        model.transform(lazy).compute()
    unknown = lazy[da.from_array(np.arange(N) >= 0, chunks=25)]
    with pytest.raises(InputError, match=f"chunk 4 of X: row 7, column 3 .* holds {value}"):
        model.transform(unknown).compute()


def test_other_shapes_are_refused_at_once(model: NystromFeatures) -> None:
    """Before anything is computed."""
    with pytest.raises(ValueError, match="X has 5 features, but NystromFeatures is expecting 12"):
        model.transform(da.ones((10, 5)))
    with pytest.raises(InputError, match="samples need two dimensions"):
        model.transform(da.ones((10, DIM, 2)))


# On the disk


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_store_has_the_features_of_transform(
    X: Any,
    small_blocks: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    sparse: bool,
    dtype: str,
) -> None:
    """To the bit, for every reader, from memory, files and Dask arrays, on any number of cores."""
    monkeypatch.setattr("dhsk.nystrom.feature_blocks.core_count", lambda: threads)
    given = csr_array(X) if sparse else X
    model = NystromFeatures(20, dtype=dtype, random_state=0).fit(given[:100])
    expected = in_one_piece(model, given)
    Z = model.write(given, tmp_path / "z")
    assert Z.dtype == dtype
    assert Z.chunks == ((32,) * 4 + (22,) if dtype == "float32" else (16,) * 9 + (6,), (20,))
    assert np.array_equal(Z.compute(), expected)
    assert np.array_equal(zarr.open_array(str(tmp_path / "z"), mode="r")[:], expected)
    assert np.array_equal(da.from_zarr(str(tmp_path / "z")).compute(), expected)
    if not sparse:
        np.save(tmp_path / "x.npy", X)
        lazy = da.from_array(X, chunks=(40, 5))
        for source in (tmp_path / "x.npy", str(tmp_path / "x.npy"), lazy):
            again = model.write(source, tmp_path / "again")
            assert np.array_equal(again.compute(), expected)
        assert contents(tmp_path / "again") == contents(tmp_path / "z")


@pytest.mark.parametrize("block", [0, 4, 9])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    model: NystromFeatures,
    X: Any,
    small_blocks: None,
    computed: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block: int,
) -> None:
    """With the blocks that are missing, and no others."""
    monkeypatch.setattr("dhsk.nystrom.feature_blocks.core_count", lambda: 1)
    model.write(X, tmp_path / "whole")
    computed.clear()
    with monkeypatch.context() as patch:
        sabotage(patch, block)
        with pytest.raises(KeyboardInterrupt):
            model.write(X, tmp_path / "z")
    assert computed == list(range(block + 1))
    half = zarr.open_array(str(tmp_path / "z"), mode="r")[:]
    assert np.isnan(half[block * ROWS :]).all()
    assert not np.isnan(half[: block * ROWS]).any()
    computed.clear()
    seen: list[Any] = []
    model.write(X, tmp_path / "z", progress=seen.append)
    assert computed == list(range(block, 10))
    counted = [event.done for event in seen if event.stage == "features"]
    assert counted == list(range(block, 11))
    assert contents(tmp_path / "z") == contents(tmp_path / "whole")
    computed.clear()
    model.write(X, tmp_path / "z")
    assert not computed


def part(model: NystromFeatures, number: int, count: int, folder: Path) -> NystromFeatures:
    """The same model in one of several processes."""
    one = copy(model)
    one.client = ArrayJob(number, count, folder / "z.parts")  # type: ignore[assignment]
    return one


def test_parts_write_the_store_of_one(
    model: NystromFeatures, X: Any, small_blocks: None, computed: list[int], tmp_path: Path
) -> None:
    """Each block once, by threads that begin at once; who is late finds nothing to do."""
    model.write(X, tmp_path / "whole")
    computed.clear()
    parts = [part(model, number, 3, tmp_path) for number in (3, 2, 1)]
    with ThreadPoolExecutor(3) as pool:
        for written in pool.map(lambda one: one.write(X, tmp_path / "z"), parts):
            assert written.shape == (N, 20)
    assert sorted(computed) == list(range(10))
    assert contents(tmp_path / "z") == contents(tmp_path / "whole")
    computed.clear()
    part(model, 2, 3, tmp_path).write(X, tmp_path / "z")
    assert not computed


def test_parts_that_find_the_store_whole_finish_it_in_turn(
    model: NystromFeatures,
    X: Any,
    small_blocks: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """None removes what another one is writing."""
    model.write(X, tmp_path / "z")

    def record(store: FeatureStore) -> None:
        writing = store.path / f".zarr.json.{uuid4().hex}.part"
        writing.touch()
        sleep(0.5)
        writing.unlink()

    monkeypatch.setattr(FeatureStore, "record", record)
    parts = [part(model, number, 2, tmp_path) for number in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(lambda one: one.write(X, tmp_path / "z"), parts))) == 2
    assert not (tmp_path / "z" / ".parts").exists()


def test_a_killed_part_writes_what_it_had_not(
    model: NystromFeatures,
    X: Any,
    small_blocks: None,
    computed: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others write none of its blocks, and leave alone what may be a block that is written."""
    monkeypatch.setattr("dhsk.nystrom.feature_blocks.core_count", lambda: 1)
    model.write(X, tmp_path / "whole")
    computed.clear()
    part(model, 1, 2, tmp_path).write(X, tmp_path / "z")
    beside, others = (tmp_path / "z" / name for name in ("c/7/.0.abc.part", ".model.abc.part"))
    beside.parent.mkdir()
    beside.touch()
    others.touch()  # what a part that has had its turn is writing
    with monkeypatch.context() as patch:
        sabotage(patch, 5)
        with pytest.raises(KeyboardInterrupt):
            part(model, 2, 2, tmp_path).write(X, tmp_path / "z")
    part(model, 1, 2, tmp_path).write(X, tmp_path / "z")  # begun again, with nothing to do
    assert computed == [0, 2, 4, 6, 8, 1, 3, 5]
    assert FeatureStore.open(tmp_path / "z").missing() == [5, 7, 9]
    assert beside.exists()
    seen: list[Any] = []
    part(model, 2, 2, tmp_path).write(X, tmp_path / "z", progress=seen.append)
    assert computed[8:] == [5, 7, 9]
    counted = [(event.done, event.total) for event in seen if event.stage == "features"]
    assert counted == [(done, 5) for done in (2, 3, 4, 5)]
    others.unlink()
    assert contents(tmp_path / "z") == contents(tmp_path / "whole")


def test_a_part_of_other_samples_is_refused(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path
) -> None:
    """Nothing is touched. A writer of all is refused while a part writes."""
    part(model, 1, 2, tmp_path).write(X, tmp_path / "z")
    before = contents(tmp_path / "z")
    with pytest.raises(StoreMismatchError, match=r"of other samples \(.*, now "):
        part(model, 2, 2, tmp_path).write(X + 1, tmp_path / "z")
    with (
        one_of_several(tmp_path / "z"),
        pytest.raises(StoreError, match="is being written by process"),
    ):
        model.write(X, tmp_path / "z")
    assert contents(tmp_path / "z") == before


def test_parts_of_other_rounding_write_the_features_of_the_first(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path
) -> None:
    """Their own normalization has other last bits, as on another machine."""
    model.write(X, tmp_path / "whole")
    part(model, 1, 2, tmp_path).write(X, tmp_path / "z")
    second = part(model, 2, 2, tmp_path)
    second.normalization_ = model.normalization_ * (1 + np.finfo(float).eps)
    with pytest.warns(UserWarning, match="begun on another machine"):
        second.write(X, tmp_path / "z")
    assert contents(tmp_path / "z") == contents(tmp_path / "whole")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_another_machine_goes_on_with_the_features_of_the_first(
    X: Any,
    small_blocks: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    sparse: bool,
) -> None:
    """Its normalization has other last bits and turned columns; its model takes the store's."""
    given = csr_array(X) if sparse else X
    first = NystromFeatures(20, dtype=dtype, random_state=0).fit(given[:100])
    first.write(given, tmp_path / "whole")
    with monkeypatch.context() as patch:
        sabotage(patch, 4)
        with pytest.raises(KeyboardInterrupt):
            first.write(given, tmp_path / "z")
    second = NystromFeatures(20, dtype=dtype, random_state=0).fit(given[:100])
    signs = np.where(np.arange(20) % 3, 1.0, -1.0)
    second.normalization_ = second.normalization_ * signs * (1 + np.finfo(dtype).eps)
    with pytest.warns(UserWarning, match="begun on another machine, whose rounding gave another"):
        second.write(given, tmp_path / "z")
    assert contents(tmp_path / "z") == contents(tmp_path / "whole")
    np.testing.assert_array_equal(second.normalization_, first.normalization_)
    np.testing.assert_array_equal(second.transform(X[:9]), first.transform(X[:9]))
    second.write(given, tmp_path / "z")  # now without a warning


def test_other_components_of_the_same_landmarks_are_refused(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path
) -> None:
    """They are other features, not those of another machine."""
    model.write(X, tmp_path / "z")
    model.normalization_ = model.normalization_.copy()
    model.normalization_[:, 0] *= 1.001
    with pytest.raises(StoreMismatchError, match=r"of other landmarks \(.*, now .*delete it"):
        model.write(X, tmp_path / "z")


def test_half_a_block_is_made_again(
    model: NystromFeatures, X: Any, small_blocks: None, computed: list[int], tmp_path: Path
) -> None:
    """What a kill leaves beside a chunk is no block, and a cut file is none either."""
    model.write(X, tmp_path / "z")
    whole = contents(tmp_path / "z")
    chunk = tmp_path / "z" / "c" / "3" / "0"
    chunk.rename(chunk.with_name(".0.abc.part"))
    cut = tmp_path / "z" / "c" / "5" / "0"
    cut.write_bytes(cut.read_bytes()[:-1])
    computed.clear()
    model.write(X, tmp_path / "z")
    assert sorted(computed) == [3, 5]
    assert contents(tmp_path / "z") == whole


def test_features_of_something_else_are_refused(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path
) -> None:
    """Other samples, landmarks, kernels, types: named, with the way out, and nothing is touched."""
    model.write(X, tmp_path / "z")
    before = contents(tmp_path / "z")
    changed = X.copy()
    changed[140, 0] += 1
    others = {
        "samples": (model, changed),
        "landmarks": (NystromFeatures(20, random_state=1).fit(X[:100]), X),
        "kernel": (NystromFeatures(20, time_scale=2.0, random_state=0).fit(X[:100]), X),
        "map": (NystromFeatures(20, sphere_map="projective", random_state=0).fit(X[:100]), X),
        "dtype": (NystromFeatures(20, dtype="float32", random_state=0).fit(X[:100]), X),
    }
    for what, (other, samples) in others.items():
        with pytest.raises(StoreMismatchError, match=rf"of other .*{what} \(.*, now .*delete it"):
            other.write(samples, tmp_path / "z")
    assert contents(tmp_path / "z") == before


def test_what_is_no_store_of_features_is_refused(
    model: NystromFeatures, X: Any, tmp_path: Path
) -> None:
    """A file, a folder of something else, a Gram store, a damaged description, another's lock."""
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("mine")
    dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(dim=DIM, time_scale=1.0), store=tmp_path / "gram")
    model.write(X, tmp_path / "z")
    for name in ("file", "folder", "gram"):
        with pytest.raises(StoreError, match=f"{name} holds something else than features"):
            model.write(X, tmp_path / name)
    assert {p.name for p in (tmp_path / "folder").iterdir()} == {"mine.txt"}
    described = tmp_path / "z" / "zarr.json"
    described.write_text(described.read_text().replace('"crc32c"', '"gzip"'))
    with pytest.raises(
        CorruptTileError, match=r"description of the features in .* is damaged \(zarr.json\)"
    ):
        model.write(X, tmp_path / "z")
    with (
        sole_writer(tmp_path / "other"),
        pytest.raises(StoreError, match="is being written by process"),
    ):
        model.write(X, tmp_path / "other")


def test_what_a_killed_process_left_of_its_first_file_is_nothing(
    model: NystromFeatures, X: Any, tmp_path: Path
) -> None:
    """Features and matrices are written there as into an empty folder."""
    for name in ("z", "gram"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".zarr.json.0123456789abcd.part").write_bytes(b"{")
    model.write(X, tmp_path / "z")
    dhsk.compute_gram(X, "heat", store=tmp_path / "gram")
    assert not [file for file in tmp_path.rglob("*.part") if file.is_file()]


@pytest.mark.slow
def test_a_server_has_the_files_of_a_folder(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path, bucket: str
) -> None:
    """Written in two runs, read by Dask, described, verified; damage and other features named."""
    place = ObjectPath(bucket, "features")
    expected = model.write(X, tmp_path / "z").compute()

    def interrupt(event: Progress) -> None:
        if event.stage == "features" and event.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.write(X, str(place), progress=interrupt)
    assert 0 < len(FeatureStore.open(place).missing()) < 10
    Z = model.write(X, str(place))
    assert np.array_equal(Z.compute(), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(Z))[30:70].compute(), expected[30:70])
    files = {str(f.relative_to(tmp_path / "z")): f for f in (tmp_path / "z").rglob("*")}
    assert {name: place.joinpath(name).read_bytes() for name in place.sizes()} == {
        name: file.read_bytes() for name, file in files.items() if file.is_file()
    }
    said = [CliRunner().invoke(commands, ["info", str(p)]).output for p in (tmp_path / "z", place)]
    assert said[0] == said[1].replace(str(place), str(tmp_path / "z"))
    with pytest.raises(StoreMismatchError, match="features of other samples"):
        model.write(X + 1, str(place))
    (place / "c" / "1" / "0").write_bytes(bytes((place / "c" / "1" / "0").size() or 0))
    found = CliRunner().invoke(commands, ["verify", str(place)])
    assert f"delete {place}/c/1/0, and write" in str(found.exception)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_bad_row_is_named_before_anything_is_written(
    model: NystromFeatures, X: Any, small_blocks: None, tmp_path: Path, value: float
) -> None:
    """Deep in the samples, and the folder is not even made."""
    X[147, 3] = value
    np.save(tmp_path / "x.npy", X)
    for source, name in ((X, "X"), (tmp_path / "x.npy", "x.npy")):
        with pytest.raises(InputError, match=f"{name}: row 147, column 3 .* holds {value}"):
            model.write(source, tmp_path / "z")
        assert not (tmp_path / "z").exists()


def test_what_cannot_be_written_is_refused_before(
    model: NystromFeatures, X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other features, unknown sizes, no room in memory or on the disk."""
    with pytest.raises(InputError, match="X has 5 features, not the 12 of NystromFeatures"):
        model.write(da.ones((10, 5)), tmp_path / "z")
    unknown = da.from_array(X)[da.from_array(X[:, 0]) >= 0]
    with pytest.raises(InputError, match=r"sizes are unknown: call its compute_chunk_sizes\(\)"):
        model.write(unknown, tmp_path / "z")
    with monkeypatch.context() as patch:
        patch.setattr(Run, "room", 10_000)
        with pytest.raises(BudgetError, match=r"150 samples and their features take .* 9\.77 kiB"):
            model.write(X, tmp_path / "z")
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(BudgetError, match=r"features need .* on disk but only 0\.98 kiB are"):
        model.write(X, tmp_path / "z")
    assert not (tmp_path / "z").exists()


def test_features_are_samples_again(model: NystromFeatures, X: Any, tmp_path: Path) -> None:
    """A store is an array like any other: a linear kernel of it is the Nyström matrix."""
    Z = model.write(X, tmp_path / "z").compute()
    G = dhsk.compute_gram(tmp_path / "z", dhsk.LinearKernel())
    np.testing.assert_allclose(np.asarray(G), Z @ Z.T, atol=SAME)


@pytest.mark.slow
def test_dask_schedulers_of_all_kinds_compute_it(model: NystromFeatures, X: Any) -> None:
    """What tasks share is pickled where they run in other processes."""
    Z = model.transform(da.from_array(X, chunks=(80, DIM)))
    with dask.config.set(scheduler="processes", num_workers=1):
        np.testing.assert_allclose(Z.compute(), model.transform(X), atol=SAME)


def test_the_description_is_of_json_and_names_the_schema(
    model: NystromFeatures, X: Any, tmp_path: Path
) -> None:
    """For other programs, and for later versions."""
    model.write(X, tmp_path / "z")
    described: Any = zarr.open_array(str(tmp_path / "z"), mode="r").attrs[ATTRIBUTE]
    names = {"schema", "samples", "landmarks", "kernel", "map", "dtype", "blocks"}
    assert set(described) == names
    assert described["schema"] == 2
    assert described["kernel"] == model.kernel_.to_spec()
