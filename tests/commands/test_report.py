"""`dhsk report`: a page made anew, or several runs side by side."""

import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import BAD_INPUT, DONE

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folders(run: Run, results: Any) -> None:
    """Results of two runs in folders, and the table of one of them."""
    for name, kernels in {"one": ("heat s=1", "cosine"), "two": ("linear",)}.items():
        folder = Path("found") / name
        folder.mkdir(parents=True)
        (folder / "results.json").write_text(json.dumps(results(kernels)))
    Path("found/one/results.csv").write_text("kernel\n")
    Path("found/one/predictions.csv").write_text("sample\n")


def test_the_page_of_a_run_is_made_anew(run: Run, folders: None) -> None:
    """From the folder or its results.json, with links to the files that are there."""
    code, said, _ = run("report", "found/one")
    assert code == DONE
    assert "output: found/one/report.html" in said
    page = Path("found/one/report.html").read_text()
    assert '<a href="results.json">' in page
    assert '<a href="results.csv">' in page
    assert '<a href="predictions.csv">' in page
    assert run("report", "found/two/results.json")[0] == DONE
    assert "results.csv" not in Path("found/two/report.html").read_text()


@pytest.mark.slow
def test_a_page_elsewhere_has_no_links(run: Run, folders: None) -> None:
    """Its neighbours are not those of the results."""
    assert run("report", "found/one", "--out", "page.html")[0] == DONE
    assert 'href="results.json"' not in Path("page.html").read_text()


@pytest.mark.slow
def test_several_runs_make_one_page(run: Run, folders: None) -> None:
    """Runs have the names of their folders and a link to their own page, if there is one."""
    run("report", "found/one")
    code, said, _ = run("report", "found/one", "found/two")
    assert code == DONE
    assert "output: comparison.html" in said
    page = Path("comparison.html").read_text()
    assert "2 cross-validations side by side" in page
    assert '<a href="found/one/report.html">one</a>' in page
    assert "found/two/report.html" not in page
    assert run("report", "found/one", "found/two", "--out", "found/both.html")[0] == DONE
    assert '<a href="one/report.html">one</a>' in Path("found/both.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["found"], "found has no results.json"),
        (["nowhere"], "nowhere has no results.json"),
        (["found/one", "found/one"], "the same run is given twice"),
        (["found/one/results.csv"], "results.csv has no results.json"),
        ([], "Missing argument 'RUN...'"),
    ],
)
def test_what_is_no_run_is_refused(run: Run, folders: None, words: list[str], said: str) -> None:
    """The message says what to give."""
    code, _, complaint = run("report", *words)
    assert code == BAD_INPUT
    assert said in complaint


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--groups", "my groups.txt")])
def test_the_commands_on_the_page_give_the_best_cell_again(
    run: Run, cv: Run, counts: Any, more: tuple[str, ...]
) -> None:
    """They are run as they stand, with the names of the user's files."""
    X = counts(60, 9)
    X[30:, :3] += 1
    np.save("my x.npy", X)
    Path("y.txt").write_text("up\n" * 30 + "down\n" * 30)
    grid = ("--kernel", "heat,gaussian", "--time-scale", "0.5,1.3", "--folds", "3", "--seed", "4")
    Path("my groups.txt").write_text("".join(f"{k // 3}\n" for k in range(60)))
    assert cv("my x.npy", "--labels", "y.txt", *grid, *more)[0] == DONE
    page = Path("o/report.html").read_text()
    block = html.unescape(re.findall("<code>(.*?)</code>", page, flags=re.S)[1])
    for name, own in {"LABELS": "y.txt", "NEW_SAMPLES": "'my x.npy'"}.items():
        block = block.replace(name, own)
    commands = [shlex.split(line) for line in block.splitlines()]
    assert [words[:2] for words in commands] == [
        ["dhsk", "train"], ["dhsk", "predict"], ["dhsk", "cv"],
    ]  # fmt: skip
    for _, *words in commands:
        assert run(*words)[0] == DONE
    best = json.loads(Path("o/results.json").read_text())["best"]
    again = json.loads(Path("again/results.json").read_text())
    assert len(again["summary"]) == 1
    assert (again["best"]["label"], again["best"]["mean"]) == (best["label"], best["mean"])
    assert len(Path("predicted.csv").read_text().splitlines()) >= 60


def test_new_samples_are_read_as_those_of_the_run(run: Run, cv: Run, counts: Any) -> None:
    """The line of `dhsk predict` on the page leaves out labels and ids, as the terminal's does."""
    rows = [f"s{k},{'ab'[k % 2]},{','.join(map(str, row))}" for k, row in enumerate(counts(40, 4))]
    Path("t.csv").write_text("\n".join(["id,kind,u,v,w,x", *rows]) + "\n")
    words = ("--labels", "t.csv:kind", "--id-column", "id", "--kernel", "cosine", "--C", "1")
    code, out, _ = cv("t.csv", *words, "--model")
    assert code == DONE
    page = html.unescape(Path("o/report.html").read_text())
    (line,) = re.findall("dhsk predict model.dhsk NEW_SAMPLES.*", page)
    options = " --drop-column kind --id-column id --out predicted.csv"
    assert line == f"dhsk predict model.dhsk NEW_SAMPLES{options}"
    assert f"dhsk predict o/model.dhsk t.csv{options}" in out
