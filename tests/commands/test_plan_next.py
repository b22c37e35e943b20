"""What `dhsk plan` says of the disk, and what it proposes: nothing that it has refused."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import DONE, TOO_BIG
from dhsk.commands.plan_next import refusal_of
from dhsk.samples import ZeroRows
from dhsk.samples.maps import check_rows

pytestmark = pytest.mark.usefixtures("own_cache")

HUGE = ("plan", "--n", 10**6, "--dim", 1000, "--memory", "16GB")


@pytest.fixture
def free(monkeypatch: Any) -> Any:
    """Have some bytes free on every disk; the places that were asked about are kept."""
    asked: list[Any] = []

    def have(count: int | None) -> list[Any]:
        def free_bytes(place: Any) -> int | None:
            asked.append(place)
            return count

        monkeypatch.setattr("dhsk.commands.plan.free_bytes", free_bytes)
        return asked

    return have


def test_a_store_larger_than_the_disk_is_its_limit(run: Any, free: Any) -> None:
    """With what fits in its place, and no proposal to store it."""
    asked = free(32 * 10**9)
    code, out, _ = run(*HUGE)
    said = " ".join(out.split())
    assert code == DONE
    assert asked == [Path()]
    assert "free disk the limit, the store takes 3.68 TiB, 29.80 GiB are free" in said
    assert "none is near" not in said
    each = r"about \d+ (min|h|days) for 5 folds x 3 C x 3 kernels"
    rank = rf"rank [\d,]+ in [\d.]+ GiB of memory, {each} \(--rank \d+\)"
    exact = rf"exact SVMs from the columns that they need, {each}, with 7.45 GiB of samples on disk"
    assert re.search(f"what fits {rank}; {exact}", said), said
    assert "matrix stored, 1 pass *" in said
    assert "dhsk gram" not in out
    assert re.search(
        r"next:   dhsk cv SAMPLES --labels LABELS --rank \d+ --out DIR --memory 16GB", out
    )  # exact ones would take days


def test_the_disk_of_the_store_is_looked_at(run: Any, free: Any, tmp_path: Path) -> None:
    """Named, what does not fit it ends with code 3; a server says nothing."""
    asked = free(32 * 10**9)
    code, out, err = run(*HUGE, "--out", tmp_path / "g")
    assert (code, asked) == (TOO_BIG, [tmp_path / "g"])
    assert "the store needs 3.68 TiB on disk but only 29.80 GiB are free" in err
    assert "what fits" in out
    free(None)
    code, out, _ = run(*HUGE, "--out", tmp_path / "g")
    assert (code, "free disk" in out, "next:   dhsk gram" in out) == (DONE, False, True)


def test_a_disk_that_is_half_full_afterwards_is_close(run: Any, free: Any) -> None:
    """Of a disk with more room nothing is said, unless in full."""
    free(3 * 10**9)
    out = run("plan", "--n", 20000, "--dim", 393)[1]
    assert "free disk  " in out
    assert "close to the limit" in out
    free(30 * 10**9)
    assert "free disk" not in run("plan", "--n", 20000, "--dim", 393)[1]
    assert "free disk" in run("plan", "--n", 20000, "--dim", 393, "--verbose")[1]


def test_samples_beyond_the_disk_leave_only_low_ranks(run: Any, free: Any) -> None:
    """Exact fits on workers stage them."""
    free(10**9)
    said = " ".join(run(*HUGE)[1].split())
    assert "7.45 GiB of samples on disk" not in said
    assert "nothing that stages the samples, 7.45 GiB" in said


def test_one_model_fits_where_a_grid_does(run: Any, free: Any) -> None:
    """One budget, and the same way: columns as needed.

    Of samples that workers read, where they do not fit in this process.
    """
    free(32 * 10**9)
    ways = json.loads(run(*HUGE, "--json")[1])["classifiers"]
    exact = ways[0]
    assert exact["rank"] is None
    assert exact["model"]["bytes"] <= 16 * 10**9
    assert exact["grid"]["bytes"] <= 16 * 10**9
    for words, limit in (("columns as needed", "16GB"), ("columns, --workers", "8GB")):
        out = run(*HUGE[:-1], limit)[1]
        assert re.search(rf"exact +[\d.]+ GiB +{words} ", out)
        assert "does not fit" not in out.partition("Memory of SVMs")[2]


@pytest.fixture
def signed() -> Any:
    """Samples of both signs, and their labels."""
    X = np.random.default_rng(0).standard_normal((60, 5))
    np.save("dense.npy", X)
    Path("y.txt").write_text("a\n" * 30 + "b\n" * 30)
    return X


def test_what_is_refused_is_not_proposed(run: Any, signed: Any) -> None:
    """Negative values, with labels or without: a kernel of samples as they are."""
    for labels in ((), ("--labels", "y.txt")):
        out = run("plan", "dense.npy", *labels)[1]
        assert "refused" in out
        assert "needs non-negative samples" in " ".join(out.split())
        proposed = re.findall(r"^(?:next|or): +dhsk (\w+) (.*)$", out, re.M)
        assert [name for name, _ in proposed] == (["cv", "gram"] if labels else ["gram"])
        taken = {"cv": "--map scaled", "gram": "--kernel gaussian"}
        assert all(taken[name] in words for name, words in proposed)
    facts = json.loads(run("plan", "dense.npy", "--json")[1])
    assert "non-negative" in facts["refused"]
    assert facts["next"] == ["dhsk gram dense.npy --kernel gaussian --out STORE"]
    out = run("plan", "dense.npy", "--kernel", "gaussian")[1]
    assert "refused" not in out


@pytest.mark.slow
def test_proposals_for_refused_samples_work(run: Any, signed: Any) -> None:
    """As they are printed."""
    facts = json.loads(run("plan", "dense.npy", "--labels", "y.txt", "--json")[1])
    for command in facts["next"]:
        words = command.removeprefix("dhsk ").split()
        assert run(*words)[0] == DONE


@pytest.mark.parametrize("kind", ["counts", "units", "one"])
def test_columns_of_labels_are_no_features_of_a_matrix(run: Any, signed: Any, kind: str) -> None:
    """Nor is a matrix proposed of columns in other units; one column is no point on a sphere."""
    rng = np.random.default_rng(0)
    X = {
        "counts": rng.poisson(5.0, (60, 4)),
        "units": rng.normal(50.0, 5.0, (60, 4)) * [1, 10, 1000, 0.1],
        "one": rng.random((60, 1)),
    }[kind]
    lines = [",".join(map(str, row)) + f",{'uv'[n % 2]}" for n, row in enumerate(X.tolist())]
    header = ",".join([*"abcd"[: X.shape[1]], "y"])
    Path("t.csv").write_text("\n".join([header, *lines]))
    facts = json.loads(run("plan", "t.csv", "--labels", "t.csv:y", "--json")[1])
    several = {"units": " --map scaled"}.get(kind, "")
    one = {"one": " --kernel gaussian"}.get(kind, "")
    assert facts["next"] == [
        f"dhsk cv t.csv --labels t.csv:y{several} --out DIR",
        *([] if several else [f"dhsk gram t.csv --drop-column y{one} --out STORE"]),
    ]
    for command in facts["next"][1:]:
        assert run(*command.removeprefix("dhsk ").split())[0] == DONE


def test_nothing_is_proposed_for_what_no_kernel_takes(run: Any, signed: Any) -> None:
    """Of values that are not finite, or memory that does not do."""
    signed[3, 2] = np.nan
    np.save("nan.npy", signed)
    assert "next:" not in run("plan", "nan.npy")[1]
    np.save("positive.npy", np.abs(signed[:3]))
    code, out, _ = run("plan", "positive.npy", "--memory", "100MB")
    assert (code, "next:" in out) == (TOO_BIG, False)


def test_without_labels_the_first_samples_are_read(monkeypatch: Any) -> None:
    """With them pilot fits read all, and a late negative value is found too."""
    monkeypatch.setattr("dhsk.commands.plan_next._BLOCK_BYTES", 8 * 5)
    monkeypatch.setattr("dhsk.commands.plan_next._MOST_BYTES", 8 * 50)
    X = np.ones((100, 5))
    X[50] = -1
    samples = dhsk.open_samples(X)
    check = partial(check_rows, "hyperspherical", zero_rows=ZeroRows())
    assert refusal_of(samples, check, whole=False) == ""
    assert "row 50" in refusal_of(samples, check, whole=True)


@pytest.mark.parametrize("name", ["projective", "tfidf", "clr:0.5"])
def test_a_map_is_that_of_the_commands_that_come_next(run: Any, tmp_path: Path, name: str) -> None:
    """The line of `dhsk cv` is taken as it is; no matrix learns weights."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5)) if name == "projective" else rng.poisson(3.0, (40, 5))
    np.save(tmp_path / "x.npy", x)
    (tmp_path / "y.txt").write_text("u\nv\n" * 20)
    words = ("--labels", str(tmp_path / "y.txt"), "--map", name)
    code, out, err = run("plan", str(tmp_path / "x.npy"), *words)
    assert (code, "refused" in out) == (DONE, False), err
    following = [line for line in out.splitlines() if f"--map {name} --out" in line]
    assert len(following) == (1 if name == "tfidf" else 2)
