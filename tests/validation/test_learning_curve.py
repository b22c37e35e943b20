"""Learning curves against scikit-learn's classifier on the same subsets."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import ShuffleSplit, StratifiedKFold
from sklearn.svm import SVC

import dhsk
from dhsk.progress import Progress
from dhsk.validation.folds import Classes
from dhsk.validation.learning_curve import absolute_sizes, in_proportion

pytestmark = pytest.mark.filterwarnings("ignore:the values of X have:dhsk.InputWarning")  # of wine

KERNELS = [dhsk.HeatKernel.at_scale(13, 0.5), dhsk.CosineKernel(), dhsk.GaussianKernel(100.0)]


@pytest.fixture(scope="module")
def wine() -> tuple[Any, Any]:
    """178 samples of three classes, sorted by class."""
    X, y = load_wine(return_X_y=True)
    return X, y


@pytest.fixture(scope="module")
def curve(wine: Any) -> dhsk.LearningCurve:
    """Three sizes, three kernels, two C, four folds."""
    X, y = wine
    return dhsk.learning_curve(
        X, y, train_sizes=[12, 40, 120], cv=4, random_state=3, kernels=KERNELS, C=[1, 20],
        fit=dhsk.Fitting(tol=1e-8),
    )  # fmt: skip


def test_scores_are_those_of_scikit_learn(wine: Any, curve: dhsk.LearningCurve) -> None:
    """Cell by cell: an SVC trained on the first samples of each fold's order."""
    X, y = wine
    rng = np.random.default_rng(3)
    folds = [
        (in_proportion(train, y, rng), test)
        for train, test in StratifiedKFold(4, shuffle=True, random_state=3).split(X, y)
    ]
    for kernel in KERNELS:
        K = kernel(dhsk.hyperspherical_map(X) if kernel.spherical else X)
        for C in (1.0, 20.0):
            expected = np.empty((3, 4))
            for s, size in enumerate((12, 40, 120)):
                for f, (train, test) in enumerate(folds):
                    own = train[:size]
                    model = SVC(C=C, kernel="precomputed", tol=1e-8)
                    model.fit(K[np.ix_(own, own)], y[own])
                    expected[s, f] = model.score(K[np.ix_(test, own)], y[test])
            label = next(c["label"] for c in curve.summary_ if c["kernel"] == kernel.name)
            np.testing.assert_allclose(curve.test_scores({"label": label, "C": C}), expected)
            rows = [r for r in curve.summary_ if (r["kernel"], r["C"]) == (kernel.name, C)]
            np.testing.assert_allclose([r["mean"] for r in rows], expected.mean(axis=1))
            np.testing.assert_allclose([r["std"] for r in rows], expected.std(axis=1))
            sem = expected.std(axis=1, ddof=1) / 2
            np.testing.assert_allclose([r["sem"] for r in rows], sem)


def test_best_by_kernel_is_chosen_at_each_size(curve: dhsk.LearningCurve) -> None:
    """Every size and family has its own best cell; the default is the best at the end."""
    assert len(curve.best_by_kernel_) == 9
    for row in curve.best_by_kernel_:
        same = [
            other["mean"]
            for other in curve.summary_
            if (other["train_size"], other["kernel"]) == (row["train_size"], row["kernel"])
        ]
        assert row["mean"] == max(same)
    last = max(r["mean"] for r in curve.summary_ if r["train_size"] == 120)
    assert curve.test_scores()[-1].mean() == pytest.approx(last, abs=1e-14)


def test_larger_training_sets_contain_smaller_ones_in_proportion(wine: Any) -> None:
    """Any beginning has the classes as the whole has, to within one sample."""
    _, y = wine
    train = np.flatnonzero(np.arange(178) % 4 > 0)
    order = in_proportion(train, y, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(order), train)
    shares = np.bincount(y[train]) / len(train)
    for size in range(1, len(train) + 1):
        counts = np.bincount(y[order[:size]], minlength=3)
        assert np.abs(counts - size * shares).max() < 2
    assert in_proportion(train, y, np.random.default_rng(1)).tolist() != order.tolist()


