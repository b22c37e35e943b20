"""Tasks on the workers of a Dask client, with one BLAS thread each."""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from threading import Lock
from time import monotonic, sleep
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from distributed import Client, Worker, WorkerPlugin, default_client, get_worker, rejoin, secede
from distributed import TimeoutError as LateError
from distributed.worker import thread_state

from dhsk.errors import ClusterError, InputError
from dhsk.execution.alike import alike_workers
from dhsk.execution.health import workers_of
from dhsk.execution.in_flight import OURS, Flights
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import CLIENT_BYTES, TASKS_PER_THREAD, Resources
from dhsk.execution.settings import large_graphs, one_blas_thread
from dhsk.execution.shared import SharedValue, forget_copies, prefix_of
from dhsk.execution.tasks import Executor, Result
from dhsk.execution.threads import Task, Threads, current_slot

USABLE_SHARE = 0.8
"""Share of its memory limit at which a Dask worker stops taking tasks."""

LIMITING_SECONDS = 10.0
"""Most time to wait until all workers have limited BLAS: one that is stopped does not answer."""

REACH = 8
"""Windows of tasks that begin before the earliest one has ended, where results are in order."""

ENDING_SECONDS = 2.0
"""Most time to wait until they have lifted the limit."""


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a worker's log record is more than the failure or cancellation of a task of dhsk.

    The task's error is raised where its result is read; the log would repeat its traceback.
    """
    said = record.getMessage()
    return OURS not in said or not said.startswith(("Compute Failed", "Async instruction"))


for _name in ("distributed.worker", "distributed.worker.state_machine"):
    logging.getLogger(_name).addFilter(_is_news)


_chosen: ContextVar[tuple[Client | None] | None] = ContextVar("dhsk_client", default=None)
"""Client of the call in progress in a tuple, (None,) for threads; None outside of calls."""


@contextmanager
def computing(client: Client | None = None) -> Iterator[Client | None]:
    """Fix where a call and all that it calls compute, with one BLAS thread everywhere.

    Yields the given client, else the current one of `distributed`, but not within a Dask task,
    else None for threads of this process.
    """
    with one_blas_thread(), borrow_client(client) as found:
        token = _chosen.set((found,))
        try:
            yield found
        finally:
            _chosen.reset(token)


@contextmanager
def borrow_client(client: Client | None) -> Iterator[Client | None]:
    """Yield a client as `computing` chooses it, with one BLAS thread on all of its workers.

    Raises InputError if the client was connected before this process was forked.
    """
    if client is not None and client in _inherited:
        raise InputError(
            "client is connected in the process that this one was forked from, not in this one: "
            "connect here, or omit client to compute on threads"
        )
    found = client or current_client()
    if found is None:
        yield None
        return
    with _out_of_pool(), alike_workers(found), _one_blas_thread_on(found):
        yield found


def current_client() -> Client | None:
    """Client of the call in progress, else the default one of `distributed`.

    A Dask task has no default client: if all tasks waited for others of their own workers, they
    would wait forever.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen[0]
    if in_task():
        return None
    try:
        found = default_client()
    except ValueError:  # there is none
        return None
    return None if found in _inherited else found


_inherited: WeakSet[Any] = WeakSet()
"""Clients and workers from before this process was forked: their threads are not in it."""


def _inherit() -> None:
    _chosen.set(None)
    _limited.lock = Lock()
    _inherited.update(Client._instances)
    _inherited.update(Worker._instances)


os.register_at_fork(after_in_child=_inherit)


def in_task() -> bool:
    """Whether this code runs in a task, of a Dask worker or on threads of this process."""
    return current_slot() is not None or _in_dask_task()


def _in_dask_task() -> bool:
    try:
        return get_worker() not in _inherited
    except ValueError:  # there is none
        return False


def leave_slot() -> None:
    """Let the next task start, as from here on this one only waits for the disk."""
    slot = current_slot()
    if slot is not None:
        slot.leave()
    elif _in_dask_task():
        secede()


@contextmanager
def _out_of_pool() -> Iterator[None]:
    """Free the thread of a Dask task for the tasks that it waits for."""
    if not (_in_dask_task() and hasattr(thread_state, "start_time")):
        yield  # not a task, or a thread that a task has started
        return
    try:
        secede()
    except KeyError:  # it has already left the pool
        yield
        return
    try:
        yield
    finally:
        rejoin()


