"""Cross-validation of low rank: the scores of scikit-learn on the same features, and its edges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

import dhsk
from dhsk.progress import Progress

SCALES = [0.5, 1.0]
PENALTIES = [0.1, 10.0]


def digits(n: int = 500, classes: int = 10) -> tuple[NDArray[Any], NDArray[Any]]:
    """Small images of some digits."""
    X, y = load_digits(return_X_y=True)
    used = np.flatnonzero(y < classes)[:n]
    return X[used], y[used]


def reference(X: NDArray[Any], y: NDArray[Any], k: int, scale: float, model: Any) -> list[float]:
    """Scores of a linear model on the features, fold by fold."""
    # The very landmarks that a seed of 0 gives the cross-validation.
    made = dhsk.cross_validate(
        X, y, time_scale=scale, C=1.0, low_rank=dhsk.LowRank(k), refit=True, cv=2
    ).model_
    assert made is not None
    features = dhsk.NystromFeatures(selection=made.indices, time_scale=scale, dtype="float64")
    Z = features.fit_transform(X)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(Z, y)
    return [model.fit(Z[train], y[train]).score(Z[test], y[test]) for train, test in folds]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_scores_are_those_of_scikit_learn(classes: int, loss: str) -> None:
    """Every fold and C scores what LIBLINEAR scores on the same features."""
    X, y = digits(400, classes)
    result = dhsk.cross_validate(
        X,
        y,
        time_scale=SCALES,
        C=PENALTIES,
        low_rank=dhsk.LowRank(60, loss=loss),
        fit=dhsk.Fitting(tol=1e-4),
    )
    for scale in SCALES:
        for C in PENALTIES:
            binary = LogisticRegression(C=C, solver="liblinear", tol=1e-8, max_iter=10_000)
            model = LinearSVC(C=C, dual=False, tol=1e-8, max_iter=10_000)
            if loss == "logistic":
                if classes > 2:
                    continue  # LIBLINEAR's logistic regression of scikit-learn takes two classes
                model = binary
            expected = reference(X, y, 60, scale, model)
            rows = [row for row in result.results_ if row["time_scale"] == scale and row["C"] == C]
            found = [row["score"] for row in rows]
            # float32 features: a sample on the border may fall on the other side
            np.testing.assert_allclose(found, expected, atol=1.01 / 80)
            assert abs(np.mean(found) - np.mean(expected)) <= 1.01 / 400
            assert all(row["converged"] for row in rows)


def test_ranks_are_tried_side_by_side() -> None:
    """More landmarks leave less of the kernel, and each rank has its rows."""
    X, y = digits()
    result = dhsk.cross_validate(
        X, y, time_scale=0.7, C=[1.0, 10.0], low_rank=dhsk.LowRank([20, 80, 320]), cv=3
    )
    errors = {row["rank"]: row["trace_error"] for row in result.summary_}
    assert list(errors) == [20, 80, 320]
    assert errors[20] > errors[80] > errors[320] >= 0
    assert len(result.results_) == 3 * 2 * 3
    assert {row["label"] for row in result.summary_} == {"heat s=0.7"}


def test_more_landmarks_than_features_leave_less_of_the_kernel() -> None:
    """At the same rank; the model that is fitted last has as many."""
    X, y = digits()
    found = [
        dhsk.cross_validate(
            X,
            y,
            time_scale=0.7,
            C=1.0,
            low_rank=dhsk.LowRank(40, oversampling=times),
            cv=3,
            refit=True,
        )
        for times in (1, 3)
    ]
    one, three = (result.best_["trace_error"] for result in found)
    assert three < 0.9 * one
    assert found[1].model_ is not None
    assert found[1].model_.rows.shape[0] == 120


def scores_of(result: dhsk.CvResult) -> list[float]:
    """Of the only cell, fold by fold."""
    return [row["score"] for row in result.results_]


def test_all_landmarks_are_the_exact_kernel(liblinear_scores: Any) -> None:
    """With as many landmarks as samples, nothing of the kernel is left."""
    X, y = digits(150)
    rank = dhsk.LowRank(1000)
    result = dhsk.cross_validate(X, y, time_scale=0.7, C=10.0, low_rank=rank, cv=3, refit=True)
    assert result.best_["trace_error"] < 1e-5  # float32
    assert result.model_ is not None
    assert len(result.model_.rows) == 150
    # Features of float32: of the 50 samples of a fold one may lie on a border.
    np.testing.assert_allclose(scores_of(result), liblinear_scores(result, X, y, 3), atol=1.01 / 50)


@pytest.mark.slow
def test_a_finished_kernel_is_not_fitted_again(tmp_path: Path) -> None:
    """The same call takes what is finished from the journal, and gives the same table."""
    X, y = digits(200)
    stages: list[str] = []
    options: dict[str, Any] = {
        "time_scale": SCALES, "C": PENALTIES, "low_rank": dhsk.LowRank(40), "cv": 3,
        "out": tmp_path,
        "progress": lambda event: stages.append(event.stage),
    }  # fmt: skip
    first = dhsk.cross_validate(X, y, **options)
    assert "training" in stages
    stages.clear()
    table = (tmp_path / "results.csv").read_text()
    again = dhsk.cross_validate(X, y, **options)
    assert "training" not in stages
    assert first.results_ == again.results_
    assert (tmp_path / "results.csv").read_text() == table


def test_interrupted_it_goes_on_to_the_same_table(tmp_path: Path) -> None:
    """Killed in the second kernel, it keeps the first, and ends at the same scores."""
    X, y = digits(200)
    options: dict[str, Any] = {
        "time_scale": SCALES,
        "C": PENALTIES,
        "low_rank": dhsk.LowRank(40),
        "cv": 3,
    }
    undisturbed = dhsk.cross_validate(X, y, **options)

    def stop(event: Progress) -> None:
        if event.stage == "training" and list(tmp_path.glob("fits/*.npz")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dhsk.cross_validate(X, y, **options, out=tmp_path, progress=stop)
    resumed = dhsk.cross_validate(X, y, **options, out=tmp_path)
    pairs = zip(undisturbed.results_, resumed.results_, strict=True)
    assert all(a | {"seconds": 0} == b | {"seconds": 0} for a, b in pairs)


def test_refit_and_held_out_samples() -> None:
    """The best cell, fitted on all samples, predicts; held-out samples are scored by it."""
    X, y = digits(600)
    result = dhsk.cross_validate(
        X[:400], y[:400], time_scale=0.7, C=[1.0, 10.0], low_rank=dhsk.LowRank(100), cv=3,
        refit=dhsk.Refit(test=(X[400:], y[400:])),
    )  # fmt: skip
    model = result.model_
    assert model is not None
    rows = np.concatenate([block for _, block in model.row_map.blocks(dhsk.open_samples(X[400:]))])
    accuracy = float(np.mean(model.predict(rows) == y[400:]))
    assert result.data["test"]["score"] == pytest.approx(accuracy)


@pytest.mark.slow
def test_time_and_C_are_found_by_themselves() -> None:
    """The search over times and scaled values of C works on features too."""
    X, y = digits(300)
    result = dhsk.cross_validate(X, y, time_scale="auto", low_rank=dhsk.LowRank(60), cv=3)
    assert result.data["search"]
    found = {name: result.best_[name] for name in ("time_scale", "C")}
    again = dhsk.cross_validate(X, y, **found, low_rank=dhsk.LowRank(60), cv=3)
    assert again.best_score_ == result.best_score_


def test_a_fold_without_a_class(liblinear_scores: Any) -> None:
    """A class that a fold was not trained on is not predicted in it."""
    X, y = digits(120, 3)
    third = np.flatnonzero(y == 2)
    others = np.flatnonzero(y != 2)
    folds = [(others, third), (np.concatenate([others[::2], third]), others[1::2])]
    rank = dhsk.LowRank(30)
    result = dhsk.cross_validate(X, y, time_scale=0.7, C=1.0, low_rank=rank, cv=folds, refit=True)
    assert result.results_[0]["score"] == 0.0
    assert scores_of(result) == liblinear_scores(result, X, y, folds).tolist()


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", "roc_auc"])
def test_other_scorers(liblinear_scores: Any, scoring: str) -> None:
    """Scorers of labels and of decisions work, two classes have one column of decisions."""
    X, y = digits(200, 2)
    y[::9] = 1 - y[::9]
    result = dhsk.cross_validate(
        X, y, time_scale=0.7, C=1.0, low_rank=dhsk.LowRank(30), cv=3, scoring=scoring, refit=True
    )
    expected = liblinear_scores(result, X, y, 3, scoring=scoring)
    np.testing.assert_allclose(scores_of(result), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": []}, "rank"),
        ({"rank": [10, -1]}, "rank"),
        ({"rank": 10, "selection": "best"}, "selection must be one of"),
        ({"rank": 10, "oversampling": 0.5}, "oversampling must be at least 1"),
        ({"rank": 10, "loss": "hinge"}, "loss must be 'squared_hinge' or 'logistic', but"),
    ],
)
def test_parameters_are_refused_before_any_work(options: dict[str, Any], words: str) -> None:
    """Errors name the parameter."""
    X, y = digits(60)

    def never(event: Progress) -> None:
        raise AssertionError(event)

    with pytest.raises(dhsk.InputError, match=words):
        dhsk.cross_validate(X, y, time_scale=1.0, progress=never, low_rank=dhsk.LowRank(**options))


def test_a_gram_matrix_has_no_landmarks() -> None:
    """Landmarks are chosen among samples: a matrix is refused."""
    X, y = digits(60)
    G = dhsk.compute_gram(X, dhsk.CosineKernel())
    with pytest.raises(dhsk.InputError, match="give samples, not a matrix"):
        dhsk.cross_validate(G, y, time_scale=1.0, low_rank=dhsk.LowRank(10))


def test_a_row_that_cannot_be_used_is_named() -> None:
    """A NaN far down is found before landmarks are chosen."""
    X, y = digits(400)
    X[333, 5] = np.nan
    with pytest.raises(dhsk.InputError, match="row 333"):
        dhsk.cross_validate(X, y, time_scale=1.0, low_rank=dhsk.LowRank(10))


def test_kernels_with_different_maps_are_compared() -> None:
    """Kernels on the sphere and on the samples themselves stand in one table, as exact ones do."""
    X, y = digits(200)
    kernels = [dhsk.HeatKernel.at_scale(64, 0.7), dhsk.GaussianKernel(25.0), dhsk.LinearKernel()]
    result = dhsk.cross_validate(X, y, kernels=kernels, C=[1.0], low_rank=dhsk.LowRank(40), cv=3)
    assert [row["kernel"] for row in result.summary_] == ["heat", "gaussian", "linear"]
