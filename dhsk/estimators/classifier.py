"""Base of the classifiers: fitting to labels and weights, and model files."""

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MethodType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Rows
from dhsk.bars import Show, shown
from dhsk.errors import InputError, warn
from dhsk.estimators.automatic import LARGEST_C, STRENGTH, Auto, SamplePairs, check_auto, is_auto
from dhsk.estimators.base import OF_UNIT_ROWS, HeatEstimator, in_scikit_words
from dhsk.estimators.problem import make_problem
from dhsk.estimators.saving import is_of, read_by_other
from dhsk.execution.run import Run
from dhsk.gram.row_map import RowMap
from dhsk.kernels import GaussianKernel, Kernel, kernel_from_spec
from dhsk.models.doubts import doubt_of_totals
from dhsk.models.exact import SvcModel
from dhsk.models.files import load_any, save_model
from dhsk.models.low_rank import LowRankModel
from dhsk.models.problem import ClassWeight, Problem, sample_factors
from dhsk.objects.places import Place, parse_place, scratch_in
from dhsk.progress import OnProgress
from dhsk.samples import Samples, open_samples, read_labels
from dhsk.samples.weighted import LEARNT, SCALED, WeightedSamples, parse_map_name

Model = TypeVar("Model", SvcModel, LowRankModel)

Method = TypeVar("Method", bound=Callable[..., Any])


class _WithProbabilities(Generic[Method]):
    """Method that is there if `_check_probabilities` raises no error.

    As `sklearn.utils.metaestimators.available_if` makes them, whose error says no way out.
    """

    def __init__(self, method: Method) -> None:
        self.__wrapped__ = method

    def __get__(self, estimator: Any, kind: type[Any]) -> Any:
        method = self.__wrapped__
        if estimator is None:
            return method
        estimator._check_probabilities()
        return MethodType(method, estimator)


def with_probabilities(method: Method) -> Method:
    """Decorate a method of classifiers that have probabilities."""
    return cast("Method", _WithProbabilities(method))


