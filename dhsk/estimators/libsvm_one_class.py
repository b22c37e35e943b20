"""scikit-learn's OneClassSVM, on the solver of dhsk."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats
from dhsk.estimators.drop_in import terminated_early
from dhsk.estimators.libsvm_single import SingleDropIn
from dhsk.estimators.one_class import OneClassEstimator
from dhsk.solvers.one_class import OneClassFit


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(SingleDropIn, OneClassEstimator):
    """Detection of outliers with the parameters and attributes of `sklearn.svm.OneClassSVM`.

    The same problem, scale and predictions, but that samples on the boundary count as inliers in
    whatever order values are added. It is `HeatOneClassSVM` with scikit-learn's kernels and names.

    Parameters
    ----------
    kernel
        As for `SVC`.
    degree, gamma, coef0, tol, nu, shrinking, cache_size, verbose
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
    dual_coef_
        Coefficients of the support vectors, (1, n_sv).
    intercept_, offset_
        `decision_function` is `score_samples` less the offset; the intercept is minus the offset;
        (1,) each.
    coef_, n_iter_, objective_, kkt_violation_, unit_
    fit_status_, shape_fit_, converged_, kernel_, time_scale_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import OneClassSVM
    >>> X, y = load_digits(return_X_y=True)
    >>> model, peer = (one(nu=0.1).fit(X[y == 0]) for one in (dhsk.OneClassSVM, OneClassSVM))
    >>> bool((model.predict(X[y > 0]) == peer.predict(X[y > 0])).all())
    True
    """

    _learnt = (
        "support_", "_dual_coef", "objective_", "kkt_violation_", "n_iter_", "converged_", "unit_",
        "_support_rows", "_boundary", "_shape", "_sparse",
    )  # fmt: skip

    nu: float = 0.5

    def score_samples(self, X: Any) -> Floats:
        """Scores of samples, (N,): the higher, the more like the training samples."""
        return self.decision_function(X) + self.offset_

    def _complaint(self, found: OneClassFit) -> str:
        return terminated_early(self.max_iter, super()._complaint(found))

    @property
    def _coef(self) -> Floats:
        return self._dual_coef

    @property
    def offset_(self) -> Floats:
        """`decision_function` is `score_samples` less the offset, (1,)."""
        check_is_fitted(self)
        return np.array([self._constant + self.unit_ * self._boundary])

    @property
    def intercept_(self) -> Floats:
        """Minus the offset, (1,)."""
        return -self.offset_
