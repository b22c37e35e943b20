"""Common methods of scikit-learn beside the kernels, on the same folds."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Timer
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from sklearn.utils.class_weight import compute_sample_weight

import dhsk
from dhsk.costs import Cost, costs_told
from dhsk.errors import InputError
from dhsk.report.cells import common_method
from dhsk.results.baselines import Baseline, Beside
from dhsk.results.paired import PairedDifference
from dhsk.validation import baselines, methods
from dhsk.validation.methods import Method

NAMES = {
    one.__name__: one
    for one in (
        HistGradientBoostingClassifier, RandomForestClassifier, LogisticRegression,
        TfidfTransformer, make_pipeline, FunctionTransformer,
        Normalizer, StandardScaler, SVC, LinearSVC,
    )
} | {"dhsk": dhsk, "np": np}  # fmt: skip
"""What the code of a method needs."""

ONE = {"time_scale": 1.0, "C": 1.0, "cv": 3}
"""A grid of one cell."""


def counts(n: int = 90, dim: int = 30, seed: int = 0) -> tuple[Any, NDArray[Any]]:
    """Sparse counts of three classes that differ in some features, with overlap.

    Features of zeros make them as sparse as words are.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    means = rng.random((3, dim)) + 0.3
    X = rng.poisson(means[y])
    X[:, 0] += 1  # no sample of zeros
    X = np.pad(X, ((0, 0), (0, 40 * dim)))
    return csr_array(X.astype(float)), np.array(["a", "b", "c"])[y]


def as_table(X: Any, dim: int = 30) -> NDArray[np.float64]:
    """The same counts, dense, without the features of zeros."""
    table: NDArray[np.float64] = X[:, :dim].toarray()
    return table


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boosting takes a second for all folds otherwise."""
    slow = methods.OF_TABLES[-1]
    quick = Method(
        slow.name,
        (methods.Step("HistGradientBoostingClassifier", max_iter=3, random_state=0),),
        C=(None,),
        probabilities=True,
        rounds="max_iter",
    )
    monkeypatch.setattr(methods, "OF_TABLES", (*methods.OF_TABLES[:-1], quick))


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
def test_scores_are_those_of_the_code_in_scikit_learn(sparse: bool, scoring: str) -> None:
    """Each candidate's code, run by scikit-learn on the same folds, gives the same scores."""
    X, y = counts()
    X = X if sparse else as_table(X)
    found_all = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), scoring=scoring, **ONE)
    found = found_all.baselines
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    own = methods.OF_COUNTS if sparse else (*methods.OF_COMPOSITIONS, *methods.OF_TABLES)
    assert [one.method for one in found.tried] == [m.name for m in own for _ in m.C]
    for one in found.tried:
        lines = common_method(found_all, one)
        assert lines[-1] == f"model = {one.code}.fit(X, y)"
        told: dict[str, Any] = {}
        exec("\n".join([*lines[:-1], f"model = {one.code}"]), told)  # with its own imports
        model = told["model"]
        expected = cross_val_score(model, X, y, cv=folds, scoring=scoring)
        np.testing.assert_array_equal(one.scores, expected)
    assert len({one.scores for one in found.tried}) > 1
    assert found.left_out == ()


@pytest.mark.slow
def test_class_weights_are_weights_of_samples() -> None:
    """Both sides of each class are weighed; LinearSVC's own class_weight leaves the rest at 1."""
    X, y = counts()
    kept = np.flatnonzero((y != "c") | (np.arange(len(y)) % 9 == 2))
    X, y = X[kept], y[kept]
    found = dhsk.cross_validate(
        X, y, out=dhsk.Output(baselines=True), class_weight="balanced", **ONE
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    expected, tried = [], found.baselines.tried[0]
    for train, test in folds.split(X, y):
        tfidf = TfidfTransformer(sublinear_tf=True)
        model = make_pipeline(tfidf, LinearSVC(C=0.1, random_state=0))
        weights = compute_sample_weight("balanced", y[train])
        model.fit(X[train], y[train], linearsvc__sample_weight=weights)
        expected.append(model.score(X[test], y[test]))
        # What the page of such a run says to write does the same.
        lines = common_method(replace(found, settings={"class_weight": "balanced"}), tried)
        told = {"X": X[train], "y": y[train]}  # all else the lines import
        exec("\n".join(lines), told)
        assert told["model"].score(X[test], y[test]) == expected[-1]
    assert common_method(found, tried) == [
        "from sklearn.feature_extraction.text import TfidfTransformer",
        "from sklearn.pipeline import make_pipeline",
        "from sklearn.svm import LinearSVC",
        f"model = {tried.code}.fit(X, y)",
    ]
    plain = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), **ONE).baselines.tried[0]
    assert tried.scores == tuple(expected) != plain.scores


