"""Killed at any moment, the same command finishes the store, bit for bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.gram.store import GramStore

WORDS = ["gram", "x.npy", "--out", "killed", "--time-scale", "0.3", "--tile", "128"]
"""A job of 78 tiles and a few seconds."""


@pytest.fixture
def folder(tmp_path: Path, counts: Any) -> Path:
    """A folder with samples, where commands run."""
    np.save(tmp_path / "x.npy", counts(1500, 64))
    return tmp_path


def start(folder: Path, words: list[str]) -> "subprocess.Popen[str]":
    """Start the command with a local cluster, as the head of a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dhsk", *words],
        cwd=folder, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def chunks(store: Path) -> dict[str, int]:
    """Finished tiles by name, with their times of writing."""
    files = (store / "gram" / "c").glob("*/*")
    return {str(f.relative_to(store)): f.stat().st_mtime_ns for f in files if f.name.isdigit()}


def wait_for_tiles(process: "subprocess.Popen[str]", store: Path, count: int) -> None:
    """Return once so many tiles are there."""
    deadline = time.monotonic() + 60
    while len(chunks(store)) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def contents(store: Path) -> dict[str, bytes]:
    """Every file of a store."""
    return {str(f.relative_to(store)): f.read_bytes() for f in store.rglob("*") if f.is_file()}


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_process_tree_resumes(folder: Path, seed: int) -> None:
    """SIGKILL to all processes, twice; what was finished is not computed again."""
    rng = np.random.default_rng(seed)
    store, reference = folder / "killed", folder / "whole"
    whole = start(folder, [*WORDS[:3], "whole", *WORDS[4:]])
    assert whole.wait() == 0, whole.communicate()[0]
    whole.communicate()
    for count in np.sort(rng.choice(np.arange(1, 60), 2, replace=False)):
        process = start(folder, WORDS)
        wait_for_tiles(process, store, int(count))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finished = {tile: when for tile, when in chunks(store).items() if is_whole(store, tile)}
    assert 0 < len(finished) < 78
    process = start(folder, WORDS)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    after = chunks(store)
    assert {tile: after[tile] for tile in finished} == finished
    assert contents(store) == contents(reference)


def is_whole(store: Path, tile: str) -> bool:
    """Whether a tile counts as finished for the store itself."""
    i, j = (int(part) for part in Path(tile).parts[-2:])
    return (i, j) not in GramStore.open(store).missing_tiles()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
def test_interrupted_command_says_so_and_resumes(folder: Path, number: signal.Signals) -> None:
    """Ctrl-C, which a terminal sends to workers too, and SIGTERM: 130, one sentence, resumable."""
    process = start(folder, WORDS)
    wait_for_tiles(process, folder / "killed", 5)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "run the same command again" in output
    assert "Traceback" not in output
    assert 0 < len(GramStore.open(folder / "killed").missing_tiles()) < 78
    process = start(folder, WORDS)
    output, _ = process.communicate()
    assert (process.returncode, "78 tiles" in output) == (0, True), output
    assert not GramStore.open(folder / "killed").damaged_tiles()
