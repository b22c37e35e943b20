"""Cross-validation against scikit-learn on the same Gram matrices, and its bookkeeping."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.svm import SVC

import dhsk
from dhsk.samples import open_samples
from dhsk.validation.start import first_scales

pytestmark = pytest.mark.threads

KERNELS = [dhsk.HeatKernel.at_scale(64, 0.5), dhsk.CosineKernel(), dhsk.GaussianKernel(25.0)]


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """The first 300 digits."""
    X, y = load_digits(return_X_y=True)
    return X[:300], y[:300]


@pytest.fixture(scope="module")
def result(digits: Any) -> dhsk.CvResult:
    """A grid of three kernels and two C over three folds."""
    return dhsk.cross_validate(
        *digits, kernels=KERNELS, C=np.array([0.5, 5.0]), cv=dhsk.StratifiedFolds(3, random_state=7)
    )


def gram(kernel: Any, X: Any) -> Any:
    """The kernel's matrix, directly."""
    return kernel(dhsk.hyperspherical_map(X) if kernel.spherical else X)


@pytest.mark.slow
def test_scores_are_those_of_scikit_learn(result: dhsk.CvResult, digits: Any) -> None:
    """Same folds, same fits, same scores: cell by cell, fold by fold."""
    X, y = digits
    folds = StratifiedKFold(3, shuffle=True, random_state=7)
    expected = {}
    for kernel in KERNELS:
        for C in (0.5, 5.0):
            scores = cross_val_score(SVC(C=C, kernel="precomputed"), gram(kernel, X), y, cv=folds)
            expected |= {(kernel.name, C, fold): s for fold, s in enumerate(scores)}
    found = {(r["kernel"], r["C"], r["fold"]): r["score"] for r in result.results_}
    assert found == expected


def test_rows_carry_the_certificate(result: dhsk.CvResult) -> None:
    """Every fit reports its support vectors, its seconds and its KKT violation."""
    for row in result.results_:
        assert 10 <= row["n_support"] <= 200
        assert 0 < row["kkt"] <= 1.1e-3
        assert row["seconds"] > 0


def test_winner_is_the_highest_mean(result: dhsk.CvResult) -> None:
    """The summary averages over the folds and the best cell leads it."""
    means = {}
    for row in result.results_:
        means.setdefault((row["label"], row["C"]), []).append(row["score"])
    best = max(means, key=lambda cell: np.mean(means[cell]))
    assert (result.best_["label"], result.best_["C"]) == best
    assert result.best_score_ == np.mean(means[best])
    assert result.best_["std"] == np.std(means[best])


def test_confusion_is_that_of_the_winner(result: dhsk.CvResult, digits: Any) -> None:
    """Out-of-fold predictions of the best cell, counted by true class and predicted class."""
    X, y = digits
    kernel = next(k for k in KERNELS if k.name == result.best_["kernel"])
    predicted = cross_val_predict(
        SVC(C=result.best_["C"], kernel="precomputed"),
        gram(kernel, X),
        y,
        cv=StratifiedKFold(3, shuffle=True, random_state=7),
    )
    expected = np.zeros((10, 10), dtype=int)
    np.add.at(expected, (y, predicted), 1)
    assert result.data["confusion"] == expected.tolist()
    assert result.data["class_counts"] == np.bincount(y).tolist()


@pytest.mark.slow
def test_eigenvalues_are_those_of_the_winner(result: dhsk.CvResult, digits: Any) -> None:
    """Leading eigenvalues and trace of the best kernel's matrix."""
    kernel = next(k for k in KERNELS if k.name == result.best_["kernel"])
    K = gram(kernel, digits[0])
    expected = np.linalg.eigvalsh(K)[::-1][:100]
    np.testing.assert_allclose(result.data["eigenvalues"], expected, atol=1e-9 * expected[0])
    assert result.data["trace"] == pytest.approx(np.trace(K), rel=1e-12)


@pytest.mark.slow
def test_time_scales_make_heat_kernels(digits: Any) -> None:
    """A time scale reads in the result as it was asked for, for heat and parametrix alike."""
    X, y = digits
    kernels = [dhsk.ParametrixKernel.at_scale(64, 0.7)]
    found = dhsk.cross_validate(X, y, time_scale=[0.3, 0.7], kernels=kernels, C=1, cv=2)
    labels = [(r["label"], r["time_scale"]) for r in found.summary_]
    assert labels == [("heat s=0.3", 0.3), ("heat s=0.7", 0.7), ("parametrix s=0.7", 0.7)]
    assert found.data["samples"]["sphere_map"] == "hyperspherical"


