"""Tasks on the workers of a Dask client, with one BLAS thread each."""

import logging
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from typing import Any
from weakref import WeakSet

from distributed import (
    Client,
    KilledWorker,
    Worker,
    WorkerPlugin,
    default_client,
    get_worker,
    rejoin,
    secede,
    wait,
)
from distributed.worker import thread_state

from dhsk.errors import BudgetError, DhskError, InputError
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import CLIENT_BYTES, TASKS_PER_THREAD, Resources
from dhsk.execution.settings import large_graphs, one_blas_thread
from dhsk.execution.tasks import Executor, Result, file_errors
from dhsk.execution.threads import Task, Threads, current_slot

USABLE_SHARE = 0.8
"""Share of its memory limit at which a Dask worker stops taking tasks."""

PATIENCE_SECONDS = 60.0
"""Time without a finished task after which to check that there are workers."""

LOST_SCHEDULER = (
    "the connection to the scheduler is lost: finished tiles are kept, run the same command again"
)

_OURS = "-dhsk-"
"""Part of the key of each of dhsk's tasks."""


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a worker's log record is more than the failure or cancellation of a task of dhsk.

    The task's error is raised where its result is read; the log would repeat its traceback.
    """
    said = record.getMessage()
    return _OURS not in said or not said.startswith(("Compute Failed", "Async instruction"))


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
    with _out_of_pool(), _one_blas_thread_on(found):
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
    """Holds `one_blas_thread` on a worker."""

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.acquire()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.release()


@contextmanager
def _one_blas_thread_on(client: Client) -> Iterator[None]:
    name = f"dhsk-one-blas-thread-{uuid.uuid4().hex}"
    client.register_plugin(_OneBlasThreadPlugin(), name=name)
    try:
        yield
    finally:
        # If the cluster has ended, so have its limits, and another error says so.
        with suppress(OSError):
            client.unregister_worker_plugin(name)


def workers_of(client: Client) -> dict[str, Any]:
    """The scheduler's information on each worker, by address."""
    # Distributed's own periodic call, which asks for no workers, may replace the answer before it
    # is read: an empty one is asked for again.
    found = client.scheduler_info(n_workers=-1)["workers"]
    return dict(found or client.scheduler_info(n_workers=-1)["workers"])


def resources_of(client: Client | None, memory: int | None = None) -> Resources:
    """Workers of a client, or threads of this process without one, and the memory of both.

    `memory` limits the bytes of the whole process tree; by default it is what the workers and this
    machine have. Raises DhskError if the cluster has no workers.
    """
    if client is None:
        return Resources(0, core_count(), memory or memory_limit())
    workers = workers_of(client).values()
    if not workers:
        raise DhskError(f"the cluster at {client.scheduler.address} has no workers: start some")
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
        with closing(self._finished(function, enumerate(tasks))) as results:
            yield from _in_order(results) if ordered else (result for _, result in results)

    def share(self, value: Any) -> Any:
        """Send a value to each worker once."""
        # In a list, as scatter takes a tuple apart.
        return self._client.scatter([value], broadcast=True, hash=False)[0]

    def _finished(
        self, function: Callable[..., Result], tasks: Iterator[tuple[int, Task]]
    ) -> Generator[tuple[int, Result], None, None]:
        """Numbers and results of tasks as they end."""
        running: dict[Any, int] = {}

        def submit(count: int) -> None:
            for number, task in islice(tasks, count):
                key = f"{function.__name__}{_OURS}{uuid.uuid4().hex}"
                future = self._client.submit(function, *task, key=key, pure=False, retries=1)
                running[future] = number

        try:
            submit(self._window)
            while running:
                ended = _wait_for_some(self._client, set(running))
                numbers = {future: running.pop(future) for future in ended}
                submit(len(numbers))
                for future, number in numbers.items():
                    yield number, _result(future)
        finally:
            with suppress(OSError):
                self._client.cancel(list(running))


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
        # Values travel with the tasks, at most a window of them.
        with borrow_client(None) as client, large_graphs():
            assert client is not None
            yield Workers(client, TASKS_PER_THREAD * resources_of(client).threads)


def _wait_for_some(client: Client, running: set[Any]) -> set[Any]:
    """Wait until a task has ended, as long as the cluster has workers."""
    while True:
        try:
            with client.as_current():  # `wait` asks the current client, whichever it was given
                some = wait(running, timeout=PATIENCE_SECONDS, return_when="FIRST_COMPLETED")
            return set(some.done)
        except TimeoutError as error:
            if not workers_of(client):
                raise DhskError(
                    "the cluster has no workers left: finished tiles are kept, start workers and "
                    "run the same command again"
                ) from error
        except CancelledError as error:
            raise DhskError(LOST_SCHEDULER) from error


def _result(future: Any) -> Any:
    try:
        with file_errors():
            return future.result()
    except CancelledError as error:
        raise DhskError(LOST_SCHEDULER) from error
    except KilledWorker as error:
        raise BudgetError(
            "a task killed its workers, most likely for lack of memory: give more memory, "
            f"fewer workers or a smaller tile ({error})"
        ) from error
