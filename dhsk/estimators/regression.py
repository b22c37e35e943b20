"""What regressions share: the system of kernel matrix and diagonal, and means to solve it."""

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np
from scipy.linalg import LinAlgError

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.kernels.base import whole_parameter
from dhsk.models.gram_source import GramSource
from dhsk.models.sources import RowsSource
from dhsk.nystrom.preconditioner import precondition, usual_rank
from dhsk.solvers.block_descent import Blocks, block_size
from dhsk.solvers.conjugate_gradients import Preconditioner
from dhsk.solvers.ridge import Factored, Means
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource, Source

FACTOR_SHARE: Final = 4
"""Divisor of the memory that is left: the share of the factor of a preconditioner, at most."""

FACTORED: Final = 2000
"""Most samples whose matrix is factored unless asked, in 0.2 s. Measured on 442 samples at an alpha
of 1e-6 of the largest eigenvalue: 1,000 passes without a preconditioner left a residual of 0.7."""

_COPIES: Final = 3
"""Matrices in float64 in memory while one is factored."""

MANY: Final = 100_000
"""Samples beyond which a system is solved in blocks. Measured on 60,000 of 100 features in 6 GB: 23
s, where conjugate gradients took 26 s to a residual of 0.1 and 116 s to 1e-6."""

PREFIX: Final = "ridge-"
"""Begins the names of checkpoint files."""

Rank = int | Literal["auto"]


def check_rank(rank: Rank) -> None:
    """Check the rank of a preconditioner."""
    if isinstance(rank, str):
        if rank != "auto":
            raise InputError(f'preconditioner_rank must be "auto" or a number, but it is {rank!r}')
    else:
        whole_parameter("preconditioner_rank", rank, 0)


def source_of(rows: Rows, kernel: Kernel, run: Run, gram: Callable[[], GramMatrix]) -> Source:
    """The matrix, in memory if it fits and there is no store, else computed or that of `gram`."""
    n = rows.shape[0]
    source = RowsSource(rows, kernel, threads=core_count())
    fits = n * padded(n) * rows.dtype.itemsize <= run.room
    if run.store is None and fits:
        with one_blas_thread():
            K = source.block(np.arange(n))[:, :n]
        return ArraySource(K, Threads(core_count()))
    if run.store is None and run.client is None:
        return source
    return GramSource(gram())


def most_columns(rank: Rank, rows: Rows, kernel: Kernel, source: Source, run: Run) -> int:
    """Upper bound on the columns of a preconditioner; 0 for none."""
    if kernel.positive_semidefinite is False:
        return 0
    if not isinstance(rank, str):
        return rank
    n, dim = rows.shape
    entries = dim if isinstance(rows, np.ndarray) else -(-rows.nnz // n)
    room = run.room // FACTOR_SHARE
    computed = not isinstance(source, ArraySource)
    size, on_device = rows.dtype.itemsize, isinstance(source, RowsSource) and source.on_device
    return usual_rank(n, entries, size, room, computed=computed, on_device=on_device)


def means_of(
    rank: Rank, rows: Rows, kernel: Kernel, source: Source, shift: Floats, run: Run, *others: Any
) -> Means:
    """Preconditioner, and the checkpoint of a system with these and other arguments."""
    n, most = rows.shape[0], most_columns(rank, rows, kernel, source, run)
    preconditioner: Preconditioner | None = None
    if most >= n or (isinstance(rank, str) and n <= FACTORED):
        preconditioner = _factored(source, shift, run)
    if preconditioner is None and most:
        preconditioner = precondition(rows, kernel, shift, most, core_count())
    if run.journal is None:
        return Means(preconditioner)
    own = Means(preconditioner).rank
    name = digest_of(kernel.to_spec(), type(source).__name__, "block", own, rows, shift, *others)
    return Means(preconditioner, Checkpoint(run.journal, PREFIX), name)


def blocks_of(
    rank: Rank, rows: Rows, kernel: Kernel, source: Source, shift: Floats, run: Run, *others: Any
) -> Blocks | None:
    """Blocks in which a system with these and other arguments is solved; None for another way."""
    n, item = rows.shape[0], rows.dtype.itemsize
    in_order = isinstance(source, RowsSource) and not source.on_device
    if n <= MANY or rank != "auto" or not in_order or kernel.positive_semidefinite is False:
        return None
    size, threads = block_size(n, item, run.room), Threads(core_count())
    if run.journal is None:
        return Blocks(size, threads)
    name = digest_of(kernel.to_spec(), "blocks", size, rows, shift, *others)
    return Blocks(size, threads, Checkpoint(run.journal, PREFIX), name)


def _factored(source: Source, shift: Floats, run: Run) -> Factored | None:
    """Factor of a matrix in memory and D; None if it does not fit, or is not positive definite."""
    n = source.n
    if not isinstance(source, ArraySource) or _COPIES * 8 * n * n > run.room:
        return None
    try:
        return Factored(source.block(np.arange(n))[:, :n], shift)
    except LinAlgError:
        return None
