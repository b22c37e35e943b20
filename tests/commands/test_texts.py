"""Raw texts on the command line: from a file of posts to predictions, and sentences."""

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.report.cells import common_method
from dhsk.report.reproduce import counting

pytestmark = pytest.mark.usefixtures("own_cache")

POSTS = [
    f"the {'engine and wheel' if n % 2 else 'rocket orbit'} number {n} {'oil' * (n % 3)} moon"
    for n in range(40)
]
GROUPS = [("space", "autos")[n % 2] for n in range(40)]


@pytest.fixture
def posts(tmp_path: Path, monkeypatch: Any) -> None:
    """Thirty posts to train, ten more to predict, in lines of JSON and in folders."""
    monkeypatch.chdir(tmp_path)
    for name, part in (("old", slice(0, 30)), ("new", slice(30, 40))):
        rows = list(zip(range(40), GROUPS, POSTS, strict=True))[part]
        lines = [json.dumps({"id": f"p{n}", "group": g, "text": text}) for n, g, text in rows]
        Path(f"{name}.jsonl").write_text("\n".join(lines))
        table = [f"{n}\t{g}\t{text}" for n, g, text in rows]
        Path(f"{name}.tsv").write_text("\n".join(["id\tgroup\ttext", *table]))
        for n, g, text in rows:
            Path(name, g).mkdir(parents=True, exist_ok=True)
            Path(name, g, f"{n}.txt").write_text(text)


@pytest.mark.parametrize(
    ("train", "predict"),
    [
        (
            ["old.jsonl", "--labels", "old.jsonl:group"],
            ["new.jsonl", "--labels", "new.jsonl:group"],
        ),
        (["old.tsv:text", "--labels", "old.tsv:group"], ["new.tsv", "--labels", "new.tsv:group"]),
        (["old"], ["new", "--labels", "new"]),
        (["old", "--rank", 20], ["new.jsonl", "--labels", "new.jsonl:group"]),
    ],
    ids=["jsonl", "table", "folder", "low rank"],
)
@pytest.mark.slow(beyond=1)
def test_a_model_keeps_the_vocabulary(
    run: Any, table: Any, posts: None, train: list[Any], predict: list[Any]
) -> None:
    """New texts are counted as the old ones were, in any form; predictions carry the ids."""
    words = ("--out", "m", "--min-df", 3, "--stop-words", "english")
    assert run("train", *train, *words)[0] == DONE
    code, out, err = run("predict", "m", *predict, "--out", "p.csv")
    assert (code, "accuracy 1.0000" in out) == (DONE, True), err
    header, rows = table("p.csv")
    assert header == ["id", "label"]
    assert {row[0] for row in rows} in (
        {f"p{n}" for n in range(30, 40)},
        {str(n) for n in range(30, 40)},
        {f"{g}/{n}.txt" for n, g in enumerate(GROUPS) if n >= 30},
    )
    assert b"pickle" not in Path("m").read_bytes()
    loaded = (dhsk.NystromSVC if "--rank" in train else dhsk.HeatSVC).load("m")
    oracle = CountVectorizer(min_df=3, stop_words="english")
    oracle.fit(POSTS[:30])
    assert loaded.model_.feature_names == tuple(oracle.get_feature_names_out())
    vectorizer = loaded.model_.vectorizer.to_sklearn()
    np.testing.assert_array_equal(loaded.predict(vectorizer.transform(POSTS[30:])), GROUPS[30:])


@pytest.mark.slow
def test_a_cross_validation_keeps_the_vocabulary(cv: Any, run: Any, posts: None) -> None:
    """Its model predicts texts, and its test texts are counted by the words of the others."""
    code, out, err = cv(
        "old.jsonl", "--labels", "old.jsonl:group", "--time-scale", 1, "--C", 1, "--folds", 3,
        "--model", "--test", "new.tsv", "--test-labels", "new.tsv:group", "--min-df", 2,
    )  # fmt: skip
    assert (code, "test:   accuracy 1.0000" in out) == (DONE, True), err
    assert "or:     dhsk predict o/model.dhsk old.jsonl --out predicted.csv" in out
    code, out, _ = run("predict", "o/model.dhsk", "new", "--labels", "new", "--out", "p.csv")
    assert (code, "accuracy 1.0000" in out) == (DONE, True)
    page = html.unescape(Path("o/report.html").read_text())
    command = re.search(r"dhsk (train old.jsonl:text .* --out model.dhsk)", page)
    assert command is not None
    assert run(*shlex.split(command[1]))[0] == DONE  # counts the same words
    made, kept = (dhsk.HeatSVC.load(name) for name in ("model.dhsk", "o/model.dhsk"))
    assert made.model_.feature_names == kept.model_.feature_names


