"""Parts of a matrix, computed without a scheduler: together they are the whole, bit for bit."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array

import dhsk
from dhsk.commands.cli import commands
from dhsk.execution.lock import TURNS_NAME, one_of_several, sole_writer
from dhsk.gram import session
from dhsk.gram.storage.parts import TilePart, numbers_of_parts, share_of
from dhsk.gram.storage.tiling import Tiling
from dhsk.objects.path import ObjectPath

DIM, N, TILE = 30, 230, 40
N_TILES = 21

HEAT = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=1.0)


def files_of(store: Path) -> dict[str, bytes]:
    """Content of every file of a store, by relative name."""
    return {str(f.relative_to(store)): f.read_bytes() for f in store.rglob("*") if f.is_file()}


def tiles_of(store: Path) -> dict[str, int]:
    """Finished tiles, and when each was written."""
    found = (store / "gram" / "c").glob("*/*")
    return {f"{t.parent.name}/{t.name}": t.stat().st_mtime_ns for t in found if t.name.isdigit()}


@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000])
@pytest.mark.parametrize(
    "tiling",
    [Tiling(1000, 1000, 30, True), Tiling(1000, 470, 64, False), Tiling(5, 5, 9, True)],
    ids=["symmetric", "rectangular", "one tile"],
)
def test_every_tile_is_of_one_part(tiling: Tiling, count: int) -> None:
    """Shares are disjoint, cover the matrix, and differ by no more than the work of two tiles."""
    numbers = numbers_of_parts(tiling, count)
    assert set(numbers) == set(tiling.tiles())
    assert set(numbers.values()) <= set(range(1, count + 1))
    assert share_of(tiling, TilePart(1, count)) == {t for t, k in numbers.items() if k == 1}
    work: Counter[int] = Counter()
    rows, cols = tiling.chunks
    for (i, j), number in numbers.items():
        work[number] += rows[i] * cols[j]
    fair = sum(work.values()) / count
    assert all(abs(work[number] - fair) <= tiling.tile**2 for number in range(1, count + 1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layout": "full"},
        {"dtype": "float32"},
        pytest.param({"Y": True}, id="rectangular"),
        pytest.param({"sparse": True}, id="sparse"),
        pytest.param({"kernel": [HEAT, dhsk.CosineKernel()]}, id="two kernels"),
    ],
    ids=str,
)
def test_parts_are_the_whole(
    options: dict[str, Any], counts: Callable[[int, int], Any], tmp_path: Path
) -> None:
    """Parts in any order and the finishing call write the files of one call."""
    X = counts(N, DIM)
    X = csr_array(X) if options.pop("sparse", False) else X
    Y = counts(90, DIM) if options.pop("Y", False) else None
    kernel = options.pop("kernel", HEAT)
    for number in (3, 1, 2):
        dhsk.compute_gram(
            X, kernel, Y, store=tmp_path / "p", tile=TILE, part=(number, 3), **options
        )
    done = tiles_of(tmp_path / "p")
    dhsk.compute_gram(X, kernel, Y, store=tmp_path / "p", tile=TILE, **options)
    dhsk.compute_gram(X, kernel, Y, store=tmp_path / "w", tile=TILE, **options)
    assert files_of(tmp_path / "p") == files_of(tmp_path / "w")
    assert tiles_of(tmp_path / "p") == done


def test_part_run_again_does_nothing(counts: Callable[[int, int], Any], tmp_path: Path) -> None:
    """Neither samples nor tiles are written again."""
    X = counts(N, DIM)

    def written() -> dict[Path, int]:
        return {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*") if f.name != TURNS_NAME}

    dhsk.compute_gram(X, HEAT, store=tmp_path / "p", tile=TILE, part=(2, 3))
    before = {f: at for f, at in written().items() if f.is_file()}
    dhsk.compute_gram(X, HEAT, store=tmp_path / "p", tile=TILE, part=(2, 3))
    assert {f: at for f, at in written().items() if f.is_file()} == before
    assert len(tiles_of(tmp_path / "p")) == len(share_of(Tiling(N, N, TILE, True), TilePart(2, 3)))


def test_missing_parts_are_named(counts: Callable[[int, int], Any], tmp_path: Path) -> None:
    """`dhsk verify` says which tiles and which parts are missing, with exit code 4 in a shell."""
    X = counts(N, DIM)
    for number in (1, 4, 5, 6, 7):
        dhsk.compute_gram(X, HEAT, store=tmp_path / "p", tile=TILE, part=(number, 7))
    done = CliRunner().invoke(commands, ["verify", str(tmp_path / "p")])
    assert isinstance(done.exception, dhsk.IncompleteStoreError)
    assert f"lacks 5 of {N_TILES} tiles ((0, 3), " in str(done.exception)
    assert "run parts 2-3 of 7 again, or the same command without --part" in str(done.exception)


def test_other_samples_or_options_are_refused(
    counts: Callable[[int, int], Any], tmp_path: Path
) -> None:
    """A part of another matrix leaves the store as it is."""
    X = counts(N, DIM)
    options: dict[str, Any] = {"store": tmp_path / "p", "tile": TILE}
    dhsk.compute_gram(X, HEAT, part=(1, 3), **options)
    before = tiles_of(tmp_path / "p")
    with pytest.raises(dhsk.StoreMismatchError, match="other samples"):
        dhsk.compute_gram(X + 1, HEAT, part=(2, 3), **options)
    with pytest.raises(dhsk.StoreMismatchError, match="other kernel"):
        dhsk.compute_gram(X, "cosine", part=(2, 3), **options)
    with pytest.raises(dhsk.StoreMismatchError, match="other dtype"):
        dhsk.compute_gram(X, HEAT, part=(2, 3), dtype="float32", **options)
    assert tiles_of(tmp_path / "p") == before


@pytest.mark.parametrize("part", [(0, 3), (4, 3), (1, 0), 3, "ab", (1.5, 2), (1, 2, 3)], ids=str)
def test_no_part_is_refused(part: Any, tmp_path: Path) -> None:
    """Parts are numbered from 1 to their count."""
    with pytest.raises(dhsk.InputError, match="part"):
        dhsk.compute_gram(np.eye(4), "cosine", store=tmp_path / "p", part=part)
    assert not (tmp_path / "p").exists()


def test_part_without_a_store_is_refused() -> None:
    """A part that nobody finds is of no use."""
    with pytest.raises(dhsk.InputError, match="part 1 of 2 is for a store"):
        dhsk.compute_gram(np.eye(4), "cosine", part=(1, 2))


def test_no_part_beside_a_whole_run(counts: Callable[[int, int], Any], tmp_path: Path) -> None:
    """Neither begins while the other writes, and parts go on beside parts."""
    X, store = counts(N, DIM), tmp_path / "p"
    with sole_writer(store), pytest.raises(dhsk.StoreError, match="is being written by"):
        dhsk.compute_gram(X, HEAT, store=store, tile=TILE, part=(1, 2))
    with one_of_several(store):
        with pytest.raises(dhsk.StoreError, match="is being written by"):
            dhsk.compute_gram(X, HEAT, store=store, tile=TILE)
        dhsk.compute_gram(X, HEAT, store=store, tile=TILE, part=(1, 2))
    dhsk.compute_gram(X, HEAT, store=store, tile=TILE)
    assert {file.name for file in store.iterdir()} == {"gram", "rows", "zarr.json"}


@pytest.fixture
def place(bucket: str, request: Any) -> ObjectPath:
    """A prefix of this test's own, on a server."""
    return ObjectPath(bucket, request.node.name)


