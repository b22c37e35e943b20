"""Plan of the memory of the fits of a grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.limits import share_memory
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.resources import TASKS_PER_THREAD, Resources
from dhsk.models.class_blocks import KERNELS
from dhsk.models.rows_cache import KEPT_BYTES as ROWS_BYTES
from dhsk.solvers import eigenvalues as spectrum
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import PRODUCT_BYTES
from dhsk.units import format_bytes

FIT_BASE_BYTES: Final = 120_000_000
"""Memory of a task besides its matrix and vectors: compiled code, libraries, and a tile as it is
read and evaluated. Measured: with 70 MB, a job took 6 % more than it was allowed."""

KEPT_BYTES: Final = 45_000_000
"""Memory that a worker keeps after a fit: compiled code, libraries, and the allocator's."""

PROCESS_BYTES: Final = 60_000_000
"""Memory of a process without workers besides matrices, rows and vectors: compiled code, buffers of
BLAS, and the allocator's."""

FEW_TASKS: Final = 64
"""Pairs of classes and kernels below which each fold is a task. No number of workers decides it, so
that a run that is killed goes on with another number of them."""

SMALLEST_PART: Final = 256
"""Least samples of a subproblem."""


@dataclass(frozen=True)
class FitPlan:
    """Number of concurrent tasks, and their memory."""

    n: int
    fits: int
    tasks: int
    at_once: int
    room: int
    """Memory of the matrix of a task, in bytes."""
    whole: bool
    """Whether the matrix of every pair of classes fits in memory."""
    need: MemoryNeed
    """Memory of all processes."""
    held: bool
    """Whether each process keeps the stored values of the matrix in memory."""
    split_folds: bool
    """Whether each fold is a task, so that there are enough tasks."""
    on_sets: bool
    """Whether values are computed on demand, and problems are solved on working sets."""
    shared: int
    """Bytes that the matrices of concurrent tasks share, as their sizes differ; 0 if each has its
    own room."""
    resources: Resources

    @property
    def window(self) -> int:
        """Number of submitted tasks: more than run concurrently, unless memory limits these."""
        ample = self.at_once >= self.resources.threads and not self.shared
        return TASKS_PER_THREAD * self.at_once if ample else self.at_once

    def table(self) -> list[list[str]]:
        """Rows (what, value) for people."""
        how = "each on its whole matrix" if self.whole else "in rounds over parts of the matrix"
        if self.on_sets:
            how = "on working sets, from kernel values that are computed on demand"
        return [
            ["fits", f"{self.fits} SVMs in {self.tasks} tasks, {self.at_once} at a time, {how}"],
            ["memory of a matrix", f"at most {format_bytes(self.room)}"],
            [
                "memory of the fits",
                f"{format_bytes(self.need.total)} predicted for all processes together, "
                f"{format_bytes(self.resources.memory)} allowed",
            ],
        ]


@dataclass(frozen=True)
class FitCounts:
    """Numbers of the problems of one kernel, on which their memory depends."""

    n: int
    """Samples."""
    pairs: int
    """Pairs of classes."""
    most: int
    """Samples of the largest pair."""
    least: int
    """Samples of the smallest pair."""
    columns: int
    """Fits of each pair: folds times values of C."""
    folds: int
    box_bytes: int
    """Bytes of the bounds of all coefficients."""
    entries: int
    """Entries between the samples of each two classes, and of each class."""
    squares: int
    """Entries of each class with itself."""

    @classmethod
    def of(cls, pairs: Sequence[Pair], n: int) -> "FitCounts":
        """Count problems on n samples."""
        columns = pairs[0].dual.shape[0]
        sizes = {c: count for pair in pairs for c, count in pair.sizes.items()}.values()
        squares = sum(count**2 for count in sizes)
        return cls(
            n=n,
            pairs=len(pairs),
            most=max(len(pair.members) for pair in pairs),
            least=min(len(pair.members) for pair in pairs),
            columns=columns,
            folds=columns // pairs[0].dual.chain,
            box_bytes=sum(pair.dual.boxes.nbytes for pair in pairs),
            entries=(sum(sizes) ** 2 + squares) // 2,
            squares=squares,
        )

    @classmethod
    def of_classes(cls, sizes: Sequence[int], folds: int = 1, values_of_C: int = 1) -> "FitCounts":
        """Count the problems of classes of these sizes, with every sample in all folds."""
        n, columns = sum(sizes), folds * values_of_C
        squares = sum(count**2 for count in sizes)
        return cls(
            n=n,
            pairs=math.comb(len(sizes), 2),
            most=sum(sorted(sizes)[-2:]),
            least=sum(sorted(sizes)[:2]),
            columns=columns,
            folds=folds,
            box_bytes=8 * columns * n * (len(sizes) - 1),  # a sample is in k - 1 pairs
            entries=(n**2 + squares) // 2,
            squares=squares,
        )

    @property
    def vector_bytes(self) -> int:
        """Bytes of the vectors of a task: boxes, coefficients, gradients, and a temporary."""
        return 4 * 8 * self.columns * self.most

    @property
    def client_bytes(self) -> int:
        """Bytes of this process: bounds, and the vectors of passes or of the report."""
        return 2 * self.box_bytes + max(self._pass_bytes, spectrum.bytes_of(self.n))

    @property
    def sets_bytes(self) -> int:
        """Bytes of this process on working sets: bounds, coefficients, gradients, and rows."""
        return 4 * self.box_bytes + self._pass_bytes + 2 * ROWS_BYTES

    @property
    def _pass_bytes(self) -> int:
        return 2 * min(PRODUCT_BYTES, 8 * self.n * self.columns * self.pairs)


