"""Tasks on threads of this process."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Semaphore
from typing import Any

from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Result, call

Task = tuple[Any, ...]


class _Slot:
    """A task's place among those that run at a time; a context, left once."""

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

os.register_at_fork(after_in_child=lambda: _slot.set(None))  # the task stays in the parent


def current_slot() -> _Slot | None:
    """Place of the task that this code runs in; None outside of tasks on threads."""
    return _slot.get()


class Threads:
    """Executor of threads in this process, BLAS on one thread each.

    Where there is one task, or one at a time, it runs in the calling thread, which leaves BLAS and
    the passes within the task all cores.

    Parameters
    ----------
    threads
        Tasks at a time, besides those that have left their slot.
    window
        Most tasks in flight: taken, and their results not. None for one more than there are
        threads, as tasks may hold what they work on; for one thread, for one.
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
                        del task, future  # as they hold what the task works on
                    if not running:
                        return
                    running -= 1
                    yield following.get().result()
            finally:
                pool.shutdown(cancel_futures=True)


def _chained(first: list[Task], rest: Iterator[Task]) -> Iterator[Task]:
    """Both in a row; unlike `itertools.chain`, without keeping the list's items to the end."""
    while first:
        yield first.pop(0)
    yield from rest


def _submit(
    pool: ThreadPoolExecutor, slots: Semaphore, function: Callable[..., Result], task: Task
) -> Future[Result]:
    """Run a task in the context of the caller, so that it knows where passes are to run."""
    return pool.submit(copy_context().run, _run, _Slot(slots), function, task)


def _run(slot: _Slot, function: Callable[..., Result], task: Task) -> Result:
    _slot.set(slot)
    with slot:
        return call(function, *task)
