"""Cross-validation with weights, groups, scorers, matrices of one's own, and interruptions."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import (
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.svm import SVC

import dhsk

KERNEL = dhsk.HeatKernel.at_scale(64, 0.5)

TOL = 1e-5

VALUES_OF_C = [0.02, 1.0, 50.0]


def scores(table: list[dict[str, Any]], C: float) -> list[float]:
    """Of the folds, in their order."""
    return [row["score"] for row in table if row["C"] == C]


def expected(K: Any, y: Any, C: float, cv: Any, **options: Any) -> list[float]:
    """By scikit-learn; of weights, each is passed to the fit."""
    model = SVC(C=C, kernel="precomputed", tol=TOL, class_weight=options.pop("class_weight", None))
    weights = options.pop("sample_weight", None)
    params = None if weights is None else {"sample_weight": weights}
    found = cross_validate(model, K, y, cv=cv, params=params, **options)
    return list(found["test_score"])


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("memory", ["ample", "parts"])
@pytest.mark.parametrize(
    ("weighting", "scoring"),
    [
        ("none", "accuracy"),
        ("balanced", "balanced_accuracy"),
        ("dict", "f1_macro"),
        ("by sample", "accuracy"),
        ("both", "f1_macro"),
    ],
)
def test_scores_are_those_of_scikit_learn(
    digits: Any, force_rounds: Any, weighting: str, scoring: str, memory: str
) -> None:
    """On the same folds, with every weighting and scorer, whole and in rounds."""
    _, y, K = digits
    options: dict[str, Any] = {}
    if weighting in ("balanced", "both"):
        options["class_weight"] = "balanced"
    if weighting == "dict":
        options["class_weight"] = {0: 1.0, 1: 0.5, 2: 3.0, 3: 10.0, 4: 0.1}
    if weighting in ("by sample", "both"):
        options["sample_weight"] = np.random.default_rng(0).uniform(0.3, 3, len(y))
    in_parts = force_rounds() if memory == "parts" else [0]
    found = dhsk.cross_validate(
        K,
        y,
        kernels="precomputed",
        C=VALUES_OF_C,
        cv=dhsk.StratifiedFolds(3, random_state=4),
        scoring=scoring,
        fit=dhsk.Fitting(tol=TOL),
        **options,
    )
    cv = StratifiedKFold(3, shuffle=True, random_state=4)
    assert all(row["converged"] and row["kkt"] <= TOL for row in found.results_)
    # All coefficients are at their bounds there, and rounding leaves LIBSVM at an end of the
    # intercept's interval: 0.2 where its middle has 0.8. tests/solvers/test_rational.py judges.
    peers = VALUES_OF_C[1:] if weighting == "balanced" else VALUES_OF_C
    for C in peers:
        by_peer = expected(K, y, C, cv, scoring=scoring, **options)
        np.testing.assert_allclose(scores(found.results_, C), by_peer, rtol=1e-14)
    assert found.data["scoring"] == scoring
    assert in_parts


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision", "f1"])
def test_scorers_of_two_classes(digits: Any, scoring: str) -> None:
    """Decisions have the sign that scikit-learn expects."""
    X, y, K = digits
    y = (y > 1).astype(int)
    found = dhsk.cross_validate(
        X, y, kernels=[KERNEL], C=VALUES_OF_C, cv=3, scoring=scoring, fit=dhsk.Fitting(tol=TOL)
    )
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    for C in VALUES_OF_C:
        by_peer = expected(K, y, C, cv, scoring=scoring)
        # Two decisions closer than the tolerance may change places: one pair of some thousand.
        np.testing.assert_allclose(scores(found.results_, C), by_peer, atol=1e-3)


def test_groups_are_not_divided(digits: Any) -> None:
    """Folds of an integer with groups, and of a splitter, are scikit-learn's."""
    _, y, K = digits
    groups = np.random.default_rng(2).integers(0, 12, len(y))
    for cv, peer in (
        (
            dhsk.StratifiedFolds(3, random_state=5),
            StratifiedGroupKFold(3, shuffle=True, random_state=5),
        ),
        (LeaveOneGroupOut(), LeaveOneGroupOut()),
    ):
        found = dhsk.cross_validate(
            K,
            y,
            kernels="precomputed",
            C=1.0,
            groups=groups,
            cv=cv,
            fit=dhsk.Fitting(tol=TOL),
        )
        assert scores(found.results_, 1.0) == expected(K, y, 1.0, peer, groups=groups)
        assert type(peer).__name__ in found.data["folds"]["splitter"]


