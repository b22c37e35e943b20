"""The command `dhsk train --rank`, and predictions by its model, run as a person runs them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE, INTERRUPTED, TOO_BIG
from dhsk.commands import train
from dhsk.progress import Progress

TRAIN = ("train", "x.npy", "--labels", "y.txt", "--rank", 20, "--out", "m")


@pytest.fixture
def samples(run: Any, counts: Any) -> tuple[Any, Any]:
    """Three classes of 40 counts in files of the current folder, and the labels."""
    X = counts(120, 12)
    X[40:80, :4] += 3
    X[80:, 8:] += 3
    y = np.repeat(["up", "down", "none"], 40)
    np.save("x.npy", X)
    np.save("t.npy", X[::2])
    Path("y.txt").write_text("\n".join(y) + "\n")
    Path("ty.txt").write_text("\n".join(y[::2]) + "\n")
    return X, y


def test_train_then_predict(table: Any, run: Any, samples: Any) -> None:
    """Numbers of the fit, what comes next, accuracy, and the labels that the library predicts."""
    X, y = samples
    code, out, err = run(*TRAIN, "--C", 3, "--time-scale", 0.7, "--seed", 5)
    assert (code, err) == (DONE, "")
    model = dhsk.NystromSVC.load("m")
    assert "low-rank classifier, loss squared_hinge, of heat" in out
    assert "map hyperspherical (square roots of proportions), C = 3" in " ".join(out.split())
    head, row = (line.split() for line in out.splitlines()[2:4])
    assert " ".join(head).startswith("classes landmarks features trace error gradient norm dual")
    assert row[:4] == ["3", "20", "20", "float64"]
    assert float(row[4]) == pytest.approx(model.trace_error_, rel=0.006)
    assert float(row[5]) == pytest.approx(model.model_.certificates.relative.max(), rel=0.06)
    assert float(row[6]) == pytest.approx(model.duality_gap_, rel=0.06)
    assert row[7] == str(model.n_iter_)
    assert re.search(
        r"memory: .* at the peak, .* predicted\noutput: m\nnext:   dhsk predict m", out
    )
    expected = dhsk.NystromSVC(20, 3.0, time_scale=0.7, random_state=5).fit(X, y)
    np.testing.assert_array_equal(model.landmark_coef_, expected.landmark_coef_)
    code, out, _ = run("predict", "m", "t.npy", "--out", "p.csv", "--labels", "ty.txt")
    score = expected.score(X[::2], y[::2])
    assert code == DONE
    assert f"accuracy {score:.4f}: {round(60 * score)} of 60 labels are right" in out
    header, rows = table("p.csv")
    assert header == ["label"]
    assert [row[0] for row in rows] == expected.predict(X[::2]).tolist()
    assert {path.name for path in Path().iterdir()} == {
        "x.npy", "y.txt", "t.npy", "ty.txt", "m", "p.csv",
    }  # fmt: skip


def test_probabilities(table: Any, run: Any, samples: Any) -> None:
    """Of the logistic loss; another one says so."""
    X, y = samples
    assert run(*TRAIN, "--loss", "logistic", "--selection", "uniform")[0] == DONE
    assert run("predict", "m", "x.npy", "--out", "p.csv", "--proba")[0] == DONE
    header, rows = table("p.csv")
    assert header == ["label", "probability_down", "probability_none", "probability_up"]
    expected = dhsk.NystromSVC(20, loss="logistic", selection="uniform", random_state=0).fit(X, y)
    found = np.array([row[1:] for row in rows], dtype=np.float64)
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=1e-9)
    assert run(*TRAIN)[0] == DONE
    code, _, err = run("predict", "m", "x.npy", "--out", "q.csv", "--proba")
    assert (code, "no probabilities: train one that has by dhsk train " in err) == (BAD_INPUT, True)
    assert "--loss logistic --out MODEL" in err


def test_kernels_that_need_float64_get_it(run: Any, samples: Any) -> None:
    """Unless another type is asked for."""
    words = (*TRAIN, "--kernel", "gaussian", "--sigma", 4)
    code, out, _ = run(*words)
    assert (code, "float64" in out) == (DONE, True)
    code, _, err = run(*TRAIN, "--kernel", "polynomial", "--dtype", "float32")
    assert (code, "takes no float32" in err) == (BAD_INPUT, True)


def test_landmarks_that_are_no_samples(run: Any, samples: Any) -> None:
    """Centres of groups; predictions are made all the same."""
    assert run(*TRAIN, "--selection", "kmeans")[0] == DONE
    assert dhsk.NystromSVC.load("m").landmark_indices_ is None
    assert run("predict", "m", "x.npy", "--out", "p.csv")[0] == DONE


def test_more_landmarks_than_features(run: Any, samples: Any) -> None:
    """The leading components of them are kept."""
    assert run(*TRAIN, "--oversampling", 2)[0] == DONE
    model = dhsk.NystromSVC.load("m")
    assert (model.n_components_, len(model.landmarks_)) == (20, 40)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*TRAIN, "--store", "g"), "--store is not for --rank"),
        ((*TRAIN, "--probability"), "--probability is not for --rank: use --loss logistic"),
        ((*TRAIN[:4], "--out", "m", "--loss", "logistic"), "--loss is for --rank"),
        ((*TRAIN[:4], "--out", "m", "--selection", "uniform"), "--selection is for --rank"),
        ((*TRAIN[:4], "--out", "m", "--oversampling", 2), "--oversampling is for --rank"),
        ((*TRAIN[:4], "--out", "m", "--budget", "1h"), "--budget is for --rank: give --rank too"),
        ((*TRAIN, "--budget", "1h", "--part", "1/2"), "--budget is not for --part"),
        ((*TRAIN, "--budget", "0"), "'0' is not a time above 0 such as 30min"),
        ((*TRAIN, "--budget", "-5min"), "'-5min' is not a time above 0"),
        ((*TRAIN, "--budget", "soon"), "'soon' is not a time above 0"),
        ((*TRAIN, "--rank", 0), "0 is not in the range"),
        ((*TRAIN, "--tol", 0), "tol must be above 0"),
        (
            ("train", "zero.npy", *TRAIN[2:], "--zero-rows", "error"),
            "zero.npy: row 77 .* is all zero",
        ),
        (("train", "t.npy", *TRAIN[2:]), "120 labels for 60 samples"),
        (("train", "none.npy", *TRAIN[2:]), "there is no file none.npy"),
        ((*TRAIN, "--labels", "one.txt"), "one.txt"),
    ],
)
def test_what_cannot_be_used_ends_in_a_sentence(
    run: Any, samples: Any, words: Any, message: str
) -> None:
    """Exit code 2, and neither a model nor a part of one."""
    X = samples[0].copy()
    X[77] = 0
    np.save("zero.npy", X)
    Path("one.txt").write_text("up\n" * 120)
    before = sorted(path.name for path in Path().iterdir())
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert re.search(message, err)
    assert sorted(path.name for path in Path().iterdir()) == before


def test_too_little_memory_has_its_own_code(run: Any, samples: Any) -> None:
    """With the numbers."""
    code, _, err = run(*TRAIN, "--memory", "1MB")
    assert code == TOO_BIG
    assert re.search(r"needs [\d.]+ [MG]iB \(.*\) but 0.95 MiB are allowed: allow that", err)


def interrupted_at(step: int) -> Any:
    """Progress that ends training after some steps, as Ctrl-C does."""

    @contextmanager
    def show() -> Iterator[Any]:
        left = step

        def see(event: Progress) -> None:
            nonlocal left
            left -= event.stage == "training"
            if not left:
                raise KeyboardInterrupt

        with dhsk.show_progress(see) as progress:
            yield progress

    return show


def test_the_same_command_goes_on(run: Any, samples: Any, monkeypatch: Any) -> None:
    """To the same model, and nothing is left beside it; another command begins anew."""
    assert run(*TRAIN, "--out", "whole")[0] == DONE
    whole = dhsk.NystromSVC.load("whole")
    assert whole.n_iter_ > 2
    with monkeypatch.context() as patched:
        patched.setattr("dhsk.commands.train.show_progress", interrupted_at(2))
        code, _, err = run(*TRAIN)
    assert code == INTERRUPTED
    assert "run the same command again to go on" in err
    assert len(list(Path("m.part").glob("newton-*-steps.npz"))) == 1
    Path("m.part/mine.txt").write_text("of the user's own")
    seen = []

    @contextmanager
    def listen() -> Iterator[Any]:
        yield lambda event: seen.append(event.stage)

    monkeypatch.setattr("dhsk.commands.train.show_progress", listen)
    assert run(*TRAIN)[0] == DONE
    assert seen.count("training") == whole.n_iter_ - 2
    found = dhsk.NystromSVC.load("m")
    np.testing.assert_array_equal(found.landmark_coef_, whole.landmark_coef_)
    assert [path.name for path in Path("m.part").iterdir()] == ["mine.txt"]


def test_when_its_time_is_over_it_writes_what_there_is(
    run: Any, samples: Any, monkeypatch: Any
) -> None:
    """The time of the command, labels included; the same command goes on to the same bits."""
    assert run(*TRAIN, "--out", "whole")[0] == DONE
    whole, now = dhsk.NystromSVC.load("whole"), [0.0]

    @contextmanager
    def ticking() -> Iterator[Any]:
        def see(event: Progress) -> None:
            now[0] += 60 * (event.stage == "training")

        yield see

    def slow(*words: Any) -> Any:
        now[0] += 600
        return read(*words)

    read = train.read_labels_of
    with monkeypatch.context() as patched:
        patched.setattr("dhsk.clock.monotonic", lambda: now[0])
        patched.setattr("dhsk.commands.train.show_progress", ticking)
        patched.setattr("dhsk.commands.train.read_labels_of", slow)
        code, out, err = run(*TRAIN, "--budget", "12min")
        begun = dhsk.NystromSVC.load("m")
        assert begun.n_iter_ == 2
        info = run("info", "m")[1]
    assert code == DONE
    assert len(err.splitlines()) == 1
    assert "dhsk: stopped at budget 12min, after 2 Newton steps: the objective is " in err
    assert "the same command with a longer --budget, or none, goes on from m.part" in out
    assert "no: stopped at its budget, after 2 Newton steps" in info
    assert run("predict", "m", "x.npy", "--out", "p.csv")[0] == DONE
    seen = []

    @contextmanager
    def listen() -> Iterator[Any]:
        yield lambda event: seen.append(event.stage)

    monkeypatch.setattr("dhsk.commands.train.show_progress", listen)
    code, out, err = run(*TRAIN, "--budget", "1h")
    assert (code, "stopped" in err, "better:" in out) == (DONE, False, False)
    assert seen.count("training") == whole.n_iter_ - 2
    found = dhsk.NystromSVC.load("m")
    np.testing.assert_array_equal(found.landmark_coef_, whole.landmark_coef_)
    assert not Path("m.part").exists()


def test_a_time_that_is_over_before_training_is_an_error(run: Any, samples: Any) -> None:
    """With the exit code of what does not fit."""
    code, _, err = run(*TRAIN, "--budget", "0.001s")
    assert code == TOO_BIG
    assert "the budget of time was over before training began (" in err
    assert "give a longer one, or none; fewer features take less" in err  # nothing is kept yet
    assert not Path("m").exists()
    assert run(*TRAIN)[0] == DONE


@pytest.mark.slow
def test_on_a_cluster(run: Any, samples: Any, monkeypatch: Any) -> None:
    """With --cluster or --workers; the model is that of a fit in this process."""
    X, _ = samples
    asked = []
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as client:

        def connected(options: Any) -> Any:
            asked.append((options.cluster, options.workers))
            return nullcontext(client)

        monkeypatch.setattr("dhsk.commands.connecting.connected", connected)
        words = (*TRAIN, "--dtype", "float64", "--tol", 1e-9)
        assert run(*words)[0] == DONE
        assert not asked
        here = dhsk.NystromSVC.load("m").decision_function(X)
        code, out, _ = run(*words, "--workers", 2)
    assert (code, asked, "at the peak" in out) == (DONE, [("local", 2)], False)
    np.testing.assert_allclose(dhsk.NystromSVC.load("m").decision_function(X), here, atol=1e-5)
