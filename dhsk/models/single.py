"""Fits of a single problem: their matrix, the rows that predictions need, and their memory."""

import numpy as np

from dhsk.arrays import Indices, Rows
from dhsk.execution.limits import core_count
from dhsk.execution.memory import require_room
from dhsk.kernels import Kernel, PrecomputedKernel, unit_vectors
from dhsk.models.sources import RowsSource
from dhsk.solvers.block_steps import SMALLEST_BLOCK
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import ArraySource, Source


def source_of_fit(rows: Rows, used: Indices, kernel: Kernel, room: int) -> Source:
    """Matrix of some samples, computed from their rows, or of the values that these are.

    Raises BudgetError if a fit cannot have the smallest matrix of a block in so many bytes.
    """
    least = 2 * matrix_bytes(min(len(used), SMALLEST_BLOCK), rows.dtype)
    require_room(least, room, f"matrices of a fit of {len(used):,} samples")
    if isinstance(kernel, PrecomputedKernel):
        return ArraySource(np.ascontiguousarray(np.asarray(rows)[np.ix_(used, used)]))
    return RowsSource(rows[used], kernel, threads=core_count())


def fitted_rows(rows: Rows, chosen: Indices, kernel: Kernel) -> Rows:
    """Rows of some samples, as predictions compare with them."""
    given = isinstance(kernel, PrecomputedKernel)
    return unit_vectors(chosen, rows.shape[1]) if given else rows[chosen]
