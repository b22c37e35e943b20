"""The store: what is written comes back, and what is damaged is noticed."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from dhsk.errors import CorruptTileError, IncompleteStoreError, StoreError, StoreMismatchError
from dhsk.gram.storage.chunks import CHECKSUM_BYTES
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tile_tasks import TileWriter
from dhsk.gram.tiles import TileValues

N, TILE, DIM = 10, 4, 5


def header(**changes: Any) -> Header:
    """Header of a small symmetric matrix."""
    return Header(
        **{
            "n_rows": N,
            "n_cols": N,
            "symmetric": True,
            "dtype": "float64",
            "tile": TILE,
            "layout": "triangle",
            "kernels": ({"name": "cosine"},),
            "sphere_map": "hyperspherical",
            "dim": DIM,
            "fingerprints": ("ab" * 16,),
            "nnz": (None,),
        }
        | changes
    )


def write_tile(store: GramStore, i: int, j: int, values: Any) -> None:
    """Write a tile as the tasks do."""
    tiling = store.header.tiling
    with TileWriter(store) as writer:
        writer.put(TileValues(i, j, 0, tiling.rows(i), tiling.cols(j), values))


@pytest.fixture
def store(tmp_path: Path) -> GramStore:
    """A store without tiles."""
    return GramStore.create(tmp_path / "g", header())


@pytest.fixture
def full(store: GramStore, rng: np.random.Generator) -> GramStore:
    """A store with every tile, of random values."""
    for i, j in store.header.tiling.tiles():
        tiling = store.header.tiling
        shape = [part.stop - part.start for part in (tiling.rows(i), tiling.cols(j))]
        write_tile(store, i, j, rng.random(shape))
    return store


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_come_back_bit_for_bit(tmp_path: Path, dtype: str, rng: Any) -> None:
    """Inner and edge tiles keep every bit in both types."""
    store = GramStore.create(tmp_path / "g", header(dtype=dtype))
    for i, j, shape in ((0, 1, (4, 4)), (1, 2, (4, 2)), (2, 2, (2, 2))):
        values = rng.random(shape).astype(dtype)
        write_tile(store, i, j, values)
        np.testing.assert_array_equal(store.read_tile(i, j), values, strict=True)


def test_disks_that_cannot_reserve_room_do_as_well(store: GramStore, monkeypatch: Any) -> None:
    """A file system without fallocate gets the same file, and no error."""
    values = np.ones((TILE, TILE))
    write_tile(store, 0, 0, values)
    path = store.path / "gram" / "c" / "0" / "0"
    reserved = path.read_bytes()

    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "no fallocate here")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    write_tile(store, 0, 0, values)
    assert path.read_bytes() == reserved


def test_full_layout_writes_the_mirror_image(tmp_path: Path, rng: Any) -> None:
    """Tile (0, 1) also appears, transposed, as (1, 0)."""
    store = GramStore.create(tmp_path / "g", header(layout="full"))
    values = rng.random((4, 4))
    write_tile(store, 0, 1, values)
    np.testing.assert_array_equal(store.read_tile(1, 0), values.T)
    store.remove_tile(0, 1)
    with pytest.raises(IncompleteStoreError):
        store.read_tile(1, 0)


def test_constant_tiles_are_written(store: GramStore) -> None:
    """A tile of zeros is a tile: it does not look missing."""
    write_tile(store, 0, 1, np.zeros((4, 4)))
    assert (0, 1) not in store.missing_tiles()
    assert not store.read_tile(0, 1).any()


def test_missing_tiles_are_listed(store: GramStore, rng: Any) -> None:
    """What was not written is missing, the rest is not."""
    write_tile(store, 0, 0, rng.random((4, 4)))
    write_tile(store, 1, 2, rng.random((4, 2)))
    assert store.missing_tiles() == [(0, 1), (0, 2), (1, 1), (2, 2)]
    with pytest.raises(IncompleteStoreError, match=r"lacks 4 of 6 tiles .*: run the command"):
        store.check_complete()


def test_missing_tile_is_an_error_not_a_fill_value(store: GramStore) -> None:
    """Reading a tile that was never written fails."""
    with pytest.raises(IncompleteStoreError, match=r"tile \(0, 1\) of .* is missing"):
        store.read_tile(0, 1)


def test_every_flipped_bit_is_found(full: GramStore, rng: Any) -> None:
    """One bit changed anywhere in a chunk, its checksum included, makes the tile damaged."""
    chunk = full.path / "gram" / "c" / "0" / "1"
    sound = chunk.read_bytes()
    for position in [0, len(sound) - 1, *rng.integers(0, len(sound), 20)]:
        damaged = bytearray(sound)
        damaged[position] ^= 1 << int(rng.integers(8))
        chunk.write_bytes(damaged)
        with pytest.raises(CorruptTileError, match=r"tile \(0, 1\) .* is damaged"):
            full.read_tile(0, 1)
        assert full.damaged_tiles() == [(0, 1)]
    chunk.write_bytes(sound)
    assert full.damaged_tiles() == []


@pytest.mark.parametrize("kept", [0, 3, 4, 60])
def test_truncated_tile_is_damaged_and_computed_again(full: GramStore, kept: int) -> None:
    """A chunk cut short is neither read nor taken for finished."""
    chunk = full.path / "gram" / "c" / "1" / "1"
    assert chunk.stat().st_size == TILE**2 * 8 + CHECKSUM_BYTES
    chunk.write_bytes(chunk.read_bytes()[:kept])
    assert full.missing_tiles() == [(1, 1)]
    with pytest.raises(CorruptTileError):
        full.read_tile(1, 1)


def test_half_written_files_do_not_count(full: GramStore) -> None:
    """The temporary file of a killed write is not a tile; it goes with the next opening."""
    folder, part = full.path / "gram" / "c" / "0", ".1.4f3a0b1c.part"
    (folder / "1").rename(folder / part)
    assert full.missing_tiles() == [(0, 1)]
    GramStore.create(full.path, full.header)
    assert not (folder / part).exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fingerprints": ("cd" * 16,)}, r"samples \(abababab, now cdcdcdcd\)"),
        ({"kernels": ({"name": "heat", "dim": 5, "time": 0.3},)}, "kernel"),
        ({"sphere_map": "projective"}, "map"),
        ({"dtype": "float32"}, "dtype"),
        ({"layout": "full"}, "layout"),
    ],
)
def test_store_of_something_else_is_refused(full: GramStore, changes: Any, named: str) -> None:
    """What differs is named, and nothing is overwritten."""
    before = full.read_tile(0, 0)
    with pytest.raises(StoreMismatchError, match=f"made with other {named}"):
        GramStore.create(full.path, header(**changes))
    np.testing.assert_array_equal(full.read_tile(0, 0), before)


def test_tile_of_an_existing_store_wins(full: GramStore) -> None:
    """A store is taken up with the tile it has, whatever the plan would choose today."""
    assert GramStore.create(full.path, header(tile=7)).header.tile == TILE


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    """A folder with files of the user's is refused, not filled."""
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StoreError, match="exists but is not a Gram store"):
        GramStore.create(tmp_path, header())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_absent_store_is_named(tmp_path: Path) -> None:
    """Opening nothing says so."""
    with pytest.raises(StoreError, match="nowhere does not exist"):
        GramStore.open(tmp_path / "nowhere")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"attributes": {}}', '{"attributes": 3}'])
