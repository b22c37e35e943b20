"""`dhsk info` of samples: what the file is, and commands that run as they are printed."""

import csv
import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import sklearn.pipeline
import sklearn.preprocessing
from scipy.sparse import csc_array, save_npz
from sklearn.datasets import load_wine

import dhsk
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
        ("reads.fasta", "strings", "reads.fasta --spectrum 6 --letters dna"),
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


def test_ids_are_words_that_all_differ(run: Any, here: None) -> None:
    """Or an index; the command goes as printed. Decimal commas are named, dates are no ids."""
    days = pd.date_range("2025-01-01", periods=40).astype(str)
    table = pd.read_csv("wine.csv").drop(columns=["id", "note"])
    table.insert(1, "day", days)
    table.assign(patient=[f"P{k}" for k in range(40)]).to_csv("a.csv", index=False)
    table.to_csv("b.csv")
    for name, ids in (("a.csv", " --id-column patient"), ("b.csv", "")):
        out = run("info", name)[1]
        (line,) = (line for line in out.splitlines() if line.startswith("next:"))
        words = f"dhsk cv {name} --labels {name}:vine --in-order{ids} "
        words += "--drop-column day --out found"
        assert line.split(maxsplit=1)[1] == words
        more = ("--kernel", "linear", "--C", "1", "--folds", "2", "--overwrite")
        assert run(*shlex.split(words)[1:], *more)[0] == DONE
    mixed = table.assign(ash=[f"{k},5" for k in range(40)], lime=[f"{k}.5" for k in range(40)])
    mixed.to_csv("c.csv", sep=";", index=False)
    assert "numbers  ash with decimal commas: write points to keep them" in run("info", "c.csv")[1]


@pytest.mark.parametrize("name", ["o", "o/results.json"])
def test_results_say_what_is_best(cv: Any, run: Any, here: None, name: str) -> None:
    """As `dhsk cv` said it, for people and for programs."""
    words = f"wine.csv --labels wine.csv:vine --kernel linear --C 1,10 {WINE}"
    code, out, _ = cv(*words.split())
    assert code == DONE
    best = next(line for line in out.splitlines() if line.startswith("best:"))
    code, said, _ = run("info", name)
    assert code == DONE
    assert "samples  40 x 2, 2 classes" in said
    assert " ".join(best.split()[1:]) in said
    assert "next:   open o/report.html in a browser" in said
    kept = json.loads(Path("o/results.json").read_text())["best"]
    found = json.loads(run("info", name, "--json")[1])
    assert (found["kind"], found["best"]["mean"]) == ("results", kept["mean"])


def test_what_is_neither_is_refused_as_before(run: Any, here: None) -> None:
    """A file of unknown kind, an empty table, a folder of results, and what is not there."""
    Path("m.dhsk").write_text("none")
    assert run("info", "m.dhsk")[0] == BAD_INPUT
    Path("empty.csv").write_text("")
    assert "empty.csv is empty: it has no rows" in run("info", "empty.csv")[2]
    Path("u.csv").write_text("a title\na,b,c\n1,2,3\n4,5,6\n")
    said = "u.csv has a title, 'a title', above the header, which seems to be a, b, c: remove the"
    Path("y.txt").write_text("u\nv\n")
    for command in (("info", "u.csv"), ("train", "u.csv", "--labels", "y.txt", "--out", "m")):
        assert said in run(*command)[2]
    Path("empty.jsonl").write_text("")
    assert "empty.jsonl is empty: it has no lines" in run("info", "empty.jsonl")[2]
    Path("found").mkdir()
    Path("found", "results.json").write_text("{}")
    code, _, err = run("info", "found")
    assert (code, "found/results.json: " in err) == (BAD_INPUT, True)
    assert "there is no file nosuch.csv\n" in run("info", "nosuch.csv")[2]
    assert "nosuch does not exist: make one with dhsk gram" in run("info", "nosuch")[2]
    with zipfile.ZipFile("t.xlsx", "w") as file:
        file.writestr("x.xml", "<x/>")
    for command in (("info", "t.xlsx"), ("train", "t.xlsx", "--labels", "y.txt", "--out", "m")):
        code, _, err = run(*command)
        assert code == BAD_INPUT
        assert err.startswith("dhsk: t.xlsx is in an unknown format (.xlsx): samples are read from")
        assert "in Excel or with pandas.read_excel('t.xlsx').to_csv('t.csv', index=False); " in err
        assert "sheet_name=NAME takes another sheet" in err
    for end, way in (
        ("rds", "in R write.csv(readRDS(FILE), 't.csv')\n"),
        ("RData", "in R load(FILE); write.csv(OBJECT, 't.csv')\n"),
        ("rda", "in R load(FILE); write.csv(OBJECT, 't.csv')\n"),
        ("biom", "biom convert -i FILE -o t.tsv --to-tsv\n"),
        ("qza", "qiime tools export --input-path FILE --output-path t, or unzip FILE"),
    ):
        Path(f"t.{end}").write_bytes(b"x")
        assert way in run("info", f"t.{end}")[2], end
    Path("t.model").write_bytes(b"x")
    err = run("info", "t.model")[2]
    assert "t.model is no dhsk model" in err
    assert "As samples, t.model is in an unknown format (.model)" in err


