"""The command `dhsk compare`, run as a person runs it."""

import csv
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy.sparse import csr_array, save_npz
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE, INTERRUPTED, TOO_BIG
from dhsk.commands.options import Cluster
from tests.killed import KilledError, kill_after

PLANTED = 8
"""Samples of B that come from elsewhere."""


@pytest.fixture
def sets(run: Any) -> tuple[Any, Any]:
    """Counts of A, and of B of which the first come from elsewhere, in files."""
    rng = np.random.default_rng(0)
    A, B = rng.poisson(4.0, (60, 6)), rng.poisson(4.0, (50, 6))
    B[:PLANTED] = rng.poisson([0.5, 0.5, 0.5, 0.5, 9.0, 15.0], (PLANTED, 6))
    np.save("a.npy", A)
    np.save("b.npy", B)
    return A, B


def test_what_differs_is_found_and_named(run: Any, sets: Any) -> None:
    """The planted samples come first among those of B; all files tell the same."""
    code, out, err = run("compare", "a.npy", "b.npy", "--permutations", 99, "--out", "d")
    assert code == DONE
    assert "Traceback" not in err
    assert out.startswith("The two sets differ: p = 0.01.")
    assert "output: d\n" in out
    assert "next:   open d/report.html" in out
    found = json.loads(Path("d/results.json").read_text())
    assert (found["p_value"], found["permutations"]) == (0.01, 99)
    assert [one["n_samples"] for one in found["sets"]] == [60, 50]
    with Path("d/witness.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 110
    of_b = [int(row["row"]) for row in rows if row["set"] == "B"]
    assert set(of_b[:PLANTED]) == set(range(PLANTED))
    own = [float(row["witness"]) * (1 if row["set"] == "A" else -1) for row in rows]
    assert own == sorted(own, reverse=True)
    page = Path("d/report.html").read_text(encoding="utf-8")
    assert "The two sets differ: p = 0.01" in page
    assert "http-equiv" in page
    assert 'src="' not in page


def test_the_numbers_are_those_of_the_function(run: Any, sets: Any) -> None:
    """Of kernels whose times are given, on all samples together."""
    words = ("--time-scale", "0.3,1", "--permutations", 99, "--seed", 5, "--map", "projective")
    code, _, _ = run("compare", "a.npy", "b.npy", *words, "--out", "d")
    assert code == DONE
    kernels = [dhsk.HeatKernel.at_scale(6, scale) for scale in (0.3, 1.0)]
    grams = dhsk.compute_gram(np.concatenate(sets), kernels, sphere_map="projective")
    groups = np.repeat(["A", "B"], [60, 50])
    expected = dhsk.maximum_mean_discrepancy(grams, groups, 99, 5)
    found = json.loads(Path("d/results.json").read_text())
    assert found["p_value"] == expected.p_value
    assert [one["statistic"] for one in found["kernels"]] == list(expected.statistics)
    assert [one["time_scale"] for one in found["kernels"]] == pytest.approx([0.3, 1.0])
    assert found["unbiased"] == expected.unbiased


@pytest.mark.parametrize("kernel", ["gaussian", "cosine", "linear", "parametrix", "polynomial"])
def test_sets_of_one_distribution_are_not_told_apart(run: Any, sets: Any, kernel: str) -> None:
    """By kernels without times too: every other sample of the same."""
    A, _ = sets
    np.save("x.npy", A[::2])
    np.save("y.npy", A[1::2])
    words = ("--kernel", kernel, "--permutations", 19, "--out", "d")
    code, out, _ = run("compare", "x.npy", "y.npy", *words)
    assert code == DONE
    assert out.startswith("No difference was found: p = ")
    assert "no proof that the sets are alike" in " ".join(out.split())
    # Of the others two sets may differ in size alone.
    assert ("--kernel gaussian" in " ".join(out.split())) == (kernel in ("cosine", "parametrix"))


def test_sparse_samples_and_names(run: Any, sets: Any) -> None:
    """One set sparse, one a table with ids and the features in another order: the same numbers."""
    A, B = sets
    run("compare", "a.npy", "b.npy", "--permutations", 19, "--out", "dense")
    for name, values, order in (("a", A, range(6)), ("b", B, [3, 1, 0, 5, 4, 2])):
        lines = [",".join(["id", *(f"f{k}" for k in order)])]
        lines += [",".join([f"{name}-{n}", *map(str, row[order])]) for n, row in enumerate(values)]
        Path(f"{name}.csv").write_text("\n".join(lines) + "\n")
    words = ("--permutations", 19, "--id-column", "id", "--out", "table")
    assert run("compare", "a.csv", "b.csv", *words)[0] == DONE
    save_npz("a.npz", csr_array(A))
    words = ("--permutations", 19, "--out", "sparse")
    assert run("compare", "a.npz", "b.npy", *words)[0] == DONE
    dense, table, sparse = (
        json.loads(Path(folder, "results.json").read_text())
        for folder in ("dense", "table", "sparse")
    )
    rounding = 1e-9  # of differences of means of 110 cosines, at statistics above 1
    for other in (table, sparse):
        assert other["p_value"] == dense["p_value"]
        for one, two in zip(other["kernels"], dense["kernels"], strict=True):
            assert one["statistic"] == pytest.approx(two["statistic"], rel=rounding)
    with Path("table/witness.csv").open(encoding="utf-8") as file:
        assert all(
            row["id"] == f"{row['set'].lower()}-{row['row']}" for row in csv.DictReader(file)
        )
    assert ">b-" in Path("table/report.html").read_text(encoding="utf-8")


def test_what_cannot_be_compared_is_refused_in_words(run: Any, sets: Any) -> None:
    """With the file and its row, before anything is written."""
    A, _ = sets
    missing = A.astype(float)
    missing[7, 3] = np.nan
    for name, values in (
        ("one", A[:1]), ("short", A[:, :5]), ("missing", missing), ("none", A[:0]),
        ("below", A - 20.0),
    ):  # fmt: skip
        np.save(f"{name}.npy", values)
    Path("empty.csv").write_text("")
    Path("texts.txt").write_text("a b\nc d\n")
    for words, said in (
        (("a.npy", "one.npy"), "B, one.npy, has 1 sample, but"),
        (("one.npy", "a.npy"), "A, one.npy, has 1 sample, but"),
        (("a.npy", "short.npy"), "short.npy has 5 features, not the 6 of a.npy: give"),
        (
            ("a.npy", "missing.npy", "--kernel", "heat"),
            "missing.npy: row 7, column 3 (counted ",
        ),
        (
            ("missing.npy", "a.npy", "--kernel", "heat"),
            "missing.npy: row 7, column 3 (counted ",
        ),
        (("a.npy", "below.npy", "--kernel", "heat"), "below.npy: row 0, column"),
        (("a.npy", "none.npy"), "none.npy is empty"),
        (("empty.csv", "a.npy"), "empty.csv is empty"),
        (("texts.txt", "texts.txt", "--spectrum", "1"), "A, texts.txt, holds texts"),
        (("a.npy", "absent.npy"), "there is no file absent.npy"),
        (("a.npy", "b.npy", "--permutations", "3"), "--permutations"),
    ):
        code, out, err = run("compare", *words, "--out", "d")
        assert (code, out) == (BAD_INPUT, ""), words
        assert said in err
    assert run("compare", "a.npy", "b.npy", "--memory", "1MB", "--out", "d")[0] == TOO_BIG
    assert not Path("d").exists()


def test_results_of_other_sets_are_kept(run: Any, sets: Any) -> None:
    """The same run replaces its own, another one only if told to."""
    words = ("--permutations", 19, "--out", "d")
    for _ in range(2):
        assert run("compare", "a.npy", "b.npy", *words)[0] == DONE
    code, _, err = run("compare", "b.npy", "a.npy", *words)
    assert code == BAD_INPUT
    assert "d holds the results of a run with other samples: give another --out, or" in err
    code, _, err = run("compare", "a.npy", "b.npy", "--seed", 1, *words)
    assert "a run with other seed" in err
    assert run("compare", "b.npy", "a.npy", "--overwrite", *words)[0] == DONE
    code, _, err = run("info", "d")
    assert code == BAD_INPUT
    assert "d holds the results of dhsk compare: open d/report.html" in err


def test_workers_find_the_same_numbers(
    run: Any, sets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are started or found if an option asks for it."""
    asked: list[Cluster] = []
    words = ("compare", "a.npy", "b.npy", "--permutations", 99, "--out")
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as client:

        def connected(options: Cluster) -> Any:
            asked.append(options)
            return nullcontext(client)

        monkeypatch.setattr("dhsk.commands.connecting.connected", connected)
        assert run(*words, "here")[0] == DONE
        assert not asked
        assert run(*words, "there", "--cluster", "tcp://there")[0] == DONE
        assert run(*words, "two", "--workers", 2)[0] == DONE
        assert set(client.cluster.scheduler.task_prefixes) == {"of_group-dhsk"}
    assert [(one.cluster, one.workers) for one in asked] == [("tcp://there", None), ("local", 2)]
    here = Path("here/witness.csv").read_bytes()
    assert Path("there/witness.csv").read_bytes() == Path("two/witness.csv").read_bytes() == here
    assert outcome("there") == outcome("two") == outcome("here")


def outcome(folder: str) -> dict[str, Any]:
    """Results without the time of the run."""
    found: dict[str, Any] = json.loads(Path(folder, "results.json").read_text())
    return found | {"seconds": 0, "created": ""}


def test_interrupted_it_goes_on(run: Any, sets: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so; the same command finds the same numbers, and leaves results alone."""
    words = ("compare", "a.npy", "b.npy", "--permutations", 99, "--out")
    assert run(*words, "whole")[0] == DONE
    with monkeypatch.context() as patched:
        patched.setattr("dhsk.execution.kept_pass.UNKEPT_SECONDS", 0.0)
        names = kill_after(patched, 2)  # the permutations at once, and the sums of a group
        with pytest.raises(KilledError):
            run(*words, "d")
    (kept,) = Path("d/fits").glob(f"*{names[-1]}.npz")
    before = kept.read_bytes()
    with monkeypatch.context() as patched:

        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        patched.setattr("dhsk.commands.compare.maximum_mean_discrepancy", interrupted)
        code, _, err = run(*words, "d")
    assert code == INTERRUPTED
    assert "what is finished is kept: run the same command again to go on" in err
    assert kept.read_bytes() == before
    assert run(*words, "d")[0] == DONE
    assert outcome("d") == outcome("whole")
    assert {file.name for file in Path("d").iterdir()} == {
        "results.json", "witness.csv", "report.html",
    }  # fmt: skip


def test_a_column_of_one_set_alone_is_left_out(run: Any) -> None:
    """Such as the labels of one of them; a misspelt one is in neither."""
    rng = np.random.default_rng(0)
    frames = [pd.DataFrame(rng.random((20, 3)), columns=list("abc")) for _ in range(2)]
    frames[0].assign(topic="t").to_csv("a.csv", index=False)
    frames[1].to_csv("b.csv", index=False)
    words = ("--permutations", 99, "--drop-column")
    assert run("compare", "a.csv", "b.csv", *words, "topic", "--out", "o")[0] == DONE
    assert run("compare", "b.csv", "a.csv", *words, "topic", "--out", "p")[0] == DONE
    code, _, err = run("compare", "a.csv", "b.csv", *words, "topik", "--out", "q")
    assert code == BAD_INPUT
    assert "neither a.csv nor b.csv has a column 'topik': their columns are a, b, c, topic" in err


def test_samples_that_are_not_drawn_one_by_one(run: Any) -> None:
    """Rows that follow dates, and samples of both sets, are warned of."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.poisson(4.0, (40, 3)), columns=list("abc"))
    table["day"] = pd.date_range("2020-01-01", periods=40).strftime("%m/%d/%Y")
    table.to_csv("a.csv", index=False)
    table.sample(frac=1, random_state=0).to_csv("b.csv", index=False)
    words = ("compare", "a.csv", "b.csv", "--permutations", 19)
    code, _, err = run(*words, "--drop-column", "day", "--out", "d")
    assert code == DONE
    assert "rows of A, a.csv, follow column 'day': the p-value takes samples as independent" in err
    assert "rows of B" not in err
    err = run(*words, "--id-column", "day", "--out", "e")[2]
    assert "A and B have 40 names of samples in common" in err


def test_tables_are_scaled_by_their_looks(run: Any) -> None:
    """With gaps, of both sets alike: the numbers are those of scikit-learn's scaler of all."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal([9.0, -500.0, 3e4], [2.0, 90.0, 5e3], (90, 3)))
    table = table.add_prefix("c")
    table.loc[50:, "c0"] += 3.0
    table[rng.random(table.shape) < 0.05] = np.nan
    table[:50].to_csv("a.csv", index=False)
    table[50:].to_csv("b.csv", index=False)
    code, out, err = run("compare", "a.csv", "b.csv", "--permutations", 99, "--out", "d")
    assert code == DONE
    assert out.startswith("The two sets differ: p = 0.01.")
    assert "have gaps, which are filled with means: columns are scaled" in err
    assert "gaps in 50 rows (columns c" in err
    assert "gaps in 40 rows (columns c" in err
    values = SimpleImputer().fit_transform(StandardScaler().fit_transform(table))
    found = json.loads(Path("d/results.json").read_text())
    kernel = dhsk.GaussianKernel(float(found["kernels"][0]["kernel"].partition("=")[2]))
    G = dhsk.compute_gram(values, kernel)
    expected = dhsk.maximum_mean_discrepancy(G, np.repeat(["A", "B"], [50, 40]), 99, 0)
    assert found["sphere_map"] == "scaled"
    assert found["unbiased"] == pytest.approx(expected.unbiased, rel=1e-9)
    assert found["p_value"] == expected.p_value
    refused = run("compare", "a.csv", "b.csv", "--kernel", "heat", "--map", "scaled", "--out", "e")
    assert "--map scaled is for kernels of columns" in refused[2]
    table.assign(day="x")[:50].to_csv("a.csv", index=False)
    err = run("compare", "a.csv", "b.csv", "--out", "e")[2]
    assert "leave it out with --drop-column NAME, or name the samples by it" in err
    assert "--labels" not in err
