"""Samples that change while they are read: refused, and no store is made of half of each."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from scipy.sparse import csr_array, save_npz

import dhsk
from dhsk.__main__ import exit_code
from dhsk.gram.storage import staging
from dhsk.gram.storage.store import GramStore
from dhsk.progress import Progress
from dhsk.samples import chunked

N, DIM, TILE = 60, 12, 8
KERNEL = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=0.7)
CHANGED = r"changed (while it was read: row \d+|since it was opened)"

Change = Callable[[], None]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are staged in blocks of one tile, and read by single chunks."""
    monkeypatch.setattr(staging, "BLOCK_BYTES", 8 * DIM * TILE)
    monkeypatch.setattr(chunked, "PIECE_BYTES", 1)


def keeping_time(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file again with its old time stamp, as `rsync -t` and `cp -p` do, by a rename."""
    status = path.stat()
    beside = path.with_name(f"new-{path.name}")
    write(beside)
    os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    beside.replace(path)


def an_array(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """The caller's own array."""
    X = old.copy()
    return X, lambda: np.copyto(X, new)


def a_csr_array(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """The caller's own CSR array."""
    X = csr_array(old)
    return X, lambda: X.data.__setitem__(slice(None), X.data[::-1] + new[0, 0])


def a_file(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """A `.npy` file of the same size."""
    np.save(folder / "x.npy", old)
    return folder / "x.npy", lambda: keeping_time(folder / "x.npy", lambda p: np.save(p, new))


def a_csr_file(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """A CSR matrix of the same size, uncompressed."""

    def write(path: Path, X: Any) -> None:
        A = csr_array(np.where(old > 0, X + 1, 0))
        save_npz(path, A, compressed=False)

    write(folder / "x.npz", old)
    return folder / "x.npz", lambda: keeping_time(folder / "x.npz", lambda p: write(p, new))


def a_zarr_chunk(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """One chunk of many, written again in its place."""
    array = zarr.create_array(str(folder / "x.zarr"), data=old, chunks=(TILE, DIM))
    return folder / "x.zarr", lambda: array.__setitem__(slice(-TILE, None), new[-TILE:])


def an_h5ad(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """A file of AnnData, whose dense array becomes another."""

    def write(path: Path, X: Any) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("X", data=X, chunks=(TILE, DIM))

    write(folder / "x.h5ad", old)
    return folder / "x.h5ad", lambda: keeping_time(folder / "x.h5ad", lambda p: write(p, new))


def a_csv(folder: Path, old: Any, new: Any) -> tuple[Any, Change]:
    """A table whose numbers have the same length."""

    def write(path: Path, X: Any) -> None:
        np.savetxt(
            path, X, delimiter=",", fmt="%05.1f", header=",".join(f"f{k:02}" for k in range(DIM))
        )

    write(folder / "x.csv", old)
    return folder / "x.csv", lambda: keeping_time(folder / "x.csv", lambda p: write(p, new))


OPENED_AGAIN = [an_array, a_csr_array, a_file, a_zarr_chunk]
"""Sources of which each block is read from what is there then."""

HELD_OPEN = [a_csr_file, an_h5ad, a_csv]
"""Files that stay open from the first block to the last: what replaces them comes to the next."""


def once(stage: str, done: int, change: Change) -> Callable[[Progress], None]:
    """Progress that changes samples when a stage has come so far."""
    left = [change]

    def look(event: Progress) -> None:
        if left and event.stage == stage and event.done >= done:
            left.pop()()

    return look


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "stage", "done"),
    [(source, "reading", N) for source in (*OPENED_AGAIN, *HELD_OPEN)]
    + [(source, "staging", 2 * TILE) for source in OPENED_AGAIN],
)
def test_samples_that_change_are_refused(
    tmp_path: Path, counts: Any, client: Any, source: Any, stage: str, done: int
) -> None:
    """Between scan and staging, or in the middle of it: nothing stays, and the next run is new."""
    X, change = source(tmp_path, counts(N, DIM), counts(N, DIM) + 1)
    path = tmp_path / "g"
    watch = once(stage, done, change)
    with pytest.raises(dhsk.SamplesChangedError, match=CHANGED) as refused:
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client, progress=watch)
    assert exit_code(refused.value) == 4
    assert not path.exists()
    found = np.asarray(dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client))
    np.testing.assert_array_equal(
        found, np.asarray(dhsk.compute_gram(X, KERNEL, tile=TILE, client=client))
    )


@pytest.mark.slow
@pytest.mark.parametrize("source", HELD_OPEN)
def test_a_file_that_is_replaced_while_it_is_open_gives_the_old_matrix(
    tmp_path: Path, counts: Any, client: Any, source: Any
) -> None:
    """All of what was checked is read: a whole matrix of the samples as they were."""
    X, change = source(tmp_path, counts(N, DIM), counts(N, DIM) + 1)
    expected = np.asarray(dhsk.compute_gram(X, KERNEL, tile=TILE, client=client))
    path, watch = tmp_path / "g", once("staging", 2 * TILE, change)
    G = dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client, progress=watch)
    np.testing.assert_array_equal(np.asarray(G), expected)
    with pytest.raises(dhsk.StoreMismatchError, match="made with other samples"):
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)


