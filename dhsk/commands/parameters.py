"""Types of options: how their words are parsed."""

import os
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from dhsk.errors import InputError
from dhsk.kernels import NAMED, known_elsewhere
from dhsk.objects.places import is_url, parse_place
from dhsk.samples.maps import parse_sphere_map
from dhsk.units import parse_seconds


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


class PlaceParameter(PathParameter):
    """A path, or an ``s3://`` URL as `ObjectPath`."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        return parse_place("path", value) if is_url(value) else super().convert(value, param, ctx)


class MapParameter(click.Choice):  # type: ignore[type-arg]  # as `Parsed`
    """A map of samples: one of some names, or "clr:0.5" with a pseudo-count."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        if not str(value).startswith("clr:"):
            return super().convert(value, param, ctx)
        try:
            return parse_sphere_map(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


class KernelParameter(click.Choice):  # type: ignore[type-arg]  # as `Parsed`
    """One kernel by name."""

    def __init__(self) -> None:
        super().__init__(NAMED)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        if value not in NAMED:
            self.fail(_unknown_kernel(value), param, ctx)
        return super().convert(value, param, ctx)


def _unknown_kernel(name: str) -> str:
    return f"{name!r} is not one of {', '.join(NAMED)}{known_elsewhere(name)}"


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """What a function makes of a text, or a usage error that says what the text is not.

    `several` says that the text may have more than one value, separated by commas.
    """

    def __init__(
        self, name: str, parse: Callable[[str], Any], wanted: str, *, several: bool = False
    ) -> None:
        self.name = name
        self._parse = parse
        self._wanted = wanted
        self.several = several

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse, or fail with a usage error."""
        try:
            return self._parse(str(value))
        except ValueError:
            self.fail(f"{value!r} is not {self._wanted}", param, ctx)


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",")]


def _whole_numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _lengths(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    return int(first), int(last if dash else first)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _longest(text: str) -> int:
    """The last of lengths such as 2 or 1-2, which begin with 1."""
    first, dash, last = text.partition("-")
    if dash and _count(first) != 1:
        raise ValueError(text)
    return _count(last if dash else first)


def _part(text: str) -> tuple[int, int]:
    number, count = map(int, text.split("/"))
    return number, count


def _class_weight(text: str) -> str:
    """The text as it is: `weights_of_labels` makes numbers of it once the labels are known."""
    if text != "balanced":
        for part in text.split(","):
            name, _, factor = part.rpartition("=")
            if not name or not 0 < float(factor) < inf:
                raise ValueError(text)
    return text


def _duration(text: str) -> str:
    """The text as it is, as messages have it."""
    parse_seconds(text)
    return text


def _grid(text: str) -> list[int]:
    numbers = _whole_numbers(text)
    if len(numbers) != 3 or min(numbers) < 1 or numbers[0] < 2:
        raise ValueError(text)
    return numbers


SEED = click.IntRange(0, 2**32 - 1)
"""As numpy and scikit-learn take it."""

NUMBERS = Parsed("numbers", _numbers, "a list of numbers such as 0.7,1,1.4", several=True)
NUMBERS_OR_AUTO = Parsed(
    "numbers|auto",
    lambda text: text if text == "auto" else _numbers(text),
    "a list of numbers such as 0.7,1,1.4",
    several=True,
)
WHOLE_NUMBERS = Parsed(
    "whole numbers", _whole_numbers, "a list of whole numbers such as 100,200,300", several=True
)
LENGTHS = Parsed("length", _lengths, "a length such as 6, or lengths such as 1-6")
LONGEST = Parsed("length", _longest, "a number of neighbouring words such as 2, or 1-2")
TEXTS = Parsed("number", _count, "a number of texts such as 2: shares of texts are not taken")
CLASS_WEIGHT = Parsed(
    "balanced|class=factor",
    _class_weight,
    "balanced, nor a factor of C for each class such as ill=5,well=1",
)
DURATION = Parsed("time", _duration, "a time above 0 such as 30min, 2h or 90s")
PART = Parsed("number/count", _part, "a part such as 3/64")
GRID = Parsed("folds,C,kernels", _grid, "2 folds or more, values of C and kernels", several=True)


class SourceParameter(Parsed):
    """FILE or FILE:KEY; the shell completes files."""

    def __init__(self) -> None:
        super().__init__("text", str, "a text")

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Leave it to the shell."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


class Names(Parsed):
    """One or more kernels, separated by commas."""

    def __init__(self) -> None:
        super().__init__("kernels", lambda text: text.split(","), "a list", several=True)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """Complete the last kernel of the list."""
        del ctx, param
        before, comma, last = incomplete.rpartition(",")
        found = [name for name in NAMED if name.startswith(last)]
        return [CompletionItem(f"{before}{comma}{name}") for name in found]

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Parse, or fail with a usage error."""
        names: list[str] = super().convert(value, param, ctx)
        for name in names:
            if name not in NAMED:
                self.fail(_unknown_kernel(name), param, ctx)
        return names
