"""tf-idf in a cross-validation: weights of the training part of each fold; models keep them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import _SigmoidCalibration
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import ComplementNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dhsk
from dhsk.validation import weighted

pytestmark = pytest.mark.threads

GRID: dict[str, Any] = {"kernels": ["cosine"], "C": [0.05, 1.0], "cv": 3, "sphere_map": "tfidf"}


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any]:
    """Digits of few samples, so that weights of the folds differ."""
    X, y = load_digits(return_X_y=True)
    return X[:120], y[:120]


@pytest.fixture(scope="module")
def texts() -> tuple[list[str], Any]:
    """Short texts of many rare words, three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    words = rng.zipf(1.3, (90, 12)) % 120 + 15 * y[:, None] * (rng.random((90, 12)) < 0.3)
    return [" ".join(f"word{word}" for word in row) for row in words], y


def test_scores_are_those_of_scikit_learn_with_weights_of_each_fold(digits: Any) -> None:
    """A pipeline that learns on all samples would know more than these."""
    X, y = digits
    found = dhsk.cross_validate(X, y, **GRID)
    expected = {}
    for fold, (train, test) in enumerate(
        StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    ):
        tfidf = TfidfTransformer().fit(X[train])
        for C in (0.05, 1.0):
            svc = SVC(C=C, kernel="linear").fit(tfidf.transform(X[train]).toarray(), y[train])
            score = svc.score(tfidf.transform(X[test]).toarray(), y[test])
            expected["tf-idf cosine", C, fold] = score
    assert {(r["label"], r["C"], r["fold"]): r["score"] for r in found.results_} == expected
    assert found.samples.sphere_map == "tfidf"
    counts = np.array(found.confusion)
    assert counts.sum() == len(y)
    assert np.trace(counts) / len(y) == pytest.approx(found.best_score_)
    assert found.out_of_fold().wrong.mean() == pytest.approx(1 - found.best_score_)


@pytest.mark.parametrize("min_df", [1, 3])
def test_words_are_those_of_the_training_part_as_in_a_pipeline(
    texts: tuple[list[str], Any], min_df: int
) -> None:
    """Neither kernels on tf-idf nor common methods know which words the tested texts have."""
    posts, y = texts
    samples = dhsk.open_samples(posts, vectorizer=dhsk.Vectorizer(min_df))
    found = dhsk.cross_validate(samples, y, **GRID, out=dhsk.Output(baselines=True))
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def expected(*steps: Any) -> Any:
        pipeline = make_pipeline(CountVectorizer(min_df=min_df), *steps)
        return cross_val_score(pipeline, posts, y, cv=folds)

    for C in (0.05, 1.0):
        scores = [row["score"] for row in found.results_ if row["C"] == C]
        np.testing.assert_array_equal(
            scores, expected(TfidfTransformer(), SVC(C=C, kernel="linear"))
        )
    by_name = {one.method: one.scores for one in found.baselines.tried}
    np.testing.assert_array_equal(
        by_name["ComplementNB on sublinear tf-idf"],
        expected(TfidfTransformer(sublinear_tf=True), ComplementNB(alpha=0.1)),
    )


def test_probabilities_are_of_the_decisions_of_other_folds() -> None:
    """Sigmoids as scikit-learn fits them to what pipelines of the other folds decide."""
    X, y = load_breast_cancer(return_X_y=True)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    grid = {"kernels": ["linear"], "C": [0.05, 1.0], "cv": 3, "sphere_map": "scaled"}
    found = dhsk.cross_validate(X, y, scoring="neg_log_loss", **grid)
    for C in (0.05, 1.0):
        peer = make_pipeline(StandardScaler(), SVC(C=C, kernel="linear", tol=1e-6))
        held = [peer.fit(X[a], y[a]).decision_function(X[b]) for a, b in folds]
        for fold, (_, test) in enumerate(folds):
            others = [k for k in range(3) if k != fold]
            sigmoid = _SigmoidCalibration().fit(
                np.concatenate([held[k] for k in others]),
                np.concatenate([y[folds[k][1]] for k in others]),
            )
            expected = -log_loss(y[test], sigmoid.predict(held[fold]))
            (own,) = [row.score for row in found.rows if (row.fold, row.C) == (fold, C)]
            assert own == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("low_rank", [None, dhsk.LowRank([30])])
def test_probabilities_of_several_classes_outlive_an_interrupt(
    digits: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, low_rank: Any
) -> None:
    """One by one and against the rest; decisions that wait for other folds are kept."""
    X, y = digits
    ways = {"multi_class": "auto"} if low_rank is None else {"low_rank": low_rank}
    grid = GRID | ways | {"scoring": "roc_auc_ovr"}
    whole = dhsk.cross_validate(X, y, **grid)
    assert 0.9 < whole.best_score_ < 1
    before = weighted.scored_together
    monkeypatch.setattr(weighted, "scored_together", lambda *_: exit(1))
    with pytest.raises(SystemExit):
        dhsk.cross_validate(X, y, out=tmp_path, **grid)
    monkeypatch.setattr(weighted, "scored_together", before)
    again = dhsk.cross_validate(X, y, out=tmp_path, **grid)
    assert [row.score for row in again.rows] == [row.score for row in whole.rows]


