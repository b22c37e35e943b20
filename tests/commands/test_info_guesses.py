"""What `dhsk info` guesses of columns: embeddings, groups, labels, gaps, and numbers in words."""

import shlex
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import sklearn.datasets
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: Any) -> None:
    """Be in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_embeddings_come_with_the_projective_map(run: Any, inside: None) -> None:
    """Many columns with values below 0; every command runs as printed, those of the plan too."""
    x = np.random.default_rng(0).normal(size=(60, 300)).astype(np.float32)
    np.save("e.npy", x)
    pd.DataFrame(x).add_prefix("e").assign(label=np.arange(60) % 2).to_csv("e.csv", index=False)
    Path("y.txt").write_text("u\nv\n" * 30)
    for name in ("e.npy", "e.csv"):
        *_, cv, plan = run("info", name)[1].replace("LABELS", "y.txt").splitlines()
        assert cv.endswith("--map projective --out found")
        assert plan.endswith("--map projective")
        assert run(*shlex.split(plan)[2:])[0] == DONE
        assert run(*shlex.split(cv)[2:], "--overwrite", "--folds", 2, "--C", 1)[0] == DONE
    for kernel in ("heat", "gaussian"):
        words = ("plan", "e.npy", "--labels", "y.txt", "--kernel", kernel)
        *_, cv, gram = run(*words)[1].splitlines()
        assert cv.endswith("dhsk cv e.npy --labels y.txt --map projective --out DIR")
        assert gram.endswith("dhsk gram e.npy --map projective --out STORE")
    np.save("z.npy", x[:, :5])
    out = run("plan", "z.npy", "--labels", "y.txt", "--kernel", "gaussian")[1]
    assert "dhsk cv z.npy --labels y.txt --map scaled --out DIR" in out
    x[:, 9:] = np.abs(x[:, 9:])  # a few columns below 0 are no embeddings
    np.save("z.npy", x)
    assert "--map scaled --out found" in run("info", "z.npy")[1]


def test_vectors_of_parquet_are_looked_at(run: Any, inside: None) -> None:
    """Lists, and lists of one size, of values below 0; the command runs as printed."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    x = np.random.default_rng(0).normal(size=(60, 64))
    flat = pa.array(x.astype(np.float32).ravel())
    labels = pa.array(["u", "v"] * 30)
    for kind in (pa.array(x.tolist()), pa.FixedSizeListArray.from_arrays(flat, 64)):
        names = pa.array([f"d{n}" for n in range(60)])
        pq.write_table(pa.table({"who": names, "embedding": kind, "label": labels}), "f.parquet")
        out = run("info", "f.parquet")[1]
        assert "below 0 too, as embeddings are" in out
        *_, cv, plan = out.splitlines()
        words = (
            "dhsk cv f.parquet:embedding --labels f.parquet:label --id-column who --map projective"
        )
        assert cv.endswith(f"{words} --out found")
        assert run(*shlex.split(cv)[2:], "--overwrite", "--folds", 2, "--C", 1)[0] == DONE
        assert run(*shlex.split(plan)[2:])[0] == DONE


