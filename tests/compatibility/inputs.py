"""Samples and options that the kept files were made of."""

from typing import Any, Final

import numpy as np

import dhsk

GRID: Final[dict[str, Any]] = {"time_scale": [0.7, 1.4], "C": [1.0, 10.0], "cv": 3, "refit": True}
LOW_RANK: Final[dict[str, Any]] = {**GRID, "low_rank": dhsk.LowRank([4, 8])}
KILLED: Final = 400
"""Samples of the training that was killed."""


def samples(n: int = 48) -> tuple[Any, Any]:
    """Counts of 6 features, (n, 6), in three classes."""
    X = np.add.outer(7 * np.arange(n) ** 2, np.arange(6) ** 3) % 11 + 0.0
    y = np.array(["a", "b", "c"])[np.arange(n) * 5 % 7 % 3]
    X[y == "b", :2] += 4
    X[y == "c", 4:] += 4
    return X, y
