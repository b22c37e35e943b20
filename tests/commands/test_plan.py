"""The command `dhsk plan`, run as a person runs it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from dhsk.__main__ import BAD_INPUT, DONE, TOO_BIG

pytestmark = pytest.mark.usefixtures("own_cache")


def test_plan_without_samples(run: Any) -> None:
    """Counts alone make a plan: the numbers are those of the arithmetic."""
    code, out, _ = run("plan", "--n", 20000, "--dim", 393, "--workers", 2)
    assert code == DONE
    assert "20,000 x 20,000 float64, upper triangle, 393 features" in out
    assert "55 blocks of 2,000 x 2,000 entries" in out
    assert "next:   dhsk gram" in out


def test_plan_that_does_not_fit(run: Any) -> None:
    """Shown all the same, and exit code 3 with the numbers."""
    code, out, err = run("plan", "--n", 20000, "--dim", 393, "--memory", "200MB")
    assert code == TOO_BIG
    assert "20,000 x 20,000" in out
    assert "190.73 MiB are allowed" in err


def test_plan_of_a_file(run: Any, samples: Any) -> None:
    """Counts are taken from the file; without either there is nothing to plan."""
    assert "80 x 80" in run("plan", "x.npy")[1]
    code, _, err = run("plan")
    assert (code, "give SAMPLES, or both --n and --dim" in err) == (BAD_INPUT, True)


def test_plan_of_a_table_goes_on_with_its_options(run: Any, tmp_path: Path) -> None:
    """The command that comes next reads the table as this one did."""
    path = tmp_path / "x.csv"
    path.write_text("".join(f"s{i},k,{i % 3 + 1},{i % 5}\n" for i in range(9)))
    words = ("--id", "0", "--drop-column", "1", "--no-header")
    code, out, _ = run("plan", path, *words, "--memory", "1GB")
    assert code == DONE
    expected = f"{path} --drop-column 1 --id-column 0 --no-header --out STORE --memory 1GB"
    assert f"next:   dhsk gram {expected}" in out


def test_plan_of_a_sparse_file_names_its_path(run: Any, samples: Any) -> None:
    """Two entries a row in one of 1000 columns: the products are sparse, and so are the flops."""
    X = csr_array((np.ones(200), np.arange(200) % 1000, np.arange(0, 201, 2)), shape=(100, 1000))
    save_npz("x.npz", X)
    out = run("plan", "x.npz")[1]
    assert "sparse products: 0 multiplications an entry, dense ones 1,000" in out
    assert "the first 100 samples" not in out
    assert "the first 100 samples" in run("plan", "x.npz", "--verbose")[1]


def test_plan_past_this_machine(run: Any, monkeypatch: Any) -> None:
    """A million samples on 64 workers, on paper: which limits it meets; all if verbose."""
    monkeypatch.setattr("dhsk.commands.plan.free_bytes", lambda _: None)
    words = ("plan", "--n", 10**6, "--dim", 400, "--workers", 64, "--memory", "256GB",
             "--passes", 3)  # fmt: skip
    code, out, _ = run(*words)
    assert code == DONE
    assert re.search(r"^matrix stored, 3 passes +[\d.,]+ to [\d.,]+ (h|days) ", out, re.MULTILINE)
    assert re.search(r"^  tasks +[\d,]+ of [\d,]+ x [\d,]+ entries, [\d.]+ s each: ", out, re.M)
    assert "breaks first" in out
    rows = ("scheduler  ", "disk  ", "files  ", "worker memory  ", "rates  ")
    assert [row for row in rows if f"\n  {row}" in out] == ["disk  "]
    assert [row for row in rows if f"\n  {row}" in run(*words, "--verbose")[1]] == list(rows)
    assert "on paper" in out


def test_plan_says_the_memory_of_classifiers(run: Any) -> None:
    """A row for each rank, asked for once or several times, and how to get seconds."""
    code, out, _ = run("plan", "--n", 5000, "--dim", 50, "--rank", "100,300", "--rank", 9000,
                       "--classes", 10, "--grid", "4,2,3")  # fmt: skip
    assert code == DONE
    assert "10 classes: one model, and a grid search of 4 folds x 2 C x 3 kernels" in out
    names = re.findall(r"^(exact|rank [\d,]+)  ", out.partition("Memory of SVMs")[2], re.MULTILINE)
    assert names == ["exact", "rank 100", "rank 300", "rank 5,000"]
    assert "for seconds give labels: dhsk plan FILE --labels L" in out
    assert "rank 2,000  " in run("plan", "--n", 5000, "--dim", 50)[1]


def test_plan_says_what_each_way_takes(run: Any) -> None:
    """A row for each of them, also of a thousand million samples; the same numbers in JSON."""
    words = ("plan", "--n", 10**9, "--dim", 100, "--workers", 1000, "--rank", 1000)
    code, out, _ = run(*words)
    assert code == DONE
    rows = re.findall(r"^(\w.*?)  +[\d.,]+ to [\d.,]+ (?:min|h|days|years) ", out, re.MULTILINE)
    assert rows == [
        "exact, 1,000 support vectors",
        "exact, 10,000 support vectors",
        "exact, 10,000,000 support vectors",
        "rank 1,000",
        "matrix stored, 1 pass *",
        "matrix computed in 1 pass",
    ]
    assert "(*: does not fit this memory or disk" in out
    found = json.loads(run(*words, "--json")[1])["methods"]
    assert [one["name"] + " *" * (not one["fits"]) for one in found] == rows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rank", "0"), "the rank must be at least 1, got 0"),
        (("--rank", "many"), "'many' is not a list of whole numbers"),
        (("--classes", "1"), "1 is not in the range"),
        (("--grid", "1,3,3"), "'1,3,3' is not 2 folds or more"),
        (("--grid", "5,3"), "'5,3' is not 2 folds or more"),
    ],
)
def test_plan_of_bad_ranks(run: Any, words: tuple[str, str], message: str) -> None:
    """Exit code 2 before anything is shown."""
    code, out, err = run("plan", "--n", 9, "--dim", 9, *words)
    assert (code, out) == (BAD_INPUT, "")
    assert message in err


@pytest.mark.slow
def test_measured_rates_are_kept_and_used(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """--measure alone measures; the plans after it say that these are the rates."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert "assumed: dhsk plan --measure" in run("plan", "--n", 9, "--dim", 9)[1]
    code, out, _ = run("plan", "--measure", "--place", tmp_path)
    assert code == DONE
    assert "products, float32" in out
    assert f"kept in {tmp_path / 'caches' / 'dhsk' / 'rates.json'}" in out
    out = run("plan", "--n", 9, "--dim", 9)[1]
    assert f"disk of {tmp_path}" in " ".join(out.split())


@pytest.mark.slow
def test_cache_that_cannot_be_written(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """One line of warning, and the plan all the same."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    code, out, err = run("plan", "--measure", "--n", 9, "--dim", 9, "--place", tmp_path,
                         )  # fmt: skip
    assert (code, "9 x 9" in out) == (DONE, True)
    assert err.strip().count("\n") == 0 or "measuring" in err
    assert "the rates cannot be kept" in err.strip().splitlines()[-1]
