"""Repeated cross-validation: the same as separate runs with other seeds, from shared kernels."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

import dhsk
from dhsk.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore:the values of X have:dhsk.InputWarning")  # of wine

KERNELS = [dhsk.HeatKernel.at_scale(13, 0.5), dhsk.HeatKernel.at_scale(13, 1), dhsk.CosineKernel()]
GRID: dict[str, Any] = {"kernels": KERNELS, "C": [1, 30]}


def folds(repeats: int = 1, seed: int = 0) -> dhsk.StratifiedFolds:
    """Three folds."""
    return dhsk.StratifiedFolds(3, repeats, random_state=seed)


@pytest.fixture(scope="module")
def wine() -> tuple[Any, Any]:
    """178 samples of three classes."""
    X, y = load_wine(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def repeated(wine: Any) -> dhsk.CvResult:
    """Four repeats."""
    return dhsk.cross_validate(*wine, **GRID, cv=folds(4, 5))


@pytest.fixture(scope="module")
def runs(wine: Any) -> list[dhsk.CvResult]:
    """The same as four runs."""
    return [dhsk.cross_validate(*wine, **GRID, cv=folds(seed=seed)) for seed in (5, 6, 7, 8)]


def test_folds_are_those_of_separate_runs(repeated: Any, runs: Any) -> None:
    """Every fold of every repeat has the score of the run with its seed."""
    expected = {
        (row["label"], row["C"], 3 * number + row["fold"]): row["score"]
        for number, run in enumerate(runs)
        for row in run.results_
    }
    assert {(r["label"], r["C"], r["fold"]): r["score"] for r in repeated.results_} == expected
    assert repeated.folds.n == 12
    assert repeated.repeats == 4


def test_repeats__have_the_means_of_the_runs(repeated: Any, runs: Any) -> None:
    """Mean and standard deviation over the folds of a repeat."""
    expected = {
        (cell["label"], cell["C"], number): (cell["mean"], cell["std"])
        for number, run in enumerate(runs)
        for cell in run.summary_
    }
    found = {
        (row["label"], row["C"], row["repeat"]): (row["mean"], row["std"])
        for row in repeated.repeats_
    }
    assert found == expected


def test_summary__has_the_spread_of_the_repeats(repeated: Any, runs: Any) -> None:
    """The mean is over all folds; the spread is that of the runs' means."""
    for number, cell in enumerate(repeated.summary_):
        means = [run.summary_[number]["mean"] for run in runs]
        assert cell["mean"] == pytest.approx(np.mean(means), rel=1e-14)
        assert cell["std_of_repeats"] == pytest.approx(np.std(means, ddof=1), rel=1e-12)
    assert "std_of_repeats" not in runs[0].summary_[0]


def test_best_by_kernel_is_the_mean_of_the_runs_best(repeated: Any, runs: Any) -> None:
    """The protocol of papers: each run takes its best cell of a family, then the mean."""
    heat, cosine = repeated.best_by_kernel_
    for row, name in ((heat, "heat"), (cosine, "cosine")):
        best = [max(c["mean"] for c in run.summary_ if c["kernel"] == name) for run in runs]
        assert row["kernel"] == name
        assert row["scores"] == tuple(best)
        assert row["mean"] == pytest.approx(np.mean(best), rel=1e-14)
        assert row["std"] == pytest.approx(np.std(best, ddof=1), rel=1e-12)
        own = [cell for cell in repeated.summary_ if cell["kernel"] == name]
        assert row["label"] == max(own, key=lambda cell: cell["mean"])["label"]
    assert runs[0].best_by_kernel_[0]["std"] == 0.0


def test_kernels_are_computed_once(wine: Any) -> None:
    """However many repeats there are: tiles of the products are counted."""
    counts = []
    for repeats in (1, 3):
        events: list[Progress] = []
        dhsk.cross_validate(*wine, **GRID, cv=folds(repeats), progress=events.append)
        counts.append(max(event.total for event in events if event.stage == "tiles"))
    assert counts[0] == counts[1]


def test_probabilities_come_from_the_same_repeat(wine: Any) -> None:
    """Other repeats hold out the same samples: sigmoids that saw them would know the labels."""
    options: dict[str, Any] = {**GRID, "kernels": KERNELS[:1], "scoring": "neg_log_loss"}
    both = dhsk.cross_validate(*wine, **options, cv=folds(2, 5))
    second = dhsk.cross_validate(*wine, **options, cv=folds(seed=6))
    found = [row["score"] for row in both.results_ if row["fold"] >= 3]
    np.testing.assert_allclose(found, [row["score"] for row in second.results_], rtol=1e-9)


@pytest.mark.slow
def test_low_rank_is_repeated_too(wine: Any) -> None:
    """On the same landmarks: the first repeat is the run without repeats."""
    options: dict[str, Any] = {**GRID, "low_rank": dhsk.LowRank(20), "scoring": "neg_log_loss"}
    both = dhsk.cross_validate(*wine, **options, cv=folds(2))
    first = dhsk.cross_validate(*wine, **options, cv=3)
    found = [row["score"] for row in both.results_ if row["fold"] < 3]
    np.testing.assert_allclose(found, [row["score"] for row in first.results_], rtol=1e-3)


def test_result_is_read_again(repeated: Any, tmp_path: Any) -> None:
    """The number of repeats is in the JSON; files without it have one."""
    repeated.to_json(tmp_path / "results.json")
    again = dhsk.CvResult.from_json(tmp_path / "results.json")
    assert again.repeats_ == repeated.repeats_
    assert again.best_by_kernel_ == repeated.best_by_kernel_
    old = repeated.data
    del old["repeats"]
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert dhsk.CvResult.from_json(tmp_path / "old.json").repeats == 1


def test_repeats_of_scikit_learn_are_told_apart(wine: Any) -> None:
    """A splitter that repeats says how often; a part of the folds is a repeat."""
    own = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    found = dhsk.cross_validate(*wine, **GRID, cv=own)
    assert (found.repeats, found.folds.n) == (2, 6)
    pairs = dhsk.cross_validate(*wine, **GRID, cv=list(own.split(*wine)))
    assert (pairs.repeats, pairs.results_[0]["score"]) == (1, found.results_[0]["score"])
    means = [row["mean"] for row in found.repeats_ if row["label"] == "cosine" and row["C"] == 1]
    scores = [r["score"] for r in found.results_ if r["label"] == "cosine" and r["C"] == 1]
    assert means == [np.mean(scores[:3]), np.mean(scores[3:])]


def test_folds_are_a_splitter_of_scikit_learn(wine: Any) -> None:
    """They divide the samples where scikit-learn does, and no class is too small for groups."""
    X, y = wine
    own = dhsk.StratifiedFolds(4, n_repeats=2, min_class=50, random_state=3)
    scores = cross_val_score(SVC(), X, y, cv=own)
    assert len(scores) == own.get_n_splits() == 8
    pairs = list(own.split(X, y, np.arange(178) // 2))
    assert len(pairs) == 8
    for train, test in pairs:
        assert not set(train // 2) & set(test // 2)
        assert set(y[test]) == {0, 1}  # of the third class there are 48


def test_seeds_of_all_repeats_are_seeds() -> None:
    """The last one is the first and the number of repeats less one."""
    dhsk.StratifiedFolds(3, 2, random_state=2**32 - 2)
    with pytest.raises(dhsk.InputError, match="random_state must be at most 4294967294"):
        dhsk.StratifiedFolds(3, 2, random_state=2**32 - 1)
