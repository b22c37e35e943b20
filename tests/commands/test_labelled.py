"""Labels and groups in tables are taken by the names of the samples, where they have names."""

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE

Run = Callable[..., tuple[int, str, str]]

LABELS = ["up", "down"] * 20
LINEAR = "--kernel linear --C 1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A current folder of its own."""
    monkeypatch.chdir(tmp_path)


def write_samples(names: list[str]) -> None:
    """Samples x.csv and x.h5ad, with names in the column SampleID and the index of obs."""
    X = np.random.default_rng(0).poisson(2.0, (40, 12)) + 1.0
    X[::2, :4] += 2
    table = pd.DataFrame(X, columns=[f"f{k}" for k in range(12)], index=names)
    table.rename_axis("SampleID").to_csv("x.csv")
    with h5py.File("x.h5ad", "w") as file:
        file["X"], file["obs/_index"] = table.to_numpy(), names
        file["obs"].attrs["_index"] = "_index"


def labels_of(names: list[str], column: str = "id") -> pd.DataFrame:
    """Labels in the order of the samples, and a column of numbers that all differ."""
    made = pd.DataFrame({"status": LABELS, "age": np.arange(40.0)[::-1]}, index=names)
    return made.rename_axis(column)


def stored() -> dict[str, bytes]:
    """Arrays of a model, without notes such as of its memory."""
    with np.load("m") as file:
        return {name: file[name].tobytes() for name in file.files if name != "header"}


def model(run: Run, words: str) -> dict[str, bytes]:
    """The model of a training."""
    code, _, err = run("train", *words.split(), *LINEAR.split(), "--out", "m")
    assert code == DONE, err
    return stored()


NAMES = [f"s{k}" for k in range(60, 100)]


@pytest.mark.parametrize("samples", ["x.csv --id-column SampleID", "x.h5ad"])
@pytest.mark.parametrize("column", ["#SampleID", "cell", "SampleID", ""])
def test_any_order_makes_the_same_model(run: Run, samples: str, column: str) -> None:
    """Whatever the column of names is called; also where there are rows of other samples."""
    write_samples(NAMES)
    labels = labels_of(NAMES, column)
    labels.to_csv("y.csv")
    expected = model(run, f"{samples} --labels y.csv:status")
    mixed = labels.sample(frac=1, random_state=0)
    mixed.to_csv("y.csv")
    assert model(run, f"{samples} --labels y.csv:status") == expected
    others = labels_of([f"other{k}" for k in range(40)], column).assign(status="")
    pd.concat([others.iloc[:30], mixed, others.iloc[30:]]).to_csv("y.csv")
    words = f"train {samples} --labels y.csv:status {LINEAR} --out m"
    code, _, err = run(*words.split())
    assert (code, stored()) == (DONE, expected), err
    taken = f"dhsk: rows of y.csv are taken by column {column or 'Unnamed: 0'}"
    assert f"{taken}, and 40 rows of others left out" in err


