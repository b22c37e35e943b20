"""Raw texts as samples: counts, ids and labels, against scikit-learn's own readers."""

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import vstack
from sklearn.datasets import load_files
from sklearn.feature_extraction.text import CountVectorizer

import dhsk
from dhsk.errors import InputError
from dhsk.samples import spill
from dhsk.samples import texts as texts_module
from dhsk.samples.delimited import read_columns
from dhsk.samples.paths import Origin
from dhsk.samples.spill import Spill
from dhsk.samples.tables import text_column
from dhsk.samples.texts import PAIR

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "the",
    "and",
    "of",
    "Été",
    "naïve",
    "x",
    "42",
    "rose_bud",
    "wine",
    "rosé",
    "don't",
]


@pytest.fixture
def texts(rng: np.random.Generator) -> list[str]:
    """Forty texts; some with quotes, tabs and line ends, one without a word, one empty."""
    found = [" ".join(rng.choice(WORDS, size=n)) for n in rng.integers(1, 60, size=38)]
    found[3] = 'He said "alpha",\tand\nleft. ' + found[3]
    return [*found[:20], "?! a", "", *found[20:]]


def write_jsonl(folder: Path, texts: list[str], field: str = "text") -> str:
    """Lines of JSON with an id, a class and the text."""
    lines = [
        json.dumps({"id": f"post {n}", "group": "ab"[n % 2], field: text})
        for n, text in enumerate(texts)
    ]
    (folder / "posts.jsonl").write_text("\n\n".join(lines) + "\n")
    return str(folder / "posts.jsonl")


def write_gz(folder: Path, texts: list[str]) -> str:
    """The same, compressed."""
    plain = Path(write_jsonl(folder, texts))
    (folder / "posts.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return f"{plain}.gz"


def write_table(folder: Path, texts: list[str]) -> str:
    """Columns with a header."""
    with (folder / "posts.tsv").open("w", newline="") as file:
        rows = [(f"post {n}", "ab"[n % 2], text) for n, text in enumerate(texts)]
        csv.writer(file, delimiter="\t").writerows([("id", "group", "body"), *rows])
    return f"{folder / 'posts.tsv'}:body"


def write_folder(folder: Path, texts: list[str]) -> str:
    """A file a text, in two subfolders, whose names are in the order of the texts."""
    for n, text in enumerate(texts):
        place = folder / "posts" / ("a" if n < 20 else "b")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03}.txt").write_bytes(text.encode())
    (folder / "posts" / ".hidden.txt").write_text("hidden")
    return str(folder / "posts")


FORMS = {
    "jsonl": write_jsonl,
    "jsonl.gz": write_gz,
    "field": lambda folder, texts: write_jsonl(folder, texts, "body") + ":body",
    "table": write_table,
    "folder": write_folder,
}
VECTORIZERS = {
    "default": {},
    "min_df": {"min_df": 4},
    "pairs": {"min_df": 3, "ngrams": 2, "stop_words": "english"},
}


def sklearn_of(min_df: int = 1, ngrams: int = 1, stop_words: Any = None) -> CountVectorizer:
    """The oracle of a vectorizer."""
    return CountVectorizer(min_df=min_df, ngram_range=(1, ngrams), stop_words=stop_words)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", VECTORIZERS.values(), ids=VECTORIZERS)