def test_one_of_several_dummies_is_no_label(run: Any, inside: None) -> None:
    """What pandas.get_dummies makes of a category follows from its siblings."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"visit": np.arange(60) % 3, "age": rng.integers(20, 70, 60)})
    table = table.assign(bmi=rng.random(60), sick=np.arange(60) % 2, sex=list("fmf") * 20)
    for name, label in (("sick", "sick (or visit)"), ("flag", "flag (or visit)")):
        for kind in (int, bool):
            made = pd.get_dummies(table.rename(columns={"sick": name}), dtype=kind)
            made.to_csv("t.csv", index=False)
            out = run("info", "t.csv")[1]
            assert f"labels   perhaps {label}\n" in out
            assert f"dhsk cv t.csv --labels t.csv:{name} --map scaled --out found\n" in out


def test_repeated_patients_are_groups(run: Any, inside: None) -> None:
    """Numbers or words; both commands run. Few batches could be labels, several are said."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((600, 3)), columns=list("abc"))
    table = table.assign(sick=rng.integers(0, 2, 600), site=rng.integers(0, 3, 600))
    for name, values in (
        ("patient", np.arange(600) % 60),
        ("subject_id", [f"P{k // 10}" for k in range(600)]),
        ("id", [f"P{k % 60}" for k in range(600)]),
    ):
        table.assign(**{name: values}).to_csv("t.csv", index=False)
        out = run("info", "t.csv")[1]
        assert "labels   perhaps sick (or site)\n" in out
        *_, cv, plan = out.splitlines()
        assert cv.endswith(f"--labels t.csv:sick --groups t.csv:{name} --out found")
        assert plan.endswith(f"dhsk plan t.csv --labels t.csv:sick --groups t.csv:{name}")
        words = ("--overwrite", "--folds", 2, "--C", 1, "--kernel", "linear")
        assert run(*shlex.split(cv)[2:], *words)[0] == DONE
    code, out, err = run(*shlex.split(plan)[2:])
    assert code == DONE, err
    # What comes next keeps them together, and no matrix has them as a feature.
    assert "next:   dhsk cv t.csv --labels t.csv:sick --groups t.csv:id --out DIR" in out
    assert "dhsk gram t.csv --drop-column id --drop-column sick --out STORE" in out
    few = table.assign(ward=table["site"], batch=list("uvw") * 200).drop(columns="sick")
    few.to_csv("t.csv", index=False)
    assert "labels   perhaps ward (or site, batch)\n" in run("info", "t.csv")[1]


