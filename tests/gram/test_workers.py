"""Tasks on a cluster: a bounded window, one BLAS thread, errors in words."""

import errno
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_info

import dhsk
from dhsk.gram import workers
from dhsk.gram.workers import borrow_client, resources_of, run_tasks

pytestmark = pytest.mark.threads


def test_all_results_arrive(client: Any) -> None:
    """Every task runs once."""
    squares = run_tasks(client, lambda k: k * k, ((k,) for k in range(50)), window=4)
    assert sorted(squares) == [k * k for k in range(50)]


def test_no_tasks_no_results(client: Any) -> None:
    """Nothing to do is done at once."""
    assert list(run_tasks(client, abs, iter(()), window=4)) == []


def test_window_bounds_the_tasks_in_flight(client: Any) -> None:
    """Tasks are taken from their source only as others finish; those wait to be handed out."""
    taken = 0

    def source() -> Iterator[tuple[float]]:
        nonlocal taken
        for _ in range(40):
            taken += 1
            yield (0.001,)

    for done, _ in enumerate(run_tasks(client, time.sleep, source(), window=5), start=1):
        assert taken <= done + 2 * 5
    assert taken == 40


def test_stopping_early_cancels_the_rest(client: Any) -> None:
    """A caller that loses interest leaves no tasks behind."""
    results = run_tasks(client, time.sleep, ((0.01,) for _ in range(100)), window=10)
    next(results)
    results.close()
    for _ in range(100):
        if not client.futures:
            break
        time.sleep(0.02)
    assert not client.futures


def test_a_cluster_that_lost_its_workers_is_an_error(monkeypatch: Any) -> None:
    """The computation does not wait for ever for workers that are gone."""
    monkeypatch.setattr(workers, "PATIENCE_SECONDS", 0.5)
    with (
        LocalCluster(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        results = run_tasks(client, time.sleep, ((0.01 if k < 3 else 2,) for k in range(9)), 4)
        assert [next(results) for _ in range(3)] == [None] * 3
        cluster.scale(0)
        with pytest.raises(dhsk.DhskError, match="no workers left"):
            list(results)


def fail(code: int) -> None:
    """Raise the error of the operating system with this number."""
    raise OSError(code, "made up")


def test_full_disk_is_a_budget_error(client: Any) -> None:
    """No space left is told apart from other trouble, and says that tiles are kept."""
    with pytest.raises(dhsk.BudgetError, match=r"disk is full: .*what is finished is kept"):
        list(run_tasks(client, fail, [(errno.ENOSPC,)], window=1))


def test_unusable_store_is_a_store_error(client: Any) -> None:
    """Any other trouble with files names itself."""
    with pytest.raises(dhsk.StoreError, match=r"cannot use the store: .*made up"):
        list(run_tasks(client, fail, [(errno.EACCES,)], window=1))


def blas_threads() -> set[int]:
    """Threads of the BLAS libraries of this process."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_while_tasks_run(client: Any) -> None:
    """One pool of threads at a time, and the old setting comes back."""
    before = blas_threads()
    with borrow_client(client) as borrowed:
        assert borrowed.submit(blas_threads, pure=False).result() == {1}
    assert blas_threads() == before


def test_without_a_client_one_is_made_and_ended() -> None:
    """The fallback runs in this process and leaves nothing behind."""
    with borrow_client(None) as own:
        assert own.submit(abs, -3).result() == 3
        assert resources_of(own).workers == 0
        connections = psutil.Process().net_connections(kind="tcp")
        hosts = {c.laddr.ip for c in connections if c.status == psutil.CONN_LISTEN}
        assert hosts == {"127.0.0.1"}
    assert own.status == "closed"


def test_resources_count_workers_and_memory(client: Any) -> None:
    """Threads of this process need no worker processes; a limit given wins."""
    found = resources_of(client, 123)
    assert (found.workers, found.threads, found.memory) == (0, 2, 123)


def test_an_answer_that_was_replaced_is_asked_for_again(client: Any, monkeypatch: Any) -> None:
    """Distributed's own periodic call empties it between the answer and its reading."""
    whole = client.scheduler_info
    answers = [{"workers": {}}]
    monkeypatch.setattr(
        client, "scheduler_info", lambda **k: answers.pop() if answers else whole(**k)
    )
    assert resources_of(client).threads > 0
    assert not answers
