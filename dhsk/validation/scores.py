"""Scores of held-out samples by scikit-learn's scorers, from decisions computed before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from pickle import PickleError
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils.metaestimators import available_if

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.solvers.platt import class_probabilities, fit_sigmoid
from dhsk.solvers.problems import MultiClass, positives
from dhsk.solvers.votes import class_scores, winners

Scorer: TypeAlias = Callable[[Any, Any, Any], float]
"""Function of an estimator, samples and their labels."""


class Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # its bases are untyped
    """A fitted classifier for scorers, of decisions computed before, (N, columns).

    See `dhsk.solvers.votes.winners` for the decisions. `sigmoids` are Platt's, a row for each
    column of `decisions`; without them the classifier has no probabilities.
    """

    def __init__(
        self,
        decisions: Floats,
        classes: NDArray[Any],
        sigmoids: Floats | None = None,
        multi_class: MultiClass = "ovo",
    ) -> None:
        self.decisions = decisions
        self.classes = classes
        self.sigmoids = sigmoids
        self.multi_class = multi_class
        self.classes_ = classes  # the scorers look here

    @classmethod
    def among(
        cls,
        decisions: Floats,
        present: Indices,
        classes: NDArray[Any],
        multi_class: MultiClass,
        sigmoids: Floats | None = None,
    ) -> "Decided":
        """Leave out the classes that a fit was not trained on: they get no votes."""
        kept: Any = slice(None)  # one-vs-rest two classes have one column
        if multi_class == "ovo":
            own = set(present.tolist())
            pairs = combinations(range(len(classes)), 2)
            kept = [number for number, (a, b) in enumerate(pairs) if a in own and b in own]
        elif decisions.shape[1] > 1:
            kept = present
        decisions = decisions[:, kept]
        sigmoids = None if sigmoids is None else sigmoids[kept]
        if multi_class == "ovr" and decisions.shape[1] == 2:
            decisions = decisions[:, 1:] - decisions[:, :1]
            sigmoids = None if sigmoids is None else sigmoids[1:]
        return cls(decisions, classes[present], sigmoids, multi_class)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> "Decided":  # noqa: ARG002
        """Do nothing: scikit-learn wants every classifier to have this."""
        return self

    def numbers(self) -> Indices:
        """Numbers of the predicted classes, (N,)."""
        return winners(self.decisions, len(self.classes), self.multi_class)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        """Labels."""
        return np.asarray(self.classes[self.numbers()])

    def decision_function(self, X: Any) -> Floats:  # noqa: ARG002
        """Scores of the classes, for two classes (N,)."""
        return class_scores(self.decisions, len(self.classes), self.multi_class)

    @available_if(lambda self: self.sigmoids is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:  # noqa: ARG002
        """Probabilities, (N, k)."""
        assert self.sigmoids is not None  # it is there with them only
        k = len(self.classes)
        return class_probabilities(self.decisions, self.sigmoids, k, self.multi_class)


def _accuracy(decided: Any, X: Any, y: NDArray[Any]) -> float:
    """Part of the labels that are right: scikit-learn's scorer takes 2 ms to say so."""
    return float(np.mean(decided.predict(X) == y))


def _balanced_accuracy(decided: Any, X: Any, y: NDArray[Any]) -> float:
    """Mean over the classes of y of the part that is right.

    Scikit-learn's warns at every fit where y lacks classes: `look_at` says so once.
    """
    _, codes = np.unique(y, return_inverse=True)
    right = np.bincount(codes, decided.predict(X) == y)
    return float(np.mean(right / np.bincount(codes)))


@dataclass(frozen=True)
class Scoring:
    """A scorer."""

    name: str
    """Name in scikit-learn, or of the function."""
    key: str
    """Text that differs for different scorers, also for two of the same name."""
    scorer: Scorer
    probabilities: bool
    """Whether it needs `predict_proba`."""


ACCURACY: Final = Scoring("accuracy", "accuracy", _accuracy, probabilities=False)

