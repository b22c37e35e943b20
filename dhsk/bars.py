"""Progress on the screen: bars on a terminal or in a notebook, else plain lines."""

import logging
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from importlib import import_module
from threading import current_thread, main_thread
from time import monotonic
from typing import Any, TypeAlias

from dhsk.clock import working_seconds
from dhsk.costs import rough_seconds
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.run_progress import (
    FIRST_SECONDS,
    PassReport,
    RunProgress,
    passes_of_call,
    passes_reported,
    told_whole,
    within_call,
)
from dhsk.units import human_seconds
from dhsk.verbosity import Verbosity, set_at_work, verbosity

Show: TypeAlias = OnProgress | bool | None
"""What is done with events of progress: a function is called, True shows bars. None is silent, but
in a notebook it shows the bar of what takes over two seconds."""

QUIET_SECONDS, QUIET_SHARE = 2.0, 0.02
"""Runs that end sooner say nothing; plain lines come no more often than this, and than this share
of the time that the run has taken: a day makes 400 lines."""

UPDATE_SECONDS = 0.2
"""Least time between two updates of a bar in a notebook."""

LONG_SECONDS, SURE_SECONDS = 60.0, 5.0
"""Calls that show no progress say once that they will take longer, as soon as that is likely."""

_log = logging.getLogger("dhsk")


@contextmanager
def show_progress(progress: Show = True) -> Iterator[OnProgress]:
    """Show the progress of all calls in a ``with`` block that are not told what to do with it.

    It is for operators, such as ``G @ V``, and for everything that would take a `progress`: None,
    the default, then stands for that of the block. Calls on other threads are silent. In a notebook
    None shows a bar without it, of calls that take over two seconds; `progress` False is silent.

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
    set_at_work(True)
    with passes_shown(progress) as passes:
        yield passes.report


@contextmanager
def shown(progress: Show, **guesses: float) -> Iterator[RunProgress]:
    """Give the function that a `progress` stands for; None is what shows progress around here.

    So is True within `show_progress`: there is one place for bars. What is called here is silent
    unless it is given the function, as its parts are none of the caller's. `guesses` are the parts
    of the call, see `RunProgress`.
    """
    around = passes_of_call().report.report
    with ExitStack() as stack:
        if progress is None and _shows_unasked():
            report = stack.enter_context(_in_notebook(QUIET_SECONDS))
        elif progress is True and around is ignore:
            report = stack.enter_context(_on_screen())
        elif progress is None or progress is True:
            report = around
        else:
            report = progress or ignore
        stack.enter_context(passes_reported(ignore))
        yield stack.enter_context(told_whole(report, **guesses))


@contextmanager
def passes_shown(progress: Show, **guesses: float) -> Iterator[PassReport]:
    """Show the passes over a matrix that are made here; see `PassReport` and `shown`."""
    with shown(progress, **guesses) as report, passes_reported(report) as passes:
        yield passes


@contextmanager
def _on_screen() -> Iterator[OnProgress]:
    """Show events as a bar on a terminal and in notebooks, else as plain lines on standard error.

    Quiet commands show nothing, verbose ones plain lines.
    """
    if verbosity() < Verbosity.USUAL:
        yield ignore
        return
    if _kernel_shell() is not None:
        with _in_notebook() as show:
            yield show
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    console = Console(stderr=True)
    if verbosity() is Verbosity.VERBOSE or not sys.stderr.isatty():
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=16),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
        TextColumn("{task.fields[rest]}", table_column=Column(no_wrap=True, overflow="fold")),
    )
    with Bars(*columns, console=console) as bars:
        yield shown_on(bars)


def shown_on(bars: Any) -> OnProgress:
    """Function that shows all events in one bar."""
    clock = _Clock()
    task = bars.add_task("", total=1.0, visible=False, rest="")

    def show(event: Progress) -> None:
        left = clock.left(event)
        bars.update(
            task, description=_doing(event), completed=event.of_all, visible=True,
            rest=" · ".join(_rest(event, left)),
        )  # fmt: skip

    return show


def _kernel_shell() -> Any:
    """IPython's shell in a kernel, as notebooks have it; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


def _shows_unasked() -> bool:
    """Whether a call shows a bar that nobody asked for: it is called by a cell itself."""
    return (
        not within_call()
        and _kernel_shell() is not None
        and current_thread() is main_thread()
        and verbosity() >= Verbosity.USUAL
    )


@contextmanager
def _in_notebook(quiet: float = 0.0) -> Iterator[OnProgress]:
    """Show events as the bar of the cell, from some seconds on."""
    bar = NotebookBar(_kernel_shell().execution_count, quiet)
    try:
        yield bar
    except BaseException:
        bar.stop()
        raise