def test_the_split_of_the_data_is_no_label(run: Any, here: None) -> None:
    """It is left out of the features; rows are counted, all of them."""
    lines = [f"{'train' if n % 5 else 'test'},{n % 7},{n % 3},{'uv'[n % 2]}" for n in range(90)]
    Path("t.csv").write_text("\n".join(["split,ash,acid,vine", *lines]))
    out = run("info", "t.csv")[1]
    assert "rows" in out
    assert " 90\n" in out
    assert "4: split, ash, acid, vine" in out
    assert "next:   dhsk cv t.csv --labels t.csv:vine --drop-column split --out found\n" in out
    code, _, err = run(*shlex.split(out.splitlines()[-1])[2:])
    assert code == DONE, err


def test_labels_are_columns_of_few_values(run: Any, here: None) -> None:
    """Times are none; of words the last, of numbers the only one with few; gaps are said."""
    rng = np.random.default_rng(0)
    lines = [
        f"{i % 3 + 0.5},{'FM'[k]},{'' if i == 3 else i},{'nj'[k]},{k},2024-01-01 00:00:{i}"
        for i, k in enumerate([0, 1] * 30)
    ]
    Path("t.csv").write_text("\n".join(["a,sex,mass,ill,k,visit", *lines]))
    out = run("info", "t.csv")[1]
    assert "1 of 60 rows have some, in 1 column (mass): with --map scaled means" in out
    Path("t.csv").write_text("\n".join(["a,sex,mass,ill,k,visit", *lines[4:]]))
    drop = "--drop-column sex --drop-column visit"
    assert (
        f"dhsk cv t.csv --labels t.csv:ill {drop} --map scaled --out found\n"
        in run("info", "t.csv")[1]
    )
    x = rng.random((60, 3))
    frame = pd.DataFrame(x, columns=list("abc")).assign(sick=np.arange(60) % 2)
    frame.to_csv("t.csv", index=False)
    assert "dhsk cv t.csv --labels t.csv:sick --out found\n" in run("info", "t.csv")[1]
    pd.DataFrame({k: np.arange(60) % 3 for k in "abcd"}).to_csv("t.csv", index=False)  # counts
    assert "dhsk cv t.csv --labels LABELS --out" in run("info", "t.csv")[1]
    frame.assign(sick=frame["sick"] == 1, d="x").to_csv("t.csv", index=False)
    assert "dhsk cv t.csv --labels t.csv:sick --drop-column d --out" in run("info", "t.csv")[1]


