"""How the tests run commands: in this process, or as processes that can be killed."""

import csv
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

from dhsk.__main__ import main
from dhsk.planning.rates import Line, Rates, save_rates

COST = re.compile(r"^.* of disk while it runs, .* stay\n(page: .*\n)?", re.MULTILINE)
"""Line that says what a run will cost, and where the page of a long one is."""


@pytest.fixture
def run(run_and_hear: Any) -> Callable[..., tuple[int, str, str]]:
    """Run a command in an empty folder; exit code, standard output, standard error without costs.

    These are tested in test_costs.py.
    """

    def command(*words: Any) -> tuple[int, str, str]:
        code, out, err = run_and_hear(*words)
        return code, out, COST.sub("", err)

    return command


@pytest.fixture
def run_and_hear(
    capsys: Any, tmp_path: Path, monkeypatch: Any
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in an empty folder; exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def command(*words: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*map(str, words)])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return command


@pytest.fixture(scope="module")
def address() -> Any:
    """A cluster that stays up for the module."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0",
        protocol="tcp", host="127.0.0.1", set_as_default=False,
    ) as client:  # fmt: skip
        yield client.scheduler.address


@pytest.fixture
def cv(run: Any) -> Callable[..., tuple[int, str, str]]:
    """Run `dhsk cv` with its results in the folder o."""
    return lambda *words: run("cv", *words, "--out", "o")


@pytest.fixture
def start(hears_interrupts: None) -> "Callable[[Path, list[str]], subprocess.Popen[str]]":
    """Start a command in a folder, as the head of a process group of its own."""
    return lambda folder, words: subprocess.Popen(
        [sys.executable, "-m", "dhsk", *words],
        cwd=folder, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.fixture
def own_cache(tmp_path_factory: Any, monkeypatch: Any) -> None:
    """Commands see rates that were made up, and leave the user's alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "caches"))
    products = Line(0.0, 1e-10), Line(0.0, 5e-11), Line(1e-9, 1e-9)
    save_rates(Rates(*products, 1e-9, 0.3e9, 1e9, 0.5e-9, 200.0, "made up"))


@pytest.fixture
def samples(tmp_path: Path, counts: Any, monkeypatch: Any) -> Any:
    """Two classes of 40 counts, and their labels, in the current folder."""
    monkeypatch.chdir(tmp_path)
    X = counts(80, 12)
    X[40:, :4] += 3
    np.save("x.npy", X)
    Path("y.txt").write_text("\n".join(["up"] * 40 + ["down"] * 40) + "\n")
    return X


@pytest.fixture
def table() -> Callable[[str], tuple[list[str], list[list[str]]]]:
    """Reader of a CSV file: its header and its rows."""

    def read(path: str) -> tuple[list[str], list[list[str]]]:
        with Path(path).open(newline="") as file:
            header, *rows = csv.reader(file)
        return header, rows

    return read
