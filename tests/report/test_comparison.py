"""One page of several runs: the best first, paired differences, what differs."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.report.comparison import paired, same_folds, write_comparison
from dhsk.results.parts import Results
from dhsk.results.schema import read_results
from tests.browser import CHROMIUM, WHY_NOT, Browser

Make = Callable[..., dict[str, Any]]


def better(data: dict[str, Any], by: list[float]) -> dict[str, Any]:
    """Return results whose best cell gains on each fold."""
    for row in data["rows"]:
        if (row["label"], row["C"]) == (data["best"]["label"], data["best"]["C"]):
            row["score"] += by[row["fold"]]
    for cell in (*data["summary"], data["best"]):
        if (cell["label"], cell["C"]) == (data["best"]["label"], data["best"]["C"]):
            cell["mean"] = 0.9281 + float(np.mean(by))
    return data


@pytest.fixture
def runs(results: Make) -> dict[str, Results]:
    """Two runs on the same folds, the second of them better, and one on others."""
    counts = results(("heat s=1", "cosine"))
    rows = better(results(("heat s=1", "linear")), [0.01, 0.02, 0.03, 0.02, 0.02])
    rows["samples"] = {**rows["samples"], "source": "tfidf.npz", "fingerprint": "ff"}
    other = results(("gaussian sigma=2",), n_folds=3)
    data = {"counts": counts, "tf-idf": rows, "three folds": other}
    return {name: read_results(Results, one) for name, one in data.items()}


@pytest.fixture
def page(runs: dict[str, Results], tmp_path: Path) -> Path:
    """Their page, with a link to one of them."""
    path = tmp_path / "comparison.html"
    write_comparison(runs, path, {"counts": "counts/report.html"})
    return path


def test_differences_are_paired(runs: dict[str, Results]) -> None:
    """Mean and standard error are those of the fold-wise differences, worked out by hand.

    A fold is tested on a quarter of what it is trained on.
    """
    found = paired(runs["tf-idf"], runs["counts"])
    assert found.difference == pytest.approx(0.02)
    assert found.standard_error == pytest.approx(math.sqrt(0.0002 / 4 * (1 / 5 + 1 / 4)))


def test_folds_are_the_same_only_with_the_same_labels(results: Make) -> None:
    """Features may differ; labels, numbers of folds and scorers may not."""

    def run(**changes: Any) -> Results:
        return read_results(Results, results(**changes))

    one = run(settings={"labels": "a1"})
    assert same_folds(one, run(samples={"fingerprint": "other"}))
    assert not same_folds(one, run(settings={"labels": "b2"}))
    assert not same_folds(one, run(n_folds=3))
    assert not same_folds(one, run(scoring="roc_auc"))
    assert not same_folds(one, run(class_counts=[90, 110]))


def test_the_page_says_which_is_better_and_by_how_much(page: Path, parsed: Any) -> None:
    """First sentence, table sorted by the mean, differences, kernels, classes, facts."""
    text = parsed(page).text
    assert "3 cross-validations side by side" in text
    assert "Highest mean accuracy: 0.948 (std 0.006), of tf-idf (linear kernel, C = 10)" in text
    assert "tf-idf 0.948 0.006 – linear 10" in text
    assert "counts 0.928 0.006 0.020 ± 0.005 cosine 10" in text
    assert "three folds 0.928 0.006 other folds gaussian sigma=2 10" in text
    assert "linear – 0.948 –" in text
    assert "course 100 0.900 0.900 0.900" in text
    assert "samples counts.npz tfidf.npz counts.npz" in text
    assert "The same in all runs: map to the sphere, classes" in text


def test_other_scorers_are_not_compared(results: Make, tmp_path: Path) -> None:
    """A mean accuracy and an area under a curve have no difference."""
    found = {name: read_results(Results, results(scoring=name)) for name in ("accuracy", "roc_auc")}
    write_comparison(found, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "scored by ROC AUC, accuracy: their scores cannot be compared" in text
    assert ">scorer</th>" in text
    assert "other folds" in text
    assert "by fold</h2>" not in text


def test_a_missing_folder_is_named(runs: dict[str, Results], tmp_path: Path) -> None:
    """As for the page of one run."""
    with pytest.raises(InputError, match="nowhere"):
        write_comparison(runs, tmp_path / "nowhere" / "page.html")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_it_opens_without_complaints(page: Path) -> None:
    """On a phone and on a desk, without requests and without scrolling sideways."""
    with Browser() as browser:
        for width in (380, 1280):
            opened = browser.open(page, width)
            assert opened.complaints == []
            assert opened.width <= width
