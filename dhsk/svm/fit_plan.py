"""Memory of the fits of a grid, divided before any of them runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.gram.plan import TASKS_PER_THREAD, Resources
from dhsk.gram.sizes import human_bytes
from dhsk.svm import spectrum
from dhsk.svm.problems import Pair
from dhsk.svm.runners import share_memory
from dhsk.svm.smo import matrix_bytes
from dhsk.svm.sources import PRODUCT_BYTES

FIT_BASE_BYTES: Final = 120_000_000
"""Allowed for what a task holds beside its matrix and vectors: compiled code and libraries, and a
tile as it is read and evaluated. With 70 MB a job was seen to take 6 % more than it was allowed."""

SMALLEST_PART: Final = 256
"""Samples of the smallest part in which a problem is worth solving."""


@dataclass(frozen=True)
class FitPlan:
    """How many tasks run at a time, and what each may hold."""

    n: int
    fits: int
    tasks: int
    at_once: int
    room: int
    """Bytes of the matrix of a task."""
    whole: bool
    """Whether every pair of classes fits."""
    peak_bytes: int
    split_folds: bool
    """Whether each fold is a task of its own, so that there are enough."""
    resources: Resources

    @property
    def window(self) -> int:
        """Tasks in flight: more than run at a time, if memory is not what bounds them."""
        ample = self.at_once >= self.resources.threads
        return TASKS_PER_THREAD * self.at_once if ample else self.at_once

    def table(self) -> list[list[str]]:
        """Rows (what, value) for people."""
        how = "each on its whole matrix" if self.whole else "in rounds over parts of the matrix"
        return [
            ["fits", f"{self.fits} SVMs in {self.tasks} tasks, {self.at_once} at a time, {how}"],
            ["memory of a matrix", f"at most {human_bytes(self.room)}"],
            [
                "memory of the fits",
                f"{human_bytes(self.peak_bytes)} predicted for all processes together, "
                f"{human_bytes(self.resources.memory)} allowed",
            ],
        ]


def plan_fits(
    pairs: Sequence[Pair], n: int, dtype: "np.dtype[Any]", n_kernels: int, resources: Resources
) -> FitPlan:
    """Divide the memory among the fits.

    Parameters
    ----------
    pairs
        The problems of one kernel.
    n
        Samples.
    dtype
        Type of the matrix.
    n_kernels
        How many kernels have these problems.
    resources
        Workers and memory.

    Returns
    -------
    FitPlan
        A plan that fits.

    Raises
    ------
    BudgetError
        There is no room for a problem in even a small part of the matrix.
    """
    columns, most = pairs[0].dual.shape[0], max(len(pair.members) for pair in pairs)
    folds = columns // pairs[0].dual.chain
    vectors = 8 * columns * most * 4  # boxes, coefficients, gradients, and one as it is made
    client = sum(2 * pair.dual.boxes.nbytes for pair in pairs)
    client += max(2 * min(PRODUCT_BYTES, 8 * n * columns * len(pairs)), spectrum.bytes_of(n))
    block = matrix_bytes(most, dtype)
    smallest = min(block, matrix_bytes(SMALLEST_PART, dtype))
    least = smallest + vectors + FIT_BASE_BYTES
    available = resources.memory - resources.idle_bytes - client
    if available < least:
        raise BudgetError(
            f"exact fits on {n} samples need at least "
            f"{human_bytes(resources.memory - available + least)} but "
            f"{human_bytes(resources.memory)} are allowed: give more memory or fewer workers"
        )
    tasks = n_kernels * len(pairs)
    split = tasks < TASKS_PER_THREAD * resources.threads
    at_once, each = share_memory(available, block + vectors + FIT_BASE_BYTES, resources.threads)
    at_once = min(at_once, tasks * folds)
    room = min(block, each - vectors - FIT_BASE_BYTES)
    while at_once > 1 and room < smallest:
        at_once -= 1
        room = min(block, available // at_once - vectors - FIT_BASE_BYTES)
    return FitPlan(
        n=n,
        fits=tasks * columns,
        tasks=tasks * folds if split else tasks,
        at_once=at_once,
        room=room,
        whole=room >= block,
        peak_bytes=resources.memory - available + at_once * (room + vectors + FIT_BASE_BYTES),
        split_folds=split,
        resources=resources,
    )