def test_where_nothing_was_learnt_a_sentence_says_so() -> None:
    """A C near 0 predicts the largest class, 50 of 60; that of jaccard by guessing is not known."""
    X, y = np.random.default_rng(0).random((60, 5)), np.repeat(["none", "event"], [50, 10])
    constant: dict[str, Any] = {"kernels": ["cosine"], "C": 1e-6, "cv": 2}
    found = dhsk.cross_validate(X, y, **constant)
    assert found.unlearnt.startswith("no score is clearly above 0.8333, that of always the largest")
    assert "--scoring" in found.unlearnt
    assert "--scoring" not in dhsk.cross_validate(X[:20], y[40:], **constant).unlearnt
    for scoring in ("balanced_accuracy", "roc_auc"):
        found = dhsk.cross_validate(X, y == "event", scoring=scoring, **constant)
        assert found.unlearnt == "no score is clearly above 0.5000, that of guessing"
    assert not dhsk.cross_validate(X, y, scoring="jaccard_macro", **constant).unlearnt
    X[50:, 0] += 5
    for scoring in ("accuracy", "balanced_accuracy", "roc_auc"):
        found = dhsk.cross_validate(
            X, y == "event", scoring=scoring, **constant | {"C": 100.0, "class_weight": "balanced"}
        )
        assert not found.unlearnt


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_the_best_of_a_search_on_permuted_labels_is_no_evidence(scoring: str) -> None:
    """Ten settings on samples that have nothing to do with their labels say so."""
    X = np.random.default_rng(1).random((160, 20))
    said = 0
    for seed in range(5):
        y = np.random.default_rng(seed).permutation(np.arange(160) < 92)
        found = dhsk.cross_validate(
            X, y, kernels=["cosine", "gaussian"], C=[0.1, 1, 10, 100, 1000], scoring=scoring
        )
        said += found.unlearnt != ""
    assert said >= 4


def test_methods_of_few_samples_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenMP's threads of small fits wait for each other longer than they work."""
    seen = []

    class Watching(DummyClassifier):  # type: ignore[misc]  # its base is untyped
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            seen.append(_openmp_effective_n_threads())
            return super().fit(X, y, sample_weight)

        def predict(self, X: Any) -> Any:
            seen.append(_openmp_effective_n_threads())
            return super().predict(X)

    monkeypatch.setattr(Method, "made", lambda *_, **__: make_pipeline(Watching()))
    monkeypatch.setattr(
        methods, "OF_TABLES", (Method("watching", (methods.Step("DummyClassifier"),), (None,)),)
    )
    X, y = counts()
    dhsk.cross_validate(as_table(X), y, out=dhsk.Output(baselines=True), **ONE)
    assert len(seen) >= 6
    assert set(seen) == {1}


def test_methods_may_take_a_part_of_the_run() -> None:
    """Half of a short one, up to a minute, and a fifth of a long one; ten seconds at least."""
    allowed = {1.0: 10.0, 38.0: 19.0, 100.0: 50.0, 200.0: 60.0, 300.0: 60.0, 1000.0: 200.0}
    assert {spent: baselines.allowed_seconds(spent) for spent in allowed} == allowed


