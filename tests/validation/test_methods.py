"""Which common methods samples get."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

import dhsk
from dhsk.samples.looks import EMBEDDED
from dhsk.validation import methods
from dhsk.validation.methods import methods_for

LINEAR = "LogisticRegression on scaled columns"
DIRECTIONS = "LogisticRegression on rows of length 1", "SVC(rbf) on rows of length 1"
NAMES = {one.__name__: one for one in (make_pipeline, Normalizer, LogisticRegression, SVC)}


def test_embeddings_get_svms_on_their_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds where trees of 300 columns and 20 classes take minutes, and score more."""
    monkeypatch.setattr(methods, "OF_TABLES", methods.OF_TABLES[:1])
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(3, 60))[y] + 2 * rng.normal(size=(90, 60))
    X *= rng.exponential(size=(90, 1))  # lengths say nothing
    asked: dict[str, Any] = {"kernels": "cosine", "C": 1.0, "sphere_map": "projective", "cv": 3}
    found = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), **asked).baselines
    assert {one.method for one in found.tried} == {LINEAR, *DIRECTIONS}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for one in (one for one in found.tried if one.method in DIRECTIONS):
        scores = cross_val_score(eval(one.code, dict(NAMES)), X, y, cv=folds)
        np.testing.assert_array_equal(one.scores, scores)
    assert found.best is not None
    assert found.best.method in DIRECTIONS
    assert methods_for(X[:, : EMBEDDED - 1]) == methods.OF_TABLES


def test_rows_of_tfidf_are_not_weighed_again() -> None:
    """`LinearSVC` takes them as they are; proportions of norm 1 by their sum are weighed."""
    counts = csr_array(np.random.default_rng(0).poisson(0.5, (60, 30)).astype(float))
    codes = [one.code for one in methods_for(csr_array(TfidfTransformer().fit_transform(counts)))]
    assert codes[0] == "LinearSVC(C={C}, random_state=0)"
    assert not [one for one in codes if "Tfidf" in one]
    assert methods_for(csr_array(Normalizer("l1").fit_transform(counts))) == methods.OF_PROPORTIONS
    assert methods_for(counts) == methods.OF_COUNTS


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_tables_get_logistic_regression(load: Callable[..., Any]) -> None:
    """On breast cancer and wine it has a higher mean than an SVM on the same columns."""
    X, y = load(return_X_y=True)
    linear, svm, *_ = methods_for(X)
    assert linear.name == LINEAR
    assert svm.name == "SVC(rbf) on scaled columns"
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    best = [
        max(cross_val_score(one.made(C), X, y, cv=folds).mean() for C in one.C)
        for one in (linear, svm)
    ]
    assert best[0] > best[1] > 0.97
