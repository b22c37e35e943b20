"""Classes of fewer samples than folds: told apart as scikit-learn does, or left out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import dhsk
from dhsk.solvers.dual import Dual, violation_and_intercept
from dhsk.validation.folds import FixedFolds, divide
from dhsk.validation.grid import make_grid

pytestmark = pytest.mark.threads

KERNEL = dhsk.HeatKernel.at_scale(64, 0.5)
N = 180


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """Digits 0, 1 and 2, one sample of 3, and two of 4."""
    X, y = load_digits(return_X_y=True)
    chosen = np.concatenate(
        [np.flatnonzero(y < 3)[: N - 3], np.flatnonzero(y == 3)[:1], np.flatnonzero(y == 4)[:2]]
    )
    order = np.random.default_rng(5).permutation(N)
    return X[chosen][order], y[chosen][order]


def test_classes_of_one_sample_are_no_classes(digits: Any) -> None:
    """Names of samples given as labels: fewer folds would not help, as one fold is none."""
    X, _ = digits
    with pytest.raises(dhsk.InputError, match="each of the 180 classes has one sample") as said:
        dhsk.cross_validate(X, [f"s{k}" for k in range(N)], kernels=[KERNEL])
    assert "1 folds" not in str(said.value)


@pytest.mark.filterwarnings("ignore:.* whole numbers from:dhsk.InputWarning")
def test_numbers_to_predict_are_no_classes(digits: Any) -> None:
    """Whole numbers of which most samples have a rare one are refused before any fit."""
    X, _ = digits
    target = np.random.default_rng(0).integers(100, size=N)
    rare = np.isin(target, np.flatnonzero(np.bincount(target) < 5))
    assert rare.mean() > 0.5
    with pytest.raises(dhsk.InputError, match=r"whole numbers.*HeatKernelRidge.*--min-class 5"):
        dhsk.cross_validate(X, target, kernels=[KERNEL])
    few = np.where(rare & (np.cumsum(rare) <= 0.4 * N), target, 1000)
    with pytest.warns(UserWarning, match="fewer samples than the 5 folds|least populated"):
        dhsk.cross_validate(X, few, kernels=[KERNEL], C=1.0)


def test_small_classes_are_left_out_only_where_two_remain() -> None:
    """Of two classes none can go."""
    X = np.random.default_rng(0).random((60, 3))
    y = np.repeat(["a", "b"], [57, 3])
    folds = dhsk.StratifiedFolds(5)
    for seen, offered in ((y, False), (np.where(np.arange(60) < 20, "c", y), True)):
        with pytest.warns() as caught:
            dhsk.cross_validate(X, seen, kernels=["cosine"], C=1.0, cv=folds)
        said = [str(one.message) for one in caught]
        (few,) = [words for words in said if "fewer samples than the 5" in words]
        assert few.startswith("1 class (b: 3) has")
        assert ("--min-class 5" in few) == offered
        assert ("add samples of them" in few) != offered


def table(result: dhsk.CvResult) -> list[dict[str, Any]]:
    """Rows without what a clock said."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in result.results_]


def few_warned(*words: Any, **options: Any) -> dhsk.CvResult:
    """Cross-validate, where scikit-learn and dhsk both warn."""
    with (
        pytest.warns(UserWarning, match="The least populated class in y has only 1 member"),
        pytest.warns(
            dhsk.InputWarning,
            match=r"2 classes \(3: 1, 4: 2\) have fewer samples than the 5 folds: .*min_class=5",
        ),
    ):
        return dhsk.cross_validate(*words, **options)


