"""Entries of rows in the order of their columns."""

from typing import Any, Final

import numpy as np

from dhsk.compiled import compiled

_DIGIT: Final = 8
"""Bits of a digit of the radix sort."""
_PLACE: Final = 32
"""Bits of the place of an entry."""


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
