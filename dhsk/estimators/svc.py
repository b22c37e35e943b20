"""Support vector classifier with the exact heat kernel."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

from dhsk.estimators.automatic import Auto
from dhsk.estimators.base import KernelEstimator
from dhsk.estimators.exact import ExactClassifier
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels.base import Indefinite
from dhsk.models.exact import SvcModel
from dhsk.models.problem import Problem
from dhsk.objects.places import Place
from dhsk.samples import Samples
from dhsk.samples.weighted import MapName
from dhsk.solvers.problems import MultiClass, check_multi_class, way_of_model


@dataclass(eq=False, repr=False)
class HeatSVC(ExactClassifier, KernelEstimator):
    """C-support vector classification, by default with the exact heat kernel on the hypersphere.

    One-vs-one, with the optimum of `sklearn.svm.SVC`, and its decisions where the intercept is
    unique: it is not where a pair of classes has no support vector below the bound C. One-vs-rest,
    the same of a ``OneVsRestClassifier(SVC())``. The fit reports the KKT violation and the duality
    gap of its solution. Kernel values are computed when the solver needs them, so that the matrix
    of a fit may be larger than memory.

    Parameters
    ----------
    C
        Upper bound on the dual coefficients; "auto" for 3 over the variance of the samples in
        feature space, which is half the mean squared distance of two.
    time_scale
    sphere_map
        Map of the samples to the unit sphere: "hyperspherical" (square roots of proportions, for
        counts), "projective" (division by the length), "clr" (centred log-ratios, for counts of
        microbes; "clr:0.5" adds 0.5 first) or "identity". None for the kernel's default:
        "hyperspherical" for heat, parametrix and cosine, "identity" for the others.
        "tfidf", for counts, is the projective map of counts times inverse document frequencies,
        which are learnt from the samples of the fit and kept in the model; so are the means and
        standard deviations of "scaled", as of `sklearn.preprocessing.StandardScaler`, for Gaussian
        (the default then), linear and polynomial kernels of columns in different units; gaps, NaN
        of dense samples, have the means in their place.
    zero_rows, kernel
    tol
        Tolerance of the KKT violation. In float64, pairs of classes of up to 2,048 samples are
        solved to 1e-10 if that takes at most four times as many steps again: decisions then do not
        depend on the order of the samples, nor on weights in place of repeated samples.
    class_weight
    multi_class
        Fits of three classes and more: "ovo", each pair of them, as `sklearn.svm.SVC`; or "ovr",
        each class against the rest, which was better, and faster, with twenty classes and more.
        "auto" is "ovr" above ten classes. `dhsk.cross_validate` compares both. A sample has the
        weight of its own class in all fits.
    dtype
        Type of inner products and kernel values: "float64", or "float32" for spherical, linear and
        Gaussian kernels. For a Gaussian kernel in "float32", samples far from the origin are
        refused: see `GaussianKernel`.
    memory, client
    store
        Folder for the Gram matrix of one fit, which is read if the same fit is repeated. With
        neither this nor a client the mapped samples are in memory, and nothing is stored.
    indefinite

    Attributes
    ----------
    classes_
    support_
        Indices of the support vectors, class by class, (n_sv,).
    support_vectors_
    n_support_
        Number of support vectors of each class, (k,).
    dual_coef_, intercept_
        As in `sklearn.svm.SVC`, (k - 1, n_sv) and (k(k - 1)/2,). Decisions above 0 are for the
        first class of a pair; if there are only two classes, for the second one. One-vs-rest,
        (k, n_sv) and (k,), with decisions above 0 for the class.
    coef_
        Weights of the features for linear and cosine kernels, (k(k - 1)/2, n_features) or
        (k, n_features): of features as the kernel sees them, such as tf-idf or scaled columns.
    C_, kernel_, time_scale_, kkt_violation_, duality_gap_
    n_iter_
        Number of steps of the solver for each fit, (k(k - 1)/2,) or (k,).
    converged_, model_, n_features_in_, feature_names_in_

    References
    ----------
    .. [1] C. Zhao and J. S. Song, "Exact heat kernel on a hypersphere and its applications in
       kernel SVM", 2017.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = dhsk.HeatSVC().fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 2)
    0.97
    >>> model.time_scale_, model.C_
    (0.645, 5.0)
    >>> model.converged_, model.kkt_violation_ <= model.tol
    (True, True)

    Probabilities come from decisions in held-out folds:

    >>> from sklearn.calibration import CalibratedClassifierCV
    >>> calibrated = CalibratedClassifierCV(dhsk.HeatSVC(), ensemble=False)
    >>> calibrated.fit(X[:1000], y[:1000]).predict_proba(X[1001:1003]).max(axis=1).round(2)
    array([0.99, 0.98])
    """

    C: float | Auto = "auto"
    time_scale: float | Auto = "auto"
    sphere_map: MapName | None = None
    _: KW_ONLY
    tol: float = 1e-3
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    multi_class: MultiClass | Auto = "auto"
    store: str | Place | None = None
    indefinite: Indefinite = "error"

    def _check(self, *positive: str) -> None:
        super()._check(*positive)
        check_multi_class(self.multi_class)

    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> SvcModel:
        which = way_of_model(self.multi_class, len(problem.classes))
        return super()._train(replace(problem, multi_class=which), samples, row_map, run)
