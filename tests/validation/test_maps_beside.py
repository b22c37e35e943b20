"""Log-ratios beside another map: what is tried, and that it is what the map alone gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack

import dhsk
from dhsk.samples.looks import are_compositions

NO_METHODS = dhsk.Output(baselines=False)


def counts(n: int = 90, dim: int = 40) -> tuple[Any, Any]:
    """Counts at depths that differ, of two classes that rare parts tell; frequent ones vary."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    frequent = np.arange(dim) < 8
    rates = 1.0 + 1.5 * (y[:, None] == np.arange(dim) % 7) * ~frequent
    rates *= np.where(frequent, 100 * rng.lognormal(sigma=2.0, size=(n, dim)), 1.0)
    return rng.poisson(rates * rng.uniform(0.5, 3, (n, 1))).astype(float) + np.eye(n, dim), y


def scores(found: Any, kernel: str) -> dict[Any, float]:
    """Scores of a family, by its C, time and fold."""
    return {(row.C, row.time, row.fold): row.score for row in found.rows if row.kernel == kernel}


def families(found: Any) -> set[str]:
    """Families of kernels that were tried."""
    return {cell.kernel for cell in found.summary}


@pytest.mark.parametrize("low_rank", [None, dhsk.LowRank(30)])
def test_scores_are_those_of_the_map_alone(low_rank: Any) -> None:
    """Of cosine and heat, exact and of low rank; the winner is fitted under its map."""
    X, y = counts()
    given: dict[str, Any] = {"cv": 3, "low_rank": low_rank, "out": NO_METHODS, "refit": True}
    found = dhsk.cross_validate(X, y, sphere_map="auto", **given)
    alone = dhsk.cross_validate(X, y, sphere_map="clr", **given)
    for kernel in ("cosine", "heat"):
        assert scores(found, f"clr {kernel}") == scores(alone, kernel)
    assert found.best.kernel.startswith("clr ")
    assert found.samples.sphere_map == "clr"
    assert found.best_estimator_.sphere_map == "clr"
    again = dhsk.cross_validate(X, y, sphere_map="clr", **given)
    expected = again.best_estimator_.decision_function(X)
    np.testing.assert_array_equal(found.best_estimator_.decision_function(X), expected)


def test_the_page_says_how_to_make_the_winner(tmp_path: Path) -> None:
    """With its map."""
    X, y = counts()
    found = dhsk.cross_validate(X, y, sphere_map="auto", cv=3, out=NO_METHODS)
    found.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "sphere_map=&#x27;clr&#x27;" in page


def among_zeros(X: Any) -> Any:
    """The counts among so many features without any that 2 % of the entries are not zero."""
    n, dim = X.shape
    width = int(50 * np.count_nonzero(X) / n)
    return csr_array(hstack([csr_array(X), csr_array((n, width - dim))]))


SCALED = {"scaled gaussian", "scaled linear"}


@pytest.mark.parametrize(
    ("change", "tried"),
    [
        (lambda X: X, {"heat", "cosine", "clr cosine", *SCALED}),
        (lambda X: X / X.sum(axis=1, keepdims=True), {"heat", "cosine", "linear", "clr cosine"}),
        (csr_array, {"heat", "cosine", "clr cosine"}),
        (among_zeros, {"heat", "cosine", "tf-idf cosine"}),
        (lambda X: X + 0.5, {"heat", "cosine", "linear", *SCALED}),
    ],
    ids=["depths differ", "proportions", "sparse", "few entries", "not whole"],
)
def test_few_dense_compositions_are_tried_unasked(change: Any, tried: set[str]) -> None:
    """With the cosine alone, which no other kernel of theirs is far from.

    Tables that may be measurements, as those of other totals, have scaled columns tried too.
    """
    X, y = counts()
    found = dhsk.cross_validate(change(X), y, cv=2, out=NO_METHODS)
    assert families(found) == tried
    found = dhsk.cross_validate(change(X), y, kernels=["cosine"], cv=2, out=NO_METHODS)
    assert families(found) == {"cosine"}


def test_many_samples_are_not_tried_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would take a kernel more on all of them."""
    monkeypatch.setattr("dhsk.validation.runs.FEW", 90)
    X, y = counts()
    assert families(dhsk.cross_validate(X, y, cv=2, out=NO_METHODS)) == {"heat", "cosine", *SCALED}


def test_whole_numbers_of_other_units_are_scaled_too() -> None:
    """Ages and grades may be counts, to the eye: the folds tell, and here proportions do worse."""
    rng = np.random.default_rng(0)
    lows, highs = np.array([[20, 90, 150, 150], [80, 180, 300, 400]])
    X = rng.integers(lows, highs, (200, 4))
    y = (X[:, 0] - 50) / 15 + (X[:, 1] - 135) / 25 + rng.normal(0, 0.5, 200) > 0
    found = dhsk.cross_validate(X, y, cv=3, out=NO_METHODS)
    assert families(found) == {"heat", "cosine", "linear", *SCALED}
    best = {
        name: max(one.mean for one in found.summary if one.kernel == name)
        for name in ("heat", "scaled linear")
    }
    assert best["scaled linear"] > best["heat"] + 0.03


def test_what_seems_to_be_compositions() -> None:
    """Neither signs nor what is not finite, which are refused later in words of their own."""
    X, _ = counts()
    assert are_compositions(X)
    for wrong in (-1.0, np.nan, np.inf):
        other = X.copy()
        other[0, 0] = wrong
        assert not are_compositions(other)


def test_sparse_counts_like_those_of_words_are_tried_on_tfidf() -> None:
    """Where totals differ, as those of texts; of presence alone, or of few zeros, they are not."""
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    lengths = rng.integers(10, 60, 60)
    X = np.zeros((60, 3000))
    for row, length in enumerate(lengths):
        np.add.at(X[row], rng.integers(1500 * y[row], 1500 * y[row] + 1500, length), 1.0)
    words = dhsk.cross_validate(csr_array(X), y, cv=3, out=NO_METHODS)
    assert "tf-idf cosine" in families(words)
    for other in (X, csr_array(X / X.sum(axis=1, keepdims=True)), csr_array(counts()[0][:60])):
        found = dhsk.cross_validate(other, y, cv=3, out=NO_METHODS)
        assert "tf-idf cosine" not in families(found)
