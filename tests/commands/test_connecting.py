"""The cluster of a command."""

import logging
from contextlib import nullcontext
from pathlib import Path
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

    client = SimpleNamespace(close=close)
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
