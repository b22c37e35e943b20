"""Which columns of a table look like numbers of the samples rather than features."""

from collections.abc import Sequence
from typing import Final

FEWEST_ROWS: Final = 20
"""Rows below which different whole numbers in a column are no surprise."""

MOST_ROWS: Final = 10_000
"""Rows that are looked at, which bounds the memory: the rest may be anything."""

MOST_COLUMNS: Final = 3
"""Columns that may number the samples; of more, all are measurements."""


class Numbering:
    """Columns that hold a different whole number in every row, found while rows go by."""

    def __init__(self) -> None:
        self._rows = 0
        self._seen: dict[int, set[float]] = {}
        self._width = 0

    def add(self, row: Sequence[float]) -> None:
        """Look at the next row.

        Parameters
        ----------
        row
            Values, of every row as many.
        """
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
        """Return places of the columns in a row; none of a table of only such columns."""
        enough = self._rows >= FEWEST_ROWS and len(self._seen) < self._width
        return sorted(self._seen) if enough else []
