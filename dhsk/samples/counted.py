"""Samples of strings: counts of their substrings, in a temporary file."""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import blocks
from dhsk.errors import InputError
from dhsk.objects.places import size_of
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call
from dhsk.samples.documents import Documents
from dhsk.samples.hashed import CharacterValues, HashedTable, TokenValues
from dhsk.samples.sequences import Lines, Records, Sequences, Strings
from dhsk.samples.spectrum import Spectrum, known_features
from dhsk.samples.substrings import Letters, SubstringTable
from dhsk.samples.tally import Tally
from dhsk.samples.texts import EntryFile, TextSamples, row_pointers

_BATCH: Final = 2**17
"""Number of substrings that are counted together."""

_PAIRS: Final = str.maketrans("ACGT", "TGCA")

_CHARACTERS: Final = 0x110000
"""Number of characters of Unicode."""
_ASCII: Final = 128


_UNPACKED: Final = 4
"""About as many letters as there are in a byte of a compressed file."""


# Letters


class _Alphabet(ABC):
    """Numbers of letters, from 1 on; 0 for one that is not counted."""

    learns = True
    """Whether new letters get a number."""

    @abstractmethod
    def numbers(self, text: str) -> Letters:
        """Numbers of the letters of a text."""

    def strings(self, terms: Sequence[str]) -> tuple[Letters, NDArray[np.int64]]:
        """Numbers of the letters of several texts, and how many each has."""
        parts = [self.numbers(term) for term in terms]
        return np.concatenate(parts), np.array([len(part) for part in parts], np.int64)

    @abstractmethod
    def ranks(self) -> NDArray[np.uint64]:
        """Place of each letter in the order of all, from 1 on; 0 for 0."""

    @abstractmethod
    def terms(self, columns: Iterable[NDArray[np.uint64]], n: int, width: int) -> list[str]:
        """The n substrings with some letters; each column has those at one place, 0 for none."""


class _Characters(_Alphabet):
    """Each character is a letter; or only A, C, G and T, in upper and lower case."""

    def __init__(self, *, dna: bool) -> None:
        self._number = np.zeros(_CHARACTERS, np.int32)
        self._points = np.zeros(1, np.uint32)
        if dna:
            self._learn(np.frombuffer(b"ACGT", np.uint8))
            for same in (b"acgt", b"ACGU", b"acgu"):
                self._number[np.frombuffer(same, np.uint8)] = range(1, 5)
            self.learns = False

    def _learn(self, points: NDArray[Any]) -> None:
        self._number[points] = np.arange(len(points)) + len(self._points)
        self._points = np.concatenate([self._points, points.astype(np.uint32)])

    def numbers(self, text: str) -> Letters:
        """Numbers of the characters of a text."""
        if text.isascii() and self._number[:_ASCII].max() < 256:
            found = self._of_ascii(text)  # three times as fast
            if not self.learns or found.all():
                return found
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        found = self._number[points]
        if self.learns and not found.all():
            self._learn(np.unique(points[found == 0]))
            found = self._number[points]
        return found

    def _of_ascii(self, text: str) -> Letters:
        table = bytes(self._number[:256].astype(np.uint8))
        return np.frombuffer(text.encode().translate(table), np.uint8).astype(np.int32)

    def strings(self, terms: Sequence[str]) -> tuple[Letters, NDArray[np.int64]]:
        """Numbers of the characters of several texts, and how many each has."""
        return self.numbers("".join(terms)), np.array([len(term) for term in terms], np.int64)

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


