"""Variances of a fitted Gaussian process, and the matrices of its kernels."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.linalg import solve_triangular

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.run import Run
from dhsk.execution.threads import Threads
from dhsk.execution.workers import computing
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.models.gram_source import GramSource
from dhsk.models.sources import RowsSource
from dhsk.nystrom.preconditioner import precondition_by
from dhsk.run_progress import passes_of_call
from dhsk.solvers.likelihood import NoisePreconditioner, SampledPreconditioner
from dhsk.solvers.ridge import Means, solve_ridge
from dhsk.solvers.sources import ArraySource, Source

AT_ONCE: Final = 512
"""Most samples whose variances share passes."""

_VECTORS: Final = 12
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
    held: tuple[Kernel, Source] | None = None
    """A kernel, and its matrix in memory."""

    def __getstate__(self) -> dict[str, Any]:
        """Without the matrix, which is computed from the rows again."""
        return self.__dict__ | {"held": None, "gram": None}

    def of(self, kernel: Kernel) -> Source:
        """The matrix of a kernel."""
        if not self.in_memory:
            return self.computed(kernel)
        if self.held is None or self.held[0] != kernel:
            self.held = None  # before another one takes memory
            n = self.rows.shape[0]
            K = RowsSource(self.rows, kernel, core_count()).block(np.arange(n))[:, :n]
            self.held = kernel, ArraySource(K, Threads(core_count()))
        return self.held[1]

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
    run: Run
    tol: float
    """Tolerance of the residuals of these systems."""
    max_passes: int
    entries: Checkpoint
    """Variances of blocks that are done, and the state of the systems of the next one."""

    def variances(self, rows: Rows) -> Floats:
        """Variances of f at mapped samples, (M,)."""
        m, passes = rows.shape[0], passes_of_call()
        room = self.run.room // (8 * _VECTORS * self.matrices.rows.shape[0])
        size = int(min(AT_ONCE, max(1, room)))
        if self.cholesky is not None:
            parts = [self._exact(rows[part], self.cholesky) for part in blocks(m, size)]
            return np.concatenate(parts)
        name = self._name(rows, size)
        kept: Floats | None = self.entries.get(name, lambda kept: kept["variances"])
        found = np.empty(0) if kept is None else kept
        for part in passes.report.each("deviations", blocks(m, size)):
            if part.start < len(found):
                continue
            passes.solve = f"samples {part.start:,} to {part.stop:,} of {m:,}"
            own = self._estimated(rows[part], f"{name}-{part.start}")
            found = np.concatenate([found, own])
            self.entries.put(name, {"variances": found})
        self.entries.drop(name)
        return found

    def _name(self, rows: Rows, size: int) -> str:
        """Name of a checkpoint, by all that decides the bits of the variances."""
        if self.entries.folder is None:
            return ""
        source = type(self.matrices.of(self.kernel)).__name__
        settings = [self.kernel.to_spec(), self.noise, self.tol, self.max_passes, source, size]
        return digest_of(settings, self.landmarks, self.matrices.rows, rows)

    def _exact(self, rows: Rows, factor: Floats) -> Floats:
        """Variances at some samples by the factor."""
        half = solve_triangular(factor, self._between(rows), lower=True)
        return self._left(rows, np.einsum("ij,ij->j", half, half))

    def _estimated(self, rows: Rows, name: str) -> Floats:
        """Variances at some samples by conjugate gradients."""
        fitted, between = self.matrices.rows, self._between(rows)
        means = Means(
            preconditioner_of(fitted, self.kernel, self.noise, self.landmarks),
            self.entries,
            name,
        )
        source, most = self.matrices.of(self.kernel), self.max_passes
        with computing():
            found = solve_ridge(
                source, between, self.noise, tol=self.tol, max_passes=most, means=means
            )
        return self._left(rows, np.einsum("ij,ij->j", between, found.coef))

    def _between(self, rows: Rows) -> Floats:
        """Kernel between the samples of the fit and others."""
        return self.kernel.of_rows(self.matrices.rows, rows).astype(np.float64, copy=False)

    def _left(self, rows: Rows, explained: Floats) -> Floats:
        """Variances less what the samples of the fit explain."""
        return np.maximum(RowsSource(rows, self.kernel).diagonal() - explained, 0.0)
