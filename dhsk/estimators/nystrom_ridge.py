"""Ridge regression on Nyström features."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Rows
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto, SamplePairs
from dhsk.estimators.base import KernelEstimator
from dhsk.estimators.problem import random_numbers
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.linear.least_squares import fit_ridge
from dhsk.nystrom.approximation import approximate
from dhsk.results.low_rank import LowRank
from dhsk.samples import Samples, SphereMap, open_samples


@dataclass(eq=False, repr=False)
class NystromRidge(MultiOutputMixin, RegressorMixin, KernelEstimator):  # type: ignore[misc]
    """Ridge regression with a low-rank approximation of a kernel.

    Least squares on Nyström features, by default of the exact heat kernel, for more samples than
    `HeatKernelRidge` can fit: one pass over the features, which may be larger than memory, for all
    targets together. The objective is sum_i s_i |y_i - z_i'w - b|^2 + alpha |w|^2.

    Parameters
    ----------
    n_components
        Number of features. There are fewer if there are fewer samples, or if the rank of the
        kernel matrix is lower.
    alpha
    kernel
        A positive semi-definite kernel; None for the heat kernel at `time_scale`; or a name as
        for `HeatSVC`.
    selection
        How landmarks are chosen, as for `NystromSVC`.
    oversampling
    fit_intercept
        Whether there is an intercept b, which is not regularized.
    time_scale, sphere_map, zero_rows
    dtype
        Type of inner products, kernel values and features: "float64" or "float32". Sums and
        factorizations are in float64.
    memory, client, random_state

    Attributes
    ----------
    landmarks_, landmark_indices_
    landmark_coef_, intercept_
        Predictions are ``kernel_(x, landmarks_) @ landmark_coef_ + intercept_``: (m,) and a number,
        or (m, J) and (J,) for J targets.
    n_components_
    trace_error_
        Relative trace error of the features.
    residual_
        Largest norm of a gradient, relative to that at 0.
    kernel_, time_scale_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(2000, noise=1.0, random_state=0)
    >>> model = dhsk.NystromRidge(200, 0.1, kernel="gaussian", random_state=0)
    >>> round(model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]), 2)
    0.86
    """

    _learnt = (
        "landmark_indices_", "landmark_coef_", "intercept_", "n_components_", "trace_error_",
        "residual_", "_landmarks",
    )  # fmt: skip

    n_components: int = 1000
    alpha: float = 1.0
    _: KW_ONLY
    selection: str | ArrayLike = "rpcholesky"
    oversampling: float = 1.0
    fit_intercept: bool = True
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    random_state: int | np.random.RandomState | None = None

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: Any = None, *, progress: Show = None
    ) -> Self:
        """Fit to samples and targets.

        Parameters
        ----------
        X
        y
            Targets, (N,) or (N, J).
        sample_weight
            Weights of the squared errors, (N,), at least 0; samples of weight 0 are not used.
        progress
        """
        self._check("alpha")
        X, y = self._validated(X, y=y, multi_output=True, y_numeric=True)
        weights = self._factors(sample_weight, X.shape[0])
        used = np.flatnonzero(weights)
        targets = np.asarray(y, np.float64)[used]
        return self._fit(self._samples(X[used]), targets, weights[used], progress)

    def fit_samples(self, samples: Any, y: ArrayLike, progress: Show = None) -> Self:
        """Fit to samples in a file, which may be larger than memory.

        Parameters
        ----------
        samples
        y
            Targets, (N,) or (N, J).
        progress
        """
        self._check("alpha")
        opened, targets = open_samples(samples), np.asarray(y, np.float64)
        if targets.shape[:1] != opened.shape[:1] or targets.ndim > 2:
            raise InputError(f"targets of shape {targets.shape} for {opened.shape[0]} samples")
        if not np.isfinite(targets).all():
            raise InputError("targets must be finite")
        self._keep_features(opened.shape[1], opened.feature_names)
        return self._fit(opened, targets, np.ones(len(targets)), progress)

    def _fit(self, samples: Samples, targets: Floats, weights: Floats, progress: Show) -> Self:
        """Fit to opened samples, with checked parameters."""
        how = self._low_rank().among(samples.shape[0])
        seed = int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        columns = targets.reshape(len(targets), -1)
        with self._begun(progress, approximation=3, training=1) as run, run.told():
            row_map = self._row_map(SamplePairs(samples, weights))
            self._keep_map(row_map)
            found = approximate(samples, row_map, how, run, seed=seed)
            own = {"intercept": bool(self.fit_intercept)}
            fit = fit_ridge(found.features, columns, weights, float(self.alpha), **own)
        row_map.warn(samples)
        self._landmarks, self.landmark_indices_ = found.landmarks, found.indices
        self.landmark_coef_ = (found.root @ fit.coef).reshape(-1, *targets.shape[1:])
        self.intercept_ = fit.intercepts if targets.ndim > 1 else float(fit.intercepts[0])
        self.n_components_, self.trace_error_ = found.width, found.trace_error
        self.residual_ = float(fit.residual.max())
        return self

    def _low_rank(self) -> LowRank:
        rank = whole_parameter("n_components", self.n_components, 1)
        chosen: Any = self.selection
        return LowRank(rank, chosen, self.oversampling).checked()

    def predict(self, X: Any) -> Floats:
        """Predict targets, (N,) or (N, J) as y."""
        check_is_fitted(self)
        coef = self.landmark_coef_
        sums = self._sums(X, self._landmarks, coef.reshape(len(coef), -1))
        return np.asarray(sums.reshape(-1, *coef.shape[1:]) + self.intercept_)

    @property
    def landmarks_(self) -> Rows:
        """Landmarks, mapped to the sphere, (m, dim)."""
        check_is_fitted(self)
        return with_all_entries(self._landmarks)
