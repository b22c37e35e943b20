"""Output of the commands: tables and lines, on a terminal or in a batch log."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, Final

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from dhsk.costs import Cost, costs_told, tell_cost
from dhsk.kernels import HeatKernel, Kernel
from dhsk.samples.maps import MAPS, map_of
from dhsk.samples.weighted import LEARNT
from dhsk.verbosity import Verbosity, verbosity

WIDEST: Final = 100
"""Most columns of a line of text, which batch logs have too."""

NARROWEST: Final = 30
"""Fewest columns of a text beside its head."""

_WHOLE_WORDS: Final[Any] = {"break_long_words": False, "break_on_hyphens": False}


def print_pairs(title: str, pairs: Iterable[Sequence[str]]) -> None:
    """Print (what, value) rows under a title."""
    rows = [tuple(pair) for pair in pairs]
    width = max(len(what) for what, _ in rows)
    say(title)
    for what, value in rows:
        say_wrapped(f"  {what:<{width}}  ", value)


def say_wrapped(head: str, text: str) -> None:
    """Print a text after a head, with lines below it where it is wider than the terminal."""
    width = max(len(head) + NARROWEST, line_width())
    first, *rest = wrap(text, width - len(head), **_WHOLE_WORDS) or [""]
    say(head + first)
    for line in rest:
        say(" " * len(head) + line)


def line_width() -> int:
    """Columns of a line of text: those of the terminal, at most `WIDEST`."""
    return min(WIDEST, get_terminal_size().columns) if sys.stdout.isatty() else WIDEST


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, its first column left, the others right; one wide row as pairs."""
    lines = [[str(cell) for cell in row] for row in rows]
    width = sum(max(map(len, column)) + 2 for column in zip(columns, *lines, strict=True)) - 2
    if len(lines) == 1 and sys.stdout.isatty() and width > line_width():
        for what, value in zip(columns, lines[0], strict=True):
            say(f"  {what:<{max(map(len, columns))}}  {value}")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in lines:
        table.add_row(*row)
    if verbosity() >= Verbosity.RESULTS:
        Console(width=max(width, 1)).print(table)  # no number is cut off


def say(line: str = "") -> None:
    """Print a line of results on standard output as it is, without markup."""
    if verbosity() >= Verbosity.RESULTS:
        print(line, flush=True)  # noqa: T201


def hint(line: str) -> None:
    """Print a line about what comes next, which quiet commands leave out."""
    if verbosity() >= Verbosity.USUAL:
        say(line)


def hint_next(commands: Iterable[str]) -> None:
    """Print the commands that come next, at most two, which quiet commands leave out."""
    for word, command in zip(("next:  ", "or:    "), commands, strict=False):
        hint(f"{word} {command}")


def say_cost(cost: Cost) -> None:
    """Print the line that says what a run will cost, and below it the way out of a long one."""
    if verbosity() < Verbosity.USUAL:
        return
    click.echo(cost.sentence, err=True)
    if cost.way_out:
        click.echo(cost.way_out, err=True)


def say_cost_of(predict: Callable[[], Cost]) -> None:
    """Print what a run of this command will cost, unless that cannot be planned."""
    with costs_told(say_cost):
        tell_cost(predict)


def kernel_words(kernel: Kernel) -> str:
    """Name of a kernel; of a heat kernel also its time scale, which the option takes."""
    if isinstance(kernel, HeatKernel):
        return f"heat s={kernel.time_scale:.4g} (t={kernel.time:.4g})"
    return kernel.label


def map_words(name: str) -> str:
    """Name of a map of the samples, and what it does."""
    if name in LEARNT:
        return f"map {name} ({LEARNT[name].does})"
    return f"map {name}" + (f" ({map_of(name).does})" if name.partition(":")[0] in MAPS else "")


def say_json(facts: Mapping[str, Any]) -> None:
    """Print an object of JSON for programs."""
    print(json.dumps(_plain(facts), indent=2, allow_nan=False), flush=True)  # noqa: T201


def _plain(value: Any) -> Any:
    """The same of what JSON knows: arrays as lists, NaN and infinity as null, paths as text."""
    match value:
        case np.generic() | np.ndarray():
            return _plain(value.tolist())
        case Mapping():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case float() if not math.isfinite(value):
            return None
        case str() | int() | float() | None:
            return value
    return str(value)
