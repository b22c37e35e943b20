"""`dhsk cv --baselines` shows common methods of scikit-learn beside the kernels."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.datasets import load_wine

import dhsk
from dhsk.commands.cv_table import print_result
from dhsk.results.baselines import Baselines
from dhsk.validation import methods

GRID = ("--folds", "3", "--time-scale", "1", "--C", "1")


@pytest.fixture
def words(run: Any, counts: Any) -> tuple[str, ...]:
    """A command on sparse counts."""
    X = counts(60, 12)
    X[30:, :2] += 1
    save_npz("x.npz", csr_array(np.pad(X, ((0, 0), (0, 480)))))  # as sparse as words are
    Path("y.txt").write_text("\n".join(np.repeat(["up", "down"], 30)) + "\n")
    return ("cv", "x.npz", "--labels", "y.txt")


@pytest.mark.slow
def test_table_decision_and_page_name_the_best_method(run: Any, words: tuple[str, ...]) -> None:
    """Results without them get them when they are asked for; then nothing is computed again."""
    words = (*words, *GRID, "--out", "o")
    code, out, _ = run(*words)
    assert (code, "SVC" in out) == (0, False)
    code, out, _ = run(*words, "--baselines")
    assert code == 0
    result = dhsk.CvResult.from_json("o/results.json")
    best = result.baselines.best_of_each
    assert [one.method for one in best] == sorted(
        (method.name for method in methods.OF_COUNTS),
        key=lambda name: -max(one.mean for one in result.baselines.tried if one.method == name),
    )
    for one in best:
        (line,) = [line for line in out.splitlines() if line.startswith(f"{one.method}  ")]
        figures = [
            "–" if one.C is None else f"{one.C:g}",
            f"{one.mean:.4f}",
            f"{one.std:.4f}",
            "–",
            "–",
        ]
        assert line.removeprefix(one.method).split() == figures
    assert "(of scikit-learn, on the same folds: " in out
    said = " ".join(out.split("decide:")[1].split("output:")[0].split())
    assert said == result.advice
    assert result.beside is not None
    page = Path("o/report.html").read_text()
    assert result.beside.words.replace("take", "Take", 1) in page or result.beside.words in page
    assert result.beside.baseline.code.replace('"', "&quot;") in page
    code, out, _ = run(*words, "--baselines")
    assert "nothing is computed again" in out


def test_what_was_left_out_is_said(counts: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason, and the option that tries them all."""
    y = np.repeat(["up", "down"], 30)
    result = dhsk.cross_validate(counts(60, 12), y, time_scale=1, C=1, cv=2)
    print_result(result)
    assert "common methods" not in capsys.readouterr().out
    why = "LinearSVC on tf-idf takes about 40 s, more than a fifth of this run"
    print_result(replace(result, baselines=Baselines(left_out=(why,))))
    said = " ".join(capsys.readouterr().out.split())
    assert f"(common methods left out: {why}; --baselines tries these too)" in said
    failed = "LinearSVC on tf-idf failed (ValueError: no reason)"
    print_result(replace(result, baselines=Baselines(left_out=(failed,))))
    assert "--baselines" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_method_that_is_ahead_is_not_the_model(run: Any) -> None:
    """The model is of the kernels, and the page has the code of the method."""
    X, y = load_wine(return_X_y=True)
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(map(str, y)))
    given = ("--kernel", "cosine", "--C", "10", "--folds", "3", "--baselines", "--model")
    code, out, _ = run("cv", "x.npy", "--labels", "y.txt", *given, "--out", "o")
    assert code == 0
    result = dhsk.CvResult.from_json("o/results.json")
    assert result.beside is not None
    assert result.beside.ahead
    name = result.beside.baseline.method
    said = f"model:  of {result.best.brief}; the code of {name}, the one to take, is on the page"
    assert said in out.splitlines()
    page = Path("o/report.html").read_text()
    assert f"Take {name}" in page
    assert (
        f"{result.beside.baseline.mean:.3f}" in page.partition("Best and taken of the kernels")[0]
    )
    assert "Best and taken of the kernels: cosine kernel" in page
    assert result.beside.baseline.code.replace('"', "&quot;") in page
