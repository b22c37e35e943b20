"""Counts of substrings: distinct ones are numbered in a hash table of their exact codes.

A code packs the numbers of the letters, from 1 on, into as few 64-bit words as they need, so that
codes of different substrings, of any lengths, differ. Equal hashes never merge two substrings.

Rejected: a table of all possible substrings (the alphabet to the power of the length); two bits a
letter (an alphabet known before); sorting (a count a record for many short ones). Functions of
numba do not call each other here: with calls that take arrays a lookup took 40 ns, without 6 to 10.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.compiled import compiled
from dhsk.errors import InputError
from dhsk.samples.tally import MOST, Tally

_WORD: Final = 64
_FEWEST_BITS: Final = 3
"""Bits of a letter in the beginning: seven letters, such as A, C, G, T, N."""
_FEWEST: Final = 2**11
"""Number of substrings that there is room for in the beginning, a power of 2."""
_FACTOR: Final = 0x9E3779B97F4A7C15
"""Odd factor of a multiplicative hash: 2**64 over the golden ratio."""

Words = NDArray[np.uint64]
Letters = NDArray[np.int32]


class SubstringTable(Tally):
    """Numbers of distinct substrings of some lengths, and a count of those of a string.

    Takes 28 bytes and its code for each distinct substring that there is room for, at most twice as
    many as there are.

    Parameters
    ----------
    low, high
        Least and largest length.
    canonical
        Whether substrings of the letters 1, 2, 3, 4 (A, C, G, T) count as the reverse complement
        where that comes first.
    """

    def __init__(self, low: int, high: int, *, canonical: bool = False) -> None:
        super().__init__(low, high, _FEWEST, np.int32)
        self.canonical = canonical
        self.size = 0
        """Number of distinct substrings."""
        self.learns = True
        """Whether substrings that are not known get a number; others are ignored."""
        self.bits = _FEWEST_BITS
        self._codes = np.zeros((_FEWEST, self._width), np.uint64)
        self._place()

    @property
    def _width(self) -> int:
        """Words of a code."""
        return -(-self.high // (_WORD // self.bits))

    @property
    def detail(self) -> str:
        """How many substrings there are, in words."""
        return f"{self.size:,} different substrings"

    def _numbered(
        self, letters: Letters, ends: NDArray[np.int64], skip: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        self._widen(int(letters.max(initial=0)))
        most = (len(letters) + len(ends)) * (self.high - self.low + 1)
        codes, row_ends = np.empty((most, self._width), np.uint64), np.empty_like(ends)
        given = letters, ends, skip, (self.low, self.high, self.bits), self.canonical
        if self._width == 1:
            n = _pack_narrow(*given, codes[:, 0], row_ends)
        else:
            n = _pack_wide(*given, codes, row_ends)
        return self._numbers(codes[:n]), row_ends

    def _numbers(self, codes: Words) -> NDArray[np.int32]:
        """Numbers of codes; -1 for those that are not known."""
        numbers, done = np.empty(len(codes), np.int32), 0
        number = _number_narrow if self._width == 1 else _number_wide
        while True:
            given = codes, done, self._slots, self._codes, self.size, self.learns, numbers
            done, self.size = number(*given)
            if done == len(codes):
                return numbers
            self._grow()

    def know(self, letters: Letters, ends: NDArray[np.int64]) -> bool:
        """Number whole strings in their order, and learn no others; False if two are equal.

        Each is one substring, and not counted.
        """
        self._widen(int(letters.max(initial=0)))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        lengths = ends - starts
        codes = np.zeros((len(ends), self._width), np.uint64)
        for k in range(int(lengths.max(initial=0))):
            has = np.flatnonzero(lengths > k)
            self._put(codes, has, k, letters[starts[has] + k])
        numbers = self._numbers(codes)
        self.learns = False
        return bool((numbers == np.arange(len(codes))).all())

    def finish(self) -> None:
        """Free all memory but that of the codes; nothing more can be counted."""
        super().finish()
        self._slots = np.empty(0, np.int32)

    def letter(self, k: int, rows: Any = slice(None)) -> NDArray[np.uint64]:
        """Letter k of distinct substrings, by default of all; 0 if they are shorter."""
        per_word = _WORD // self.bits
        shift, mask = self.bits * (k % per_word), (1 << self.bits) - 1
        words: Words = self._codes[: self.size, k // per_word][rows]
        return (words >> np.uint64(shift)) & np.uint64(mask)

    def _put(self, codes: Words, rows: Any, k: int, letters: NDArray[Any]) -> None:
        per_word = _WORD // self.bits
        codes[rows, k // per_word] |= letters.astype(np.uint64) << np.uint64(
            self.bits * (k % per_word)
        )

    def _widen(self, largest: int) -> None:
        """Make room for letters up to a number: codes change, numbers stay."""
        if largest < 1 << self.bits:
            return
        old = [self.letter(k) for k in range(self.high)]
        self.bits = largest.bit_length()
        codes = np.zeros((len(self._codes), self._width), np.uint64)
        for k, letters in enumerate(old):
            self._put(codes, slice(self.size), k, letters)
        self._codes = codes
        self._place()

    def _grow(self) -> None:
        """Make room for twice as many substrings."""
        if len(self._codes) >= MOST:
            raise InputError(
                f"there are more than {MOST:,} distinct substrings: count shorter ones"
            )
        self._codes = np.concatenate([self._codes, np.zeros_like(self._codes)])
        self._make_room()
        self._place()

    def _place(self) -> None:
        """Fill the slots anew: four times as many as there is room for codes."""
        self._slots = np.full(4 * len(self._codes), -1, np.int32)
        size, self.size = self.size, 0
        self._numbers(self._codes[:size].copy())


# The functions do not call each other: each array that a call takes costs more than a substring.


@compiled()
def _pack_narrow(
    letters: Any, ends: Any, skip: int, shape: Any, canonical: bool, codes: Any, row_ends: Any
) -> int:
    """Write codes of one word of the substrings that end at each letter from `skip` on.

    Returns their number. `shape` has the least and the largest length, and the bits of a letter.
    The word of the last letters is shifted from letter to letter; with `canonical` three more are:
    of the reverse complement, and of both with the first letter in the highest bits, to compare.
    """
    low, high, bits = shape
    step, top, ones = np.uint64(bits), np.uint64(bits * (high - 1)), ~np.uint64(0)
    row = first = 0
    for string in range(len(ends) + 1):
        end = ends[string] if string < len(ends) else len(letters)
        run, word, turned = 0, np.uint64(0), np.uint64(0)
        order, turned_order = np.uint64(0), np.uint64(0)
        for i in range(first, end):
            own = np.uint64(letters[i])
            run = 0 if letters[i] == 0 else run + 1
            word = word >> step | own << top
            if canonical:
                pair = np.uint64(5) - own
                order, turned = order << step | own, turned << step | pair
                turned_order = turned_order >> step | pair << top
            for length in range(low, (min(run, high) if i >= skip else low - 1) + 1):
                if length == 0:
                    codes[row] = np.uint64(0)
                else:
                    rest, mask = np.uint64(bits * (high - length)), np.uint64(64 - bits * length)
                    codes[row] = word >> rest
                    if canonical and turned_order >> rest < order & ones >> mask:
                        codes[row] = turned & ones >> mask
                row += 1
        if string < len(ends):
            if low == 0:  # the empty substring at the end
                codes[row] = np.uint64(0)
                row += 1
            row_ends[string], first = row, end
    return row


@compiled()
def _pack_wide(
    letters: Any, ends: Any, skip: int, shape: Any, canonical: bool, codes: Any, row_ends: Any
) -> int:
    """Write codes of several words, see `_pack_narrow`: each anew from its letters."""
    low, high, bits = shape
    step, per_word = np.uint64(bits), _WORD // bits
    row = first = 0
    for string in range(len(ends) + 1):
        end, run = ends[string] if string < len(ends) else len(letters), 0
        for i in range(first, end):
            run = 0 if letters[i] == 0 else run + 1
            for length in range(low, (min(run, high) if i >= skip else low - 1) + 1):
                begin, turn = i - length + 1, False
                for k in range(length if canonical else 0):
                    own, pair = letters[begin + k], 5 - letters[i - k]
                    if own != pair:
                        turn = pair < own
                        break
                k = 0
                for w in range(codes.shape[1]):
                    word, shift = np.uint64(0), np.uint64(0)
                    for _ in range(min(per_word, length - k)):
                        letter = 5 - letters[i - k] if turn else letters[begin + k]
                        word |= np.uint64(letter) << shift
                        shift += step
                        k += 1
                    codes[row, w] = word
                row += 1
        if string < len(ends):
            if low == 0:  # the empty substring at the end
                codes[row].fill(0)
                row += 1
            row_ends[string], first = row, end
    return row


def _numbering(known_width: int) -> Any:
    """Function that numbers codes of so many words, which is then a constant; 0 for any number."""

    @compiled()
    def number(
        codes: Any, first: int, slots: Any, known: Any, size: int, learns: bool, numbers: Any
    ) -> tuple[int, int]:
        """Number codes, -1 if not known, until the table is full; return the row after, and size.

        A slot has the number of a code, at its hash or after.
        """
        last, width = np.uint64(len(slots) - 1), known_width or codes.shape[1]
        for row in range(first, len(codes)):
            h = np.uint64(0)
            for w in range(width):
                h = (h ^ codes[row, w]) * np.uint64(_FACTOR)
                h ^= h >> np.uint64(32)
            at = h & last
            while slots[at] >= 0:
                w = 0
                while w < width and known[slots[at], w] == codes[row, w]:
                    w += 1
                if w == width:
                    break
                at = (at + np.uint64(1)) & last
            if slots[at] < 0 and learns:
                if size == len(known):
                    return row, size
                slots[at] = size
                for w in range(width):
                    known[size, w] = codes[row, w]
                size += 1
            numbers[row] = slots[at]
        return len(codes), size

    return number


_number_narrow, _number_wide = _numbering(1), _numbering(0)
