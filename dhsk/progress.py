"""Progress as typed events: long computations report them, and the caller shows them."""

from collections.abc import Callable
from dataclasses import dataclass, field
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