@pytest.mark.parametrize(("n", "more"), [(178, 2.2), (1797, 13.5), (100_000, 50.0)])
def test_the_cost_of_a_small_table_has_no_more_than_methods_take(n: int, more: float) -> None:
    """And of a large one what they may; what was asked for is not said, as it is not known."""
    samples = dhsk.open_samples(np.ones((n, 64 if n > 178 else 13)))
    cost = Cost("", 100.0, 0, 0, 0)
    told = baselines.with_methods(lambda: cost, samples, None).seconds
    assert told == pytest.approx(100.0 + more, rel=0.01)
    assert baselines.with_methods(lambda: cost, samples, False) == cost


def test_boosting_that_stops_is_not_counted_as_if_it_went_on() -> None:
    """From 10,000 samples on scikit-learn's stops by itself; so does the small fit for them."""
    (boosting,) = [one for one in methods.OF_TABLES if one.name.startswith("HistGradient")]
    (forest,) = [one for one in methods.OF_TABLES if one.name.startswith("RandomForest")]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 4)), np.arange(400) % 2
    stopping = boosting.made(None, trial_of=20_000).fit(X, y)
    assert stopping[-1].n_iter_ < methods.STOPPING_ROUNDS
    assert boosting.times_of_trial(stopping) == 1.0
    few = methods.ROUNDS / methods.TRIAL_ROUNDS
    assert boosting.times_of_trial(boosting.made(None, trial_of=400).fit(X, y)) == few
    assert forest.times_of_trial(forest.made(None, trial_of=20_000).fit(X, y)) == few


@pytest.mark.parametrize("tried", [True, False])
def test_a_search_tries_what_takes_little(monkeypatch: pytest.MonkeyPatch, tried: bool) -> None:
    """Without options methods are tried within their part of the time; others say why not."""
    monkeypatch.setattr(baselines, "allowed_seconds", lambda _: 1e9 if tried else 0.0)
    if not tried:
        monkeypatch.setattr(baselines._Trial, "_fitted", lambda *_: pytest.fail("fitted"))
    X, y = counts()
    found = dhsk.cross_validate(X, y, cv=2).baselines
    names = [method.name for method in methods.OF_COUNTS]
    assert [one.method for one in found.best_of_each if tried] == [
        one.method for one in found.best_of_each
    ]
    assert sorted({one.method for one in found.tried}) == (sorted(names) if tried else [])
    assert len(found.left_out) == (0 if tried else len(names))
    assert all("are left for it" in said for said in found.left_out)


def test_a_method_that_turns_out_long_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small fit that was quicker than all others does not hold up the run."""
    monkeypatch.setattr(baselines._Trial, "_seconds_of_a_fit", lambda *_: 0.0)
    monkeypatch.setattr(baselines._Trial, "_fitted", lambda *_: (1.0, 1e9))
    X, y = counts()
    found = dhsk.cross_validate(X, y, cv=2).baselines
    assert found.tried == ()
    assert len(found.left_out) == len(methods.OF_COUNTS)


def test_how_long_a_method_takes_is_known_after_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all values of C, of which one may take most of the time."""
    begun: list[float | None] = []

    def fitted(_: Any, C: float | None, fold: int) -> tuple[float, float]:
        begun.append(C)
        return 1.0, 1e9 if C is not None and C > 1 else 0.0

    monkeypatch.setattr(baselines._Trial, "_seconds_of_a_fit", lambda *_: 0.0)
    monkeypatch.setattr(baselines._Trial, "_fitted", fitted)
    X, y = counts()
    dhsk.cross_validate(X, y, cv=5)
    assert begun == [C for one in methods.OF_COUNTS for C in one.C * (5 if None in one.C else 1)]