def test_held_out_samples_do_not_reach_the_weights(digits: Any) -> None:
    """Other values in the test part of a fold change nothing that the fold learns."""
    X, y = digits
    half = np.arange(len(y)) < 60
    pairs = [(np.flatnonzero(half), np.flatnonzero(~half))]
    other = X.copy()
    other[~half] = (other[~half] == 0) * 3.0
    grid = GRID | {"cv": pairs}
    first, second = (dhsk.cross_validate(Z, y, **grid).rows[1] for Z in (X, other))
    assert (first.n_support, first.gap) == (second.n_support, second.gap)
    assert first.score != second.score


@pytest.mark.slow
def test_both_maps_are_tried_and_the_model_keeps_the_weights(digits: Any, tmp_path: Path) -> None:
    """The model predicts what the estimator with the same map does; so it does when read again."""
    X, y = digits
    options: dict[str, Any] = {"kernels": ["cosine", "linear"], "C": [1.0], "cv": 3}
    both = dhsk.cross_validate(csr_array(X), y, sphere_map="auto", out=tmp_path, **options)
    assert [cell.kernel for cell in both.summary] == [
        "cosine",
        "linear",
        "tf-idf cosine",
        "clr cosine",
    ]
    names = [one.cell.kernel for one in both.decision.compared]
    assert names == ["linear", "cosine", "tf-idf cosine", "clr cosine"]
    written = (tmp_path / "results.csv").read_text().splitlines()
    assert len(written) == 1 + 12
    again = dhsk.cross_validate(csr_array(X), y, sphere_map="auto", out=tmp_path, **options)
    assert again.rows == both.rows  # from checkpoints, even the seconds
    found = dhsk.cross_validate(
        X, y, refit=dhsk.Refit(test=(X[:50], y[:50])), **GRID | {"C": [1.0]}
    )
    expected = dhsk.HeatSVC(kernel="cosine", C=1.0, sphere_map="tfidf").fit(X, y)
    for model in (found.best_estimator_, expected):
        assert model.sphere_map == "tfidf"
        model.save(tmp_path / "m.dhsk")
        read = dhsk.HeatSVC.load(tmp_path / "m.dhsk")
        np.testing.assert_array_equal(read.decision_function(X), model.decision_function(X))
        assert read.model_.map_name == "tfidf"
    np.testing.assert_array_equal(found.best_estimator_.predict(X), expected.predict(X))
    assert found.test is not None
    assert found.test.score == expected.score(X[:50], y[:50])


def test_low_rank_has_its_ranks(digits: Any) -> None:
    """Each at every fold; the model is that of NystromSVC."""
    X, y = digits
    low_rank = dhsk.LowRank([10, 40])
    found = dhsk.cross_validate(X, y, low_rank=low_rank, refit=True, **GRID)
    assert [(c.rank, c.C) for c in found.summary] == [(10, 0.05), (10, 1.0), (40, 0.05), (40, 1.0)]
    assert {row.fold for row in found.rows} == {0, 1, 2}
    assert found.best_estimator_.sphere_map == "tfidf"
    assert found.best_estimator_.score(X, y) > 0.9


def test_C_is_that_of_the_first_fold(digits: Any) -> None:
    """So that a cell has one C in all folds, with its units."""
    found = dhsk.cross_validate(*digits, **GRID | {"C": "auto"})
    assert len(found.summary) == 4
    assert [cell.C_scaled for cell in found.summary] == [0.5, 1.5, 5.0, 15.0]
    assert all(len(found.rows_of[cell.point]) == 3 for cell in found.summary)


def test_what_cannot_be_weighted_is_refused(digits: Any) -> None:
    """A matrix has no features."""
    X, y = digits
    with pytest.raises(dhsk.InputError, match="give samples, not a matrix"):
        dhsk.cross_validate(dhsk.compute_gram(X, "cosine"), y, sphere_map="auto")
    with pytest.raises(dhsk.InputError, match="there is no map 'tf'"):
        dhsk.cross_validate(X, y, sphere_map="tf")
    with pytest.raises(dhsk.InputError, match="there is no map 'tfidf'"):
        dhsk.HeatKernelRidge(sphere_map="tfidf").fit(X, y)


def test_models_weigh_what_they_predict(digits: Any, tmp_path: Path) -> None:
    """New samples get the weights of the fit: as rows that scikit-learn has weighted."""
    X, y = digits
    tfidf = TfidfTransformer().fit(X[:80])
    rows, new = (tfidf.transform(part).toarray() for part in (X[:80], X[80:]))
    expected = dhsk.HeatSVC(C=5.0, sphere_map="projective").fit(rows, y[:80]).decision_function(new)
    own = dhsk.HeatSVC(C=5.0, sphere_map="tfidf").fit(X[:80], y[:80])
    own.save(tmp_path / "m.dhsk")
    for model in (own, dhsk.HeatSVC.load(tmp_path / "m.dhsk")):
        np.testing.assert_allclose(model.decision_function(X[80:]), expected, atol=1e-6)
        np.testing.assert_allclose(model.decision_function(csr_array(X[80:])), expected, atol=1e-6)
