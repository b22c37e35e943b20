"""Kernel ridge regression on Gram matrices that may be larger than memory."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.errors import warn
from dhsk.estimators.automatic import Auto
from dhsk.estimators.base import KernelEstimator, rows_of_fit
from dhsk.estimators.regression import Rank, check_rank, means_of, source_of
from dhsk.kernels.base import whole_parameter
from dhsk.models.problem import sample_factors
from dhsk.objects.places import Place
from dhsk.samples import SphereMap
from dhsk.solvers.ridge import RidgeSolution, solve_ridge

_DIRECT: Final = 20_000
"""Most samples for which a factorisation is advised: some minutes."""


@dataclass(eq=False, repr=False)
class HeatKernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Kernel ridge regression, by default with the exact heat kernel on the hypersphere.

    Preconditioned conjugate gradients on a block solve (K + alpha I) b = y for all targets
    together, a factorisation does up to 2,000 samples; `residual_` certifies the solution. A matrix
    that fits in memory is computed once. Otherwise each pass computes it again, or reads it from a
    store. Tables of measurements are no proportions: give ``sphere_map="projective"`` to columns
    of a `StandardScaler`.

    Parameters
    ----------
    alpha
    fit_intercept
        Whether targets are centred at their weighted mean, which predictions get back. Without it
        they are drawn to 0, as in scikit-learn's `KernelRidge`.
    time_scale, sphere_map, zero_rows, kernel
    tol
        Tolerance of the residual, relative to the norm of y.
    max_iter, dtype, memory
    client
        Dask client whose workers compute the matrix if it does not fit in memory, and predict many
        samples as long as it is open. Clones share it, and it is not pickled.
    store
    preconditioner_rank
        Columns of the low-rank approximation of the matrix that preconditions the iteration [2]_;
        0 for none; N factors a matrix in memory, which solves directly. "auto" does so up to 2,000
        samples. Beyond, it takes about as many columns as cost four passes over the matrix and fit
        in a quarter of the memory that is left, or fewer that approximate it to within alpha.
    journal
        Folder or ``s3://`` prefix for checkpoints. The same fit resumes after an interruption, and
        ends with the same bits; a finished fit removes them. None for no checkpoints.

    Attributes
    ----------
    dual_coef_
        Coefficients b, (N,) or (N, k).
    intercept_
        What predictions get beside the kernel's part, a number or (k,).
    X_fit_
        Samples of a weight above 0, mapped to the sphere, (N, dim).
    kernel_, time_scale_
    residual_
        Largest relative residual of all targets.
    n_iter_
        Number of iterations.
    rank_
        Columns of the preconditioner's approximation; 0 for none, N if the matrix was factored.
    converged_
        Whether the residual of every target is at most `tol`.
    n_features_in_, feature_names_in_

    References
    ----------
    .. [1] C. Saunders, A. Gammerman and V. Vovk, "Ridge regression learning algorithm in dual
       variables", ICML 1998.
    .. [2] Z. Frangella, J. A. Tropp and M. Udell, "Randomized Nyström preconditioning", SIAM J.
       Matrix Anal. Appl. 44 (2023).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.HeatKernelRidge(alpha=0.1).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.87
    """

    _learnt = ("dual_coef_", "intercept_", "residual_", "n_iter_", "rank_", "converged_", "_rows")

    X_fit_ = property(rows_of_fit)
    alpha: float = 1.0
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000
    store: str | Path | None = None
    preconditioner_rank: Rank = "auto"
    journal: str | Place | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, progress: Show = None) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X
        y
            Targets, (N,) or (N, k).
        sample_weight
            Weight of each sample's error, (N,), 1 by default.
        progress
        """
        self._check("alpha", "tol")
        check_rank(self.preconditioner_rank)
        max_iter = whole_parameter("max_iter", self.max_iter, 2)
        X, y = self._validated(X, y=y, multi_output=True, y_numeric=True)
        weights = sample_factors(sample_weight, X.shape[0])
        used = np.flatnonzero(weights)
        targets = np.asarray(y, dtype=np.float64)[used]
        centre = self._centre(targets, weights[used])
        columns = (targets - centre).reshape(len(targets), -1)
        shift = float(self.alpha) / weights[used]
        # With one BLAS thread, see `told`, bits do not depend on the number of cores.
        begun = self._begun(progress, reading=1, tiles=1, landmarks=2, passes=10)
        with begun as run, run.told():
            self._rows = rows = self._map_to_fit(X, run, weights)[used]
            source = source_of(rows, self.kernel_, run, lambda: self._gram(X[used]))
            system = self.preconditioner_rank, rows, self.kernel_, source, shift
            means = means_of(*system, run, columns, float(self.tol))
            solution = solve_ridge(
                source, columns, shift, tol=self.tol, max_passes=max_iter, means=means
            )
        self.rank_ = means.rank
        self.dual_coef_ = solution.coef.reshape(targets.shape)
        self.intercept_ = centre if targets.ndim > 1 else float(centre)
        self.residual_ = float(solution.residual.max())
        self.n_iter_, self.converged_ = solution.passes, bool(solution.converged.all())
        if not self.converged_:
            warn(self._complaint(solution), ConvergenceWarning)
        return self

    def predict(self, X: Any) -> Floats:
        """Predict targets, (N,) or (N, k) as y."""
        check_is_fitted(self)
        coef = self.dual_coef_
        scores = self._sums(X, self._rows, coef.reshape(len(coef), -1))
        return scores.reshape(-1, *coef.shape[1:]) + self.intercept_

    def _centre(self, targets: Floats, weights: Floats) -> Floats:
        """Weighted mean of each target, or 0."""
        if self.fit_intercept:
            return np.asarray(np.average(targets, axis=0, weights=weights))
        return np.zeros(targets.shape[1:])

    def _complaint(self, solution: RidgeSolution) -> str:
        """Text of the warning that targets did not converge, with advice."""
        open_, total = int((~solution.converged).sum()), len(solution.converged)
        found = (
            f"{open_} of {total} targets did not converge: relative residual {self.residual_:.3g} "
            f"after {solution.passes} passes, tol={self.tol:g}"
        )
        if solution.indefinite.any():
            return (
                f"{found}; the matrix with alpha={self.alpha:g} is not positive definite, so raise "
                "alpha or choose a positive definite kernel"
            )
        n = self._rows.shape[0]
        direct = f", or give preconditioner_rank={n}, which solves directly"
        passes = "max_iter, " if self.n_iter_ >= self.max_iter else ""
        return f"{found}; raise {passes}alpha or tol{direct if self.rank_ < n <= _DIRECT else ''}"