class _Tokens(_Alphabet):
    """Each run of characters without blanks is a letter."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}

    def numbers(self, text: str) -> Letters:
        """Numbers of the tokens of a text."""
        tokens, number = text.split(), self._number
        if self.learns:
            for token in tokens:
                number.setdefault(token, len(number) + 1)
        return np.array([number.get(token, 0) for token in tokens], np.int32)

    def ranks(self) -> NDArray[np.uint64]:
        """Tokens are in the order of their characters."""
        ranks = np.zeros(len(self._number) + 1, np.uint64)
        ranks[[self._number[token] for token in sorted(self._number)]] = np.arange(1, len(ranks))
        return ranks

    def terms(self, columns: Iterable[NDArray[np.uint64]], n: int, width: int) -> list[str]:
        """The n substrings with some tokens, joined by blanks."""
        del width
        tokens, found = ["", *self._number], [""] * n
        for column in columns:
            for row, letter in enumerate(column.tolist()):
                if letter:
                    found[row] = f"{found[row]} {tokens[letter]}" if found[row] else tokens[letter]
        return found


_Numbers: TypeAlias = _Alphabet | CharacterValues | TokenValues


# Counting


def open_spectrum(documents: Documents, spectrum: Spectrum) -> TextSamples:
    """Count the substrings of all strings, which reads them once.

    Without a vocabulary it is learnt. Takes the memory of the distinct substrings, or of hashed
    columns, and of a batch. Raises `InputError` if a string cannot be read, there is none, or no
    substring is left.
    """
    low, high = spectrum.range
    tokens, dna = spectrum.letters == "tokens", spectrum.letters == "dna"
    known = known_features(spectrum)
    if spectrum.n_features is not None:
        hashed = HashedTable(low, high, spectrum.n_features, canonical=spectrum.canonical)
        values = TokenValues() if tokens else CharacterValues(dna=dna)
        entries, starts = _count(documents, spectrum, hashed, values)
    else:
        alphabet = _Tokens() if tokens else _Characters(dna=dna)
        table = SubstringTable(low, high, canonical=spectrum.canonical)
        if known is not None:
            _know(table, alphabet, spectrum, known)
        entries, starts = _count(documents, spectrum, table, alphabet)
    if known is None:
        known, columns = _vocabulary(documents.source, spectrum, table, alphabet, entries)
        spectrum = replace(spectrum, vocabulary=known)
    else:
        columns = np.arange(len(known), dtype=np.int32)
    indptr = row_pointers(entries, starts, columns)
    shape = len(starts) - 1, len(known)
    return TextSamples(
        documents.source, shape, int(indptr[-1]), indptr, known, spectrum, documents, entries,
        starts, columns,
    )  # fmt: skip


def _count(
    documents: Documents, spectrum: Spectrum, table: Tally, alphabet: _Numbers
) -> tuple[EntryFile, NDArray[np.int64]]:
    """Entries of all strings, and where those of each begin and end."""
    low, high = spectrum.range
    size = max(1, _BATCH // (high - low + 1))
    by_token = spectrum.letters == "tokens"
    batches = _token_batches if by_token else _character_batches
    entries, starts = EntryFile(), array("q", [0])
    report, done, expected = passes_of_call().report, 0, _expected_letters(documents)
    for letters, ends in batches(documents, alphabet, size):
        found = table.add(letters, ends)
        starts.extend((found.ends + entries.size).tolist())
        entries.append(found.pairs)
        done += len(letters)
        report(Progress("letters", done, max(done + 1, expected), table.detail))
    report(Progress("letters", done, done))
    if len(starts) == 1:
        raise InputError(f"{documents.source} is empty: it has no strings")
    table.finish()
    return entries, np.array(starts, np.int64)


def _expected_letters(documents: Documents) -> int:
    """About as many letters as there are to count; 0 if that is not known."""
    if isinstance(documents, Strings):
        strings = documents.strings
        known = strings if isinstance(strings, list | tuple) else ()
        return sum(len(text) for text in known if isinstance(text, str))
    if isinstance(documents, Lines | Records):
        place = documents.origin.path
        return (size_of(place) or 0) * (_UNPACKED if str(place).endswith(".gz") else 1)
    return 0


_Batch = tuple[NDArray[Any], NDArray[np.int64]]


def _parts(documents: Documents, size: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield the letters of strings, joined, and where strings end in them; the last may go on."""
    if isinstance(documents, Sequences):
        yield from documents.parts()
        return
    texts, ends, n = list[str](), array("q"), 0
    for text in documents.texts():
        texts.append(text)
        n += len(text)
        ends.append(n)
        if n >= size:
            yield "".join(texts), np.array(ends, np.int64)
            texts, ends, n = [], array("q"), 0
    yield "".join(texts), np.array(ends, np.int64)


