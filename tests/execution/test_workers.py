"""Tasks on a cluster: a bounded window, one BLAS thread, errors in words."""

import asyncio
import errno
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info

import dhsk
from dhsk.execution import in_flight, workers
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import CLIENT_BYTES, Resources
from dhsk.execution.workers import (
    SHARED_BYTES,
    USABLE_SHARE,
    borrow_client,
    computing,
    executor_of,
    in_task,
    leave_slot,
    resources_of,
)

pytestmark = pytest.mark.threads


def test_all_results_arrive(client: Any) -> None:
    """Every task runs once."""
    squares = executor_of(client, 4).run(lambda k: k * k, ((k,) for k in range(50)))
    assert sorted(squares) == [k * k for k in range(50)]


def test_no_tasks_no_results(client: Any) -> None:
    """Nothing to do is done at once."""
    assert list(executor_of(client, 4).run(abs, iter(()))) == []


def test_window_bounds_the_tasks_in_flight(client: Any) -> None:
    """Tasks are taken from their source only as others finish; those wait to be handed out."""
    taken = 0

    def source() -> Iterator[tuple[float]]:
        nonlocal taken
        for _ in range(40):
            taken += 1
            yield (0.001,)

    for done, _ in enumerate(executor_of(client, 5).run(time.sleep, source()), start=1):
        assert taken <= done + 2 * 5
    assert taken == 40


def fall_asleep(number: int) -> int:
    """Take the longer the earlier the task."""
    time.sleep(0.02 * (4 - number % 5))
    return number


@pytest.mark.parametrize("on_threads", [True, False])
def test_results_come_in_order_if_asked(client: Any, on_threads: bool) -> None:
    """However long each takes; without being asked, one that is finished is not waited for."""
    executor = executor_of(None if on_threads else client, 5)
    tasks = [(number,) for number in range(20)]
    assert list(executor.run(fall_asleep, tasks, ordered=True)) == list(range(20))
    assert list(executor.run(time.sleep, iter(()), ordered=True)) == []
    found = list(executor.run(fall_asleep, tasks))
    assert sorted(found) == list(range(20))
    assert found != sorted(found)


def fall_asleep_at_first(number: int) -> int:
    """Take a second for the first task."""
    time.sleep(1.0 if number == 0 else 0.0)
    return number


@pytest.mark.slow
def test_results_that_wait_for_an_earlier_one_are_bounded(client: Any) -> None:
    """In order they are in memory; not all tasks run while the first one is stuck."""
    taken = []

    def source() -> Iterator[tuple[int]]:
        for number in range(200):
            taken.append(number)
            yield (number,)

    results = executor_of(client, 4).run(fall_asleep_at_first, source(), ordered=True)
    assert next(results) == 0
    assert len(taken) <= (workers.REACH + 1) * 4
    assert list(results) == list(range(1, 200))


def test_what_is_shared_reaches_tasks(client: Any) -> None:
    """As it is on threads; a tuple is not taken apart on its way to workers."""
    value = (1, 2)
    assert executor_of(None, 2).share(value) is value
    executor = executor_of(client, 2)
    assert list(executor.run(len, [(executor.share(value),)] * 2)) == [2, 2]


