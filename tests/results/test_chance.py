"""Where every candidate only guesses, none is to be taken."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

import dhsk
from dhsk.commands.cli import commands
from dhsk.results.chance import guessing
from dhsk.results.paired import deviation

N = 500


def churn() -> tuple[Any, Any]:
    """Samples of which 2 % left, for no reason that is in their values."""
    return np.random.default_rng(0).random((N, 5)), np.arange(N) % 50 == 0


@pytest.mark.parametrize(
    ("kernels", "baselines"),
    [(["cosine"], False), (["cosine", "linear"], False), (["cosine"], True)],
)
def test_no_candidate_is_taken(kernels: Any, baselines: bool, tmp_path: Path) -> None:
    """All predict the largest class: the advice says that, and what to try; the file too."""
    X, y = churn()
    out = dhsk.Output(baselines=baselines)
    found = dhsk.cross_validate(X, y, kernels=kernels, C=1e-6, cv=5, out=out)
    said = found.advice
    assert said.startswith("none is to be used: no score is clearly above 0.9800")
    assert "take" not in said
    assert "--scoring roc_auc or balanced_accuracy" in said
    assert "--class-weight balanced" in said
    assert found.best.std == 0
    found.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["decision"]["sentence"] == said
    found.report(tmp_path / "r.html")
    section = (tmp_path / "r.html").read_text().partition('<section id="common">')[2]
    section = section.partition("</section>")[0]
    assert ("has the same mean" in section) == baselines
    assert "ake " not in section
    assert ".fit(" not in section


def test_no_curve_is_advised_where_a_fold_tests_one_class() -> None:
    """There the area under the curve is refused; the results file keeps which class it is."""
    X, y = churn()
    first, second = np.arange(N).reshape(2, -1)
    folds = [(first, second), (second, first[~y[first]])]
    found = dhsk.cross_validate(X, y, kernels=["cosine"], C=1e-6, cv=folds)
    assert found.data["untested_classes"] == [{"name": True, "samples": 10, "folds": 1}]
    assert "try --scoring balanced_accuracy, which" in found.advice
    with pytest.raises(dhsk.InputError, match="'roc_auc' is not defined on fold 1"):
        dhsk.cross_validate(X, y, kernels=["cosine"], cv=folds, scoring="roc_auc")


def test_the_command_says_so_once(tmp_path: Path) -> None:
    """As the decision, with no second line after it."""
    X, y = churn()
    rows = [",".join(map(str, [*x, int(label)])) for x, label in zip(X, y, strict=True)]
    (tmp_path / "churn.csv").write_text("\n".join(["a,b,c,d,e,churn", *rows]))
    table = str(tmp_path / "churn.csv")
    words = ["cv", table, "--labels", f"{table}:churn", "--kernel", "cosine", "--C", "1e-6"]
    words += ["--out", str(tmp_path / "found")]
    result = CliRunner().invoke(commands, words, catch_exceptions=False)
    assert result.exit_code == 0
    decided = [line for line in result.output.splitlines() if line.startswith("decide:")]
    assert len(decided) == 1
    assert "none is to be used" in decided[0]
    assert "beware" not in result.output
    page = (tmp_path / "found" / "report.html").read_text()
    assert "Decision: none is to be used" in page
    assert "Not clear of guessing" in page
    assert "Best and taken" not in page
    assert "(std\N{NO-BREAK SPACE}0.000)" in page


def test_a_deviation_of_rounding_is_none() -> None:
    """Equal scores whose mean is rounded have one of 1e-16."""
    scores = [0.98] * 5
    scores[2] = np.nextafter(0.98, 1)
    assert np.std(scores) > 0
    assert deviation(scores) == 0
    assert deviation([0.9, 0.8], ddof=1) == np.std([0.9, 0.8], ddof=1)


@pytest.mark.parametrize("scoring", ["f1", "matthews_corrcoef", "balanced_accuracy", "roc_auc"])
def test_guessing_is_what_guesses_score(scoring: str) -> None:
    """By scikit-learn's own scores of 2,000 guesses: mean and spread to 5 %."""
    counts, rng, found = (300, 100), np.random.default_rng(0), []
    scorer = get_scorer(scoring)._score_func  # the function of labels
    true = np.repeat([0, 1], counts)
    for _ in range(2000):
        if scoring == "f1":
            y = rng.random(len(true)) < counts[1] / len(true)
            found.append(scorer(y, np.ones(len(y))))
        else:
            guessed = rng.random(len(true))
            found.append(scorer(true, guessed if scoring == "roc_auc" else guessed < 0.5))
    chance = guessing(scoring, counts)
    assert chance is not None
    assert abs(np.mean(found) - chance.score) < 0.1 * chance.standard_error
    assert np.std(found) == pytest.approx(chance.standard_error, rel=0.05)
    assert guessing("f1", (1, 2, 3)) is None


@pytest.mark.parametrize("counts", [(150, 6), (100, 30, 5), (10,) * 20])
@pytest.mark.parametrize("average", ["f1_macro", "precision_macro", "recall_macro"])
def test_guessing_by_means_over_classes(average: str, counts: tuple[int, ...]) -> None:
    """By scikit-learn's own scores of 1,000 orders of the labels."""
    rng, true = np.random.default_rng(0), np.repeat(np.arange(len(counts)), counts)
    function = get_scorer(average)._score_func
    found = [function(true, rng.permutation(true), average="macro") for _ in range(1000)]
    chance = guessing(average, counts)
    assert chance is not None
    assert abs(np.mean(found) - chance.score) < 0.1 * chance.standard_error
    assert np.std(found) == pytest.approx(chance.standard_error, rel=0.07)


@pytest.mark.parametrize("scoring", ["f1_macro", "precision_macro"])
def test_the_largest_class_alone_is_nothing_learnt(scoring: str) -> None:
    """Its score is below that of guessing, and no advice to take a method."""
    X, y = churn()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found = dhsk.cross_validate(X, y, kernels=["cosine"], C=1e-6, scoring=scoring, refit=False)
    assert found.advice.startswith("none is to be used: no score is clearly above 0.5000")


def test_f1_of_nothing_learnt() -> None:
    """A decision of its scores says so too."""
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 5)), rng.permutation(200) % 2
    found = dhsk.cross_validate(X, y, kernels=["cosine"], C=1, scoring="f1", refit=False)
    assert found.advice.startswith("none is to be used: no score is clearly above 0.6667")
