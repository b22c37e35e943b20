"""Samples and oracles of the tests of cross-validation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

import dhsk
from dhsk.models.fit_plan import plan_fits
from dhsk.solvers.rounds import solve_in_rounds


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


@pytest.fixture(scope="session")
def digits() -> tuple[Any, Any, Any]:
    """Digits with noise on the labels, five classes of different sizes; and their matrix."""
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(1)
    chosen = np.flatnonzero((y < 3) | ((y < 5) & (rng.random(len(y)) < 0.3)))[:260]
    X, y = X[chosen], y[chosen]
    y = np.where(rng.random(260) < 0.1, rng.integers(0, 5, 260), y)
    return X, y, dhsk.HeatKernel.at_scale(64, 0.5)(dhsk.hyperspherical_map(X))


@pytest.fixture
def force_rounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """Make every plan one of parts of 64 samples; the problems that were solved so."""

    def forced() -> list[Any]:
        solved: list[Any] = []

        def in_rounds(*args: Any, **options: Any) -> Any:
            return replace(plan_fits(*args, **options), whole=False, room=64**2 * 8)

        def counting(source: Any, pairs: Any, *args: Any) -> Any:
            solved.extend(pairs)
            return solve_in_rounds(source, pairs, *args)

        monkeypatch.setattr("dhsk.validation.exact.plan_fits", in_rounds)
        monkeypatch.setattr("dhsk.solvers.pairs.solve_in_rounds", counting)
        return solved

    return forced
