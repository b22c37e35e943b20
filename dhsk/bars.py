"""Progress on the screen: bars on a terminal or in a notebook, else plain lines."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any, TypeAlias

from dhsk.progress import (
    OnProgress,
    PassReport,
    Progress,
    ignore,
    passes_of_call,
    passes_reported,
)
from dhsk.verbosity import Verbosity, verbosity

Show: TypeAlias = OnProgress | bool | None
"""What is done with events of progress: a function is called, True shows bars."""

QUIET_SECONDS, QUIET_SHARE = 2.0, 0.02
"""Stages that end sooner say nothing; plain lines come no more often than this, and than this share
of the time that the stage has taken: a day makes 400 lines."""


@contextmanager
def show_progress(progress: Show = True) -> Iterator[OnProgress]:
    """Show the progress of all calls in a ``with`` block that are not told what to do with it.

    It is for operators, such as ``G @ V``, and for everything that would take a `progress`: None,
    the default, then stands for that of the block. Calls on other threads are silent.

    Parameters
    ----------
    progress
        Function that is called with every `Progress`; True for bars on a terminal and in notebooks,
        else plain lines on standard error. Plain lines are only of what takes over two seconds.

    Yields
    ------
    callable
        Shows an event of the caller's own.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> G = dhsk.compute_gram(np.eye(3), "cosine")
    >>> with dhsk.show_progress(print):
    ...     sums = G @ np.ones(3)
    Progress(stage='tiles', done=1, total=1)
    """
    with passes_shown(progress) as passes:
        yield passes.report


@contextmanager
def shown(progress: Show) -> Iterator[OnProgress]:
    """Give the function that a `progress` stands for; None is what shows progress around here.

    So is True within `show_progress`: there is one place for bars. What is called here is silent
    unless it is given the function, as events of its parts would break up those of the caller.
    """
    around = passes_of_call().report
    with ExitStack() as stack:
        if progress is True and around is ignore:
            report = stack.enter_context(_on_screen())
        elif progress is None or progress is True:
            report = around
        else:
            report = progress or ignore
        stack.enter_context(passes_reported(ignore))
        yield report


@contextmanager
def passes_shown(progress: Show) -> Iterator[PassReport]:
    """Show the passes over a matrix that are made here; see `PassReport`."""
    with shown(progress) as report, passes_reported(report) as passes:
        yield passes


@contextmanager
def _on_screen() -> Iterator[OnProgress]:
    """Show events as bars on a terminal and in notebooks, else as plain lines on standard error.

    Quiet commands show nothing, verbose ones plain lines.
    """
    if verbosity() < Verbosity.USUAL:
        yield ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if verbosity() is Verbosity.VERBOSE or not (sys.stderr.isatty() or console.is_jupyter):
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Bars(*columns, console=console) as bars:
        yield shown_on(bars)


def shown_on(bars: Any) -> OnProgress:
    """Function that shows each stage as a bar, whose clock starts again with the stage."""
    rows: dict[str, Any] = {}

    def show(event: Progress) -> None:
        if event.stage not in rows:
            rows[event.stage] = bars.add_task(event.stage, detail="")
        task = rows[event.stage]
        if event.done < bars.tasks[task].completed:
            bars.reset(task)
        bars.update(task, completed=event.done, total=event.total, detail=event.detail)

    return show


class PlainLines:
    """Progress as lines of text: one every few seconds, and one at the end of a long stage."""

    def __init__(self) -> None:
        self.stage, self.done = "", 0
        self.begin = self.said = 0.0

    def __call__(self, event: Progress) -> None:
        """Print a line if it is time for one."""
        now = monotonic()
        began = event.stage != self.stage or event.done < self.done
        self.done = event.done
        if began:
            self.stage, self.begin, self.said = event.stage, now, now
        ended = event.done >= event.total and self.said > self.begin
        if verbosity() is Verbosity.VERBOSE:
            ended = began or event.done >= event.total
        quiet = max(QUIET_SECONDS, QUIET_SHARE * (now - self.begin))
        if ended or now - self.said >= quiet:
            share = 100 * event.done // max(event.total, 1)
            print(  # noqa: T201
                f"{event.stage}: {event.done:,} of {event.total:,} ({share} %), "
                f"{now - self.begin:.0f} s{event.detail and ', '}{event.detail}",
                file=sys.stderr,
                flush=True,
            )
            self.said = now