class HeatClassifier(ClassifierMixin, HeatEstimator, Generic[Model]):  # type: ignore[misc]  # see its base
    """Base of classifiers; a fit sets `model_`."""

    C: float | Auto
    tol: float
    class_weight: Mapping[Any, float] | Literal["balanced"] | None
    _model_type: ClassVar[Any]
    """Type of `model_`."""
    _scales = True
    model_: Model

    @abstractmethod
    def _train(self, problem: Problem, samples: Samples, row_map: RowMap, run: Run) -> Model:
        """Train a model on opened samples, with checked parameters and weights."""

    @abstractmethod
    def _take(self, model: Model) -> None:
        """Set the fitted attributes of a model, besides classes, kernel and map."""

    @abstractmethod
    def _doubt(self, model: Model, sample_weights: Floats) -> str | None:
        """Why a model may be of no use, in a sentence."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        progress: Show = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X
        y
            Labels, (N,), of at least two classes.
        sample_weight
            Factors of C, (N,), at least 0; samples of weight 0 are not used.
        progress
        """
        self._check()
        X, y = self._validated(X, y=y)
        weights = self._factors(sample_weight, X.shape[0])
        with in_scikit_words(self), shown(self._shows(progress)) as report:
            return self._fit(self._samples(X), np.asarray(y), weights, report)

    def fit_samples(
        self,
        samples: Any,
        y: ArrayLike | str | os.PathLike[str],
        progress: Show = None,
        journal: str | Place | None = None,
    ) -> Self:
        """Fit to samples in a file, which may be larger than memory for `NystromSVC`.

        `HeatSVC` has those in memory that the fit needs.

        Parameters
        ----------
        samples
        y
            Labels, (N,), or a file of them as for `read_labels`.
        progress
        journal
            Folder or ``s3://`` prefix for checkpoints. The same call resumes after an interruption
            and ends with the same model, if `random_state` of `NystromSVC` is a number; remove the
            folder when the model is saved. None for no checkpoints.
        """
        opened, labels, weights = self._opened(samples, y)
        with shown(progress) as report:
            return self._fit(opened, labels, weights, report, journal)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicted label of each sample, (N,)."""
        model = self._fitted
        return self._by_blocks(X, model.predict, model.classes.itemsize)

    def decision_function(self, X: Any) -> Floats:
        """Decision values of the classes, for `HeatSVC` those of `sklearn.svm.SVC`.

        Returns
        -------
        Floats
            (N, k); for two classes (N,), above 0 for the second.
        """
        model = self._fitted
        return self._by_blocks(X, model.scores, 8 * len(model.classes))

    @abstractmethod
    def _check_probabilities(self) -> None:
        """Raise AttributeError, with what to do, unless probabilities are there or asked for."""

    @with_probabilities
    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, (N, k), as in `sklearn.svm.SVC` or a one-vs-rest logistic model."""
        model = self._fitted
        return self._by_blocks(X, model.probabilities, 8 * len(model.classes))

    @with_probabilities
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`, (N, k)."""
        logarithms: Floats = np.log(self.predict_proba(X))
        return logarithms

    def _by_blocks(self, X: Any, function: Callable[[Rows], Any], row_bytes: int) -> NDArray[Any]:
        """Results of a method of the model, of row_bytes each."""
        model = self._fitted
        return self._predicted(X, model.rows, function, model.width, row_bytes)

    def _fit(
        self,
        samples: Samples,
        y: NDArray[Any],
        sample_weights: Floats,
        report: OnProgress,
        journal: str | Place | None = None,
    ) -> Self:
        """Fit to opened samples, with checked parameters and weights."""
        C: Any = 1.0 if is_auto(self.C) else self.C
        bound = LARGEST_C if np.isinf(C) else float(C)  # `SVC` takes an infinite one
        settings = {"C": bound, "tol": float(self.tol), **self._sigmoid_folds}
        problem = make_problem(y, sample_weights, self._class_weights(y), **settings)
        problem = replace(problem, most_steps=self._most_steps)
        kept = None if journal is None else parse_place("journal", journal)
        run = replace(self._run(report), journal=kept, scratch=scratch_in(kept))
        weights = None
        if (learnt := LEARNT.get(self.sphere_map or "")) is not None:
            self._refuse_spherical()
            (weights,) = learnt.learn(samples, (sample_weights > 0)[:, None])
            samples = WeightedSamples(samples, weights)
        few = SamplePairs(samples, sample_weights)
        row_map = self._row_map(few)
        if is_auto(self.C):
            problem = replace(problem, C=few.C(row_map, self._strength))
        if row_map.weights is not None:  # far samples, see `DropIn`
            weights = row_map.weights
            samples, row_map = WeightedSamples(samples, weights), replace(row_map, weights=None)
        model = self._train(problem, samples, row_map, run)
        row_map.warn(samples)
        notes = {**model.notes, **self._notes()}
        self._learned(replace(model, feature_weights=weights, notes=notes))
        complaint = self._complaint(model)
        if complaint is not None:
            _refuse_large(samples, row_map)
            warn(complaint, ConvergenceWarning)
        doubt = self._doubt(model, sample_weights)
        if doubt is None and self.sphere_map is None:  # one that was asked for is meant
            doubt = doubt_of_totals(samples, row_map, y, sample_weights)
        if doubt is not None:
            warn(doubt)
        return self

    def _class_weights(self, y: NDArray[Any]) -> ClassWeight:  # noqa: ARG002
        """Class weights for labels, (N,)."""
        return self.class_weight

    def _complaint(self, model: Model) -> str | None:
        """That a fit did not converge, and what helps; None if it did."""
        return model.certificates.unconverged

    @property
    def _strength(self) -> float:
        """C, if it is "auto", times the variance of the samples."""
        return STRENGTH

    @property
    def _sigmoid_folds(self) -> dict[str, Any]:
        """Arguments of `make_problem` for probabilities."""
        return {}

    def _write(self, path: str | Place) -> None:
        save_model(self._fitted, path)

    @classmethod
    def _read(cls, path: str | Place) -> Self:
        model: Any = load_any(path)
        if not isinstance(model, cls._model_type) or not is_of(model, cls):
            raise read_by_other(model, path)
        parameters = dict(model.notes.get("parameters", {}))
        spec = parameters.pop("kernel", None)
        weights = parameters.pop("class_weight", None)
        return cls.of_model(
            model,
            kernel=kernel_from_spec(spec) if isinstance(spec, dict) else spec,
            class_weight=dict(weights) if isinstance(weights, list) else weights,
            **parameters,
        )

    @classmethod
    def of_model(cls, model: Any, **parameters: Any) -> Self:
        """Make a fitted estimator of a trained model, such as `CvResult.model_`.

        Parameters
        ----------
        model
            A model of this kind of estimator.
        **parameters
            Parameters of the estimator.

        Returns
        -------
        Self
            A fitted estimator, that predicts what the model predicts.
        """
        made = cls(**parameters)
        # Counts of words in texts come without names from scikit-learn's vectorizers too.
        made._keep_features(model.dim, None if model.vectorizer else model.feature_names)
        made._takes_any_order = True
        made._learned(replace(model, notes=dict(model.notes) | made._notes()))
        return made

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The map keeps only the direction of scikit-learn's three blobs: accuracy 0.8, not 0.83.
        tags.classifier_tags.poor_score = tags.input_tags.positive_only
        tags.input_tags.allow_nan = self.sphere_map == SCALED
        return tags

    @property
    def _fitted(self) -> Model:
        check_is_fitted(self)
        return self.model_

    def _check(self, *positive: str) -> None:
        self._check_bound()
        super()._check("tol", *positive)

    def _check_bound(self) -> None:
        check_auto("C", self.C)

    def _check_map(self) -> None:
        if self.sphere_map is not None:
            parse_map_name(self.sphere_map)

    @property
    def _meant(self) -> Any:
        unnamed = self.kernel is None and self.sphere_map == SCALED
        return GaussianKernel.name if unnamed else self.kernel

    def _refuse_spherical(self) -> None:
        given = self._meant
        spherical = given in OF_UNIT_ROWS or getattr(given, "spherical", False)
        if self.sphere_map == SCALED and spherical:
            raise InputError(
                f"sphere_map={SCALED!r} is for kernels of columns: take kernel='gaussian', "
                "'linear' or 'polynomial'"
            )

    def _opened(
        self, samples: Any, y: ArrayLike | str | os.PathLike[str]
    ) -> tuple[Samples, NDArray[Any], Floats]:
        """Open samples of any source, with their labels and weights of 1."""
        self._check()
        opened = open_samples(samples)
        in_file = isinstance(y, str | os.PathLike)
        labels = read_labels(y, opened.shape[0]) if in_file else np.asarray(y)
        if labels.shape != opened.shape[:1]:
            raise InputError(f"labels of shape {labels.shape} for {opened.shape[0]} samples")
        names = None if opened.vectorizer else opened.feature_names
        self._keep_features(opened.shape[1], names)
        self._takes_any_order = False
        return opened, labels, sample_factors(None, len(labels))

    def _learned(self, model: Model) -> None:
        self.model_ = model
        self._keep_map(model.row_map)
        self.classes_, self.C_ = model.classes, float(model.certificates.C)
        self._take(model)

    def _notes(self) -> dict[str, Any]:
        """Parameters of this estimator, for the model file."""
        parameters = self._kept_parameters()
        if isinstance(self.class_weight, Mapping):
            parameters["class_weight"] = list(self.class_weight.items())
        if isinstance(self.kernel, Kernel):
            parameters["kernel"] = self.kernel.to_spec()
        return {"parameters": parameters, "estimator": type(self).__name__}


def _refuse_large(samples: Samples, row_map: RowMap) -> None:
    """Refuse samples whose values are beyond float32, in which solvers take their steps."""
    if row_map.kernel.largest_norm2("float32") < math.inf:
        for first, rows in row_map.anew().blocks(samples):
            row_map.kernel.check_rows(rows, first, samples.source, "float32")