_BALANCED: Final = Scoring(
    "balanced_accuracy", "balanced_accuracy", _balanced_accuracy, probabilities=False
)

_OWN: Final = {
    ACCURACY.key: ACCURACY,
    _BALANCED.key: _BALANCED,
}
"""Scorers by key that are not scikit-learn's, but give the same."""


_OF_NUMBERS: Final = (
    "r2",
    "explained_",
    "max_error",
    "neg_mean_",
    "neg_median_",
    "neg_root_",
    "d2_",
)
"""Beginnings of the names of scorers of regressions."""


def make_scorer(scoring: str | Scorer, classes: NDArray[Any]) -> Scoring:
    """Scorer of a name or a function, tried on a small example before any long work.

    `scoring` is a name in scikit-learn, such as "balanced_accuracy" or "neg_log_loss"; a scorer of
    `sklearn.metrics.make_scorer`; or a function of an estimator, samples and labels. The estimator
    has predictions, decisions and probabilities; the samples are empty. An unknown name, or a
    scorer that fails on these classes, raises an InputError.
    """
    if isinstance(scoring, list | tuple | set | dict):
        raise InputError(
            "scoring is one scorer, by which the best candidate is chosen, but "
            f"{len(scoring)} were given: others can be computed from result.out_of_fold()"
        )
    name, key = _names_of(scoring)
    try:
        scorer = get_scorer(scoring)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"scoring {scoring!r} is not known; some that are: accuracy, balanced_accuracy, "
            "f1_macro, roc_auc, and what sklearn.metrics.make_scorer gives"
        ) from error
    known = get_scorer_names()
    k = len(classes)
    codes = np.tile(np.arange(k), 2)
    decisions, sigmoids = ideal_decisions(codes, k), ideal_sigmoids(k)
    for probabilities in (False, True):
        decided = Decided(decisions, classes, sigmoids if probabilities else None)
        try:
            float(scorer(decided, np.zeros((2 * k, 1)), classes[codes]))
            break
        # A scorer may be anybody's function.
        except Exception as error:
            if probabilities:
                words = " ".join(str(error).split()) or type(error).__name__
                if name.startswith(_OF_NUMBERS):
                    words = "it is of predicted numbers, not of classes"
                if "average='binary'" in words:
                    words = f"of more than two, {name}_macro and {name}_weighted are scores"
                if name == "roc_auc" and k > 2:
                    words = "of more than two, roc_auc_ovr and roc_auc_ovo are scores"
                if "pos_label" in words:
                    words = "it needs the classes 0 and 1: name them so"
                    words += f", or take {name}_macro" if f"{name}_macro" in known else ""
                raise InputError(
                    f"scoring {name!r} does not suit an SVM on {k} classes: {words}"
                ) from error
    return _OWN.get(key) or Scoring(name, key, scorer, probabilities)


def _names_of(scoring: Any) -> tuple[str, str]:
    """Name of a scorer for people, and one that differs where the scorers differ."""
    if isinstance(scoring, str) or not callable(scoring):
        return str(scoring), str(scoring)
    function = getattr(scoring, "_score_func", scoring)  # of scikit-learn's make_scorer
    name = getattr(function, "__name__", type(function).__name__)
    from distributed.protocol.pickle import dumps  # plain names need none

    try:
        content = dumps(scoring)
    except (TypeError, ValueError, AttributeError, PickleError):  # it holds a lock, say
        content = repr(scoring).encode()
    return name, f"{name} {blake2b(content, digest_size=12).hexdigest()}"


def sigmoids_of(
    decided: Sequence[tuple[Floats, Indices]], n_classes: int, rule: MultiClass
) -> Floats:
    """Platt's A and B of each column, (columns, 2), fitted to decisions of held-out samples.

    `decided` has decisions, (n, columns), and numbers of the true classes, (n,), of each fold.
    InputError if a pair of classes has no sample.
    """
    decisions = np.concatenate([own for own, _ in decided])
    positive, used = _sides(rule, np.concatenate([y for _, y in decided]), n_classes)
    empty = np.flatnonzero(~used.any(axis=0))
    if len(empty):
        raise InputError(
            "scoring needs probabilities, which are fitted to what other folds hold out, and these "
            "have no sample of a pair of classes: use more samples or other folds"
        )
    return np.array(
        [
            fit_sigmoid(decisions[used[:, j], j].astype(np.float64), positive[used[:, j], j])
            for j in range(decisions.shape[1])
        ]
    )