@pytest.mark.slow
def test_a_store_keeps_the_vocabulary(cv: Any, run: Any, posts: None) -> None:
    """Of a Gram store alone a model knows its words."""
    assert run("gram", "old", "--out", "g", "--ngrams", 2)[0] == DONE
    assert cv("g", "--labels", "old", "--C", 1, "--folds", 3, "--model")[0] == DONE
    code, out, _ = run("predict", "o/model.dhsk", "new.jsonl", "--labels", "new.jsonl:group",
                       "--out", "p.csv")  # fmt: skip
    assert (code, "accuracy 1.0000" in out) == (DONE, True)


@pytest.mark.slow
def test_a_text_file_is_one_text_for_a_model_of_words(run: Any, table: Any, posts: None) -> None:
    """As it would be in the folder that the model was trained on."""
    assert run("train", "old", "--out", "m")[0] == DONE
    Path("one.txt").write_text(POSTS[30])
    code, _, err = run("predict", "m", "one.txt", "--out", "p.csv")
    assert (code, table("p.csv")[1][0]) == (DONE, ["one.txt", GROUPS[30]]), err


@pytest.mark.slow
def test_other_options_on_reading_are_named(cv: Any, run: Any, posts: None) -> None:
    """Where only they differ, the samples in the file are the same."""
    words = ("old.jsonl", "--labels", "old.jsonl:group", "--time-scale", 1, "--C", 1, "--folds", 3)
    assert cv(*words)[0] == DONE
    code, _, err = cv(*words, "--min-df", 3)
    assert code == BAD_INPUT
    said = "other options on reading the samples (none, now --min-df 3): give another --out"
    assert said in " ".join(err.split())


def test_refusals_say_what_to_do(run: Any, posts: None) -> None:
    """Usage and input: exit code 2 and a sentence."""
    np.save("x.npy", np.ones((3, 3)))
    cases = {
        ("train", "old.tsv:text", "--out", "m"): "name the labels with --labels",
        ("train", "old.jsonl", "--out", "m"): "holds the labels as --labels old.jsonl:NAME",
        ("gram", "x.npy", "--out", "g", "--min-df", 2): "are for texts, but x.npy holds numbers",
        ("gram", "old.jsonl:body", "--out", "g"): "has no field 'body': its fields are id, group",
        ("gram", "old.jsonl", "--out", "g", "--min-df", 99): "in 99 or more texts: give a smaller",
        ("cv", "old.tsv:text", "--out", "o"): "name the labels with --labels",
        ("gram", "old.jsonl", "--out", "g", "--min-df", 0.01): "shares of texts are not taken",
        ("gram", "old.jsonl", "--out", "g", "--min-df", 0): "'0' is not a number of texts such",
        ("gram", "old.jsonl", "--out", "g", "--ngrams", "2-3"): "neighbouring words such as 2, or",
    }
    for words, sentence in cases.items():
        code, _, err = run(*words)
        assert (code, sentence in " ".join(err.split())) == (BAD_INPUT, True), err


def test_lengths_of_terms_from_one_on(run: Any, posts: None) -> None:
    """As CountVectorizer has them."""
    for given, out in (("2", "m"), ("1-2", "n")):
        words = ("--labels", "old.jsonl:group", "--ngrams", given, "--out", out)
        assert run("train", "old.jsonl", *words)[0] == DONE
    m, n = (dhsk.HeatSVC.load(name) for name in "mn")
    assert m.model_.vectorizer == n.model_.vectorizer
    assert n.model_.vectorizer.ngrams == 2


