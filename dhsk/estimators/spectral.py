"""Base of the estimators that fit eigenvectors of a kernel matrix."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from sklearn.utils import check_random_state

from dhsk.arrays import Floats
from dhsk.estimators.base import HeatEstimator
from dhsk.gram.compute import compute_gram
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.spectra import EigenOptions, eigenpairs_of
from dhsk.kernels.base import whole_parameter
from dhsk.objects.places import Place
from dhsk.samples import ZeroRows
from dhsk.samples.weighted import fixed_map
from dhsk.solvers.eigenpairs import Eigenpairs, Multiply


class SpectralEstimator(HeatEstimator):
    """Estimator that fits leading eigenvectors of an operator made of its kernel matrix."""

    tol: float
    max_iter: int
    store: str | Place | None
    journal: str | Place | None
    random_state: Any
    residuals_: Floats

    def _eigenpairs(
        self, X: Any, k: int, operator: Callable[[GramMatrix, Multiply], Multiply]
    ) -> Eigenpairs:
        """Leading eigenpairs, and the attributes that certify them; the rows are mapped.

        The operator is made of the matrix and of a function that multiplies it.
        """
        max_iter = whole_parameter("max_iter", self.max_iter, 2)
        seed = check_random_state(self.random_state).randint(2**31)
        with self.client.as_current() if self.client else nullcontext():
            gram = compute_gram(
                self._samples(X),
                self.kernel_,
                sphere_map=fixed_map(self.sphere_map),
                zero_rows=ZeroRows(self.zero_rows),  # the warning was given by the map
                store=self.store,
                dtype=self._fitted_map.dtype,
                product_dtype=self._fitted_map.dtype,
                memory=self.memory,
                client=self.client,
            )
            options = EigenOptions(self.tol, seed, max_iter, self.memory, self.journal)
            found = eigenpairs_of(gram, k, options, partial(operator, gram))
        self.residuals_, self.n_iter_ = found.residuals, found.passes
        self.converged_ = found.converged
        return found