def test_labels_alone_are_no_samples(run: Any, here: None) -> None:
    """As dhsk predict writes them, and lines of few kinds."""
    Path("y.txt").write_text("red\nblue\n" * 20)
    out = run("info", "y.txt")[1]
    assert "classes  2 in the first 40 lines: red, blue\n" in out
    assert "next:   dhsk cv SAMPLES --labels y.txt --out found\n" in out
    Path("dna.txt").write_text("\n".join(["ACGTACGT", "ACGTACGA", "ACGTACGC", "ACGTACGT"]))
    assert "lines of text; as samples" in run("info", "dna.txt")[1]
    Path("p.csv").write_text("\n".join(["id,label", *(f"p{n},{'uv'[n % 2]}" for n in range(40))]))
    out = run("info", "p.csv")[1]
    assert "features  none: labels or predictions" in out
    assert "next:   dhsk cv SAMPLES --labels p.csv:label --out found\n" in out


def test_signed_values_come_with_kernels_that_take_them(run: Any, here: None) -> None:
    """Both commands run as they are printed, on a table and on an array."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    pd.DataFrame(x, columns=list("abc")).assign(y=np.arange(60) % 2).to_csv("t.csv", index=False)
    np.save("t.npy", x)
    Path("LABELS.txt").write_text("u\nv\n" * 30)
    for name in ("t.csv", "t.npy"):
        *_, cv, plan = run("info", name)[1].splitlines()
        assert cv.endswith("--map scaled --out found")
        assert plan.endswith(" --map scaled")
        for line in (f"{cv} --overwrite --folds 2 --C 1", plan):
            code, _, err = run(*shlex.split(line.replace("LABELS", "LABELS.txt"))[2:])
            assert code == DONE, err


def test_numbers_to_predict_come_with_lines_of_python(run: Any, here: None, capsys: Any) -> None:
    """A target of many values is no classes; the lines run as printed, and print a score."""
    x = np.random.default_rng(0).random((60, 3))
    frame = pd.DataFrame(x, columns=list("abc")).assign(
        id=range(60), site="x", place=list("uvw") * 20, target=x.sum(axis=1)
    )
    frame.to_csv("words.csv", index=False)
    out = run("info", "words.csv")[1]
    assert "words    place: left out, but pandas.get_dummies(table, columns=['place'])" in out
    *_, encode, ridge = out.splitlines()
    assert "(dhsk.Heat" not in ridge  # columns are scaled first
    exec(ridge[8:].removesuffix(" in Python"), {"pandas": pd, "dhsk": dhsk, "sklearn": sklearn})
    line, then = encode[8:].split(" in Python, then ")
    exec(line, {"pandas": pd})
    out = run(*shlex.split(then)[1:])[1]
    assert "columns  9: a, b, c, id, site, target, place_u, place_v, ..." in out
    frame = frame.drop(columns="place")
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    for name in ("t.csv", "t.parquet"):
        out = run("info", name)[1]
        assert "labels   perhaps target, numbers: a regression, in Python" in out
        *_, ridge, directions = out.splitlines()
        assert "Scaler(), dhsk.HeatGaussianProcessRegressor(kernel='gaussian')), table" in ridge
        assert "dhsk.HeatGaussianProcessRegressor(sphere_map='projective')), table" in directions
        for line in (ridge, directions):
            code = line[8:].removesuffix(" in Python")
            exec(code, {"pandas": pd, "dhsk": dhsk, "sklearn": sklearn})
            assert float(capsys.readouterr().out.removeprefix("R2 ")) > 0.5
    frame.drop(columns="id").assign(patient=np.arange(60) // 4).to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    assert "cv=sklearn.model_selection.GroupKFold(5), groups=table['patient']).mean())" in out
    counts = pd.DataFrame(np.random.default_rng(0).poisson(3.0, (60, 4)), columns=list("abcd"))
    counts = counts.assign(target=x.sum(axis=1))
    for times, model in ((1, "GaussianProcessRegressor()"), (40, "KernelRidge(alpha=0.1)")):
        pd.concat([counts] * times).to_csv("c.csv", index=False)
        assert f"score(dhsk.Heat{model}, table" in run("info", "c.csv")[1]
    pd.concat([frame] * 40).to_csv("t.csv", index=False)
    ridge = run("info", "t.csv")[1].splitlines()[-2]
    assert "dhsk.HeatKernelRidge(alpha=0.1, kernel='gaussian')), table" in ridge


def test_a_warning_is_printed_once(run: Any, here: None) -> None:
    """That of labels like counts is told where they are read, and not by the grid again."""
    x = np.random.default_rng(0).random((60, 3))
    pd.DataFrame(x, columns=list("abc")).assign(n=np.arange(60) // 3).to_csv("t.csv", index=False)
    words = ("--labels", "t.csv:n", "--kernel", "cosine", "--C", 1, "--folds", 2, "--out", "found")
    code, _, err = run("cv", "t.csv", *words)
    assert (code, err.count("20 different whole numbers")) == (DONE, 1), err


def test_arrays_say_their_shapes_and_labels(run: Any, here: None) -> None:
    """Of an archive each array; columns of Parquet, and the number of its rows."""
    rng = np.random.default_rng(0)
    np.savez("a.npz", X=rng.poisson(3.0, (30, 5)), y=np.arange(30) % 2, other=np.ones((2, 2)))
    out = run("info", "a.npz")[1]
    assert "30 x 5" in out
    assert "X 30 x 5 int64, other 2 x 2 float64, y 30 int64" in out
    assert "next:   dhsk cv a.npz --labels a.npz:y --out found\n" in out
    np.savez("b.npz", A=np.ones((4, 3)), B=np.ones((4, 2)))
    assert "dhsk cv b.npz:NAME --labels LABELS" in run("info", "b.npz")[1]
    np.save("y.npy", np.arange(4))
    assert "NAME" not in "".join(run("info", "y.npy")[1:])
    save_npz("c.npz", csc_array(np.eye(4)))
    code, _, err = run("info", "c.npz")
    assert code == BAD_INPUT
    assert "c.npz is a sparse matrix in CSC format" in err
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"ash": [1.0, 2.0, 3.0], "acid": [2, 3, 1], "vine": ["u", "v", "u"]})
    pq.write_table(table, "t.parquet")
    out = run("info", "t.parquet")[1]
    assert " 3\n" in out
    assert "dhsk cv t.parquet --labels t.parquet:vine --out found\n" in out


@pytest.mark.parametrize("kind", ["cells.h5ad", "cells.zarr"])
def test_anndata_says_layers_obs_labels_and_what_x_is(run: Any, here: None, kind: str) -> None:
    """z-scores and logarithms are named, with where the counts are; counts need no words."""
    h5py = pytest.importorskip("h5py")
    import zarr

    counts = np.random.default_rng(0).poisson(3.0, (30, 5)) + 1.0
    logs = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    opened = h5py.File(kind, "w") if kind.endswith("h5ad") else zarr.open_group(kind, mode="w")
    write = opened.create_dataset if kind.endswith("h5ad") else opened.create_array
    parts = {"X": (counts - counts.mean(0)) / counts.std(0), "layers/counts": counts, "raw/X": logs}
    for key, values in parts.items():
        write(key, data=values)
    for name in ("kind", "batch_of_origin"):  # says where cells are from, not what they are
        write(f"obs/{name}/codes", data=(np.arange(30) % 2).astype("i1"))
        write(f"obs/{name}/categories", data=np.array([1, 2]))
    write("obs/depth", data=counts.sum(axis=1))
    if kind.endswith("h5ad"):
        opened.close()
    out = run("info", kind)[1]
    for words in ("30 x 5", "layers/counts, raw/X", "depth, kind", "perhaps obs/kind\n",
                  "as z-scores are: layers/counts may have counts"):  # fmt: skip
        assert words in out
    options = f"--labels {kind}:obs/kind --map scaled"
    assert f"next:   dhsk cv {kind} {options} --out found\n" in out
    out = run("info", f"{kind}:raw/X")[1]
    assert "log1p of counts, it seems: layers/counts may have counts" in out
    assert f"dhsk cv {kind}:raw/X --labels" in out
    assert "values" not in run("info", f"{kind}:layers/counts")[1]


@pytest.mark.parametrize("kind", ["cells.h5ad", "cells.zarr"])
def test_labels_with_gaps_are_told(run: Any, here: None, kind: str) -> None:
    """Rows without a label have to go first, as a line of Python says; obsm is named too."""
    h5py = pytest.importorskip("h5py")
    import zarr

    opened = h5py.File(kind, "w") if kind.endswith("h5ad") else zarr.open_group(kind, mode="w")
    write = opened.create_dataset if kind.endswith("h5ad") else opened.create_array
    write("X", data=np.eye(30))
    write("obsm/X_pca", data=np.eye(30)[:, :2])
    write("obs/kind/codes", data=(np.arange(30) % 3 - 1).astype("i1"))
    write("obs/kind/categories", data=np.array([1, 2]))
    write("obs/label/values", data=np.arange(30) % 2)
    write("obs/label/mask", data=np.arange(30) < 1)
    if kind.endswith("h5ad"):
        opened.close()
    out, end = run("info", kind)[1], kind[6:]
    assert "obsm     obsm/X_pca\n" in out
    assert "gaps     1 row without obs/label: leave them out\n" in out
    line = f"adata = anndata.read_{end}('{kind}'); adata[adata.obs['label'].notna()]"
    assert out.endswith(f"next:   {line}.write_{end}('cells_labelled.{end}') in Python\n")


def test_tables_with_samples_in_columns_are_told(run: Any, here: None) -> None:
    """By the name of the first column; and by the labels. The line of Python turns them."""
    counts = np.random.default_rng(0).poisson(3.0, (12, 30)) + 1
    names = [f"s{k}" for k in range(30)]
    table = pd.DataFrame(counts, [f"t{k}" for k in range(12)], names).rename_axis("#OTU ID")
    body = table.to_csv(sep="\t")
    Path("otu.tsv").write_text(f"# Constructed from biom file\n{body}")
    out = run("info", "otu.tsv")[1]
    assert "each row  features by the name #OTU ID: samples must be rows" in out
    *_, line = out.splitlines()
    exec(line[8:].removesuffix(" in Python"), {"pandas": pd})
    assert "dhsk cv" not in out  # of taxa as samples
    table["taxonomy"] = ["k__Bacteria; p__Firmicutes", "k__Bacteria; p__Proteobacteria"] * 6
    table.to_csv("biom.tsv", sep="\t")
    out = run("info", "biom.tsv")[1]
    exec(out.splitlines()[-1][8:].removesuffix(" in Python"))
    turned = pd.read_csv("biom_samples.csv", index_col=0)
    assert (turned.shape, set(turned.dtypes)) == ((30, 12), {np.dtype("int64")})
    plain = table.drop(columns="taxonomy")
    for name, is_said in (
        ("OTU{}", True), ("ASV_{}", True), ("ENSG000001000{:02}", True), ("16{:02}_s_at", True),
        ("d__Bacteria;p__{}", True), ("S{}", False), ("P{}_at_home", False), ("sp{}", False),
    ):  # fmt: skip
        plain.set_axis([name.format(k) for k in range(12)]).to_csv("r.csv")  # as write.csv of R
        out = run("info", "r.csv")[1]
        assert ("each row  features by the names of rows, as" in out) == is_said, name
        assert (".T.to_csv('r_samples.csv') in Python" in out) == is_said, name
    Path("y.txt").write_text("a\nb\n" * 15)
    words = ("--labels", "y.txt", "--kernel", "linear", "--C", 1, "--folds", 2, "--out", "found")
    code, _, err = run("cv", "otu.tsv", "--id-column", "#OTU ID", *words)
    way = "pandas.read_csv('otu.tsv', sep='\\t', skiprows=1, index_col=0).T.to_csv(OTHER) does\n"
    assert (code, "30 labels for 12 samples" in err, err.endswith(way)) == (BAD_INPUT, True, True)
    assert run("cv", "otu_samples.csv", "--id-column", "Unnamed: 0", *words)[0] == DONE
    np.save("x.npy", counts)
    assert (
        "if these are the samples, which must be rows, transpose" in run("cv", "x.npy", *words)[2]
    )
    Path("y.txt").write_text("a\nb\n" * 4)
    assert "transpose" not in run("cv", "x.npy", *words)[2]


def test_decimal_commas_are_numbers(run: Any, here: None) -> None:
    """As of any table; a column of zeros but for one value holds no labels."""
    values = np.random.default_rng(0).random((40, 30)).round(3)
    values[:, 28], values[:, 29] = [0.5, 1.5] * 20, 0.0
    values[3, 29] = 0.5
    table = pd.DataFrame(values, columns=[f"t{k}" for k in range(30)])
    table.insert(0, "dx", ["yes", "no"] * 20)
    table.insert(0, "who", [f"s{k}" for k in range(40)])
    table["rare"] = ["u"] * 39 + ["v"]
    table.to_csv("excel.csv", sep=";", decimal=",", index=False)
    out = run("info", "excel.csv")[1]
    assert "labels   perhaps dx\n" in out
    assert "none: labels or predictions" not in out
    assert "--labels excel.csv:dx --id-column who --drop-column rare --out found\n" in out


EXCEL = "a;b;dx\n" + "4.243;226,3;yes\n397;1.234.567,5;no\n12;0,5;no\n" * 10


def test_points_of_thousands_beside_decimal_commas(run: Any, here: None) -> None:
    """They separate thousands; the line of pandas reads the same."""
    Path("t.csv").write_text(EXCEL + ";;\n")  # of a row that was emptied
    samples = dhsk.open_samples("t.csv", drop_columns=["dx"])
    (block,) = samples.blocks(100)
    assert block[:3].tolist() == [[4243, 226.3], [397, 1234567.5], [12, 0.5]]
    assert len(block) == 30
    code, out, err = run("info", "t.csv")
    assert (code, err) == (DONE, "")
    assert "labels   perhaps dx (or a)\n" in out
    read = eval(samples.table.in_pandas(), {"pandas": pd})  # type: ignore[attr-defined]
    assert read.iloc[:30, :2].to_numpy().tolist() == block.tolist()


def test_lines_of_pandas_keep_dates_where_points_separate_thousands(run: Any, here: None) -> None:
    """Points of thousands are seen in late rows too, and are none in dates."""
    rows = [f"{k % 28 + 1:02d}.05.2024;{k},5;{'uv'[k % 2]};{'nmo'[k % 3]}" for k in range(60)]
    rows[50] = "03.05.2024;1.234,5;u;n"
    Path("t.csv").write_text("\n".join(["day;mass;way;dx", *rows]))
    out = run("info", "t.csv")[1]
    line = next(line for line in out.splitlines() if line.startswith("next:"))
    exec(line.removeprefix("next:").partition(" in Python")[0].strip())
    found = pd.read_csv("t_numbers.csv")
    assert found["day"].tolist() == [row[:10] for row in rows]
    assert found["mass"].tolist() == [1234.5 if k == 50 else k + 0.5 for k in range(60)]


def test_points_that_may_separate_thousands(run: Any, here: None) -> None:
    """They are read as decimal points, with a warning that says how to leave them out."""
    rows = "1.070;917;0.125\n2.300;12;0.250\n850;3;1.125\n" * 10
    Path("t.csv").write_text(f"use;age;x\n{rows}")
    for words in (["info", "t.csv"], ["gram", "t.csv", "--out", "g"]):
        err = run(*words)[2]
        assert "points are read as decimal points in 'use' (1.070, 850): if they" in err
        read = "pandas.read_csv('t.csv', sep=';', thousands='.', dtype={'x': str})"
        line = f"{read}.to_csv('t_points.csv', index=False)"
        assert line in err
    exec(line, {"pandas": pd})
    assert pd.read_csv("t_points.csv").iloc[:3].to_numpy().tolist() == [
        [1070, 917, 0.125], [2300, 12, 0.25], [850, 3, 1.125]
    ]  # fmt: skip
    assert run("info", "t_points.csv")[2] == ""
    Path("t.csv").write_text("a;b\n1.070;2\n1.500;2\n0.900;2\n7;2\n")  # 0.900 has none
    assert run("info", "t.csv")[2] == ""
    Path("t.csv").write_text("a;b\n1.070;2\n1.500;2\n")  # all may have three decimals
    assert run("info", "t.csv")[2] == ""
    Path("t.csv").write_text("a,b\n1.070,2\n1.500,2\n7,2\n")
    assert run("info", "t.csv")[2] == ""


def test_rows_without_a_value_end_a_table(run: Any, here: None) -> None:
    """Where Excel had rows; between others such a row has gaps."""
    Path("t.csv").write_text("a;b\n1;2\n;\n3;4\n;\n;\n")
    samples = dhsk.open_samples("t.csv")
    assert samples.shape == (3, 2)
    assert samples.has_gaps


def test_a_rare_class_in_the_last_column(run: Any, here: None) -> None:
    """It holds the labels, rather than words before it; and so when these were made numbers."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((2000, 4)).round(2), columns=[*"abcd"])
    table.insert(1, "branch", rng.choice(["power", "gas", "heat"], 2000))
    table.loc[:20, "branch"] = None
    table["state"] = np.where(rng.random(2000) < 0.012, "broken", "well")
    table.to_csv("t.csv", index=False)
    assert "labels   perhaps state (or branch)\n" in run("info", "t.csv")[1]
    pd.get_dummies(table, columns=["branch"]).to_csv("n.csv", index=False)
    assert "labels   perhaps state\n" in run("info", "n.csv")[1]


