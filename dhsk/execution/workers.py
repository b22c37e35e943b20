"""Many small tasks on dask.distributed: on which client, how many at a time, one BLAS thread."""

import logging
import os
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import Any, TypeVar
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

from dhsk.errors import BudgetError, DhskError, InputError, StoreError
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import CLIENT_BYTES, Resources
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import as_finished, current_slot
from dhsk.files import FULL, refusal_of

Result = TypeVar("Result")

USABLE_SHARE = 0.8
"""Part of its memory limit at which a Dask worker stops taking tasks."""

PATIENCE_SECONDS = 60.0
"""How long to wait for any task before looking whether there are workers at all."""

LOST_SCHEDULER = (
    "the connection to the scheduler is lost: finished tiles are kept, run the same command again"
)

_OURS = "-dhsk-"
"""In the keys of our tasks."""


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a worker in this process logs more than that a task of ours failed or was cancelled.

    Its error comes back with its result, and is raised; the traceback would stand before it.
    """
    said = record.getMessage()
    return _OURS not in said or not said.startswith(("Compute Failed", "Async instruction"))


for _name in ("distributed.worker", "distributed.worker.state_machine"):
    logging.getLogger(_name).addFilter(_is_news)


@contextmanager
def full_disk_is_budget() -> Iterator[None]:
    """Turn what the system says of a full disk into a `BudgetError`.

    Raises
    ------
    BudgetError
        There was no room, or the quota is used up.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise refusal_of(error) from error


_chosen: ContextVar[tuple[Client | None] | None] = ContextVar("dhsk_client", default=None)
"""The client, or threads, that the call in progress computes on; None outside of calls."""


@contextmanager
def computing(client: Client | None = None) -> Iterator[Client | None]:
    """Settle where a call computes, for everything that it calls, BLAS on one thread meanwhile.

    Parameters
    ----------
    client
        Used if given; else the current one of `distributed`, but not within a Dask task; else
        threads of this process.

    Yields
    ------
    Client or None
        The client; None for threads of this process.
    """
    with one_blas_thread(), borrow_client(client) as found:
        token = _chosen.set((found,))
        try:
            yield found
        finally:
            _chosen.reset(token)


@contextmanager
def borrow_client(client: Client | None) -> Iterator[Client | None]:
    """Give a client to compute with, BLAS held to one thread on all its workers meanwhile.

    Parameters
    ----------
    client
        As for `computing`.

    Yields
    ------
    Client or None
        The client; None for threads of this process.

    Raises
    ------
    InputError
        The client is that of the process that this one was forked from.
    """
    if client is not None and client in _inherited:
        raise InputError(
            "client is connected in the process that this one was forked from, not in this one: "
            "connect here, or leave out client to compute on threads"
        )
    found = client or current_client()
    if found is None:
        yield None
        return
    with _out_of_pool(), _one_blas_thread_on(found):
        yield found