def test_parquet_and_groups(run: Run) -> None:
    """Groups of a grid, and labels in another format."""
    write_samples(NAMES)
    labels = labels_of(NAMES).assign(donor=np.arange(40) // 3).reset_index()
    rows = []
    for table in (labels, labels.sample(frac=1, random_state=0)):
        table.to_parquet("y.parquet")
        words = "cv x.h5ad --labels y.parquet:status --groups y.parquet:donor --folds 2"
        code, _, err = run(*words.split(), *LINEAR.split(), "--out", "o", "--overwrite")
        assert code == DONE, err
        rows.append(Path("o/predictions.csv").read_text())
    assert rows[0] == rows[1]


def test_true_labels_of_predictions(run: Run) -> None:
    """The accuracy of a prediction is by names, too."""
    write_samples(NAMES)
    labels_of(NAMES).sample(frac=1, random_state=0).to_csv("y.csv")
    model(run, "x.csv --id-column SampleID --labels y.csv:status")
    words = "predict m x.csv --id-column SampleID --labels y.csv:status --out p.csv"
    code, out, err = run(*words.split())
    predicted = pd.read_csv("p.csv")
    right = int((predicted["label"] == LABELS).sum())
    assert (code, predicted["id"].tolist()) == (DONE, NAMES), err
    assert f"{right} of 40 labels are right" in out


def test_columns_in_another_order_keep_their_names(run: Run) -> None:
    """Of new samples whose columns are put in order, labels are still taken by names."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((40, 3)), columns=list("abc"))
    table.insert(0, "patient", NAMES)
    table.to_csv("x.csv", index=False)
    table[["patient", "c", "b", "a"]].to_csv("turned.csv", index=False)
    pd.DataFrame({"patient": NAMES, "status": LABELS}).sample(frac=1, random_state=0).to_csv(
        "y.csv", index=False
    )
    model(run, "x.csv --drop-column patient --labels y.csv:status")
    said = []
    for name in ("x.csv", "turned.csv"):
        words = f"predict m {name} --drop-column patient --labels y.csv:status --out p.csv"
        code, out, err = run(*words.split())
        assert (code, "taken by column patient" in err) == (DONE, True), err
        said += [line for line in out.splitlines() if "labels are right" in line]
    assert len(set(said)) == 1


@pytest.mark.parametrize(
    ("names", "others", "told"),
    [
        ("K{:03}", "k{:03}", "other capitals ('k000' is 'K000'), in another order"),
        ("{:03}", "{}", "other leading zeros ('0' is '000'), in another order"),
        ("S-{}", "S.{}", "other characters ('S.0' is 'S-0'), in another order"),
        ("{}a", "X{}a", "other characters ('X0a' is '0a'), in another order"),
    ],
)
def test_names_that_are_spelt_otherwise(run: Run, names: str, others: str, told: str) -> None:
    """A spreadsheet makes 1 of 001: labels in another order are refused, in the same not."""
    write_samples([names.format(k) for k in range(40)])
    labels = labels_of([others.format(k) for k in range(40)], "sample")
    labels.to_csv("y.csv")
    words = f"train x.csv --id-column SampleID --labels y.csv:status {LINEAR} --out m".split()
    assert run(*words)[0] == DONE
    labels.sample(frac=1, random_state=0).to_csv("y.csv")
    code, _, err = run(*words[:-1], "other")
    assert code == BAD_INPUT
    assert f"column sample of y.csv names the samples of x.csv with {told}" in err


def test_names_that_are_missing_or_twice(run: Run) -> None:
    """What has no label, or two, is named with how many there are."""
    write_samples(NAMES)
    labels = labels_of(NAMES)
    words = f"train x.csv --id-column SampleID --labels y.csv:status {LINEAR} --out m".split()
    labels.iloc[3:].to_csv("y.csv")
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert "3 samples of x.csv, the first is 's60', have no row in y.csv by column id" in err
    pd.concat([labels, labels.iloc[:1]]).rename_axis("SampleID").to_csv("y.csv")
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert "rows 0 and 40 (counted from 0) of y.csv are both 's60' by column SampleID" in err
    for own in ("SampleID", "who"):
        twice = labels.sample(frac=1, random_state=0).rename(index={"s61": "s60"})
        twice.rename_axis(own).to_csv("y.csv")
        code, _, err = run(*words)
        assert code == BAD_INPUT
        assert f"of y.csv are both 's60' by column {own}, which names the samples" in err


def test_names_of_samples_that_repeat_take_one_label(run: Run) -> None:
    """Rows of one patient, whose label is in one row of a table in another order."""
    write_samples([f"p{k // 2}" for k in range(40)])
    words = f"train x.csv --id-column SampleID --labels y.csv:status {LINEAR} --out m".split()
    patients = [f"p{k}" for k in range(60)]  # also of others
    labels = pd.DataFrame({"status": LABELS[:30] * 2}, index=patients).rename_axis("patient")
    labels.sample(frac=1, random_state=0).to_csv("y.csv")
    code, _, err = run(*words)
    assert (code, "taken by column patient, and 40 rows of others left out" in err) == (DONE, True)


def test_names_of_a_part_are_no_order_of_all(run: Run) -> None:
    """Labels are not taken row by row where some names say that the order is another."""
    write_samples(NAMES)
    words = f"train x.csv --id-column SampleID --labels y.csv:status {LINEAR} --out m".split()
    labels = labels_of([*NAMES[:10], *(f"t{k}" for k in range(30))]).drop(columns="age")
    labels.to_csv("y.csv")
    assert run(*words)[0] == DONE
    labels.sample(frac=1, random_state=0).to_csv("y.csv")
    code, _, err = run(*words[:-1], "other")
    assert code == BAD_INPUT
    said = "column id of y.csv has the names of 10 of 40 samples of x.csv, in another order"
    assert f"{said}, and not those of others, such as 's70': write the names alike" in err


def test_numbers_of_samples_in_both_tables(run: Run) -> None:
    """A feature whose values tell that labels are in another order is refused, and no other."""
    write_samples(NAMES)
    ids = np.random.default_rng(1).choice(np.arange(1000, 9999), 40, replace=False)
    rows = pd.read_csv("x.csv").drop(columns="SampleID")
    rows.insert(0, "patient", ids)
    rows.to_csv("x.csv", index=False)
    labels = pd.DataFrame({"patient": ids, "status": LABELS, "f1": rows["f1"]})
    labels.to_csv("y.csv", index=False)
    words = f"train x.csv --labels y.csv:status {LINEAR} --out m".split()
    assert run(*words)[0] == DONE
    labels.sample(frac=1, random_state=0).to_csv("y.csv", index=False)
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert "x.csv and y.csv have column patient in another order: if it names the samples" in err
    assert run(*words, "--id-column", "patient")[0] == DONE


def test_numbers_are_names_where_all_are_the_same(run: Run) -> None:
    """Two tables count their rows from 0 and from 1: these go row by row."""
    write_samples([str(k) for k in range(40)])
    words = "x.csv --id-column SampleID --labels y.csv:status"
    labels_of([str(k) for k in range(1, 41)], "who").to_csv("y.csv")
    expected = model(run, words)
    labels_of([str(k) for k in range(40)], "who").sample(frac=1, random_state=0).to_csv("y.csv")
    assert model(run, words) == expected
    labels = labels_of([str(k) for k in range(1, 41)], "who")
    labels.assign(age=np.arange(40)[::-1]).to_csv("y.csv")
    code, _, err = run("train", *words.split(), *LINEAR.split(), "--out", "m")
    assert code == BAD_INPUT
    assert "column age of y.csv has the numbers that name the samples of x.csv" in err


def test_tables_that_share_a_column_of_names(run: Run) -> None:
    """Samples whose names nobody asked for, in a column that was dropped."""
    write_samples(NAMES)
    labels_of(NAMES, "SampleID").to_csv("y.csv")
    words = "x.csv --drop-column SampleID --labels y.csv:status"
    expected = model(run, words)
    labels_of(NAMES, "SampleID").sample(frac=1, random_state=0).to_csv("y.csv")
    assert model(run, words) == expected


def test_ids_of_other_samples_are_told(run: Run) -> None:
    """Labels beside names that no sample has may be in another order; numbers say nothing."""
    names = [f"s{k}" for k in range(40)]
    write_samples(names)
    words = f"train x.csv --labels y.csv:status --id-column SampleID {LINEAR} --out m".split()
    numbers = [str(k) for k in range(40)]
    for own, said in [(names, False), ([f"{n}.1" for n in names], True), (numbers, False)]:
        labels_of(own).drop(columns="age").to_csv("y.csv")
        code, _, err = run(*words)
        assert code == DONE, err
        assert ("no value of column id of y.csv is the name of a sample" in err) is said


def test_numbers_of_rows_in_another_order_are_told(run: Run) -> None:
    """Of samples without names, which are taken row by row."""
    X = np.random.default_rng(0).poisson(2.0, (40, 12)) + 1.0
    np.save("x.npy", X)
    words = f"train x.npy --labels y.csv:status {LINEAR} --out m".split()
    upwards = np.arange(40) + 1
    for numbers, said in ((upwards, False), (upwards[::-1], True), (upwards[::-1] * 2, False)):
        labels_of(numbers.tolist()).drop(columns="age").to_csv("y.csv")
        code, _, err = run(*words)
        assert code == DONE, err
        assert ("column id of y.csv counts its rows in another order" in err) is said


def test_factors_of_classes(run: Run) -> None:
    """Factors of C by class, text or numbers, are those of `class_weight`; in the page too."""
    write_samples(NAMES)
    labels_of(NAMES).assign(code=[1, 0] * 20).to_csv("y.csv")
    samples = dhsk.open_samples("x.csv", id_column="SampleID")
    words = "x.csv --id-column SampleID"
    for column, given, weights in (
        ("status", "down=4,up=0.5", {"down": 4.0, "up": 0.5}),
        ("code", "1=0.5", {1: 0.5}),
    ):
        y = pd.read_csv("y.csv")[column].to_numpy()
        made = model(
            run, f"x.csv --id-column SampleID --labels y.csv:{column} --class-weight {given}"
        )
        expected = dhsk.HeatSVC(1.0, kernel="linear", class_weight=weights).fit_samples(samples, y)
        expected.save("n")
        with np.load("n") as file:
            assert {name: file[name].tobytes() for name in file.files if name != "header"} == made
        assert dhsk.HeatSVC.load("m").class_weight == weights
    words = f"cv {words} --labels y.csv:code --folds 2 --class-weight 1=0.5"
    assert run(*words.split(), *LINEAR.split(), "--out", "o")[0] == DONE
    assert "class_weight={1: 0.5}" in Path("o/report.html").read_text()
    assert 'class-weight = "1=0.5"' in Path("o/run.toml").read_text()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ill=2", "--class-weight ill=2: there is no class 'ill', the classes are down, up"),
        ("up", "'up' is not balanced, nor a factor of C for each class such as ill=5,well=1"),
        ("up=0", "'up=0' is not balanced"),
        ("up=nan", "'up=nan' is not balanced"),
    ],
)
def test_factors_that_are_none(run: Run, given: str, said: str) -> None:
    """What is no class or no factor is refused before a fit."""
    write_samples(NAMES)
    labels_of(NAMES).to_csv("y.csv")
    words = f"train x.csv --id-column SampleID --labels y.csv:status --class-weight {given} --out m"
    code, _, err = run(*words.split())
    assert code == BAD_INPUT
    assert said in " ".join(err.split())


def write_posts(names: list[str]) -> pd.DataFrame:
    """Texts n.tsv, n.jsonl and n.parquet; labels in another order, l.tsv and l.jsonl.

    Names are in a column that the words of the texts are called, too.
    """
    words = ["the engine and the wheel", "a rocket in orbit"]
    posts = [f"filename {words[k % 2]} of number{k % 7} " + "and more " * 9 for k in range(40)]
    posts = [f"{post} {k}" for k, post in enumerate(posts)]
    table = pd.DataFrame({"filename": names, "group": LABELS, "text": posts})
    texts, labels = table[["filename", "text"]], table[["filename", "group"]]
    texts.to_csv("n.tsv", sep="\t", index=False)
    texts.to_parquet("n.parquet", index=False)
    texts.to_json("n.jsonl", orient="records", lines=True)
    mixed = labels.sample(frac=1, random_state=0)
    mixed.to_csv("l.tsv", sep="\t", index=False)
    mixed.to_json("l.jsonl", orient="records", lines=True)
    Path("y.txt").write_text("\n".join(LABELS))
    return table


@pytest.mark.parametrize("samples", ["n.tsv:text", "n.parquet:text", "n.jsonl"])
@pytest.mark.parametrize("labels", ["l.tsv:group", "l.jsonl:group"])
def test_texts_share_a_column_of_names(run: Run, samples: str, labels: str) -> None:
    """Texts of a table have its other columns, though none is called id."""
    write_posts(NAMES)
    expected = model(run, f"{samples} --labels y.txt")
    assert model(run, f"{samples} --labels {labels}") == expected
    code, out, err = run("predict", "m", samples, "--labels", labels, "--out", "p.csv")
    assert (code, "40 of 40 labels are right" in out) == (DONE, True), err
    assert "are taken by column filename" in err


def test_lines_of_json_may_lack_a_field(run: Run) -> None:
    """A field that some lines lack names no samples, but for those that it names."""
    table = write_posts(NAMES)
    rows = table[["filename", "group"]].assign(note="new").to_dict("records")
    for row in rows[3:]:
        del row["note"]
    Path("l.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("n.jsonl").write_text(
        "\n".join(json.dumps({"note": k, "text": text}) for k, text in enumerate(table["text"]))
    )
    expected = model(run, "n.jsonl --labels y.txt")
    assert model(run, "n.jsonl --labels l.jsonl:group") == expected


@pytest.mark.parametrize("own", ["", "id"])
def test_texts_name_no_samples(run: Run, own: str) -> None:
    """Texts beside labels are no names, but those in another order tell that labels are, too."""
    table = write_posts(NAMES).drop(columns="filename")
    texts = table[["text"]]
    texts = texts.assign(id=[f"p{k}" for k in range(40)]) if own else texts
    texts.to_csv("n.tsv", sep="\t", index=False)
    table.to_csv("l.tsv", sep="\t", index=False)
    words = f"train n.tsv:text --labels l.tsv:group {LINEAR} --out m".split()
    code, _, err = run(*words)
    assert (code, "of column text" in err) == (DONE, False), err
    table.sample(frac=1, random_state=0).to_csv("l.tsv", sep="\t", index=False)
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert "have column text in another order: give the labels in the order of the samples" in err
    other = table.assign(text=[f"{text} and so on" for text in table["text"]])
    other.to_csv("l.tsv", sep="\t", index=False)
    code, _, err = run(*words)
    assert (code, "of column text" in err) == (DONE, False), err


def test_long_names_are_shortened(run: Run) -> None:
    """Long names in a warning and in a refusal."""
    write_samples(NAMES)
    words = f"train x.csv --id-column SampleID --labels y.csv:status {LINEAR} --out m".split()
    labels_of([f"{'long' * 15}{k}" for k in range(40)]).drop(columns="age").to_csv("y.csv")
    code, _, err = run(*words)
    assert code == DONE
    assert f"of x.csv ('{('long' * 15)[:37]}...', but 's60')" in err
    write_samples([f"{'long' * 20}{k}" for k in range(40)])
    labels_of([f"{'long' * 20}{k}" for k in range(1, 41)]).to_csv("y.csv")
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert f"the first is '{('long' * 15)[:37]}...', has no row" in err