def test_words_that_have_one_label_each_are_groups(run: Any, inside: None) -> None:
    """Whatever they are called: as columns of 0 and 1 they would tell every label."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((120, 3)), columns=list("abc"))
    place = np.arange(120) // 6
    table = table.assign(where=[f"P{k}" for k in place], how=np.array(["fed", "not"])[place % 2])
    table.to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "groups   where: rows of one value stay in one fold" in out
    assert "get_dummies" not in out
    cv = out.splitlines()[-2]
    assert cv.endswith("dhsk cv t.csv --labels t.csv:how --groups t.csv:where --out found")
    words = ("--folds", 2, "--C", 1, "--kernel", "linear")
    assert run(*shlex.split(cv)[2:], *words)[0] == DONE
    table.assign(how=rng.permutation(table["how"])).to_csv("t.csv", index=False)
    assert "get_dummies(table, columns=['where'])" in run("info", "t.csv")[1]
    numbered = table.drop(columns="where").assign(plot=place)
    numbered.to_csv("t.csv", index=False)
    assert "groups   plot: rows of one value" in run("info", "t.csv")[1]


def test_gaps_need_scaled_columns(run: Any, inside: None) -> None:
    """No column goes for a few; a column that is mostly empty does. The lines run."""
    rng = np.random.default_rng(0)
    x = rng.random((200, 8))
    x[rng.random(x.shape) < 0.05] = np.nan
    x[5:, 7] = np.nan
    x[:, 6] = 0.5
    x[12:, 6] = np.nan  # mostly empty, but filled
    table = pd.DataFrame(x, columns=list("abcdefgh")).assign(label=list("uv") * 100)
    table.to_csv("t.csv", index=False)
    table.to_csv("q.csv", index=False, na_rep="?")
    table.to_parquet("t.parquet")
    for name in ("t.csv", "q.csv", "t.parquet"):
        out = run("info", name)[1]
        n = int(np.isnan(x[:, :7]).any(axis=1).sum())
        assert f"gaps     {n} of 200 rows have some, in 7 columns (a, b, c, d, e, f, g):" in out
        assert "empty    h: left out, as nearly all rows are\n" in out
        *_, cv, plan = out.splitlines()
        assert cv.endswith(f"--labels {name}:label --drop-column h --map scaled --out found")
        words = ("--kernel", "linear", "--C", 1, "--folds", 2, "--overwrite")
        assert run(*shlex.split(cv)[2:], *words)[0] == DONE
        code, out, _ = run(*shlex.split(plan)[2:])
        assert (code, "refused" in out) == (DONE, False)
        code, out, _ = run("plan", name, "--drop-column", "h", "--labels", f"{name}:label")
        assert out.splitlines()[-1].endswith(":label --map scaled --out DIR")  # and no matrix
    filled = table[list("abc")].fillna(0)
    for word in ("", "NA"):
        filled.assign(y=["u", word, "v", "u"] * 50).to_csv("y.csv", index=False)
        out = run("info", "y.csv")[1]
        assert "gaps     rows without y: leave them out first\n" in out
    exec(out.splitlines()[-1][8:].split(" in Python")[0], {"pandas": pd})
    assert len(pd.read_csv("y_numbers.csv")) == 150
    once = pd.DataFrame(rng.random((500, 3)), columns=list("abc")).assign(y=list("uv") * 250)
    once.loc[55, "b"] = np.nan  # past the ten first of every hundred
    once.to_csv("once.csv", index=False)
    assert (
        "gaps     1 of 500 rows have some, in 1 column (b): with --map"
        in run("info", "once.csv")[1]
    )
    wide = pd.DataFrame(rng.random((500, 201)), columns=[f"c{k}" for k in range(201)])
    wide = wide.assign(y=list("uv") * 250, c9=1.0)
    wide.iloc[::3, 0] = np.nan
    wide.to_csv("wide.csv", index=False)
    out = run("info", "wide.csv")[1]
    assert "gaps      17 of the 50 rows looked at have some" in out
    assert "constant  c9: one value, which tells nothing\n" in out
    wide["c0"] = 1.0
    wide.loc[17, "c0"] = np.nan  # between the rows that are looked at
    wide.to_csv("wide.csv", index=False)
    wide.to_parquet("wide.parquet")
    for name in ("wide.csv", "wide.parquet"):
        out = run("info", name)[1]
        assert "gaps      some rows have some, in 1 column (c0)" in out
        assert f"next:   dhsk cv {name} --labels {name}:y --map scaled --out found" in out
    pd.DataFrame(x[:, 7:], columns=["h"]).assign(a=1.0, b=2.0, label=list("uv") * 100).to_csv(
        "t.csv", index=False
    )
    out = run("info", "t.csv")[1]
    assert "--labels t.csv:label --drop-column h --out found" in out


def test_counts_without_zeros_are_told(run: Any, inside: None) -> None:
    """Species by sites, whose zeros are often left empty, are no gaps."""
    counts = np.random.default_rng(0).poisson(1.5, (40, 6))
    table = pd.DataFrame(counts, columns=[f"sp{k}" for k in range(6)]).astype(object)
    table = table.assign(kind=["u", "v"] * 20)
    table.where(table != 0).to_csv("t.csv", index=False)
    said = "none is 0: if empty means 0, as of counts, write 0"
    assert said in " ".join(run("info", "t.csv")[1].split())
    table.where(table != 2).to_csv("t.csv", index=False)
    assert said not in " ".join(run("info", "t.csv")[1].split())


def test_numbers_with_commas_or_percents_are_told(run: Any, inside: None) -> None:
    """Separators of thousands are read by pandas; no such column names the samples."""
    x = np.random.default_rng(0).random(40) * 5000
    table = pd.DataFrame({"a": x, "revenue": [f"{v:,.2f}" for v in x], "label": list("uv") * 20})
    table["units"] = [f"{1000 + k:,}" for k in range(40)]
    table.to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    words = (
        "numbers  revenue, units with separators of thousands: leave the commas out to keep them"
    )
    assert words in out
    assert "--id-column" not in out
    line = "pandas.read_csv('t.csv', thousands=',').to_csv('t_points.csv', index=False)"
    assert out.endswith(f"next:   import pandas; {line} in Python\n")
    exec(line, {"pandas": pd})
    out = run("info", "t_points.csv")[1]
    assert "dhsk cv t_points.csv --labels t_points.csv:label --out found\n" in out
    table.drop(columns=["revenue", "units"]).assign(rate=[f"{k}%" for k in range(40)]).to_csv(
        "t.csv", index=False
    )
    out = run("info", "t.csv")[1]
    assert "numbers  rate with percent signs: leave these out to keep them\n" in out
    assert "--id-column" not in out


def test_cells_that_are_no_numbers_are_told(run: Any, inside: None) -> None:
    """A few in a column of numbers, which is no labels; pandas leaves words for none empty."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((60, 3)).round(6), columns=list("abc"))
    table = table.assign(kind=["u", "v"] * 30).astype({"a": object, "b": object})
    table.loc[[3, 9, 41], "a"], table.loc[7, "b"] = "n.d.", "#DIV/0!"
    table.to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "labels   perhaps kind\n" in out
    assert "cells    a ('n.d.'), b ('#DIV/0!'): no numbers, so these columns are left out" in out
    line = next(line for line in out.splitlines() if line.startswith("next:"))
    exec(line.removeprefix("next:").partition(" in Python")[0].strip())
    after = run("info", "t_numbers.csv")[1]
    assert "gaps     4 of 60 rows have some, in 2 columns (a, b)" in after
    assert "dhsk cv t_numbers.csv --labels t_numbers.csv:kind --map scaled --out found" in after
    table.loc[9, "a"] = "12 mm"  # a number, which pandas would lose
    table.to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "next:   dhsk info t.csv when these cells hold numbers alone" in out
    assert "dhsk cv" not in out