def _sides(
    rule: MultiClass, y: Indices, n_classes: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Samples of the positive class of each column, and its training samples, (N, columns)."""
    if rule == "ovr":  # of two classes the second; every sample is used
        positive = y[:, None] == positives(n_classes)
        return positive, np.ones_like(positive)
    first, second = np.array(list(combinations(range(n_classes), 2))).T
    positive = y[:, None] == first
    return positive, positive | (y[:, None] == second)


def sigmoids_of_folds(
    held_out: Sequence[tuple[Floats, Indices]], n_classes: int, rule: MultiClass, repeats: int
) -> list[Floats]:
    """Sigmoids for each fold, fitted to the decisions of all other folds of the same repeat.

    `held_out` has decisions and numbers of the true classes of two folds or more a repeat.
    InputError if a pair of classes is in one fold only.
    """
    each = len(held_out) // repeats  # other repeats hold out the same samples
    parts = [held_out[first : first + each] for first in range(0, len(held_out), each)]
    return [
        sigmoids_of([*part[:fold], *part[fold + 1 :]], n_classes, rule)
        for part in parts
        for fold in range(each)
    ]


def ideal_decisions(y: Indices, n_classes: int) -> Floats:
    """Decisions of all pairs, (n, pairs): 1 for the first class, -1 for the second, else 0."""
    pairs = combinations(range(n_classes), 2)
    return np.stack([(y == a).astype(float) - (y == b) for a, b in pairs], axis=1)


def ideal_sigmoids(n_classes: int) -> Floats:
    """Sigmoids of all pairs that go with `ideal_decisions`, (pairs, 2)."""
    return np.tile([-1.0, 0.0], (n_classes * (n_classes - 1) // 2, 1))


def score(
    scoring: Scoring,
    decisions: Floats,
    present: Indices,
    classes: NDArray[Any],
    y: Indices,
    rule: MultiClass = "ovo",
    sigmoids: Floats | None = None,
) -> tuple[float, Indices]:
    """Score of the decisions of one fit, and numbers of the predicted classes, (n,).

    `present` has the numbers of the classes in training, the only ones that are predicted; `y`
    those of the true classes, (n,). InputError if the scorer fails or gives no finite number.
    """
    decided = Decided.among(decisions, present, classes, rule, sigmoids)
    try:
        found = float(scoring.scorer(decided, np.zeros((len(y), 1)), classes[y]))
        reason = f"it gives {found}"
    except Exception as error:  # noqa: BLE001  # as above: anybody's function
        found, reason = np.nan, " ".join(str(error).split()) or type(error).__name__
    if not np.isfinite(found):
        raise InputError(
            f"scoring {scoring.name!r} cannot score {len(y)} held-out samples of "
            f"{len(np.unique(y))} classes: {reason}; use another scorer, or fewer folds"
        )
    return found, present[decided.numbers()]


def decisions_one_vs_rest(
    decisions: Floats, present: Indices, classes: NDArray[Any], rule: MultiClass
) -> NDArray[np.float32]:
    """Decisions as of scikit-learn's `decision_function`: (n,) for two classes, else (n, k).

    Classes that are not among the numbers `present`, on which a fit was not trained, have NaN.
    """
    decided = Decided.among(decisions, present, classes, rule)
    known = decided.decision_function(None).astype(np.float32)
    if len(classes) == 2:
        return np.asarray(known)
    found = np.full((len(decisions), len(classes)), np.nan, np.float32)
    found[:, present] = known if known.ndim == 2 else np.column_stack([-known, known])
    return found
