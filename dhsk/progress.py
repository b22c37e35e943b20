"""Progress as typed events: long computations report them, and the caller shows them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Progress of one stage of a computation, and of the whole run that it is a part of.

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
    found
        Units that an earlier run had finished.
    what
        What the run is doing, in words; empty where the stage says it.
    share
        How far the whole run is, from 0 to 1; it never falls. None where the stage is the run.
    left
        Estimated seconds until the run ends; None where nothing tells them.
    best
        Highest mean score so far; None where nothing is scored.

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
    found: int = field(default=0, repr=False, compare=False)
    what: str = field(default="", repr=False, compare=False)
    share: float | None = field(default=None, repr=False, compare=False)
    left: float | None = field(default=None, repr=False, compare=False)
    best: float | None = field(default=None, repr=False, compare=False)

    @property
    def of_all(self) -> float:
        """How far the whole run is, from 0 to 1: `share`, or else that of the stage."""
        return self.done / max(self.total, 1) if self.share is None else self.share


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called with every event, on the thread that called the computation."""


def ignore(_: Progress) -> None:
    """Ignore the event."""


def counter(report: OnProgress, what: str, total: int, found: int = 0) -> Callable[[int], None]:
    """Function that counts finished steps, named `what`, of `total`; some were `found` finished."""
    done = found
    report(Progress(what, done, total, found=found))

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(Progress(what, done, total, found=found))

    return advance
