"""Sizes in bytes, counts and durations, as people write and read them."""

import re
from math import inf
from typing import Final

from dhsk.errors import InputError

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TIME: Final = re.compile(
    r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?)\s*((?:second|minute|hour|day)s?|sec|min|[smhd]|$)\s*"
)
"""A number and its unit, of which the first letter tells; without one it is of seconds."""


def parse_bytes(text: str | int, name: str = "memory") -> int:
    """Number of bytes in a size such as "2GB", "512MiB" or 1000000.

    Raises `InputError`, with the parameter's `name`, if it is not a positive size.
    """
    from dask.utils import parse_bytes as in_bytes  # kernels and solvers do without Dask

    cleaned = str(text).strip()
    try:  # Dask takes a unit alone for one of it
        size = 0 if cleaned[:1].isalpha() else in_bytes(cleaned or "0")
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise InputError(f"{name} must be a positive size such as 2GB or 512MiB, got {text!r}")
    return size


def parse_seconds(text: str | float, name: str = "budget") -> float:
    """Seconds in a duration such as "30min", "1h 30min" or 90.

    Raises `InputError`, with the parameter's `name`, if it is not a positive duration.
    """
    cleaned = str(text).strip().lower()
    parts = _TIME.findall(cleaned)
    seconds = sum(float(number) * _SECONDS[unit[:1] or "s"] for number, unit in parts)
    if _TIME.sub("", cleaned) or not 0 < seconds < inf:
        raise InputError(f"{name} must be a positive time such as 30min, 2h or 90s, got {text!r}")
    return seconds


def format_bytes(size: float) -> str:
    """Write a size as Dask does, for instance 2.35 GiB; parts of a byte are rounded."""
    from dask.utils import format_bytes as in_words

    words: str = in_words(round(size))
    return words


def counted(count: int, thing: str, things: str | None = None) -> str:
    """Write a number of things, for instance 1 file or 1,200 files."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def human_seconds(seconds: float) -> str:
    """Write a duration for people, for instance 3 min 20 s."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours / 24:,.1f} days"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


_UNITS: Final = (("years", 31_557_600.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0))


def seconds_range(low: float, high: float) -> str:
    """Write a range of durations in one unit for people, for instance 1.2 to 2.6 h."""
    unit, size = next(((unit, size) for unit, size in _UNITS if high >= 2 * size), ("s", 1.0))
    return f"{_two_digits(low / size)} to {_two_digits(high / size)} {unit}"


def _two_digits(value: float) -> str:
    """Two digits of a number from 0.1 on, and zeros."""
    if value < 10:
        return f"{value:.1f}"
    step = 10 ** (len(f"{value:.0f}") - 2)
    return f"{round(value / step) * step:,}"
