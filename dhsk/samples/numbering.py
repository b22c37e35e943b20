"""Columns of a table that number its rows."""

from collections.abc import Sequence
from typing import Final

FEWEST_ROWS: Final = 20
"""Least number of rows that number samples: in fewer, distinct numbers are likely by chance."""

MOST_ROWS: Final = 10_000
"""Largest number of rows in which numbers of samples are looked for, which bounds the memory."""

MOST_COLUMNS: Final = 3
"""Largest number of columns that number samples; if there are more, all are features."""

_SPREAD: Final = 10
"""Numbers of samples lie in a range of at most so many times their count: rows may be left out, or
be in another order."""


class Numbering:
    """Finds columns with a different whole number in every row, one row at a time."""

    def __init__(self) -> None:
        self._rows = 0
        self._seen: dict[int, set[float]] = {}
        self._width = 0

    def add(self, row: Sequence[float]) -> None:
        """Look at the next row; all rows have the same number of values."""
        if not self._rows:
            self._width = len(row)
            self._seen = {column: set() for column in range(len(row))}
        self._rows += 1
        if self._rows > MOST_ROWS or not self._seen:
            return
        for column in list(self._seen):
            value, seen = row[column], self._seen[column]
            if not value.is_integer() or value in seen:
                del self._seen[column]
            else:
                seen.add(value)
        if self._rows == FEWEST_ROWS and len(self._seen) > MOST_COLUMNS:
            self._seen.clear()

    def found(self) -> list[int]:
        """Return the positions of such columns; none if all columns are such."""
        if self._rows < FEWEST_ROWS or len(self._seen) == self._width:
            return []
        return [c for c, seen in self._seen.items() if max(seen) - min(seen) < _SPREAD * len(seen)]
