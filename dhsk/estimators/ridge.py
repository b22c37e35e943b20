"""Kernel ridge regression on Gram matrices that may be larger than memory."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Rows
from dhsk.bars import Show
from dhsk.errors import warn
from dhsk.estimators.automatic import Auto, check_auto, is_auto
from dhsk.estimators.base import KernelEstimator, rows_of_fit
from dhsk.estimators.regression import MANY, Rank, blocks_of, check_rank, means_of, source_of
from dhsk.execution.run import Run
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.kernels.base import whole_parameter
from dhsk.models.problem import sample_factors
from dhsk.objects.places import Place
from dhsk.samples import SphereMap
from dhsk.solvers.block_descent import solve_in_blocks
from dhsk.solvers.ridge import RidgeSolution, solve_ridge
from dhsk.solvers.sources import Source

_DIRECT: Final = 20_000
"""Most samples for which a factorisation is advised: some minutes."""

_TOL: Final = 1e-6
"""Tolerance of conjugate gradients."""

_LEAST_ALPHA: Final = 1e-3
"""Least alpha for float32. Its rounding is random: of a million samples, its largest eigenvalue is
some sqrt(N) eps, 6e-5."""


@dataclass(eq=False, repr=False)
class HeatKernelRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Kernel ridge regression, by default with the exact heat kernel on the hypersphere.

    Preconditioned conjugate gradients on a block solve (K + alpha I) b = y for all targets
    together, a factorisation does up to 2,000 samples; `residual_` certifies the solution. A matrix
    that fits in memory is computed once. Otherwise each pass computes it again, or reads it from a
    store. Beyond 100,000 samples in this process, blocks of them are solved in turn [3]_. Tables of
    measurements are no proportions: give ``sphere_map="projective"`` to columns of a
    `StandardScaler`.

    Parameters
    ----------
    alpha
    fit_intercept
        Whether targets are centred at their weighted mean, which predictions get back. Without it
        they are drawn to 0, as in scikit-learn's `KernelRidge`.
    time_scale, sphere_map, zero_rows, kernel
    tol
        Tolerance of the residual, relative to the norm of y: fitted values are as near to those of
        the exact solution. "auto" is 1e-6; where blocks are solved in turn, it is a tenth of the
        error on samples that were not yet used, which leaves the error within about half a percent.
    max_iter
        Most passes over the matrix. A sweep over all blocks is one.
    dtype
        Type of mapped rows, inner products and kernel values; sums are in float64. None for
        float64, and for float32 beyond 100,000 samples if `alpha` is at least 1e-3: rounding of the
        matrix is then far below it.
    memory
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
        Number of passes over the matrix.
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
    .. [3] P. Rathore, Z. Frangella, J. Yang, M. Dereziński and M. Udell, "Have ASkotch: a neat
       solution for large-scale kernel ridge regression", arXiv 2407.10070.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.HeatKernelRidge(alpha=0.1).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.87
    """

    _dtypes = ("float32", "float64", None)
    _learnt = ("dual_coef_", "intercept_", "residual_", "n_iter_", "rank_", "converged_", "_rows")

    X_fit_ = property(rows_of_fit)
    alpha: float = 1.0
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    fit_intercept: bool = True
    tol: float | Auto = "auto"
    max_iter: int = 1000
    store: str | Path | None = None
    preconditioner_rank: Rank = "auto"
    dtype: str | None = None  # type: ignore[assignment]  # that of its base has a type
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
        self._check("alpha")
        check_auto("tol", self.tol)
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
            solution = self._solved(source, rows, columns, shift, max_iter, run)
        self.dual_coef_ = solution.coef.reshape(targets.shape)
        self.intercept_ = centre if targets.ndim > 1 else float(centre)
        self.residual_ = float(solution.residual.max())
        self.n_iter_, self.converged_ = solution.passes, bool(solution.converged.all())
        if not self.converged_:
            warn(self._complaint(solution), ConvergenceWarning)
        return self

    def _solved(
        self, source: Source, rows: Rows, columns: Floats, shift: Floats, most: int, run: Run
    ) -> RidgeSolution:
        """Solve in blocks, or by conjugate gradients."""
        system = self.preconditioner_rank, rows, self.kernel_, source, shift, run, columns
        tol = None if is_auto(self.tol) else float(self.tol)
        blocks = blocks_of(*system, tol)
        if blocks is not None:
            self.rank_ = 0
            return solve_in_blocks(source, columns, shift, tol=tol, most=most, how=blocks)
        tol = _TOL if tol is None else tol
        means = means_of(*system, tol)
        self.rank_ = means.rank
        return solve_ridge(source, columns, shift, tol=tol, max_passes=most, means=means)

    def predict(self, X: Any) -> Floats:
        """Predict targets, (N,) or (N, k) as y."""
        check_is_fitted(self)
        coef = self.dual_coef_
        scores = self._sums(X, self._rows, coef.reshape(len(coef), -1))
        return scores.reshape(-1, *coef.shape[1:]) + self.intercept_

    def _product_dtype(self, kernel: Kernel, n_samples: int) -> str:
        many = n_samples > MANY and self.alpha >= _LEAST_ALPHA
        return self.dtype or ("float32" if many and takes_float32(kernel) else "float64")

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
            f"after {solution.passes} passes, tol={solution.tol:.3g}"
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
