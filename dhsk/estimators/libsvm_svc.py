"""scikit-learn's SVC, on the exact solver of dhsk."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError

from dhsk.arrays import Floats
from dhsk.errors import InputError, warn
from dhsk.estimators.automatic import Auto
from dhsk.estimators.classifier import with_probabilities
from dhsk.estimators.drop_in import DropIn, terminated_early
from dhsk.estimators.exact import FOLDS, ExactClassifier
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels.base import chosen_parameter, flag_parameter
from dhsk.models.exact import SvcModel
from dhsk.models.problem import ClassWeight, Problem, class_factors, weights_of_classes
from dhsk.objects.places import Place
from dhsk.samples import Samples
from dhsk.samples.weighted import MapName

if TYPE_CHECKING:
    from distributed import Client

SHAPES = ("ovr", "ovo")
"""Values of `decision_function_shape`."""

DEPRECATED: Final = "deprecated"
"""Default of a parameter that scikit-learn will remove."""


@dataclass(eq=False, repr=False, kw_only=True)
class SVC(DropIn, ExactClassifier):
    """C-support vector classification with the parameters and attributes of `sklearn.svm.SVC`.

    The same optimum and the same decisions, from the solver of `HeatSVC`: it is that class with
    scikit-learn's kernels, defaults and names.

    Parameters
    ----------
    C
        Upper bound on the dual coefficients, above 0, which may be infinite; "auto" as for
        `HeatSVC`.
    kernel
        "rbf", "linear", "poly", "sigmoid" or "precomputed" as in scikit-learn; "heat", "parametrix"
        or "cosine" as for `HeatSVC`, of square roots of proportions unless sphere_map="projective",
        with which "cosine" is `cosine_similarity` of scikit-learn; a kernel of dhsk; or a function
        of two sets of samples that makes their matrix. "sigmoid", and "poly" with `coef0` below 0,
        are not positive semi-definite: as in LIBSVM, a fit may end at a point that is no optimum.
    degree, gamma, coef0, shrinking
    probability
        Deprecated, as in scikit-learn: fit ``CalibratedClassifierCV(SVC(), ensemble=False)`` for
        probabilities. True enables `predict_proba`.
    tol, cache_size, class_weight, verbose
    max_iter
        Upper bound on the steps of a pair of classes, -1 for none. Fits with a bound are made on
        whole matrices, which must fit in memory.
    decision_function_shape, break_ties
    random_state
        Seed, or a `RandomState`, that shuffles the folds of `probability`.
    time_scale
    sphere_map
        Map of the samples to the unit sphere, as for `HeatSVC`; None for the kernel's default.
    zero_rows, dtype, memory, client, store, indefinite

    Attributes
    ----------
    classes_, class_weight_
    support_
        Indices of the support vectors, class by class, (n_sv,), int32.
    support_vectors_
        Support vectors, (n_sv, n_features); empty for kernel values that are given.
    n_support_
    dual_coef_, intercept_
        (k - 1, n_sv) and (k(k - 1)/2,), with scikit-learn's signs.
    coef_
    n_iter_
        Steps of the solver for each pair of classes, (k(k - 1)/2,), int32.
    fit_status_, shape_fit_
    probA_, probB_
        Deprecated, as in scikit-learn: the sigmoids of `probability`.
    C_, kernel_, time_scale_, kkt_violation_, duality_gap_, converged_, model_
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model, peer = dhsk.SVC().fit(X[:1000], y[:1000]), SVC().fit(X[:1000], y[:1000])
    >>> bool((model.predict(X) == peer.predict(X)).all())
    True
    >>> bool((model.support_ == peer.support_).all())
    True
    >>> model.converged_, model.kkt_violation_ <= model.tol
    (True, True)
    """

    C: float | Auto = 1.0
    probability: bool | str = DEPRECATED
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    random_state: Any = None
    sphere_map: MapName | None = None
    client: "Client | None" = None
    store: str | Place | None = None

    def decision_function(self, X: Any) -> Floats:
        """Decision values, as those of `sklearn.svm.SVC`.

        Returns
        -------
        Floats
            For `decision_function_shape` "ovr" (N, k); for "ovo" (N, k(k - 1)/2), a column for each
            pair of classes, above 0 for its first; for two classes (N,), above 0 for the second.
        """
        model = self._fitted
        if self.decision_function_shape == "ovr" or len(model.classes) == 2:
            return super().decision_function(X)
        return self._by_blocks(X, model.decisions, 8 * model.width)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each sample, (N,)."""
        model = self._fitted
        if not self.break_ties:
            return super().predict(X)
        if self.decision_function_shape == "ovo":
            raise InputError("break_ties must be False when decision_function_shape is 'ovo'")
        if len(model.classes) == 2:
            return super().predict(X)
        return np.asarray(model.classes[self.decision_function(X).argmax(axis=1)])

    @with_probabilities
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, (N, k), as in `sklearn.svm.SVC`."""
        if not self._fitted.has_probabilities:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return self._by_blocks(X, self.model_.probabilities, 8 * len(self.model_.classes))

    def _check_probabilities(self) -> None:
        if self.probability is not True:
            super()._check_probabilities()

    @property
    def _sigmoid_folds(self) -> dict[str, Any]:
        if self.probability == DEPRECATED:
            return {}
        warn(
            "probability of SVC is a parameter that is deprecated, as in scikit-learn: for them "
            "fit CalibratedClassifierCV(SVC(), ensemble=False)",
            FutureWarning,
        )
        return {"folds": FOLDS, "random_state": self.random_state} if self.probability else {}

    def _check(self, *positive: str) -> None:
        chosen_parameter("decision_function_shape", self.decision_function_shape, SHAPES)
        flag_parameter("break_ties", self.break_ties)
        if self.probability != DEPRECATED:
            flag_parameter("probability", self.probability)
        super()._check(*positive)

    def _check_bound(self) -> None:
        if np.inf != self.C:
            super()._check_bound()

    def _class_weights(self, y: NDArray[Any]) -> ClassWeight:
        """As in scikit-learn, "balanced" counts all samples, those of weight 0 too."""
        self._weights_of_fit: ClassWeight = self.class_weight
        if isinstance(self.class_weight, str):
            classes, first = np.unique(y, return_index=True)
            factors = class_factors(self.class_weight, y)[first]
            self._weights_of_fit = dict(zip(classes.tolist(), factors.tolist(), strict=True))
        return self._weights_of_fit

    def _complaint(self, model: SvcModel) -> str | None:
        complaint = super()._complaint(model)
        return None if complaint is None else terminated_early(self.max_iter, complaint)

    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> SvcModel:
        model = super()._train(problem, samples, row_map, run)
        weights = weights_of_classes(self.__dict__.pop("_weights_of_fit"), problem)
        own = {"class_weights": weights.tolist(), "sparse": self._sparse}
        return replace(model, notes={**model.notes, **own})

    def _opened(self, samples: Any, y: Any) -> tuple[Samples, NDArray[Any], Floats]:
        if self._is_function:
            raise InputError("a kernel that is a function has no samples of a file: use fit")
        opened, labels, weights = super()._opened(samples, y)
        self._shape, self._sparse = opened.shape, opened.is_sparse
        return opened, labels, weights

    def _take(self, model: SvcModel) -> None:
        super()._take(model)
        self._support_rows = model.rows
        for name in ("support_", "n_support_", "n_iter_"):
            setattr(self, name, getattr(self, name).astype(np.int32))
        weights = model.notes.get("class_weights", np.ones(len(model.classes)))
        self.class_weight_ = np.array(weights)
        if not hasattr(self, "_shape"):  # it comes from a file
            self._shape = model.notes["n_samples"], model.dim
            self._sparse = model.notes.get("sparse", issparse(model.rows))
        self.dual_coef_ = self._as_samples_are(self.dual_coef_)

    @property
    def probA_(self) -> Floats:
        """Deprecated, as in scikit-learn: slopes of the sigmoids."""
        return self._sigmoids("probA_")[:, 0]

    @property
    def probB_(self) -> Floats:
        """Deprecated, as in scikit-learn: offsets of the sigmoids."""
        return self._sigmoids("probB_")[:, 1]

    def _sigmoids(self, name: str) -> Floats:
        """Sigmoids of the pairs of classes, (pairs, 2); none without `probability`."""
        words = f"Attribute `{name}` was deprecated in scikit-learn 1.9, as `probability` was"
        warn(words, FutureWarning)
        found = self._fitted.sigmoids
        return np.empty((0, 2)) if found is None else found

    @property
    def coef_(self) -> Any:
        """Weights of the features for a linear kernel, (pairs of classes, n_features)."""
        model = self._fitted
        sign = -1.0 if len(model.classes) == 2 else 1.0
        return self._weights_of(sign * model.expansion.by_problem)