def test_other_zarr_groups_are_named(tmp_path: Path, text: str) -> None:
    """A zarr group that is no Gram store, or a broken one, says so."""
    (tmp_path / "zarr.json").write_text(text)
    with pytest.raises(StoreError, match="is not a Gram store of dhsk"):
        GramStore.open(tmp_path)


def test_unknown_schema_is_refused(full: GramStore) -> None:
    """A store of another version is not guessed at."""
    file = full.path / "zarr.json"
    metadata = json.loads(file.read_text())
    metadata["attributes"]["dhsk"]["schema"] = 99
    file.write_text(json.dumps(metadata))
    with pytest.raises(
        StoreMismatchError, match="has schema 99, this version reads 3: compute it again"
    ):
        GramStore.open(full.path)


def test_header_survives_the_disk(full: GramStore) -> None:
    """Every field comes back equal and of the same type."""
    assert GramStore.open(full.path).header == header()


def test_dense_samples_come_back(store: GramStore, rng: Any) -> None:
    """Blocks written one after another are read by any slice."""
    X = rng.random((N, DIM))
    store.samples.start("rows")
    assert not store.samples.has("rows")
    store.samples.write("rows", 0, 0, X[:4])
    store.samples.write("rows", 4, 0, X[4:])
    store.samples.finish("rows")
    assert GramStore.open(store.path).samples.has("rows")
    np.testing.assert_array_equal(store.samples.read("rows", slice(3, 9)), X[3:9])


def test_sparse_samples_come_back(tmp_path: Path, rng: Any) -> None:
    """Sparse blocks stay sparse, empty rows included."""
    X = csr_array(random_array((N, DIM), density=0.3, rng=rng, format="csr"))
    store = GramStore.create(tmp_path / "g", header(nnz=(X.nnz,)))
    store.samples.start("rows")
    entry = 0
    for first in range(0, N, 4):
        block = X[first : first + 4]
        store.samples.write("rows", first, entry, block)
        entry += block.nnz
    store.samples.finish("rows")
    for part in (slice(0, N), slice(2, 5), slice(8, 10)):
        read = store.samples.read("rows", part)
        assert isinstance(read, csr_array)
        np.testing.assert_array_equal(read.toarray(), X[part].toarray())


def test_damaged_samples_are_noticed(store: GramStore, rng: Any) -> None:
    """A flipped bit in the staged samples does not reach a tile."""
    store.samples.start("rows")
    store.samples.write("rows", 0, 0, rng.random((N, DIM)))
    store.samples.finish("rows")
    chunk = store.path / "rows" / "dense" / "c" / "0" / "0"
    damaged = bytearray(chunk.read_bytes())
    damaged[9] ^= 4
    chunk.write_bytes(damaged)
    with pytest.raises(CorruptTileError, match=r"samples .* are damaged"):
        store.samples.read("rows", slice(0, 3))