def plan_fits(
    counts: FitCounts,
    dtype: "np.dtype[Any]",
    n_kernels: int,
    resources: Resources,
    *,
    on_sets: bool = False,
) -> FitPlan:
    """Divide the memory among the fits of some kernels, whose matrices have this dtype.

    With `on_sets`, all pairs of a kernel are solved together on working sets. Raises BudgetError if
    not even a small part of a matrix fits.
    """
    own = counts.sets_bytes if on_sets else counts.client_bytes
    vectors, block = counts.vector_bytes, matrix_bytes(counts.most, dtype)
    smallest = min(block, matrix_bytes(SMALLEST_PART, dtype))
    available = resources.memory - _processes(resources, 1) - own
    if available < smallest + vectors + FIT_BASE_BYTES:
        least = resources.memory - available + smallest + vectors + FIT_BASE_BYTES
        own_bytes = _processes(resources, 1) + FIT_BASE_BYTES
        fewer = " or fewer workers" if resources.workers > 1 else ""
        raise BudgetError(
            f"exact fits on {counts.n} samples need at least {format_bytes(least)}, of which "
            f"{format_bytes(own_bytes)} are for Python, its libraries and compiled code in "
            f"{_processes_words(resources)}, but {format_bytes(resources.memory)} are allowed: "
            f"give more memory{fewer}"
        )
    tasks = n_kernels * counts.pairs
    split = not on_sets and tasks < FEW_TASKS
    at_once, _ = share_memory(available, block + vectors + FIT_BASE_BYTES, resources.threads)
    at_once = min(at_once, counts.pairs if on_sets else tasks * counts.folds)
    while True:
        available = resources.memory - _processes(resources, at_once) - own
        room = min(block, available // at_once - vectors - FIT_BASE_BYTES)
        if at_once == 1 or room >= smallest:
            break
        at_once -= 1
    whole = room >= block
    shared = 0 if on_sets or not whole else _shared(counts, dtype, at_once, tasks, resources, own)
    at_once = min(resources.threads, tasks) if shared else at_once
    matrices = shared or at_once * room
    held = max(1, resources.workers) * (counts.entries + KERNELS * counts.squares) * dtype.itemsize
    if on_sets or not whole or held > available - matrices - at_once * (vectors + FIT_BASE_BYTES):
        held = 0
    parts = {
        "processes": _processes(resources, at_once),
        "bounds and products": own,
        "matrices": matrices,
        "stored values": held,
        "vectors": at_once * vectors,
        "code and tiles": at_once * FIT_BASE_BYTES,
    }
    return FitPlan(
        n=counts.n,
        fits=tasks * counts.columns,
        tasks=tasks * counts.folds if split else tasks,
        at_once=at_once,
        room=room,
        whole=whole,
        need=MemoryNeed("exact fits", parts),
        held=held > 0,
        split_folds=split,
        on_sets=on_sets,
        shared=shared,
        resources=resources,
    )


def _shared(
    counts: FitCounts,
    dtype: "np.dtype[Any]",
    at_once: int,
    tasks: int,
    resources: Resources,
    own: int,
) -> int:
    """Bytes for the matrices of all threads, if some would idle beside the largest matrices."""
    threads = min(resources.threads, tasks)
    if resources.workers or at_once >= threads:
        return 0
    others = threads * (counts.vector_bytes + FIT_BASE_BYTES)
    room = resources.memory - _processes(resources, threads) - own - others
    largest, smallest = (matrix_bytes(n, dtype) for n in (counts.most, counts.least))
    return room if room >= largest + smallest > 0 and smallest < largest else 0


def _processes_words(resources: Resources) -> str:
    if not resources.workers:
        return "this process"
    return f"this process and {resources.workers} worker{'s' * (resources.workers > 1)}"


def _processes(resources: Resources, at_once: int) -> int:
    """Bytes of all processes, with what idle workers keep after fits."""
    return resources.idle_bytes + KEPT_BYTES * max(0, resources.workers - at_once)
