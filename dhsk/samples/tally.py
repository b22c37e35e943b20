"""Counts of substrings: of strings that come in batches cut anywhere, and in order of columns."""

from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dhsk.compiled import compiled
from dhsk.errors import InputError
from dhsk.samples.texts import PAIR, Found

MOST: Final = 2**31 - 1
"""Largest number of distinct substrings, and of equal ones in a string."""

_DIGIT: Final = 8
"""Bits of a digit of the radix sort."""
_PLACE: Final = 32
"""Bits of the place of an entry."""


class Tally(ABC):
    """Numbers the substrings of some lengths, and counts those of a string.

    Takes 12 bytes for each number that there is room for, `room` in the beginning.
    """

    def __init__(self, low: int, high: int, room: int, dtype: DTypeLike) -> None:
        self.low, self.high = low, high
        self._totals, self._touched = np.zeros(room, np.int64), np.empty(room, np.int32)
        self._n_touched = 0
        self._rest = np.empty(0, dtype)

    @property
    @abstractmethod
    def detail(self) -> str:
        """How many kinds of substrings there are, in words."""

    @abstractmethod
    def _numbered(
        self, letters: NDArray[Any], ends: NDArray[np.int64], skip: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Numbers of the substrings that end at the letters from `skip` on, -1 for one to ignore.

        And where those of each string end.
        """

    def add(self, letters: NDArray[Any], ends: NDArray[np.int64]) -> Found:
        """Count the substrings of strings that end at `ends`; the last one may go on later.

        No substring with a letter 0 is counted. The entries are those of the strings that end.
        """
        skip, letters = len(self._rest), np.concatenate([self._rest, letters])
        ends = ends + skip
        numbers, row_ends = self._numbered(letters, ends, skip)
        open_from = int(ends[-1]) if len(ends) else 0
        self._rest = letters[max(open_from, len(letters) - self.high + 1) :]
        return self._tallied(numbers, row_ends)

    def _tallied(self, numbers: NDArray[np.int32], row_ends: NDArray[np.int64]) -> Found:
        """Entries of the strings whose substrings end at `row_ends`."""
        pairs = np.empty(self._n_touched + len(numbers), PAIR)
        ends = np.empty_like(row_ends)
        found = pairs["term"], pairs["count"], ends
        self._n_touched, largest = _tally(
            numbers, row_ends, self._totals, self._touched, self._n_touched, found
        )
        if largest > MOST:
            raise InputError(f"a string has a substring more than {MOST:,} times: cut it")
        return Found(pairs[: int(ends[-1]) if len(ends) else 0], ends)

    def _make_room(self) -> None:
        self._totals, self._touched = (
            np.concatenate([part, np.zeros_like(part)]) for part in (self._totals, self._touched)
        )

    def finish(self) -> None:
        """Free the memory of counting; nothing more can be counted."""
        self._totals, self._touched = np.empty(0, np.int64), np.empty(0, np.int32)


@compiled()
def _tally(
    numbers: Any, row_ends: Any, totals: Any, touched: Any, n_touched: int, found: Any
) -> tuple[int, int]:
    """Write entries of the strings that end; return how many substrings the last one has so far.

    And the largest count that was written.
    `totals` counts the substrings of one string, of which `touched` lists the first `n_touched`.
    """
    (entries, counts, entry_ends), n_entries, string, largest = found, 0, 0, 0
    for row in range(len(numbers) + 1):
        while string < len(row_ends) and row_ends[string] == row:
            for k in range(n_touched):
                number = touched[k]
                entries[n_entries], counts[n_entries] = number, totals[number]
                largest = max(largest, totals[number])
                totals[number] = 0
                n_entries += 1
            entry_ends[string] = n_entries
            n_touched, string = 0, string + 1
        if row < len(numbers) and numbers[row] >= 0:
            if totals[numbers[row]] == 0:
                touched[n_touched] = numbers[row]
                n_touched += 1
            totals[numbers[row]] += 1
    return n_touched, largest


@compiled()
def write_in_order(
    terms: Any, counts: Any, starts: Any, columns: Any, indices: Any, data: Any
) -> int:
    """Write columns and counts of consecutive rows, each in the order of columns; return how many.

    `starts` says where the entries of each row begin and end, if those of the first begin at its
    first value; `columns` has the column of each term, negative for one that is left out. Entries
    of all rows are sorted by column together, digit by digit, and dealt to their rows.
    """
    keys, spare = np.empty((2, len(terms)), np.uint64)
    rows, ends = np.empty(len(terms), np.int32), np.empty(len(starts), np.int64)
    n, largest = 0, 0
    for row in range(len(starts) - 1):
        ends[row] = n
        for k in range(starts[row] - starts[0], starts[row + 1] - starts[0]):
            column = columns[terms[k]]
            if column >= 0:
                keys[n], rows[k] = np.uint64(column) << np.uint64(_PLACE) | np.uint64(k), row
                largest = max(largest, column)
                n += 1
    shift, mask = np.uint64(_PLACE), np.uint64((1 << _DIGIT) - 1)
    while largest > 0:
        first = np.zeros((1 << _DIGIT) + 1, np.int64)
        for k in range(n):
            first[(keys[k] >> shift & mask) + np.uint64(1)] += 1
        first = np.cumsum(first)
        for k in range(n):
            digit = keys[k] >> shift & mask
            spare[first[digit]] = keys[k]
            first[digit] += 1
        keys, spare = spare, keys
        largest >>= _DIGIT
        shift += np.uint64(_DIGIT)
    for k in range(n):
        place = np.int64(keys[k] & np.uint64((1 << _PLACE) - 1))
        row = rows[place]
        indices[ends[row]], data[ends[row]] = keys[k] >> np.uint64(_PLACE), counts[place]
        ends[row] += 1
    return n
