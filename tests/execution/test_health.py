"""When a worker counts as one that computes."""

from typing import Any

import dask
import pytest

from dhsk.errors import InputError
from dhsk.execution import health

HERE, THERE = "tls://127.0.0.1:4711", "tls://10.0.0.7:4711"


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty processes on two cores of this machine."""
    monkeypatch.setattr(health.psutil, "getloadavg", lambda: (20.0, 9.0, 1.0))
    monkeypatch.setattr(health, "core_count", lambda: 2)


@pytest.mark.usefixtures("crowd")
def test_a_crowd_is_that_of_the_own_machine() -> None:
    """Nothing is known of others."""
    assert health.crowding(HERE) == 10.0
    assert health.crowding("tcp://[::1]:4711") == 10.0
    assert health.crowding(THERE) == 1.0


def test_few_processes_are_no_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than one for each core is none."""
    monkeypatch.setattr(health.psutil, "getloadavg", lambda: (0.1, 0.1, 0.1))
    assert health.crowding(HERE) == 1.0


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize(("address", "idle"), [(HERE, 0.0), (THERE, 5.0)])
def test_a_worker_that_waits_for_a_core_is_no_idle_one(
    address: str, idle: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its 5 % of a core are those of an idle one only where nobody else wants the cores."""
    now, seen = [0.0], [0.0]
    monkeypatch.setattr(health, "monotonic", lambda: now[0])

    def workers(_: Any) -> dict[str, Any]:
        return {address: {"last_seen": seen[0], "metrics": {"cpu": 5.0}}}

    monkeypatch.setattr(health, "workers_of", workers)
    watch, client = health.Watch(), object()
    watch.look(client)  # type: ignore[arg-type]  # only workers_of sees it
    now[0] = seen[0] = 5.0
    watch.look(client)  # type: ignore[arg-type]
    assert watch.idleness(address) == idle


@pytest.mark.parametrize("given", ["5min", "", "soon"])
def test_a_time_that_dask_cannot_read_says_what_to_write(given: str) -> None:
    """Dask's own error names neither the setting nor the way out."""
    with (
        dask.config.set({"dhsk.progress-timeout": given}),
        pytest.raises(InputError, match=r"dhsk.progress-timeout .* give a time such as 90s or 5m"),
    ):
        health.progress_timeout()
