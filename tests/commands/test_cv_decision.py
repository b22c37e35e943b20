"""`dhsk cv` without options says which kernel to take; --map auto, and models on tf-idf."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, save_npz
from sklearn.model_selection import TimeSeriesSplit

import dhsk
from dhsk.__main__ import DONE, INTERRUPTED
from dhsk.models.files import load_model
from dhsk.samples.kinds import groups_left_out

SCALED = {"scaled gaussian", "scaled linear"}


@pytest.fixture
def samples(run: Any, counts: Any) -> tuple[Any, Any]:
    """Two classes of 40 counts in files of the current folder, and the labels."""
    X = counts(80, 12)
    X[40:, :2] += 1
    y = np.repeat(["up", "down"], 40)
    np.save("x.npy", X)
    save_npz("x.npz", csr_array(X))
    Path("y.txt").write_text("\n".join(y) + "\n")
    return X, y


def test_no_options_do_the_right_thing(run: Any, samples: Any, counts: Any) -> None:
    """Heat and cosine, a search, and one sentence; the same again is refused nothing.

    The totals of these counts differ, so the linear kernel stands aside, and log-ratios are tried;
    fewer than 50 columns may be measurements, so scaled ones are tried too.
    """
    X = counts(80, 40)  # where a search takes a fourth of the time
    X[40:, :8] += 1
    np.save("x.npy", X)
    words = ("cv", "x.npy", "--labels", "y.txt", "--out", "o")
    code, out, _ = run(*words)
    assert code == DONE
    assert "tried:  time scales " in out
    (line,) = [line for line in out.splitlines() if line.startswith("decide: take ")]
    result = dhsk.CvResult.from_json("o/results.json")
    assert " ".join(out.split()).count(result.advice) == 1
    assert line.startswith(f"decide: {result.advice}"[:40])
    assert {cell.kernel for cell in result.summary} == {"heat", "cosine", "clr cosine", *SCALED}
    page = Path("o/report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert f"Decision: {result.advice}." in page
    assert run(*words)[0] == DONE


def test_rare_classes_are_told_beside_an_accuracy(run: Any, counts: Any) -> None:
    """What is found of them, where most samples are of one class; not by other scores."""
    X = counts(120, 12)
    X[108:118, :2] += 20  # the last two look like the others
    np.save("x.npy", X)
    words = ("cv", "x.npy", "--kernel", "cosine", "--C", "9", "--repeats", "2", "--labels")
    for y in (["ok"] * 108 + ["bad"] * 12, ["ok"] * 90 + ["other"] * 18 + ["bad"] * 12):
        Path(f"{len(set(y))}.txt").write_text("\n".join(y) + "\n")
    told = [line for line in run(*words, "2.txt", "--out", "2")[1].splitlines() if "rare" in line]
    assert told == [
        'rare:   bad: 10 of 12 are found by cosine, C = 9; always "ok" is right for 0.900'
    ]
    out = " ".join(run(*words, "3.txt", "--out", "3")[1].split())
    assert "rare:" not in out
    assert (
        "beware: cosine, C = 9 has a recall of 0 for 1 of 3 classes: other (18); "
        "--class-weight balanced weighs them more"
    ) in out
    weighted = run(*words, "3.txt", "--class-weight", "other=1.01", "--out", "w")[1]
    assert "has a recall of 0 for 1 of 3 classes: other (18)\n" in weighted
    assert "rare:" not in run(*words, "2.txt", "--scoring", "f1_macro", "--out", "f")[1]


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "matthews_corrcoef"])
def test_folds_that_lack_classes_are_told_once(cv: Any, samples: Any, scoring: str) -> None:
    """In our words, without those of scikit-learn."""
    Path("y.txt").write_text("\n".join(["no", "yes"] * 20 + ["no"] * 40) + "\n")
    words = ("x.npy", "--labels", "y.txt", "--kernel", "cosine", "--folds", "3", "--in-order")
    code, _, err = cv(*words, "--scoring", scoring)
    assert code == DONE, err
    assert (
        err.count("2 of 3 folds lack classes in their test part: fold 1 (yes), fold 2 (yes)") == 1
    )
    assert "label" not in err
    assert "y_pred" not in err


@pytest.mark.slow
def test_model_page_and_predictions_are_of_the_one_to_take(run: Any, samples: Any) -> None:
    """One candidate, which --choose names: the simplest, untold, or the highest mean."""
    _, y = samples
    words = ("cv", "x.npy", "--labels", "y.txt", "--kernel", "cosine,heat", "--time-scale", "0.5")
    words = (*words, "--C", "1", "--model")
    taken = {}
    for choose in ("simplest", "best"):
        code, out, err = run(*words, "--choose", choose, "--out", choose)
        assert code == DONE, err
        result = dhsk.CvResult.from_json(f"{choose}/results.json")
        decision, cell = result.decision, result.best
        assert decision.best != decision.simplest.cell  # else this tests nothing
        assert cell == decision.taken
        assert f"decide: take {cell.brief}: " in " ".join(out.split())
        assert ("--choose best: of the highest mean" in out) == (choose == "simplest")
        assert load_model(f"{choose}/model.dhsk").kernel.name == cell.kernel
        own = dhsk.cross_validate("x.npy", y, kernels="cosine", C=1)
        if choose == "simplest":
            assert result.confusion == own.confusion
        page = Path(f"{choose}/report.html").read_text().replace("\N{NO-BREAK SPACE}", " ")
        assert f"{'Best and taken' if choose == 'best' else 'Taken'}: {cell.kernel} kernel" in page
        assert f"{result.best_score_:.3f}" in page
        rows = [line.split()[:2] for line in run("info", choose)[1].splitlines()]
        assert ["best", "heat"] in rows
        assert (["taken", "cosine,"] in rows) == (choose == "simplest")
        facts = json.loads(run("info", choose, "--json")[1])
        assert facts["best"]["label"] == decision.best.label
        assert facts["taken"]["label"] == cell.label
        taken[choose] = cell.kernel
    assert taken == {"simplest": "cosine", "best": "heat"}


@pytest.mark.slow
def test_one_kernel_needs_no_decision(run: Any, samples: Any) -> None:
    """The best cell says it all."""
    words = ("--labels", "y.txt", "--time-scale", "0.5,1", "--out", "o")
    code, out, _ = run("cv", "x.npy", *words)
    assert code == DONE
    assert "decide:" not in out
    assert "Decision:" not in Path("o/report.html").read_text()


@pytest.mark.slow
def test_map_auto_and_a_model_with_its_weights(run: Any, samples: Any) -> None:
    """Both maps are tried; what is trained on tf-idf predicts so."""
    X, y = samples
    words = ("--labels", "y.txt", "--kernel", "cosine", "--C", "1")
    code, out, _ = run("cv", "x.npz", *words, "--map", "auto", "--out", "o")
    assert code == DONE
    assert "tf-idf cosine" in out
    code, out, _ = run("train", "x.npz", *words, "--map", "tfidf", "--out", "m")
    assert code == DONE
    assert "map tfidf" in out
    assert "map tfidf" in run("info", "m")[1]
    assert run("predict", "m", "x.npz", "--out", "p.csv")[0] == DONE
    expected = dhsk.HeatSVC(1.0, kernel="cosine", sphere_map="tfidf").fit(X, y).predict(X)
    found = [line.split(",")[-1] for line in Path("p.csv").read_text().splitlines()[1:]]
    assert found == expected.tolist()
    code, _, err = run("gram", "x.npz", "--out", "g", "--map", "tfidf")
    assert code != DONE
    assert "tfidf" in err


def test_a_run_that_is_stopped_leaves_a_page_of_what_is_finished(
    run: Any, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command goes on, also if that was within the last files, and replaces the page."""
    words = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", "0.5,1", "--C", "1", "--out", "o")
    page, so_far = Path("o/report.html"), "This page is of a run that goes on"

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhsk.report.running.REFRESH_SECONDS", 0)
    with monkeypatch.context() as stopped:
        stopped.setattr("dhsk.commands.cv.write_report", stop)
        code, _, err = run(*words)
    assert code == INTERRUPTED
    assert "finished kernels: " in err
    assert so_far in page.read_text()
    code, out, _ = run(*words)
    assert code == DONE
    assert "nothing is computed again" not in out
    assert so_far not in page.read_text()
    assert "next:   open " in out