def test_kernels_are_computed_once(wine: Any) -> None:
    """However many sizes there are: tiles of the products are counted."""
    counts = []
    for sizes in ([0.5], [0.2, 0.4, 0.6, 0.8, 1.0]):
        events: list[Progress] = []
        dhsk.learning_curve(
            *wine, train_sizes=sizes, kernels=KERNELS[:2], C=1, progress=events.append
        )
        counts.append(max(event.total for event in events if event.stage == "tiles"))
    assert counts[0] == counts[1]


def test_matrix_splitter_and_file(wine: Any, tmp_path: Path) -> None:
    """A precomputed matrix and a splitter give the same as samples; files hold the curve."""
    X, y = wine
    K = KERNELS[0](dhsk.hyperspherical_map(X))
    options: dict[str, Any] = {"train_sizes": [30, 60], "C": 5.0, "random_state": 1}
    options["cv"] = ShuffleSplit(6, test_size=0.3, random_state=0)
    one = dhsk.learning_curve(X, y, kernels=KERNELS[0], **options)
    other = dhsk.learning_curve(K, y, kernels="precomputed", **options)
    np.testing.assert_array_equal(one.test_scores(), other.test_scores())
    one.result_.to_json(tmp_path / "curve.json")
    again = dhsk.LearningCurve(one.train_sizes_, dhsk.CvResult.from_json(tmp_path / "curve.json"))
    assert again.summary_ == one.summary_
    assert "30" in one._repr_html_()


def test_repeats_add_folds(wine: Any) -> None:
    """Two repeats of four folds give eight scores a size."""
    curve = dhsk.learning_curve(
        *wine,
        train_sizes=[20],
        cv=dhsk.StratifiedFolds(4, n_repeats=2),
        kernels=KERNELS[1],
        C=1,
        low_rank=dhsk.LowRank(20),
    )
    assert curve.test_scores().shape == (1, 8)
    assert curve.test_scores(curve.best_by_kernel_[0]).shape == (1, 8)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([0.1, 0.5, 1.0], [10, 50, 100]), ([7, 3, 7], [3, 7]), ([1e-9], [1]), ([100], [100])],
)
def test_sizes(sizes: Any, expected: list[int]) -> None:
    """Shares of the largest size, or numbers; ascending, each once."""
    assert absolute_sizes(sizes, 100) == expected


@pytest.mark.parametrize("sizes", [[0.0], [1.5], [0], [101], [], ["a"], 5, [np.nan]])
def test_wrong_sizes_are_refused(sizes: Any) -> None:
    """With the sizes that are possible."""
    with pytest.raises(dhsk.InputError, match="train_sizes"):
        absolute_sizes(sizes, 100)


def test_unknown_cell_is_refused(curve: dhsk.LearningCurve) -> None:
    """By its name."""
    with pytest.raises(dhsk.InputError, match="no cell of the curve is 'linear' with C = 1"):
        curve.test_scores({"label": "linear", "C": 1.0})


def test_folds_are_divided_once(wine: Any) -> None:
    """Small classes are left out of the sizes as of the folds."""
    X, y = wine
    few = np.where(np.arange(178) < 3, 9, y)
    curve = dhsk.learning_curve(
        X, few, train_sizes=[1.0], kernels=KERNELS[1], C=1, cv=dhsk.StratifiedFolds(min_class=10)
    )
    kept = (Classes.of(few, 10).codes >= 0).sum()
    assert curve.train_sizes_ == [kept * 4 // 5]


@pytest.mark.slow
def test_the_page_has_the_curve(tmp_path: Path, counts: Any) -> None:
    """On top, a point for each size; of samples held out at every size the last is examined."""
    X, y = counts(60, 6), np.tile([0, 1], 30)
    curve = dhsk.learning_curve(X, y, train_sizes=[8, 16, 40], cv=3, kernels=KERNELS[1], C=1)
    curve.report(tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text()
    assert page.index("<h2>Learning curve</h2>") < page.index("<h2>Every kernel at every C</h2>")
    assert page.count('<th scope="row">40</th>') == 1
    seen, found = curve.result_.examined, curve.result_.out_of_fold()
    assert seen is not None
    last = found.fold >= 6
    assert seen.n_wrong == np.count_nonzero(found.wrong & last)
    assert {one.sample for one in seen.wrong} == set(found.samples[found.wrong & last].tolist())
