"""Output of the commands: progress, tables and lines, on a terminal or in a batch log."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from dhsk.progress import OnProgress, Progress

QUIET_SECONDS, QUIET_SHARE = 2.0, 0.02
"""Stages that end sooner say nothing; plain lines come no more often than this, and than this share
of the time that the stage has taken: a day makes 400 lines."""


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show events as bars on a terminal, else as plain lines; on standard error."""
    if not sys.stderr.isatty():
        yield PlainLines()
        return
    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        rows: dict[str, Any] = {}

        def show(event: Progress) -> None:
            if event.stage not in rows:
                rows[event.stage] = bars.add_task(event.stage, detail="")
            task = rows[event.stage]
            bars.update(task, completed=event.done, total=event.total, detail=event.detail)

        yield show


class PlainLines:
    """Progress as lines of text: one every few seconds, and one at the end of a long stage."""

    def __init__(self) -> None:
        self.stage = ""
        self.begin = self.said = 0.0

    def __call__(self, event: Progress) -> None:
        """Print a line if it is time for one."""
        now = monotonic()
        if event.stage != self.stage:
            self.stage, self.begin, self.said = event.stage, now, now
        ended = event.done >= event.total and self.said > self.begin
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


def print_pairs(title: str, pairs: Iterable[Sequence[str]]) -> None:
    """Print (what, value) rows under a title."""
    rows = [tuple(pair) for pair in pairs]
    width = max(len(what) for what, _ in rows)
    say(title)
    for what, value in rows:
        say(f"  {what:<{width}}  {value}")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, its first column left, the others right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def say(line: str = "") -> None:
    """Print a line on standard output as it is, without markup."""
    print(line, flush=True)  # noqa: T201
