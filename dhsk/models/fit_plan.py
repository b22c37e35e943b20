"""Memory of exact fits: of a grid, on all processes, or of one model, in this process."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Codes
from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance, MemoryNeed, Share, require_room, share_memory
from dhsk.execution.resources import TASKS_PER_THREAD, Resources
from dhsk.models.class_blocks import KERNELS
from dhsk.models.classes_source import ClassesSource
from dhsk.models.gram_source import KEPT_BYTES as ROWS_BYTES
from dhsk.models.sources import RowsShape, edge_for, evaluation_bytes
from dhsk.solvers import eigenvalues as spectrum
from dhsk.solvers.block_steps import BLOCK
from dhsk.solvers.pairs import STEPPED_COLUMNS, Way
from dhsk.solvers.problems import MultiClass
from dhsk.solvers.small import SMALL_SAMPLES
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import PRODUCT_BYTES
from dhsk.solvers.whole import FINE_SAMPLES
from dhsk.units import counted, format_bytes

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

SET_PART: Final = 3
"""Divisor of the samples of a problem: few working sets have more than that share."""

SETS_SHARE: Final = 8
"""Divisor of the samples of a pair: the share in a working set where there are few problems, which
steps on blocks take over at a twentieth."""

_BLOCKS_SHARE: Final = 8
"""Divisor of the remaining memory: the share of concurrent blocks, except for the first, when
matrices could fill all of it."""

_WORDS: Final[dict[Way, str]] = {
    "whole matrices": "each on its whole matrix",
    "coordinates": "on normal vectors, from rows in memory",
    "working sets": "on working sets, from kernel values that are computed on demand",
    "rounds": "in rounds over parts of the matrix",
}
"""How problems are solved, for people."""


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
    def of(cls, codes: Codes, folds: int, values_of_C: int, multi_class: MultiClass) -> "FitCounts":
        """Count the problems of samples with these classes, -1 for those that are left out."""
        sizes = np.bincount(codes[codes >= 0]).tolist()
        return replace(cls.of_classes(sizes, folds, values_of_C, multi_class), n=len(codes))

    @classmethod
    def of_classes(
        cls,
        sizes: Sequence[int],
        folds: int = 1,
        values_of_C: int = 1,
        multi_class: MultiClass = "ovo",
    ) -> "FitCounts":
        """Count the problems of classes of these sizes, with every sample in all folds."""
        n, k, columns, rest = sum(sizes), len(sizes), folds * values_of_C, multi_class == "ovr"
        squares = sum(count**2 for count in sizes)
        return cls(
            n=n,
            pairs=k if rest else math.comb(k, 2),
            most=n if rest else sum(sorted(sizes)[-2:]),
            least=n if rest else sum(sorted(sizes)[:2]),
            columns=columns,
            folds=folds,
            box_bytes=8 * columns * n * (k if rest else k - 1),  # a sample is in k - 1 pairs
            entries=(n**2 + squares) // 2,
            squares=squares,
        )

    @property
    def one_matrix(self) -> bool:
        """Whether every problem has all samples: of two classes, or against the rest."""
        return self.entries == (self.most**2 + self.squares) // 2

    @property
    def held_entries(self) -> int:
        """Entries of stored values in memory; pairs share the matrices of single classes."""
        return self.entries + (0 if self.one_matrix else KERNELS * self.squares)

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
    way: Way | None = None,
) -> Share:
    """Divide the memory among the fits of some kernels, whose matrices have this dtype.

    By default each pair has a task, on its whole matrix or in rounds. On working sets all pairs of
    a kernel are solved together; by coordinates those of a linear kernel, with blocks for those
    that take many steps. Raises BudgetError if not even a small part of a matrix fits.
    """
    on_sets, on_rows = way is not None, way == "coordinates"
    own = counts.sets_bytes if on_sets else counts.client_bytes
    block, beside = _of_task(counts, dtype, on_rows=on_rows)
    least = min(block, matrix_bytes(SMALLEST_PART, dtype)) + beside

    def left(at_once: int) -> int:
        return resources.memory - _processes(resources, at_once) - own

    _require(least, left(1), counts, resources)
    tasks = n_kernels * counts.pairs
    split = not on_sets and tasks < FEW_TASKS
    # A matrix of which one does not fit is never whole: its working sets are of some samples.
    in_part = on_sets and block + beside > left(1)
    wanted = matrix_bytes(-(-counts.most // SET_PART), dtype) if in_part else block
    at_once, _ = share_memory(left(1), wanted + beside, resources.threads)
    at_once = min(at_once, counts.pairs if on_sets else tasks * counts.folds)
    while at_once > 1 and left(at_once) // at_once < least:
        at_once -= 1
    available = left(at_once)
    room = min(block, available // at_once - beside)
    whole = room >= block
    shared = 0 if on_sets or not whole else _shared(counts, dtype, at_once, tasks, resources)
    at_once = min(resources.threads, tasks) if shared else at_once
    blocks = 0
    if whole and counts.one_matrix and not on_sets and not resources.workers:
        each = counts.pairs * (counts.folds if split else 1)
        threads = min(resources.threads, n_kernels * each)
        at_once, blocks = _of_one_matrix(block, beside, left, threads, each)
        available, room = left(at_once), block
    matrices = shared or (blocks or at_once) * room
    held = max(1, resources.workers) * counts.held_entries * dtype.itemsize
    if on_sets or not whole or held > available - matrices - at_once * beside:
        held = 0
    parts = {
        "processes": _processes(resources, at_once),
        "bounds and products": own,
        "matrices": matrices,
        "stored values": held,
        "vectors": at_once * counts.vector_bytes,
        "code and tiles": at_once * FIT_BASE_BYTES,
    }
    need = MemoryNeed("exact fits", parts)
    way = way or ("whole matrices" if whole else "rounds")
    in_all = tasks * counts.folds if split else tasks
    words = f"{tasks * counts.columns} SVMs in {in_all} tasks, {at_once} at a time, {_WORDS[way]}"
    ample = at_once >= resources.threads and not shared
    return Share(
        need,
        at_once,
        way,
        whole,
        room,
        held=held > 0,
        split_folds=split,
        shared=shared,
        blocks=blocks,
        window=TASKS_PER_THREAD * at_once if ample else at_once,  # memory limits what else waits
        table=_table(words, room, need, resources),
    )


def _table(
    words: str, room: int, need: MemoryNeed, resources: Resources
) -> tuple[tuple[str, str], ...]:
    """Rows of a plan for people."""
    total, allowed = format_bytes(need.total), format_bytes(resources.memory)
    predicted = f"{total} predicted for all processes together, {allowed} allowed"
    rows = ("memory of a matrix", f"at most {format_bytes(room)}")
    return ("fits", words), rows, ("memory of the fits", predicted)


def _shared(
    counts: FitCounts, dtype: "np.dtype[Any]", at_once: int, tasks: int, resources: Resources
) -> int:
    """Bytes for the matrices of all threads, if some would idle beside the largest matrices."""
    threads = min(resources.threads, tasks)
    if resources.workers or at_once >= threads:
        return 0
    others = counts.client_bytes + threads * (counts.vector_bytes + FIT_BASE_BYTES)
    room = resources.memory - _processes(resources, threads) - others
    largest, smallest = (matrix_bytes(n, dtype) for n in (counts.most, counts.least))
    return room if room >= largest + smallest > 0 and smallest < largest else 0


def _of_task(counts: FitCounts, dtype: "np.dtype[Any]", *, on_rows: bool) -> tuple[int, int]:
    """Bytes of the largest matrix of a task, and of what is beside it."""
    most = min(counts.most, 2 * BLOCK) if on_rows else counts.most
    beside = counts.vector_bytes + FIT_BASE_BYTES + (ROWS_BYTES if on_rows else 0)
    return matrix_bytes(most, dtype), beside


def _of_one_matrix(
    block: int, beside: int, left: Callable[[int], int], threads: int, each: int
) -> tuple[int, int]:
    """Number of tasks at a time that share matrices of `block` bytes, and of these matrices.

    There are `each` tasks of a matrix: one is computed while the last tasks of another one run.
    """
    while threads > 1 and left(threads) - threads * beside < block:
        threads -= 1
    fitting = (left(threads) - threads * beside) // block
    return threads, max(1, min(fitting, threads, 1 + -(-threads // each)))


def _require(least: int, left: int, counts: FitCounts, resources: Resources) -> None:
    """Raise BudgetError if a task needs more than is left."""
    if left >= least:
        return
    where, fewer = "this process", ""
    if resources.workers:
        where += f" and {counted(resources.workers, 'worker')}"
        fewer = " or fewer workers" if resources.workers > 1 else ""
    own_bytes, needed = _processes(resources, 1) + FIT_BASE_BYTES, resources.memory - left + least
    error = BudgetError(
        f"exact fits on {counts.n} samples need at least {format_bytes(needed)}, of which "
        f"{format_bytes(own_bytes)} are for Python, its libraries and compiled code in {where}, "
        f"but {format_bytes(resources.memory)} are allowed: give more memory{fewer}"
    )
    error.needed = needed
    raise error


def _processes(resources: Resources, at_once: int) -> int:
    """Bytes of all processes, with what idle workers keep after fits."""
    return resources.idle_bytes + KEPT_BYTES * max(0, resources.workers - at_once)


# In this process, on kernel values that are computed from rows in memory

_SET_BYTES: Final = 78
"""Bytes of a sample beside its vectors where there are working sets: labels, places, and what joins
a set. Measured on ten million samples: 110 with the vectors, at the peak."""


WHOLE_SAMPLES: Final = 4096
"""Most samples whose whole matrix is kept if all pairs are small: blocks of a few samples each then
cost more calls than entries."""


def keeps_whole(sizes: Sequence[int]) -> bool:
    """Whether fits of pairs of classes of these sizes share the matrix of all samples."""
    return sum(sizes) <= WHOLE_SAMPLES and sum(sorted(sizes)[-2:]) <= SMALL_SAMPLES


def plan_exact(
    rows: RowsShape,
    counts: FitCounts,
    sizes: Sequence[int],
    allowed: Allowance,
    *,
    whole: bool = False,
) -> Share:
    """Divide the memory of this process among fits on rows in memory, in classes of these sizes.

    With `whole`, matrices of whole pairs are given what they take, if there is as much. Raises
    BudgetError if not even a small part of a matrix fits beside the samples.
    """
    edge = edge_for(rows, allowed.memory)
    evaluated = evaluation_bytes(rows, edge)
    largest = matrix = matrix_bytes(counts.most, np.dtype(f"f{rows.itemsize}"))
    left = max(0, allowed.room - rows.nbytes - PROCESS_BYTES)
    # The rows of a pair, or of the largest set of the only one; a block of its matrix being
    # computed, and its vectors.
    copied, vectors, on_sets = counts.most, counts.vector_bytes, counts.most > FINE_SAMPLES
    if on_sets and not whole:
        vectors += _SET_BYTES * counts.most
        copied = min(copied, math.isqrt(left // rows.itemsize)) if counts.pairs == 1 else copied
    beside = copied * rows.mapped_bytes // rows.n + evaluated + vectors
    kept = ClassesSource.bytes_of([rows.n] if keeps_whole(sizes) else sizes, rows.itemsize)
    keep = counts.pairs > 1 and kept + allowed.cores * (matrix + beside) <= left
    if counts.pairs * counts.columns <= STEPPED_COLUMNS and not whole:
        matrix = min(matrix, _bytes_of_steps(rows, counts.most))
    if not keep:
        kept = 0
    fits = share_of_fits(left - kept, matrix, beside, allowed.cores)
    room, at_once = fits.room, min(fits.at_once, counts.pairs)
    # Concurrent blocks of each task, one of which is counted already, from the memory beside whole
    # matrices, or from a small share of all.
    spare = max(left - kept - at_once * (min(room, matrix) + beside), left // _BLOCKS_SHARE)
    more = at_once * evaluated
    threads = max(1, min(allowed.cores // at_once, 1 + spare // more))
    room = min(room, (left - kept - (threads - 1) * more) // at_once - beside)
    parts = {
        "process": allowed.held + PROCESS_BYTES,
        "samples": rows.nbytes,
        "matrices": at_once * min(room, matrix),
        "matrices of classes": kept,
        "vectors and blocks": at_once * beside + (threads - 1) * more,
    }
    mapping = rows.mapped_bytes - sum(parts.values()) + parts["process"]
    parts["samples as they are mapped"] = max(0, mapping)
    need, fits_whole = MemoryNeed("an exact fit", parts), room >= largest
    way: Way = "whole matrices" if fits_whole and counts.most <= FINE_SAMPLES else "working sets"
    return Share(need, at_once, way, fits_whole, room, edge, threads, held=keep)


def _bytes_of_steps(rows: RowsShape, most: int) -> int:
    """Bytes that few problems of pairs of at most so many samples take.

    They are for working sets up to the share at which pairs are left to steps on blocks, and for
    these blocks and the samples in single precision, each in a half.
    """
    largest = max(2 * BLOCK, most // SETS_SHARE)
    dtype = np.dtype(f"f{rows.itemsize}")
    return matrix_bytes(largest, dtype) + 2 * (matrix_bytes(BLOCK, dtype) + 4 * rows.n * rows.dim)


def share_of_fits(left: int, matrix: int, beside: int, cores: int) -> Share:
    """Memory of concurrent tasks, at most one a core, each with `room` bytes for its matrix.

    left is the remaining memory, matrix the size of the largest matrix, and beside the rest of a
    task's memory, in bytes. Raises BudgetError if not even a small part of a matrix fits.
    """
    least = min(matrix, SMALLEST_PART**2 * 8) + beside
    require_room(least, left, "matrices of an exact fit")
    at_once, each = share_memory(left, matrix + beside, cores)
    need = MemoryNeed("an exact fit", {"matrices": at_once * each})
    return Share(need, at_once, room=each - beside)