def test_rows_newest_first_are_turned_round(run: Any, here: None) -> None:
    """By the line that comes next, after which folds follow the dates."""
    days = pd.date_range("2024-01-25", periods=40)[::-1]
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "x": rng.random(40)})
    table["peak"] = np.where(rng.random(40) < 0.4, "yes", "no")
    table.to_csv("t.csv", index=False)
    out = run("info", "t.csv")[1]
    line = out.split("next:   ")[1].split(" in Python")[0]
    assert "dhsk cv" not in out
    exec(line)
    assert "--labels t_oldest_first.csv:peak --in-order" in run("info", "t_oldest_first.csv")[1]


def test_numbers_in_a_file_of_text_are_a_table(run: Any, here: None) -> None:
    """As numpy.savetxt writes it; the line that comes next names it so."""
    np.savetxt("x.txt", np.random.default_rng(0).random((40, 3)))
    assert run("info", "x.txt")[1].endswith("next:   rename it to x.csv, then dhsk info x.csv\n")
    Path("y.txt").write_text("a\nb\n" * 20)
    said = run("cv", "x.txt", "--labels", "y.txt", "--out", "o")[2]
    assert "x.txt holds a table of numbers: name it .csv" in said


def test_a_column_of_another_unit_is_named(run: Any, here: None) -> None:
    """In a table of measurements, but not in counts, of which one may rule."""
    x = np.random.default_rng(0).random((40, 4)) * [1, 2, 3, 900]
    np.save("x.npy", x)
    assert "column 3 has 99% of all: scale columns of other units" in run("info", "x.npy")[1]
    for same in (np.ceil(x), x / x.sum(axis=1, keepdims=True)):
        np.save("x.npy", same)
        assert "column" not in run("info", "x.npy")[1]


