"""What goes wrong on real machines: two writers, flipped bits, lost workers, Ctrl-C."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy.sparse import csr_array

import dhsk
from dhsk.execution import in_flight
from dhsk.execution.lock import LOCK_NAME, sole_writer
from dhsk.execution.workers import Workers
from dhsk.gram.storage import chunks
from dhsk.gram.storage.store import GramStore
from dhsk.progress import Progress

DIM, TILE = 12, 8
KERNEL = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=0.7)


@pytest.fixture
def X(counts: Any) -> Any:
    """Samples of 45 tiles."""
    return counts(9 * TILE - 3, DIM)


@pytest.fixture
def path(tmp_path: Path, X: Any, client: Any) -> Path:
    """A finished store."""
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=tmp_path / "g", client=client)
    return tmp_path / "g"


# One writer


@pytest.mark.slow
def test_second_writer_is_refused_readers_are_not(
    contents: Any, path: Path, X: Any, client: Any
) -> None:
    """Whoever else would write hears who does and since when; reading goes on."""
    before = contents(path)
    held = rf"is being written by process {os.getpid()} on \S+ since 20.* UTC: wait until"
    with sole_writer(path):
        with pytest.raises(dhsk.StoreError, match=held):
            dhsk.compute_gram(X, KERNEL, store=path, client=client)
        with pytest.raises(dhsk.StoreError, match=held):
            dhsk.repair_gram(path, X, client=client)
        G = dhsk.open_gram(path)
        assert G.verify() == 45
        assert (G @ np.ones(len(X))).shape == (len(X),)
    assert contents(path) == before
    dhsk.compute_gram(X, KERNEL, store=path, client=client)
    assert contents(path) == before


def test_lock_of_a_killed_process_is_taken_over(
    contents: Any, path: Path, X: Any, client: Any
) -> None:
    """SIGKILL leaves a file and no lock: the next writer needs no help, and removes the file."""
    before = contents(path)
    code = (
        "import sys, time; from pathlib import Path; from dhsk.execution.lock import sole_writer\n"
        "with sole_writer(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(dhsk.StoreError, match=f"by process {holder.pid} on "):
            dhsk.compute_gram(X, KERNEL, store=path, client=client)
        holder.kill()
    assert (path / LOCK_NAME).exists()
    (path / "gram/c/0/3").unlink()
    dhsk.compute_gram(X, KERNEL, store=path, client=client)
    assert contents(path) == before


def test_file_system_without_locks_is_said(
    path: Path, X: Any, client: Any, monkeypatch: Any
) -> None:
    """Some network disks have no locks: the work goes on, with a warning."""

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:  # the cluster of the fixture ends with its own locks
        patch.setattr(fcntl, "flock", flock)
        with pytest.warns(UserWarning, match="has no locks: make sure"):
            dhsk.compute_gram(X, KERNEL, store=path, client=client)


# Damage


def flip(file: Path, rng: np.random.Generator) -> None:
    """Change one bit of a file."""
    data = bytearray(file.read_bytes())
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    file.write_bytes(data)


@pytest.mark.slow
def test_random_damage_is_found_and_only_it_is_repaired(
    contents: Any, tmp_path: Path, counts: Any, client: Any, rng: np.random.Generator
) -> None:
    """Flipped, cut, emptied and lost tiles of several kernels: no other chunk is touched."""
    X, path = counts(9 * TILE - 3, DIM), tmp_path / "g"
    kernels = [dhsk.CosineKernel(), KERNEL, dhsk.ParametrixKernel(0.3)]
    dhsk.compute_gram(X, kernels, tile=TILE, store=path, client=client)
    before = contents(path)
    store = GramStore.open(path)
    for _ in range(4):
        tiles = list(store.header.tiling.tiles())
        chosen = [tiles[k] for k in rng.choice(45, 5, replace=False)]
        names = [f"gram{rng.choice(['', '-1', '-2'])}/c/{i}/{j}" for i, j in chosen]
        flip(path / names[0], rng)
        flip(path / names[1], rng)
        (path / names[2]).write_bytes(before[names[2]][:-1])
        (path / names[3]).write_bytes(b"")
        (path / names[4]).unlink()
        assert store.damaged_tiles() == sorted(chosen)
        assert store.missing_tiles() == sorted(chosen[2:])
        with pytest.raises(
            dhsk.CorruptTileError,
            match=r"2 of 45 tiles of .* are damaged: .* and 3 of 45 .*missing",
        ):
            store.check_sound()
        kept = {
            n: (path / n).stat().st_mtime_ns for n in before if "/c/" in n and not named(n, chosen)
        }
        assert dhsk.repair_gram(path, X, client=client) == sorted(chosen)
        assert contents(path) == before
        assert {n: (path / n).stat().st_mtime_ns for n in kept} == kept


def named(name: str, tiles: list[tuple[int, int]]) -> bool:
    """Whether a file is a chunk of one of the tiles."""
    parts = Path(name).parts
    return name.startswith("gram") and parts[1] == "c" and (int(parts[2]), int(parts[3])) in tiles


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("how", ["flipped", "cut", "gone"])
def test_damaged_samples_are_found_and_staged_again(
    contents: Any, tmp_path: Path, X: Any, client: Any, rng: Any, sparse: bool, how: str
) -> None:
    """Samples in the store are checked like tiles; a missing chunk is not taken for zeros."""
    path, samples = tmp_path / "g", csr_array(X) if sparse else X
    dhsk.compute_gram(samples, KERNEL, tile=TILE, store=path, client=client)
    before = contents(path)
    store = GramStore.open(path)
    for name in [n for n in before if n.startswith("rows/") and "/c/" in n]:
        if how == "flipped":
            flip(path / name, rng)
        elif how == "cut":
            os.truncate(path / name, 100)
        else:
            (path / name).unlink()
        with pytest.raises(dhsk.CorruptTileError, match=r"the samples \(rows\) in .* are damaged"):
            store.check_sound()
        with pytest.raises(dhsk.CorruptTileError, match=r"samples .* are damaged .*--repair"):
            store.samples.read("rows", slice(0, len(X)))
        assert dhsk.repair_gram(path, samples, client=client) == []
        assert contents(path) == before


@pytest.mark.slow
def test_no_flipped_bit_changes_what_a_store_says_it_is(path: Path) -> None:
    """Every bit of the description: the store is refused, or says what it said before."""
    header = GramStore.open(path).header
    file = path / "zarr.json"
    sound = file.read_bytes()
    refused = 0
    for position in range(8 * len(sound)):
        data = bytearray(sound)
        data[position // 8] ^= 1 << position % 8
        file.write_bytes(data)
        try:
            assert GramStore.open(path).header == header
        except dhsk.StoreError:
            refused += 1
    assert refused > 4 * len(sound)
    file.write_bytes(sound.replace(b"0.7", b"0.8").replace(b'"n_rows": 69', b'"n_rows": 68'))
    with pytest.raises(
        dhsk.StoreError, match=r"description of .* is damaged \(zarr.json\): restore"
    ):
        GramStore.open(path)


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("change", [(b"69", b"68"), (b"crc32c", b"crc32d"), (b"{", b"[")])
def test_damaged_array_description_is_found_and_repaired(
    contents: Any, path: Path, X: Any, client: Any, change: tuple[bytes, bytes]
) -> None:
    """Other programs read it, so it is looked after as well."""
    before = contents(path)
    file = path / "gram" / "zarr.json"
    file.write_bytes(file.read_bytes().replace(*change, 1))
    with pytest.raises(dhsk.CorruptTileError, match=r"gram/zarr.json is damaged; recompute"):
        GramStore.open(path).check_sound()
    assert dhsk.repair_gram(path, X, client=client) == []
    assert contents(path) == before


def test_rectangular_store_is_repaired_with_both(
    contents: Any, tmp_path: Path, counts: Any, client: Any
) -> None:
    """One set of samples is not enough, and the message says what is."""
    X, Y, path = counts(30, DIM), counts(20, DIM), tmp_path / "g"
    dhsk.compute_gram(X, KERNEL, Y, tile=TILE, store=path, client=client)
    before = contents(path)
    for name in ("gram/c/3/1", "cols/dense/c/0/0"):
        os.truncate(path / name, 50)
    with pytest.raises(dhsk.InputError, match=r"from 2 sets of samples, 1 given.*\(store, X, Y\)"):
        dhsk.repair_gram(path, X, client=client)
    with pytest.raises(dhsk.StoreMismatchError, match="made from other samples"):
        dhsk.repair_gram(path, X, Y[::-1].copy(), client=client)
    assert dhsk.repair_gram(path, X, Y, client=client) == [(3, 1)]
    assert contents(path) == before


def test_unreadable_sector_is_damage(path: Path, monkeypatch: Any) -> None:
    """A disk that cannot read a file has lost the tile."""

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(chunks, "read_into", fail)
    with pytest.raises(dhsk.CorruptTileError, match="the disk cannot read it"):
        GramStore.open(path).read_tile(0, 0)


# Ctrl-C in Python


@pytest.mark.slow(beyond=1)
@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("stage", ["reading", "staging", "tiles"])
def test_ctrl_c_in_a_library_call_is_resumable(
    contents: Any, tmp_path: Path, path: Path, X: Any, client: Any, stage: str
) -> None:
    """The user's client lives on without tasks, and the same call ends with the same bits."""
    again = tmp_path / "again"

    def interrupt(event: Progress) -> None:
        if event.stage == stage and (event.done >= 3 or stage != "tiles"):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as stopped:
        dhsk.compute_gram(X, KERNEL, tile=TILE, store=again, client=client, progress=interrupt)
    assert stopped.tb is not None  # what a console keeps, and with it the frames
    wait_until(lambda: not client.futures)
    assert not (again / LOCK_NAME).exists()
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=again, client=client)
    assert contents(again) == contents(path)