def test_number_of_folds_may_be_a_numpy_integer(digits: Any) -> None:
    """It is shuffled by the same seed as any other."""
    _, y, K = digits
    one, two = (
        dhsk.cross_validate(K, y, kernels="precomputed", C=1.0, cv=cv) for cv in (3, np.int64(3))
    )
    assert scores(one.results_, 1.0) == scores(two.results_, 1.0)
    assert one.data["folds"] == two.data["folds"]


def test_samples_named_twice_count_twice(digits: Any) -> None:
    """A bootstrap fold is fitted as scikit-learn fits it."""
    _, y, K = digits
    rng = np.random.default_rng(3)
    folds = [(rng.integers(0, 200, 150), np.arange(200, 260)) for _ in range(3)]
    found = dhsk.cross_validate(
        K, y, kernels="precomputed", C=VALUES_OF_C, cv=folds, fit=dhsk.Fitting(tol=TOL)
    )
    for C in VALUES_OF_C:
        assert scores(found.results_, C) == expected(K, y, C, folds)


def test_class_that_a_fold_was_not_trained_on(digits: Any) -> None:
    """Its samples are wrong in that fold, and its pairs take no votes."""
    _, y, K = digits
    y = np.where(y == 4, 3, y)
    y[10] = 4
    rest = np.setdiff1d(np.arange(260), np.arange(40))
    folds = [(rest, np.arange(40)), (np.arange(40), rest)]
    found = dhsk.cross_validate(
        K, y, kernels="precomputed", C=VALUES_OF_C, cv=folds, fit=dhsk.Fitting(tol=TOL)
    )
    for C in VALUES_OF_C:
        assert scores(found.results_, C) == expected(K, y, C, folds)
    assert found.data["confusion"][4][4] == 0
    assert sum(found.data["confusion"][4]) == 1


def test_duplicates_with_opposite_labels() -> None:
    """No machine can tell them apart: scores are those of scikit-learn, and fits end."""
    X, _ = load_digits(return_X_y=True)
    K = np.tile(KERNEL(dhsk.hyperspherical_map(X[:60])), (2, 2))
    y = np.repeat([0, 1], 60)
    found = dhsk.cross_validate(
        K, y, kernels="precomputed", C=VALUES_OF_C, cv=3, fit=dhsk.Fitting(tol=TOL)
    )
    assert all(row["converged"] for row in found.results_)
    assert all(0 <= row["score"] <= 0.6 for row in found.results_)


def test_indefinite_matrix(digits: Any) -> None:
    """It is solved as LIBSVM solves it, to one of its stationary points: the same one here."""
    _, y, K = digits
    K = np.tanh(3 * K - 1)
    assert np.linalg.eigvalsh(K)[0] < -0.1
    found = dhsk.cross_validate(K, y, kernels="precomputed", C=0.1, cv=3)
    by_peer = expected(K, y, 0.1, StratifiedKFold(3, shuffle=True, random_state=0))
    assert scores(found.results_, 0.1) == by_peer
    assert sum(found.data["eigenvalues"]) > found.data["trace"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_of_ones_own_is_that_of_the_kernel(digits: Any, dtype: Any) -> None:
    """Given as an array, in either type, mapped into memory or not."""
    X, y, K = digits
    known = dhsk.cross_validate(
        X, y, kernels=[KERNEL], C=VALUES_OF_C, cv=3, fit=dhsk.Fitting(tol=TOL)
    )
    own = dhsk.cross_validate(
        K.astype(dtype), y, kernels="precomputed", C=VALUES_OF_C, cv=3, fit=dhsk.Fitting(tol=TOL)
    )
    for C in VALUES_OF_C:
        assert scores(own.results_, C) == scores(known.results_, C)
    assert own.best_["kernel"] == "precomputed"
    assert own.data["samples"]["sphere_map"] == "precomputed"


def bad_matrix(kind: str) -> Any:
    """One that cannot be used."""
    K = np.eye(40) + 0.5
    if kind == "nan":
        K[7, 3] = K[3, 7] = np.nan
    elif kind == "inf":
        K[39, 39] = np.inf
    elif kind == "asymmetric":
        K[20, 4] += 0.01
    return K[:, :30] if kind == "not square" else K[0] if kind == "vector" else K


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("nan", "has the value nan at row 3, column 7"),
        ("inf", "has the value inf at row 39, column 39"),
        ("asymmetric", "not symmetric: row (4, column 20|20, column 4) differs .* by 0.01"),
        ("not square", r"square, got \(40, 30\)"),
        ("vector", r"square, got \(40,\)"),
    ],
)
def test_matrices_that_cannot_be_used(kind: str, message: str) -> None:
    """The place is named."""
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.cross_validate(bad_matrix(kind), np.arange(40) % 2, kernels="precomputed")


