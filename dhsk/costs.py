"""What a run will cost: known before it runs, and told to whoever asked for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from dhsk.errors import BudgetError
from dhsk.units import format_bytes, human_seconds

FEW: Final = 5000
"""Number of samples below which all takes seconds: commands start no processes, and searches try
everything on all samples. Measured on two cores, of exact grids: starting a cluster and its tasks
are 11 s of 27 on 600 samples and 9 of 41 on 3,003; on 39,774 its processes are a tenth faster than
threads."""

BRIEF_SECONDS: Final = 5.0
"""Seconds below which no number is said."""

_SPREAD: Final = 4.0
"""Ratio of the estimates for many and few support vectors from which both are said."""

LONG_SECONDS: Final = 600.0
"""Seconds from which a run says how to have an answer sooner."""


@dataclass(frozen=True)
class Cost:
    """Predicted cost of a run, in seconds and bytes."""

    what: str
    """What is computed, in words."""
    seconds: float | None
    """Estimate, often off by a factor of two; None if it is not known."""
    memory: int
    """Peak of all processes together."""
    disk: int
    """Most bytes on disk while it runs."""
    stays: int
    """Bytes on disk afterwards."""
    sooner: str = ""
    """How to have an answer sooner; for a long run."""
    least: float | None = None
    """Seconds of an exact fit if few samples are support vectors: `seconds` are of a third."""

    @property
    def sentence(self) -> str:
        """The cost in one line."""
        return (
            f"{self.what}: {self._time}{format_bytes(self.memory)} of memory, "
            f"{format_bytes(self.disk)} of disk while it runs, {format_bytes(self.stays)} stay"
        )

    @property
    def _time(self) -> str:
        """Time in words, with a comma; empty if it is not known."""
        if self.seconds is None:
            return ""
        most = rough_seconds(self.seconds)
        if self.least is None or self.seconds <= _SPREAD * self.least:
            return f"{most}, "
        few = rough_seconds(self.least)
        return f"{few} if few samples are support vectors, {most} if a third are, "

    @property
    def way_out(self) -> str:
        """How to have an answer sooner; empty for a run that is not long."""
        if self.seconds is None or self.seconds < LONG_SECONDS or not self.sooner:
            return ""
        sure = self.least is None or self.least >= LONG_SECONDS
        return f"this {'will' if sure else 'may'} be long. Sooner: {self.sooner}"


def rough_seconds(seconds: float) -> str:
    """Write a prediction for people: about 40 s, about 20 min, about 3 h, about 2 days."""
    if seconds < BRIEF_SECONDS:
        return "some seconds"
    for size, unit in ((48 * 3600.0, "days"), (2 * 3600.0, "h"), (90.0, "min")):
        if seconds >= size:
            one = {"days": 86400.0, "h": 3600.0, "min": 60.0}[unit]
            return f"about {_rounded(seconds / one):,} {unit}"
    return f"about {_rounded(seconds)} s"


def seconds_told(seconds: float) -> str:
    """Write a prediction that is compared with others: few seconds have their number, too."""
    return human_seconds(seconds) if seconds < BRIEF_SECONDS else rough_seconds(seconds)


def _rounded(value: float) -> int:
    """The nearest number that a person would say: to one digit and a half above 20."""
    step = 1 if value < 20 else 10 ** (len(f"{value:.0f}") - 2) * 5
    return round(value / step) * step


def _ignore(_: Cost) -> None:
    """Tell nobody."""


_tell: Final[ContextVar[Callable[[Cost], None]]] = ContextVar("tell_cost", default=_ignore)


@contextmanager
def costs_told(tell: Callable[[Cost], None]) -> Iterator[None]:
    """Have the costs of runs in a ``with`` block told, each before its run begins."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def tell_cost(predict: Callable[[], Cost]) -> None:
    """Tell what the run that begins now will cost; `predict` is called if anyone asked.

    What it cannot plan within the memory is not told: the run itself says so.
    """
    if _tell.get() is not _ignore:
        with suppress(BudgetError):
            _tell.get()(predict())
