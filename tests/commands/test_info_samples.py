"""`dhsk info` of samples: what the file is, and commands that run as they are printed."""

import csv
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import BAD_INPUT, DONE

pytestmark = pytest.mark.usefixtures("own_cache")

ROWS = [
    (f"p{n}", f"{'wheel' if n % 2 else 'orbit'} and word {n} " * 4, "ab"[n % 2]) for n in range(40)
]
WINE = "--id-column id --drop-column note"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: Any) -> None:
    """Texts in a table, in lines of JSON and in folders, and numbers in a table."""
    monkeypatch.chdir(tmp_path)
    with Path("posts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "body", "subject"), *ROWS])
    lines = [json.dumps({"id": n, "text": text, "label": label}) for n, text, label in ROWS]
    Path("posts.jsonl").write_text("\n".join(lines))
    for name, text, label in ROWS:
        Path("texts", label).mkdir(parents=True, exist_ok=True)
        Path("texts", label, f"{name}.txt").write_text(text)
    numbers = [f"{n},{n % 3 + 1},{n % 5},{'uv'[n % 2]},x" for n in range(40)]
    Path("wine.csv").write_text("\n".join(["id,ash,acid,vine,note", *numbers]))
    Path("x y.csv").write_text(Path("wine.csv").read_text())
    records = [f">{name}\n{'ACGTTGCA' * 3}{label.upper()}\n" for name, _, label in ROWS]
    Path("reads.fasta").write_text("".join(records))
    Path("lines.txt").write_text("\n".join(text for _, text, _ in ROWS))


@pytest.mark.parametrize(
    ("file", "words", "command"),
    [
        ("posts.csv", "a table", "posts.csv:body --labels posts.csv:subject"),
        ("posts.jsonl", "lines of JSON", "posts.jsonl --labels posts.jsonl:label"),
        ("texts", "one folder for each class", "texts"),
        ("reads.fasta", "strings", "reads.fasta --spectrum 6"),
        ("lines.txt", "lines of text", "lines.txt --spectrum 6"),
        (
            "wine.csv",
            "a table",
            "wine.csv --labels wine.csv:vine --id-column id --drop-column note",
        ),
        (
            "x y.csv",
            "a table",
            "'x y.csv' --labels 'x y.csv:vine' --id-column id --drop-column note",
        ),
    ],
)
def test_samples_are_described_with_commands_that_run(
    run: Any, here: None, file: str, words: str, command: str
) -> None:
    """The plan is printed in full; the line before it is the same with `cv`."""
    code, out, err = run("info", file)
    assert (code, words in out) == (DONE, True), err
    assert f"next:   dhsk cv {command} --out found\n" in out.replace(" --labels LABELS", "")
    *_, plan = out.splitlines()
    assert plan == f"or:     dhsk plan {command}"
    code, out, err = run(*shlex.split(plan)[2:])
    assert code == DONE, err
    assert "matrix              40 x 40 float64" in out


def test_other_samples_have_a_word_to_fill_in(run: Any, here: None) -> None:
    """Labels of arrays are in another file."""
    np.save("x.npy", np.eye(4, dtype=np.float32))
    out = run("info", "x.npy")[1]
    assert "an array (.npy)" in out
    assert "4 x 4 float32" in out
    assert "next:   dhsk cv x.npy --labels LABELS --out found\nor:     dhsk plan x.npy\n" in out
    found = json.loads(run("info", "posts.csv", "--json")[1])
    assert (found["kind"], found["text"], found["label"], found["id"]) == (
        "samples", "body", "subject", "id",
    )  # fmt: skip


def test_what_is_neither_is_refused_as_before(run: Any, here: None) -> None:
    """A file of unknown kind, an empty table, a folder of results, and what is not there."""
    Path("m.dhsk").write_text("none")
    assert run("info", "m.dhsk")[0] == BAD_INPUT
    Path("empty.csv").write_text("")
    assert "empty.csv is empty: it has no rows" in run("info", "empty.csv")[2]
    Path("found").mkdir()
    Path("found", "results.json").write_text("{}")
    assert "found holds the results of dhsk cv: dhsk report found" in run("info", "found")[2]
    assert "nosuch.csv does not exist" in run("info", "nosuch.csv")[2]