@pytest.mark.parametrize("kind", [bool, np.int8, np.float64])
@pytest.mark.parametrize("rank", [None, 20])
def test_models_predict_labels_of_the_type_that_was_given(
    digits: Any, kind: Any, rank: int | None
) -> None:
    """As scikit-learn's do: `X[model.predict(X)]` selects by booleans, and by numbers otherwise."""
    X, y, _ = digits
    low_rank = None if rank is None else dhsk.LowRank(rank)
    found = dhsk.cross_validate(
        X, (y > 2).astype(kind), kernels="cosine", C=1, cv=2, low_rank=low_rank, refit=True
    )
    assert found.best_estimator_ is not None
    assert found.best_estimator_.classes_.dtype == kind
    assert found.best_estimator_.predict(X).dtype == kind


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "acuracy"}, "'acuracy' is not known"),
        ({"scoring": "roc_auc"}, "'roc_auc' does not suit an SVM on 5 classes"),
        ({"C": 0}, "C must be positive and finite, got 0.0"),
        ({"C": [1.0, -2.0]}, "C must be positive and finite, got -2.0"),
        ({"C": np.nan}, "C must be positive and finite, got nan"),
        ({"fit": dhsk.Fitting(tol=0)}, "tol must be positive and finite, got 0.0"),
        ({"class_weight": {0: -1.0, 1: 1, 2: 1, 3: 1, 4: 1}}, "is -1.0 for class 0"),
        ({"class_weight": {0: 1, 1: np.inf, 2: 1, 3: 1, 4: 1}}, "is inf for class 1"),
        ({"class_weight": {0: 0, 1: 1, 2: 1, 3: 1, 4: 1}}, "is 0.0 for class 0"),
        ({"class_weight": "balance"}, "class_weight cannot be used"),
        ({"sample_weight": np.ones(3)}, r"shape \(3,\), but it must be \(260,\)"),
        ({"sample_weight": np.r_[np.ones(259), -1]}, "is -1.0 for sample 259"),
        ({"sample_weight": np.r_[np.nan, np.ones(259)]}, "is nan for sample 0"),
        ({"kernels": []}, "kernels is empty"),
        ({"groups": np.zeros(3)}, r"shape \(3,\) for 260 samples"),
        ({"groups": np.zeros(260)}, "all samples are of one group"),
        ({"cv": [(np.arange(100), np.arange(99, 200))]}, "1 of the same samples, first 99"),
        ({"cv": [(np.arange(100), [])]}, "fold 0 .*(test samples|name samples)"),
        ({"cv": [(np.arange(100), [260])]}, "fold 0 does not name samples 0 to 259"),
        ({"cv": []}, "no folds"),
    ],
)
def test_parameters_that_cannot_be_used(digits: Any, options: Any, message: str) -> None:
    """They are refused before any sample is read: the first would be noticed."""
    X, y, _ = digits
    X = X.copy()
    X[0, 0] = np.nan
    with pytest.raises(dhsk.InputError, match=message) as caught:
        dhsk.cross_validate(X, y, **options)
    assert "\n" not in str(caught.value)
