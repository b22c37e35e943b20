"""Memory of exact fits in this process, with kernel values computed from rows in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.limits import share_memory
from dhsk.execution.memory import Allowance, MemoryNeed
from dhsk.models.fit_plan import PROCESS_BYTES, SMALLEST_PART, FitCounts
from dhsk.models.sources import ClassesSource, RowsShape, edge_for, evaluation_bytes
from dhsk.solvers.smo import matrix_bytes
from dhsk.units import format_bytes

_BLOCKS_SHARE: Final = 8
"""Divisor of the remaining memory: the share of concurrent blocks, except for the first, when
matrices could fill all of it."""


@dataclass(frozen=True)
class ExactPlan:
    """Memory of a process, divided among exact fits by `plan_exact`."""

    need: MemoryNeed
    room: int
    """Memory of the matrix of a task, in bytes."""
    at_once: int
    """Concurrent tasks."""
    threads: int
    """Blocks of kernel values that a task computes concurrently."""
    edge: int
    """Samples of a block."""
    keep: bool
    """Whether the matrices of single classes are kept in memory."""
    whole: bool
    """Whether the matrix of every pair of classes fits in memory."""


def plan_exact(
    rows: RowsShape, counts: FitCounts, sizes: Sequence[int], allowed: Allowance
) -> ExactPlan:
    """Divide the memory of this process among fits on rows in memory, in classes of these sizes.

    Raises BudgetError if not even a small part of a matrix fits beside the samples.
    """
    edge = edge_for(rows, allowed.memory)
    evaluated = evaluation_bytes(rows, edge)
    # The rows of a pair, a block of its matrix being computed, and its vectors.
    beside = counts.most * rows.mapped_bytes // rows.n + evaluated + counts.vector_bytes
    matrix = matrix_bytes(counts.most, np.dtype(f"f{rows.itemsize}"))
    left = max(0, allowed.room - rows.nbytes - PROCESS_BYTES)
    kept = ClassesSource.bytes_of(sizes, rows.itemsize)
    keep = counts.pairs > 1 and kept + allowed.cores * (matrix + beside) <= left
    if not keep:
        kept = 0
    room, at_once = share_of_fits(left - kept, matrix, beside, allowed.cores)
    at_once = min(at_once, counts.pairs)
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
    need = MemoryNeed("an exact fit", parts)
    return ExactPlan(need, room, at_once, threads, edge, keep, whole=room >= matrix)


def share_of_fits(left: int, matrix: int, beside: int, cores: int) -> tuple[int, int]:
    """Bytes for the matrix of a task, and number of concurrent tasks, at most one a core.

    left is the remaining memory, matrix the size of the largest matrix, and beside the rest of a
    task's memory, in bytes. Raises BudgetError if not even a small part of a matrix fits.
    """
    least = min(matrix, SMALLEST_PART**2 * 8) + beside
    if left < least:
        raise BudgetError(
            f"an exact fit needs {format_bytes(least)} beside its samples but "
            f"{format_bytes(left)} of memory are left: allow more"
        )
    at_once, each = share_memory(left, matrix + beside, cores)
    return each - beside, at_once