def test_workers_fit_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two fits at a time, one on each, with the scores of those made here one by one."""
    X, y = counts()
    here = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), **ONE).baselines
    monkeypatch.setattr(baselines._Trial, "_fitted", lambda *_: pytest.fail("fitted here"))
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        out = dhsk.Output(tmp_path, baselines=True)
        there = dhsk.cross_validate(X, y, client=client, out=out, **ONE).baselines
    assert there.left_out == here.left_out == ()
    names = [method.name for method in methods.OF_COUNTS for _ in method.C]
    assert [one.method for one in there.tried] == names
    assert [one.scores for one in there.tried] == [one.scores for one in here.tried]


def test_a_method_that_fails_does_not_lose_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is the reason why it was left out."""

    def failing(*_: Any) -> Any:
        raise ValueError("Only 32-bit\nindices")

    monkeypatch.setattr("dhsk.validation.methods.MethodData.fit", failing)
    X, y = counts()
    result = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), **ONE)
    assert result.baselines.tried == ()
    assert result.baselines.left_out[0] == (
        "LinearSVC on sublinear tf-idf failed (ValueError: Only 32-bit indices)"
    )
    assert result.beside is None
    assert result.advice == result.decision.sentence


def test_a_grid_of_given_kernels_has_none_untold() -> None:
    """Only the default search looks at them by itself, and it can be told not to."""
    X, y = counts()
    assert dhsk.cross_validate(X, y, **ONE).baselines == baselines.Baselines()
    off = dhsk.cross_validate(X, y, cv=2, out=dhsk.Output(baselines=False))
    assert off.baselines == baselines.Baselines()


def test_a_matrix_has_no_samples_for_them() -> None:
    """It is refused before anything is fitted; a search on it has none."""
    X, y = counts()
    G = dhsk.compute_gram(X, "cosine")
    with pytest.raises(InputError, match="baselines are fitted to samples"):
        dhsk.cross_validate(G, y, out=dhsk.Output(baselines=True))
    assert dhsk.cross_validate(G, y, cv=2).baselines == baselines.Baselines()


def test_methods_without_probabilities_are_left_out() -> None:
    """A scorer of probabilities takes those that have them."""
    X, y = counts()
    found = dhsk.cross_validate(
        as_table(X), y, out=dhsk.Output(baselines=True), scoring="neg_log_loss", **ONE
    ).baselines
    assert [one.method for one in found.best_of_each if "SVC" not in one.method] == [
        one.method for one in found.best_of_each
    ]
    assert found.left_out == ("SVC(rbf) on scaled columns has no probabilities",)


