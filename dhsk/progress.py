"""Progress as typed events: long computations report them, and the caller shows them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import ceil, log
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Progress of one stage of a computation.

    Attributes
    ----------
    stage
        Name of the stage, such as "tiles" or "fits".
    done
        Number of finished units.
    total
        Number of units; the stage has ended when `done` is `total`.
    detail
        What else is known, for people.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> G = dhsk.compute_gram(np.eye(3), "cosine", store="eye.gram", progress=print)
    Progress(stage='reading', done=3, total=3)
    Progress(stage='tiles', done=0, total=1)
    Progress(stage='staging', done=3, total=3)
    Progress(stage='tiles', done=1, total=1)
    """

    stage: str
    done: int
    total: int
    detail: str = field(default="", repr=False)


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called with every event, on the thread that called the computation."""


def ignore(_: Progress) -> None:
    """Ignore the event."""


def counter(report: OnProgress, what: str, total: int, each: int = 1) -> Callable[[int], None]:
    """Function that reports finished steps, named `what`, of `total`, `each` calls per step."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(Progress(what, done // each, total))

    return advance


@dataclass
class PassReport:
    """Reports passes over a matrix: those of a solve as how many of about how many, and a residual.

    Residuals fall about geometrically, so the first and the last one tell how many passes are left.
    A pass outside of a solve is reported by its parts, as tiles.
    """

    report: OnProgress = ignore
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


@contextmanager
def passes_reported(report: OnProgress) -> Iterator[PassReport]:
    """Report the passes that methods make here."""
    passes = PassReport(report)
    token = _PASSES.set(passes)
    try:
        yield passes
    finally:
        _PASSES.reset(token)
