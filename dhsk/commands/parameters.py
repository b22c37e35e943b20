"""Types of options: how their words are parsed."""

import os
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from dhsk.kernels import NAMED
from dhsk.objects.places import is_url, parse_place


class PathParameter(click.Path):
    """A path on a disk, as `pathlib.Path`, without NUL characters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, readable=False, **options)  # reading says more

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        if "\0" in os.fspath(value):
            self.fail(f"{value!r} is no path: it has a NUL character", param, ctx)
        if is_url(value):
            self.fail(f"{value} is a URL, but this is kept on a disk: give a path", param, ctx)
        return super().convert(value, param, ctx)


class PartOf(click.ParamType):  # type: ignore[type-arg]  # as below
    """One of several parts, such as 3/64."""

    name = "number/count"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        """Parse, or fail with a usage error."""
        try:
            number, count = map(int, str(value).split("/"))
        except ValueError:
            self.fail(f"{value!r} is not a part such as 3/64", param, ctx)
        return number, count


class PlaceParameter(PathParameter):
    """A path, or an ``s3://`` URL as `ObjectPath`."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        return parse_place("path", value) if is_url(value) else super().convert(value, param, ctx)


class Seed(click.IntRange):
    """A seed, as numpy and scikit-learn take it."""

    def __init__(self) -> None:
        super().__init__(0, 2**32 - 1)


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """One or more positive numbers, separated by commas."""

    name = "numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[float]:
        """Parse, or fail with a usage error."""
        try:
            return [float(word) for word in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of numbers such as 0.7,1,1.4", param, ctx)


class NumbersOrAuto(Numbers):
    """Numbers as above, or the word auto."""

    name = "numbers|auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        return value if value == "auto" else super().convert(value, param, ctx)


class WholeNumbers(click.ParamType):  # type: ignore[type-arg]  # as above
    """One or more whole numbers, separated by commas."""

    name = "whole numbers"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Parse, or fail with a usage error."""
        try:
            return [int(word) for word in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r} is not a list of whole numbers such as 100,200,300", param, ctx)


class Lengths(click.ParamType):  # type: ignore[type-arg]  # as above
    """A length such as 6, or the least and the largest such as 1-6."""

    name = "length"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        """Parse, or fail with a usage error."""
        first, dash, last = str(value).partition("-")
        try:
            return int(first), int(last if dash else first)
        except ValueError:
            self.fail(f"{value!r} is not a length such as 6, or lengths such as 1-6", param, ctx)


class SourceParameter(click.ParamType):  # type: ignore[type-arg]  # as above
    """FILE or FILE:KEY; the shell completes files."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        """Take any text."""
        del param, ctx
        return str(value)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


class Names(click.ParamType):  # type: ignore[type-arg]  # as above
    """One or more kernels, separated by commas."""

    name = "kernels"

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Complete the last kernel of the list."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        found = [name for name in NAMED if name.startswith(last)]
        return [CompletionItem(f"{before}{comma}{name}") for name in found]

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Parse, or fail with a usage error."""
        names = str(value).split(",")
        for name in names:
            if name not in NAMED:
                self.fail(f"{name!r} is not one of {', '.join(NAMED)}", param, ctx)
        return names