def test_a_stored_matrix_gives_the_same(tmp_path: Path, digits: Any, result: Any) -> None:
    """From stored cosines, or from samples: the same table."""
    X, y = digits
    G = dhsk.compute_gram(X, dhsk.CosineKernel(), store=tmp_path / "g")
    again = dhsk.cross_validate(
        G, y, kernels=KERNELS[:2], C=[0.5, 5.0], cv=dhsk.StratifiedFolds(3, random_state=7)
    )
    scores = [row["score"] for row in again.results_]
    assert scores == [row["score"] for row in result.results_ if row["kernel"] != "gaussian"]


def test_a_stored_kernel_is_its_own_default(digits: Any) -> None:
    """Without time scales a matrix of heat values is used as it is."""
    X, y = digits
    G = dhsk.compute_gram(X, KERNELS[0])
    found = dhsk.cross_validate(G, y, C=1, cv=2)
    assert [row["label"] for row in found.summary_] == ["heat s=0.5"]


def test_groups_that_are_the_classes_are_refused(digits: Any) -> None:
    """No fold could train on the class that it tests."""
    X, y = digits
    with pytest.raises(dhsk.InputError, match="each class is in one group alone"):
        dhsk.cross_validate(X, y, kernels=["linear"], C=1, groups=y)


def test_groups_stay_together(digits: Any) -> None:
    """Folds of the user's own are taken as they are; a splitter too."""
    X, y = digits
    folds = [(np.arange(200), np.arange(200, 300)), (np.arange(100, 300), np.arange(100))]
    found = dhsk.cross_validate(X, y, time_scale=0.5, C=1, cv=folds)
    K = gram(KERNELS[0], X)
    for row, (train, test) in zip(found.results_, folds, strict=True):
        model = SVC(C=1, kernel="precomputed").fit(K[np.ix_(train, train)], y[train])
        assert row["score"] == model.score(K[np.ix_(test, train)], y[test])
    groups = GroupKFold(2).split(X, y, groups=np.arange(300) // 30)
    assert len(dhsk.cross_validate(X, y, time_scale=0.5, C=1, cv=list(groups)).results_) == 2


def test_string_labels(digits: Any) -> None:
    """Names of classes come back in the result."""
    X, y = digits
    names = np.array(["even", "odd"])[y % 2]
    found = dhsk.cross_validate(X, names, time_scale=0.5, C=1, cv=2)
    assert found.data["classes"] == ["even", "odd"]
    assert np.sum(found.data["confusion"]) == 300


@pytest.mark.slow
def test_result_survives_json(tmp_path: Path, result: dhsk.CvResult) -> None:
    """What is written is read back equal, and the table has a line a row."""
    result.to_json(tmp_path / "r.json")
    assert dhsk.CvResult.from_json(tmp_path / "r.json").data == result.data
    result.to_csv(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["score"]) for row in rows] == [row["score"] for row in result.results_]
    result.report(tmp_path / "r.html")
    assert result.best_["label"].split()[0] in (tmp_path / "r.html").read_text()


def test_unknown_result_schema_is_refused(tmp_path: Path) -> None:
    """A file of a later version is not guessed at."""
    (tmp_path / "r.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(dhsk.InputError, match=r"r\.json: the results have schema 99, but this"):
        dhsk.CvResult.from_json(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [0, 1]}, r"2 .*300"),
        ({"y": [0] * 300}, "all 300 labels are 0, but at least two classes"),
        ({"y": [f"{i // 3}" for i in range(300)]}, "as many samples as there are folds, 5: .* 3"),
        ({"C": [1.0, 0.0]}, "C must be positive and finite, got 0.0"),
        ({"time_scale": [1.0, -1.0]}, r"time_scale must be positive and finite, got -1.0"),
        ({"C": []}, "C must be positive and finite, got none"),
        ({"C": "large"}, "C must be numbers or 'auto', got 'large'"),
        ({"time_scale": "all"}, "time_scale must be numbers or 'auto', got 'all'"),
        ({"cv": 1}, "at least 2 folds, got 1"),
        ({"cv": [(np.arange(10), np.arange(10, 300))], "y": [0] * 20 + [1] * 280},
         "training part of fold 0 has one class only"),
    ],
)  # fmt: skip
def test_bad_input_is_named(digits: Any, options: Any, message: str) -> None:
    """Labels and parameters are refused before any sample is read."""
    X, y = digits
    X = X.copy()
    X[0, 0] = np.nan  # would be noticed if the samples were read
    options = {"y": y} | options
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.cross_validate(X, options.pop("y"), **options)


