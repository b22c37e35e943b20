"""Many small tasks on dask.distributed: on which client, how many at a time, one BLAS thread."""

import logging
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, TypeVar

from distributed import Client, KilledWorker, Worker, WorkerPlugin, default_client, get_worker, wait
from threadpoolctl import threadpool_limits

from dhsk.errors import BudgetError, DhskError, StoreError
from dhsk.files import FULL, refusal_of
from dhsk.gram.limits import core_count, memory_limit
from dhsk.gram.local import thread_client
from dhsk.gram.plan import CLIENT_BYTES, Resources

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


@contextmanager
def borrow_client(client: Client | None) -> Iterator[Client]:
    """Give a client to compute with, BLAS held to one thread on all its workers meanwhile.

    Parameters
    ----------
    client
        Used if given; else the current one of `distributed`; else a cluster of threads in this
        process, started for the occasion and closed afterwards.

    Yields
    ------
    Client
        The client.
    """
    found = client or current_client()
    if found is not None:
        with _one_blas_thread(found):
            yield found
        return
    with thread_client(core_count()) as own, _one_blas_thread(own):
        yield own


def current_client() -> Client | None:
    """Client that `distributed` takes by default, if there is one."""
    try:
        return default_client()
    except ValueError:  # distributed's way to say that there is none
        return None


def in_task() -> bool:
    """Whether this code runs in a task of a Dask worker."""
    try:
        get_worker()
    except ValueError:  # distributed's way to say no
        return False
    return True


class _OneBlasThread(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """One pool of threads at a time: tasks fill the cores, so BLAS inside a task gets one.

    It also makes tiles reproducible: products may differ in the last bit with the thread count.
    """

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        self.limits = threadpool_limits(limits=1)

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        self.limits.restore_original_limits()


@contextmanager
def _one_blas_thread(client: Client) -> Iterator[None]:
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


def resources_of(client: Client, memory: int | None = None) -> Resources:
    """Count the workers of a client, and the memory they may use.

    Parameters
    ----------
    client
        Connected to a scheduler with at least one worker.
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
    client: Client,
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    window: int,
) -> Generator[Result, None, None]:
    """Run a function on many argument tuples, a bounded number of them in flight.

    Parameters
    ----------
    client
        Where to run.
    function
        Called as ``function(*task)`` on a worker.
    tasks
        Argument tuples, taken only as room appears.
    window
        Greatest number of tasks that the scheduler knows at a time.

    Yields
    ------
    Result
        What each call returns, in the order in which they finish.

    Raises
    ------
    BudgetError
        Workers died of it, or the disk is full.
    StoreError
        A worker could not read or write the store.
    """
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
        return future.result()
    except CancelledError as error:
        raise DhskError(LOST_SCHEDULER) from error
    except KilledWorker as error:
        raise BudgetError(
            "workers were killed again and again by one task, most likely for want of memory: "
            f"give more memory, fewer workers or a smaller tile ({error})"
        ) from error
    except OSError as error:
        if error.errno in FULL:
            raise refusal_of(error) from error
        raise StoreError(f"a worker cannot use the store: {error}") from error