class NotebookBar:
    """The bar of a cell in a notebook: all calls of the cell share it, one after the other.

    It is HTML that the kernel replaces, so that it needs no widgets, and stays in a saved notebook.
    rich's needs ipywidgets, without which it shows one warning for each event.

    Parameters
    ----------
    cell
        Number of the cell.
    quiet
        Seconds before which nothing is shown.
    """

    _last: tuple[int, Any] = (-1, None)
    """Number of the last cell with a bar, and the handle of that bar."""

    def __init__(self, cell: int, quiet: float) -> None:
        self._cell, self._quiet, self._clock = cell, quiet, _Clock()
        self._begin = monotonic()
        self._updated = -UPDATE_SECONDS
        self._event: Progress | None = None

    def __call__(self, event: Progress) -> None:
        """Show an event, unless one was shown just before."""
        now, left, self._event = monotonic() - self._begin, self._clock.left(event), event
        due = now >= self._quiet and now >= self._updated + UPDATE_SECONDS
        if due or (event.of_all >= 1 and self._updated >= 0):
            ended = f" · {human_seconds(now)}" if event.of_all >= 1 else ""
            self._show(event_words(event, left) + ended, event.of_all)
            self._updated = now

    def stop(self) -> None:
        """Say that the call ended early."""
        if self._event is not None and self._updated >= 0:
            self._show(f"stopped · {_doing(self._event)}", self._event.of_all)

    def _show(self, words: str, share: float) -> None:
        display = import_module("IPython.display").display  # a kernel has it; we need none

        bar = f'<progress max="1" value="{share:.3f}" style="width: 12em"></progress>'
        shown = {"text/html": f"<div>{bar} {escape(words)}</div>", "text/plain": words}
        cell, handle = NotebookBar._last
        if cell == self._cell:
            handle.update(shown, raw=True)
        else:
            NotebookBar._last = self._cell, display(shown, raw=True, display_id=True)


class _Clock:
    """Estimates the seconds that a run has left, where its events do not say them."""

    def __init__(self) -> None:
        self.begin, self.first, self.last = working_seconds(), 0.0, 0.0
        self.began = True
        """Whether the last event was the first one of a run."""

    def left(self, event: Progress) -> float | None:
        """Seconds that are left; a share that falls is that of another run."""
        now, share = working_seconds(), event.of_all
        self.began = share < self.last or self.last == 0.0
        if self.began:
            self.begin, self.first = now, share
        self.last = share
        if event.left is not None or share <= self.first or now - self.begin < FIRST_SECONDS:
            return event.left
        return (now - self.begin) * (1 - share) / (share - self.first)


def unless_told(progress: Show, what: str) -> Show:
    """What is done with events of a call: if nothing, it says when it will take long."""
    silent = progress is None and passes_of_call().report.report is ignore
    silent = silent and not _shows_unasked()
    return ToldIfLong(what) if silent else progress


def event_words(event: Progress, left: float | None) -> str:
    """What a run is doing, how far it is, the seconds that it has left, and what else is known."""
    return " · ".join([_doing(event), *_rest(event, left)])


def _doing(event: Progress) -> str:
    """What a run is doing, in words; where it has none, the stage and its numbers."""
    if event.what:
        return event.what
    return f"{event.stage} {event.done:,} of {event.total:,}"


def _rest(event: Progress, left: float | None) -> list[str]:
    """How far a run is, the time that it has left, and what else is known."""
    share = event.of_all
    said = [f"{math.floor(100 * share)} %"]
    if left is not None and share < 1:
        said.append(f"{rough_seconds(left)} left")
    if event.best is not None:
        said.append(f"best kernel {event.best:.3f}")
    return [*said, event.detail] if event.detail else said


class ToldIfLong:
    """Logs a warning, once, if a call that shows no progress will take long.

    Python prints it on standard error; ``logging.getLogger("dhsk")`` is where it can be silenced.

    Parameters
    ----------
    what
        The call, in words.
    """

    def __init__(self, what: str) -> None:
        self._what, self._clock, self._said = what, _Clock(), False

    def __call__(self, event: Progress) -> None:
        """Look at an event of the call."""
        left = self._clock.left(event)
        if self._said or left is None or left < LONG_SECONDS:
            return
        if working_seconds() - self._clock.begin < SURE_SECONDS:
            return
        self._said = True
        said = event_words(event, left)
        _log.warning("%s: %s; progress=True shows how far it is", self._what, said)


class PlainLines:
    """Progress as lines of text, one every few seconds."""

    def __init__(self) -> None:
        self._clock, self._stage = _Clock(), ""
        self._said, self._quiet = monotonic(), True

    def __call__(self, event: Progress) -> None:
        """Print a line if it is time for one."""
        now, left = monotonic(), self._clock.left(event)
        if self._clock.began:
            self._said, self._quiet = now, True
        ended = event.of_all >= 1 and not self._quiet
        if verbosity() is Verbosity.VERBOSE:
            ended = event.stage != self._stage or event.done >= event.total or ended
        self._stage = event.stage
        quiet = max(QUIET_SECONDS, QUIET_SHARE * (working_seconds() - self._clock.begin))
        if ended or now - self._said >= quiet:
            print(event_words(event, left), file=sys.stderr, flush=True)  # noqa: T201
            self._said, self._quiet = now, False
