"""Where every candidate only guesses, none is to be taken."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dhsk
from dhsk.commands.cli import commands
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