@pytest.mark.slow
def test_fits_of_a_killed_run_are_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interrupt in the middle the same call fits only what is missing."""
    X, y = counts()
    options = {"out": dhsk.Output(tmp_path / "run", baselines=True), **ONE}
    other = {"out": dhsk.Output(tmp_path / "whole", baselines=True)}
    whole = dhsk.cross_validate(X, y, **options | other).baselines
    fitted: Callable[..., Any] = baselines._Trial._fitted
    fits = []

    def interrupted(self: Any, C: Any, fold: int) -> Any:
        fits.append((self.method.name, C, fold))
        if len(fits) == 6:
            raise KeyboardInterrupt
        return fitted(self, C, fold)

    monkeypatch.setattr(baselines._Trial, "_fitted", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dhsk.cross_validate(X, y, **options)
    resumed = dhsk.cross_validate(X, y, **options).baselines
    n = sum(len(method.C) for method in methods.OF_COUNTS) * 3
    assert len(fits) == n + 1
    assert len(set(fits)) == n
    assert [one.scores for one in resumed.tried] == [one.scores for one in whole.tried]
    again = dhsk.cross_validate(X, y, **options).baselines
    assert len(fits) == n + 1
    assert again == resumed
    dhsk.cross_validate(X, np.roll(y, 1), **options | {"cv": 2})
    assert len(fits) > n + 1  # other labels and folds are other fits


def test_an_interrupt_does_not_wait_for_a_fit() -> None:
    """The thread that waits for scikit-learn is interrupted at once."""
    ended = Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # others may have set theirs
    timer = Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        methods.in_background(lambda: ended.wait(60))
    signal.signal(signal.SIGINT, before)
    assert not ended.is_set()
    ended.set()
    with pytest.raises(ZeroDivisionError):
        methods.in_background(lambda: 1 // 0)


METHOD = Baseline("LinearSVC on tf-idf", 1.0, "code", (0.9, 0.8), 1.0)


@pytest.mark.parametrize(
    ("below", "words"),
    [
        (PairedDifference(-0.015, 0.004), "take LinearSVC on tf-idf, C = 1, of scikit-learn: no "
         "kernel here is better (heat s=1, C = 1 is 0.0150 ± 0.0040 below it)"),
        (PairedDifference(0.0, 0.0), "take LinearSVC on tf-idf, C = 1, of scikit-learn: no kernel "
         "here is better (heat s=1, C = 1 has the same mean)"),
        (PairedDifference(0.002, 0.004), "LinearSVC on tf-idf, C = 1, of scikit-learn, is within "
         "one standard error of the best: 0.0020 ± 0.0040 below"),
        (PairedDifference(0.02, 0.004),
         "LinearSVC on tf-idf, C = 1, of scikit-learn, is 0.0200 ± 0.0040 below the best, "
         "0.8700"),
    ],
)  # fmt: skip
def test_words_say_what_to_take(below: PairedDifference, words: str) -> None:
    """A method that no kernel exceeds is what to take."""
    beside = Beside(METHOD, "heat s=1, C = 1", below, taken=0.86)
    assert beside.words == words
    assert beside.ahead == words.startswith("take")


def test_a_method_above_the_simple_kernel_is_taken() -> None:
    """One that is within one standard error of the best, as that kernel is, and has more."""
    simple = Beside(METHOD, "heat s=1, C = 1", PairedDifference(0.002, 0.004), taken=0.84)
    assert simple.ahead
    assert simple.words == (
        "take LinearSVC on tf-idf, C = 1, of scikit-learn: within one standard error of the best "
        "(heat s=1, C = 1, 0.0020 ± 0.0040 better), and above the kernel to take"
    )
    assert not replace(simple, below=PairedDifference(0.02, 0.004)).ahead


def test_results_are_written_and_read(tmp_path: Path) -> None:
    """JSON has all of it; scores that are not one a fold are refused."""
    X, y = counts()
    result = dhsk.cross_validate(X, y, out=dhsk.Output(baselines=True), **ONE)
    assert result.beside is not None
    assert result.beside.words in result.advice
    result.to_json(tmp_path / "r.json")
    assert dhsk.CvResult.from_json(tmp_path / "r.json").baselines == result.baselines
    content = json.loads((tmp_path / "r.json").read_text())
    content["baselines"]["tried"][0]["scores"].pop()
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="baselines"):
        dhsk.CvResult.from_json(tmp_path / "r.json")


def test_the_first_line_counts_what_methods_may_take() -> None:
    """Of a search of tables; those of words take little."""
    X, y = counts()
    for samples, more in ((as_table(X), baselines.METHODS_SECONDS), (X, 0.0)):
        told: list[Cost] = []
        with costs_told(told.append):
            dhsk.cross_validate(samples, y)
            dhsk.cross_validate(samples, y, out=dhsk.Output(baselines=False))
        with_methods, without = (cost.seconds or 0.0 for cost in told)
        assert with_methods >= without + more
        assert more > 0 or with_methods == pytest.approx(without, rel=0.2)


def test_the_format_changes_no_method() -> None:
    """Sparse counts as full as tables get the methods of tables, and the same scores."""
    X, y = counts()
    table = as_table(X)
    found, sparse = (
        dhsk.cross_validate(one, y, out=dhsk.Output(baselines=True), **ONE).baselines.tried
        for one in (table, csr_array(table))
    )
    assert [one.method for one in found] == [one.method for one in sparse]
    assert [one.scores for one in found] == [one.scores for one in sparse]


def test_values_below_1_have_no_logarithms() -> None:
    """Sublinear weights turn them below 0: of proportions these methods are not tried."""
    X, y = counts()
    shares = csr_array(Normalizer("l1").fit_transform(X))
    out = dhsk.Output(baselines=True)
    found = dhsk.cross_validate(shares, y, out=out, **ONE).baselines
    assert {one.method for one in found.tried} == {m.name for m in methods.OF_PROPORTIONS}
    assert not found.left_out