def test_parts_on_a_server_are_the_whole(
    counts: Callable[[int, int], Any], tmp_path: Path, place: ObjectPath
) -> None:
    """Parts at once, a missing one that is named, and the finishing call write the files of one."""
    X, options = counts(N, DIM), {"kernel": HEAT, "tile": TILE}
    with ThreadPoolExecutor(3) as pool:
        make = partial(dhsk.compute_gram, X, store=place, **options)
        list(pool.map(lambda number: make(part=(number, 4)), (1, 2, 4)))
    done = CliRunner().invoke(commands, ["verify", str(place)])
    assert "run part 3 of 4 again" in str(done.exception)
    with pytest.raises(dhsk.StoreMismatchError, match="other samples"):
        dhsk.compute_gram(X + 1, store=place, part=(3, 4), **options)
    dhsk.compute_gram(X, store=str(place), **options)
    dhsk.compute_gram(X, store=tmp_path / "w", **options)
    assert {name: place.joinpath(name).read_bytes() for name in place.sizes()} == files_of(
        tmp_path / "w"
    )


def test_a_part_on_a_server_waits_for_the_one_that_stages(
    counts: Callable[[int, int], Any], place: ObjectPath
) -> None:
    """Samples are staged once; the others say that they wait."""
    X, seen = counts(N, DIM), []
    options = {"store": place, "tile": TILE, "part": (1, 2)}
    begun, staged = threading.Event(), []

    def slowly(event: dhsk.Progress) -> None:
        if event.stage == "staging":
            staged.append(event)
            begun.set()
            deadline = time.monotonic() + 30
            while not any(event.stage == "waiting" for event in seen):
                assert time.monotonic() < deadline
                time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(dhsk.compute_gram, X, HEAT, progress=slowly, **options)
        assert begun.wait(60)
        dhsk.compute_gram(X, HEAT, progress=seen.append, **options)
        first.result()
    assert not any(event.stage == "staging" for event in seen)


