"""Samples that change between the passes of low rank: refused, and nothing is made of both."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.execution.memory import MemoryNeed, Share
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.models.problem import Problem
from dhsk.models.train_low_rank import train_low_rank
from dhsk.progress import Progress
from dhsk.samples import open_samples

N, DIM = 400, 12
HOW = dhsk.LowRank(30)
KERNEL = dhsk.HeatKernel.at_scale(dim=DIM, time_scale=0.5)

Change = Callable[[], None]


@pytest.fixture(autouse=True)
def read_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither features nor samples are held in memory."""
    need = MemoryNeed("as told", {"all": 10**8})
    plan = Share(need, 2, "samples read in every pass", whole=False)
    monkeypatch.setattr("dhsk.models.low_rank_plan.plan_here", lambda *_: plan)


def train(X: Any, y: Any, report: Any, journal: Path | None = None) -> Any:
    """A model of low rank."""
    classes, codes = np.unique(y, return_inverse=True)
    ones = np.ones(N)
    problem = Problem(classes, codes, ones, 2.0, 1e-6)
    options = Run(report=report, journal=journal)
    row_map = RowMap(KERNEL, "hyperspherical")
    return train_low_rank(problem, open_samples(X), row_map, HOW, options, seed=3)


def once(stage: str, change: Change) -> Callable[[Progress], None]:
    """Progress that changes samples when a stage begins."""
    left = [change]

    def look(event: Progress) -> None:
        if left and event.stage == stage:
            left.pop()()

    return look


def an_array(_: Path, X: Any) -> tuple[Any, Change]:
    """The caller's own array, of which one row changes."""
    return X, lambda: X.__setitem__(N - 1, X[N - 1][::-1] + 1)


def a_csr_array(_: Path, X: Any) -> tuple[Any, Change]:
    """The caller's own CSR array, of which one entry changes."""
    A = csr_array(X)
    return A, lambda: A.data.__setitem__(-1, A.data[-1] + 1)


def replaced(path: Path, write: Callable[[Path], Any]) -> None:
    """Another file of the same time in the place of one."""
    status, beside = path.stat(), path.with_name(f"new-{path.name}")
    write(beside)
    os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    beside.replace(path)


def a_file(folder: Path, X: Any) -> tuple[Any, Change]:
    """A `.npy` file of the same size and time."""
    np.save(folder / "x.npy", X)
    return folder / "x.npy", lambda: replaced(folder / "x.npy", lambda p: np.save(p, X[::-1]))


def an_h5ad(folder: Path, X: Any) -> tuple[Any, Change]:
    """A file of AnnData, that becomes one of fewer samples."""

    def write(path: Path, values: Any) -> None:
        with h5py.File(path, "w") as file:
            file["X"] = values

    write(folder / "x.h5ad", X)
    return folder / "x.h5ad", lambda: replaced(folder / "x.h5ad", lambda p: write(p, X[:50]))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("source", [an_array, a_csr_array, a_file, an_h5ad])
@pytest.mark.parametrize("stage", ["landmarks", "training"])
def test_samples_that_change_between_passes_are_refused(
    tmp_path: Path, counts: Any, source: Any, stage: str
) -> None:
    """One sentence; with a checkpoint nothing of the mixture is found by the next run."""
    X = counts(N, DIM)
    y = X[:, 0] > 1
    given, change = source(tmp_path, X)
    kept = tmp_path / "checkpoint"
    with pytest.raises(dhsk.SamplesChangedError, match=r"changed (while it was read|since it was)"):
        train(given, y, once(stage, change), kept)
    if source is not an_h5ad:
        again = train(given, y, lambda _: None, kept)
        np.testing.assert_array_equal(again.coef, train(given, y, lambda _: None).coef)


def test_the_estimator_refuses_them_too(counts: Any, tmp_path: Path) -> None:
    """As cross-validation of low rank does."""
    X = counts(N, DIM)
    y = np.arange(N) % 2
    np.save(tmp_path / "x.npy", X)

    def change() -> None:
        replaced(tmp_path / "x.npy", lambda path: np.save(path, X[::-1]))

    with pytest.raises(dhsk.SamplesChangedError, match="changed while it was read"):
        dhsk.cross_validate(
            tmp_path / "x.npy", y, time_scale=[0.5], C=[1.0], low_rank=dhsk.LowRank(20),
            progress=once("landmarks", change),
        )  # fmt: skip
