"""How much commands say: quiet, verbose, as JSON, and at once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE, TOO_BIG
from dhsk.commands.cli import COMMANDS
from dhsk.commands.console import _plain
from dhsk.execution.folder import TemporaryFolder
from dhsk.execution.lock import machine

pytestmark = pytest.mark.usefixtures("own_cache")


def test_every_command_can_be_quiet_or_verbose() -> None:
    """No command lacks the two options."""
    for name, command in COMMANDS.items():
        options = {word for parameter in command.loaded.params for word in parameter.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= options, name


def test_quiet_commands_say_nothing(run: Any, samples: Any, monkeypatch: Any) -> None:
    """Neither results in files nor progress; errors are said."""
    monkeypatch.setattr("dhsk.bars.QUIET_SECONDS", 0.0)
    words = ("train", "x.npy", "--labels", "y.txt", "--out", "m")
    assert "output: m" in run(*words)[1]
    assert run(*words, "--quiet") == (DONE, "", "")
    assert run("predict", "m", "x.npy", "--out", "p.csv", "-q") == (DONE, "", "")
    code, out, err = run("train", "no.npy", "--labels", "y.txt", "--out", "m", "-q")
    assert (code, out, err) == (BAD_INPUT, "", "dhsk: there is no file no.npy\n")


def test_commands_remove_what_killed_ones_left(
    run: Any, samples: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    """Each at its start, also one that makes no temporary folder; what is in use stays."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    used = TemporaryFolder()
    (temporary / "dhsk-left.lock").write_text(json.dumps(machine()))
    (temporary / "dhsk-left").mkdir()
    assert run("info", "x.npy")[0] == DONE
    assert {path.name for path in temporary.iterdir()} == {used.path.name, f"{used.path.name}.lock"}


def test_quiet_reports_say_only_what_was_asked(run: Any, samples: Any) -> None:
    """Without the next command; the command after it says what it always says."""
    run("train", "x.npy", "--labels", "y.txt", "--out", "m")
    _, usual, _ = run("info", "m")
    code, out, err = run("info", "m", "-q")
    assert (code, err) == (DONE, "")
    assert usual == out + "".join(usual.partition("next:")[1:])
    assert run("info", "m")[1] == usual
    assert "next:" not in run("plan", "x.npy", "-q")[1]


@pytest.mark.slow
def test_quiet_cross_validations_keep_the_table_and_the_decision(run: Any, samples: Any) -> None:
    """Also of results that are there; without files, bars, costs and the next command."""
    words = ("cv", "x.npy", "--labels", "y.txt", "--kernel", "cosine,linear")
    words += ("--C", "1", "--folds", "3", "--out", "o")
    usual = run(*words)[1]
    result = usual.partition("output:")[0]
    assert "mean accuracy" in result
    assert "decide: take" in result
    for again in ((), ("--overwrite",)):
        assert run(*words, *again, "-q") == (DONE, result, "")


def test_verbose_commands_say_versions_stages_and_where(run: Any, samples: Any) -> None:
    """What a report of a bug needs; without the option, an error is one sentence."""
    code, _, err = run("train", "x.npy", "--labels", "y.txt", "--out", "m", "-v")
    assert code == DONE
    assert f"dhsk {dhsk.__version__}, Python" in err
    assert f"numpy {np.__version__}" in err
    assert re.search(r"^reading 80 of 80 · \d+ %$", err, re.M)  # of measured times
    code, _, err = run("train", "no.npy", "--labels", "y.txt", "--out", "m", "-v")
    assert code == BAD_INPUT
    assert err.index("Traceback") < err.index("dhsk: there is no file no.npy")
    assert "Traceback" not in run("train", "no.npy", "--labels", "y.txt", "--out", "m")[2]


# JSON


