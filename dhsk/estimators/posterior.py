"""Variances of a fitted Gaussian process, and the matrices of its kernels."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.linalg import solve_triangular

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.execution.limits import core_count, own_room
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.models.gram_source import GramSource
from dhsk.models.sources import RowsSource
from dhsk.nystrom.preconditioner import precondition_by
from dhsk.progress import passes_of_call
from dhsk.solvers.likelihood import NoisePreconditioner, SampledPreconditioner
from dhsk.solvers.ridge import Means, solve_ridge
from dhsk.solvers.sources import ArraySource, Source

_AT_ONCE: Final = 512
"""Most samples whose variances share passes."""

_VECTORS: Final = 10
"""Blocks of vectors in memory while a system is solved."""


@dataclass(eq=False)
class MatricesOfRows:
    """Matrices of kernels on the same rows; one in memory is kept for the next call."""

    rows: Rows
    """Mapped samples, (N, dim)."""
    in_memory: bool
    """Whether a matrix is in memory, not computed in every pass."""
    gram: GramMatrix | None = None
    """The matrix of the first kernel on workers; None for this process."""
    _held: tuple[Kernel, Source] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the matrix, which is computed from the rows again."""
        return self.__dict__ | {"_held": None, "gram": None}

    def hold(self, kernel: Kernel, source: Source) -> None:
        """Keep a matrix that is in memory."""
        self._held = kernel, source

    def of(self, kernel: Kernel) -> Source:
        """The matrix of a kernel."""
        if not self.in_memory:
            return self.computed(kernel)
        if self._held is None or self._held[0] != kernel:
            self._held = None  # before another one takes memory
            n = self.rows.shape[0]
            K = RowsSource(self.rows, kernel, core_count()).block(np.arange(n))[:, :n]
            self._held = kernel, ArraySource(K, Threads(core_count()))
        return self._held[1]

    def computed(self, kernel: Kernel) -> Source:
        """The matrix of a kernel, computed in every pass, on workers if the first was."""
        if self.gram is not None:
            return GramSource(self.gram.with_kernel(kernel))
        return RowsSource(self.rows, kernel, core_count())


def preconditioner_of(
    rows: Rows, kernel: Kernel, noise: float, landmarks: Indices
) -> SampledPreconditioner:
    """Preconditioner of K + noise I by landmarks among the rows."""
    if not len(landmarks):
        return NoisePreconditioner(rows.shape[0], noise)
    shift = np.full(rows.shape[0], noise)
    return precondition_by(rows, kernel, landmarks, shift, core_count())


@dataclass(frozen=True, eq=False)
class Posterior:
    """Variances of f given the samples of a fit."""

    matrices: MatricesOfRows
    kernel: Kernel
    noise: float
    cholesky: Floats | None
    """Lower factor of K + noise I; None if systems are solved by conjugate gradients."""
    landmarks: Indices
    """Landmarks of the preconditioner, among the rows."""
    memory: int | None
    tol: float
    """Tolerance of the residuals of these systems."""
    max_passes: int

    def variances(self, rows: Rows) -> Floats:
        """Variances of f at mapped samples, (M,)."""
        fitted, m = self.matrices.rows, rows.shape[0]
        room = own_room(self.memory) // (8 * _VECTORS * fitted.shape[0])
        found, passes = np.empty(m), passes_of_call()
        for part in blocks(m, int(min(_AT_ONCE, max(1, room)))):
            own = rows[part]
            passes.solve = f"samples {part.start:,} to {part.stop:,} of {m:,}"
            between = self.kernel.of_rows(fitted, own).astype(np.float64, copy=False)
            if self.cholesky is None:
                explained = np.einsum("ij,ij->j", between, self._solved(between))
            else:
                half = solve_triangular(self.cholesky, between, lower=True)
                explained = np.einsum("ij,ij->j", half, half)
            prior = RowsSource(own, self.kernel).diagonal()
            found[part] = np.maximum(prior - explained, 0.0)
        return found

    def _solved(self, columns: Floats) -> Floats:
        """(K + noise I)^-1 columns."""
        rows = self.matrices.rows
        means = Means(preconditioner_of(rows, self.kernel, self.noise, self.landmarks))
        source, most = self.matrices.of(self.kernel), self.max_passes
        with one_blas_thread():
            found = solve_ridge(
                source, columns, self.noise, tol=self.tol, max_passes=most, means=means
            )
        return found.coef
