"""How far a whole run is: its parts, what they take, and how much of them is done."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from math import ceil, log
from typing import Final, TypeVar

from dhsk.clock import working_seconds
from dhsk.progress import OnProgress, Progress, ignore

Item = TypeVar("Item")

TRUST: Final = 0.02
"""Share of a part after which its measured time counts as much as the guess."""

FIRST_SECONDS: Final = 2.0
"""Seconds of a run before which nothing is said of those that are left."""


@dataclass
class _Part:
    """One part of a run."""

    guess: float
    """Guess of the seconds of a unit, in any unit of time that all parts share."""
    units: float = 1.0
    begun: float = 0.0
    """Finished units when the current use of the part began."""
    done: float = 0.0
    found: float = 0.0
    """Units that an earlier run had finished: they take no time now."""
    spent: float = 0.0
    """Seconds so far."""

    @property
    def timed(self) -> float:
        return max(0.0, self.done - self.found)

    def rate(self, scale: float) -> float:
        """Seconds of a unit: those measured, and at first those guessed."""
        trust = TRUST * max(self.units, 1e-9)
        return (self.spent + trust * scale * self.guess) / (self.timed + trust)


class RunProgress:
    """Reports each event of a run with how far all of it is, and the seconds that are left.

    A run is made of named parts. Events whose stage has the name of a part say how much of it is
    done; within `part` all events are of that one. Runs may be nested: of an event that tells how
    far its own run is, that counts.

    Time is estimated from what was measured in this run. Where nothing of a part is done yet its
    guess counts, scaled by how the guesses of the others turned out.

    Parameters
    ----------
    report
        Receives the events.
    **guesses
        Seconds that each part is guessed to take, or numbers in proportion.
    """

    def __init__(self, report: OnProgress = ignore, **guesses: float) -> None:
        self.report = report
        self.what = ""
        """What the run is doing, in words."""
        self.best: float | None = None
        """Highest mean score so far."""
        self._parts = {name.replace("_", " "): _Part(guess) for name, guess in guesses.items()}
        self._stack: list[tuple[_Part, float]] = []
        self._begin = self._ticked = working_seconds()
        self._share = 0.0
        self._last = Progress("", 0, 1)

    def __call__(self, event: Progress) -> None:
        """Report an event."""
        part = self._part_of(event)
        if part is not None:
            self._tick(part)
        self._tell(event)

    def expect(self, name: str, units: float, guess: float | None = None) -> None:
        """Expect a part to have a number of units in all, at least those that are done."""
        part = self._parts.setdefault(name, _Part(0.0, 0.0))
        part.units = max(units, part.done)
        part.guess = part.guess if guess is None else guess

    def units_of(self, name: str) -> float:
        """Units that a part is expected to have."""
        return self._parts[name].units if name in self._parts else 0.0

    def is_done(self, name: str) -> float:
        """Finished units of a part."""
        return self._parts[name].done if name in self._parts else 0.0

    @contextmanager
    def part(self, name: str, units: float = 0.0, *, span: float | None = None) -> Iterator[None]:
        """Within it all events are of one part, of which these units are then finished.

        An event tells how much of `span` units is done, by default of all `units`.
        """
        part = self._parts.setdefault(name, _Part(0.0, 0.0))
        self._tick(self._stack[-1][0] if self._stack else None)
        end, part.begun = part.done + units, part.done
        self._stack.append((part, units if span is None else span))
        try:
            yield
        finally:
            self._tick(part)
            self._stack.pop()
        part.begun = part.done = max(end, part.begun)
        part.units = max(part.units, part.done)

    def each(self, name: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield items, during each of which events are of an equal share of a part."""
        known = list(items)
        self.expect(name, len(known))
        for item in known:
            with self.part(name, 1.0):
                yield item

    def advance(self, name: str, units: float, stage: str = "", *, found: bool = False) -> None:
        """Count finished units of a part; those that were `found` have taken no time.

        The event is of a `stage` with another name than the part, if it is given.
        """
        part = self._parts[name]
        self._tick(part)
        part.begun += units
        part.found += units if found else 0.0
        part.done = max(part.done, part.begun)
        part.units = max(part.units, part.done)
        self._tell(Progress(stage or name, round(part.begun), round(part.units)))

    def end(self) -> None:
        """Report that all is done."""
        if self._last.stage and self._share < 1:
            self._share, last = 1.0, self._last
            what, best = self.what or last.what, last.best if self.best is None else self.best
            ended = replace(last, done=last.total, what=what, share=1.0, left=0.0, best=best)
            self.report(ended)

    def _part_of(self, event: Progress) -> _Part | None:
        """The part that an event belongs to, with what it says is done."""
        part, span = self._parts.get(event.stage), 0.0
        if self._stack:
            part, span = self._stack[-1]
        elif part is not None:
            span = part.units
        if part is not None:
            part.done = min(part.begun + span * event.of_all, max(part.units, part.begun))
            part.found = max(part.found, span * event.found / max(event.total, 1))
        return part

    def _tick(self, part: _Part | None) -> None:
        """The time since the last event was spent on a part."""
        now = working_seconds()
        if part is not None:
            part.spent += now - self._ticked
        self._ticked = now

    def _tell(self, event: Progress) -> None:
        """Report an event with how far the run is."""
        if not self._parts:  # a call that leaves it to those that it makes
            self.report(event)
            return
        self._last = event
        done, left = self._seconds()
        share = done / (done + left) if done + left > 0 else 0.0
        self._share = max(self._share, min(share, 1.0))
        self.report(
            replace(
                event,
                what=self.what or event.what,
                share=self._share,
                left=left if working_seconds() - self._begin >= FIRST_SECONDS else None,
                best=event.best if self.best is None else self.best,
            )
        )

    def _seconds(self) -> tuple[float, float]:
        """Seconds of what is done, and of what is left."""
        parts = self._parts.values()
        guessed = sum(part.timed * part.guess for part in parts)
        spent = sum(part.spent for part in parts if part.timed)
        scale = spent / guessed if guessed > 0 and spent > 0 else 1.0
        rates = [(part, part.rate(scale)) for part in parts]
        done = sum(part.done * rate for part, rate in rates)
        return done, sum((part.units - part.done) * rate for part, rate in rates)


