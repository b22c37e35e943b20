"""What zarr says of a store's arrays, and which chunk belongs where: compared, and put right."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array
from zarr.codecs import Crc32cCodec

import dhsk
from dhsk.gram.storage.descriptions import StoredGroup
from dhsk.gram.storage.store import GramStore
from dhsk.gram.storage.stored_array import RECORD, StoredArray

DIM, TILE, N = 12, 8, 45
KERNEL = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=0.7)
GOLDEN = Path(__file__).parent / "golden"


def times(path: Path) -> dict[str, int]:
    """When every chunk was written."""
    files = (f for f in path.rglob("c/**/*") if f.is_file())
    return {str(f): f.stat().st_mtime_ns for f in files}


@pytest.fixture
def X(counts: Any) -> Any:
    """Samples of 21 tiles."""
    return counts(N, DIM)


@pytest.fixture(params=["dense", "csr"])
def made(request: Any, tmp_path: Path, X: Any, client: Any) -> tuple[Path, Any]:
    """A finished store, and its samples."""
    samples = csr_array(X) if request.param == "csr" else X
    dhsk.compute_gram(samples, KERNEL, tile=TILE, store=tmp_path / "g", client=client)
    return tmp_path / "g", samples


def descriptions(path: Path) -> list[str]:
    """All of zarr.json in a store but its own header."""
    return sorted(str(f.relative_to(path)) for f in path.glob("*/**/zarr.json"))


# Descriptions


def test_every_description_of_a_store_is_looked_at(made: tuple[Path, Any]) -> None:
    """Those of arrays and of groups, and none is damaged."""
    path, samples = made
    arrays = ["data", "indices", "indptr"] if isinstance(samples, csr_array) else ["dense"]
    expected = ["gram", *(f"rows/{name}" for name in arrays), "rows"]
    assert descriptions(path) == sorted(f"{name}/zarr.json" for name in expected)
    assert GramStore.open(path).damaged_descriptions() == []


@pytest.mark.parametrize("group", ["", "rows"])
def test_groups_of_another_zarr_are_sound(group: str, X: Any, tmp_path: Path) -> None:
    """Version 3.0 says that nothing is consolidated, later ones do not; other words are damage."""
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=tmp_path / "g")
    file = tmp_path / "g" / group / "zarr.json"
    for consolidated, damaged in ((None, []), ({}, [file])):
        said = json.loads(file.read_text()) | {"consolidated_metadata": consolidated}
        file.write_text(json.dumps(said))
        assert GramStore.open(tmp_path / "g").damaged_descriptions() == damaged


@pytest.mark.slow
def test_any_flipped_bit_is_found_and_put_right(
    contents: Any, made: tuple[Path, Any], rng: Any
) -> None:
    """Whatever it makes of a description, shape or not; chunks are not touched by it."""
    path, _ = made
    before, written = contents(path), times(path)
    store = GramStore.open(path)
    for name in descriptions(path):
        sound, complete = before[name], name != "rows/zarr.json"
        for position in rng.choice(8 * len(sound), 60, replace=False):
            data = bytearray(sound)
            data[position // 8] ^= 1 << position % 8
            (path / name).write_bytes(data)
            found = store.damaged_descriptions()
            digit = bool(store.damaged_tiles() or store.damaged_sides())  # of the record
            assert digit or found == [path / name] or json.loads(bytes(data)) == json.loads(sound)
            if complete and found:
                store.describe()
                assert store.damaged_descriptions() == []
            (path / name).write_bytes(sound)
    assert times(path) == written


Edit = Callable[[dict[str, Any]], Any]


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("rows/dense", lambda d: d.update(note="mine")),
        ("rows/dense", lambda d: d["attributes"].update(note="mine")),
        ("gram", lambda d: d["codecs"][0]["configuration"].update(note="mine")),
        ("gram", lambda d: d["chunk_grid"].update(note="mine")),
        ("gram", lambda d: d.update(fill_value=0.0)),
        ("gram", lambda d: d.update(dimension_names=["x", "y"])),
        ("rows", lambda d: d["attributes"].update(note="mine")),
        ("rows", lambda d: d.update(note="mine")),
        ("", lambda d: d["attributes"].update(note="mine")),
        ("", lambda d: d.update(note="mine")),
    ],
)
def test_more_or_else_than_follows_is_damage(
    contents: Any, tmp_path: Path, X: Any, client: Any, name: str, edit: Edit
) -> None:
    """Keys beside those of the header, at any depth; repair writes the descriptions alone."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before, written = contents(path), times(path)
    file = path / name / "zarr.json"
    described = json.loads(file.read_text())
    edit(described)
    file.write_text(json.dumps(described))
    with pytest.raises(dhsk.CorruptTileError, match=rf"{file} is damaged; recompute"):
        GramStore.open(path).check_sound()
    assert dhsk.repair_gram(path, X, client=client) == []
    assert contents(path) == before
    assert times(path) == written


