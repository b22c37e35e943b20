"""Any scorer of scikit-learn in a cross-validation, by name, as an object or as a function."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import dhsk

pytestmark = pytest.mark.filterwarnings("ignore:the values of X have:dhsk.InputWarning")  # of wine


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scorers_of_probabilities_score_platts(rank: int | None, n_classes: int) -> None:
    """Of 'neg_log_loss' a score near that of scikit-learn's own probabilities, and better than
    that of the classes' frequencies.
    """
    X, y = load_wine(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    own = {"time_scale": [0.3], "C": [100.0], "low_rank": rank and dhsk.LowRank(rank)}
    found = dhsk.cross_validate(X, y, scoring="neg_log_loss", **own)
    shares = np.bincount(y) / len(y)
    assert 0.5 * (shares @ np.log(shares)) < found.best_score_ < 0
    if rank is None and n_classes == 2:  # of more, scikit-learn calibrates against the rest
        kernel = dhsk.HeatKernel.at_scale(X.shape[1], 0.3)
        peer = CalibratedClassifierCV(SVC(kernel=kernel, C=100.0), ensemble=False)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        theirs = cross_val_score(
            peer, dhsk.hyperspherical_map(X), y, cv=folds, scoring="neg_log_loss"
        )
        # Two estimates from five folds each; theirs fits its sigmoids to other folds.
        assert abs(found.best_score_ - theirs.mean()) < 2 * theirs.std()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 5])
def test_scorers_may_be_objects_and_functions(rank: int | None, tmp_path: Path) -> None:
    """What `make_scorer` gives, and functions; the checkpoint tells them apart."""
    X, y = load_wine(return_X_y=True)
    own: dict[str, Any] = {
        "time_scale": [0.3], "C": [1.0], "low_rank": rank and dhsk.LowRank(rank), "out": tmp_path
    }  # fmt: skip
    named = dhsk.cross_validate(X, y, scoring="f1_macro", **own)
    made = dhsk.cross_validate(X, y, scoring=make_scorer(f1_score, average="macro"), **own)
    assert [r["score"] for r in made.results_] == [r["score"] for r in named.results_]
    assert (named.data["scoring"], made.data["scoring"]) == ("f1_macro", "f1_score")
    made = dhsk.cross_validate(X, y, scoring=make_scorer(f1_score, average="micro"), **own)
    assert [r["score"] for r in made.results_] != [r["score"] for r in named.results_]
    for value in (0.25, 0.75):
        found = dhsk.cross_validate(X, y, scoring=partial(constant, value=value), **own)
        assert found.best_score_ == value
    found.report(tmp_path / "report.html")


@pytest.mark.slow
def test_scorers_that_fail_are_one_sentence() -> None:
    """In the trial and on a fold: which scorer, and why."""
    X, y = load_wine(return_X_y=True)
    X /= X.max(axis=0)
    with pytest.raises(
        dhsk.InputError, match=r"'f1' does not suit an SVM on 3 classes: .* f1_macro"
    ):
        dhsk.cross_validate(X, y, scoring="f1")
    with pytest.raises(dhsk.InputError, match=r"'r2' does not suit .* predicted numbers"):
        dhsk.cross_validate(X, [f"kind {k}" for k in y], scoring="r2")
    with pytest.raises(dhsk.InputError, match=r"'few' cannot score .* it gives nan"):
        dhsk.cross_validate(X, y, scoring=few)
    folds = [(np.arange(0, 178, 2), np.arange(1, 178, 2))]
    with pytest.raises(dhsk.InputError, match=r"needs probabilities, which .* two folds"):
        dhsk.cross_validate(X, y, scoring="neg_log_loss", cv=folds)
    with pytest.raises(dhsk.InputError, match=r"needs probabilities, which the model for a test"):
        dhsk.cross_validate(X, y, scoring="neg_log_loss", refit=dhsk.Refit(test=(X, y)))


def constant(_: Any, X: Any, y: Any, *, value: float) -> float:
    """Scorer that always says the same."""
    assert len(X) == len(y)
    return value


def few(estimator: Any, X: Any, y: Any) -> float:
    """Scorer that knows the trial's six samples only."""
    return 1.0 if len(y) == 6 else float("nan")
