"""The cluster of a command."""

import logging
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import main
from dhsk.commands import connecting
from dhsk.commands.options import Cluster


@pytest.mark.parametrize("error", [None, KeyboardInterrupt], ids=["done", "interrupted"])
def test_logs_are_silent_for_the_time_of_a_command(monkeypatch: Any, error: Any) -> None:
    """Dask's reports of how it connects again; afterwards the level is what it was."""
    closed: list[float] = []

    def close(*, timeout: float) -> None:
        closed.append(timeout)

    client = SimpleNamespace(close=close, dashboard_link=None)
    monkeypatch.setattr(connecting, "connect", lambda *_, **__: client)
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
        monkeypatch.setattr(connecting, "connect", lambda *_, **__: client)
        with connecting.connected(Cluster("tcp://10.0.0.1:8786", None, None)):
            pass
        server.shutdown()
        thread.join()
    assert capsys.readouterr().err == (f"dashboard: {link}\n" if told else "")


@pytest.mark.parametrize(
    ("small", "words", "starts"),
    [
        (20, [], False),
        (19, [], True),
        (20, ["--workers", "1"], True),
        (19, ["--rank", "5"], False),
    ],
)
def test_grids_that_start_a_cluster(
    small: int, words: list[str], starts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact ones on more than a few samples, and those that ask for workers."""
    begun: list[Any] = []

    def connected(options: Any) -> Any:
        begun.append(options)
        return nullcontext()

    monkeypatch.setattr(connecting, "connected", connected)
    monkeypatch.setattr("dhsk.commands.cv.SMALL", small)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((20, 3)))
    (tmp_path / "y.txt").write_text("a\nb\n" * 10)
    samples, labels = str(tmp_path / "x.npy"), str(tmp_path / "y.txt")
    grid = ["--time-scale", "1", "--C", "1", "--folds", "2", "--out", str(tmp_path / "o")]
    with pytest.raises(SystemExit) as ended:
        main(["cv", samples, "--labels", labels, *grid, *words])
    assert ended.value.code == 0
    assert bool(begun) is starts
