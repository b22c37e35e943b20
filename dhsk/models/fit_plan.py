"""Memory of the fits of a grid, divided before any of them runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.limits import share_memory
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.resources import TASKS_PER_THREAD, Resources
from dhsk.solvers import eigenvalues as spectrum
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import PRODUCT_BYTES
from dhsk.units import human_bytes

FIT_BASE_BYTES: Final = 120_000_000
"""Allowed for what a task holds beside its matrix and vectors: compiled code and libraries, and a
tile as it is read and evaluated. With 70 MB a job was seen to take 6 % more than it was allowed."""

KEPT_BYTES: Final = 45_000_000
"""What a worker keeps after a fit: compiled code, libraries, and what the allocator holds on to."""

PROCESS_BYTES: Final = 60_000_000
"""Allowed for what a process that fits by itself takes beside matrices, rows and vectors: compiled
code, buffers of BLAS, and memory that the allocator keeps."""

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
    need: MemoryNeed
    """Of all processes together."""
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
                f"{human_bytes(self.need.total)} predicted for all processes together, "
                f"{human_bytes(self.resources.memory)} allowed",
            ],
        ]


@dataclass(frozen=True)
class FitCounts:
    """Problems of one kernel, counted: what their memory depends on.

    Attributes
    ----------
    n
        Samples.
    pairs
        Pairs of classes.
    most
        Samples of the largest pair.
    columns
        Fits of each pair: folds times values of C.
    folds
        Folds.
    box_bytes
        Bytes of the bounds of all coefficients.
    """

    n: int
    pairs: int
    most: int
    columns: int
    folds: int
    box_bytes: int

    @classmethod
    def of(cls, pairs: Sequence[Pair], n: int) -> "FitCounts":
        """Count problems on n samples."""
        columns = pairs[0].dual.shape[0]
        return cls(
            n=n,
            pairs=len(pairs),
            most=max(len(pair.members) for pair in pairs),
            columns=columns,
            folds=columns // pairs[0].dual.chain,
            box_bytes=sum(pair.dual.boxes.nbytes for pair in pairs),
        )

    @classmethod
    def of_classes(cls, sizes: Sequence[int], folds: int = 1, values_of_C: int = 1) -> "FitCounts":
        """Problems of classes of these sizes, every sample in all folds."""
        n, columns = sum(sizes), folds * values_of_C
        return cls(
            n=n,
            pairs=math.comb(len(sizes), 2),
            most=sum(sorted(sizes)[-2:]),
            columns=columns,
            folds=folds,
            box_bytes=8 * columns * n * (len(sizes) - 1),  # a sample is in k - 1 pairs
        )

    @property
    def vector_bytes(self) -> int:
        """Bytes of a task: boxes, coefficients, gradients, and one as it is made."""
        return 4 * 8 * self.columns * self.most

    @property
    def client_bytes(self) -> int:
        """Bytes of the process that drives: bounds, and the vectors of passes or of the report."""
        vectors = 2 * min(PRODUCT_BYTES, 8 * self.n * self.columns * self.pairs)
        return 2 * self.box_bytes + max(vectors, spectrum.bytes_of(self.n))


def plan_fits(
    counts: FitCounts, dtype: "np.dtype[Any]", n_kernels: int, resources: Resources
) -> FitPlan:
    """Divide the memory among the fits.

    Parameters
    ----------
    counts
        The problems of one kernel.
    dtype
        Type of the matrix.
    n_kernels
        How many kernels have these problems.
    resources
        Workers and memory.

    Raises
    ------
    BudgetError
        There is no room for a problem in even a small part of the matrix.
    """
    vectors, block = counts.vector_bytes, matrix_bytes(counts.most, dtype)
    smallest = min(block, matrix_bytes(SMALLEST_PART, dtype))
    available = resources.memory - _processes(resources, 1) - counts.client_bytes
    if available < smallest + vectors + FIT_BASE_BYTES:
        least = resources.memory - available + smallest + vectors + FIT_BASE_BYTES
        raise BudgetError(
            f"exact fits on {counts.n} samples need at least {human_bytes(least)} but "
            f"{human_bytes(resources.memory)} are allowed: give more memory or fewer workers"
        )
    tasks = n_kernels * counts.pairs
    split = tasks < TASKS_PER_THREAD * resources.threads
    at_once, _ = share_memory(available, block + vectors + FIT_BASE_BYTES, resources.threads)
    at_once = min(at_once, tasks * counts.folds)
    while True:
        available = resources.memory - _processes(resources, at_once) - counts.client_bytes
        room = min(block, available // at_once - vectors - FIT_BASE_BYTES)
        if at_once == 1 or room >= smallest:
            break
        at_once -= 1
    return FitPlan(
        n=counts.n,
        fits=tasks * counts.columns,
        tasks=tasks * counts.folds if split else tasks,
        at_once=at_once,
        room=room,
        whole=room >= block,
        need=MemoryNeed(
            "exact fits",
            {
                "processes": _processes(resources, at_once),
                "bounds and products": counts.client_bytes,
                "matrices": at_once * room,
                "vectors": at_once * vectors,
                "code and tiles": at_once * FIT_BASE_BYTES,
            },
        ),
        split_folds=split,
        resources=resources,
    )


def _processes(resources: Resources, at_once: int) -> int:
    """Bytes of all processes, with what workers keep of fits beside those that run at a time."""
    return resources.idle_bytes + KEPT_BYTES * max(0, resources.workers - at_once)