def test_a_column_of_another_unit_is_named_in_a_table(run: Any, here: None) -> None:
    """Among the columns that are samples: neither labels nor ids."""
    x = np.random.default_rng(0).random((40, 4)) * [1, 2, 3, 900]
    lines = [f"{i}000,{a},{b},{c},{d},{'uv'[i % 2]}" for i, (a, b, c, d) in enumerate(x)]
    Path("x.csv").write_text("\n".join(["id,a,b,c,d,label", *lines]))
    assert "column d has 99% of all: scale columns of other units" in run("info", "x.csv")[1]
    signed = [f"{i},{a - 0.5},{b},{c},{'uv'[i % 2]}" for i, (a, b, c, _) in enumerate(x)]
    Path("x.csv").write_text("\n".join(["id,a,b,c,label", *signed]))
    assert "below 0 too, as z-scores are: kernels of scaled columns" in run("info", "x.csv")[1]


@pytest.mark.parametrize("way", ["ovo", "ovr"])
def test_a_model_names_the_words_of_each_class(run: Any, here: None, way: str) -> None:
    """Of linear and cosine kernels, whose features have weights."""
    words = {"tea": "green tea leaf", "wine": "red wine grape", "bread": "white bread flour"}
    rows = [(f"{text} and more {k % 3}", name) for k in range(30) for name, text in words.items()]
    pd.DataFrame(rows, columns=["text", "kind"]).to_csv("t.csv", index=False)
    train = ("train", "t.csv:text", "--labels", "t.csv:kind", "--multi-class", way)
    assert run(*train, "--kernel", "cosine", "--map", "tfidf", "--out", "m")[0] == DONE
    lines = dict(
        line.split(maxsplit=2)[1:] for line in run("info", "m")[1].splitlines() if "for " in line
    )
    for name, text in words.items():
        assert {w.split()[0] for w in lines[name].split(", ")[:3]} == set(text.split())
    assert run(*train, "--out", "heat")[0] == DONE
    assert "  for " not in run("info", "heat")[1]
    cv = ("cv", *train[1:], "--kernel", "cosine", "--C", "1", "--folds", "3", "--out", "o")
    assert run(*cv, "--model")[0] == DONE
    found = dhsk.CvResult.from_json("o/results.json").weights
    assert [one.label for one in found] == ["bread", "tea", "wine"]
    assert all(set(one.features[:3]) == set(words[one.label].split()) for one in found)
    page = Path("o/report.html").read_text()
    assert "What speaks for each class" in page
    assert found[0].words in page