def test_dask_does_not_warn_of_large_tasks(client: Any) -> None:
    """Tasks have rows of samples among their arguments; the warning was for graphs of a user."""
    rows = np.ones((1500, 1000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(executor_of(client, 1).run(len, [(rows,)])) == [1500]


def test_stopping_early_cancels_the_rest(client: Any) -> None:
    """A caller that loses interest leaves no tasks behind."""
    results = executor_of(client, 10).run(time.sleep, ((0.01,) for _ in range(100)))
    next(results)
    results.close()
    for _ in range(100):
        if not client.futures:
            break
        time.sleep(0.02)
    assert not client.futures


@pytest.mark.slow
def test_a_cluster_that_lost_its_workers_is_an_error(monkeypatch: Any) -> None:
    """The computation does not wait for ever for workers that are gone."""
    monkeypatch.setattr(in_flight, "PATIENCE_SECONDS", 0.5)
    with (
        LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        results = executor_of(client, 4).run(
            time.sleep, ((0.01 if k < 3 else 2,) for k in range(9))
        )
        assert [next(results) for _ in range(3)] == [None] * 3
        cluster.scale(0)
        with pytest.raises(dhsk.DhskError, match="no workers left"):
            list(results)


@pytest.mark.slow
def test_a_result_that_is_lost_with_the_last_worker_is_an_error(monkeypatch: Any) -> None:
    """It had ended, and was on its way here."""

    async def lose(*_: Any) -> None:
        cluster.scale(0)
        await asyncio.sleep(60)

    monkeypatch.setattr(in_flight, "PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(in_flight, "fetched", lose)
    with (
        dask.config.set({"dhsk.progress-timeout": "1s"}),
        LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(dhsk.ClusterError, match="no workers left, with pow in work"),
    ):
        list(executor_of(client, 1).run(pow, [(2, 5)]))


def fail(code: int) -> None:
    """Raise the error of the operating system with this number."""
    raise OSError(code, "made up")


def test_full_disk_is_a_budget_error(client: Any) -> None:
    """No space left is told apart from other trouble, and says that tiles are kept."""
    with pytest.raises(dhsk.BudgetError, match=r"disk is full: .*what is finished is kept"):
        list(executor_of(client, 1).run(fail, [(errno.ENOSPC,)]))


def test_unusable_store_is_a_store_error(client: Any) -> None:
    """Any other trouble with files names itself."""
    with pytest.raises(dhsk.StoreError, match=r"cannot use the store: .*made up"):
        list(executor_of(client, 1).run(fail, [(errno.EACCES,)]))


def blas_threads() -> set[int]:
    """Threads of the BLAS libraries of this process."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.threads
def test_blas_has_one_thread_while_tasks_run(client: Any) -> None:
    """One pool of threads at a time, and the old setting comes back."""
    before = blas_threads()
    with borrow_client(client) as borrowed:
        assert borrowed is client
        assert client.submit(blas_threads, pure=False).result() == {1}
    assert blas_threads() == before


@pytest.mark.threads
def test_without_a_client_tasks_run_on_threads_here() -> None:
    """No scheduler is started, nothing listens, and no thread is left behind."""
    before, threads = blas_threads(), set(threading.enumerate())
    with computing() as nowhere_else:
        assert nowhere_else is None
        assert resources_of(nowhere_else) == Resources(0, core_count(), memory_limit())
        found = list(executor_of(nowhere_else, 2).run(blas_threads, ((),) * 3))
        assert found == [{1}] * 3
        connections = psutil.Process().net_connections(kind="tcp")
        assert psutil.CONN_LISTEN not in {c.status for c in connections}
    assert blas_threads() == before
    assert set(threading.enumerate()) <= threads


def test_threads_run_tasks_as_workers_do() -> None:
    """All results arrive, tasks are taken as others finish, and errors are in the same words."""
    taken = 0

    def source() -> Iterator[tuple[int]]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield (number,)

    found = []
    for done, result in enumerate(executor_of(None, 5).run(abs, source()), start=1):
        assert taken <= done + 5
        found.append(result)
    assert sorted(found) == list(range(40))
    with pytest.raises(dhsk.BudgetError, match=r"disk is full: .*what is finished is kept"):
        list(executor_of(None, 1).run(fail, [(errno.ENOSPC,)]))
    with pytest.raises(dhsk.StoreError, match=r"cannot use the store: .*made up"):
        list(executor_of(None, 1).run(fail, [(errno.EACCES,)]))


def test_an_error_on_a_thread_ends_the_others() -> None:
    """Tasks that wait are not begun, those that run are waited for: none writes on afterwards."""
    begun: list[int] = []

    def task(number: int) -> None:
        begun.append(number)
        time.sleep(0.02)
        if number == 0:
            raise ValueError("made up")

    with pytest.raises(ValueError, match="made up"):
        list(executor_of(None, 50).run(task, ((k,) for k in range(100))))
    count = len(begun)
    assert count < 50
    time.sleep(0.1)
    assert len(begun) == count


def test_a_task_that_only_waits_lets_the_next_one_start() -> None:
    """More tasks are in progress than run at a time, as on workers that they secede from."""
    cores = core_count()
    together = threading.Barrier(cores + 1, timeout=20)

    def task() -> None:
        leave_slot()
        together.wait()

    assert list(executor_of(None, cores + 1).run(task, ((),) * (cores + 1))) == [None] * (cores + 1)


def test_tasks_on_threads_know_that_they_are_tasks() -> None:
    """Passes within them are not spread again. A lone task runs in the calling thread."""
    assert not in_task()
    assert list(executor_of(None, 2).run(in_task, [(), ()])) == [True, True]
    assert not in_task()


@pytest.mark.parametrize("other", [5, "tcp://127.0.0.1:8786", object()])
def test_what_is_no_client_is_refused(other: Any) -> None:
    """An address or a cluster given as the client ends in words that say what to give."""
    with pytest.raises(dhsk.InputError, match=r"must be a dask\.distributed\.Client.*Client\("):
        dhsk.compute_gram(np.eye(3), "cosine", client=other)


def test_resources_count_workers_and_memory(client: Any) -> None:
    """Threads of this process need no worker processes; a limit given wins."""
    found = resources_of(client, 123)
    assert (found.workers, found.threads, found.memory) == (0, 2, 123)


def test_a_worker_that_would_be_paused_is_refused() -> None:
    """Dask counts pages that workers share in each, and a paused one waits for ever."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="264MiB", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        usable = USABLE_SHARE * 264 * 2**20 - SHARED_BYTES + CLIENT_BYTES
        assert resources_of(client).memory == int(usable)
        with pytest.raises(dhsk.BudgetError, match="give more memory"):
            dhsk.compute_gram(np.eye(300), "cosine", client=client)


def test_workers_are_asked_of_the_scheduler(client: Any, monkeypatch: Any) -> None:
    """Not of what the client remembers, which its own periodic call replaces by nothing."""
    monkeypatch.setattr(client, "scheduler_info", lambda **_: {"workers": {}})
    assert resources_of(client).threads > 0
