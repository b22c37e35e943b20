"""Outlier detection by a one-class support vector machine."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices, Rows
from dhsk.bars import Show
from dhsk.errors import InputError, warn
from dhsk.estimators.automatic import Auto
from dhsk.estimators.base import HeatEstimator
from dhsk.execution.run import Run
from dhsk.kernels import Kernel
from dhsk.kernels.base import Indefinite, positive_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.models.rescaling import kernel_in, unit_for
from dhsk.models.single import fitted_rows, source_of_fit
from dhsk.samples import SphereMap, ZeroRule
from dhsk.solvers.box_solver import Limits
from dhsk.solvers.one_class import OneClassFit, solve_one_class


class OneClassEstimator(OutlierMixin, HeatEstimator):  # type: ignore[misc]  # see its base
    """Base of one-class support vector machines."""

    nu: float
    tol: float
    unit_: float
    _boundary: float
    _support_rows: Rows

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: Show = None
    ) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X, y
        sample_weight
            Upper bound on each sample's coefficient, (N,); None for 1.
        progress
        """
        del y
        if positive_parameter("nu", self.nu) > 1:
            raise InputError(f"nu must be at most 1, but it is {self.nu!r}")
        self._check("tol")
        X = self._validated(X)
        weights = self._factors(sample_weight, X.shape[0])
        used = np.flatnonzero(weights)
        with self._begun(progress, reading=1, tiles=2, training=5) as run:
            rows = self._map_to_fit(X, run, weights)
            found = self._solved(rows, used, weights[used], run)
        inside = np.flatnonzero(found.coef)
        self._support_rows = fitted_rows(rows, used[inside], self.kernel_)
        self._boundary = found.offset
        self._keep(used[inside], found.coef[inside])
        total = self._coef.sum()
        self.objective_ = self._constant * total / 2 + self.unit_ * found.objective
        self.kkt_violation_ = self.unit_ * found.violation
        self.n_iter_, self.converged_ = found.steps, found.converged
        if not found.converged:
            warn(self._complaint(found), ConvergenceWarning)
        return self

    def _complaint(self, found: OneClassFit) -> str:
        """That the fit did not converge, and what helps."""
        return (
            f"the fit ended after {found.steps} steps with a violation of {found.violation:.3g} "
            f"above tol={self.tol:g}: raise tol"
        )

    def _solved(self, rows: Rows, used: Indices, weights: Floats, run: Run) -> OneClassFit:
        # The sum of the coefficients is fixed, so the kernel may be rescaled; see `stretched`.
        self.unit_ = unit_for(self.kernel_, len(used), lambda chosen: rows[used[chosen]])
        room = run.room
        source = source_of_fit(rows, used, kernel_in(self.kernel_, self.unit_), room)
        limits = Limits(self.tol, room, self._most_steps)
        return solve_one_class(source, weights, self.nu, limits, run.report)

    @property
    @abstractmethod
    def _coef(self) -> Floats:
        """Coefficients of the support vectors, (n_sv,)."""

    @abstractmethod
    def _keep(self, support: Indices, coef: Floats) -> None:
        """Set what a fit has found, after the boundary."""

    def score_samples(self, X: Any) -> Floats:
        """Scores of samples, (N,): the higher, the more like the training samples."""
        check_is_fitted(self)
        return self._constant + self.unit_ * self._stretched_sums(X)

    def decision_function(self, X: Any) -> Floats:
        """Signed distances to the boundary, up to scale, (N,), negative for outliers."""
        check_is_fitted(self)
        return self.unit_ * (self._stretched_sums(X) - self._boundary)

    @property
    def _constant(self) -> float:
        """Constant part of the scores, as K = 1 - unit + unit K_stretched."""
        return float((1.0 - self.unit_) * self._coef.sum())

    def _stretched_sums(self, X: Any) -> Floats:
        """Sums of the stretched kernel, (N,)."""
        kernel = kernel_in(self.kernel_, self.unit_)
        return self._sums(X, self._support_rows, self._coef[:, None], kernel)[:, 0]

    def predict(self, X: Any) -> Indices:
        """Predict 1 for inliers and -1 for outliers, (N,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


@dataclass(eq=False, repr=False)
class HeatOneClassSVM(OneClassEstimator):
    """One-class SVM, by default with the exact heat kernel on the hypersphere.

    The problem, its scale and its predictions are those of LIBSVM and `sklearn.svm.OneClassSVM`.

    Parameters
    ----------
    nu, time_scale, sphere_map, zero_rows, kernel
    tol
        Tolerance of the KKT violation. The solver continues to 1e-10 if that takes at most four
        times as many steps again.
    dtype, memory, indefinite

    Attributes
    ----------
    support_
        Indices of the support vectors, ascending, (n_sv,).
    support_vectors_
    dual_coef_
        Coefficients b of the support vectors, (n_sv,).
    offset_
        `decision_function` is `score_samples` less the offset: 0 on the boundary, which is inside.
    objective_, kkt_violation_, n_iter_, converged_, unit_
    kernel_, time_scale_, n_features_in_, feature_names_in_

    References
    ----------
    .. [1] B. Schölkopf et al., "Estimating the support of a high-dimensional distribution",
       Neural Computation 13 (2001).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.HeatOneClassSVM(nu=0.1).fit(X[y == 0])
    >>> y[:10], model.predict(X[:10])
    (array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), array([ 1, -1, -1, -1, -1, -1, -1, -1, -1, -1]))
    """

    _learnt = (
        "support_", "dual_coef_", "offset_", "objective_", "kkt_violation_", "n_iter_",
        "converged_", "unit_", "_support_rows", "_boundary",
    )  # fmt: skip

    nu: float = 0.5
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    zero_rows: ZeroRule = "center"
    kernel: Kernel | str | None = None
    tol: float = 1e-3
    dtype: str = "float64"
    memory: int | str | None = None
    indefinite: Indefinite = "error"

    @property
    def support_vectors_(self) -> Rows:
        """Support vectors, mapped to the sphere, (n_sv, dim)."""
        check_is_fitted(self)
        return with_all_entries(self._support_rows)

    @property
    def _coef(self) -> Floats:
        return self.dual_coef_

    def _keep(self, support: Indices, coef: Floats) -> None:
        self.support_, self.dual_coef_ = support, coef
        self.offset_ = self._constant + self.unit_ * self._boundary
