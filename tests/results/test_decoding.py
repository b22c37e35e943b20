"""JSON -> dataclasses, and what an error says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dhsk.errors import InputError
from dhsk.results.schema import decoded


@dataclass(frozen=True)
class Inner:
    """A part."""

    size: int


@dataclass(frozen=True)
class Outer:
    """Every kind of field."""

    number: float
    flag: bool
    text: str
    pairs: tuple[tuple[str, str], ...]
    part: Inner | None
    parts: tuple[Inner, ...]
    name: str | float
    several: int | Sequence[int]
    notes: Mapping[str, Any] | None = None
    more: float = 7.0


WHOLE = {
    "number": 1, "flag": True, "text": "t", "pairs": [["a", "b"]], "part": {"size": 1},
    "parts": [{"size": 2}, {"size": 3}], "name": 3, "several": [4, 5], "unknown": None,
}  # fmt: skip


def test_every_kind_of_field_is_read() -> None:
    """Lists become tuples, objects dataclasses; what may be absent has its default."""
    assert decoded(Outer, WHOLE) == Outer(
        1, True, "t", (("a", "b"),), Inner(1), (Inner(2), Inner(3)), 3, (4, 5)
    )
    other = decoded(
        Outer, WHOLE | {"part": None, "name": "x", "several": 4, "notes": {"k": [1]}, "more": 2.5}
    )
    assert (other.part, other.name, other.several) == (None, "x", 4)
    assert (other.notes, other.more) == ({"k": [1]}, 2.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": "x"}, "'number' of the results must be a finite number, but it is 'x'"),
        ({"number": float("nan")}, "'number' .* a finite number, but it is nan"),
        ({"number": True}, "'number' .* a finite number, but it is True"),
        ({"flag": 1}, "'flag' .* true or false, but it is 1"),
        ({"text": None}, "'text' .* text, but it is None"),
        ({"pairs": [["a"]]}, r"'pairs\[0\]' .* a list of 2, but it is \['a'\]"),
        ({"pairs": "ab"}, "'pairs' .* a list, but it is 'ab'"),
        ({"part": {}}, r"have no 'part\.size'"),
        ({"part": 3}, "'part' .* an object with named values, but it is 3"),
        ({"parts": [{"size": 1}, {"size": 1.5}]}, r"'parts\[1\]\.size' .* a whole number"),
        ({"several": "many"}, "'several' .* a list, but it is 'many'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(changes: dict[str, Any], message: str) -> None:
    """What it should be, and what it is, in one line."""
    with pytest.raises(InputError, match=message) as caught:
        decoded(Outer, WHOLE | changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["number", "flag", "text", "pairs", "part", "parts", "name"])
def test_a_missing_key_is_named(key: str) -> None:
    """With what to do."""
    lacking = {name: value for name, value in WHOLE.items() if name != key}
    with pytest.raises(InputError, match=rf"have no 'rows\[3\]\.{key}'.*results\.json"):
        decoded(Outer, lacking, "rows[3]")
