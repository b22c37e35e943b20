"""Counts of substrings in a fixed number of columns, by a hash of their letters.

Model files depend on the hash: it never changes. With m(x) the finaliser of SplitMix64 (Steele et
al. 2014) and all arithmetic modulo 2**64, a character has the value m(code point), and a token the
first eight bytes of BLAKE2b of its UTF-8, as a little-endian number. The substring of the values
v_1 ... v_l has the hash h, the sum of v_i B**(l - i), and of n columns the number
floor(floor(m(h) / 2**32) n / 2**32). No character has the value 0, so that substrings of different
lengths have different sums. A canonical substring has the lesser h of both strands.

Counts get no random signs: square roots need none below 0.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.compiled import compiled
from dhsk.samples.alphabets import FIRST, SECOND, mixed
from dhsk.samples.tally import Tally

_BASE: Final = 0x9E3779B97F4A7C15
"""B, an odd number: 2**64 over the golden ratio."""
_INVERSE: Final = pow(_BASE, -1, 2**64)


class HashedTable(Tally):
    """Columns of substrings of some lengths, and a count of those of a string.

    Takes 12 bytes a column, and nothing for a substring.

    Parameters
    ----------
    low, high
        Least and largest length.
    n_features
        Number of columns.
    canonical
        Whether substrings of the characters A, C, G, T have the column of their reverse complement.
    """

    def __init__(self, low: int, high: int, n_features: int, *, canonical: bool = False) -> None:
        super().__init__(low, high, n_features, np.uint64)
        self._n_features = n_features
        self._bases = mixed(np.frombuffer(b"ACGT" if canonical else b"", np.uint8).astype("u8"))
        self._powers = np.array([pow(_BASE, k, 2**64) for k in range(high + 1)], np.uint64)

    @property
    def detail(self) -> str:
        """How many columns there are, in words."""
        return f"{self._n_features:,} columns"

    def _numbered(
        self, letters: NDArray[Any], ends: NDArray[np.int64], skip: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        shape = self.low, self.high, self._n_features
        columns, row_ends = _hash(letters, ends, skip, shape, self._bases, self._powers)
        return columns, row_ends


@compiled()
def _hash(letters: Any, ends: Any, skip: int, shape: Any, bases: Any, powers: Any) -> Any:
    """Columns of the substrings that end at each letter from `skip` on, and where strings end.

    `shape` has the least and the largest length, and the number of columns. The sum of a substring
    is the difference of those of all letters before its end and its start; so is that of its
    reverse complement, whose sums have factors of falling powers.
    """
    low, high, n_features = shape
    base, inverse, n_columns = np.uint64(_BASE), np.uint64(_INVERSE), np.uint64(n_features)
    canonical = len(bases) > 0
    sums, turned_sums = np.zeros((2, len(letters) + 1), np.uint64)
    if canonical:
        a, c, g, t = bases[0], bases[1], bases[2], bases[3]
        for i in range(len(letters)):  # by itself, so that it has no branches
            own = letters[i]
            turned_sums[i + 1] = t if own == a else g if own == c else c if own == g else a
    columns = np.empty((len(letters) + len(ends)) * (high - low + 1), np.int32)
    row_ends, row, first = np.empty_like(ends), 0, 0
    for string in range(len(ends) + 1):
        end, run = ends[string] if string < len(ends) else len(letters), 0
        for i in range(first, end):
            run = 0 if letters[i] == np.uint64(0) else run + 1
            sums[i + 1] = sums[i] * base + letters[i]
            if canonical:
                turned_sums[i + 1] = (turned_sums[i] + turned_sums[i + 1]) * inverse
            for length in range(low, (min(run, high) if i >= skip else low - 1) + 1):
                begin, power = i + 1 - length, powers[length]
                h = sums[i + 1] - sums[begin] * power
                if canonical:
                    h = min(h, turned_sums[i + 1] * power - turned_sums[begin])
                h = (h ^ h >> np.uint64(30)) * np.uint64(FIRST)
                h = (h ^ h >> np.uint64(27)) * np.uint64(SECOND)
                h ^= h >> np.uint64(31)
                columns[row] = (h >> np.uint64(32)) * n_columns >> np.uint64(32)
                row += 1
        if string < len(ends):
            if low == 0:  # the empty substring at the end
                columns[row] = 0
                row += 1
            row_ends[string], first = row, end
    return columns[:row], row_ends