def test_stores_without_a_record_are_described_as_they_are(contents: Any, tmp_path: Path) -> None:
    """As those that a run has not completed; they lack nothing."""
    store = GramStore.open(GOLDEN)
    store.check_sound()
    assert all(not array.record().any() for array in store.arrays)
    shutil.copytree(GOLDEN, tmp_path / "g")
    GramStore.open(tmp_path / "g").describe()
    assert contents(tmp_path / "g") == contents(GOLDEN)


def test_a_description_that_is_completed_while_it_is_compared_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another part, between any two of its reads."""
    ours, other = (StoredArray(tmp_path / "a", (4,), (2,), "float64", 0) for _ in range(2))
    ours.begin()
    for place in ours.places():
        ours.write(place, np.ones((2, 1)))
    read = Path.read_bytes

    def completed_after(file: Path) -> bytes:
        found = read(file)
        monkeypatch.setattr(Path, "read_bytes", read)
        other.complete()
        return found

    monkeypatch.setattr(Path, "read_bytes", completed_after)
    assert ours.is_described()
    assert (ours.record(again=True) == other.record()).all()
    assert ours.record().all()


@pytest.mark.parametrize(("dtype", "fill"), [("float32", np.nan), ("float64", 0), ("int64", 0)])
def test_arrays_and_groups_are_described_as_by_zarr(
    tmp_path: Path, dtype: str, fill: float
) -> None:
    """By the version that is installed, but for what it may leave out."""
    group: Any = zarr.create_group(tmp_path / "g", attributes={"of": ["zarr"]})
    group.create_array(
        "a", shape=(5, 3), chunks=(2, 3), dtype=dtype, fill_value=fill, filters=None,
        compressors=[Crc32cCodec()], attributes={"x": 1},
    )  # fmt: skip
    ours = StoredArray(tmp_path / "g" / "a", (5, 3), (2, 3), dtype, fill, attributes={"x": 1})
    assert ours.is_described()
    assert StoredGroup(tmp_path / "g", {"of": ["zarr"]}).is_described()


def test_other_versions_of_zarr_may_leave_out_defaults(tmp_path: Path, X: Any, client: Any) -> None:
    """What is not said is what zarr takes for it; order and spaces are free."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    for name in ("gram", "rows/dense"):
        file = path / name / "zarr.json"
        described = json.loads(file.read_text())
        described.pop("storage_transformers")
        file.write_text(json.dumps(dict(reversed(described.items()))))
    assert GramStore.open(path).damaged_descriptions() == []


