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
    """

    stage: str
    done: int
    total: int


OnProgress: TypeAlias = Callable[[Progress], None]
"""Receives every event, on the thread that called the computation."""


def ignore(_: Progress) -> None:
    """Show nothing."""