def command(folder: Path, part: str) -> subprocess.Popen[bytes]:
    """Another process that computes a part."""
    words = ["-m", "dhsk", "gram", "counts.npy", "--out", "p", "--tile", TILE, "--part", part, "-q"]
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
def test_processes_make_one_store(counts: Callable[[int, int], Any], tmp_path: Path) -> None:
    """Parts that start at once make the store of one process; one that is killed is made up for."""
    X = counts(3000, DIM)
    np.save(tmp_path / "counts.npy", X)
    running = [command(tmp_path, f"{number}/4") for number in (1, 2, 3, 4)]
    while not (tmp_path / "p" / "rows").exists():  # one stages: kill whichever it is, or not
        time.sleep(0.005)
    running[2].kill()
    errors = [process.communicate()[1] for process in running]
    assert [p.returncode for p in running] == [0, 0, -signal.SIGKILL, 0], errors
    again = command(tmp_path, "3/4")
    assert again.communicate()[1] == b""
    dhsk.compute_gram(X, HEAT, store=tmp_path / "p", tile=TILE)
    dhsk.compute_gram(X, HEAT, store=tmp_path / "w", tile=TILE)
    assert files_of(tmp_path / "p") == files_of(tmp_path / "w")


def test_killed_while_staging(
    counts: Callable[[int, int], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next part stages anew what one had begun to stage."""
    X = counts(N, DIM)

    def killed(*_: Any) -> Any:
        yield 0
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session, "stage_samples", killed)
        with pytest.raises(KeyboardInterrupt):
            dhsk.compute_gram(X, HEAT, store=tmp_path / "p", tile=TILE, part=(1, 1))
    (tmp_path / "q").mkdir()
    for left in (TURNS_NAME, ".zarr.json.0.part"):  # killed before there was a store
        (tmp_path / "q" / left).touch()
    for store in (tmp_path / "p", tmp_path / "q"):
        dhsk.compute_gram(X, HEAT, store=store, tile=TILE, part=(1, 1))
        assert dhsk.open_gram(store).verify() == N_TILES


@pytest.mark.filterwarnings("ignore:the file system of .* has no locks")
def test_without_locks_the_first_part_stages(
    counts: Callable[[int, int], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file system has no locks, other parts wait for the first, and not for ever."""

    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 0.3)
    X, store = counts(N, DIM), tmp_path / "p"
    with pytest.raises(dhsk.StoreError, match="part 1 stages the samples for all others"):
        dhsk.compute_gram(X, HEAT, store=store, tile=TILE, part=(2, 2))
    monkeypatch.setattr(session, "PATIENCE_SECONDS", 60)
    seen = threading.Event()
    second = threading.Thread(
        target=lambda: dhsk.compute_gram(
            X, HEAT, store=store, tile=TILE, part=(2, 2),
            progress=lambda event: seen.set() if event.stage == "waiting" else None,
        )
    )  # fmt: skip
    second.start()
    assert seen.wait(30)
    dhsk.compute_gram(X, HEAT, store=store, tile=TILE, part=(1, 2))
    second.join()
    dhsk.compute_gram(X, HEAT, store=store, tile=TILE)
    dhsk.compute_gram(X, HEAT, store=tmp_path / "w", tile=TILE)
    assert dhsk.open_gram(store).verify() == N_TILES
    assert tiles_of(store).keys() == tiles_of(tmp_path / "w").keys()