def test_one_changed_bit_of_one_row_is_enough(tmp_path: Path, counts: Any, client: Any) -> None:
    """The last row of all, the lowest bit; of the caller's array."""
    X = counts(N, DIM)
    watch = once("reading", N, lambda: X.__setitem__((N - 1, 3), np.nextafter(X[N - 1, 3], 9)))
    with pytest.raises(dhsk.SamplesChangedError, match=f"X changed .* row {N - 1} "):
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=tmp_path / "g", progress=watch, client=client)
    assert not (tmp_path / "g").exists()


def test_a_store_of_before_keeps_its_tiles(tmp_path: Path, counts: Any, client: Any) -> None:
    """What an earlier run had computed of the samples as they were is finished when they return."""
    X, path = counts(N, DIM), tmp_path / "g"
    old = X.copy()

    def stop(event: Progress) -> None:
        if event.stage == "staging" and event.done >= 4 * TILE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client, progress=stop)
    watch = once("staging", 2 * TILE, lambda: np.copyto(X, old[::-1]))
    with pytest.raises(dhsk.SamplesChangedError, match=CHANGED):
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client, progress=watch)
    with pytest.raises(dhsk.IncompleteStoreError):
        dhsk.open_gram(path)
    with pytest.raises(dhsk.StoreMismatchError, match="made with other samples"):
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    G = dhsk.compute_gram(old, KERNEL, tile=TILE, store=path, client=client)
    assert G.verify() == 36
    expected = dhsk.compute_gram(old, KERNEL, tile=TILE, client=client)
    np.testing.assert_array_equal(np.asarray(G), np.asarray(expected))


def test_repair_refuses_samples_that_change(tmp_path: Path, counts: Any, client: Any) -> None:
    """The tiles stay, nothing of other samples comes to them, and the next repair ends it."""
    X, path = counts(N, DIM), tmp_path / "g"
    old = X.copy()
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client)
    before = np.asarray(dhsk.open_gram(path))
    for name in ("rows/dense/c/3/0", "gram/c/1/2"):
        os.truncate(path / name, 50)
    watch = once("staging", 2 * TILE, lambda: np.copyto(X, old[::-1]))
    with pytest.raises(dhsk.SamplesChangedError, match=CHANGED):
        dhsk.repair_gram(path, X, client=client, progress=watch)
    with pytest.raises(dhsk.CorruptTileError, match=r"the samples \(rows\) in .* are damaged"):
        GramStore.open(path).check_sound()
    dhsk.repair_gram(path, old, client=client)
    GramStore.open(path).check_sound()
    np.testing.assert_array_equal(np.asarray(dhsk.open_gram(path)), before)


def test_samples_computed_on_demand_are_refused_too(counts: Any, client: Any) -> None:
    """Without a store they are staged as well."""
    X = counts(N, DIM)
    with pytest.raises(dhsk.SamplesChangedError, match=CHANGED):
        dhsk.compute_gram(
            X, KERNEL, client=client, progress=once("reading", N, lambda: np.add(X, 1, out=X))
        )


def test_columns_that_change_are_refused(tmp_path: Path, counts: Any, client: Any) -> None:
    """A rectangular matrix has two sides."""
    X, Y = counts(N, DIM), counts(2 * N, DIM)
    watch = once("staging", N + TILE, lambda: np.add(Y, 1, out=Y))
    with pytest.raises(dhsk.SamplesChangedError, match=CHANGED):
        dhsk.compute_gram(X, KERNEL, Y, tile=TILE, store=tmp_path / "g", client=client,
                          progress=watch)  # fmt: skip
    assert not (tmp_path / "g").exists()


_COMMAND = """
import sys, os
from dhsk.gram import prepare
from dhsk.__main__ import main
import numpy as np
scan = prepare.scan
def replaced(samples, *args, **options):
    found = scan(samples, *args, **options)
    status = os.stat("x.npy")
    np.save("y.npy", np.load("x.npy")[::-1])
    os.utime("y.npy", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace("y.npy", "x.npy")
    return found
prepare.scan = replaced
main(["gram", "x.npy", "--out", "g", "--workers", "1"])
"""


@pytest.mark.slow
def test_the_command_ends_with_one_sentence_and_code_4(tmp_path: Path, counts: Any) -> None:
    """A file replaced by another of the same time and size, between the two readings."""
    np.save(tmp_path / "x.npy", counts(N, DIM))
    done = subprocess.run(
        [sys.executable, "-c", f"if __name__ == '__main__':\n  exec({_COMMAND!r})"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    cost, line = [line for line in done.stderr.splitlines() if not line.startswith("dashboard")]
    assert cost.endswith(" stay")
    assert line.startswith("dhsk: x.npy changed while it was read: row 0 (counted from 0)")
    assert not (tmp_path / "g").exists()
