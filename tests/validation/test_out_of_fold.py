"""Out-of-fold predictions and decisions against scikit-learn's, and the best estimator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

import dhsk
from dhsk.validation import cells

KERNELS = [dhsk.HeatKernel.at_scale(64, 0.4), dhsk.CosineKernel()]


def digits(classes: int) -> tuple[Any, Any]:
    """240 digits of some classes, with a tenth of the labels wrong."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < classes)[:240]
    rng = np.random.default_rng(0)
    return X[chosen], np.where(rng.random(240) < 0.1, rng.integers(0, classes, 240), y[chosen])


def oracle(X: Any, y: Any, kernel: Any, C: float, seed: int, method: str) -> Any:
    """Held-out predictions or decisions of scikit-learn's classifier on the same matrix."""
    folds = StratifiedKFold(4, shuffle=True, random_state=seed)
    K = kernel(dhsk.hyperspherical_map(X))
    return cross_val_predict(
        SVC(C=C, kernel="precomputed", tol=1e-6), K, y, cv=folds, method=method
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_and_decisions_are_those_of_scikit_learn(classes: int) -> None:
    """Of the best cell and of any other, sample by sample, in both repeats."""
    X, y = digits(classes)
    result = dhsk.cross_validate(
        X,
        y,
        kernels=KERNELS,
        C=[0.3, 3],
        cv=dhsk.StratifiedFolds(4, n_repeats=2),
        fit=dhsk.Fitting(tol=1e-6),
    )
    assert len(result.summary_) == 4
    for cell in result.summary_:
        found = result.out_of_fold(cell)
        kernel = next(k for k in KERNELS if k.name == cell["kernel"])
        for seed in (0, 1):
            own = found.repeat == seed
            np.testing.assert_array_equal(found.samples[own], np.arange(240))
            np.testing.assert_array_equal(found.true[own], y)
            expected = oracle(X, y, kernel, cell["C"], seed, "predict")
            np.testing.assert_array_equal(found.predicted[own], expected)
            decisions = oracle(X, y, kernel, cell["C"], seed, "decision_function")
            assert found.decisions is not None
            np.testing.assert_allclose(found.decisions[own], decisions, atol=1e-4)


def test_errors_and_scores_follow(tmp_path: Path) -> None:
    """The best cell by default; its errors are those of its score, its ROC that of the scorer."""
    X, y = digits(2)
    result = dhsk.cross_validate(
        X, y, kernels=KERNELS, C=[0.3, 3], cv=4, scoring="roc_auc", out=tmp_path / "run"
    )
    found = result.out_of_fold()
    areas = [
        roc_auc_score(found.true[found.fold == f], found.decisions[found.fold == f])
        for f in range(4)
    ]
    assert np.mean(areas) == pytest.approx(result.best_score_, abs=1e-12)
    wrong = sum(map(sum, result.confusion)) - np.trace(np.array(result.confusion))
    assert found.wrong.sum() == wrong == len(found.errors)
    assert (y[found.errors] != found.predicted[found.errors]).all()
    # What is read from the checkpoint of the same call is the same to the last bit.
    again = dhsk.cross_validate(
        X, y, kernels=KERNELS, C=[0.3, 3], cv=4, scoring="roc_auc", out=tmp_path / "run"
    )
    for cell in result.summary_:
        one, other = result.out_of_fold(cell), again.out_of_fold(cell)
        np.testing.assert_array_equal(one.decisions, other.decisions)
        np.testing.assert_array_equal(one.predicted, other.predicted)


@pytest.mark.parametrize("low_rank", [None, dhsk.LowRank([10, 40])])
def test_best_by_kernel_names_a_cell(low_rank: Any) -> None:
    """Its rows are taken as cells: two kernels can be compared sample by sample."""
    X, y = digits(2)
    result = dhsk.cross_validate(X, y, kernels=KERNELS, C=[0.3, 3], cv=4, low_rank=low_rank)
    for row in result.best_by_kernel_:
        found = result.out_of_fold(row)
        scores = [np.mean(~found.wrong[found.fold == f]) for f in range(4)]
        assert np.mean(scores) == pytest.approx(row["mean"], abs=1e-12)


@pytest.mark.parametrize("low_rank", [None, dhsk.LowRank(30)])
def test_only_the_best_decisions_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, low_rank: Any
) -> None:
    """Above the limit one cell a kernel has decisions, also after a restart; all predictions."""
    X, y = digits(3)
    monkeypatch.setattr(cells, "MOST_BYTES", 10)
    options: dict[str, Any] = {"kernels": KERNELS, "C": [1e-3, 3], "cv": 4, "low_rank": low_rank}
    for _ in range(2):
        result = dhsk.cross_validate(X, y, **options, out=tmp_path / "run")
        for cell in result.summary_:
            kept = result.out_of_fold(cell)
            assert (kept.decisions is None) == (cell["C"] < 1)
            assert len(kept.predicted) == 240


