"""What regressions share: the system of kernel matrix and diagonal, and means to solve it."""

from typing import Any, Final, Literal

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.estimators.on_gram import GramEstimator, KeepsRows
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count, own_room
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.kernels import Kernel
from dhsk.kernels.base import whole_parameter
from dhsk.models.gram_source import GramSource
from dhsk.models.sources import RowsSource
from dhsk.nystrom.preconditioner import precondition, usual_rank
from dhsk.objects.places import parse_place
from dhsk.samples import Samples
from dhsk.solvers.ridge import Means
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource, Source

FACTOR_SHARE: Final = 4
"""Divisor of the memory that is left: the share of the factor of a preconditioner, at most."""

PREFIX: Final = "ridge-"
"""Begins the names of checkpoint files."""

Rank = int | Literal["auto"]


class KernelRegression(KeepsRows, GramEstimator):
    """Base of regressions on a kernel matrix, which is solved for by conjugate gradients."""

    preconditioner_rank: Rank

    def _check_rank(self) -> None:
        """Check the rank of the preconditioner."""
        rank = self.preconditioner_rank
        if isinstance(rank, str):
            if rank != "auto":
                raise InputError(
                    f'preconditioner_rank must be "auto" or a number, but it is {rank!r}'
                )
        else:
            whole_parameter("preconditioner_rank", rank, 0)

    def _source(self, samples: Samples, rows: Rows, kernel: Kernel) -> Source:
        """The matrix, in memory if it fits and there is no store, else computed or read."""
        n = rows.shape[0]
        source = RowsSource(rows, kernel, threads=core_count())
        fits = n * padded(n) * rows.dtype.itemsize <= own_room(self._bytes())
        if self.store is None and fits:
            with one_blas_thread():
                K = source.block(np.arange(n))[:, :n]
            return ArraySource(K, Threads(core_count()))
        if self.store is None and self.client is None:
            return source
        return GramSource(self._gram(samples, kernel))

    def _most_columns(self, rows: Rows, kernel: Kernel, source: Source) -> int:
        """Upper bound on the columns of a preconditioner; 0 for none."""
        rank = 0 if kernel.positive_semidefinite is False else self.preconditioner_rank
        if not isinstance(rank, str):
            return rank
        n, dim = rows.shape
        entries = dim if isinstance(rows, np.ndarray) else -(-rows.nnz // n)
        room = own_room(self._bytes()) // FACTOR_SHARE
        computed = not isinstance(source, ArraySource)
        return usual_rank(n, entries, rows.dtype.itemsize, room, computed=computed)

    def _means(
        self, rows: Rows, kernel: Kernel, source: Source, shift: Floats, *others: Any
    ) -> Means:
        """Preconditioner, and the checkpoint of a system with these and other arguments."""
        most = self._most_columns(rows, kernel, source)
        preconditioner = precondition(rows, kernel, shift, most, core_count()) if most else None
        if self.journal is None:
            return Means(preconditioner)
        rank = Means(preconditioner).rank
        name = digest_of(
            kernel.to_spec(), type(source).__name__, "block", rank, rows, shift, *others
        )
        entries = Checkpoint(parse_place("journal", self.journal), PREFIX)
        return Means(preconditioner, entries, name)
