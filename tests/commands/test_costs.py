"""What a run will cost is the first thing that a command says."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import DONE, TOO_BIG
from dhsk.costs import Cost, rough_seconds, seconds_told
from dhsk.objects.places import bytes_below, size_of

CV = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", "0.7,1", "--C", "1,10", "--folds", "3")


@pytest.fixture
def run(run_and_hear: Any) -> Any:
    """All that a command says."""
    return run_and_hear


@pytest.fixture
def samples(counts: Any, run: Any) -> Any:
    """Samples and labels in files."""
    X = counts(80, 12)
    X[40:, :4] += 3
    np.save("x.npy", X)
    Path("y.txt").write_text("up\n" * 40 + "down\n" * 40)
    return X


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (2, "some seconds"),
        (7.4, "about 7 s"),
        (43, "about 45 s"),
        (100, "about 2 min"),
        (1300, "about 20 min"),
        (3 * 3600, "about 3 h"),
        (40 * 86400, "about 40 days"),
    ],
)
def test_seconds_are_rounded_as_people_do(seconds: float, words: str) -> None:
    """In a unit that gives small numbers."""
    assert rough_seconds(seconds) == words


def test_few_seconds_that_are_compared_have_numbers() -> None:
    """As some seconds of some seconds say nothing."""
    assert [seconds_told(each) for each in (0.0, 4.2, 43)] == ["0 s", "4.2 s", "about 45 s"]


def test_only_long_runs_say_how_to_have_an_answer_sooner() -> None:
    """From ten minutes on."""
    short, long = (Cost("a grid", seconds, 1, 1, 1, sooner="less") for seconds in (599, 601))
    assert (short.way_out, long.way_out) == ("", "this will be long. Sooner: less")
    assert long.sentence == (
        "a grid: about 10 min, 1 B of memory, 1 B of disk while it runs, 1 B stay"
    )


def test_an_exact_fit_says_both_times_where_they_are_far_apart() -> None:
    """Nobody knows before how many samples are support vectors."""
    far = Cost("a fit", 6e5, 1, 1, 1, sooner="less", least=160.0)
    near, both = replace(far, least=200_000.0), replace(far, least=1000.0)
    assert far.sentence.startswith(
        "a fit: about 3 min if few samples are support vectors, about 7 days if a third are, 1 B"
    )
    assert near.sentence.startswith("a fit: about 7 days, 1 B of memory")
    assert far.way_out == "this may be long. Sooner: less"
    assert both.way_out == "this will be long. Sooner: less"


@pytest.mark.slow
def test_cv_says_it_first(run: Any, samples: Any) -> None:
    """And the products that it said would not stay have gone; quiet commands say nothing."""
    code, _, err = run(*CV, "--out", "o")
    assert code == DONE
    assert err.startswith(
        "80 samples of 12 features, 2 classes, 2 kernels x 2 C x 3 folds: some seconds, "
    )
    assert not list(Path("o").rglob("cosine"))
    assert run(*CV, "--out", "p", "-q")[2] == ""


def test_features_that_are_kept_are_counted(run: Any, samples: Any, monkeypatch: Any) -> None:
    """On the disk while it runs: 80 samples of 50 features in float32, if they take long."""

    def disk(out: str) -> float:
        err = run(*CV, "--rank", "50", "--out", out)[2]
        found = re.search(r"([\d.]+) (k|M)iB of disk while it runs", err)
        assert found is not None
        return float(found[1]) * {"k": 1, "M": 1024}[found[2]]

    short = disk("o")
    monkeypatch.setattr("dhsk.validation.costs.UNKEPT_SECONDS", 0.0)
    assert disk("p") - short == pytest.approx(80 * 50 * 4 / 1024, abs=0.02)


@pytest.mark.slow
def test_a_long_cv_names_the_ways_out(run: Any, samples: Any, monkeypatch: Any) -> None:
    """One kernel, or a low rank."""
    monkeypatch.setattr("dhsk.costs.LONG_SECONDS", 0.0)
    err = run(*CV, "--out", "o")[2]
    assert err.splitlines()[1].startswith("this will be long. Sooner: one kernel (--kernel heat")


@pytest.mark.slow
def test_finished_results_are_printed_again(run: Any, samples: Any, monkeypatch: Any) -> None:
    """Without computing anything; what they lack is computed."""
    words = (*CV, "--out", "o")
    code, first, _ = run(*words)
    with monkeypatch.context() as patch:
        patch.setattr("dhsk.validation.cross_validate.cross_validate", None)
        again = run(*words)[1]
    said, table = again.split("\n", 1)
    assert (code, said.startswith("o has the results of this run")) == (DONE, True)
    assert table == first
    assert "model.dhsk" in run(*words, "--model")[1]
    with monkeypatch.context() as patch:
        patch.setattr("dhsk.validation.cross_validate.cross_validate", None)
        assert "model.dhsk" in run(*words, "--model")[1]


@pytest.mark.slow
def test_disk_and_store_of_cv(run: Any, samples: Any) -> None:
    """A store is kept; one that is larger than --disk is refused before the folder is made."""
    words = (*CV, "--store", "g")
    code, _, err = run(*words, "--out", "o", "--disk", "10kB")
    assert (code, "but 9.77 kiB are allowed" in err) == (TOO_BIG, True)
    assert not Path("o").exists()
    assert not Path("g").exists()
    assert run(*words, "--out", "o", "--disk", "1MB")[0] == DONE
    assert dhsk.open_gram("g/cosine").shape == (80, 80)


LINES = {
    "gram": (
        ("gram", "x.npy", "--tile", "30"),
        "matrix of 80 samples of 12 features, 6 of 6 tiles",
    ),
    "part": (
        ("gram", "x.npy", "--tile", "30", "--part", "2/3"),
        "matrix of 80 samples of 12 features, part 2 of 3, 6 of 6 tiles",
    ),
    "features": (
        ("features", "x.npy", "--rank", "20"),
        "20 features of 80 samples of 12 features by 60 landmarks",
    ),
    "train": (
        ("train", "x.npy", "--labels", "y.txt"),
        "exact SVM of 80 samples of 12 features, 2 classes",
    ),
    "store": (
        ("train", "x.npy", "--labels", "y.txt", "--store", "s"),
        "exact SVM of 80 samples of 12 features, 2 classes",
    ),
    "rank": (
        ("train", "x.npy", "--labels", "y.txt", "--rank", "10", "--oversampling", "2"),
        "linear SVM on 20 Nyström features: 80 samples of 12 features, 2 classes",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_every_run_says_its_cost_first(run: Any, samples: Any, name: str, own_cache: None) -> None:
    """One line, and about the bytes that are there in the end."""
    words, what = LINES[name]
    code, _, err = run(*words, "--out", "made")
    assert code == DONE
    assert err.startswith(f"{what}: some seconds, ")
    found = re.search(r"while it runs, ([\d.]+) (B|kiB) stay\n", err)
    assert found is not None
    said = float(found[1]) * {"B": 1, "kiB": 1024}[found[2]]
    made = sum(bytes_below(Path(folder)) or size_of(Path(folder)) or 0 for folder in ("made", "s"))
    assert 0.3 * said <= made <= 3 * said + 12_000  # of which npz has a part for each array


def test_predict_says_its_cost_first(run: Any, samples: Any) -> None:
    """Those of the model at hand."""
    run("train", "x.npy", "--labels", "y.txt", "--out", "m")
    code, _, err = run("predict", "m", "x.npy", "--out", "p.csv")
    assert code == DONE
    assert re.match(r"predictions of 80 samples of 12 features by \d+ fitted samples: some", err)


def test_the_cost_of_a_graph(run: Any, tmp_path: Path) -> None:
    """Without seconds, which depend on its spectrum."""
    Path("edges.tsv").write_text("a\tb\nb\tc\n")
    words = ("gram", "edges.tsv", "--graph", "exponential", "--beta", "0.2", "--out", "g")
    err = run(*words)[2]
    assert re.match(r"matrix of 3 nodes, 4 entries of its graph: [\d.]+ MiB of memory, ", err)


def test_a_store_that_is_there_costs_what_it_lacks(run: Any, samples: Any, own_cache: None) -> None:
    """Tiles of an earlier run are not counted."""
    words = ("gram", "x.npy", "--out", "g")
    run(*words, "--tile", "30")
    Path("g/gram/c/0/1").unlink()
    assert "features, 1 of 6 tiles: some seconds" in run(*words)[2]
