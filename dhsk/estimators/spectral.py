"""Base of the estimators that fit eigenvectors of a kernel matrix."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.estimators.base import KernelEstimator
from dhsk.estimators.problem import random_numbers
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.gram.spectra import eigenpairs_of
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.models.sources import RowsSource
from dhsk.objects.places import Place
from dhsk.solvers import eigenpairs
from dhsk.solvers.eigenpairs import MAX_PASSES, Eigenpairs, Multiply, leading_eigenpairs

Operator: TypeAlias = Callable[[Callable[[], Floats], Multiply], Multiply]
"""Makes products of a method of those with the kernel matrix; the first gives its diagonal."""


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralEstimator(KernelEstimator):
    """Estimator that fits leading eigenvectors of an operator made of its kernel matrix."""

    tol: float
    max_iter: int = MAX_PASSES
    store: str | Place | None = None
    journal: str | Place | None = None
    random_state: Any = 0

    def _eigenpairs(self, X: Any, rows: Rows, k: int, operator: Operator, run: Run) -> Eigenpairs:
        """Leading eigenpairs for samples and their mapped rows, and what certifies them."""
        max_iter = whole_parameter("max_iter", self.max_iter, 2)
        positive_parameter("tol", self.tol)
        seed = random_numbers(self.random_state).randint(np.iinfo(np.int32).max)
        if run.store is None and rows.shape[0] <= eigenpairs.SMALL:
            found = self._of_few(rows, k, operator)
        else:
            with self._current():
                gram = self._gram(X)
                own, how = partial(operator, gram.diagonal), {"seed": seed, "max_passes": max_iter}
                found = eigenpairs_of(gram, k, run, own, tol=self.tol, **how)
        self.residuals_, self.n_iter_ = found.residuals, found.passes
        self.converged_ = found.converged
        return found

    def _of_few(self, rows: Rows, k: int, operator: Operator) -> Eigenpairs:
        """Eigenpairs of a small matrix in memory, where tiles would take ten times as long."""
        n = rows.shape[0]
        with one_blas_thread():
            block = RowsSource(rows, self.kernel_).block(np.arange(n))[:, :n]
            K = block.astype(np.float64, copy=False)
            products = operator(lambda: np.diagonal(K), K.__matmul__)
            return leading_eigenpairs(products, n, k, tol=self.tol)
