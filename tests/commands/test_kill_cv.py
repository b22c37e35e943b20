"""A grid killed at any moment goes on where it was, and ends with the same table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk

WORDS = [
    "cv", "x.npy", "--labels", "y.npy", "--time-scale", "0.5,0.7,1", "--C", "1,100,10000",
    "--folds", "3", "--scoring", "balanced_accuracy", "--model", "--out", "killed",
]  # fmt: skip
"""3 kernels x 6 pairs of classes x 3 folds x 3 C."""


@pytest.fixture
def folder(tmp_path: Path, counts: Any, rng: np.random.Generator) -> Path:
    """A folder with samples and labels that say nothing of them: the hardest to fit."""
    np.save(tmp_path / "x.npy", counts(600, 20))
    np.save(tmp_path / "y.npy", rng.integers(0, 4, 600))
    return tmp_path


def entries(folder: Path) -> set[str]:
    """Finished fits."""
    return {file.name for file in (folder / "killed" / "fits").glob("*.npz")}


def wait_for_change(process: "subprocess.Popen[str]", folder: Path, seen: set[str]) -> None:
    """Return once the journal has entries that it did not have."""
    deadline = time.monotonic() + 60
    while entries(folder) <= seen and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def table(path: Path) -> tuple[Any, ...]:
    """What depends neither on the clock nor on the threads of BLAS."""
    data = json.loads(path.read_text())
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in data["rows"]]
    return rows, data["confusion"], data["best"]["label"], data["best"]["C"]


@pytest.mark.slow(seconds=20)
def test_killed_grid_ends_with_the_same_table(start: Any, folder: Path) -> None:
    """SIGKILL to all processes, twice at random; then Ctrl-C; then the whole of it."""
    rng = np.random.default_rng(os.getpid())  # other moments in every run
    kills = 0
    for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
        before = entries(folder)
        process = start(folder, WORDS)
        wait_for_change(process, folder, before)
        time.sleep(rng.uniform(0, 0.2))
        if process.poll() is None:
            os.killpg(process.pid, number)
            kills += 1
        output, _ = process.communicate(timeout=60)
        assert process.returncode in (-number, 0, 130), output
        assert number == signal.SIGKILL or "Traceback" not in output
    assert kills
    process = start(folder, WORDS)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    result = dhsk.cross_validate(
        folder / "x.npy", np.load(folder / "y.npy"), time_scale=[0.5, 0.7, 1],
        C=[1, 100, 10000], cv=3, scoring="balanced_accuracy", refit=True,
    )  # fmt: skip
    result.to_json(folder / "whole.json")
    assert table(folder / "killed" / "results.json") == table(folder / "whole.json")
    stored = dhsk.HeatSVC.load(folder / "killed" / "model.dhsk").model_
    assert result.model_ is not None
    np.testing.assert_array_equal(stored.expansion.dual_coef, result.model_.expansion.dual_coef)


HALF = """
import os, signal, time
import dhsk.__main__ as main

class Half:
    def __del__(self):
        self.absent

def interrupted(_):
    half = Half()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

main._run = interrupted
main.main()
"""


@pytest.mark.usefixtures("hears_interrupts")
def test_what_an_interrupt_left_half_made_says_nothing() -> None:
    """Such as a ZipFile, which is deleted when the process ends."""
    words = [sys.executable, "-c", HALF]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "interrupted before anything was computed" in done.stderr