def test_a_damaged_description_of_samples_does_not_reach_a_tile(
    contents: Any, tmp_path: Path, X: Any, client: Any
) -> None:
    """How samples lie in their chunks follows from the header."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before = contents(path)
    file = path / "rows" / "dense" / "zarr.json"
    file.write_text(file.read_text().replace("8,", "9,", 1))
    (path / "gram/c/1/2").unlink()
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    assert (path / "gram/c/1/2").read_bytes() == before["gram/c/1/2"]


# The record of places


def swap(path: Path, one: str, other: str) -> None:
    """Exchange two files."""
    (path / one).rename(path / "aside")
    (path / other).rename(path / one)
    (path / "aside").rename(path / other)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("layout", ["triangle", "full"])
@pytest.mark.parametrize("kernel", [0, 1])
def test_swapped_tiles_are_found_and_repaired(
    contents: Any, tmp_path: Path, X: Any, client: Any, layout: str, kernel: int
) -> None:
    """Both are sound for themselves, of equal size, and of one matrix."""
    path, name = tmp_path / "g", ("gram", "gram-1")[kernel]
    kernels = [dhsk.CosineKernel(), KERNEL]
    dhsk.compute_gram(X, kernels, tile=TILE, store=path, client=client, layout=layout)
    before, store = contents(path), GramStore.open(path)
    swap(path, f"{name}/c/0/3", f"{name}/c/1/4")
    assert store.missing_tiles() == []
    for opened in (store, GramStore.open(path)):
        assert opened.damaged_tiles() == [(0, 3), (1, 4)]
        with pytest.raises(dhsk.CorruptTileError, match=r"that of its place .* another chunk"):
            opened.read_tile(1, 4, kernel)
        with pytest.raises(dhsk.CorruptTileError, match=r"2 of 21 tiles .* damaged: \(0, 3\)"):
            opened.check_sound()
    assert dhsk.repair_gram(path, X, client=client) == [(0, 3), (1, 4)]
    assert contents(path) == before


def test_swapped_samples_are_found_and_staged_again(
    contents: Any, tmp_path: Path, X: Any, client: Any
) -> None:
    """Chunks of dense samples."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before = contents(path)
    swap(path, "rows/dense/c/0/0", "rows/dense/c/3/0")
    store = GramStore.open(path)
    assert store.damaged_tiles() == []
    with pytest.raises(dhsk.CorruptTileError, match=r"samples \(rows\) in .* it is another chunk"):
        store.samples.read("rows", slice(0, 5))
    with pytest.raises(dhsk.CorruptTileError, match=r"the samples \(rows\) in .* are damaged"):
        store.check_sound()
    assert dhsk.repair_gram(path, X, client=client) == []
    assert contents(path) == before