def _character_batches(documents: Documents, alphabet: _Numbers, size: int) -> Iterator[_Batch]:
    """Yield letters of strings, some at a time, and where strings end in them."""
    row = 0
    for text, ends in _parts(documents, size):
        if "\0" in text:
            _refuse_nul(documents, row + int(np.searchsorted(ends, text.index("\0"), "right")))
        row, done = row + len(ends), 0
        for start in range(0, max(len(text), 1), size):
            last = int(np.searchsorted(ends, start + size, "right"))
            yield alphabet.numbers(text[start : start + size]), ends[done:last] - start
            done = last


def _token_batches(documents: Documents, alphabet: _Numbers, size: int) -> Iterator[_Batch]:
    """Yield tokens of strings, some at a time, and where strings end in them."""
    parts, ends, n = list[NDArray[Any]](), array("q"), 0
    for row, text in enumerate(documents.texts()):
        if "\0" in text:
            _refuse_nul(documents, row)
        parts.append(alphabet.numbers(text))
        n += len(parts[-1])
        ends.append(n)
        if n >= size:
            yield np.concatenate(parts), np.array(ends, np.int64)
            parts, ends, n = [], array("q"), 0
    if len(ends):
        yield np.concatenate(parts), np.array(ends, np.int64)


def _refuse_nul(documents: Documents, row: int) -> NoReturn:
    raise InputError(
        f"{documents.place(row)} holds NUL characters, as binary files do: leave it out, or save it"
        " as text"
    )


def _know(
    table: SubstringTable, alphabet: _Alphabet, spectrum: Spectrum, known: Sequence[str]
) -> None:
    """Number the substrings of a vocabulary in their order; InputError if one cannot be."""
    if not known:
        raise InputError("the vocabulary has no substrings")
    low, high = spectrum.range
    letters, lengths = alphabet.strings(known)
    alphabet.learns = False
    ends = np.cumsum(lengths)
    fit = (lengths >= low) & (lengths <= high)
    fit[np.searchsorted(ends, np.flatnonzero(letters == 0), "right")] = False
    if spectrum.canonical:
        fit &= np.array([_turned(term) >= _bases(term) for term in known])
    if not fit.all():
        term = known[int(np.argmin(fit))]
        raise InputError(f"{term!r} in the vocabulary is none of the {spectrum.label}")
    if not table.know(letters, ends):
        raise InputError("a substring is in the vocabulary more than once")


def _turned(term: str) -> str:
    """The reverse complement of a string of DNA."""
    return _bases(term).translate(_PAIRS)[::-1]


def _bases(term: str) -> str:
    """A string of DNA or RNA in the letters A, C, G and T."""
    return term.upper().replace("U", "T")


def _vocabulary(
    source: str, spectrum: Spectrum, table: SubstringTable, alphabet: _Alphabet, entries: EntryFile
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Substrings in enough strings, in their order, and the column of each number."""
    frequency = np.ones(table.size, np.int64)
    if spectrum.min_df > 1:
        frequency[:] = 0
        for part in entries.parts():
            frequency += np.bincount(part["term"], minlength=table.size)
    kept = np.flatnonzero(frequency >= spectrum.min_df)
    if not len(kept):
        raise InputError(
            f"{source} has no {spectrum.label}: "
            + (
                "give a smaller --min-df (min_df)"
                if table.size
                else "give a smaller --spectrum (length), or other --letters (letters)"
            )
        )
    kept = kept[_order(table, alphabet.ranks(), kept)]
    columns = np.full(table.size, -1, np.int32)
    columns[kept] = np.arange(len(kept))
    terms: list[str] = []
    for own in blocks(len(kept), _BATCH):
        letters = [table.letter(k, kept[own]) for k in range(table.high)]
        terms += alphabet.terms(letters, len(letters[0]), table.high)
    return tuple(terms), columns


def _order(
    table: SubstringTable, ranks: NDArray[np.uint64], kept: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Positions of some substrings in the order of their letters, shorter ones first."""
    bits, keys = np.uint64(table.bits), list[NDArray[np.uint64]]()
    for k in range(table.high):
        if k % (64 // table.bits) == 0:
            keys.append(np.zeros(len(kept), np.uint64))
        keys[-1] = keys[-1] << bits | ranks[table.letter(k, kept)]
    return np.lexsort(keys[::-1])
