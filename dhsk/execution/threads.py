"""Tasks on threads of this process."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, TypeVar

from dhsk.execution.settings import one_blas_thread

Result = TypeVar("Result")
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


def as_finished(
    function: Callable[..., Result], tasks: Iterable[Task], threads: int, window: int
) -> Generator[Result, None, None]:
    """Run tasks on threads, BLAS on one thread each.

    Parameters
    ----------
    function
        Called as ``function(*task)``.
    tasks
        Argument tuples, taken only as room appears.
    threads
        Tasks at a time, beside those that have left their slot.
    window
        Most tasks that are taken and not finished.

    Yields
    ------
    Result
        What each call returns, in the order in which they finish.
    """
    slots, finished, waiting = Semaphore(threads), SimpleQueue[Future[Result]](), iter(tasks)
    with one_blas_thread(), ThreadPoolExecutor(2 * threads) as pool:  # twice: some only wait

        def submit(count: int) -> int:
            taken = 0
            for task in islice(waiting, count):
                _submit(pool, slots, function, task).add_done_callback(finished.put)
                taken += 1
            return taken

        try:
            running = submit(window)
            while running:
                ended = [finished.get()]
                running += submit(1) - 1
                yield ended.pop().result()
        finally:
            pool.shutdown(cancel_futures=True)


def in_turn(
    function: Callable[..., Result], tasks: Iterable[Task], threads: int
) -> Generator[Result, None, None]:
    """Run tasks on threads, BLAS on one thread each; results come in the order of the tasks.

    Parameters
    ----------
    function
        Called as ``function(*task)``.
    tasks
        Argument tuples: one more than there are threads is taken ahead of the results.
    threads
        Tasks at a time.

    Yields
    ------
    Result
        What each call returns.
    """
    slots = Semaphore(threads)
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Result]] = deque()
        try:
            for task in tasks:
                running.append(_submit(pool, slots, function, task))
                del task
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _submit(
    pool: ThreadPoolExecutor, slots: Semaphore, function: Callable[..., Result], task: Task
) -> Future[Result]:
    """Run a task in the context of the caller, so that it knows where passes are to run."""
    return pool.submit(copy_context().run, _run, _Slot(slots), function, task)


def _run(slot: _Slot, function: Callable[..., Result], task: Task) -> Result:
    _slot.set(slot)
    with slot:
        return function(*task)