def test_classes_that_a_fold_lacks_have_no_decisions() -> None:
    """NaN where a fold was trained without the class."""
    X, y = digits(3)
    y = np.where(y == 2, 1, y)
    y[:4] = 2
    train, test = np.arange(4, 240), np.arange(4)
    folds = [(train, test), (np.arange(120), np.arange(120, 240))]
    found = dhsk.cross_validate(X, y, kernels=KERNELS[0], C=1, cv=folds).out_of_fold()
    assert np.isnan(found.decisions[found.fold == 0, 2]).all()
    assert np.isfinite(found.decisions[found.fold == 0, :2]).all()
    assert np.isfinite(found.decisions[found.fold == 1]).all()
    first = found.decisions[found.fold == 0]
    np.testing.assert_array_equal(first[:, 0], -first[:, 1])
    np.testing.assert_array_equal(found.samples, np.r_[np.arange(4), np.arange(120, 240)])


def test_results_of_a_file_have_none(tmp_path: Path) -> None:
    """A results.json has no predictions, and an unknown cell is named."""
    X, y = digits(2)
    result = dhsk.cross_validate(X, y, kernels=KERNELS[0], C=1, cv=4)
    with pytest.raises(dhsk.InputError, match="no candidate of the grid is 'cosine' with C = 3"):
        result.out_of_fold({"label": "cosine", "C": 3.0})
    result.to_json(tmp_path / "results.json")
    with pytest.raises(dhsk.InputError, match="read from a file has no predictions"):
        dhsk.CvResult.from_json(tmp_path / "results.json").out_of_fold()


@pytest.mark.parametrize("low_rank", [None, dhsk.LowRank(30, oversampling=2)])
def test_best_estimator_is_the_model(low_rank: Any, tmp_path: Path) -> None:
    """A fitted estimator of scikit-learn's contract, with the parameters of the best cell."""
    X, y = digits(3)
    result = dhsk.cross_validate(
        X, y, time_scale=[0.3, 0.5], C=[1, 5], cv=4, refit=True, low_rank=low_rank,
        class_weight="balanced", fit=dhsk.Fitting(tol=1e-5),
    )  # fmt: skip
    best = result.best_estimator_
    assert isinstance(best, dhsk.HeatSVC if low_rank is None else dhsk.NystromSVC)
    assert (best.C, best.time_scale) == (result.best_["C"], result.best_["time_scale"])
    assert (best.class_weight, best.tol) == ("balanced", 1e-5)
    assert best.n_features_in_ == 64
    best.save(tmp_path / "m.dhsk")
    read = type(best).load(tmp_path / "m.dhsk")
    elsewhere = {"memory", "client", "journal", "store"}  # of this machine
    given = {k: v for k, v in best.get_params().items() if k not in elsewhere}
    assert {k: v for k, v in read.get_params().items() if k not in elsewhere} == given
    np.testing.assert_array_equal(read.decision_function(X), best.decision_function(X))
    refitted = clone(best).fit(X, y)
    share = np.mean(best.predict(X) == refitted.predict(X))
    assert share == 1.0 if low_rank is None else share > 0.95
    np.testing.assert_allclose(
        best.decision_function(X),
        refitted.decision_function(X),
        atol=1e-3 if low_rank is None else 1,
    )


def test_best_estimator_needs_refit() -> None:
    """Without it the attribute is absent, as scikit-learn has it."""
    X, y = digits(2)
    result = dhsk.cross_validate(X, y, kernels=KERNELS[0], C=1, cv=4)
    with pytest.raises(AttributeError, match="refit=True"):
        _ = result.best_estimator_
    assert not hasattr(result, "best_estimator_")
    with pytest.raises(AttributeError, match="taken are in best_, a dict"):
        _ = result.best_params_
    with pytest.raises(AttributeError, match=r"'sumary_'$"):
        _ = result.sumary_
