"""Progress as typed events: rooms that work for long report, whoever called decides how to show."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """How far one stage of a computation has come.

    Attributes
    ----------
    stage
        What is being done, for people: "tiles", "fits".
    done
        Units finished.
    total
        Units in all; the stage has ended when `done` reaches it.

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


OnProgress: TypeAlias = Callable[[Progress], None]
"""Receives every event, on the thread that called the computation."""


def ignore(_: Progress) -> None:
    """Show nothing."""


def counter(report: OnProgress, what: str, total: int, each: int = 1) -> Callable[[int], None]:
    """Give what tells of steps as they are finished.

    Parameters
    ----------
    report
        Receives progress.
    what
        Name of the steps.
    total
        How many there are.
    each
        Calls that make a step.
    """
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(Progress(what, done // each, total))

    return advance
