"""The commands `dhsk train` and `dhsk predict`, run as a person runs them."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy.sparse import csr_array, save_npz
from sklearn.datasets import dump_svmlight_file, load_wine
from sklearn.svm import SVC

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE, TOO_BIG
from dhsk.models import exact as model_module


@pytest.fixture
def samples(run: Any, counts: Any) -> tuple[Any, Any]:
    """Two classes of 40 counts in files of the current folder, and the labels."""
    X = counts(80, 12)
    X[40:, :4] += 3
    y = np.repeat(["up", "down"], 40)
    np.save("x.npy", X)
    np.save("t.npy", X[::2])
    Path("y.txt").write_text("\n".join(y) + "\n")
    Path("ty.txt").write_text("\n".join(y[::2]) + "\n")
    return X, y


def test_train_at_a_large_time(table: Any, run: Any, samples: Any) -> None:
    """Where kernel values differ from 1 by 1e-19: trained, read back and scored as the linear one.

    Standard error stays empty, so there is no word of fits that did not converge.
    """
    X, y = samples
    kernel = dhsk.HeatKernel.at_scale(12, 20.0)
    assert -float(kernel.of_cosine_minus_one(0.0)) < 1e-15
    C = 5.0 / -float(kernel.of_cosine_minus_one(0.0))
    words = ("--labels", "y.txt", "--C", C, "--time-scale", 20)
    code, _, err = run("train", "x.npy", *words, "--out", "m.model")
    assert (code, err) == (DONE, "")
    code, _, err = run("predict", "m.model", "x.npy", "--out", "p.csv")
    assert (code, err) == (DONE, "")
    header, rows = table("p.csv")
    found = np.array([row[header.index("label")] for row in rows])
    rows = dhsk.hyperspherical_map(X)
    linear = SVC(C=5.0, kernel="precomputed").fit(rows @ rows.T, y)
    np.testing.assert_array_equal(found, linear.predict(rows @ rows.T))


def test_a_model_on_log_ratios(table: Any, run: Any, samples: Any) -> None:
    """The map goes with the model."""
    X, y = samples
    words = ("--labels", "y.txt", "--C", 3, "--time-scale", 0.5, "--map", "clr")
    code, out, err = run("train", "x.npy", *words, "--out", "m.model")
    assert (code, err) == (DONE, "")
    assert "map clr (centred log-ratios, of norm 1)" in out
    code, _, err = run("predict", "m.model", "t.npy", "--out", "p.csv")
    assert (code, err) == (DONE, "")
    header, rows = table("p.csv")
    model = dhsk.HeatSVC(3.0, time_scale=0.5, sphere_map="clr").fit(X, y)
    assert [row[header.index("label")] for row in rows] == model.predict(X[::2]).tolist()


def test_train_then_predict(table: Any, run: Any, samples: Any) -> None:
    """Numbers of the fit, what comes next, accuracy, and the labels that the library predicts."""
    X, y = samples
    words = ("--labels", "y.txt", "--C", 3, "--time-scale", 0.7, "--tol", 1e-6)
    code, out, err = run("train", "x.npy", *words, "--out", "m.model")
    assert (code, err) == (DONE, "")
    model = dhsk.HeatSVC.load("m.model")
    assert "C = 3\n" in out
    row = next(line for line in out.splitlines() if line.startswith("2 ")).split()
    assert row[1] == str(len(model.support_))
    assert float(row[2]) == pytest.approx(model.kkt_violation_, rel=0.06)
    assert float(row[3]) == pytest.approx(model.duality_gap_, rel=0.06)
    assert row[4] == f"{model.n_iter_.sum():,}"
    assert "output: m.model\nnext:   dhsk predict m.model x.npy --out predicted.csv\n" in out
    code, out, _ = run("predict", "m.model", "t.npy", "--out", "p.csv", "--labels", "ty.txt")
    expected = dhsk.HeatSVC(3.0, 0.7, tol=1e-6).fit(X, y)
    score = expected.score(X[::2], y[::2])
    assert code == DONE
    assert f"accuracy {score:.4f}: {round(40 * score)} of 40 labels are right" in out
    assert "output: p.csv" in out
    header, rows = table("p.csv")
    assert header == ["label"]
    assert [row[0] for row in rows] == expected.predict(X[::2]).tolist()
    assert not list(Path().glob(".*"))


@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_probabilities_by_blocks(table: Any, run: Any, samples: Any, monkeypatch: Any) -> None:
    """A column a class; samples are read in blocks, so that any number of them can be."""
    X, y = samples
    out = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--probability")[1]
    assert "next:   dhsk predict m x.npy --proba --out predicted.csv\n" in out
    monkeypatch.setattr(model_module, "ROWS", 7)
    words = ("--out", "p.csv", "--proba", "--labels", "y.txt")
    code, out, _ = run("predict", "m", "x.npy", *words)
    assert code == DONE
    header, rows = table("p.csv")
    assert header == ["label", "probability_down", "probability_up"]
    found = np.array([row[1:] for row in rows], dtype=np.float64)
    expected = dhsk.SVC(C="auto", kernel="heat", probability=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=1e-9)
    right = sum(row[0] == label for row, label in zip(rows, y, strict=True))
    assert f"{right} of 80 labels are right" in out


def test_options_reach_the_fit(run: Any, samples: Any) -> None:
    """Kernel, map, balance and type are those of the library."""
    X, y = samples
    X, y = X[:60], y[:60]
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(y))
    code, out, _ = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--kernel", "cosine",
                       "--map", "projective", "--class-weight", "balanced", "--dtype", "float32",
                       "--memory", "8GB")  # fmt: skip
    assert code == DONE
    assert "cosine, map projective" in out
    found = dhsk.HeatSVC.load("m")
    expected = dhsk.HeatSVC(
        kernel=dhsk.CosineKernel(), sphere_map="projective", class_weight="balanced",
        dtype="float32",
    ).fit(X, y)  # fmt: skip
    np.testing.assert_array_equal(found.dual_coef_, expected.dual_coef_)
    assert found.support_vectors_.dtype == np.float32


def test_a_store_is_kept_and_filled_by_a_cluster(
    run: Any, samples: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    """With --cluster or --workers; the model is that of a fit in this process."""
    X, _ = samples
    asked = []
    train = ("train", "x.npy", "--labels", "y.txt", "--tol", 1e-6, "--out", "m")
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as client:

        def connected(options: Any) -> Any:
            asked.append((options.cluster, options.workers))
            return nullcontext(client)

        monkeypatch.setattr("dhsk.commands.connecting.connected", connected)
        assert run(*train)[0] == DONE
        assert not asked
        here = dhsk.HeatSVC.load("m").decision_function(X)
        assert run(*train, "--store", "g", "--workers", 1)[0] == DONE
        assert run(*train, "--cluster", "tcp://there", "--workers", 2, "--memory", "8GB")[0] == DONE
        code, _, err = run(*train, "--store", "g", "--time-scale", 0.5)
    assert asked == [("local", 1), ("tcp://there", 2)]
    np.testing.assert_allclose(dhsk.HeatSVC.load("m").decision_function(X), here, atol=1e-5)
    assert dhsk.open_gram("g").shape == (80, 80)
    assert (code, err.count("\n")) == (BAD_INPUT, 2)  # and that m would be replaced


def test_the_map_is_the_kernels_own_unless_named(run: Any, samples: Any) -> None:
    """A Gaussian kernel takes samples as they are."""
    code, out, _ = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--kernel", "gaussian",
                       "--sigma", 4)  # fmt: skip
    assert (code, "map identity" in out) == (DONE, True)


def test_sparse_samples_and_a_test_set_without_the_last_features(
    table: Any, run: Any, samples: Any
) -> None:
    """Svmlight text brings its labels, and does not say how many features there are."""
    X, y = samples
    codes = (y == "up").astype(int)
    dump_svmlight_file(X, codes, "x.svm")
    short = X.copy()
    short[:, -1] = 0
    dump_svmlight_file(short[20:60], codes[20:60], "t.svm")
    save_npz("t.npz", csr_array(short[20:60]))
    assert run("train", "x.svm", "--out", "m")[0] == DONE
    code, out, _ = run("predict", "m", "t.svm", "--out", "p.csv", "--labels", "t.svm")
    assert (code, "accuracy " in out) == (DONE, True)
    assert run("predict", "m", "t.npz", "--out", "q.csv")[0] == DONE
    assert table("p.csv") == table("q.csv")


def test_a_label_column_of_the_samples_is_no_feature(run: Any, samples: Any) -> None:
    """In training, and in prediction where it is named."""
    X, y = samples
    lines = [",".join([*map(str, row), label]) for row, label in zip(X, y, strict=True)]
    Path("x.csv").write_text("\n".join([",".join([*(f"f{i}" for i in range(12)), "y"]), *lines]))
    assert run("train", "x.csv", "--labels", "x.csv:y", "--out", "m")[0] == DONE
    code, out, _ = run("predict", "m", "x.csv", "--labels", "x.csv:y", "--out", "p.csv")
    assert (code, "of 80 labels are right" in out) == (DONE, True)


def test_the_truth_may_be_of_one_class(run: Any, samples: Any) -> None:
    """Of samples to predict, not of those to train with."""
    assert run("train", "x.npy", "--labels", "y.txt", "--out", "m")[0] == DONE
    Path("ty.txt").write_text("up\n" * 40)
    code, out, _ = run("predict", "m", "t.npy", "--labels", "ty.txt", "--out", "p.csv")
    assert (code, "of 40 labels are right" in out) == (DONE, True)


REFUSE = ("--zero-rows", "error")


def zero_row(X: Any) -> None:
    """Write test samples whose last row has no image."""
    X = X.copy()
    X[77] = 0
    np.save("zero.npy", X)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "zero.npy", "--labels", "y.txt", *REFUSE), "zero.npy: row 77 .* is all zero"),
        (("train", "x.npy", "--labels", "ty.txt"), "40 labels for 80 samples"),
        (("train", "x.npy", "--labels", "y.txt", "--C", 0), "C must be above 0"),
        (("train", "x.npy", "--labels", "y.txt", "--tol", -1), "tol must be above 0"),
        (("train", "none.npy", "--labels", "y.txt"), "there is no file none.npy"),
        (("predict", "m", "zero.npy"), "zero.npy: row 77 .* is all zero"),
        (("predict", "m", "narrow.npy"), "narrow.npy has 11 features, not the 12 of m"),
        (("predict", "x.npy", "t.npy"), "x.npy is no dhsk model"),
        (("predict", "none", "t.npy"), "there is no file none"),
        (("predict", "m", "t.npy", "--proba"), "no probabilities: train one .* --probability"),
        (("predict", "m", "t.npy", "--labels", "y.txt"), "80 labels for 40 samples"),
        (("predict", "m", "t.npy", "--labels", "n.txt"), "n.txt holds numbers, but the classes"),
    ],
)
def test_what_cannot_be_used_ends_in_a_sentence(
    run: Any, samples: Any, words: Any, message: str, monkeypatch: Any
) -> None:
    """Exit code 2, one line, and neither a result nor a part of one."""
    X, _ = samples
    zero_row(X)
    np.save("narrow.npy", X[:, 1:])
    Path("n.txt").write_text("1\n2\n" * 20)
    assert run("train", "x.npy", "--labels", "y.txt", *REFUSE, "--out", "m")[0] == DONE
    before = sorted(path.name for path in Path().iterdir())
    monkeypatch.setattr(model_module, "ROWS", 32)  # rows before the bad one are written
    code, _, err = run(*words, "--out", "result")
    assert code == BAD_INPUT
    assert re.search(message, err)
    assert err.startswith("dhsk: ")
    assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize("command", ["train", "predict"])
def test_a_place_that_cannot_be_written_is_refused_first(
    run: Any, samples: Any, command: str
) -> None:
    """Before any work: neither sample nor model is looked at."""
    words = ("none", "none") if command == "predict" else ("none",)
    Path("folder").mkdir()
    code, _, err = run(command, *words, "--out", "folder")
    assert (code, "folder is a folder, but --out names a file" in err) == (BAD_INPUT, True)
    code, _, err = run(command, *words, "--out", "absent/m")
    assert (code, "for --out does not exist: create it" in err) == (BAD_INPUT, True)


def test_an_older_result_stays_where_prediction_fails(run: Any, samples: Any) -> None:
    """It is replaced by a complete one only."""
    zero_row(samples[0])
    assert run("train", "x.npy", "--labels", "y.txt", *REFUSE, "--out", "m")[0] == DONE
    Path("p.csv").write_text("old")
    assert run("predict", "m", "zero.npy", "--out", "p.csv")[0] == BAD_INPUT
    assert Path("p.csv").read_text() == "old"


def test_too_little_memory_has_its_own_code(run: Any, samples: Any) -> None:
    """With the numbers."""
    code, _, err = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--memory", "1MB")
    assert (code, "mapped samples take 7.50 kiB but 0 B" in err) == (TOO_BIG, True)


def test_a_fit_that_does_not_converge_is_said(run: Any, samples: Any, monkeypatch: Any) -> None:
    """On standard error; the model is written all the same."""
    monkeypatch.setattr("dhsk.solvers.dual.MAX_STEPS", 1)
    code, _, err = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--tol", 1e-300)
    assert (code, "1 of 1 fits of classes did not converge" in err) == (DONE, True)
    assert Path("m").is_file()


@pytest.fixture
def wines(run: Any) -> str:
    """A table whose columns have different units."""
    frame = load_wine(as_frame=True).frame
    frame.to_csv("wine.csv", index=False)
    return "wine.csv"


@pytest.mark.parametrize("given", [(), ("--map", "scaled")])
def test_columns_of_different_units_are_scaled(run: Any, wines: str, given: Any) -> None:
    """Untold, as in a search of `dhsk cv`, and with the map alone; plan says the same width."""
    words = (wines, "--labels", f"{wines}:target", *given)
    code, out, err = run("train", *words, "--out", "m.dhsk")
    assert code == DONE
    assert "gaussian sigma=2.55, map scaled" in out
    assert ("seem to be of columns in different units" in err) == (not given)
    X, y = load_wine(as_frame=True, return_X_y=True)
    assert dhsk.HeatSVC.load("m.dhsk").score(X, y) > 0.98
    plan = run("plan", *words[:3], "--kernel", "gaussian", "--map", "scaled")[1]
    assert "kernel gaussian sigma=2.55\n" in plan


def test_a_kernel_that_is_named_is_taken(run: Any, wines: str) -> None:
    """Also with its time alone."""
    words = (wines, "--labels", f"{wines}:target", "--out")
    for given in (("--kernel", "heat"), ("--time-scale", 1)):
        code, out, _ = run("train", *words, f"{given[0]}.dhsk", *given)
        assert code == DONE
        assert out.startswith("exact SVM of heat s=")
    pd.DataFrame({"a": np.arange(40) / 7, "y": np.arange(40) // 20}).to_csv("one.csv", index=False)
    out = run("train", "one.csv", "--labels", "one.csv:y", "--out", "one.dhsk")[1]
    assert "map scaled" in out


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_gaps_in_new_samples(run: Any, wines: str, kind: str) -> None:
    """Of scaled columns they have the mean of the training samples; others must be filled in."""
    frame = pd.read_csv(wines)
    words = ("train", wines, "--labels", f"{wines}:target", "--out")
    assert run(*words, "m.dhsk", "--kernel", "heat")[0] == DONE
    assert run(*words, "scaled.dhsk")[0] == DONE
    frame.loc[7, "ash"] = np.nan
    getattr(frame, f"to_{kind}")(f"new.{kind}", index=False)
    code, _, err = run("predict", "m.dhsk", f"new.{kind}", "--out", "p.csv")
    assert code == BAD_INPUT
    assert "row 7, column 2 'ash' (counted from 0) holds nan, but samples must be finite" in err
    assert "--drop-column" not in err
    code, _, err = run("predict", "scaled.dhsk", f"new.{kind}", "--out", "p.csv")
    assert code == DONE
    assert ": 1 gap in 178 rows (column ash 1), where the means of columns" in err
    frame.loc[7, "ash"] = pd.read_csv(wines)["ash"].mean()
    frame.to_csv("full.csv", index=False)
    assert run("predict", "scaled.dhsk", "full.csv", "--out", "q.csv")[0] == DONE
    assert Path("p.csv").read_text() == Path("q.csv").read_text()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_words_in_a_feature_of_new_samples(run: Any, wines: str, kind: str) -> None:
    """The model needs it: no advice leaves it out, as that of training does."""
    assert run("train", wines, "--labels", f"{wines}:target", "--out", "m.dhsk")[0] == DONE
    frame = pd.read_csv(wines).astype({"ash": object})
    frame.loc[7, "ash"] = "high"
    frame["ash"] = frame["ash"].astype(str)
    getattr(frame, f"to_{kind}")(f"new.{kind}", index=False)
    code, _, err = run("predict", "m.dhsk", f"new.{kind}", "--out", "p.csv")
    assert code == BAD_INPUT
    assert "column 'ash'" in err
    assert "m.dhsk needs its numbers, so write them as in training" in err
    assert "--drop-column" not in err


def test_features_of_nearly_the_same_name(run: Any, wines: str) -> None:
    """A question where a feature is written otherwise, and the way out for dummies."""
    frame = pd.read_csv(wines).assign(site_a=[0, 1] * 89, site_b=[1, 0] * 89)
    frame.to_csv("t.csv", index=False)
    assert run("train", "t.csv", "--labels", "t.csv:target", "--out", "m.dhsk")[0] == DONE
    frame.rename(columns={"ash": "Ash"}).to_csv("new.csv", index=False)
    err = run("predict", "m.dhsk", "new.csv", "--out", "p.csv")[2]
    assert "lacks 1 of the 15 features of m.dhsk (ash)" in err
    assert ". Is 'Ash' its 'ash'?" in err
    frame.drop(columns="site_b").to_csv("new.csv", index=False)
    err = run("predict", "m.dhsk", "new.csv", "--out", "p.csv")[2]
    assert "makes no columns for words that no sample has: add them, as table['site_b'] = 0" in err


def test_a_missing_file_of_labels_is_said_first(run: Any, wines: str) -> None:
    """Before anything of the samples; no file of another name and the same suffix is meant."""
    pd.read_csv(wines).assign(word="x").to_csv("one.csv", index=False)
    err = run("train", "one.csv", "--labels", "nope.csv", "--out", "m")[2]
    assert "there is no file nope.csv\n" in err
    err = run("train", "one.csv", "--labels", "onn.csv", "--out", "m")[2]
    assert "there is no file onn.csv: is it one.csv?" in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_in_another_order_are_taken_by_a_column_of_names(
    run: Any, wines: str, kind: str
) -> None:
    """Whatever it is called, and though no option names it."""
    frame = pd.read_csv(wines).assign(visit=[f"v{k}" for k in range(178)])
    write = f"to_{kind}"
    getattr(frame.drop(columns="target"), write)(f"x.{kind}", index=False)
    getattr(frame[["visit", "target"]], write)(f"y.{kind}", index=False)
    getattr(frame[["visit", "target"]][::-1], write)(f"turned.{kind}", index=False)
    words = ("train", f"x.{kind}", "--drop-column", "visit", "--labels")
    assert run(*words, f"y.{kind}:target", "--out", "m.dhsk")[0] == DONE
    code, _, err = run(*words, f"turned.{kind}:target", "--out", "n.dhsk")
    assert (code, f"rows of turned.{kind} are taken by column visit" in err) == (DONE, True)
    with np.load("m.dhsk") as one, np.load("n.dhsk") as other:
        for name in set(one.files) - {"header"}:
            np.testing.assert_array_equal(one[name], other[name])
    predict = ("predict", "m.dhsk", f"x.{kind}", "--out", "p.csv", "--labels")
    expected = run(*predict, f"y.{kind}:target")
    assert run(*predict, f"turned.{kind}:target")[:2] == expected[:2]
    assert "accuracy" in expected[1]