def test_columns_that_speak_against_a_class_are_named(run: Any, here: None) -> None:
    """Of scaled columns; weights are means over the pairs of classes."""
    table = load_wine(as_frame=True).frame
    table.to_csv("wine.csv", index=False)
    train = ("train", "wine.csv", "--labels", "wine.csv:target", "--kernel", "linear")
    assert run(*train, "--map", "scaled", "--multi-class", "ovo", "--out", "m")[0] == DONE
    model = dhsk.HeatSVC.load("m")
    names = list(model.feature_names_in_)
    first = model.model_.class_weights(13)[0]
    expected = (model.coef_[0] + model.coef_[1]) / 2  # of 0 against 1, and against 2
    np.testing.assert_allclose(first.weights, expected[[names.index(n) for n in first.features]])
    assert np.all(np.diff(np.abs(first.weights)) <= 0)
    assert min(first.weights) < 0
    assert f"  for 0            {first.features[0]} +" in run("info", "m")[1]


def test_folders_are_described_or_refused_as_what_they_are(run: Any, here: None) -> None:
    """That of 10x Genomics, and one of nothing that is read as a whole."""
    Path("tenx").mkdir()
    scipy.io.mmwrite("tenx/matrix.mtx", csc_array(np.eye(4) + np.eye(4, k=1)))
    assert "dhsk cv tenx/matrix.mtx --labels LABELS --out found" in run("info", "tenx")[1]
    Path("genomes").mkdir()
    Path("genomes/a.fasta").write_text(">a\nACGT\n")
    assert "genomes is a folder of nothing that is read as one" in run("info", "genomes")[2]
    for name in ("news/autos/101", "news/space/102"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text("a post")
    assert "if these are texts rename them, in Python import pathlib" in run("info", "news")[2]
    Path("news/autos/101").rename("news/autos/101.txt")
    assert "1 subfolder (space) would be left out" in run("info", "news")[2]
