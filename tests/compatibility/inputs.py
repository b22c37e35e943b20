"""Samples, options and trainings that the kept files were made of."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

import dhsk
from dhsk.execution.memory import MemoryNeed, Share

GRID: Final[dict[str, Any]] = {"time_scale": [0.7, 1.4], "C": [1.0, 10.0], "cv": 3, "refit": True}
LOW_RANK: Final[dict[str, Any]] = {**GRID, "low_rank": dhsk.LowRank([4, 8])}
MEMORY: Final = "64GB"
"""Allowed, so much that the memory of the process which runs the tests does not count."""

KILLED: Final = 400
"""Samples of the training that was killed at a step."""

AT_STEP: Final = ("training", 11)
"""Stage and number of the report that killed a training: after 11 of 15 steps, when one of three
problems is unsolved and its factors have been made anew."""

AT_ROUND: Final = ("landmarks", 3)
"""The same of the other training: after two of three rounds, with 23 of 36 landmarks."""

Training = Callable[[Callable[[dhsk.Progress], None] | None, Path | None], dhsk.NystromSVC]
"""Trains, given a receiver of progress and a folder for the checkpoint."""


def samples(n: int = 48) -> tuple[Any, Any]:
    """Counts of 6 features, (n, 6), in three classes."""
    X = np.add.outer(7 * np.arange(n) ** 2, np.arange(6) ** 3) % 11 + 0.0
    y = np.array(["a", "b", "c"])[np.arange(n) * 5 % 7 % 3]
    X[y == "b", :2] += 4
    X[y == "c", 4:] += 4
    return X, y


def different_samples(n: int = 160) -> tuple[Any, Any]:
    """Counts of 6 features, (n, 6), in two classes: the first 101 rows of a class all differ."""
    X = np.multiply.outer(np.arange(n) ** 3, np.arange(1, 7) ** 2) % 101 + 1.0
    y = np.array(["a", "b"])[np.arange(n) * 5 % 7 % 2]
    X[y == "b", :2] += 40
    return X, y


def train_in_steps(progress: Any, journal: Path | None) -> dhsk.NystromSVC:
    """Training of many steps, which are kept."""
    model = dhsk.NystromSVC(60, C=100.0, time_scale=1.0, random_state=0, memory=MEMORY)
    return model.fit_samples(*samples(KILLED), progress, journal=journal)


def train_in_rounds(progress: Any, journal: Path | None) -> dhsk.NystromSVC:
    """Training with features that are not in memory: the rounds of the landmarks are kept."""
    model = dhsk.NystromSVC(36, C=10.0, time_scale=0.7, random_state=0, memory=MEMORY)
    need = MemoryNeed("as told", {"all": 10**8})
    plan = Share(need, 2, "samples in memory", whole=False)
    with patch("dhsk.models.low_rank_plan.plan_here", lambda *_: plan):
        return model.fit_samples(*different_samples(), progress, journal=journal)


class Killed(BaseException):
    """The training is ended here."""


def kill(train: Training, folder: Path, stage: str, count: int) -> None:
    """Leave in a folder what a training has kept at its count-th report of a stage."""
    copy = folder.with_name("copy")
    seen: list[dhsk.Progress] = []

    def end(progress: dhsk.Progress) -> None:
        seen.extend([progress] if progress.stage == stage else [])
        if len(seen) == count:
            shutil.copytree(folder, copy)
            raise Killed

    try:
        train(end, folder)
    except Killed:
        shutil.rmtree(folder)
        copy.rename(folder)
    else:
        raise AssertionError("it ended before it was killed")
