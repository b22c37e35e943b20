"""Tasks in flight on the workers of a client, with copies of those that make no progress."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from queue import Empty
from time import monotonic
from typing import Any, Final
from uuid import uuid4

from distributed import Client, KilledWorker, as_completed

from dhsk.devices import call_on_device, chosen_device
from dhsk.errors import BudgetError, ClusterError, ClusterWarning, warn
from dhsk.execution.health import (
    BEAT_SECONDS,
    LOST_SCHEDULER,
    ask,
    crowding,
    progress_timeout,
    watch_of,
)
from dhsk.execution.shared import call_with_shared, has_shared, live_names, prefix_of
from dhsk.execution.tasks import file_errors, memory_of, words_of
from dhsk.execution.upstream import OURS, fetched
from dhsk.units import format_bytes

PATIENCE_SECONDS: Final = 60.0
"""Time without any worker after which a run ends."""

CROWDED: Final = 2.0
"""Processes for each core from which on a worker that seems idle may only be waiting for one."""

SLOWEST: Final = 5
"""Multiple of the slowest finished task after which a task makes no progress, at least."""

ANSWERING: Final = 5
"""Multiple of that time after which a run also ends if its last workers answer, but do nothing."""

FETCHES: Final = 16
"""Results that are fetched at a time: each takes a few messages there and back, which may be slow,
and is in memory before its turn comes."""


@dataclass(eq=False)
class _Task:
    """A task, with the futures of its copies."""

    number: int
    arguments: tuple[Any, ...]
    submitted: float
    begun: float
    """When the last copy was made, or the task was last seen to wait for its turn."""
    futures: list[Any] = field(default_factory=list)
    fetching: Any = None
    """Future of the result that is on its way here."""


class SubmittedTasks:
    """Tasks of one run, in flight.

    A task that has taken `SLOWEST` times as long as the slowest finished one, and at least
    `progress_timeout`, is given to another worker if its own sends no heartbeats or computes
    nothing. Tasks may run twice: what they write is the same, and of two results the first counts.

    Measured on two local workers, with tasks of 1 ms: Dask's own `as_completed` with results takes
    as long, and neither loses a result when a worker is killed. When one was stopped, it had not
    ended after 100 s; this took 13 s in all, with a progress timeout of 10 s. Resources of workers
    bound what runs, not what was sent, and clusters of others have none.
    """

    def __init__(self, client: Client, function: Callable[..., Any]) -> None:
        self._client = client
        self._function = function
        self._device = chosen_device()
        self._watch = watch_of(client)
        self._running: dict[Any, _Task] = {}
        self._done = as_completed(loop=client.loop)
        self._fetching: set[Any] = set()
        self._turn = asyncio.Semaphore(FETCHES)
        self._slowest = 0.0
        self._least = progress_timeout()
        self._beat = min(BEAT_SECONDS, self._least / 4)
        self._looked = monotonic()

    @property
    def count(self) -> int:
        """Number of tasks in flight."""
        return len(set(self._running.values()))

    def earliest(self, following: int) -> int:
        """Number of the earliest task in flight, or the following one if there is none."""
        return min((task.number for task in self._running.values()), default=following)

    def submit(self, number: int, arguments: tuple[Any, ...]) -> None:
        """Send a task to the workers."""
        now = monotonic()
        task = _Task(number, arguments, now, now)
        answering = self._watch.answering() if self._watch.avoided else None
        self._send(task, answering or None)

    def _send(self, task: _Task, workers: Iterable[str] | None, priority: int = 0) -> None:
        function, arguments = self._function, task.arguments
        key = f"{function.__name__}{OURS}{uuid4().hex}"
        if has_shared(arguments):
            own = function, prefix_of(self._client), live_names(self._client)
            function, arguments = call_with_shared, (*own, *arguments)
        if self._device is not None:
            function, arguments = call_on_device, (self._device, function, *arguments)
        chosen = None if workers is None else sorted(workers)
        future = self._client.submit(
            function, *arguments, key=key, pure=False, retries=1, workers=chosen, priority=priority
        )
        task.futures.append(future)
        self._running[future] = task
        self._done.add(future)

    def ended(self) -> list[tuple[_Task, Any]]:
        """Wait until tasks have ended; return them with their first finished futures."""
        begin = monotonic()
        while True:
            done = self._wait()
            now = monotonic()
            if not done or now - self._looked >= self._beat:
                self._check(now, idle=not done)
            if done:
                break
        # Those that had ended before are not timed: this process may have been busy elsewhere.
        waited = now - begin > self._beat / 100
        found = {self._running[future]: future for future in done}
        for task, future in found.items():
            if waited:
                self._slowest = max(self._slowest, now - task.submitted)
            self._land(task, future)
        return list(found.items())

    def _wait(self) -> set[Any]:
        """Futures that have ended, after one beat at most."""
        done = set[Any]()
        with suppress(Empty):
            done.add(self._done.queue.get(timeout=self._beat))
            while True:
                done.add(self._done.queue.get_nowait())
        done &= self._running.keys()  # without copies of tasks that another one has ended
        if any(future.status == "cancelled" for future in done):
            raise ClusterError(LOST_SCHEDULER)
        return done

    def _land(self, task: _Task, future: Any) -> None:
        """End the other copies of a finished task, and fetch its result."""
        for copy in task.futures:
            self._running.pop(copy, None)
            if copy is not future:
                copy.release()
        if future.status != "error":
            task.fetching = asyncio.run_coroutine_threadsafe(
                fetched(self._client, future, self._turn), self._client.loop.asyncio_loop
            )
            self._fetching.add(task.fetching)

    def result(self, task: _Task, future: Any) -> Iterator[Any]:
        """The result of a finished task; nothing if its worker gives none: it is in flight again.

        Raises the task's error, in our words if it is about files.
        """
        if task.fetching is None:
            self._raise(task, future)
        try:
            while not wait([task.fetching], self._beat).done:
                self._look(task)
                silent = self._silent_with(future)
                if silent:
                    task.futures.clear()
                    task.begun = task.submitted = monotonic()
                    self._give({task: silent}, silent, task.begun)
                    return
            yield task.fetching.result()
        except (CancelledError, OSError) as error:
            raise ClusterError(LOST_SCHEDULER) from error
        finally:
            self._fetching.discard(task.fetching)
            task.fetching.cancel()

    def _raise(self, task: _Task, future: Any) -> None:
        try:
            with file_errors():
                future.result()
        except KilledWorker as error:
            raise self._killed(task, error) from error

    # Progress

    @property
    def _limit(self) -> float:
        return max(self._least, SLOWEST * self._slowest)

    def _check(self, now: float, *, idle: bool) -> None:
        """Look at the workers if there is reason to, and give tasks that are late to others."""
        self._looked = now
        oldest = min((task.begun for task in self._running.values()), default=inf)
        if not (idle or self._watch.avoided or now - oldest > self._limit / 2):
            return
        self._look()
        if now - oldest > self._limit:
            self._hand_on(now)

    def _look(self, *lost: _Task) -> None:
        """Look at the workers; raise ClusterError, which names lost tasks too, if none is left."""
        self._watch.look(self._client)
        if self._watch.empty_for > PATIENCE_SECONDS:
            held = self._held({*lost, *self._running.values()})
            raise ClusterError(
                f"the cluster has no workers left, with {held} in work: what is finished is kept, "
                "start workers and run the same command again"
            )

    def _hand_on(self, now: float) -> None:
        """Give tasks without progress to other workers."""
        holders = self._holders()
        late = {f for f in self._running.values() if now - f.begun > self._limit}
        stuck = set[str]()
        for task in late:
            addresses = holders.get(task, set())
            if not addresses:
                task.begun = now  # it waits for its turn, or for a worker
            stuck |= {address for address in addresses if self._is_stuck(address)}
        if not stuck:
            return
        # A worker that is stuck keeps all its tasks waiting, those that are not late too.
        self._give({f: held for f, held in holders.items() if held and held <= stuck}, stuck, now)

    def _give(self, lost: dict[_Task, set[str]], stuck: set[str], now: float) -> None:
        """Give tasks to others than the workers that keep them; raise ClusterError without any."""
        others = {
            address for address in self._watch.answering() - stuck if not self._is_silent(address)
        }
        longest = now - min((task.begun for task in lost), default=now)
        said = {address: self._said(address, lost) for address in sorted(stuck)}
        if not others:
            if longest > ANSWERING * self._limit or all(map(self._is_silent, stuck)):
                raise ClusterError(
                    f"no worker makes progress: {'; '.join(said.values())}. What is finished is "
                    "kept: see to the workers, and run the same command again"
                )
            return
        for address in sorted(stuck - self._watch.avoided):
            warn(f"{said[address]}: other workers compute them", ClusterWarning)
        self._watch.avoided |= {address for address in stuck if self._is_silent(address)}
        for task in lost:
            task.begun = now
            self._send(task, others, priority=1)

    def _holders(self) -> dict[_Task, set[str]]:
        """Workers on which the copies of each task wait or run."""
        found: dict[_Task, set[str]] = {}
        tasks = {future.key: task for future, task in self._running.items()}
        processing = ask(self._client, self._client.scheduler.processing, workers=None)
        for address, keys in processing.items():
            for key in keys:
                if key in tasks:
                    found.setdefault(tasks[key], set()).add(address)
        return found

    def _is_silent(self, address: str) -> bool:
        return self._watch.silence(address) > self._least / 2

    def _is_stuck(self, address: str) -> bool:
        return self._is_silent(address) or self._watch.idleness(address) > self._least / 2

    def _said(self, address: str, lost: dict[_Task, set[str]]) -> str:
        """What is wrong with a worker, and what it holds."""
        held = self._held({task for task, addresses in lost.items() if address in addresses})
        if self._is_silent(address):
            state = f"has not been heard of for {self._watch.silence(address):.0f} s"
        else:
            idleness, crowd = self._watch.idleness(address), crowding(address)
            busy = f" (this machine is busy: {crowd:.0f} processes wait for each core)"
            state = f"answers, but has computed nothing for {idleness:.0f} s"
            state += busy if crowd >= CROWDED else ""
        return f"worker {address} {state}, and it holds {held}"

    def _held(self, tasks: set[_Task]) -> str:
        """Tasks in words: the first, and the number of the others."""
        ordered = sorted(tasks, key=lambda task: task.number)
        if not ordered:
            return "no task"
        first = words_of(self._function, ordered[0].arguments)
        return first if len(ordered) == 1 else f"{first} and {len(ordered) - 1} more"

    def _silent_with(self, future: Any) -> set[str]:
        """Workers that have a result, if all of them are silent."""
        addresses = ask(self._client, self._client.scheduler.who_has, keys=[future.key])
        own = set(next(iter(addresses.values()), ()))
        return own if all(map(self._is_silent, own)) else set()

    def _killed(self, task: _Task, error: KilledWorker) -> BudgetError:
        needed = memory_of(self._function, task.arguments)
        limit = error.last_worker.memory_limit
        words = words_of(self._function, task.arguments)
        said = "" if needed is None else f", which needs about {format_bytes(needed)},"
        has = f"each has {format_bytes(limit)}" if limit else "they have no limit"
        tries = error.allowed_failures + 1
        return BudgetError(
            f"the task of {words}{said} killed {tries} worker{'s' if tries > 1 else ''}, most "
            f"likely for lack of memory: {has}. Give more memory, fewer workers or a smaller tile "
            f"(the last one was {error.last_worker.address})"
        )

    def close(self) -> None:
        """Cancel what is still in flight, without waiting for an answer."""
        for fetching in self._fetching:
            fetching.cancel()
        for future in list(self._running):
            future.release()
        self._running.clear()
