"""Where the tasks of a fit run: threads of this process, or the workers of a Dask client."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import psutil
from distributed import Client

from dhsk.execution.limits import memory_limit
from dhsk.execution.tasks import Run
from dhsk.execution.threads import in_turn
from dhsk.execution.workers import run_tasks

USABLE_MEMORY = 0.5
"""Part of the free memory that matrices may take where no limit is given."""


def share_memory(memory: int, largest: int, threads: int) -> tuple[int, int]:
    """Divide memory among tasks: fewer at a time if then each has its whole matrix.

    Parameters
    ----------
    memory
        Bytes for all matrices together.
    largest
        Bytes of the largest matrix.
    threads
        Tasks that could run at a time.

    Returns
    -------
    int
        Tasks at a time.
    int
        Bytes for each.
    """
    at_once = max(1, min(threads, memory // max(1, largest)))
    return at_once, memory // at_once


def own_room(memory: int | None) -> int:
    """Bytes that this process may still take.

    Parameters
    ----------
    memory
        Most bytes that it may hold; None for half of what is free besides what it holds now.
    """
    held = int(psutil.Process().memory_info().rss)
    if memory is None:
        free = min(psutil.virtual_memory().available, memory_limit() - held)
        return max(0, int(USABLE_MEMORY * free))
    return max(0, memory - held)


def in_threads(at_once: int) -> Run:
    """Run tasks on threads of this process, BLAS on one thread each if there are several.

    Parameters
    ----------
    at_once
        Tasks at a time; one is run in the calling thread. No more than one besides these is
        asked for before it is needed: tasks may hold what they work on.

    Returns
    -------
    Run
        The runner.
    """

    def run(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        waiting = iter(tasks)
        first = list(islice(waiting, min(at_once, 2)))
        alone = len(first) < 2
        waiting = _chained(first, waiting)
        if alone:
            yield from (function(*task) for task in waiting)
            return
        with closing(in_turn(function, waiting, at_once)) as results:
            yield from results

    return run


def _chained(first: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
    """Both in a row; unlike `itertools.chain`, without keeping the list's items to the end."""
    while first:
        yield first.pop(0)
    yield from rest


def on_workers(client: Client | None, at_once: int) -> Run:
    """Run tasks on the workers of a Dask client, results as they finish.

    Parameters
    ----------
    client
        The client; None for threads of this process.
    at_once
        Tasks in flight.

    Returns
    -------
    Run
        The runner.
    """

    def run(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        with closing(run_tasks(client, function, tasks, at_once)) as results:
            yield from results

    return run
