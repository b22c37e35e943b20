"""The cluster of a command."""

import logging
import subprocess
import sys
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.__main__ import main
from dhsk.commands import connecting
from dhsk.commands.options import Cluster
from dhsk.execution import cluster


@pytest.mark.parametrize("error", [None, KeyboardInterrupt], ids=["done", "interrupted"])
def test_logs_are_silent_for_the_time_of_a_command(monkeypatch: Any, error: Any) -> None:
    """Dask's reports of how it connects again; afterwards the level is what it was."""
    closed: list[float] = []

    def close(*, timeout: float) -> None:
        closed.append(timeout)

    client = SimpleNamespace(close=close, dashboard_link=None)
    monkeypatch.setattr(cluster, "connect", lambda *_, **__: client)
    logger = logging.getLogger("distributed.client")
    before = logger.level
    levels = []
    try:
        with connecting.connected(Cluster("tcp://10.0.0.1:8786", None, None)):
            levels.append(logger.level)
            if error is not None:
                raise error
    except KeyboardInterrupt:
        assert error is not None
    assert levels == [logging.CRITICAL]
    assert logger.level == before != logging.CRITICAL
    assert closed


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (b"<title>Dask: Status</title>", True),
        (b"<p>Dask needs bokeh>=3.1.0</p>", False),
        (None, False),
    ],
    ids=["listens", "bokeh is missing", "nothing listens"],
)
def test_the_first_lines_have_the_link_of_a_dashboard_that_answers(
    page: bytes | None, told: bool, monkeypatch: Any, capsys: Any
) -> None:
    """Of any cluster; no port is opened, and no page is promised that is not there."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        link = f"http://127.0.0.1:{server.server_port}/status"
        if page is None:
            server.shutdown()
            server.server_close()
        client = SimpleNamespace(close=lambda **_: None, dashboard_link=link)
        monkeypatch.setattr(cluster, "connect", lambda *_, **__: client)
        with connecting.connected(Cluster("tcp://10.0.0.1:8786", None, None)):
            pass
        server.shutdown()
        thread.join()
    assert capsys.readouterr().err == (f"dashboard: {link}\n" if told else "")


MANY = 20


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch, own_cache: None, tmp_path: Path) -> list[Cluster]:
    """Options with which commands connect, where `MANY` samples are many, in an empty folder."""
    asked: list[Cluster] = []

    def connected(options: Cluster) -> Any:
        asked.append(options)
        return nullcontext()

    monkeypatch.setattr(connecting, "connected", connected)
    monkeypatch.setattr(connecting, "FEW", MANY)
    monkeypatch.setattr(connecting, "core_count", lambda: 2)
    monkeypatch.chdir(tmp_path)
    return asked


CV = ("cv", "x.npy", "--labels", "y.txt", "--time-scale", "1", "--C", "1", "--folds", "2")
STORED = ("train", "x.npy", "--labels", "y.txt", "--store", "g")
GRAM = ("gram", "x.npy")
COMPARE = ("compare", "x.npy", "x.npy", "--permutations", "19")
NODES = ("gram", "edges.tsv", "--graph", "power", "--power", "2")


@pytest.mark.parametrize(
    ("words", "n", "starts"),
    [
        *((words, MANY, True) for words in (CV, STORED, GRAM, NODES)),
        *((words, MANY - 1, False) for words in (CV, STORED, GRAM, NODES)),
        ((*CV, "--rank", "5"), MANY, False),
        (STORED[:-2], MANY, False),
        (COMPARE, MANY, False),
        ((*GRAM, "--part", "1/2"), MANY, False),
        *(
            ((*words, "--workers", "1"), MANY - 1, True)
            for words in (CV, GRAM, STORED[:-2], COMPARE)
        ),
        ((*GRAM, "--cluster", "local"), MANY - 1, True),
        # The processes alone would take more than half of the memory.
        *(((*words, "--memory", "700MB"), MANY, False) for words in (CV, GRAM)),
        ((*GRAM, "--memory", "700MB", "--workers", "2"), MANY, True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_commands_that_start_a_cluster(
    words: tuple[str, ...], n: int, starts: bool, begun: list[Cluster]
) -> None:
    """Those that ask for one, and those on matrices of many samples."""
    np.save("x.npy", np.random.default_rng(0).random((n, 3)))
    Path("y.txt").write_text("".join(f"{k % 2}\n" for k in range(n)))
    Path("edges.tsv").write_text("".join(f"{k} {k + 1}\n" for k in range(n - 1)))
    with pytest.raises(SystemExit) as ended:
        main([*words, "--out", "o"])
    assert ended.value.code == 0
    assert bool(begun) is starts


@pytest.mark.parametrize("n", [MANY - 1, MANY])
def test_repair_of_a_large_store_starts_a_cluster(n: int, begun: list[Cluster]) -> None:
    """As to compute it did."""
    np.save("x.npy", np.random.default_rng(0).random((n, 3)))
    dhsk.compute_gram("x.npy", "cosine", store="g")
    Path("g/gram/c/0/0").unlink()
    with pytest.raises(SystemExit) as ended:
        main(["verify", "g", "--repair", "x.npy"])
    assert ended.value.code == 0
    assert bool(begun) is (n == MANY)


IN_PROCESS = """
import sys
from dhsk.__main__ import main

labels = ["--labels", "y.txt"]
for words in (
    ["gram", "x.npy", "--out", "g"],
    ["verify", "g"],
    ["info", "g"],
    ["plan", "x.npy", *labels],
    ["train", "x.npy", *labels, "--out", "m"],
    ["train", "x.npy", *labels, "--rank", "5", "--out", "low"],
    ["predict", "m", "x.npy", "--out", "p.csv"],
    ["compare", "x.npy", "x.npy", "--permutations", "19", "--out", "c"],
    ["cv", "x.npy", *labels, "--C", "1", "--time-scale", "1", "--folds", "2", "--out", "o"],
):
    try:
        main(words)
    except SystemExit as ended:
        assert not ended.code, words
    assert "distributed" not in sys.modules, words
"""


@pytest.mark.slow
def test_commands_without_workers_load_no_cluster(tmp_path: Path) -> None:
    """It takes longer to load than a small matrix to compute."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((40, 3)))
    (tmp_path / "y.txt").write_text("a\nb\n" * 20)
    subprocess.run([sys.executable, "-c", IN_PROCESS], cwd=tmp_path, check=True, timeout=120)
