"""Strings on the command line: from FASTA files to predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: Any, rng: np.random.Generator) -> None:
    """Forty sequences of two kinds, their labels beside the ids, and twelve new ones."""
    monkeypatch.chdir(tmp_path)
    for name, count in (("old", 40), ("new", 12)):
        rows, lines = [], []
        for n in range(count):
            odds = [0.4, 0.1, 0.1, 0.4] if n % 2 else [0.25] * 4
            text = "".join(rng.choice(list("ACGT"), p=odds, size=60 + n))
            rows.append(f">{name}{n} kind={'rich' if n % 2 else 'poor'}\n{text}\n")
            lines.append(text)
        Path(f"{name}.fasta").write_text("".join(rows))
        Path(f"{name}.txt").write_text("\n".join(lines))
        Path(f"{name}.y.txt").write_text("\n".join("ba"[n % 2] for n in range(count)))


def test_a_model_keeps_the_spectrum(run: Any, table: Any, reads: None) -> None:
    """New records are counted as the old ones were, without the option; ids are kept."""
    words = ("--labels", "old.fasta:kind", "--spectrum", "2-3", "--canonical")
    assert run("train", "old.fasta", *words, "--out", "m")[0] == DONE
    code, out, err = run(
        "predict", "m", "new.fasta", "--labels", "new.fasta:kind", "--out", "p.csv"
    )
    assert (code, "accuracy 1.0000" in out) == (DONE, True), err
    header, rows = table("p.csv")
    assert (header, rows[1]) == (["id", "label"], ["new1", "rich"])
    model = dhsk.HeatSVC.load("m").model_
    assert model.vectorizer.settings == {
        "kind": "spectrum", "length": [2, 3], "letters": "dna", "canonical": True, "min_df": 1,
    }  # fmt: skip
    counts, _ = dhsk.spectrum_counts(
        "new.fasta", (2, 3), canonical=True, vocabulary=model.feature_names
    )
    found = dhsk.HeatSVC.load("m").predict(counts)
    assert found.tolist() == [row[1] for row in rows]
    assert b"pickle" not in Path("m").read_bytes()
    _, out, _ = run("info", "m")
    assert "substrings of 2 to 3 bases A, C, G, T, with their reverse complements" in out
    code, _, err = run("predict", "m", "new.fasta", "--out", "p.csv", "--spectrum", 3)
    assert (code, "were chosen in training" in err) == (BAD_INPUT, True)


@pytest.mark.slow
def test_a_store_keeps_the_spectrum(run: Any, cv: Any, table: Any, reads: None) -> None:
    """A cross-validation of the store makes a model that predicts strings."""
    assert run("gram", "old.txt", "--spectrum", 3, "--out", "g")[0] == DONE
    _, out, _ = run("info", "g")
    assert "substrings of 3 letters" in out
    code, _, err = run("gram", "old.txt", "--spectrum", 2, "--out", "g")
    said = "made with substrings of 3 letters, and now they are substrings of 2 letters"
    assert (code, said in err) == (BAD_INPUT, True), err
    Path("g/gram/c/0/0").unlink()
    code, out, err = run("verify", "g", "--repair", "old.txt")
    assert (code, "1 damaged or missing tiles computed again" in out) == (DONE, True), err
    code, out, err = cv(
        "g", "--labels", "old.y.txt", "--C", 1, "--folds", 3, "--model",
        "--test", "new.txt", "--test-labels", "new.y.txt",
    )  # fmt: skip
    assert code == DONE, err
    assert dhsk.HeatSVC.load("o/model.dhsk").model_.vectorizer.range == (3, 3)
    assert run("predict", "o/model.dhsk", "new.txt", "--out", "p.csv")[0] == DONE
    header, rows = table("p.csv")
    assert header == ["label"]
    assert [row[0] for row in rows[:4]] == ["b", "a", "b", "a"]


def test_a_model_keeps_hashed_columns(run: Any, table: Any, reads: None) -> None:
    """New records have the same columns, and the same decisions as their counts in Python."""
    words = ("--labels", "old.fasta:kind", "--spectrum", "1-3", "--hash", 50)
    assert run("train", "old.fasta", *words, "--canonical", "--out", "m")[0] == DONE
    code, out, err = run(
        "predict", "m", "new.fasta", "--labels", "new.fasta:kind", "--out", "p.csv", "--decision"
    )
    assert (code, "accuracy 1.0000" in out) == (DONE, True), err
    model = dhsk.HeatSVC.load("m").model_
    assert (model.vectorizer.n_features, model.vectorizer.vocabulary) == (50, None)
    assert model.feature_names == tuple(f"#{k}" for k in range(50))
    counts, _ = dhsk.spectrum_counts("new.fasta", (1, 3), canonical=True, n_features=50)
    found = dhsk.HeatSVC.load("m").decision_function(counts)
    _, rows = table("p.csv")
    assert [float(row[-1]) for row in rows] == found.tolist()
    _, out, _ = run("info", "m")
    assert "reverse complements, hashed to 50 columns" in " ".join(out.split())


@pytest.mark.slow
def test_a_store_keeps_hashed_columns(run: Any, cv: Any, table: Any, reads: None) -> None:
    """A cross-validation of the store makes a model that predicts strings."""
    assert run("gram", "old.txt", "--spectrum", 3, "--hash", 64, "--out", "g")[0] == DONE
    _, out, _ = run("info", "g")
    assert "substrings of 3 letters, hashed to 64 columns" in out
    code, _, err = cv("g", "--labels", "old.y.txt", "--C", 1, "--folds", 3, "--model")
    assert code == DONE, err
    assert run("predict", "o/model.dhsk", "new.txt", "--out", "p.csv")[0] == DONE
    assert [row[0] for row in table("p.csv")[1][:4]] == ["b", "a", "b", "a"]
    code, _, err = run("gram", "old.txt", "--spectrum", 3, "--hash", 65, "--out", "g")
    assert (code, Path("g").exists()) == (BAD_INPUT, True), err


REFUSED = {
    ("gram", "old.fasta", "--out", "g"): "say how long the substrings are",
    ("gram", "old.fasta", "--out", "g", "--letters", "dna"): "--letters is for --spectrum",
    ("gram", "old.fasta", "--out", "g", "--canonical"): "--canonical is for --spectrum",
    ("gram", "old.fasta", "--out", "g", "--hash", 64): "--hash is for --spectrum",
    ("gram", "old.fasta", "--out", "g", "--spectrum", 3, "--hash", 0): "must be 1 to 16,777,216",
    ("gram", "old.fasta", "--out", "g", "--spectrum", 3, "--hash", 9, "--min-df", 2): "are rare",
    ("gram", "old.fasta", "--out", "g", "--spectrum", "six"): "is not a length such as 6",
    ("gram", "old.fasta", "--out", "g", "--spectrum", 0): "must have 1 to 64 letters",
    ("gram", "old.txt", "--out", "g", "--spectrum", 3, "--ngrams", 2): "are for words, but",
    ("gram", "x.npy", "--out", "g", "--spectrum", 3): "--spectrum and its options are for texts",
    ("train", "old.txt", "--out", "m", "--spectrum", 3): "name the labels with --labels",
    ("plan", "old.fasta"): "say how long the substrings are",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(map(str, words)))
def test_wrong_options_are_refused(run: Any, reads: None, words: tuple[Any, ...]) -> None:
    """Before any work, with a way out."""
    np.save("x.npy", np.eye(3))
    code, _, err = run(*words)
    assert (code, REFUSED[words] in err) == (BAD_INPUT, True), err
    assert not Path("g").exists()


def test_a_plan_repeats_the_options(run: Any, reads: None) -> None:
    """The next command counts the same."""
    code, out, err = run(
        "plan", "old.fasta", "--spectrum", "1-2", "--letters", "dna", "--canonical", "--hash", 9
    )
    assert code == DONE, err
    options = "--spectrum 1-2 --letters dna --hash 9 --canonical"
    assert f"dhsk gram old.fasta {options} --out STORE" in out
