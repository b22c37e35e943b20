"""Options of commands as tables: each knows its group, and becomes one argument with others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, Final, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])

Made = TypeVar("Made")

DATA: Final = "Data"
TRY: Final = "What to try"
FIT: Final = "What to compute"
JUDGE: Final = "How to judge"
RUN: Final = "Where to run"
OTHER: Final = "Options"

GROUPS: Final = (DATA, TRY, FIT, JUDGE, RUN, OTHER)
"""Headings of the options of a command, in the order in which its help has them."""


class Option(click.Option):
    """An option of a group."""

    def __init__(self, *given: Any, group: str = OTHER, common: bool = False, **more: Any) -> None:
        super().__init__(*given, **more)
        self.group = group
        self.common = common


@dataclass(frozen=True)
class TableRow:
    """A row of a table of options, which makes an option of a command: a decorator."""

    words: tuple[str, ...]
    more: Mapping[str, Any]

    def __call__(self, function: Command) -> Command:
        """Add the option to a command."""
        return click.option(*self.words, cls=Option, **self.more)(function)

    @property
    def name(self) -> str:
        """The parameter of the command."""
        return str(Option(self.words, **self.more).name)

    @property
    def key(self) -> str:
        """The name on the command line, without dashes before it."""
        return key_of(Option(self.words, **self.more))

    def of(self, **more: Any) -> "TableRow":
        """The same with some things said in another way."""
        return replace(self, more={**self.more, **more})


def option(*words: str, **more: Any) -> TableRow:
    """Row of a table: the words and keywords of `click.option`; `group` and `common` of `Option`.

    A common one is in the short help of a command that has many.
    """
    return TableRow(words, more)


def key_of(parameter: click.Parameter) -> str:
    """Name of a parameter in files and messages: its first long option, or its own name."""
    long = (word for word in parameter.opts if word.startswith("--"))
    return next(long, parameter.name or "").removeprefix("--")


def rows_of(group: str, *rows: TableRow) -> tuple[TableRow, ...]:
    """Rows of one group."""
    return tuple(row.of(group=group) for row in rows)


def gathered(
    parameter: str, kind: Callable[..., Any], *rows: TableRow
) -> Callable[[Command], Command]:
    """Decorator that passes options to a command as one argument, its `parameter`.

    `kind` makes it of their names and values: `dict`, or a dataclass with these fields.
    """
    names = [row.name for row in rows]

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(**given: Any) -> Any:
            own = {name: given.pop(name) for name in names}
            return function(**{parameter: kind(**own)}, **given)

        for row in reversed(rows):  # first named first shown
            command = row(command)
        return cast("Command", command)

    return decorate


def made(kind: type[Made], given: Mapping[str, Any]) -> Made:
    """Make a dataclass of the options of the names of its fields; of others its defaults."""
    own = {field.name: given.get(field.name) for field in fields(cast("Any", kind))}
    return kind(**{name: value for name, value in own.items() if value is not None})
