"""Commands in the middle of their work, on samples made for it."""

import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import TimeoutExpired
from time import monotonic, sleep
from typing import Any

import numpy as np

import dhsk

SHORT = ("DASK_DHSK__PROGRESS_TIMEOUT=20s", "DASK_DHSK__SCHEDULER_TIMEOUT=10s")
"""Shorter than a user's, and longer than a busy machine keeps a scheduler from its answer, or
workers that load the package from theirs, which may take half of the first."""

HOPELESS_SECONDS = 180
"""Far more than these: where the first task was slow, as on a busy machine, five times its time
counts, and Dask's limit for dead connections (30 s) with `PATIENCE_SECONDS` may come first."""

GRAM = ("gram", "x.npy", "--tile", "64", "--out", "g")
RANK = ("train", "x.npy", "--labels", "y.txt", "--rank", "800", "--C", "1", "--out", "m")
CV = ("cv", "x.npy", "--labels", "y.txt", "--C", "1,10", "--time-scale", "0.5,1,2", "--out", "o")
PREDICT = ("predict", "model", "x.npy", "--decision", "--out", "p.csv")


def make_samples(folder: Path, n: int, dim: int = 200) -> None:
    """Counts of three classes, and their labels."""
    X = np.random.default_rng(0).poisson(1.0, (n, dim)) + 0.5
    codes = np.arange(n) % 3
    for code in range(3):
        X[codes == code, 4 * code : 4 * code + 4] += 2
    np.save(folder / "x.npy", X)
    (folder / "y.txt").write_text("".join(f"{code}\n" for code in codes))


def make_model(folder: Path, n: int) -> None:
    """A model of the first samples."""
    X, y = np.load(folder / "x.npy"), np.loadtxt(folder / "y.txt", int)
    dhsk.HeatSVC(C=1.0).fit(X[:n], y[:n]).save(folder / "model")


def tiles_of(store: Path) -> int:
    """Number of tiles that a store has."""
    return len(list((store / "gram" / "c").glob("*/*")))


BEGUN: dict[tuple[str, ...], Callable[[Path], bool]] = {
    GRAM: lambda folder: tiles_of(folder / "g") > 100,
    RANK: lambda folder: bool(list(folder.glob("*/*.npz"))),
    CV: lambda folder: bool(list(folder.glob("o/fits/*.npz"))),
    PREDICT: lambda folder: bool(list(folder.glob(".p.csv*"))),
}
"""Whether a command is in the middle of its work."""


def begun(process: Any, folder: Path, words: tuple[str, ...]) -> None:
    """Return once a command is in the middle of its work."""
    deadline = monotonic() + 180
    while not BEGUN[words](folder):
        if process.poll() is not None or monotonic() > deadline:
            process.kill()
            raise AssertionError(f"the work does not begin: {process.communicate()[0]}")
        sleep(0.02)


def ended(process: Any, within: float) -> tuple[int, str]:
    """Exit code and output of a command that ends in time; if not, where its threads are."""
    try:
        output, _ = process.communicate(timeout=within)
    except TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        output, _ = process.communicate()
        raise AssertionError(f"it goes on after {within} s: {output}") from None
    assert "Traceback" not in output, output
    return process.returncode, output