def test_fits_that_do_not_fit_are_refused(digits: Any) -> None:
    """The refusal has the numbers, and what it asks for is enough."""
    few: dict[str, Any] = {"kernels": KERNELS[0], "C": 1, "cv": 3}
    with pytest.raises(
        dhsk.BudgetError,
        match=r"300 samples need at least [\d.]+ MiB, of which .* MiB are .* but 286\.10 MiB are",
    ) as caught:
        dhsk.cross_validate(*digits, memory="300MB", **few)
    dhsk.cross_validate(*digits, memory=caught.value.needed + 1000, **few)
    with pytest.raises(dhsk.BudgetError, match="need at least"):
        dhsk.cross_validate(*digits, memory=caught.value.needed - 1000, **few)


def test_rectangular_matrices_are_refused(digits: Any) -> None:
    """Folds need the samples with themselves."""
    X, y = digits
    R = dhsk.compute_gram(X, KERNELS[0], X[:50])
    with pytest.raises(dhsk.InputError, match=r"square Gram matrix, got \(300, 50\)"):
        dhsk.cross_validate(R, y)


@pytest.mark.slow
def test_auto_looks_where_the_samples_are(digits: Any) -> None:
    """Coarse, then between neighbours or beyond an end; C in units of each kernel's spread."""
    X, y = digits
    found = dhsk.cross_validate(X, y, time_scale="auto", cv=2)
    stages = found.data["search"]
    assert stages[0]["time_scales"] == first_scales(open_samples(X), None, "center")
    assert 2 <= len(stages) <= 4
    scales = [scale for stage in stages for scale in stage["time_scales"]]
    assert len(set(scales)) == len(scales)
    highest = max(row["mean"] for row in found.summary_)
    assert highest == max(stage["best"]["mean"] for stage in stages)
    decision = found.decision
    assert decision.best.mean == highest
    assert decision.simplest.within
    assert found.best_["mean"] == decision.simplest.cell.mean
    assert found.data["choice"]["rule"] == "simplest"
    assert "ended" in found.data["search_ended"]
    assert {row["C_scaled"] for row in found.results_} == {0.5, 1.5, 5.0, 15.0}
    for scale in (stages[0]["time_scales"][0], stages[0]["time_scales"][-1]):
        K = dhsk.HeatKernel.at_scale(64, scale)(dhsk.hyperspherical_map(X))
        spread = np.diagonal(K).mean() - K.mean()
        own = (row for row in found.summary_ if row["time_scale"] == scale)
        rows = [row["C"] for row in own if row["kernel"] == "heat"]
        np.testing.assert_allclose(rows, np.array([0.5, 1.5, 5, 15]) / spread, rtol=1e-5)


def test_held_out_samples_score_the_refitted_winner(digits: Any) -> None:
    """The model of all training samples, as HeatSVC fits it, on samples that it never saw."""
    X, y = digits
    train, test = np.arange(200), np.arange(200, 300)
    found = dhsk.cross_validate(
        X[train], y[train], time_scale=0.5, C=5.0, cv=3, refit=dhsk.Refit(test=(X[test], y[test]))
    )
    model = dhsk.HeatSVC(C=5.0, time_scale=0.5).fit(X[train], y[train])
    assert found.data["test"]["score"] == model.score(X[test], y[test])
    assert found.data["test"]["n"] == 100
    assert np.sum(found.data["test"]["confusion"]) == 100
    assert found.model_ is not None
    np.testing.assert_array_equal(found.model_.expansion.support, model.support_)
    assert found.data["refit"]["converged"]
    with pytest.raises(dhsk.InputError, match=r"has the label 11, which no training sample has"):
        dhsk.cross_validate(X, y, C=1, cv=2, refit=dhsk.Refit(test=(X[:2], [11, 3])))
    with pytest.raises(dhsk.InputError, match=r"has 63 features, not the 64 of the"):
        dhsk.cross_validate(X, y, C=1, cv=2, refit=dhsk.Refit(test=(X[:2, :63], [1, 3])))
    with pytest.raises(dhsk.InputError, match=r"no samples that a model could keep"):
        dhsk.cross_validate(np.eye(300), y, kernels="precomputed", C=1, cv=2, refit=True)


def test_eigenvalues_are_computed_if_cheap_or_asked_for(
    counts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few samples, or by the user's word; the plan says why there are none."""
    monkeypatch.setattr("dhsk.validation.exact.SMALL", 50)
    y = np.tile([0, 1], 30)

    def plan(n: int, eigenvalues: bool | None) -> tuple[int, str]:
        X = counts(60, 5)[:n]
        found = dhsk.cross_validate(
            X, y[:n], time_scale=1.0, C=1.0, cv=2, out=dhsk.Output(eigenvalues=eigenvalues)
        )
        return len(found.eigenvalues), dict(found.plan).get("eigenvalues", "")

    assert plan(50, None) == (50, "")
    number, why = plan(60, None)
    assert number == 0
    assert "--eigenvalues computes them" in why
    assert plan(60, True) == (60, "")
    assert plan(50, False) == (0, "")