@pytest.mark.slow
def test_folds_in_the_order_of_the_rows(run: Any, tmp_path: Path) -> None:
    """Are those of `TimeSeriesSplit`, go into the files, and take no other way of dividing."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=90)
    table = pd.DataFrame(rng.random((90, 3)), columns=list("abc")).assign(day=days)
    table.assign(y=["u", "v", "v"] * 30).to_csv("t.csv", index=False)
    words = ("cv", "t.csv", "--labels", "t.csv:y", "--drop-column", "day", "--kernel", "cosine")
    code, _, err = run(*words, "--C", 1, "--out", "shuffled")
    assert (code, "rows of t.csv follow column 'day': shuffled folds" in err) == (DONE, True)
    code, _, err = run(*words, "--C", 1, "--in-order", "--folds", 3, "--out", "ordered")
    assert (code, "shuffled" in err) == (DONE, False)
    found = dhsk.CvResult.from_json("ordered/results.json")
    expected = dhsk.cross_validate(
        table[list("abc")], ["u", "v", "v"] * 30, kernels=["cosine"], C=1.0, cv=TimeSeriesSplit(3)
    )
    assert [row.score for row in found.rows] == [row.score for row in expected.rows]
    page = Path("ordered/report.html").read_text()
    assert "cv=TimeSeriesSplit(3)" in page
    assert "from sklearn.model_selection import TimeSeriesSplit" in page
    assert "--folds 3 --in-order" in page
    assert "nothing is computed again" in run("cv", "--config", "ordered/run.toml")[1]
    code, _, err = run(*words, "--in-order", "--groups", "t.csv:y", "--repeats", 2, "--out", "o")
    assert code != DONE
    assert "--in-order takes all rows as they are: leave out --groups and --repeats" in err


@pytest.mark.parametrize(
    ("options", "is_told"),
    [(["--drop-column", "plot"], True), (["--groups", "plots.csv:plot"], False)],
)
def test_folds_that_divide_the_visits_of_a_plot_are_told(
    cv: Any, tmp_path: Path, options: list[str], is_told: bool
) -> None:
    """Unless they do not; a column of other words is none of plots, nor that of the labels."""
    rng = np.random.default_rng(0)
    plots = np.repeat(np.arange(20), 6)
    table = pd.DataFrame(rng.normal(size=(120, 3)) + plots[:, None], columns=list("abc"))
    table.insert(0, "plot", [f"P{plot}" for plot in plots])
    table.insert(1, "treated", np.where(plots % 2, "yes", "no"))
    table.insert(2, "visit", [f"V{number}" for number in np.tile(np.arange(12), 10)])
    table.to_csv(tmp_path / "plots.csv", index=False)
    words = ["--labels", "plots.csv:treated", "--drop-column", "visit", "--map", "projective"]
    code, _, err = cv("plots.csv", *words, *options, "--C", "1", "--time-scale", "1")
    assert code == DONE, err
    assert ("20 values of column 'plot' have one label each, and folds divide" in err) == is_told
    assert ("--groups plots.csv:plot (groups=) keeps them in one fold" in err) == is_told
    assert "column 'visit'" not in err


def test_many_classes_are_no_groups_of_themselves(tmp_path: Path) -> None:
    """Each value of the labels' column has one label."""
    classes = np.repeat(np.arange(12), 10)
    table = pd.DataFrame({"kind": [f"k{one}" for one in classes], "a": np.arange(120.0)})
    table.to_csv(tmp_path / "x.csv", index=False)
    opened = dhsk.open_samples(tmp_path / "x.csv", drop_columns=["kind"])
    assert groups_left_out(opened, classes.tolist()) is None
    found = groups_left_out(opened, (classes % 2).tolist())
    assert found is not None
    assert found[0] == "kind"


def test_a_run_that_has_not_ended_is_told(run: Any) -> None:
    """Of which there is a page, or a note; and a store has no labels of its own."""
    said = "holds a run of dhsk cv or compare that has not ended: the same command goes on"
    for folder, file in [("half", "report.html"), ("begun", "fits/run.json")]:
        (Path(folder) / file).parent.mkdir(parents=True)
        (Path(folder) / file).write_text("so far")
        assert f"{folder} {said}" in run("info", folder)[2]
        assert f"{folder} {said}" in run("predict", folder, "x.npy", "--out", "p.csv")[2]
    np.save("x.npy", np.random.default_rng(0).random((20, 3)))
    assert run("gram", "x.npy", "--out", "x.gram")[0] == DONE
    err = run("cv", "x.gram", "--out", "o")[2]
    assert "x.gram is a Gram matrix without labels: give --labels FILE" in err
