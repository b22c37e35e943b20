"""`dhsk predict` on the cores of its process and on workers, in the memory that it may use."""

import re
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client

import dhsk
from dhsk.__main__ import DONE, TOO_BIG
from dhsk.commands.options import Cluster

N, DIM = 1_200, 12


@pytest.fixture
def trained(run: Any, counts: Any, monkeypatch: Any, tmp_path: Path) -> None:
    """A model with probabilities, and samples that are several blocks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    X, y = counts(N, DIM), np.repeat(["a", "b", "c"], N // 3)
    for code, label in enumerate("abc"):
        X[y == label, 4 * code : 4 * code + 4] += 2
    np.save("x.npy", X)
    np.save("few.npy", X[::10])
    Path("few.txt").write_text("\n".join(y[::10]))
    words = ("train", "few.npy", "--labels", "few.txt", "--probability", "--out", "m")
    assert run(*words)[0] == DONE


PREDICT = ("predict", "m", "x.npy", "--decision", "--proba")


def test_workers_write_the_same_file(run: Any, trained: None, monkeypatch: Any) -> None:
    """They are started or found if an option asks for it."""
    asked: list[Cluster] = []
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as client:

        def connected(options: Cluster) -> Any:
            asked.append(options)
            return nullcontext(client)

        monkeypatch.setattr("dhsk.commands.connecting.connected", connected)
        assert run(*PREDICT, "--out", "here.csv")[0] == DONE
        assert not asked
        assert run(*PREDICT, "--out", "there.csv", "--cluster", "tcp://there")[0] == DONE
        assert run(*PREDICT, "--out", "two.csv", "--workers", 2)[0] == DONE
    assert [(one.cluster, one.workers) for one in asked] == [("tcp://there", None), ("local", 2)]
    here = Path("here.csv").read_bytes()
    assert here.count(b"\n") == N + 1
    assert Path("there.csv").read_bytes() == Path("two.csv").read_bytes() == here
    labels = dhsk.HeatSVC.load("m").predict(np.load("x.npy"))
    assert [line.split(",")[0] for line in here.decode().splitlines()[1:]] == labels.tolist()


def test_what_does_not_fit_is_refused(run: Any, trained: None) -> None:
    """In one sentence with the numbers, and nothing is written."""
    code, _, err = run(*PREDICT, "--out", "o.csv", "--memory", "200MB")
    assert (code, err.count("\n")) == (TOO_BIG, 1)
    assert "a prediction needs" in err
    assert re.search(r"but [\d.]+ [MG]iB are allowed: allow more", err)
    assert not Path("o.csv").exists()
    assert run(*PREDICT, "--out", "o.csv", "--memory", "2GB")[0] == DONE


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_interrupted_it_ends_at_once_and_writes_nothing(
    start: Callable[..., Any], trained: None, tmp_path: Path, number: int, workers: Any
) -> None:
    """130, one sentence, and no process of its own is left."""
    rng = np.random.default_rng(0)
    np.save("long.npy", rng.poisson(2.0, (400_000, DIM)).astype(float))
    process = start(tmp_path, ["predict", "m", "long.npy", "--proba", "--out", "o.csv", *workers])
    deadline = time.monotonic() + 60
    while not any("o.csv" in path.name for path in tmp_path.iterdir()):  # being written
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    lines = [line for line in output.splitlines() if line]
    said = [
        line
        for line in lines
        if not re.search("dashboard|predictions:|begins|of disk while it runs", line)
    ]
    assert len(said) == 1, output
    assert "nothing is kept" in said[0]
    assert not Path("o.csv").exists()
    assert not psutil.wait_procs(children, timeout=10)[1]
