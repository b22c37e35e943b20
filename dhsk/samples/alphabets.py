"""What a letter of a string is, and the number that it counts by.

Where substrings are counted exactly, letters get the numbers 1, 2, 3, ... as they come; where they
are hashed, the values that `hashed` defines. 0 stands for a letter that is not counted.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

FIRST: Final = 0xBF58476D1CE4E5B9
SECOND: Final = 0x94D049BB133111EB
"""With the first, the factors of the finaliser of SplitMix64."""

_CHARACTERS: Final = 0x110000
"""Number of characters of Unicode."""
_ASCII: Final = 128

_TOKENS: Final = 2**16
"""Number of tokens whose values are kept."""


class Characters:
    """Each character is a letter; or only A, C, G and T (U), in upper and lower case."""

    def __init__(self, *, dna: bool, hashed: bool) -> None:
        every = np.arange(_CHARACTERS, dtype=np.uint64)
        self._number: NDArray[Any] = mixed(every) if hashed else np.zeros(_CHARACTERS, np.int32)
        self._points = np.zeros(1, np.uint32)
        self._learns = not hashed
        if dna:
            bases = np.frombuffer(b"ACGT", np.uint8)
            if not hashed:
                self._learn(bases)
            numbers = self._number[bases]
            self._number[:] = 0
            for same in (b"ACGT", b"acgt", b"ACGU", b"acgu"):
                self._number[np.frombuffer(same, np.uint8)] = numbers
            self._learns = False

    def _learn(self, points: NDArray[Any]) -> None:
        self._number[points] = np.arange(len(points)) + len(self._points)
        self._points = np.concatenate([self._points, points.astype(np.uint32)])

    def numbers(self, text: str) -> NDArray[Any]:
        """Numbers of the characters of a text."""
        found = self._known(text)
        if self._learns and not found.all():
            self._learn(np.unique(_points_of(text)[found == 0]))
            found = self._known(text)
        return found

    def _known(self, text: str) -> NDArray[Any]:
        if text.isascii() and self._number[:_ASCII].max() < 256:  # three times as fast
            table = bytes(self._number[:256].astype(np.uint8))
            found = np.frombuffer(text.encode().translate(table), np.uint8)
            return found.astype(self._number.dtype)
        numbers: NDArray[Any] = self._number[_points_of(text)]
        return numbers

    def strings(self, terms: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Numbers of the characters of several texts, and how many each has."""
        return self.numbers("".join(terms)), np.array([len(term) for term in terms], np.int64)

    def close(self) -> None:
        """Learn no other characters: they have the number 0."""
        self._learns = False

    def ranks(self) -> NDArray[np.uint64]:
        """Characters are in the order of Unicode."""
        return np.argsort(np.argsort(self._points)).astype(np.uint64)

    def terms(self, columns: Iterable[NDArray[np.uint64]], n: int, width: int) -> list[str]:
        """The n substrings with some characters."""
        points = np.zeros((n, width), np.uint32)
        for k, column in enumerate(columns):
            points[:, k] = self._points[column]
        found: list[str] = points.view(f"U{width}")[:, 0].tolist()
        return found


def _points_of(text: str) -> NDArray[Any]:
    if text.isascii():
        return np.frombuffer(text.encode(), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


class Tokens:
    """Each run of characters without blanks is a letter."""

    def __init__(self, *, hashed: bool) -> None:
        self._numbers: dict[str, int] = defaultdict(count(1).__next__)
        self._dtype = np.uint64 if hashed else np.int32
        self._number: Callable[[str], int] = (
            lru_cache(_TOKENS)(_token_value) if hashed else self._numbers.__getitem__
        )

    def numbers(self, text: str) -> NDArray[Any]:
        """Numbers of the tokens of a text."""
        return np.array(list(map(self._number, text.split())), self._dtype)

    def strings(self, terms: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Numbers of the tokens of several texts, and how many each has."""
        lengths = [len(term.split()) for term in terms]
        return self.numbers(" ".join(terms)), np.array(lengths, np.int64)

    def close(self) -> None:
        """Learn no other tokens: they have the number 0."""
        self._number = lambda token: self._numbers.get(token, 0)

    def ranks(self) -> NDArray[np.uint64]:
        """Tokens are in the order of their characters."""
        ranks = np.zeros(len(self._numbers) + 1, np.uint64)
        ranks[[self._numbers[token] for token in sorted(self._numbers)]] = np.arange(1, len(ranks))
        return ranks

    def terms(self, columns: Iterable[NDArray[np.uint64]], n: int, width: int) -> list[str]:
        """The n substrings with some tokens, joined by blanks."""
        del width
        tokens, found = ["", *self._numbers], [""] * n
        for column in columns:
            for row, letter in enumerate(column.tolist()):
                if letter:
                    found[row] = f"{found[row]} {tokens[letter]}" if found[row] else tokens[letter]
        return found


def _token_value(token: str) -> int:
    digest = blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64, a bijection that has 0 at 0 alone."""
    x = (x ^ x >> np.uint64(30)) * np.uint64(FIRST)
    x = (x ^ x >> np.uint64(27)) * np.uint64(SECOND)
    return x ^ x >> np.uint64(31)


Alphabet: TypeAlias = Characters | Tokens
