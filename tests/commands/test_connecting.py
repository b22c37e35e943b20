"""The cluster of a command."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

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
