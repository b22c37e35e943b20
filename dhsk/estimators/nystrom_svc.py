"""Linear support vector or logistic classifier on Nyström features."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Floats, Rows
from dhsk.clock import NO_END, Deadline
from dhsk.estimators.automatic import LOGISTIC_STRENGTH, Auto
from dhsk.estimators.base import KernelEstimator
from dhsk.estimators.classifier import HeatClassifier
from dhsk.estimators.problem import random_numbers
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels import Kernel
from dhsk.kernels.base import Indefinite, whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.models.doubts import doubt_of_low_rank
from dhsk.models.low_rank import LowRankModel
from dhsk.models.low_rank_plan import usual_dtype
from dhsk.models.problem import Problem
from dhsk.models.train_low_rank import train_low_rank
from dhsk.results.low_rank import LossName, LowRank
from dhsk.samples import Samples
from dhsk.samples.weighted import MapName
from dhsk.units import parse_seconds


@dataclass(eq=False, repr=False)
class NystromSVC(HeatClassifier[LowRankModel], KernelEstimator):
    """Support vector classification with a low-rank approximation of a kernel.

    A linear one-vs-rest classifier on Nyström features [1]_, by default of the exact heat kernel,
    for more samples than `HeatSVC` can fit. The error of the features is `trace_error_`. The
    objective is that of `sklearn.svm.LinearSVC` [4]_, |w|^2/2 + C sum_i s_i loss_i, where |w|
    includes the intercept. Newton's method [5]_ solves all classes together, and `duality_gap_`
    is an upper bound on their suboptimality. The features may be larger than memory.

    Parameters
    ----------
    n_components
        Number of features. There are fewer if there are fewer samples, if `landmark_tol` is
        reached, or if the rank of the kernel matrix is lower.
    C
        Factor of the losses: the inverse of the regularization; "auto" as for `HeatSVC`, and 20
        times as much for the logistic loss.
    kernel
        A positive semi-definite kernel; None for the heat kernel at `time_scale`, or Gaussian of
        "scaled" columns; or a name as for `HeatSVC`.
    selection
        How landmarks are chosen. "rpcholesky": randomly pivoted Cholesky [2]_, [3]_, which draws
        samples that the earlier landmarks approximate badly. "uniform": random samples. "kmeans":
        centres of clusters of the samples [6]_. Or the indices of samples, (m,).
    oversampling, time_scale
    sphere_map, zero_rows
        As for `HeatSVC`.
    loss
        "squared_hinge", or "logistic", which enables `predict_proba`. With several classes the
        one-vs-rest probabilities are scaled to sum to 1.
    tol
        Tolerance of the gradient, relative to that at 0 and to the share of the samples that are
        in the smaller class, as in LIBLINEAR.
    landmark_tol
    class_weight
        Factors of C by label, or "balanced"; None for 1. A sample has the factor of its own class
        in the problems of all classes; in `LinearSVC` it has 1 in those of the other classes.
    dtype
        Type of inner products, kernel values and features: "float32" or "float64". Spherical and
        linear kernels take "float32", and Gaussian kernels on samples near the origin, see
        `GaussianKernel`. None for "float32" if the kernel is spherical or linear and there are more
        than four million feature values, else for "float64". Sums and factorizations are in
        float64.
    memory, client, random_state
    budget
        Most time of a fit, such as "30min", or seconds. When it is over, the fit ends at the best
        state so far, warns, and `duality_gap_` is the bound on what is missing. It may take some
        passes over the features longer. If it is over before all landmarks are chosen, there is no
        model, which is an error. None for no limit.
    indefinite
        What to do with a kernel that is known not to be positive semi-definite, such as the
        expansion of the parametrix: "error", or "allow". Features have inner products that are
        positive semi-definite, so they do not approximate it.

    Attributes
    ----------
    classes_, landmarks_, landmark_indices_
    landmark_coef_, intercept_
        Decisions are ``landmark_coef_ @ kernel_(landmarks_, x) + intercept_``: (J, m) and (J,). J
        is 1 for two classes, where decisions above 0 are for the second one, and else k.
    n_components_
    trace_error_
        Relative trace error of the features: the trace norm of the kernel matrix less the inner
        products of the features, over the trace of the matrix.
    gradient_norm_
        Largest norm of a gradient, of all J problems.
    duality_gap_
        Largest upper bound on the relative suboptimality of an objective: half the squared norm of
        the gradient, as the objective is strongly convex, over the objective.
    objective_
        Objective of each problem, (J,).
    n_iter_
        Largest number of Newton steps of a problem.
    converged_
        Whether all problems reached `tol`.
    C_, kernel_, time_scale_
    model_
        The fitted model as `LowRankModel`.
    n_features_in_, feature_names_in_

    References
    ----------
    .. [1] C. Williams and M. Seeger, "Using the Nyström method to speed up kernel machines",
       NIPS 13 (2001).
    .. [2] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503.
    .. [3] E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection: kernel matrix
       approximation by accelerated randomly pivoted Cholesky", arXiv 2410.03969.
    .. [4] R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang and C.-J. Lin, "LIBLINEAR: a library for
       large linear classification", JMLR 9 (2008).
    .. [5] S. S. Keerthi and D. DeCoste, "A modified finite Newton method for fast solution of large
       scale linear SVMs", JMLR 6 (2005).
    .. [6] K. Zhang, I. Tsang and J. Kwok, "Improved Nyström low-rank approximation and error
       analysis", ICML 2008.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.NystromSVC(300, random_state=0).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.96
    >>> round(model.trace_error_, 2)
    0.04
    """

    _model_type = LowRankModel
    _dtypes = ("float32", "float64", None)
    _deadline = NO_END
    """That of a command, whose time began before the fit."""

    n_components: int = 1000
    C: float | Auto = "auto"
    _: KW_ONLY
    selection: str | ArrayLike = "rpcholesky"
    oversampling: float = 1.0
    time_scale: float | Auto = "auto"
    sphere_map: MapName | None = None
    loss: LossName = "squared_hinge"
    tol: float = 1e-4
    landmark_tol: float = 0.0
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    dtype: str | None = None  # type: ignore[assignment]  # that of its base has a type
    random_state: int | np.random.RandomState | None = None
    indefinite: Indefinite = "error"
    budget: float | str | None = None

    def _product_dtype(self, kernel: Kernel, n_samples: int) -> str:
        return self.dtype or usual_dtype(kernel, n_samples, self.n_components)

    def _check(self, *positive: str) -> None:
        super()._check(*positive)
        self._low_rank()

    def _over(self) -> Deadline:
        if self.budget is None or self._deadline is not NO_END:
            return self._deadline
        return Deadline(parse_seconds(self.budget))

    def _low_rank(self) -> LowRank:
        return LowRank(
            whole_parameter("n_components", self.n_components, 1),
            self.selection,  # type: ignore[arg-type]  # any array
            self.oversampling,
            self.loss,
            self.landmark_tol,
        ).checked()

    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> LowRankModel:
        how = self._low_rank().among(samples.shape[0])
        seed = int(random_numbers(self.random_state).randint(np.iinfo(np.int32).max))
        return train_low_rank(problem, samples, row_map, how, run, seed=seed)

    @property
    def landmarks_(self) -> Rows:
        """Landmarks, mapped to the sphere, (m, dim)."""
        return with_all_entries(self._fitted.rows)

    @property
    def _strength(self) -> float:
        return LOGISTIC_STRENGTH if self.loss == "logistic" else super()._strength

    def _check_probabilities(self) -> None:
        fitted = getattr(self, "model_", None)
        loss = self.loss if fitted is None else fitted.certificates.loss
        if loss != "logistic":
            raise AttributeError(
                f"NystromSVC has no predict_proba with loss={loss!r}: fit it with "
                "loss='logistic', or CalibratedClassifierCV(NystromSVC(...), ensemble=False) of "
                "sklearn.calibration"
            )

    def _complaint(self, model: LowRankModel) -> str | None:
        if model.stopped is None:
            return super()._complaint(model)
        return (
            f"stopped at budget {self.budget}, {model.stopped}; a longer budget, or none, comes "
            "nearer"
        )

    def _doubt(self, model: LowRankModel, sample_weights: Floats) -> str | None:
        return doubt_of_low_rank(model, len(sample_weights), int(self.n_components))

    def _take(self, model: LowRankModel) -> None:
        found = model.certificates
        self.landmark_indices_ = model.indices
        self.landmark_coef_ = model.coef.T
        self.intercept_ = model.intercepts
        self.n_components_ = found.width
        self.trace_error_ = found.trace_error
        self.gradient_norm_ = float(found.gradient_norm.max())
        self.duality_gap_ = float((found.gap / found.objective).max())
        self.objective_ = found.objective
        self.n_iter_ = found.steps
        self.converged_ = bool(found.converged.all())
