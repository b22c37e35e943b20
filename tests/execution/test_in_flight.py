"""Workers that are stopped, killed, added and removed while tasks run on them."""

import os
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dask
import psutil
import pytest
from distributed import Client, LocalCluster

import dhsk
from dhsk.execution import health
from dhsk.execution.in_flight import SubmittedTasks
from dhsk.execution.tasks import told_as
from dhsk.execution.workers import Workers, borrow_client

pytestmark = pytest.mark.slow


@contextmanager
def two_workers() -> Iterator[Any]:
    """Two worker processes, on which tasks may make no progress for four seconds.

    A machine at its limit may keep both from running for half as long.
    """
    settings = {"dhsk.progress-timeout": "4s", "distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as started,
    ):
        yield started


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Workers of a test that adds or kills some."""
    with two_workers() as started:
        yield started


@pytest.fixture(scope="module")
def lasting() -> Iterator[Any]:
    """Workers of all tests that at most stop them for a while."""
    with two_workers() as started:
        yield started


@pytest.fixture
def client(lasting: Any) -> Iterator[Client]:
    """A client of these, to which no worker is known yet."""
    with Client(lasting, set_as_default=False) as connected:
        yield connected


@pytest.fixture
def own(cluster: Any) -> Iterator[Client]:
    """Client of a test's own workers."""
    with Client(cluster, set_as_default=False) as connected:
        yield connected


@told_as(lambda number, _: f"number {number}", lambda *_: 5 << 30)
def double_slowly(number: int, seconds: float) -> int:
    """Twice a number, after a while."""
    time.sleep(seconds)
    return 2 * number


@told_as(lambda number, _: f"number {number}")
def compute(number: int, seconds: float) -> int:
    """Twice a number, after work."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return 2 * number


@told_as(lambda number: f"number {number}", lambda _: 5 << 30)
def die_at_three(number: int) -> int:
    """Kill the worker, as a kernel that runs out of memory does."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def processes_of(client: Client) -> dict[str, psutil.Process]:
    """Process of each worker, by address."""
    return {address: psutil.Process(pid) for address, pid in client.run(os.getpid).items()}


def test_tasks_of_a_stopped_worker_are_given_to_another(client: Client) -> None:
    """All results arrive, once each; one line says which worker held what."""
    (address, process), *_ = processes_of(client).items()
    found, n = [], 40
    with warnings.catch_warnings(record=True) as said, borrow_client(client):
        warnings.simplefilter("always")
        try:
            tasks = ((number, 0.05) for number in range(n))
            for result in Workers(client, 4).run(double_slowly, tasks):
                found.append(result)
                if len(found) == 8:
                    process.suspend()
            assert sorted(found) == [2 * number for number in range(n)]
            # The next run leaves the worker out from the beginning.
            begin = time.monotonic()
            tasks = ((number, 0.01) for number in range(n))
            assert len(list(Workers(client, 4).run(double_slowly, tasks))) == n
            assert time.monotonic() - begin < 2
        finally:
            process.resume()
    ours = [str(one.message) for one in said if one.category is dhsk.ClusterWarning]
    assert len(ours) == 1, ours
    assert f"worker {address} has not been heard of for" in ours[0]
    assert "and it holds number " in ours[0]


def test_a_worker_that_is_heard_of_again_gets_tasks_again(client: Client) -> None:
    """It was suspended, not lost."""
    (address, process), *_ = processes_of(client).items()
    workers = Workers(client, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dhsk.ClusterWarning)
        for number, _ in enumerate(workers.run(double_slowly, [(k, 0.02) for k in range(20)])):
            if number == 3:
                process.suspend()
    watch = health.watch_of(client)
    assert watch.avoided == {address}
    process.resume()
    deadline = time.monotonic() + 20
    while watch.avoided:
        assert time.monotonic() < deadline
        list(workers.run(double_slowly, [(k, 0.5) for k in range(4)]))


def test_no_worker_left_is_an_error_in_words(client: Client) -> None:
    """Within a few times the timeout, with each worker and what it holds."""
    processes = processes_of(client)
    results = Workers(client, 4).run(double_slowly, ((number, 0.05) for number in range(40)))
    next(results)
    for process in processes.values():
        process.suspend()
    begin = time.monotonic()
    try:
        with pytest.raises(dhsk.ClusterError, match=r"no worker makes progress: worker ") as found:
            list(results)
    finally:
        for process in processes.values():
            process.resume()
    assert time.monotonic() - begin < 20
    assert any(f"worker {address} has not been heard" in str(found.value) for address in processes)
    assert "holds number " in str(found.value)


def test_a_task_that_computes_for_long_is_left_alone(client: Client, monkeypatch: Any) -> None:
    """However long beyond the timeout: the worker is at work, and there is one copy."""
    sent = []
    whole = SubmittedTasks._send

    def send(self: Any, task: Any, *rest: Any, **more: Any) -> None:
        sent.append(task.number)
        whole(self, task, *rest, **more)

    monkeypatch.setattr(SubmittedTasks, "_send", send)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dhsk.ClusterWarning)
        found = list(Workers(client, 4).run(compute, [(0, 0.01), (1, 10.0), (2, 0.01)]))
    assert sorted(found) == [0, 2, 4]
    assert sent == [0, 1, 2]


def test_a_poison_task_gives_up_and_names_itself(own: Client) -> None:
    """After a stated number of workers, with the memory that it needs and that there is."""
    # On a machine at its limit a worker that starts keeps the other from running for seconds.
    patient = dask.config.set({"dhsk.progress-timeout": "20s"})
    with patient, pytest.raises(dhsk.BudgetError) as found:
        list(Workers(own, 2).run(die_at_three, ((number,) for number in range(6))))
    assert "the task of number 3, which needs about 5.00 GiB, killed 2 workers" in str(found.value)
    assert "each has " in str(found.value)


def test_ending_early_does_not_wait_for_a_stopped_worker(client: Client) -> None:
    """Neither for its task, nor for its limit of BLAS threads."""
    (process, *_) = processes_of(client).values()
    begin = time.monotonic()
    try:
        with borrow_client(client):
            results = Workers(client, 4).run(double_slowly, ((k, 0.05) for k in range(40)))
            next(results)
            process.suspend()
            begin = time.monotonic()
            results.close()
    finally:
        taken = time.monotonic() - begin
        process.resume()
    assert taken < 5


def test_workers_join_and_leave(cluster: Any, own: Client) -> None:
    """New ones take part, also in what was shared before; those that leave lose nothing."""
    # LocalCluster ends the workers that it scales away as if they had been killed: a task may be
    # on two of them in turn, and Dask's own limit is three.
    cluster.scheduler.allowed_failures = 3
    workers = Workers(own, 6)
    used: set[str] = set()
    given: list[int] = []
    deadline = time.monotonic() + 60

    def tasks() -> Iterator[tuple[Any, int]]:
        while len(used) < 3 and time.monotonic() < deadline:
            given.append(len(given))
            yield shared, given[-1]
        cluster.scale(1)
        for _ in range(20):
            given.append(len(given))
            yield shared, given[-1]

    with borrow_client(own):
        shared = workers.share(0.1)
        found = []
        for number, address in workers.run(place_slowly, tasks()):
            found.append(number)
            used.add(address)
            if len(found) == 8:
                cluster.scale(3)
    assert sorted(found) == given
    assert len(used) >= 3


def place_slowly(seconds: float, number: int) -> tuple[int, str]:
    """The number and the worker."""
    from distributed import get_worker

    time.sleep(seconds)
    return number, get_worker().address
