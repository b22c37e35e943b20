"""Tasks on the workers of a Dask client, with one BLAS thread each."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from dhsk import systems
from dhsk.errors import ClusterError, InputError
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import CLIENT_BYTES, TASKS_PER_THREAD, Resources
from dhsk.execution.settings import large_graphs, one_blas_thread
from dhsk.execution.tasks import Executor, Result
from dhsk.execution.threads import Task, Threads, current_slot
from dhsk.execution.upstream import (
    in_dask_task,
    inherited,
    is_distributed_loaded,
    out_of_pool,
)

if TYPE_CHECKING:
    from distributed import Client, Worker

    from dhsk.execution.plugins import Plugin

USABLE_SHARE = 0.8
"""Share of its memory limit at which a Dask worker stops taking tasks."""

SHARED_BYTES = 100_000_000
"""Pages of libraries that workers share, which Dask counts in each: one that has loaded all has 223
to 239 MB by its count, and a paused one that has nothing to give up waits for ever."""

REACH = 8
"""Windows of tasks that begin before the earliest one has ended, where results are in order."""

_chosen: ContextVar["tuple[Client | ArrayJob | None] | None"] = ContextVar(
    "dhsk_client", default=None
)
"""Client of the call in progress in a tuple, (None,) for threads; None outside of calls."""


@contextmanager
def computing(client: "Client | ArrayJob | None" = None) -> "Iterator[Client | ArrayJob | None]":
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
def borrow_client(client: "Client | ArrayJob | None") -> "Iterator[Client | ArrayJob | None]":
    """Yield a client as `computing` chooses it, with one BLAS thread on all of its workers.

    Raises InputError if it is no client, or was connected before this process was forked.
    """
    if client is not None and not isinstance(client, ArrayJob):
        _check(client)
    found = client or current_client()
    if found is None or isinstance(found, ArrayJob):
        yield found
        return
    from dhsk.execution.version_check import checked_versions

    with out_of_pool(), checked_versions(found), _one_blas_thread_on(found):
        yield found


def _check(client: "Client") -> None:
    from distributed import Client

    if not isinstance(client, Client):
        raise InputError(
            "client must be a dask.distributed.Client, such as dhsk.connect() gives, got "
            f"{type(client).__name__}: of a cluster or an address, give Client(...) of it"
        )
    if client in inherited:
        raise InputError(
            "client is connected in the process that this one was forked from, not in this one: "
            "connect here, or omit client to compute on threads"
        )


def current_client() -> "Client | ArrayJob | None":
    """Client of the call in progress, else the default one of `distributed`.

    A Dask task has no default client: if all tasks waited for others of their own workers, they
    would wait forever.
    """
    chosen = _chosen.get()
    if chosen is not None:
        return chosen[0]
    if in_task() or not is_distributed_loaded():
        return None
    from distributed import default_client

    try:
        found = default_client()
    except ValueError:  # there is none
        return None
    return None if found in inherited else found


systems.at_fork(after_in_child=lambda: _chosen.set(None))


def in_task() -> bool:
    """Whether this code runs in a task, of a Dask worker or on threads of this process."""
    return current_slot() is not None or in_dask_task()


def leave_slot() -> None:
    """Let the next task start, as from here on this one only waits for the disk."""
    slot = current_slot()
    if slot is not None:
        slot.leave()
    elif in_dask_task():
        from distributed import secede

        secede()


@contextmanager
def _one_blas_thread_on(client: "Client") -> Iterator[None]:
    """Limit BLAS on the workers, which at the end drop the values that they share, too.

    The first of such contexts also has the scheduler keep no more messages than it needs.
    """
    from dhsk.execution.plugins import Plugin, cut_messages, registered
    from dhsk.execution.shared import prefix_of

    def limit() -> "Plugin":
        cut_messages(client)
        return Plugin(_limit, partial(_lift, prefix_of(client)))

    with registered(client, "one-blas-thread", limit):
        yield


async def _limit(worker: "Worker") -> None:  # noqa: ARG001
    one_blas_thread.acquire()


def _lift(prefix: str) -> None:
    from dhsk.execution.shared import forget_copies

    one_blas_thread.release()
    forget_copies(prefix)


def resources_of(client: "Client | ArrayJob | None", memory: int | None = None) -> Resources:
    """Workers of a client, or threads of this process without one, and the memory of both.

    `memory` limits the bytes of the whole process tree; by default it is what the workers and this
    machine have. Raises ClusterError if the cluster has no workers.
    """
    if client is None or isinstance(client, ArrayJob):
        return Resources(0, core_count(), memory or memory_limit())
    from dhsk.execution.health import workers_of

    workers = workers_of(client).values()
    if not workers:
        raise ClusterError(f"the cluster at {client.scheduler.address} has no workers: start some")
    threads = sum(worker["nthreads"] for worker in workers)
    if client.scheduler.address.startswith("inproc"):
        return Resources(0, threads, memory or memory_limit())
    limits = [worker["memory_limit"] for worker in workers]
    own = sum(USABLE_SHARE * (limit or memory_limit()) for limit in limits)
    usable = int(own) - SHARED_BYTES * sum(map(bool, limits)) + CLIENT_BYTES
    if "://127.0.0.1:" in client.scheduler.address:  # they share this machine with the client
        usable = min(usable, memory_limit())
    return Resources(len(workers), threads, min(memory or usable, usable))


class Workers:
    """Executor of the workers of a Dask client, with at most `window` unfinished tasks."""

    def __init__(self, client: "Client", window: int) -> None:
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
        from dhsk.execution.shared import SharedValue

        return SharedValue(self._client, value)

    def _finished(
        self,
        function: Callable[..., Result],
        tasks: Iterator[tuple[int, Task]],
        *,
        ordered: bool,
    ) -> Generator[tuple[int, Result], None, None]:
        """Numbers and results of tasks as they end."""
        from dhsk.execution.in_flight import SubmittedTasks

        submitted = SubmittedTasks(self._client, function)
        following = 0

        def fill() -> None:
            nonlocal following
            free = self._window - submitted.count
            if ordered:  # later results are in memory until the earliest task has ended
                free = min(free, submitted.earliest(following) + REACH * self._window - following)
            for number, task in islice(tasks, max(0, free)):
                submitted.submit(number, task)
                following = number + 1

        try:
            fill()
            while submitted.count:
                ended = submitted.ended()
                fill()
                for done, future in ended:
                    for result in submitted.result(done, future):
                        yield done.number, result
        finally:
            submitted.close()


def _in_order(results: Iterable[tuple[int, Result]]) -> Iterator[Result]:
    """Results in the order of their numbers, so that sums do not depend on timing."""
    early: dict[int, Result] = {}
    following = 0
    for number, result in results:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def executor_of(client: "Client | ArrayJob | None", window: int) -> Executor:
    """Executor of a client, or of threads of this process, with `window` tasks in flight."""
    if isinstance(client, ArrayJob):
        return client.executor(window)
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
            yield executor_of(client, TASKS_PER_THREAD * resources_of(client).threads)