def test_a_header_alone_has_no_rows(run: Any, inside: None) -> None:
    """In a table of text, and in Parquet."""
    pd.DataFrame({"a": [1.0], "label": ["u"]})[:0].to_csv("t.csv", index=False)
    pd.DataFrame({"a": [1.0], "label": ["u"]})[:0].to_parquet("t.parquet")
    for name in ("t.csv", "t.parquet"):
        code, _, err = run("info", name)
        assert code == BAD_INPUT
        assert f"{name} has columns (a, label) but no rows: write one for each sample" in err


def test_an_array_of_one_axis_is_labels(run: Any, inside: None) -> None:
    """Strings, bytes, whole numbers and booleans; measurements and samples are none."""
    y = np.array(list("aabbc") * 12)
    for labels, first in ((y, "a (24)"), (y.astype("S1"), "a (24)"), (np.arange(60) % 3, "0 (20)")):
        np.save("y.npy", labels)
        code, out, err = run("info", "y.npy")
        assert code == DONE, err
        assert f"labels   60 of 3 classes, it seems: {first}, " in out
        assert "dhsk cv SAMPLES --labels y.npy --out found\n" in out
    for values, said in ((np.ones(3), "x.reshape(-1, 1)"), (y[:, None], "X.astype(float)")):
        np.save("y.npy", values)
        code, _, err = run("info", "y.npy")
        assert (code, said in err) == (BAD_INPUT, True)


