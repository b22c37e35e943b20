"""The file predictions.csv of `dhsk cv`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import DONE, INTERRUPTED

pytestmark = pytest.mark.usefixtures("own_cache")

WORDS = (
    "cv", "old.jsonl", "--labels", "old.jsonl:group", "--folds", 3, "--time-scale", 1,
    "--C", "1,10", "--out",
)  # fmt: skip


@pytest.fixture
def posts(tmp_path: Path, monkeypatch: Any) -> list[str]:
    """Groups of 45 posts in lines of JSON, with ids."""
    monkeypatch.chdir(tmp_path)
    groups = [("space, moon", "autos", "Öl")[n % 3] for n in range(45)]
    rng = np.random.default_rng(0)
    lines = []
    for n, group in enumerate(groups):
        words = " ".join(rng.choice(["engine", "orbit", "oil", "wheel", f"{group[:2]}x"], 3))
        lines.append(json.dumps({"id": f"p{n}", "group": group, "text": words}))
    Path("old.jsonl").write_text("\n".join(lines))
    return groups


def test_the_predictions_are_those_of_the_results(run: Any, posts: list[str], table: Any) -> None:
    """By id, with the label of the file; named at the end and linked from the page."""
    code, out, err = run(*WORDS, "o")
    assert (code, err.count("beware")) == (DONE, 0)
    assert "output: o/results.json, results.csv, predictions.csv, report.html\n" in out
    assert '<a href="predictions.csv">' in Path("o/report.html").read_text()
    header, rows = table("o/predictions.csv")
    results = json.loads(Path("o/results.json").read_text())
    names = results["classes"]
    assert header == [
        "sample",
        "id",
        "true",
        "predicted",
        "fold",
        *(f"decision_{c}" for c in names),
    ]
    assert [row[:3] for row in rows] == [[f"{n}", f"p{n}", c] for n, c in enumerate(posts)]
    counts = np.zeros((3, 3), dtype=int)
    true, guess = ([names.index(row[k]) for row in rows] for k in (2, 3))
    np.add.at(counts, (true, guess), 1)
    assert counts.tolist() == results["confusion"]
    largest = [names[int(np.argmax([float(value) for value in row[5:]]))] for row in rows]
    assert largest == [row[3] for row in rows]


@pytest.mark.slow
def test_a_run_that_goes_on_writes_the_same_bytes(
    run: Any, posts: list[str], monkeypatch: Any
) -> None:
    """Interrupted before the table is written, when every fit is in the checkpoint, or in it."""
    few = (*WORDS[:-1], "--out")
    assert run(*few, "o")[0] == DONE
    whole = Path("o/predictions.csv").read_bytes()

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    for place in ("write_predictions", "_columns"):
        with monkeypatch.context() as patch:
            patch.setattr(f"dhsk.validation.predictions.{place}", interrupt)
            assert run(*few, "cut")[0] == INTERRUPTED
        assert not Path("cut/predictions.csv").exists()
    assert run(*few, "cut")[0] == DONE
    assert Path("cut/predictions.csv").read_bytes() == whole
    assert run(*few, "cut")[0] == DONE
    assert Path("cut/predictions.csv").read_bytes() == whole


@pytest.mark.slow
def test_a_store_has_no_ids(run: Any, cv: Any, samples: Any, table: Any) -> None:
    """Rows are numbered; of two classes there is one decision."""
    made = run("gram", "x.npy", "--out", "g", "--kernel", "cosine")
    assert made[0] == DONE
    assert cv("g", "--labels", "y.txt", "--C", 1, "--time-scale", 1)[0] == DONE
    header, rows = table("o/predictions.csv")
    assert header == ["sample", "true", "predicted", "fold", "decision_up"]
    assert [row[2] for row in rows] == ["up" if float(row[4]) > 0 else "down" for row in rows]


def test_a_table_of_another_run_is_not_replaced(run: Any, samples: Any) -> None:
    """Alone it is reason enough to ask for --overwrite."""
    Path("o").mkdir()
    Path("o/predictions.csv").write_text("mine")
    code, _, err = run("cv", "x.npy", "--labels", "y.txt", "--out", "o")
    assert (code, "results of an unknown run" in err) == (2, True)
    assert Path("o/predictions.csv").read_text() == "mine"