def wait_until(true: Any) -> None:
    """Return once something is true."""
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Lost workers


def reference(contents: Any, X: Any, folder: Path) -> dict[str, bytes]:
    """The store of an undisturbed run."""
    dhsk.compute_gram(X, KERNEL, tile=TILE, store=folder)
    return contents(folder)


@pytest.mark.slow
def test_a_killed_worker_is_survived(contents: Any, tmp_path: Path, X: Any) -> None:
    """One of two processes dies of SIGKILL: its tasks run again, the store has the same bits."""
    killed: list[int] = []
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        pids = list(client.run(os.getpid).values())

        def kill(event: Progress) -> None:
            if event.stage == "tiles" and event.done >= 3 and not killed:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(event.done)

        G = dhsk.compute_gram(
            X, KERNEL, tile=TILE, store=tmp_path / "g", client=client, progress=kill
        )
        assert G.verify() == 45
    assert killed
    assert killed[0] < 45
    assert contents(tmp_path / "g") == reference(contents, X, tmp_path / "reference")


@contextmanager
def scheduler_alone() -> Iterator[Any]:
    """Client of a scheduler without workers."""
    with (
        LocalCluster(
            n_workers=0, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
def test_loss_of_all_workers_ends_in_words(
    contents: Any, tmp_path: Path, X: Any, monkeypatch: Any
) -> None:
    """Nobody restarts them: an error after a while, not a wait for ever, and tiles are kept."""
    monkeypatch.setattr(in_flight, "PATIENCE_SECONDS", 1.0)
    path = tmp_path / "g"
    with scheduler_alone() as client:
        address = client.scheduler.address
        options = ("--no-nanny", "--no-dashboard", "--nthreads", "1", "--local-directory")
        words = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            address,
            *options,
            str(tmp_path),
        ]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as worker:
            client.wait_for_workers(1, timeout=60)

            def kill(event: Progress) -> None:
                if event.stage == "tiles" and event.done >= 3:
                    worker.kill()

            with pytest.raises(dhsk.ClusterError, match=r"no workers left, with tile.* in work"):
                dhsk.compute_gram(X, KERNEL, tile=TILE, store=path, client=client, progress=kill)
    assert 0 < len(GramStore.open(path).missing_tiles()) <= 42
    assert reference(contents, X, path) == reference(contents, X, tmp_path / "reference")


@pytest.mark.slow
def test_worker_killed_for_its_memory_is_a_budget_error(tmp_path: Path) -> None:
    """The nanny ends a worker that outgrows its limit, and the error names memory."""

    def hog() -> None:  # inside, so that it travels as code
        held = np.ones(700_000_000 // 8)
        time.sleep(60)
        del held

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="500MB", silence_logs=50,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(dhsk.BudgetError, match="killed 1 worker, most likely for lack of memory"),
    ):  # fmt: skip
        list(Workers(client, 1).run(hog, [()]))
