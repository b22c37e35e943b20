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
from warnings import warn

from distributed import Client, KilledWorker, as_completed

from dhsk.errors import BudgetError, ClusterError, ClusterWarning
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
class _Flight:
    """A task, with the futures of its copies."""

    number: int
    task: tuple[Any, ...]
    submitted: float
    begun: float
    """When the last copy was made, or the task was last seen to wait for its turn."""
    futures: list[Any] = field(default_factory=list)
    fetching: Any = None
    """Future of the result that is on its way here."""


class Flights:
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
        self._watch = watch_of(client)
        self._running: dict[Any, _Flight] = {}
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
        return min((flight.number for flight in self._running.values()), default=following)

    def submit(self, number: int, task: tuple[Any, ...]) -> None:
        """Send a task to the workers."""
        now = monotonic()
        flight = _Flight(number, task, now, now)
        answering = self._watch.answering() if self._watch.avoided else None
        self._send(flight, answering or None)

    def _send(self, flight: _Flight, workers: Iterable[str] | None, priority: int = 0) -> None:
        function, task = self._function, flight.task
        key = f"{function.__name__}{OURS}{uuid4().hex}"
        if has_shared(task):
            own = function, prefix_of(self._client), live_names(self._client)
            function, task = call_with_shared, (*own, *task)
        chosen = None if workers is None else sorted(workers)
        future = self._client.submit(
            function, *task, key=key, pure=False, retries=1, workers=chosen, priority=priority
        )
        flight.futures.append(future)
        self._running[future] = flight
        self._done.add(future)

    def ended(self) -> list[tuple[_Flight, Any]]:
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
        for flight, future in found.items():
            if waited:
                self._slowest = max(self._slowest, now - flight.submitted)
            self._land(flight, future)
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

    def _land(self, flight: _Flight, future: Any) -> None:
        """End the other copies of a finished task, and fetch its result."""
        for copy in flight.futures:
            self._running.pop(copy, None)
            if copy is not future:
                copy.release()
        if future.status != "error":
            flight.fetching = asyncio.run_coroutine_threadsafe(
                fetched(self._client, future, self._turn), self._client.loop.asyncio_loop
            )
            self._fetching.add(flight.fetching)

    def result(self, flight: _Flight, future: Any) -> Iterator[Any]:
        """The result of a finished task; nothing if its worker gives none: it is in flight again.

        Raises the task's error, in our words if it is about files.
        """
        if flight.fetching is None:
            self._raise(flight, future)
        try:
            while not wait([flight.fetching], self._beat).done:
                silent = self._silent_with(future)
                if silent:
                    flight.futures.clear()
                    flight.begun = flight.submitted = monotonic()
                    self._give({flight: silent}, silent, flight.begun)
                    return
            yield flight.fetching.result()
        except (CancelledError, OSError) as error:
            raise ClusterError(LOST_SCHEDULER) from error
        finally:
            self._fetching.discard(flight.fetching)
            flight.fetching.cancel()

    def _raise(self, flight: _Flight, future: Any) -> None:
        try:
            with file_errors():
                future.result()
        except KilledWorker as error:
            raise self._killed(flight, error) from error

    # Progress

    @property
    def _limit(self) -> float:
        return max(self._least, SLOWEST * self._slowest)

    def _check(self, now: float, *, idle: bool) -> None:
        """Look at the workers if there is reason to, and give tasks that are late to others."""
        self._looked = now
        oldest = min((flight.begun for flight in self._running.values()), default=inf)
        if not (idle or self._watch.avoided or now - oldest > self._limit / 2):
            return
        self._watch.look(self._client)
        if self._watch.empty_for > PATIENCE_SECONDS:
            raise ClusterError(
                f"the cluster has no workers left, with {self._held(set(self._running.values()))} "
                "in work: what is finished is kept, start workers and run the same command again"
            )
        if now - oldest > self._limit:
            self._hand_on(now)

    def _hand_on(self, now: float) -> None:
        """Give tasks without progress to other workers."""
        holders = self._holders()
        late = {f for f in self._running.values() if now - f.begun > self._limit}
        stuck = set[str]()
        for flight in late:
            places = holders.get(flight, set())
            if not places:
                flight.begun = now  # it waits for its turn, or for a worker
            stuck |= {place for place in places if self._is_stuck(place)}
        if not stuck:
            return
        # A worker that is stuck keeps all its tasks waiting, those that are not late too.
        self._give({f: held for f, held in holders.items() if held and held <= stuck}, stuck, now)

    def _give(self, lost: dict[_Flight, set[str]], stuck: set[str], now: float) -> None:
        """Give tasks to others than the workers that keep them; raise ClusterError without any."""
        others = {place for place in self._watch.answering() - stuck if not self._is_silent(place)}
        longest = now - min((flight.begun for flight in lost), default=now)
        said = {place: self._said(place, lost) for place in sorted(stuck)}
        if not others:
            if longest > ANSWERING * self._limit or all(map(self._is_silent, stuck)):
                raise ClusterError(
                    f"no worker makes progress: {'; '.join(said.values())}. What is finished is "
                    "kept: see to the workers, and run the same command again"
                )
            return
        for place in sorted(stuck - self._watch.avoided):
            warn(f"{said[place]}: other workers compute them", ClusterWarning, stacklevel=2)
        self._watch.avoided |= {place for place in stuck if self._is_silent(place)}
        for flight in lost:
            flight.begun = now
            self._send(flight, others, priority=1)

    def _holders(self) -> dict[_Flight, set[str]]:
        """Workers on which the copies of each task wait or run."""
        found: dict[_Flight, set[str]] = {}
        flights = {future.key: flight for future, flight in self._running.items()}
        processing = ask(self._client, self._client.scheduler.processing, workers=None)
        for place, keys in processing.items():
            for key in keys:
                if key in flights:
                    found.setdefault(flights[key], set()).add(place)
        return found

    def _is_silent(self, place: str) -> bool:
        return self._watch.silence(place) > self._least / 2

    def _is_stuck(self, place: str) -> bool:
        return self._is_silent(place) or self._watch.idleness(place) > self._least / 2

    def _said(self, place: str, lost: dict[_Flight, set[str]]) -> str:
        """What is wrong with a worker, and what it holds."""
        held = self._held({flight for flight, places in lost.items() if place in places})
        if self._is_silent(place):
            silence = self._watch.silence(place)
            return f"worker {place} has not been heard of for {silence:.0f} s, and it holds {held}"
        crowd = crowding(place)
        busy = f" (this machine is busy: {crowd:.0f} processes wait for each core)"
        return (
            f"worker {place} answers, but has computed nothing for "
            f"{self._watch.idleness(place):.0f} s{busy if crowd >= CROWDED else ''}, and it holds "
            f"{held}"
        )

    def _held(self, flights: set[_Flight]) -> str:
        """Tasks in words: the first, and the number of the others."""
        ordered = sorted(flights, key=lambda flight: flight.number)
        if not ordered:
            return "no task"
        first = words_of(self._function, ordered[0].task)
        return first if len(ordered) == 1 else f"{first} and {len(ordered) - 1} more"

    def _silent_with(self, future: Any) -> set[str]:
        """Workers that have a result, if all of them are silent."""
        self._watch.look(self._client)
        places = ask(self._client, self._client.scheduler.who_has, keys=[future.key])
        own = set(next(iter(places.values()), ()))
        return own if all(map(self._is_silent, own)) else set()

    def _killed(self, flight: _Flight, error: KilledWorker) -> BudgetError:
        needed = memory_of(self._function, flight.task)
        limit = error.last_worker.memory_limit
        words = words_of(self._function, flight.task)
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
