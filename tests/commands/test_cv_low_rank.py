"""`dhsk cv --rank`, run as a person runs it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.commands.cv_table import print_result
from dhsk.commands.options import LOSSES as LOSS_OPTIONS
from dhsk.commands.options import SELECTIONS as SELECTION_OPTIONS
from dhsk.linear.losses import LOSSES
from dhsk.results.low_rank import SELECTIONS
from dhsk.results.schema import read_results


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: Any) -> Any:
    """600 digits, and their labels, in files of the current folder."""
    monkeypatch.chdir(tmp_path)
    X, y = load_digits(return_X_y=True)
    np.save("x.npy", X[:600])
    np.save("t.npy", X[600:900])
    Path("y.txt").write_text("\n".join(map(str, y[:600])) + "\n")
    Path("ty.txt").write_text("\n".join(map(str, y[600:900])) + "\n")
    return X[:600], y[:600]


@pytest.fixture
def asked(low_rank: Any, monkeypatch: Any) -> dict[str, Any]:
    """What `cross_validate` was called with; it gives three kernels at two ranks."""
    given: dict[str, Any] = {}
    found = low_rank(("heat s=0.7", "heat s=1", "cosine"), ranks=(50, 100), C=(1.0,))
    for row in found["rows"]:
        row["converged"] = row["rank"] > 50

    def cross_validate(*_: Any, **options: Any) -> dhsk.CvResult:
        given.update(options)
        return read_results(dhsk.CvResult, found)

    monkeypatch.setattr("dhsk.validation.cross_validate.cross_validate", cross_validate)
    return given


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {}),
        (("--rank", "50"), {"rank": [50]}),
        (("--rank", "100,50", "--loss", "logistic"), {"rank": [100, 50], "loss": "logistic"}),
        (("--rank", "50", "--selection", "uniform"), {"rank": [50], "selection": "uniform"}),
        (("--rank", "50", "--oversampling", "2"), {"rank": [50], "oversampling": 2.0}),
    ],
)
def test_options_pass_to_the_function(
    words: Any, expected: Any, cv: Any, digits: Any, asked: dict[str, Any]
) -> None:
    """What is not given is left to the defaults of the function."""
    assert cv("x.npy", "--labels", "y.txt", *words)[0] == DONE
    assert asked["low_rank"] == (dhsk.LowRank(**expected) if expected else None)


def test_every_choice_of_the_library_is_an_option() -> None:
    """The command offers what the function takes, the defaults first."""
    assert SELECTION_OPTIONS == SELECTIONS
    assert tuple(LOSSES) == LOSS_OPTIONS


@pytest.mark.slow
@pytest.mark.usefixtures("asked")
def test_the_printed_table_has_ranks(cv: Any, digits: Any) -> None:
    """The best cell of every kernel and rank, its trace error and gradient; then the winner."""
    code, out, _ = cv("x.npy", "--labels", "y.txt", "--rank", "50,100")
    head, *lines = (re.split(r"\s{2,}", line.strip()) for line in out.splitlines()[:5])
    assert code == DONE
    assert head == ["kernel", "rank", "C", "mean accuracy", "std", "trace error", "gradient norm"]
    assert lines == [
        ["cosine", "100", "1", "0.5210", "0.0061", "0.035", "2.1e-04"],
        ["heat s=1", "100", "1", "0.5110", "0.0061", "0.033", "2.1e-04"],
        ["cosine", "50", "1", "0.5010", "0.0061", "0.14", "2.1e-04"],
        ["heat s=1", "50", "1", "0.4910", "0.0061", "0.13", "2.1e-04"],
    ]
    assert "(the best candidate of each kernel and rank; all 6 in results.csv)" in out
    assert "best:   cosine, rank 100, C = 1: mean accuracy 0.5210 over 5 folds" in out
    assert "beware: 15 fits did not reach the tolerance of 0.001" in out
    assert "better may lie outside" not in out  # no score is clear of guessing
    assert "What a larger rank brings" in Path("o/report.html").read_text()


def test_a_rank_that_ends_the_grid_is_told(low_rank: Any, capsys: Any) -> None:
    """Beside what is taken, as on the page; one rank alone ends nothing."""
    said = "beware: what is taken has the largest rank that was tried: better may lie outside"
    for ranks, told in (((500, 1000), True), ((500,), False)):
        print_result(read_results(dhsk.CvResult, low_rank(("heat s=1",), ranks=ranks)))
        assert (said in " ".join(capsys.readouterr().out.split())) == told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x.npy", "--selection", "uniform"), "--selection needs --rank"),
        (("x.npy", "--loss", "logistic"), "--loss needs --rank"),
        (("x.npy", "--oversampling", "2"), "--oversampling needs --rank"),
        (("x.npy", "--rank", "50", "--oversampling", "0.5"), "0.5 is not in the range"),
        (("x.npy", "--rank", "0"), "rank must be .*0"),
        (("x.npy", "--rank", "50,-1"), "rank must be .*-1"),
        (("x.npy", "--rank", "50,many"), "'50,many' is not a list of whole numbers"),
        (("x.npy", "--rank", "50", "--selection", "best"), "'best' is not one of 'rpcholesky'"),
        (("x.npy", "--rank", "50", "--loss", "hinge"), "'hinge' is not one of 'squared_hinge'"),
        (("g", "--rank", "50"), "landmarks among samples: give samples, not a matrix"),
    ],
)
def test_senseless_options_are_refused(words: Any, message: str, cv: Any, digits: Any) -> None:
    """Exit code 2 and one sentence, before any result is written."""
    if words[0] == "g":
        dhsk.compute_gram(digits[0], kernel=dhsk.CosineKernel(), store="g")
    code, out, err = cv(*words, "--labels", "y.txt")
    assert code == BAD_INPUT
    sentence = err.strip().splitlines()[-1]
    assert re.search(message, sentence), sentence
    assert "Traceback" not in err + out
    assert not Path("o/results.json").exists()


def test_help_tells_of_low_rank(run: Any) -> None:
    """The options say what they are and what they need."""
    out = " ".join(run("cv", "--help-all")[1].split())
    assert "--rank WHOLE NUMBERS Fit on Nyström features, this many, such as 500,1000,2000." in out
    assert "With --rank: how landmarks are chosen. [default: rpcholesky]" in out
    assert "With --rank: loss of a margin; logistic is for `dhsk predict --proba`. [default:" in out


@pytest.mark.slow
def test_digits_of_low_rank(cv: Any, digits: Any) -> None:
    """All rows and columns, less error at the larger rank, and the words of low rank."""
    words = ("x.npy", "--labels", "y.txt", "--rank", "100,20", "--time-scale", "0.7", "--C", "1,10",
             "--folds", 3)  # fmt: skip
    code, out, err = cv(*words)
    assert code == DONE, err
    data = json.loads(Path("o/results.json").read_text())
    assert data["low_rank"] == {
        "rank": [20, 100],
        "selection": "rpcholesky",
        "loss": "squared_hinge",
        "oversampling": 1.0,
        "landmark_tol": 0.0,
        "random_state": 0,
    }
    assert len(data["rows"]) == 2 * 2 * 3
    errors = {row["rank"]: row["trace_error"] for row in data["summary"]}
    assert 0 < errors[100] < errors[20] < 1
    assert (data["best"]["label"], data["best"]["rank"]) == ("heat s=0.7", 100)
    X, y = digits
    result = dhsk.cross_validate(
        X, y.astype(str), time_scale=0.7, C=[1, 10], low_rank=dhsk.LowRank([100, 20]), cv=3
    )
    assert data["best"]["mean"] == result.best_score_
    assert "best:   heat s=0.7, rank 100, C = " in out
    assert "Nyström features" in Path("o/report.html").read_text()
    assert cv(*words)[0] == DONE  # from the journal
    again = json.loads(Path("o/results.json").read_text())
    assert again["rows"] == data["rows"]


@pytest.mark.slow
def test_model_of_low_rank_predicts(run: Any, cv: Any, digits: Any) -> None:
    """The best cell on all samples, scored on those held out, and a file that predicts."""
    code, out, err = cv(
        "x.npy", "--labels", "y.txt", "--rank", 60, "--selection", "uniform", "--loss", "logistic",
        "--time-scale", 1, "--C", 10, "--folds", 2, "--model", "--test", "t.npy",
        "--test-labels", "ty.txt",
    )  # fmt: skip
    assert code == DONE, err
    data = json.loads(Path("o/results.json").read_text())
    score = data["test"]["score"]
    assert f"test:   accuracy {score:.4f} on 300 samples held out" in out
    assert "or:     dhsk predict o/model.dhsk x.npy --out predicted.csv" in out
    assert run("predict", "o/model.dhsk", "t.npy", "--out", "p.csv")[0] == DONE
    assert run("predict", "o", "t.npy", "--out", "q.csv")[0] == DONE
    assert Path("q.csv").read_text() == Path("p.csv").read_text()
    for suffix in ("npy", "csv.gz"):
        code, _, err = run("predict", "o", "t.npy", "--out", f"q.{suffix}")
        assert (code, "call it .csv" in err) == (BAD_INPUT, True)
    Path("o/model.dhsk").unlink()
    code, _, err = run("predict", "o", "t.npy", "--out", "q.csv")
    assert (code, "o has no model: run dhsk cv with --model" in err) == (BAD_INPUT, True)
    predicted = [line.split(",")[0] for line in Path("p.csv").read_text().splitlines()[1:]]
    truth = Path("ty.txt").read_text().split()
    assert np.mean([a == b for a, b in zip(predicted, truth, strict=True)]) == pytest.approx(score)