def test_a_model_of_counts_takes_no_texts(run: Any, samples: Any, posts: None) -> None:
    """Words of new texts are no columns of an array; options of a model of texts are kept."""
    assert run("train", "x.npy", "--labels", "y.txt", "--out", "m")[0] == DONE
    code, _, err = run("predict", "m", "new.jsonl", "--out", "p.csv")
    assert (code, "holds texts, but m was trained on counts" in err) == (BAD_INPUT, True)
    assert run("train", "old", "--out", "m")[0] == DONE
    code, _, err = run("predict", "m", "new.jsonl", "--out", "p.csv", "--min-df", 3)
    assert (code, "were chosen in training" in err) == (BAD_INPUT, True)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("old.jsonl", ("--labels", "old.jsonl:group", "--min-df", 2)),
        ("old.tsv:text", ("--labels", "old.tsv:group", "--id-column", "id")),
        ("old", ()),
    ],
    ids=["jsonl", "table", "folder"],
)
def test_the_next_command_runs_as_it_is_printed(
    run: Any, table: Any, posts: None, source: str, words: tuple[Any, ...]
) -> None:
    """It reads the texts as the training did, and leaves out what the model has kept."""
    code, out, err = run("train", source, *words, "--out", "m")
    assert code == DONE, err
    (command,) = re.findall(r"^next:   dhsk (.*)$", out, re.MULTILINE)
    assert "--min-df" not in command
    assert run(*shlex.split(command))[0] == DONE
    assert len(table("predicted.csv")[1]) == 30


def test_refusals_name_what_was_probably_meant(run: Any, posts: None) -> None:
    """A file of nearly the same name, the field as FILE:FIELD, and the column of the texts."""
    words = ("--labels", "old.jsonl:group", "--out", "m")
    err = run("train", "odl.jsonl", *words)[2]
    assert "there is no file odl.jsonl: is it old.jsonl?" in err
    for words_of in (("train", "odl.jsonl:text", *words), ("info", "odl.jsonl:text")):
        err = run(*words_of)[2]
        assert "there is no file odl.jsonl:text: is it old.jsonl:text?" in err
    assert "there is no file quite-another.csv\n" in run("train", "quite-another.csv", *words)[2]
    err = run("train", "old.jsonl", "--labels", "group", "--out", "m")[2]
    assert "are named as --labels old.jsonl:group" in err
    err = run("train", "old.tsv", "--labels", "old.tsv:id", "--out", "m")[2]
    assert "not numeric (rows are counted from 0): 'group' (row 0" in err
    assert "to count the words of a column of texts give old.tsv:text" in err
    empty = ["id\tgroup\ttext", "0\ta\t", *(f"{n}\tb\t{POSTS[n]}" for n in range(1, 30))]
    Path("empty.tsv").write_text("\n".join(empty))
    err = run("train", "empty.tsv", "--labels", "empty.tsv:group", "--out", "m")[2]
    assert err.splitlines()[-1].startswith(  # whatever the row that is refused holds
        "dhsk: empty.tsv: to count the words of a column of texts give empty.tsv:text. Without"
    )


@pytest.mark.slow
def test_code_of_the_page_counts_the_words(run: Any, posts: None) -> None:
    """As the run did: of a kernel and of the method that is ahead, from the texts alone."""
    words = ("old.tsv:text", "--labels", "old.tsv:group", "--min-df", 2, "--ngrams", 2)
    assert run("cv", *words, "--folds", 3, "--out", "o")[0] == DONE
    result = dhsk.CvResult.from_json("o/results.json")
    page = html.unescape(Path("o/report.html").read_text())
    assert "texts and y are your texts and labels" in page
    told: dict[str, Any] = {"texts": POSTS[:30], "y": GROUPS[:30], "new_texts": POSTS[30:]}
    (own,) = re.findall(r"In Python</h3>\s*<pre[^>]*><code>(.*?)</code>", page, re.S)
    assert "vectorizer=dhsk.Vectorizer(min_df=2, ngrams=2)" in own
    exec(own, told)
    assert told["result"].best_score_ == result.best.mean
    assert told["model"].predict(told["X_new"]).tolist() == GROUPS[30:]
    baseline = result.baselines.best
    assert baseline is not None
    exec("\n".join(common_method(result, baseline)), told)
    assert told["model"].score(told["X_new"], GROUPS[30:]) == 1.0
    assert told["X"].shape == (30, result.samples.dim)
    assert counting(result)[-1] == "X_new = counter.transform(new_texts)"


def test_a_text_that_is_missing_is_told() -> None:
    """As pandas reads an empty one, first or later."""
    for texts in ([float("nan"), "a b"], ["a b", None], [None, "a b"]):
        with pytest.raises(dhsk.InputError, match="is missing, as pandas reads an empty text"):
            dhsk.cross_validate(texts * 10, ["u", "v"] * 10)