@contextmanager
def told_whole(report: OnProgress, **guesses: float) -> Iterator[RunProgress]:
    """Report the events of a run with how far all of it is; see `RunProgress`."""
    run = RunProgress(report, **guesses)
    yield run
    run.end()


@dataclass
class PassReport:
    """Reports passes over a matrix: those of a solve as how many of about how many, and a residual.

    Residuals fall about geometrically, so the first and the last one tell how many passes are left.
    A pass outside of a solve is reported by its parts, as tiles.
    """

    report: RunProgress = field(default_factory=RunProgress)
    solve: str = ""
    """Which of several solves runs, in words."""
    _most: int = field(default=0, init=False)
    """Upper bound on the passes of the solve that runs; 0 outside of solves."""
    _tol: float = field(default=0.0, init=False)
    _before: int = field(default=0, init=False)
    """Passes of earlier solves."""
    _done: int = field(default=0, init=False)
    _total: int = field(default=0, init=False)
    _residual: str = field(default="", init=False)
    _first: tuple[int, float] | None = field(default=None, init=False)

    def begin(self, most: int, tol: float) -> None:
        """Begin a solve of at most some passes, which ends at a residual."""
        self._most, self._tol, self._residual, self._first = most, tol, "", None
        self._before, self._total = self._done, self._done + most
        self._tell()

    def part(self, done: int, total: int) -> None:
        """Report parts of the pass that is under way."""
        if not self._most:
            self.report(Progress("tiles", done, total))
        elif done < total:
            self._tell(f"{100 * done // total} % of the next")

    def passed(self, passes: int, residual: float) -> None:
        """Report finished passes of this solve, and its residual."""
        self._done = self._before + passes
        self._total = self._before + max(passes, min(self._most, self._expected(passes, residual)))
        self._residual = f"residual {residual:.1e} of {self._tol:.0e}"
        self._tell()

    def end(self) -> None:
        """End a solve."""
        self._most, self._total = 0, self._done
        self._tell()

    def _expected(self, passes: int, residual: float) -> int:
        """Passes of this solve, with one that recomputes the residual."""
        if residual <= self._tol:
            return passes + 1
        if self._first is None:
            self._first = passes, residual
        first, largest = self._first
        if not 0 < residual < largest:
            return self._most
        steps = log(residual / self._tol) / log(largest / residual) * (passes - first)
        return passes + ceil(min(steps, self._most) - 1e-6) + 1

    def _tell(self, part: str = "") -> None:
        detail = ", ".join(words for words in (self.solve, self._residual, part) if words)
        self.report(Progress("passes", self._done, self._total, detail))


_PASSES: ContextVar[PassReport | None] = ContextVar("_PASSES", default=None)


def passes_of_call() -> PassReport:
    """What is told of the passes that the current call makes.

    Products such as ``G @ V`` are operators: they have no argument for it. Nothing is reported
    outside of `passes_reported`, or on other threads; see `dhsk.bars.show_progress`.
    """
    return _PASSES.get() or PassReport()


def within_call() -> bool:
    """Whether a caller around here has said what is done with its passes."""
    return _PASSES.get() is not None


@contextmanager
def passes_reported(report: OnProgress) -> Iterator[PassReport]:
    """Report the passes that methods make here."""
    passes = PassReport(report if isinstance(report, RunProgress) else RunProgress(report))
    token = _PASSES.set(passes)
    try:
        yield passes
    finally:
        _PASSES.reset(token)
