"""Values of a JSON object, each checked as it is taken; an error names its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError


@dataclass(frozen=True)
class Fields:
    """A JSON object that knows its place."""

    values: Mapping[str, Any]
    place: str

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            raise wrong(self.place or "data", "an object with named values", self.values)

    def path(self, key: str) -> str:
        """Place of a value."""
        return f"{self.place}.{key}" if self.place else key

    def get(self, key: str) -> Any:
        """Any value; it must be there."""
        if key not in self.values:
            raise InputError(
                f"the results have no '{self.path(key)}', so no report can be made of them; "
                "give the whole content of a results.json that `dhsk cv` wrote"
            )
        return self.values[key]

    def text(self, key: str) -> str:
        """Any value in words."""
        return str(self.get(key))

    def number(self, key: str) -> float:
        """A finite number."""
        return number_at(self.get(key), self.path(key))

    def optional(self, key: str) -> float | None:
        """A finite number or None."""
        return None if self.get(key) is None else self.number(key)

    def number_if_any(self, key: str) -> float | None:
        """A finite number, or None where there is none: what older files lack."""
        return None if self.values.get(key) is None else self.number(key)

    def text_if_any(self, key: str) -> str:
        """Any value in words, or nothing where there is none."""
        return "" if self.values.get(key) is None else self.text(key)

    def whole(self, key: str) -> int:
        """A number without its decimals."""
        return int(self.number(key))

    def flag(self, key: str) -> bool:
        """True or False, and nothing like it."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise wrong(self.path(key), "true or false", value)
        return value

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self.get(key)
        if not isinstance(value, list | tuple):
            raise wrong(self.path(key), "a list", value)
        return list(value)

    def vector(self, key: str, length: int | None = None) -> NDArray[np.float64]:
        """Finite numbers, one per class if there is a length."""
        values = self.items(key)
        if length is not None and len(values) != length:
            raise wrong(self.path(key), f"a list of {length} numbers, one per class", values)
        return np.array([number_at(v, f"{self.path(key)}[{i}]") for i, v in enumerate(values)])

    def counts(self, key: str, n: int) -> NDArray[np.int64]:
        """Whole numbers, (n, n), for every class and every class."""
        rows = self.items(key)
        square = len(rows) == n and all(
            isinstance(row, list | tuple) and len(row) == n for row in rows
        )
        if not square or n == 0:
            wanted = f"{n} rows of {n} counts, for the {n} names in 'classes'"
            raise wrong(self.path(key), wanted, rows)
        flat = [number_at(v, f"{self.path(key)}[{i}]") for i, row in enumerate(rows) for v in row]
        return np.array(flat).astype(np.int64).reshape(n, n)

    def part(self, key: str) -> "Fields":
        """An object within this one."""
        return Fields(self.get(key), self.path(key))

    def part_if_any(self, key: str) -> "Fields | None":
        """An object within this one, or None where there is none."""
        return None if self.values.get(key) is None else self.part(key)

    def parts(self, key: str) -> "list[Fields]":
        """A list of objects."""
        return [Fields(v, f"{self.path(key)}[{i}]") for i, v in enumerate(self.items(key))]


def number_at(value: Any, place: str) -> float:
    """Return a finite number, whose place an error names."""
    if not isinstance(value, Real) or not isfinite(value):
        raise wrong(place, "a finite number", value)
    return float(value)


def wrong(place: str, wanted: str, value: object) -> InputError:
    """Return the error of a value that is not what it must be."""
    found = " ".join(repr(value).split())[:80]
    return InputError(f"'{place}' of the results must be {wanted}, but it is {found}")
