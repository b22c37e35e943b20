"""Tasks on threads of this process.

Rejected: a Dask cluster in this process. It becomes the default client of other threads, forked
children inherit its event loop, which does not run there, and tasks of an outer worker wait for
threads that they fill.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Semaphore
from typing import Any

from dhsk import systems
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Result, call

Task = tuple[Any, ...]


class _Slot:
    """A running task's place; a context that the task may leave early."""

    def __init__(self, slots: Semaphore) -> None:
        self._slots = slots
        self._held = False

    def __enter__(self) -> None:
        self._slots.acquire()
        self._held = True

    def __exit__(self, *error: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Let the next task start."""
        if self._held:
            self._held = False
            self._slots.release()


_slot: ContextVar[_Slot | None] = ContextVar("dhsk_slot", default=None)

systems.at_fork(after_in_child=lambda: _slot.set(None))  # the task stays in the parent


def current_slot() -> _Slot | None:
    """Slot of the task that this code runs in; None outside of tasks on threads."""
    return _slot.get()


class Threads:
    """Executor of threads in this process, with one BLAS thread each.

    A single task, or one at a time, runs in the calling thread, which leaves all cores to BLAS and
    to passes within the task.

    Parameters
    ----------
    threads
        Tasks at a time, besides those that have left their slot.
    window
        Most tasks in flight: taken, with results not yet read. None for one more than threads, as
        tasks may hold their data, and for one if there is one thread.
    """

    def __init__(self, threads: int, window: int | None = None) -> None:
        self._threads = threads
        self._window = window or (threads + 1 if threads > 1 else 1)

    def run(
        self, function: Callable[..., Result], tasks: Iterable[Task], *, ordered: bool = False
    ) -> Generator[Result, None, None]:
        """Run tasks; see `Executor.run`."""
        waiting = iter(tasks)
        first = list(islice(waiting, min(self._window, 2)))
        spread = len(first) > 1
        waiting = _chained(first, waiting)
        if spread:
            yield from self._spread(function, waiting, ordered)
        else:
            yield from (call(function, *task) for task in waiting)

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def _spread(
        self, function: Callable[..., Result], waiting: Iterator[Task], ordered: bool
    ) -> Generator[Result, None, None]:
        slots, following = Semaphore(self._threads), SimpleQueue[Future[Result]]()
        running = 0
        # Twice as many threads as slots: some only wait for the disk.
        with one_blas_thread(), ThreadPoolExecutor(2 * self._threads) as pool:
            try:
                while True:
                    for task in islice(waiting, self._window - running):
                        future = _submit(pool, slots, function, task)
                        if ordered:
                            following.put(future)
                        else:
                            future.add_done_callback(following.put)
                        running += 1
                        del task, future  # as they hold the task's data
                    if not running:
                        return
                    running -= 1
                    yield following.get().result()
            finally:
                pool.shutdown(cancel_futures=True)


def _chained(first: list[Task], rest: Iterator[Task]) -> Iterator[Task]:
    """Chain both; unlike `itertools.chain`, keep no item of the list after its turn."""
    while first:
        yield first.pop(0)
    yield from rest


def _submit(
    pool: ThreadPoolExecutor, slots: Semaphore, function: Callable[..., Result], task: Task
) -> Future[Result]:
    """Run a task in the caller's context, which says where its passes run."""
    return pool.submit(copy_context().run, _run, _Slot(slots), function, task)


def _run(slot: _Slot, function: Callable[..., Result], task: Task) -> Result:
    _slot.set(slot)
    with slot:
        return call(function, *task)