def test_counts_are_those_of_scikit_learn(
    form: str, settings: Any, texts: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    """The same words and counts from every source, block by block, however small the pieces."""
    for module in (texts_module, spill):
        monkeypatch.setattr(module, "PART", 7)
    samples = dhsk.open_samples(
        FORMS[form](tmp_path, texts), vectorizer=dhsk.Vectorizer(**settings)
    )
    oracle = sklearn_of(**settings)
    expected = oracle.fit_transform(texts)
    assert samples.feature_names == tuple(oracle.get_feature_names_out())
    assert (samples.shape, samples.nnz) == (expected.shape, expected.nnz)
    np.testing.assert_array_equal(samples.indptr, expected.indptr)
    for rows in (1, 7, 100):
        blocks = list(samples.blocks(rows))
        assert blocks[0].shape[0] == min(rows, len(texts))
        assert (vstack(blocks) != expected).nnz == 0


@pytest.mark.parametrize("form", FORMS)
def test_known_words_are_counted_and_others_ignored(
    form: str, texts: list[str], tmp_path: Path
) -> None:
    """A vocabulary makes the features, as `CountVectorizer.transform` does."""
    oracle = sklearn_of(ngrams=2, stop_words="english").fit(texts[:10])
    known = dhsk.Vectorizer(5, 2, "english", tuple(oracle.get_feature_names_out()))
    samples = dhsk.open_samples(FORMS[form](tmp_path, texts), vectorizer=known)
    (block,) = samples.blocks(100)
    assert (block != oracle.transform(texts)).nnz == 0
    assert (block != known.to_sklearn().transform(texts)).nnz == 0


def test_a_folder_is_read_as_by_load_files(texts: list[str], tmp_path: Path) -> None:
    """Subfolders are the classes, and ids are the paths."""
    source = write_folder(tmp_path, texts)
    expected = load_files(source, shuffle=False, encoding="utf-8")
    samples = dhsk.open_samples(source)
    ids = samples.ids(9)
    assert ids is not None
    names = [str(Path(source) / name) for part in ids for name in part]
    order = [list(expected.filenames).index(name) for name in names]
    labels = dhsk.read_labels(source, len(texts))
    assert labels.tolist() == [expected.target_names[expected.target[k]] for k in order]
    assert [expected.data[k] for k in order] == texts


@pytest.mark.parametrize("form", ["jsonl", "table"])
def test_ids_and_labels_come_from_the_same_file(
    form: str, texts: list[str], tmp_path: Path
) -> None:
    """The field or column id is found; another may be named."""
    source = FORMS[form](tmp_path, texts)
    plain = source.removesuffix(":body")
    names = [f"post {n}" for n in range(len(texts))]
    classes = ["ab"[n % 2] for n in range(len(texts))]
    ids = dhsk.open_samples(source).ids(11)
    assert ids is not None
    assert [name for part in ids for name in part] == names
    named = dhsk.open_samples(source, id_column="group").ids(100)
    assert named is not None
    assert [name for part in named for name in part] == classes
    assert dhsk.read_labels(f"{plain}:group", len(texts)).tolist() == classes


def test_numbers_in_json_are_classes(tmp_path: Path) -> None:
    """Whole numbers stay numbers; a missing label is named."""
    file = tmp_path / "y.jsonl"
    file.write_text('{"y": 3}\n{"y": 1}\n')
    np.testing.assert_array_equal(dhsk.read_labels(f"{file}:y", 2), [3, 1])
    file.write_text('{"y": 3}\n{"y": null}\n')
    with pytest.raises(InputError, match=r"row 1 \(counted from 0\) has no label"):
        dhsk.read_labels(f"{file}:y", 2)


def test_matrices_of_texts_know_their_words(texts: list[str], tmp_path: Path) -> None:
    """A Gram store keeps words and settings, and counts the columns' texts by them."""
    source = write_jsonl(tmp_path, texts[:20])
    (tmp_path / "other").mkdir()
    other = write_jsonl(tmp_path / "other", texts[22:])
    store = str(tmp_path / "g")
    vectorizer = dhsk.Vectorizer(min_df=2)
    G = dhsk.compute_gram(
        dhsk.open_samples(source, vectorizer=vectorizer), dhsk.CosineKernel(), Y=other, store=store
    )
    oracle = sklearn_of(min_df=2)
    mapped = [
        dhsk.hyperspherical_map(X)
        for X in (oracle.fit_transform(texts[:20]), oracle.transform(texts[22:]))
    ]
    np.testing.assert_allclose(G[:, :], (mapped[0] @ mapped[1].T).toarray(), atol=1e-15)
    kept = dhsk.open_gram(store).vectorizer
    assert kept == dhsk.Vectorizer(2, vocabulary=tuple(oracle.get_feature_names_out()))


def test_long_texts_of_a_table_are_read(tmp_path: Path) -> None:
    """Python's csv stops at 131,072 characters by default, and does so again afterwards."""
    before = csv.field_size_limit()
    file = tmp_path / "x.csv"
    file.write_text("id,text\n1,alpha\n2," + "beta " * 100_000 + "\n")
    (block,) = dhsk.open_samples(f"{file}:text").blocks(10)
    assert block.toarray().tolist() == [[1, 0], [0, 100_000]]
    assert csv.field_size_limit() == before


def test_long_texts_do_not_raise_the_limit_of_others(tmp_path: Path) -> None:
    """While a table is read, other users of csv keep theirs; its labels are read beside it."""
    before = csv.field_size_limit()
    file = tmp_path / "x.csv"
    file.write_text("id,text,y\n" + "".join(f"{n},{'beta ' * 30_000},{n}\n" for n in range(3)))
    documents = text_column(read_columns(Origin.of(f"{file}:text")))
    ids, texts = documents.ids(), documents.texts()
    assert ids is not None
    assert (next(ids), len(next(texts)), csv.field_size_limit()) == ("0", 150_000, before)
    del ids  # and the file is closed
    assert [len(text) for text in texts] == [150_000] * 2
    assert dhsk.read_labels(f"{file}:y", 3).tolist() == [0, 1, 2]
    assert csv.field_size_limit() == before


def test_labels_of_lines_of_json_have_a_usual_name(tmp_path: Path) -> None:
    """The field "label"; without it, or another, a sentence names the fields."""
    file = tmp_path / "x.jsonl"
    file.write_text('{"text": "a", "label": "u"}\n{"text": "b", "label": "v"}\n')
    assert dhsk.read_labels(file, 2).tolist() == ["u", "v"]
    file.write_text('{"text": "a", "kind": "u"}\n{"text": "b", "kind": "v"}\n')
    with pytest.raises(InputError, match=r"as --labels .*x.jsonl:NAME \(text, kind\)"):
        dhsk.read_labels(file, 2)


def test_the_file_of_counts_ends_with_the_samples() -> None:
    """It has no name, and what is read is what was written."""
    file = Spill(PAIR)
    for entries in ([(3, 1), (1, 2)], [], [(7, 5)]):
        file.append(np.array(entries, PAIR))
    assert file.read(1, 3).tolist() == [(1, 2), (7, 5)]
    assert file.read(3, 3).shape == (0,)


GOOD = '{"text": "alpha beta"}\n'
SENTENCES: dict[str, tuple[str, bytes, str, str]] = {
    "field": ("x.jsonl", GOOD.encode(), ":body", "has no field 'body': its fields are text; name"),
    "field below": ("x.jsonl", (GOOD + '{"a": 1}').encode(), "", r"row 1 .* no field 'text'"),
    "null": ("x.jsonl", b'{"text": null}', "", r"row 0 .* has no text in the field 'text': fill"),
    "number": ("x.jsonl", b'{"text": 5}', "", r"holds '5' in the field 'text', which is no text"),
    "no JSON": ("x.jsonl", (GOOD + "alpha").encode(), "", r"row 1 .* is not a JSON object on"),
    "no object": ("x.jsonl", b'["alpha"]', "", "and not an object such as"),
    "empty": ("x.jsonl", b"\n\n", "", "is empty: it has no lines"),
    "no words": ("x.jsonl", b'{"text": "? a"}', "", "has no word in 1 or more texts: words have"),
    "encoding": ("x.jsonl", b'{"text": "caf\xe9"}', "", "is not UTF-8 text .*: save it as UTF-8"),
    "binary": ("x.jsonl", b"\x7fELF\0\0\xd0", "", "is a binary file and not text"),
    "NUL": ("x.jsonl", b'{"text": "a\\u0000b"}', "", r"row 0 .* holds NUL characters"),
    "column": ("x.tsv", b"id\ttext\n1\tab cd\n", ":body", "no column 'body': its columns are id"),
    "numbers": ("x.tsv", b"id\ttext\n1\t5\n", ":text", "holds numbers and no text: give .*x.tsv "),
    "quotes": ("x.tsv", b'id\ttext\n1\t"ab" cd\n', ":text", r"has a quotation mark in line 2 "),
    "width": ("x.tsv", b"id\ttext\n1\tab\tcd\n", ":text", "has 3 fields, but the first row has 2"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_what_is_wrong_with_a_file_is_said(case: str, tmp_path: Path) -> None:
    """One sentence with the place and the way out."""
    name, content, key, sentence = SENTENCES[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        dhsk.open_samples(f"{tmp_path / name}{key}")


def test_what_is_wrong_with_a_folder_is_said(texts: list[str], tmp_path: Path) -> None:
    """The file is named, whatever its number."""
    source = Path(write_folder(tmp_path, texts))
    with pytest.raises(InputError, match="whose ids are their paths"):
        dhsk.open_samples(source, id_column="id")
    with pytest.raises(InputError, match="its features are words: leave out --drop-column x"):
        dhsk.open_samples(source, drop_columns=["x"])
    (source / "a" / "003.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"a/003\.txt is not UTF-8 text"):
        dhsk.open_samples(source)
    (source / "z.txt").write_text("alpha")
    with pytest.raises(InputError, match=r"z\.txt is in no subfolder"):
        dhsk.read_labels(source, len(texts) + 1)
    with pytest.raises(InputError, match=r"no word in 100 or more texts: give a smaller --min-df"):
        dhsk.open_samples(write_jsonl(tmp_path, texts), vectorizer=dhsk.Vectorizer(min_df=100))


def test_names_of_files_need_not_be_utf8(tmp_path: Path) -> None:
    """Ids and labels are text that can be written, and still differ."""
    for name in (b"\xe9", b"\xe8"):
        folder = tmp_path / "posts" / os.fsdecode(name)
        folder.mkdir(parents=True)
        (folder / "one.txt").write_text("alpha beta")
    (block,) = dhsk.open_samples(tmp_path / "posts").ids(2) or ()
    assert list(block) == [r"\xe8/one.txt", r"\xe9/one.txt"]
    assert dhsk.read_labels(tmp_path / "posts", 2).tolist() == [r"\xe8", r"\xe9"]


@pytest.mark.parametrize(
    "given", [{"min_df": 0}, {"ngrams": 1.5}, {"min_df": True}, {"stop_words": "german"}]
)
def test_settings_are_checked(given: dict[str, Any]) -> None:
    """The value is named."""
    ((name, value),) = given.items()
    with pytest.raises(InputError, match=f"{name} must be .*{value!r}"):
        dhsk.Vectorizer(**given)


def test_a_column_of_texts_is_told_how_it_is_named(tmp_path: Path) -> None:
    """Somebody who gives the whole table learns of its column."""
    (tmp_path / "t.csv").write_text("id,body\n1,alpha beta gamma delta\n")
    with pytest.raises(InputError, match=r"words of a column of texts give .*t\.csv:body"):
        dhsk.open_samples(tmp_path / "t.csv")


def test_one_word_is_one_feature_whatever_the_table(tmp_path: Path) -> None:
    """With a known vocabulary a table is texts, unless its columns are the counts themselves."""
    known = dhsk.Vectorizer(vocabulary=("alpha", "text"))
    (tmp_path / "c.csv").write_text("alpha,text\n1,2\n3,4\n")
    (block,) = dhsk.open_samples(tmp_path / "c.csv", vectorizer=known).blocks(5)
    assert block.tolist() == [[1, 2], [3, 4]]
    (tmp_path / "t.csv").write_text("id,text\n1,alpha text alpha\n")
    (sparse,) = dhsk.open_samples(tmp_path / "t.csv", vectorizer=known).blocks(5)
    assert sparse.toarray().tolist() == [[2, 1]]


@pytest.mark.parametrize("text", ["[0.1, -0.03, 2e-05, 1.0]", "[ 0.12 -0.1\n  0.6  1. ]"])
def test_vectors_that_were_written_as_text_are_refused(text: str) -> None:
    """Their digits would be counted as words."""
    with pytest.raises(InputError, match=r"is a list of numbers written as text, .*list column"):
        dhsk.open_samples([text, "[1, 2]"])
    assert dhsk.open_samples(["[1] as they say", "[2, 3] too, so two"]).shape[0] == 2
