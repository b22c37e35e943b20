"""Values that many tasks share: from the scheduler, once a worker, and not for ever."""

import gc
import time
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster, get_worker

from dhsk.execution import shared
from dhsk.execution.workers import Workers, borrow_client


@pytest.fixture(scope="module")
def processes() -> Any:
    """Two workers in processes of their own."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def on_scheduler(client: Client) -> set[str]:
    """Names of the values on the scheduler."""
    names = client.run_on_scheduler(
        lambda dask_scheduler: [*dask_scheduler.extensions["variables"].variables]
    )
    return {name for name in names if name.startswith("dhsk-")}


def where_and_sum(values: Any, number: int) -> tuple[str, float]:
    """Worker, and the sum of an array."""
    time.sleep(0.01)
    return get_worker().address, float(values.sum()) + number


def copies() -> int:
    """Number of values in this process."""
    from dhsk.execution import shared

    return len(shared._copies._values)


@pytest.mark.slow
def test_every_worker_gets_the_value_without_asking_another(processes: Client) -> None:
    """No data is moved between workers: none of them has a key of the value."""
    workers = Workers(processes, 4)
    with borrow_client(processes):
        value = workers.share(np.arange(100_000.0))
        found = list(workers.run(where_and_sum, [(value, number) for number in range(20)]))
        assert len({address for address, _ in found}) == 2
        assert sorted(total for _, total in found) == [4999950000.0 + k for k in range(20)]
        moved = processes.run(lambda dask_worker: len(dask_worker.transfer_incoming_log))
        assert set(moved.values()) == {0}


@pytest.mark.slow
def test_values_end_with_their_object(processes: Client) -> None:
    """On the scheduler at once, on a worker with its next task that has a shared value."""
    workers = Workers(processes, 4)
    with borrow_client(processes):
        for _ in range(3):
            value = workers.share(np.ones(1000))
            assert len(list(workers.run(where_and_sum, [(value, 0)] * 8))) == 8
        assert set(processes.run(copies).values()) <= {0, 1}
        assert set(processes.run(copies).values()) >= {1}
        del value
        gc.collect()
        deadline = time.monotonic() + 10
        while on_scheduler(processes):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert set(processes.run(copies).values()) == {0}


def test_a_value_that_does_not_come_is_an_error(client: Any, monkeypatch: Any) -> None:
    """Not a wait for ever."""
    monkeypatch.setattr(shared, "FETCH_SECONDS", 0.2)
    workers = Workers(client, 2)
    value = workers.share(np.ones(3))
    client._send_to_scheduler({"op": "variable_delete", "name": value.name})
    deadline = time.monotonic() + 10
    while on_scheduler(client):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with pytest.raises(shared.ClusterError, match="gets no answer from the scheduler"):
        list(workers.run(where_and_sum, [(value, 0)]))