@pytest.mark.slow
def test_swapped_entries_are_found(
    contents: Any, tmp_path: Path, X: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CSR samples are three arrays of chunks."""
    monkeypatch.setattr("dhsk.gram.storage.staged.CSR_CHUNK", 16)
    path, samples = tmp_path / "g", csr_array(X)
    dhsk.compute_gram(samples, KERNEL, tile=TILE, store=path, client=client)
    for name in ("data", "indices", "indptr"):
        before = contents(path)
        swap(path, f"rows/{name}/c/0", f"rows/{name}/c/1")
        assert GramStore.open(path).damaged_sides() == ["rows"]
        dhsk.repair_gram(path, samples, client=client)
        assert contents(path) == before


def test_chunks_of_zeros_are_written(
    tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries that are all in column 0 have indices of zero only: they are no missing chunk."""
    monkeypatch.setattr("dhsk.gram.storage.staged.CSR_CHUNK", 4)
    X = np.diag(np.arange(1.0, 13.0))
    X[:8] = 0
    X[:8, 0] = 1
    path = tmp_path / "g"
    G = dhsk.compute_gram(csr_array(X), dhsk.LinearKernel(), tile=TILE, store=path, client=client)
    np.testing.assert_array_equal(np.asarray(G), X @ X.T)
    GramStore.open(path).check_sound()


def test_a_tile_of_another_store_is_found(tmp_path: Path, X: Any, client: Any) -> None:
    """Of the same place, but of another kernel."""
    for name, kernel in (("a", KERNEL), ("b", dhsk.CosineKernel())):
        dhsk.compute_gram(X, kernel, tile=TILE, store=tmp_path / name, client=client)
    shutil.copy(tmp_path / "a/gram/c/1/2", tmp_path / "b/gram/c/1/2")
    assert GramStore.open(tmp_path / "b").damaged_tiles() == [(1, 2)]


def compute_without_record(
    X: Any, path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed when all tiles are there."""

    def killed(_: GramStore) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GramStore, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)


def test_a_run_killed_before_the_record_goes_on(
    contents: Any, tmp_path: Path, X: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tiles are there without it: it is made from them, and the store has the same bits."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before = contents(path)
    for lost in ("gram", "gram/c/1/3"):
        target = path / lost
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        compute_without_record(X, path, client, monkeypatch)
        GramStore.open(path).check_sound()
        assert contents(path) != before
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
        assert contents(path) == before


def test_tiles_that_are_made_again_leave_the_record_first(
    tmp_path: Path, X: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine may round otherwise; the record of the others stays, and finds a swap."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    (path / "gram/c/1/3").unlink()
    swap(path, "gram/c/0/1", "gram/c/0/2")
    store = GramStore.open(path)
    other = store.read_tile(2, 4).copy()  # other values in the place of the lost tile
    compute_without_record(X, path, client, monkeypatch)
    writer = store.arrays[0].writer((1, 3))
    writer.append(other)
    writer.finish()
    writer.commit()
    np.testing.assert_array_equal(GramStore.open(path).read_tile(1, 3), other)
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    found = GramStore.open(path)
    np.testing.assert_array_equal(found.read_tile(1, 3), other)
    assert found.damaged_tiles() == [(0, 1), (0, 2)]


def test_a_store_of_before_gets_a_record_when_it_is_taken_up(
    contents: Any, tmp_path: Path, X: Any, client: Any
) -> None:
    """The same command again makes it, of the tiles as they are; nothing else is written."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before, written = contents(path), times(path)
    for name in ("gram", "rows/dense"):
        file = path / name / "zarr.json"
        described = json.loads(file.read_text())
        assert len(described["attributes"].pop(RECORD)) == 8 * (21 if name == "gram" else 6)
        file.write_text(json.dumps(described, indent=2))
    GramStore.open(path).check_sound()
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    found = contents(path)
    assert found.pop("gram/zarr.json") == before.pop("gram/zarr.json")
    assert times(path) == written
    swap(path, "gram/c/0/3", "gram/c/1/4")
    assert GramStore.open(path).damaged_tiles() == [(0, 3), (1, 4)]


def test_a_damaged_record_is_put_right(contents: Any, tmp_path: Path, X: Any, client: Any) -> None:
    """A digit costs a tile, which is made again; a word of another length the record."""
    path = tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before, file = contents(path), path / "gram" / "zarr.json"
    described = json.loads(file.read_text())
    record = described["attributes"][RECORD]
    for wrong, made in (
        (record[:8] + ("0" if record[8] != "0" else "1") + record[9:], [(0, 1)]),
        (record[1:], []),
        ("x" + record[1:], []),
        (record.upper(), []),
    ):
        described["attributes"][RECORD] = wrong
        file.write_text(json.dumps(described))
        with pytest.raises(dhsk.CorruptTileError):
            GramStore.open(path).check_sound()
        assert dhsk.repair_gram(path, X, client=client) == made
        assert contents(path) == before


def test_the_arrays_are_those_of_zarr(made: tuple[Path, Any]) -> None:
    """Other programs read them with their records."""
    path, _ = made
    group: Any = zarr.open_group(str(path), mode="r")
    assert np.isfinite(group["gram"][:TILE]).all()
    assert set(group["gram"].attrs) == {RECORD}
    assert dict(group["rows"].attrs) == {"complete": True}