@pytest.mark.slow
def test_scores_are_those_of_scikit_learn(digits: Any, tmp_path: Path) -> None:
    """Same folds, same scores; a fold trained without a class says so, and its proofs hold."""
    X, y = digits
    result = few_warned(
        X,
        y,
        kernels=[KERNEL],
        C=[1.0, 10.0],
        cv=dhsk.StratifiedFolds(random_state=3),
        fit=dhsk.Fitting(tol=1e-5),
    )
    K = KERNEL(dhsk.hyperspherical_map(X))
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    for C in (1.0, 10.0):
        with pytest.warns(UserWarning, match="least populated"):
            expected = cross_val_score(SVC(C=C, kernel="precomputed", tol=1e-5), K, y, cv=folds)
        assert [row["score"] for row in result.results_ if row["C"] == C] == expected.tolist()
    for row in result.results_:
        assert row["converged"]
        assert 0 <= row["gap"] < 1e-3
    assert result.data["untrained_classes"] == [{"name": 3, "samples": 1, "folds": 1}]
    confusion = np.array(result.data["confusion"])
    assert confusion.sum() == N
    assert confusion[3, 3] == 0
    result.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Folds trained without a class count its samples as wrong: 3 (1 sample) on 1 of" in page


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["samples", "store"])
def test_small_classes_are_left_out(digits: Any, stored: bool, tmp_path: Path) -> None:
    """The rest is fitted as if they were not there; a Gram store is read as it is."""
    X, y = digits
    kept = np.isin(y, [0, 1, 2])
    options = {"kernels": [KERNEL], "C": [1.0, 10.0], "refit": True}
    expected = dhsk.cross_validate(
        X[kept], y[kept], cv=dhsk.StratifiedFolds(random_state=3), **options
    )
    G = dhsk.compute_gram(X, dhsk.CosineKernel(), store=tmp_path / "g", tile=50) if stored else X
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    folds = dhsk.StratifiedFolds(min_class=3, random_state=3)
    found = dhsk.cross_validate(G, y, cv=folds, **options)
    assert [row["score"] for row in table(found)] == [row["score"] for row in table(expected)]
    for ours, theirs in zip(table(found), table(expected), strict=True):
        assert ours["n_support"] == theirs["n_support"]
    for name in ("classes", "class_counts", "confusion"):
        assert found.data[name] == expected.data[name]
    assert found.data["dropped_classes"] == [
        {"name": 3, "samples": 1, "folds": 5},
        {"name": 4, "samples": 2, "folds": 5},
    ]
    assert found.data["untrained_classes"] == []
    mapped = dhsk.hyperspherical_map(X)
    np.testing.assert_array_equal(found.model_.predict(mapped), expected.model_.predict(mapped))
    assert {p: p.stat().st_mtime_ns for p in before} == before
    found.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Left out for having too few samples: 3 (1 sample), 4 (2 samples)." in page


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_low_rank_goes_on_and_leaves_out(digits: Any, liblinear_scores: Any, loss: str) -> None:
    """Classifiers of one class against the rest do the same, and converge without the class."""
    X, y = digits
    options = {
        "kernels": [KERNEL],
        "C": 1.0,
        "low_rank": dhsk.LowRank(40, loss=loss, random_state=3),
    }
    result = few_warned(X, y, cv=dhsk.StratifiedFolds(random_state=3), **options)
    assert all(row["converged"] for row in result.results_)
    assert np.array(result.data["confusion"])[3, 3] == 0
    own = dhsk.StratifiedFolds(min_class=3, random_state=3)
    found = dhsk.cross_validate(X, y, cv=own, refit=True, **options)
    assert found.data["classes"] == [0, 1, 2]
    assert np.sum(found.data["confusion"]) == N - 3
    kept = y < 3
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    expected = liblinear_scores(found, X[kept], y[kept], folds, loss)
    assert [row["score"] for row in found.results_] == expected.tolist()
    assert found.model_.classes.tolist() == [0, 1, 2]


def test_samples_that_are_left_out_weigh_nothing(digits: Any) -> None:
    """Neither in a fold nor where all samples are trained on, nor in balanced weights."""
    _, y = digits
    kept = y < 3
    folds = dhsk.StratifiedFolds(3, min_class=3)
    grid = make_grid(divide(N, y, folds), 1.0, class_weight="balanced")
    expected = make_grid(divide(N - 3, y[kept], 3), 1.0, class_weight="balanced")
    for name in ("weights", "all_weights"):
        found = getattr(grid, name)
        np.testing.assert_array_equal(found[..., kept], getattr(expected, name))
        assert not found[..., ~kept].any()


def test_other_folds_lose_the_samples_that_are_left_out(digits: Any) -> None:
    """Splitters and index arrays count all samples, as their user did."""
    X, y = digits
    kept = np.isin(y, [0, 1, 2])
    splitter = KFold(3)
    splitter.min_class = 3
    pairs = list(splitter.split(X))
    for cv in (splitter, FixedFolds(pairs, 3)):
        found = dhsk.cross_validate(X, y, kernels=[KERNEL], C=1.0, cv=cv)
        K = KERNEL(dhsk.hyperspherical_map(X))
        for row, (own, others) in zip(found.results_, pairs, strict=True):
            train, test = own[kept[own]], others[kept[others]]
            fitted = SVC(C=1.0, kernel="precomputed").fit(K[np.ix_(train, train)], y[train])
            assert row["score"] == fitted.score(K[np.ix_(test, train)], y[test])