def test_a_plan_is_json(run: Any, samples: Any) -> None:
    """The same numbers as for people, in bytes and seconds; also where it does not fit."""
    code, out, err = run("plan", "x.npy", "--labels", "y.txt", "--rank", 20, "--json")
    found = json.loads(out)
    assert (code, err) == (DONE, "")
    assert (found["gram"]["n_rows"], found["gram"]["dim"], found["gram"]["tiles"]) == (80, 12, 1)
    assert found["gram"]["disk_bytes"] == 80 * 80 * 8 + 80 * 12 * 8
    assert found["class_sizes"] == [40, 40]
    exact, low = found["classifiers"]
    assert (exact["rank"], low["rank"]) == (None, 20)
    assert exact["model"]["bytes"] > 80 * 80 * 8
    assert "refused" in exact or 0 < exact["model_seconds"][1] < exact["grid_seconds"][1]
    assert found["next"] == [
        "dhsk cv x.npy --labels y.txt --out DIR", "dhsk gram x.npy --out STORE"
    ]  # fmt: skip
    code, out, err = run("plan", "--n", 10**6, "--dim", 10, "--memory", "1MB", "--json")
    assert (code, json.loads(out)["gram"]["fits"]) == (TOO_BIG, False)


def test_a_store_is_described_in_json(run: Any, samples: Any) -> None:
    """Every value that people see."""
    dhsk.compute_gram("x.npy", dhsk.CosineKernel(), store="g", tile=30)
    code, out, _ = run("info", "g", "--json")
    found = json.loads(out)
    assert code == DONE
    assert (found["kind"], found["n_rows"], found["tiles"], found["tiles_done"]) == (
        "Gram store", 80, 6, 6,
    )  # fmt: skip
    assert found["kernels"] == [dhsk.CosineKernel().to_spec()]
    (next(Path("g").glob("gram/c/0/1"))).unlink()
    assert json.loads(run("info", "g", "--json")[1])["tiles_done"] == 5


@pytest.mark.parametrize("rank", [None, 10])
def test_a_model_is_described(run: Any, samples: Any, rank: int | None) -> None:
    """Kernel, classes, support vectors or landmarks, how it was trained, and what comes next."""
    words = () if rank is None else ("--rank", rank)
    run("train", "x.npy", "--labels", "y.txt", "--out", "m", "--C", 3, *words)
    _, out, _ = run("info", "m")
    found = json.loads(run("info", "m", "--json")[1])
    model = (dhsk.HeatSVC if rank is None else dhsk.NystromSVC).load("m").model_
    assert found["kernel"] == model.kernel.to_spec()
    assert (found["classes"], found["C"], found["converged"]) == (["down", "up"], 3.0, True)
    assert found["notes"]["n_samples"] == 80
    assert found["next"][0] == "dhsk predict m SAMPLES --out FILE"
    assert f"80 samples of x.npy, by dhsk {dhsk.__version__}" in out
    assert "dhsk predict m SAMPLES --out FILE" in out
    if rank is None:
        counts = model.expansion.n_support
        assert found["n_support"] == counts.tolist()
        assert f"down ({counts[0]}), up ({counts[1]}), in brackets support vectors" in out
        assert f"{counts.sum()} of 80 training samples" in out
    else:
        assert (found["landmarks"], found["rank"]) == (10, 10)
        assert "10, and 10 features that miss " in out


def test_json_has_no_nan() -> None:
    """Readers of JSON other than Python's refuse it."""
    facts = {"a": float("nan"), "b": np.array([1.0, np.inf]), "c": Path("x"), "d": (1, None)}
    assert _plain(facts) == {"a": None, "b": [1.0, None], "c": "x", "d": [1, None]}


# At once


def first_line(words: list[str]) -> tuple[float, str, float]:
    """Seconds to the first line on standard error, that line, and seconds to the end."""
    begin = monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "dhsk", *words],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        line = process.stderr.readline()
        said = monotonic() - begin
        process.communicate()
    return said, line, monotonic() - begin


@pytest.mark.slow
def test_the_first_line_comes_before_the_libraries(samples: Any) -> None:
    """It takes a small part of what loading takes, so it does not depend on how busy this is."""
    for _ in range(3):
        said, line, whole = first_line(["info", "x.npy"])
        assert line == "dhsk: info begins, loading libraries\n"
        if said < whole / 3:
            break
    assert said < whole / 3


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("words", [["--help"], ["info", "x.npy", "--quiet"], ["info", "--help"]])
def test_help_and_quiet_commands_do_not_say_that_they_begin(words: list[str], samples: Any) -> None:
    """Nor those that print JSON."""
    assert "begins" not in first_line(words)[1]
