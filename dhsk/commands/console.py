"""Output of the commands: tables and lines, on a terminal or in a batch log."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table


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