def current_client() -> Client | None:
    """Client that passes run on: that of the call in progress, else the one that is the default.

    A task of a Dask worker has no default: tasks that wait for other tasks of their own workers
    would wait for ever once they all do.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen[0]
    if in_task():
        return None
    try:
        found = default_client()
    except ValueError:  # distributed's way to say that there is none
        return None
    return None if found in _inherited else found


_inherited: WeakSet[Any] = WeakSet()
"""Clients and workers of the process that this one was forked from: their threads are not here."""


def _inherit() -> None:
    _chosen.set(None)
    _inherited.update(Client._instances)
    _inherited.update(Worker._instances)


os.register_at_fork(after_in_child=_inherit)


def in_task() -> bool:
    """Whether this code runs in a task: of a Dask worker, or on threads of this process."""
    return current_slot() is not None or _in_dask_task()


def _in_dask_task() -> bool:
    try:
        return get_worker() not in _inherited
    except ValueError:  # distributed's way to say no
        return False


def leave_slot() -> None:
    """Let the next task start, as this one only waits for the disk from here on."""
    slot = current_slot()
    if slot is not None:
        slot.leave()
    elif _in_dask_task():
        secede()


@contextmanager
def _out_of_pool() -> Iterator[None]:
    """Make room, in a task of a Dask worker, for the tasks that it is going to wait for."""
    if not (_in_dask_task() and hasattr(thread_state, "start_time")):
        yield  # not a task, or another thread that a task has started
        return
    try:
        secede()
    except KeyError:  # it has left the pool before
        yield
        return
    try:
        yield
    finally:
        rejoin()


class _OneBlasThread(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """Holds `one_blas_thread` on a worker."""

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.acquire()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        one_blas_thread.release()


@contextmanager
def _one_blas_thread_on(client: Client) -> Iterator[None]:
    name = f"dhsk-one-blas-thread-{uuid.uuid4().hex}"
    client.register_plugin(_OneBlasThread(), name=name)
    try:
        yield
    finally:
        # Where the cluster is gone, so are its limits; the error that matters is on its way.
        with suppress(OSError):
            client.unregister_worker_plugin(name)


def workers_of(client: Client) -> dict[str, Any]:
    """What the scheduler knows of each worker, by address.

    Parameters
    ----------
    client
        Connected to a scheduler.
    """
    # Distributed's own periodic call, which asks for no workers, may replace the answer before it
    # is read: none is asked for again.
    found = client.scheduler_info(n_workers=-1)["workers"]
    return dict(found or client.scheduler_info(n_workers=-1)["workers"])


def resources_of(client: Client | None, memory: int | None = None) -> Resources:
    """Count the workers of a client, and the memory they may use.

    Parameters
    ----------
    client
        Connected to a scheduler with at least one worker; None for threads of this process.
    memory
        Bytes for the whole process tree; None takes what the workers and this machine have.

    Returns
    -------
    Resources
        Workers, threads, memory.

    Raises
    ------
    DhskError
        There is no worker.
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
    if "://127.0.0.1:" in client.scheduler.address:  # all of them share this machine with us
        usable = min(usable, memory_limit())
    return Resources(len(workers), threads, min(memory or usable, usable))


def run_tasks(
    client: Client | None,
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    window: int,
) -> Generator[Result, None, None]:
    """Run a function on many argument tuples, a bounded number of them in flight.

    Parameters
    ----------
    client
        Where to run; None for threads of this process.
    function
        Called as ``function(*task)``.
    tasks
        Argument tuples, taken only as room appears.
    window
        Greatest number of tasks that were taken and have not ended.

    Yields
    ------
    Result
        What each call returns, in the order in which they finish.

    Raises
    ------
    BudgetError
        Workers died of it, or the disk is full.
    StoreError
        A task could not read or write the store.
    """
    if client is None:
        threads = max(1, min(window, core_count()))
        with closing(as_finished(partial(_named, function), tasks, threads, window)) as results:
            yield from results
        return
    waiting = iter(tasks)

    def submit(count: int) -> set[Any]:
        named = ((f"{function.__name__}{_OURS}{uuid.uuid4().hex}", task) for task in waiting)
        return {
            client.submit(function, *task, key=key, pure=False, retries=1)
            for key, task in islice(named, count)
        }

    running = submit(window)
    try:
        while running:
            finished = _wait_for_some(client, running)
            running -= finished
            running |= submit(len(finished))
            for future in finished:
                yield _result(future)
    finally:
        with suppress(OSError):
            client.cancel(list(running))


def _wait_for_some(client: Client, running: set[Any]) -> set[Any]:
    """Wait until a task has ended; not for ever on a cluster without workers."""
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
        with _file_errors():
            return future.result()
    except CancelledError as error:
        raise DhskError(LOST_SCHEDULER) from error
    except KilledWorker as error:
        raise BudgetError(
            "workers were killed again and again by one task, most likely for want of memory: "
            f"give more memory, fewer workers or a smaller tile ({error})"
        ) from error


def _named(function: Callable[..., Result], *task: Any) -> Result:
    """Call a function; errors of the system say what they are about."""
    with _file_errors():
        return function(*task)


@contextmanager
def _file_errors() -> Iterator[None]:
    """Say what of a task's files could not be used."""
    try:
        with full_disk_is_budget():
            yield
    except OSError as error:
        raise StoreError(f"a worker cannot use the store: {error}") from error