def test_patients_of_cells_are_groups(run: Any, inside: None) -> None:
    """Words or numbers in obs; and counts are proposed where X is their logarithms."""
    h5py = pytest.importorskip("h5py")
    counts = np.random.default_rng(0).poisson(3.0, (60, 5)) + 1.0
    for name, patients in (("patient_id", np.arange(60) // 4), ("donor", None)):
        with h5py.File("c.h5ad", "w") as file:
            file["X"] = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
            file["layers/counts"] = counts
            file["obs/kind/codes"] = (np.arange(60) % 8 > 3).astype("i1")
            file["obs/kind/categories"] = np.array([1, 2])
            if patients is None:
                file[f"obs/{name}/codes"] = (np.arange(60) // 4).astype("i1")
                file[f"obs/{name}/categories"] = np.arange(15)
            else:
                file[f"obs/{name}"] = patients
        out = run("info", "c.h5ad")[1]
        cv, plan = out.splitlines()[-2:]
        where = f"c.h5ad:layers/counts --labels c.h5ad:obs/kind --groups c.h5ad:obs/{name}"
        assert cv == f"next:   dhsk cv {where} --out found"
        assert plan == f"or:     dhsk plan {where}"
        words = ("--folds", 2, "--C", 1, "--kernel", "cosine", "--overwrite")
        assert run(*shlex.split(cv)[2:], *words)[0] == DONE


def test_numbers_in_lines_of_json_are_to_be_written_as_a_table(run: Any, inside: None) -> None:
    """`dhsk cv` reads texts from them, and was proposed."""
    lines = (f'{{"label": "{"ab"[k % 2]}", "f1": {k / 7}, "f2": {k}}}' for k in range(60))
    Path("c.jsonl").write_text("\n".join(lines))
    out = run("info", "c.jsonl")[1]
    read = "import pandas; pandas.read_json('c.jsonl', lines=True)"
    line = f"{read}.to_csv('c.csv', index=False) in Python"
    assert out.splitlines()[-1].startswith(f"next:   {line}")
    exec(line.removesuffix(" in Python"))
    assert "f1" in run("info", "c.csv")[1]


def test_sparse_text_is_looked_at(run: Any, inside: None) -> None:
    """Shape and labels of svmlight and Matrix Market files, and what fits numbers."""
    x = np.random.default_rng(0).poisson(1.0, (40, 7)).astype(float)
    x[0] = 1.0
    dump_svmlight_file(x, np.arange(40) % 3, "c.svm", zero_based=False)
    scipy.io.mmwrite("m.mtx", csr_array(x))
    out = run("info", "c.svm")[1]
    assert "samples   40, 5 entries each" in out
    assert "the largest index is 7" in out
    assert "3 values, from 0 to 2" in out
    assert f"40 x 7, {np.count_nonzero(x)} entries" in run("info", "m.mtx")[1]
    Path("barcodes.tsv").write_text("".join(f"b{n}\n" for n in range(7)))
    assert "7 x 40, " in run("info", "m.mtx")[1]  # its columns are the samples
    dump_svmlight_file(x, np.arange(40) / 7, "r.svm", zero_based=False)
    *_, line = run("info", "r.svm")[1].splitlines()
    found: dict[str, Any] = {"sklearn": sklearn, "dhsk": dhsk}
    exec(line.removeprefix("next:").removesuffix(" in Python").strip(), found)
    assert found["X"].shape == (40, 7)
    Path("many.svm").write_text(("1 " + " ".join(f"{k}:1" for k in range(1, 1000)) + "\n") * 900)
    assert "in the first lines" in run("info", "many.svm")[1]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("order", ["sorted", "in turn"])
def test_rows_from_all_over_the_file_are_looked_at(
    run: Any, inside: None, kind: str, order: str
) -> None:
    """A file may be sorted by its labels; specimens are groups, and no labels."""
    x = np.abs(np.random.default_rng(0).normal(size=(240, 4)))
    table = pd.DataFrame(x, columns=list("abcd"))
    row = np.arange(240) if order == "sorted" else np.arange(240) * 40 % 240 + np.arange(240) // 6
    table = table.assign(material=[f"m{n // 40}" for n in row], specimen=[n // 5 for n in row])
    write = {
        "csv": partial(table.to_csv, index=False),
        "parquet": partial(table.to_parquet, row_group_size=50),
        "jsonl": partial(table.to_json, orient="records", lines=True),
    }
    write[kind](f"t.{kind}")
    out = run("info", f"t.{kind}")[1]
    assert "labels   perhaps material\n" in out
    assert "groups   specimen: rows of one value stay in one fold" in out
    if kind != "jsonl":
        assert f"--labels t.{kind}:material --groups t.{kind}:specimen" in out


def test_rows_in_the_order_of_time_are_told(run: Any, inside: None) -> None:
    """Dates that come again, as of visits, and others in any order say nothing of it."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=60)
    table = pd.DataFrame(rng.random((60, 3)), columns=list("abc")).assign(up=list("uv") * 30)
    for name, dates, ordered in (
        ("days.csv", days, True),
        ("days.parquet", days, True),
        ("shuffled.csv", rng.permutation(days), False),
        ("visits.csv", np.tile(days[:6], 10), False),
        ("seasons.csv", np.repeat(days[:3], 20), False),
    ):
        own = table.assign(day=dates)
        own.to_csv(name, index=False) if name.endswith("csv") else own.to_parquet(name)
        out = run("info", name)[1]
        assert ("order    rows follow day: shuffled folds tell" in out) == ordered, name
        assert ("(cv=TimeSeriesSplit(5)) keeps to the order" in out) == ordered, name
        assert (f"dhsk cv {name} --labels {name}:up --in-order" in out) == ordered, name


def test_words_dates_and_numbers_of_rows_are_told_apart(run: Any, inside: None) -> None:
    """A survey: the line of Python encodes the words, and what it writes runs."""
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2023-01-01") + pd.to_timedelta(rng.integers(0, 400, 300), unit="D")
    table = pd.DataFrame({"household": np.arange(300) + 1, "day": days})
    table["income"] = rng.lognormal(10.0, 0.5, 300).round(2)
    table["region"] = rng.choice(["n", "s", "e"], 300)
    for k in range(4):
        table[f"q{k}"] = rng.integers(1, 6, 300)
    table["left"] = rng.integers(0, 2, 300)
    table.to_csv("s.csv", index=False)
    out = run("info", "s.csv")[1]
    assert "  ids      household\n" in out
    assert "  dates    day: left out; write days since the first\n" in out
    assert "get_dummies(table, columns=['region'])" in out
    assert "day'" not in out
    table.assign(region=["n", "s", None] * 100).to_csv("gap.csv", index=False)
    assert "get_dummies(table, columns=['region'], dummy_na=True)" in run("info", "gap.csv")[1]
    table.drop(columns=["day", "region"]).to_csv("coded.csv", index=False)
    out = run("info", "coded.csv")[1]
    assert "  labels   perhaps left\n" in out  # the only one of two numbers
    assert "  values   column income has" in out  # its decimals are no rounding of counts
    words = "--labels coded.csv:left --id-column household --map scaled --out found\n"
    assert f"next:   dhsk cv coded.csv {words}" in out
    table["household"] = 5000 + rng.permutation(300)
    table.drop(columns=["day", "region"]).to_csv("mixed.csv", index=False)
    assert "  ids      household\n" in run("info", "mixed.csv")[1]
    table.assign(household=rng.integers(0, 10**6, 300)).to_csv("other.csv", index=False)
    assert "  ids " not in run("info", "other.csv")[1]
    table["nr"] = rng.permutation(10**6)[:300]
    table.drop(columns="household").to_csv("named.csv", index=False)
    assert "  ids      nr\n" in run("info", "named.csv")[1]
    encode, without = run("info", "s.csv")[1].splitlines()[-2:]
    assert without.startswith("or:     dhsk cv s.csv --labels s.csv:left")
    assert "--drop-column region" in without
    exec(encode[8:].split(" in Python")[0], {"pandas": pd})
    assert {"region_n", "region_s"} < set(pd.read_csv("s_numbers.csv"))


def test_lines_of_pandas_say_where_it_is_missing(
    run: Any, inside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As dhsk itself does not need it."""
    Path("t.csv").write_text("a,b,y\n" + "1,c,u\n2,d,v\n3,c,\n" * 10)
    assert "pip install" not in run("info", "t.csv")[1]
    monkeypatch.setattr("dhsk.samples.guesses.find_spec", lambda _: None)
    assert " in Python (after pip install pandas), then dhsk info" in run("info", "t.csv")[1]


def some_texts(n: int) -> list[str]:
    """Long ones of few words."""
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(["ball", "card", "disk", "engine"], 12)) for _ in range(n)]


def test_dates_are_no_labels(run: Any, inside: None) -> None:
    """Of posts the subject is, whatever it is called; an empty column is no date."""
    rng = np.random.default_rng(0)
    texts = some_texts(60)
    posts = pd.DataFrame({"date": "2020-01-01", "text": texts, "group": np.arange(60) % 12})
    posts.to_csv("posts.csv", index=False)
    out = run("info", "posts.csv")[1]
    assert "  labels   perhaps group\n" in out
    assert "--groups" not in out
    table = pd.DataFrame(rng.random((40, 3)), columns=list("abc")).assign(y=list("uv") * 20)
    table.assign(none=np.nan, day="2020-01-02").to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "  dates    day: left out" in out
    assert "  empty    none: left out" in out


def test_tickets_are_grouped_by_customer(run: Any, inside: None) -> None:
    """Not by the subject of a text, which replies share."""
    subjects, customers = [f"Re: {k // 4}" for k in range(200)], [f"c{k % 40}" for k in range(200)]
    table = pd.DataFrame({"subject": subjects, "text": some_texts(200), "customer": customers})
    table.assign(topic=["u", "v"] * 100).to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "--labels t.csv:topic --groups t.csv:customer" in out


def test_what_a_search_refuses_is_told(run: Any, inside: None) -> None:
    """Infinite values, and texts and their labels that are not there."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((40, 3)), columns=["a", "b", "c"]).assign(y=["u", "v"] * 20)
    table.loc[3, "b"] = np.inf
    table.to_csv("x.csv", index=False)
    out = run("info", "x.csv")[1]
    assert "infinite  b: refused, leave empty what is missing\n" in out
    assert "dhsk cv" not in out
    exec(out.splitlines()[-1][8:].split(" in Python")[0])
    assert "next:   dhsk cv x_finite.csv " in run("info", "x_finite.csv")[1]
    texts = pd.DataFrame({"text": some_texts(40), "label": ["u", "v"] * 20})
    texts.loc[4, "text"], texts.loc[7, "label"] = None, None
    texts.to_csv("t.csv", index=False)
    texts.to_json("t.jsonl", orient="records", lines=True)
    for name in ("t.csv", "t.jsonl"):
        out = run("info", name)[1]
        assert "gaps     rows without label: leave them out first\n" in out
        assert "empty    1 of the 40 texts looked at: leave them out first\n" in out


@pytest.mark.parametrize(("name", "kinds"), [("group", ["ill", "well"]), ("Group", [0, 1])])
def test_groups_that_are_compared_come_before_a_rare_taxon(
    run: Any, inside: None, name: str, kinds: list[Any]
) -> None:
    """Counts of few values are no likelier labels, wherever the column stands."""
    rng = np.random.default_rng(0)
    taxa = {f"sp{k}": rng.poisson(40.0, 60) for k in range(4)} | {"sp4": rng.poisson(1.2, 60)}
    groups = {name: [kinds[k % 2] for k in range(60)]}
    for columns in (taxa | groups, groups | taxa):
        pd.DataFrame(columns, [f"S{k}" for k in range(60)]).to_csv("t.csv")
        out = run("info", "t.csv")[1]
        assert f"labels   perhaps {name} (or sp4)\n" in out
        assert f"next:   dhsk cv t.csv --labels t.csv:{name} --out found\n" in out


def test_words_alone_are_made_numbers(run: Any, inside: None) -> None:
    """As a questionnaire; or they are labels, and then of no columns of the samples."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.choice(["low", "mid", "high"], (60, 3)), columns=list("pqr"))
    table.assign(outcome=["ill", "well"] * 30).to_csv("w.csv", index=False)
    out = run("info", "w.csv")[1]
    assert "features  words, to be made numbers; or labels or predictions, of other" in out
    line, cv = out.splitlines()[-2:]
    assert cv == "or:     dhsk cv SAMPLES --labels w.csv:outcome --out found"
    exec(line[8:].split(" in Python")[0], {"pandas": pd})
    out = run("info", "w_numbers.csv")[1]
    assert "next:   dhsk cv w_numbers.csv --labels w_numbers.csv:outcome --out found\n" in out


@pytest.mark.parametrize("kind", ["ill", 1])
def test_one_class_is_no_labels(run: Any, inside: None, kind: Any) -> None:
    """A search of it is refused, and was proposed."""
    x = np.random.default_rng(0).random((60, 3))
    pd.DataFrame(x, columns=list("abc")).assign(label=kind).to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "none: label has one class, and labels need two" in out
    assert "--labels LABELS" in out


def test_numbers_of_records_name_the_samples(run: Any, inside: None) -> None:
    """Of patients, which are long and all differ; prices and counts are none."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((100, 3)), columns=list("abc")).assign(y=["u", "v"] * 50)
    numbers = rng.choice(np.arange(4_000_000, 9_000_000), 100, replace=False)
    for name, values, ids in (
        ("MRN", numbers, True),
        ("price", numbers // 10 * 10, False),
        ("reads", numbers // rng.choice([1, 10], 100), False),
    ):
        table.assign(**{name: values}).to_csv("t.csv", index=False)
        out = run("info", "t.csv")[1]
        assert (f"  ids      {name}\n" in out) == ids
        assert (f"--id-column {name} --out found" in out) == ids
        assert ("of all: scale" in out) != ids
