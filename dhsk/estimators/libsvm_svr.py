"""scikit-learn's SVR, on the solver of dhsk."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices, Rows
from dhsk.bars import Show
from dhsk.errors import warn
from dhsk.estimators.automatic import LARGEST_C
from dhsk.estimators.drop_in import terminated_early
from dhsk.estimators.libsvm_single import SingleDropIn
from dhsk.execution.run import Run
from dhsk.kernels.base import positive_parameter, real_parameter
from dhsk.models.rescaling import kernel_in, unit_for
from dhsk.models.single import fitted_rows, source_of_fit
from dhsk.solvers.box import BoxFit, BoxProblem
from dhsk.solvers.box_solver import Limits, fine_tolerance, solve_box


@dataclass(eq=False, repr=False, kw_only=True)
class SVR(RegressorMixin, SingleDropIn):  # type: ignore[misc]  # see its base
    """Epsilon-insensitive regression with the parameters and attributes of `sklearn.svm.SVR`.

    The same optimum, with certificates. The solver has one coefficient for each sample, in place of
    LIBSVM's two; many samples are solved on sets of them, without their whole matrix.

    Parameters
    ----------
    kernel
        As for `SVC`.
    degree, gamma, coef0
    tol
        Tolerance of the KKT violation, in units of the targets; small problems are solved beyond
        it.
    C
        Upper bound on the absolute dual coefficients, above 0, which may be infinite.
    epsilon
        Width of the zone around the targets in which errors do not count, at least 0.
    shrinking, cache_size, verbose
    max_iter
        Upper bound on the steps of the solver, -1 for none. Fits with a bound are made on the whole
        matrix, which must fit in memory.
    time_scale, sphere_map, zero_rows, dtype, memory, indefinite

    Attributes
    ----------
    support_
    support_vectors_
        Support vectors, (n_sv, n_features); empty for kernel values that are given.
    n_support_
    dual_coef_, intercept_
        (1, n_sv) and (1,).
    coef_, n_iter_, kkt_violation_, duality_gap_
    fit_status_, shape_fit_, converged_, kernel_, time_scale_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.svm import SVR
    >>> X, y = make_friedman1(500, noise=1.0, random_state=0)
    >>> model, peer = dhsk.SVR(C=10.0).fit(X, y), SVR(C=10.0).fit(X, y)
    >>> bool(abs(model.predict(X) - peer.predict(X)).max() < 2e-3)
    True
    >>> model.converged_, model.kkt_violation_ <= model.tol
    (True, True)
    """

    _learnt = (
        "support_", "_dual_coef", "intercept_", "kkt_violation_", "duality_gap_", "n_iter_",
        "converged_", "_unit", "_support_rows", "_shape", "_sparse",
    )  # fmt: skip

    C: float = 1.0
    epsilon: float = 0.1

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: Any = None, *, progress: Show = None
    ) -> Self:
        """Fit to samples and targets.

        Parameters
        ----------
        X
        y
            Targets, (N,).
        sample_weight
            Factors of C, (N,); samples of weights up to 0 are not used.
        progress
        """
        self._check("tol")
        X, y = self._validated(X, y=y, y_numeric=True)
        weights, targets = self._factors(sample_weight, X.shape[0]), np.asarray(y, np.float64)
        used = np.flatnonzero(weights)
        with self._begun(progress, reading=1, tiles=2, training=5) as run, run.told():
            rows = self._map_to_fit(X, run, weights)
            self._unit = unit_for(self.kernel_, len(used), lambda some: rows[used[some]])
            largest = LARGEST_C if np.isinf(self.C) else float(self.C)
            bounds = self._unit * largest * weights[used]
            problem = BoxProblem(targets[used], -bounds, bounds, float(self.epsilon))
            found = self._solved(rows, used, problem, run)
        inside = np.flatnonzero(found.b)
        self._support_rows = fitted_rows(rows, used[inside], self.kernel_)
        self._keep(used[inside], found.b[inside] / self._unit)
        self._certify(problem, found)
        if not self.converged_:
            warn(self._complaint(), ConvergenceWarning)
        return self

    def _check(self, *positive: str) -> None:
        if np.inf != self.C:
            positive_parameter("C", self.C)
        real_parameter("epsilon", self.epsilon, 0)
        super()._check(*positive)

    def _solved(self, rows: Rows, used: Indices, problem: BoxProblem, run: Run) -> BoxFit:
        room = run.room
        source = source_of_fit(rows, used, kernel_in(self.kernel_, self._unit), room)
        limits = Limits(self.tol, room, self._most_steps, fine_tolerance(problem))
        return solve_box(source, problem, np.zeros(len(used)), limits, run.report)

    def _certify(self, problem: BoxProblem, found: BoxFit) -> None:
        """Set the intercept and the certificates, from a recomputed gradient."""
        intercept = problem.intercept(found.b, found.f)
        self.intercept_ = np.array([intercept])
        self.kkt_violation_ = problem.violation(found.b, found.f)
        self.duality_gap_ = problem.gap(found.b, found.f, intercept)
        self.n_iter_, self.converged_ = found.steps, self.kkt_violation_ <= self.tol

    def _complaint(self) -> str:
        return terminated_early(
            self.max_iter,
            f"the fit ended after {self.n_iter_} steps with a violation of "
            f"{self.kkt_violation_:.3g} above tol={self.tol:g}: raise tol, or lower C",
        )

    def predict(self, X: Any) -> Floats:
        """Predict targets, (N,)."""
        check_is_fitted(self)
        kernel = kernel_in(self.kernel_, self._unit)
        coef = self._unit * self._dual_coef[:, None]
        sums = self._sums(X, self._support_rows, coef, kernel)
        return np.asarray(sums[:, 0] + self.intercept_)
