"""What scikit-learn finds on the features of a cross-validation of low rank."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import dhsk


@pytest.fixture
def liblinear_scores(nystrom_oracle: Any) -> Callable[..., Any]:
    """Scores of LIBLINEAR, fold by fold, on features of the landmarks of a result's model."""

    def scores(
        result: dhsk.CvResult, X: Any, y: Any, cv: Any, loss: str = "squared_hinge",
        scoring: str | None = None,
    ) -> Any:  # fmt: skip
        model, C = result.model_, result.best_["C"]
        assert model is not None
        Z = nystrom_oracle(model.kernel, dhsk.hyperspherical_map(X), model.rows)
        linear = LinearSVC(C=C, dual=False, tol=1e-8, max_iter=10_000)
        if loss == "logistic":
            linear = OneVsRestClassifier(LogisticRegression(C=C, solver="liblinear", tol=1e-8))
        folds = StratifiedKFold(cv, shuffle=True, random_state=0) if isinstance(cv, int) else cv
        return cross_val_score(linear, Z, y, cv=folds, scoring=scoring)

    return scores