class _OneBlasThreadPlugin(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """Holds `one_blas_thread` on a worker; at the end drops the values of the client."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.acquire()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.release()
        forget_copies(self._prefix)


class _Limited:
    """Clients whose workers are limited, with the numbers of contexts that need it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users: WeakKeyDictionary[Client, int] = WeakKeyDictionary()


_limited = _Limited()


@contextmanager
def _one_blas_thread_on(client: Client) -> Iterator[None]:
    """Limit the workers, those that join later too; within another such context, do nothing."""
    _count_users(client, 1)
    try:
        yield
    finally:
        _count_users(client, -1)


def _count_users(client: Client, more: int) -> None:
    """Add or remove a user of the limit; the first one begins it, the last one ends it."""
    with _limited.lock:
        users = _limited.users.get(client, 0)
        _limited.users[client] = users + more
        name = f"dhsk-one-blas-thread-{client.id}"
        if users == 0:
            _limit_workers(client, name)
        elif users + more == 0:
            # If the cluster has ended, so have its limits, and another error says so.
            with suppress(OSError, LateError, AttributeError):
                client.sync(
                    client._unregister_worker_plugin, name=name, callback_timeout=ENDING_SECONDS
                )


def _limit_workers(client: Client, name: str) -> None:
    """Limit all workers; not waiting for one that is stopped, which later tasks find."""
    deadline = monotonic() + LIMITING_SECONDS
    while monotonic() < deadline:
        try:
            client.sync(
                client._register_worker_plugin,
                plugin=_OneBlasThreadPlugin(prefix_of(client)),
                name=name,
                idempotent=False,
                callback_timeout=LIMITING_SECONDS,
            )
        except LateError:
            return
        except OSError:  # a worker has just ended
            sleep(1.0)
        else:
            return


def resources_of(client: Client | None, memory: int | None = None) -> Resources:
    """Workers of a client, or threads of this process without one, and the memory of both.

    `memory` limits the bytes of the whole process tree; by default it is what the workers and this
    machine have. Raises ClusterError if the cluster has no workers.
    """
    if client is None:
        return Resources(0, core_count(), memory or memory_limit())
    workers = workers_of(client).values()
    if not workers:
        raise ClusterError(f"the cluster at {client.scheduler.address} has no workers: start some")
    threads = sum(worker["nthreads"] for worker in workers)
    if client.scheduler.address.startswith("inproc"):
        return Resources(0, threads, memory or memory_limit())
    limits = sum(worker["memory_limit"] or memory_limit() for worker in workers)
    usable = int(USABLE_SHARE * limits) + CLIENT_BYTES
    if "://127.0.0.1:" in client.scheduler.address:  # they share this machine with the client
        usable = min(usable, memory_limit())
    return Resources(len(workers), threads, min(memory or usable, usable))


class Workers:
    """Executor of the workers of a Dask client, with at most `window` unfinished tasks."""

    def __init__(self, client: Client, window: int) -> None:
        self._client = client
        self._window = window

    def run(
        self, function: Callable[..., Result], tasks: Iterable[Task], *, ordered: bool = False
    ) -> Generator[Result, None, None]:
        """Run tasks; see `Executor.run`."""
        numbered = enumerate(tasks)
        # Values travel with the tasks, at most a window of them.
        finished = self._finished(function, numbered, ordered=ordered)
        with large_graphs(), closing(finished) as results:
            yield from _in_order(results) if ordered else (result for _, result in results)

    def share(self, value: Any) -> Any:
        """Have the scheduler give a value to each worker that needs it, once."""
        return SharedValue(self._client, value)

    def _finished(
        self,
        function: Callable[..., Result],
        tasks: Iterator[tuple[int, Task]],
        *,
        ordered: bool,
    ) -> Generator[tuple[int, Result], None, None]:
        """Numbers and results of tasks as they end."""
        flights = Flights(self._client, function)
        following = 0

        def fill() -> None:
            nonlocal following
            free = self._window - flights.count
            if ordered:  # later results are in memory until the earliest task has ended
                free = min(free, flights.earliest(following) + REACH * self._window - following)
            for number, task in islice(tasks, max(0, free)):
                flights.submit(number, task)
                following = number + 1

        try:
            fill()
            while flights.count:
                ended = flights.ended()
                fill()
                for flight, future in ended:
                    for result in flights.result(flight, future):
                        yield flight.number, result
        finally:
            flights.close()


def _in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Results in the order of their numbers, so that sums do not depend on timing."""
    early: dict[int, Result] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def executor_of(client: Client | None, window: int) -> Executor:
    """Executor of a client, or of threads of this process, with `window` tasks in flight."""
    if client is not None:
        return Workers(client, window)
    return Threads(max(1, min(window, core_count())), window)


@contextmanager
def current_executor() -> Iterator[Executor]:
    """Executor for passes: workers of the current client, or threads of this process.

    Within a task passes run one after the other: tasks do not wait for tasks. BLAS has one thread
    everywhere, so that all executors give the same bits.
    """
    if in_task():
        yield Threads(1)
        return
    with one_blas_thread():
        if current_client() is None:
            yield Threads(core_count())
            return
        with borrow_client(None) as client:
            assert client is not None
            yield Workers(client, TASKS_PER_THREAD * resources_of(client).threads)
