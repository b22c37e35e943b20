"""What a grammar of a file format gives: files, how to read them, and the right answer."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, Final

from hypothesis import strategies as st

REFUSED: Final = "refused"
"""The right answer is an error: the file is none of its format."""

ANY: Final = "any"
"""Values or an error: the file was damaged."""


@dataclass(frozen=True)
class Case:
    """Files of a folder, one of which is read."""

    files: Mapping[str, bytes | Callable[[Any], None]]
    """Content by name, or a function that writes the path."""
    name: str
    """What is read: NAME or NAME:KEY."""
    answer: Any
    """Right values, `REFUSED` or `ANY`."""
    read: Callable[[str], Any]
    """Reads a source: values like those of `answer`."""
    options: Mapping[str, Any] = field(default_factory=dict)


Token = tuple[str, float | None]
"""A field as it is written, and its number; None if it is none."""

SOUND: Final = st.one_of(
    st.integers(-99, 99).map(lambda n: (str(n), float(n))),
    st.integers(0, 10**12).map(lambda n: (str(n), float(n))),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: (repr(x), x)),
    st.floats(0, 1e6).map(lambda x: (f"{x:.3e}", float(f"{x:.3e}"))),
    st.sampled_from([("1.", 1.0), (".5", 0.5), ("-0", -0.0), ("007", 7.0), ("1E3", 1000.0),
                     ("0.1000000000000000055511151231257827", 0.1)]),
)  # fmt: skip
"""Numbers that every reader takes."""

BROKEN: Final = st.sampled_from([
    ("x", None), ("", nan), ("1_0", None), ("0x10", None), ("--1", None), ("1e", None),
    ("1.2.3", None), ("3;", None), ("1 2", None), ("$5", None), ("1e5e5", None), ("3-5", None),
    ("N/A", nan), ("é", None), ("\N{MINUS SIGN}1", None), ("1d5", None), ("'1'", None),
])  # fmt: skip
"""Fields that are no numbers, or gaps."""


def rarely(draw: Any, times: int) -> bool:
    """True once in so many times; hypothesis likes the ends of a range more than its middle."""
    return bool(draw(st.integers(0, times)) == times // 2 + 1)


def seldom(strategy: Any, other: Any, times: int = 12) -> Any:
    """One of `times` draws is of `other`."""
    return st.integers(1, times).flatmap(lambda k: other if k == times // 2 + 1 else strategy)


NUMBER: Final = seldom(SOUND, BROKEN, 60)


@st.composite
def matrices(draw: Any, rows: int = 7, columns: int = 6, token: Any = NUMBER) -> list[list[Token]]:
    """Rows of tokens, all of one length."""
    width = draw(st.integers(1, columns))
    row = st.lists(token, min_size=width, max_size=width)
    return list(draw(st.lists(row, min_size=1, max_size=rows)))


def values_of(rows: list[list[Token]]) -> list[list[float]] | str:
    """Numbers of tokens, or `REFUSED`."""
    if any(value is None for row in rows for _, value in row):
        return REFUSED
    return [[float(value) for _, value in row if value is not None] for row in rows]


@st.composite
def packed(draw: Any, name: str, content: bytes, answer: Any) -> tuple[str, bytes, Any]:
    """The same file, perhaps compressed, cut or damaged."""
    how = draw(st.sampled_from(["plain"] * 10 + ["gz", "gz", "cut", "flip", "insert", "noise"]))
    if how == "gz":
        whole = gzip.compress(content, 1, mtime=0)
        if draw(st.integers(0, 3)):
            return f"{name}.gz", whole, answer
        return f"{name}.gz", whole[: draw(st.integers(0, len(whole) - 1))], REFUSED
    if how == "plain" or not content:
        return name, content, answer
    return name, damaged(draw, content, how), ANY


def damaged(draw: Any, content: bytes, how: str | None = None) -> bytes:
    """A file with some bytes other than they were."""
    how = how or draw(st.sampled_from(["cut", "flip", "insert", "noise"]))
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    at = at if draw(st.booleans()) else min(at, draw(st.integers(0, 200)))
    match how:
        case "cut":
            return content[:at]
        case "flip":
            bit = 1 << draw(st.integers(0, 7))
            return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        case "insert":
            return content[:at] + draw(st.binary(min_size=1, max_size=6)) + content[at:]
    return content[:at] + draw(st.binary(min_size=4, max_size=16)) + content[at + 8 :]