def test_groups_of_what_is_kept(digits: Any) -> None:
    """Groups are divided among the samples that are kept."""
    X, y = digits
    groups = np.arange(N) // 6
    found = dhsk.cross_validate(
        X, y, kernels=[KERNEL], C=1.0, groups=groups, cv=dhsk.StratifiedFolds(min_class=3)
    )
    assert np.sum(found.data["confusion"]) == N - 3


REFUSED = {
    "too large": (
        {"cv": dhsk.StratifiedFolds(min_class=100)},
        r"0 of 5 classes has 100 .*second largest has 59",
    ),
    "of one class": ({"cv": dhsk.StratifiedFolds(min_class=60)}, "1 of 5 classes has 60"),
    "more folds than samples": ({"cv": 70}, "no class has as many samples as .*, 70: the largest"),
}


@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_classes_that_leave_nothing_to_do(digits: Any, options: Any, message: str) -> None:
    """The numbers are named."""
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.cross_validate(*digits, **options)


@pytest.mark.parametrize("given", [{"min_class": 0}, {"n_splits": 1}, {"n_repeats": 0}])
def test_folds_are_numbers(given: Any) -> None:
    """Each is named."""
    with pytest.raises(dhsk.InputError, match=f"{next(iter(given))} must be a whole number"):
        dhsk.StratifiedFolds(**given)


def test_two_classes_need_two_samples_each(digits: Any) -> None:
    """A fold without one of two classes has nothing to learn."""
    X, y = digits
    with (
        pytest.warns(UserWarning),  # noqa: PT030  both of them
        pytest.raises(dhsk.InputError, match=r"fold \d has one class only: .*at least two samples"),
    ):
        dhsk.cross_validate(X, np.where(y == 3, "b", "a"))


def test_scores_that_do_not_exist_are_refused(digits: Any) -> None:
    """The area under a curve needs both classes in every test part: said before any fit."""
    X, y = digits
    message = r"'roc_auc' is not defined on fold \d, whose 36 test samples are all of a: .*fewer"
    with (
        pytest.warns(UserWarning),  # noqa: PT030  of scikit-learn too
        pytest.raises(dhsk.InputError, match=message),
    ):
        dhsk.cross_validate(X, np.where(y == 4, "b", "a"), scoring="roc_auc")


def test_folds_that_test_no_sample_of_a_class_are_named(digits: Any) -> None:
    """Once for all kernels and common methods, where the score is by class."""
    X, y = digits
    y = np.where(y == 0, "rare", "other")
    rare, other = np.flatnonzero(y == "rare"), np.flatnonzero(y == "other")
    parts = [*np.split(rare[:44], 2), other[:50], other[50:]]
    folds = [(np.setdiff1d(np.arange(N), test), test) for test in parts]
    out = dhsk.Output(baselines=True)
    options = {"kernels": ["cosine", "linear"], "C": 1.0, "cv": folds, "class_weight": "balanced"}
    with pytest.warns(UserWarning) as said:  # noqa: PT030  all of them
        found = dhsk.cross_validate(X, y, scoring="balanced_accuracy", out=out, **options)
    assert [str(one.message) for one in said] == [
        "4 of 4 folds lack classes in their test part: fold 0 (other), fold 1 (other), "
        "fold 2 (rare), fold 3 (rare); there balanced_accuracy says nothing of these classes, and "
        "fewer folds may each test all"
    ]
    assert not found.baselines.left_out
    dhsk.cross_validate(X, y, **options)  # an accuracy is of samples


def test_test_samples_of_a_class_that_is_left_out(digits: Any) -> None:
    """They are refused, with the reason."""
    X, y = digits
    with pytest.raises(dhsk.InputError, match=r"has the label [34], a class that min_class leaves"):
        dhsk.cross_validate(
            X, y, cv=dhsk.StratifiedFolds(min_class=3), refit=dhsk.Refit(test=(X[y > 2], y[y > 2]))
        )


def test_one_class_alone_is_decided_for() -> None:
    """Where one class of a pair has no samples, all decisions are for the other, at no cost."""
    sign = np.array([1.0, 1.0, -1.0])
    dual = Dual(sign, np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    b = np.zeros(3)
    assert [violation_and_intercept(dual, c, b, sign)[1] for c in range(3)] == [1.0, -1.0, 0.0]
