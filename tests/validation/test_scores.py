"""Scores from decisions, against scikit-learn's scorers on its own classifier."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import get_scorer
from sklearn.svm import SVC

import dhsk
from dhsk.validation.scores import Decided, make_scorer, score

SCORINGS = ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "matthews_corrcoef"]


def fitted(classes: int) -> tuple[Any, Any, Any, Any]:
    """A classifier that errs, its decisions of pairs, and samples that it was not trained on."""
    X, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(y < classes))[:300]
    X, y = X[chosen][:, :25], y[chosen]
    names = np.array([f"class {k}" for k in range(10)])[y]
    model = SVC(kernel="linear", C=3e-4, decision_function_shape="ovo").fit(X[:60], names[:60])
    decisions = model.decision_function(X[60:])
    decisions = -decisions[:, None] if classes == 2 else decisions
    return model, decisions, X[60:], names[60:]


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("scoring", SCORINGS)
def test_scores_are_those_of_scikit_learn(classes: int, scoring: str) -> None:
    """Of labels as names, where the classifier errs."""
    model, decisions, X, names = fitted(classes)
    scorer = make_scorer(scoring, model.classes_)
    y = np.searchsorted(model.classes_, names)
    found, guess = score(scorer, decisions, np.arange(classes), model.classes_, y)
    assert found == get_scorer(scoring)(model, X, names)
    assert 0 < found < 1
    np.testing.assert_array_equal(model.classes_[guess], model.predict(X))


def test_balanced_accuracy_where_classes_are_lacking() -> None:
    """That of scikit-learn, but without its warning at every fit."""
    model, decisions, X, names = fitted(3)
    few = np.flatnonzero(names != "class 1")
    scorer = make_scorer("balanced_accuracy", model.classes_)
    y = np.searchsorted(model.classes_, names[few])
    found, _ = score(scorer, decisions[few], np.arange(3), model.classes_, y)
    with pytest.warns(UserWarning, match="y_pred contains classes not in y_true"):
        assert found == get_scorer("balanced_accuracy")(model, X[few], names[few])
    assert 0 < found < 1


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_scores_of_decisions(scoring: str) -> None:
    """The positive class is the second, as scikit-learn has it."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300, :20], y[:300] % 2
    numbers = np.array([0, 1])
    numeric = SVC(kernel="linear", C=1e-3).fit(X[:70], y[:70])
    ours = -numeric.decision_function(X[70:])[:, None]
    scorer = make_scorer(scoring, numbers)
    found, _ = score(scorer, ours, np.arange(2), numbers, y[70:])
    assert found == get_scorer(scoring)(numeric, X[70:], y[70:])
    assert 0.5 < found < 1


def test_classes_that_were_not_trained_on_get_no_votes() -> None:
    """Their pairs are left out; a sample of them is always wrong."""
    classes = np.array(["a", "b", "c", "d"])
    pairs = list(combinations(range(4), 2))
    rng = np.random.default_rng(0)
    decisions = rng.normal(size=(50, len(pairs)))
    for number, (a, b) in enumerate(pairs):
        if 1 in (a, b):
            decisions[:, number] = 100.0 if a == 1 else -100.0  # would win
    y = np.arange(50) % 4
    present = np.array([0, 2, 3])
    found, guess = score(make_scorer("accuracy", classes), decisions, present, classes, y)
    assert set(guess) == {0, 2, 3}
    assert found == np.mean(guess == y)
    kept = [number for number, pair in enumerate(pairs) if 1 not in pair]
    votes = np.zeros((50, 4))
    for number in kept:
        a, b = pairs[number]
        votes[np.arange(50), np.where(decisions[:, number] > 0, a, b)] += 1
    np.testing.assert_array_equal(guess, votes.argmax(axis=1))


@pytest.mark.parametrize(
    ("scoring", "classes", "message"),
    [
        ("acuracy", [0, 1], "scoring 'acuracy' is not known; some that are: accuracy"),
        (["accuracy", "roc_auc"], [0, 1], "scoring is one scorer, .* but 2 were given"),
        (
            "roc_auc",
            [0, 1, 2],
            "'roc_auc' does not suit .* 3 classes: of more than two, roc_auc_ovr",
        ),
        ("f1", [0, 1, 2], "'f1' does not suit an SVM on 3 classes.*f1_macro"),
        ("f1", ["no", "yes"], "'f1' does not suit an SVM on 2 classes: .* or take f1_macro"),
        ("r2", ["no", "yes"], "'r2' does not suit an SVM on 2 classes"),
    ],
)
def test_scorers_that_do_not_suit_are_refused(scoring: str, classes: Any, message: str) -> None:
    """Before any work, in one line."""
    with pytest.raises(dhsk.InputError, match=message) as caught:
        make_scorer(scoring, np.array(classes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scoring", [*SCORINGS, "roc_auc", "f1", "jaccard"])
def test_scorers_that_suit_are_tried_without_warnings(scoring: str) -> None:
    """The small example on which they are tried is a perfect one."""
    scorer = make_scorer(scoring, np.array([0, 1])).scorer
    decisions = np.array([[1.0], [-1.0]])
    assert scorer(Decided(decisions, np.array([0, 1])), np.zeros((2, 1)), np.array([0, 1])) == 1
