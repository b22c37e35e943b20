"""Output of the commands: tables and lines, on a terminal or in a batch log."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dhsk.verbosity import Verbosity, verbosity


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
    if verbosity() >= Verbosity.RESULTS:
        Console(width=None if sys.stdout.isatty() else 120).print(table)


def say(line: str = "") -> None:
    """Print a line of results on standard output as it is, without markup."""
    if verbosity() >= Verbosity.RESULTS:
        print(line, flush=True)  # noqa: T201


def hint(line: str) -> None:
    """Print a line about what comes next, which quiet commands leave out."""
    if verbosity() >= Verbosity.USUAL:
        say(line)


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
