"""Scores of held-out samples by scikit-learn's scorers, from decisions that were made elsewhere."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.svm.votes import one_vs_rest, vote

Scorer: TypeAlias = Callable[[Any, Any, Any], float]
"""Of an estimator, samples and their labels."""


class Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # its bases are untyped
    """A classifier whose decisions are there: what a scorer asks of an estimator, and no more.

    Parameters
    ----------
    decisions
        Of the samples, (N, n_pairs), see `votes.vote`.
    classes
        Labels, (k,).
    """

    def __init__(self, decisions: Floats, classes: NDArray[Any]) -> None:
        self.decisions = decisions
        self.classes = classes
        self.classes_ = classes  # the scorers look here

    @classmethod
    def among(cls, decisions: Floats, present: Indices, classes: NDArray[Any]) -> "Decided":
        """Leave out the classes that a fit was not trained on: they get no votes."""
        own = set(present.tolist())
        pairs = combinations(range(len(classes)), 2)
        kept = [number for number, (a, b) in enumerate(pairs) if a in own and b in own]
        return cls(decisions[:, kept], classes[present])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> "Decided":  # noqa: ARG002
        """Do nothing: scikit-learn wants every classifier to have this."""
        return self

    def numbers(self) -> Indices:
        """Numbers of the predicted classes, by votes, (N,)."""
        return vote(self.decisions, len(self.classes))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: ARG002
        """Labels."""
        return np.asarray(self.classes[self.numbers()])

    def decision_function(self, X: Any) -> Floats:  # noqa: ARG002
        """Scores one-vs-rest."""
        return one_vs_rest(self.decisions, len(self.classes))


class DecidedOneVsRest(Decided):
    """The same of decisions of each class against the rest, (N, k), or (N, 1) for two classes.

    One column is above 0 for the second class.
    """

    @classmethod
    def among(cls, decisions: Floats, present: Indices, classes: NDArray[Any]) -> "Decided":
        """Leave out the classes that a fit was not trained on."""
        if decisions.shape[1] > 1:
            decisions = decisions[:, present]
        if decisions.shape[1] == 2:
            decisions = decisions[:, 1:] - decisions[:, :1]
        return cls(decisions, classes[present])

    def numbers(self) -> Indices:
        """Class of the greatest decision, of equals the first, as `LinearSVC` has it."""
        if self.decisions.shape[1] == 1:
            return (self.decisions[:, 0] > 0).astype(np.intp)
        best: Indices = self.decisions.argmax(axis=1)
        return best

    def decision_function(self, X: Any) -> Floats:  # noqa: ARG002
        """Decisions, for two classes (N,)."""
        return self.decisions[:, 0] if self.decisions.shape[1] == 1 else self.decisions


def _accuracy(decided: Any, X: Any, y: NDArray[Any]) -> float:
    """Part of the labels that are right: scikit-learn's scorer takes 2 ms to say so."""
    return float(np.mean(decided.predict(X) == y))


def make_scorer(scoring: str, classes: NDArray[Any]) -> Scorer:
    """Scorer by its name, tried on a small example before any long work.

    Parameters
    ----------
    scoring
        As scikit-learn names it: "accuracy", "balanced_accuracy", "roc_auc", "f1_macro".
    classes
        Labels, (k,).

    Returns
    -------
    Scorer
        The scorer.

    Raises
    ------
    InputError
        There is none of that name, or it does not suit these classes or this classifier.
    """
    try:
        scorer = get_scorer(scoring)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"scoring {scoring!r} is not known; some that are: accuracy, balanced_accuracy, "
            "f1_macro, roc_auc"
        ) from error
    k = len(classes)
    codes = np.tile(np.arange(k), 2)
    decisions = ideal_decisions(codes, k)
    try:
        scorer(Decided(decisions, classes), np.zeros((2 * k, 1)), classes[codes])
    except (ValueError, AttributeError, TypeError) as error:
        words = " ".join(str(error).split())
        raise InputError(
            f"scoring {scoring!r} does not suit an SVM on {k} classes: {words}"
        ) from error
    found: Scorer = _accuracy if scoring == "accuracy" else scorer
    return found


def ideal_decisions(y: Indices, n_classes: int) -> Floats:
    """Decisions of all pairs that are right wherever the class of a sample is one of the two.

    Parameters
    ----------
    y
        Numbers of the classes, (n,).
    n_classes
        How many there are.

    Returns
    -------
    Floats
        1 for the first class of a pair, -1 for the second, else 0, (n, pairs).
    """
    pairs = combinations(range(n_classes), 2)
    return np.stack([(y == a).astype(float) - (y == b) for a, b in pairs], axis=1)


def score(
    scorer: Scorer,
    decisions: Floats,
    present: Indices,
    classes: NDArray[Any],
    y: Indices,
    rule: type[Decided] = Decided,
) -> tuple[float, Indices]:
    """Score the decisions of one fit.

    Parameters
    ----------
    scorer
        From `make_scorer`.
    decisions
        Of the held-out samples, as `rule` takes them.
    present
        Numbers of the classes that the fit was trained on: the others are not predicted.
    classes
        All labels, (k,).
    y
        Numbers of the true classes, (n,).
    rule
        How decisions become classes.

    Returns
    -------
    float
        The score.
    Indices
        Numbers of the predicted classes, (n,).
    """
    decided = rule.among(decisions, present, classes)
    found = float(scorer(decided, np.zeros((len(y), 1)), classes[y]))
    return found, present[decided.numbers()]
