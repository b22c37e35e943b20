"""`dhsk predict` and loaded models on columns in another order, with ids and decisions."""

import csv
import shlex
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.models.files import load_model
from dhsk.objects.places import parse_place

N, DIM = 90, 14
NAMES = [f"gene{i}" for i in range(DIM)]
IDS = [f"cell-{i}" for i in range(N)]
KINDS = {"exact": (), "low rank": ("--rank", 30)}


@pytest.fixture
def data(counts: Any) -> tuple[Any, Any]:
    """Three classes that differ in a few features each, which a wrong order mixes up."""
    X, y = counts(N, DIM), np.repeat(["a", "b", "c"], N // 3)
    for code, label in enumerate("abc"):
        X[y == label, 4 * code : 4 * code + 4] += 4
    return X, y


def write_h5ad(path: str, X: Any, y: Any, names: list[str], *, sparse: bool) -> None:
    """Write cells and genes as AnnData does."""
    with h5py.File(path, "w") as file:
        for table, index in (("obs", IDS), ("var", names)):
            group = file.create_group(table)
            group.attrs["_index"] = "_index"
            group.create_dataset("_index", data=np.array(index, dtype=object))
        file["obs"].create_dataset("type", data=y.astype(object))
        if not sparse:
            file.create_dataset("X", data=X)
            return
        A = sp.csr_array(X)
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", A.shape
        for part in ("data", "indices", "indptr"):
            group.create_dataset(part, data=getattr(A, part))


def table(path: str) -> pd.DataFrame:
    """Read what was predicted, every cell as it was written."""
    return pd.read_csv(path, dtype=str)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_cells_with_their_genes_in_another_order_score_the_same(
    run: Any, data: Any, rng: Any, kind: str, *, sparse: bool
) -> None:
    """The case of issue 13: labels and decisions are those of the genes in order, to the digit."""
    X, y = data
    order = rng.permutation(DIM)
    write_h5ad("x.h5ad", X, y, NAMES, sparse=sparse)
    write_h5ad("other.h5ad", X[:, order], y, [NAMES[i] for i in order], sparse=sparse)
    words = ("--labels", "x.h5ad:obs/type", "--C", 10)
    assert run("train", "x.h5ad", *words, *KINDS[kind], "--out", "m")[0] == DONE
    said = []
    for file in ("x.h5ad", "other.h5ad"):
        code, out, err = run("predict", "m", file, "--labels", f"{file}:obs/type", "--decision",
                             "--out", f"{file}.csv")  # fmt: skip
        assert (code, err) == (DONE, "")
        said.append(out.splitlines()[0])
    assert said[0] == said[1]
    accuracy = np.mean(table("x.h5ad.csv")["label"] == y)
    assert float(said[0].split()[1].rstrip(":")) == pytest.approx(accuracy, abs=5e-5)
    pd.testing.assert_frame_equal(table("x.h5ad.csv"), table("other.h5ad.csv"))
    assert table("other.h5ad.csv")["id"].tolist() == IDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_with_its_columns_reversed_scores_the_same(run: Any, data: Any, kind: str) -> None:
    """The other case of issue 13; a column of labels is no feature in either order."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(type=y)
    frame.to_csv("x.csv", index=False)
    frame[frame.columns[::-1]].to_csv("reversed.csv", index=False)
    assert run("train", "x.csv", "--labels", "x.csv:type", *KINDS[kind], "--out", "m")[0] == DONE
    for file in ("x.csv", "reversed.csv"):
        words = ("--labels", f"{file}:type", "--decision", "--out", f"{file}.out")
        code, _, err = run("predict", "m", file, *words)
        assert (code, err) == (DONE, "")
    pd.testing.assert_frame_equal(table("x.csv.out"), table("reversed.csv.out"))


def test_missing_and_unknown_columns_are_refused_by_name(run: Any, data: Any) -> None:
    """Exit code 2, one sentence that names them, and nothing written."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(type=y).to_csv("x.csv", index=False)
    assert run("train", "x.csv", "--labels", "x.csv:type", "--out", "m")[0] == DONE
    frame.rename(columns={"gene3": "gene33"}).to_csv("other.csv", index=False)
    code, _, err = run("predict", "m", "other.csv", "--out", "o.csv")
    assert (code, err.count("\n")) == (BAD_INPUT, 1)
    assert "other.csv lacks 1 of the 14 features of m (gene3)" in err
    assert "has 1 feature that m does not know (gene33)" in err
    assert "--drop-column NAME" in err
    assert not Path("o.csv").exists()
    frame.rename(columns={"gene3": "gene33"}).assign(sex="f", type=y).to_csv("o.csv", index=False)
    code, _, err = run("predict", "m", "o.csv", "--labels", "o.csv:type", "--out", "p.csv")
    assert (code, err.count("\n")) == (BAD_INPUT, 1)  # not of the text, which is no feature
    assert "o.csv lacks 1 of the 14 features of m (gene3) and has 2 features that m does not" in err
    assert "not know (gene33, sex)" in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_more_columns_of_a_table_are_left_out(run: Any, data: Any, kind: str) -> None:
    """Where all features are there: it is said, and text among them is no harm."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    write = {"csv": partial(pd.DataFrame.to_csv, index=False), "parquet": pd.DataFrame.to_parquet}
    write[kind](frame.assign(type=y), f"x.{kind}")
    assert run("train", f"x.{kind}", "--labels", f"x.{kind}:type", "--out", "m")[0] == DONE
    assert run("predict", "m", f"x.{kind}", "--labels", f"x.{kind}:type", "--out", "a.csv")[0] == 0
    write[kind](frame.assign(sex="f", depth=1.0, who=IDS), f"more.{kind}")
    code, _, err = run("predict", "m", f"more.{kind}", "--id-column", "who", "--out", "b.csv")
    assert code == DONE, err
    said = f"more.{kind} has 2 columns beside the 14 features, left out: sex, depth"
    assert said in err
    assert table("b.csv")["label"].tolist() == table("a.csv")["label"].tolist()


def test_no_other_file_is_replaced(run: Any, data: Any) -> None:
    """By a model or by predictions, even of the folder of a run; results of before may be."""
    X, y = data
    pd.DataFrame(X, columns=NAMES).assign(type=y).to_csv("x.csv", index=False)
    Path("mine.csv").write_text("kept,so\n1,2\n")
    words = ("x.csv", "--labels", "x.csv:type")
    code, _, err = run("train", *words, "--out", "mine.csv")
    assert (code, "mine.csv exists, is not a dhsk model" in err) == (BAD_INPUT, True)
    cv = ("cv", *words, "--kernel", "cosine", "--C", 1, "--folds", 2, "--model", "--out", "found")
    assert run(*cv)[0] == DONE
    before = Path("found/model.dhsk").read_bytes()
    for out in ("found/model.dhsk", "found/results.csv", "mine.csv"):
        code, _, err = run("predict", "found", "x.csv", "--labels", "x.csv:type", "--out", out)
        assert code == BAD_INPUT, out
        assert err.count("\n") == 1
    assert Path("found/model.dhsk").read_bytes() == before
    assert Path("mine.csv").read_text() == "kept,so\n1,2\n"
    for there in (False, True):
        commands = {"m": ("train", *words), "o.csv": ("predict", "m", *words)}
        for out, command in commands.items():
            code, _, err = run(*command, "--out", out)
            assert (code, f"--out {out} is a" in err) == (DONE, there)


def test_words_that_became_columns_are_told(run: Any, data: Any) -> None:
    """A new word, words that are no columns yet, another table, and a feature as labels."""
    X, y = data
    kinds = np.array(["A", "B", "C"])[np.arange(len(y)) % 3]
    raw = pd.DataFrame(X[:, :3], columns=NAMES[:3]).assign(grp=kinds)
    made = pd.get_dummies(raw, columns=["grp"])
    made.assign(type=y).to_csv("x.csv", index=False)
    assert run("train", "x.csv", "--labels", "x.csv:type", "--out", "m")[0] == DONE
    made.rename(columns={"grp_C": "grp_D"}).to_csv("new.csv", index=False)
    err = run("predict", "m", "new.csv", "--out", "o.csv")[2]
    assert "table['grp_C'] = 0 and leave out grp_D, which no training sample had\n" in err
    assert "Is 'grp_D' its" not in err
    raw.to_csv("raw.csv", index=False)
    err = run("predict", "m", "raw.csv", "--out", "o.csv")[2]
    assert "as in training: pandas.get_dummies(table, columns=['grp'])\n" in err
    pd.DataFrame({"x": X[:, 0], "Species": y}).to_csv("iris.csv", index=False)
    err = run("predict", "m", "iris.csv", "--out", "o.csv")[2]
    assert "iris.csv lacks 6 of the 6 features of m" in err
    err = run("predict", "m", "x.csv", "--labels", "x.csv:grp_A", "--out", "o.csv")[2]
    assert "--labels x.csv:grp_A is a feature of m: name the column of the labels" in err


@pytest.mark.parametrize(
    "words",
    ["--min-df 2 --ngrams 2 --stop-words english", "--spectrum 2-3", "--spectrum 3 --hash 64"],
)
def test_the_line_for_probabilities_counts_the_same(run: Any, words: str) -> None:
    """Of words, and of substrings."""
    texts = ["red wine and roses", "white wine and more roses", "green tea and red roses"] * 8
    pd.DataFrame({"text": texts, "y": ["u", "v", "v"] * 8}).to_csv("t.csv", index=False)
    given = ("t.csv:text", "--labels", "t.csv:y", *words.split())
    assert run("train", *given, "--out", "m")[0] == DONE
    err = run("predict", "m", "t.csv:text", "--proba", "--out", "o.csv")[2]
    assert f"dhsk train SAMPLES --labels LABELS {words} --kernel heat" in err


def test_labels_that_no_model_knows_are_warned_of(run: Any, data: Any) -> None:
    """They are counted as wrong, which is no fault of the model."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(type=y)
    frame.to_csv("x.csv", index=False)
    assert run("train", "x.csv", "--labels", "x.csv:type", "--out", "m")[0] == DONE
    frame.loc[:4, "type"] = "new"
    frame.to_csv("y.csv", index=False)
    code, _, err = run("predict", "m", "y.csv", "--labels", "y.csv:type", "--out", "o.csv")
    assert code == DONE
    assert f"5 of {N} labels of y.csv:type are no class of the model (new)" in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_printed_line_predicts_samples_without_labels(run: Any, data: Any, kind: str) -> None:
    """New samples have no labels; a misspelt column is seen by the features."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    write = {"csv": partial(pd.DataFrame.to_csv, index=False), "parquet": pd.DataFrame.to_parquet}[
        kind
    ]
    write(frame.assign(type=y, who=IDS, batch=1.0), f"x.{kind}")
    write(frame.assign(who=IDS), f"new.{kind}")
    words = ("--labels", f"x.{kind}:type", "--drop-column", "batch", "--id-column", "who")
    code, out, err = run("train", f"x.{kind}", *words, "--out", "m")
    assert code == DONE, err
    line = next(line for line in out.splitlines() if line.startswith("next:   dhsk predict"))
    code, _, err = run(*shlex.split(line.replace(f"x.{kind}", f"new.{kind}"))[2:])
    assert code == DONE, err
    labels = table("predicted.csv")["label"].tolist()
    assert run(*shlex.split(line)[2:])[0] == DONE
    assert table("predicted.csv")["label"].tolist() == labels
    write(frame.assign(batch=1.0), f"new.{kind}")
    code, _, err = run("predict", "m", f"new.{kind}", "--drop-column", "bath", "--out", "o.csv")
    assert (code, "left out: batch" in err) == (DONE, True)


def test_held_out_samples_may_lack_the_columns_of_training(run: Any, data: Any) -> None:
    """Those of groups and of labels, which may be elsewhere."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(type=y, who=IDS, site=np.arange(N) % 4).to_csv("x.csv", index=False)
    frame.assign(who=IDS).to_csv("new.csv", index=False)
    Path("y.txt").write_text("\n".join(y))
    words = ("--labels", "x.csv:type", "--drop-column", "site", "--id-column", "who", "--C", 1)
    words += ("--groups", "x.csv:site", "--kernel", "cosine", "--folds", 2, "--out", "found")
    code, _, err = run("cv", "x.csv", *words, "--test", "new.csv", "--test-labels", "y.txt")
    assert code == DONE, err


def test_test_samples_have_their_labels_in_the_same_column(run: Any, data: Any) -> None:
    """It need not be named again; a test by the training samples is warned of."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES).assign(type=y)
    frame.to_csv("x.csv", index=False)
    frame[: N // 2].to_csv("new.csv", index=False)
    words = ["cv", "x.csv", "--labels", "x.csv:type", "--kernel", "cosine", "--C", 1, "--folds", 2]
    code, out, err = run(*words, "--test", "new.csv", "--out", "a")
    assert code == DONE, err
    assert f"on {N // 2} samples held out" in out
    assert "--test" not in err
    code, out, err = run(*words, "--test", "x.csv", "--out", "b")
    assert code == DONE, err
    assert "--test x.csv has the samples that the model is trained on" in err


def test_samples_or_models_without_names_are_taken_by_width(run: Any, data: Any) -> None:
    """With the warning of scikit-learn, and the number of features is still checked."""
    X, y = data
    pd.DataFrame(X, columns=NAMES).assign(type=y).to_csv("x.csv", index=False)
    np.save("x.npy", X)
    np.save("narrow.npy", X[:, 1:])
    Path("y.txt").write_text("\n".join(y))
    assert run("train", "x.csv", "--labels", "x.csv:type", "--out", "named")[0] == DONE
    assert run("train", "x.npy", "--labels", "y.txt", "--out", "bare")[0] == DONE
    code, _, err = run("predict", "named", "x.npy", "--out", "o.csv")
    assert (code, err.count("\n")) == (DONE, 1)
    assert "named has feature names and x.npy has none" in err
    code, _, err = run("predict", "bare", "x.csv", "--drop-column", "type", "--out", "o2.csv")
    assert (code, err.count("\n")) == (DONE, 1)
    assert "x.csv has feature names and bare has none" in err
    code, _, err = run("predict", "bare", "x.npy", "--out", "o3.csv")
    assert (code, err) == (DONE, "")
    assert run("predict", "named", "narrow.npy", "--out", "o.csv")[0] == BAD_INPUT


def test_ids_come_from_a_column_of_a_table(run: Any, data: Any) -> None:
    """The one that is named, or one called id that the model does not know; text or numbers."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(type=y).to_csv("x.csv", index=False)
    assert run("train", "x.csv", "--labels", "x.csv:type", "--out", "m")[0] == DONE
    frame.assign(who=IDS).to_csv("t.csv", index=False)
    assert run("predict", "m", "t.csv", "--id-column", "who", "--out", "o.csv")[0] == DONE
    assert list(table("o.csv").columns) == ["id", "label"]
    assert table("o.csv")["id"].tolist() == IDS
    frame.assign(ID=range(100, 100 + N)).to_csv("t.csv", index=False)
    assert run("predict", "m", "t.csv", "--out", "o.csv")[0] == DONE
    assert table("o.csv")["id"].tolist() == [str(i) for i in range(100, 100 + N)]
    frame.assign(ID=IDS).to_parquet("t.parquet")
    assert run("predict", "m", "t.parquet", "--out", "o.csv")[0] == DONE
    assert table("o.csv")["id"].tolist() == IDS
    assert run("predict", "m", "t.csv", "--drop-column", "ID", "--out", "o.csv")[0] == DONE
    assert list(table("o.csv").columns) == ["label"]
    code, _, err = run("predict", "m", "t.csv", "--id-column", "none", "--out", "o.csv")
    assert (code, "no column 'none'" in err) == (BAD_INPUT, True)


@pytest.mark.parametrize(
    "own",
    [
        ("--kernel", "gaussian", "--map", "scaled", "--C", 2),
        ("--kernel", "polynomial", "--degree", 3),
        ("--map", "projective", "--multi-class", "ovr"),
        ("--rank", 20),
    ],
)
def test_a_model_without_probabilities_says_how_to_train_one(
    run: Any, data: Any, own: tuple[Any, ...]
) -> None:
    """The line that it prints trains the same kernel, map and C."""
    X, y = data
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(y))
    words = ("train", "x.npy", "--labels", "y.txt")
    assert run(*words, *own, "--out", "m")[0] == DONE
    code, _, err = run("predict", "m", "x.npy", "--proba", "--out", "o.csv")
    assert code == BAD_INPUT
    line = err.splitlines()[-1].partition("that has by dhsk ")[2]
    line = line.replace("SAMPLES", "x.npy").replace("LABELS", "y.txt").replace("MODEL", "p")
    assert run(*shlex.split(line))[0] == DONE
    first, second = load_model(parse_place("m", "m")), load_model(parse_place("p", "p"))
    assert second.has_probabilities
    assert (first.map_name, first.kernel.label) == (second.map_name, second.kernel.label)
    assert pytest.approx(second.certificates.C, rel=1e-5) == first.certificates.C


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", ["exact", "low rank"])
def test_decisions_and_probabilities_stand_beside_the_label(
    run: Any, data: Any, kind: str, classes: int
) -> None:
    """Named by class, as `decision_function` and `predict_proba` give them."""
    X, y = data
    X, y = X[: 30 * classes], y[: 30 * classes]
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(y))
    own = ("--probability",) if kind == "exact" else ("--rank", 30, "--loss", "logistic")
    assert run("train", "x.npy", "--labels", "y.txt", *own, "--out", "m")[0] == DONE
    words = ("predict", "m", "x.npy", "--decision", "--proba", "--out")
    assert run(*words, "o.csv")[0] == DONE
    for _ in range(2):  # its own table may be replaced
        assert run(*words, "o.tsv")[0] == DONE
    assert Path("o.tsv").read_text() == Path("o.csv").read_text().replace(",", "\t")
    with Path("o.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    labels = ["a", "b", "c"][:classes]
    decided = labels if classes == 3 else ["b"]
    assert header == ["label", *(f"decision_{c}" for c in decided),
                      *(f"probability_{c}" for c in labels)]  # fmt: skip
    model: Any = (dhsk.HeatSVC if kind == "exact" else dhsk.NystromSVC).load("m")
    found = np.array([row[1:] for row in rows], dtype=np.float64)
    decision = model.decision_function(X).reshape(len(X), -1)
    np.testing.assert_array_equal(found[:, : len(decided)], decision)
    np.testing.assert_array_equal(found[:, len(decided) :], model.predict_proba(X))
    assert [row[0] for row in rows] == model.predict(X).tolist()


@pytest.mark.parametrize("estimator", [dhsk.HeatSVC(10.0), dhsk.NystromSVC(30, random_state=0)])
def test_a_loaded_model_puts_columns_in_order(estimator: Any, data: Any, tmp_path: Path) -> None:
    """One that was fitted now refuses them, as scikit-learn's contract has it."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    estimator.fit(frame, y).save(tmp_path / "m")
    loaded = type(estimator).load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == NAMES
    expected = estimator.decision_function(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = loaded.decision_function(frame[NAMES[::-1]])
        assert loaded.predict(frame[NAMES[::-1]]).tolist() == estimator.predict(frame).tolist()
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="must be in the same order"):
        estimator.predict(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- z\n.*now missing:\n- gene0"):
        loaded.predict(frame.rename(columns={"gene0": "z"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        loaded.predict(X)
    loaded.fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        loaded.predict(frame[NAMES[::-1]])


def test_files_give_estimators_their_names(data: Any, tmp_path: Path) -> None:
    """`fit_samples` sets and forgets `feature_names_in_` as `fit` does."""
    X, y = data
    pd.DataFrame(X, columns=NAMES).to_csv(tmp_path / "x.csv", index=False)
    model = dhsk.HeatSVC().fit_samples(tmp_path / "x.csv", y)
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(model.fit_samples(X, y), "feature_names_in_")


@pytest.mark.parametrize("rank", [None, 20])
def test_the_model_of_a_cross_validation_has_names(
    data: Any, tmp_path: Path, rank: int | None
) -> None:
    """Of samples, exact and of low rank; test samples are put in their order."""
    X, y = data
    frame = pd.DataFrame(X, columns=NAMES)
    reversed_ = frame[NAMES[::-1]]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge")
        result = dhsk.cross_validate(
            frame,
            y,
            time_scale=1.0,
            C=10.0,
            low_rank=rank and dhsk.LowRank(rank),
            refit=dhsk.Refit(test=(reversed_, y)),
        )
    assert result.model_ is not None
    assert result.model_.feature_names == tuple(NAMES)
    accuracy = np.mean(result.model_.predict(dhsk.hyperspherical_map(X)) == y)
    assert result.data["test"]["score"] == accuracy


@pytest.mark.parametrize(
    "changes",
    [{"feature_names": 5}, {"feature_names": ["a"]}, {"feature_names": [1] * DIM}, {"notes": []}],
)
def test_damaged_names_of_a_model_are_one_sentence(
    run: Any, data: Any, tmp_path: Path, changes: dict[str, Any]
) -> None:
    """Exit code 2, whatever the header holds in their place."""
    X, y = data
    dhsk.HeatSVC().fit(X, y).save("m")
    np.save("x.npy", X)
    _rewrite(tmp_path / "m", lambda header: header.update(changes))
    code, _, err = run("predict", "m", "x.npy", "--out", "o.csv")
    if "feature_names" in changes:
        assert (code, err.count("\n")) == (BAD_INPUT, 1)
        assert "m is a damaged model" in err
    else:  # nothing of a prediction is in the notes
        assert (code, err) == (DONE, "")


def _rewrite(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the header of a model file."""
    import json

    with np.load(path) as archive:
        parts = {name: archive[name] for name in archive.files}
    header = json.loads(parts["header"].tobytes())
    change(header)
    parts["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **parts)


def test_features_of_a_file_in_another_order(data: Any, tmp_path: Path) -> None:
    """`NystromFeatures.write` reads files, and puts their columns in the order of the fit."""
    X, _ = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame[NAMES[::-1]].to_csv(tmp_path / "x.csv", index=False)
    features = dhsk.NystromFeatures(5, random_state=0).fit(frame)
    written = features.write(tmp_path / "x.csv", tmp_path / "z")
    np.testing.assert_array_equal(written.compute(scheduler="sync"), features.transform(frame))


def test_feature_stores_keep_the_names_of_the_samples_columns(data: Any, tmp_path: Path) -> None:
    """Written in part, they go on with another order; other names are another input."""
    X, _ = data
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame[NAMES[::-1]].to_csv(tmp_path / "r.csv", index=False)
    features = dhsk.NystromFeatures(5, random_state=0).fit(frame)
    right = features.write(tmp_path / "x.csv", tmp_path / "z").compute(scheduler="sync")
    attributes = zarr.open_array(tmp_path / "z", mode="r").attrs
    assert attributes["feature_names"] == NAMES
    (tmp_path / "z" / "c" / "0" / "0").unlink()
    again = features.write(tmp_path / "r.csv", tmp_path / "z")
    np.testing.assert_array_equal(again.compute(scheduler="sync"), right)
    renamed = [f"new {name}" for name in NAMES]
    other = dhsk.NystromFeatures(5, random_state=0).fit(frame.set_axis(renamed, axis=1))
    with pytest.raises(dhsk.StoreMismatchError, match=r"holds features of other feature_names"):
        other.write(frame.set_axis(renamed, axis=1), tmp_path / "z")
    with pytest.raises(dhsk.InputError, match=r"lacks 14 of the 14 features of NystromFeatures"):
        other.write(tmp_path / "x.csv", tmp_path / "y")
    bare = dhsk.NystromFeatures(5, random_state=0).fit(X)
    np.testing.assert_array_equal(bare.write(X, tmp_path / "z").compute(scheduler="sync"), right)


def test_feature_stores_without_names_go_on_as_before(data: Any, tmp_path: Path) -> None:
    """Features with names are the same."""
    X, _ = data
    bare = dhsk.NystromFeatures(5, random_state=0).fit(X)
    right = bare.write(X, tmp_path / "z").compute(scheduler="sync")
    assert "feature_names" not in zarr.open_array(tmp_path / "z", mode="r").attrs
    (tmp_path / "z" / "c" / "0" / "0").unlink()
    frame = pd.DataFrame(X, columns=NAMES)
    named = dhsk.NystromFeatures(5, random_state=0).fit(frame)
    np.testing.assert_array_equal(
        named.write(frame, tmp_path / "z").compute(scheduler="sync"), right
    )
