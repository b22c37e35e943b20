"""Samples of raw texts: counts of their words, in a temporary file."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError
from dhsk.samples.base import Samples, csr_block
from dhsk.samples.documents import Documents
from dhsk.samples.spectrum import AnyVectorizer
from dhsk.samples.spill import Spill
from dhsk.samples.vectorizer import Vectorizer

PAIR: Final = np.dtype([("term", "i4"), ("count", "i4")])
"""An entry in the temporary file: the number of a term, and its count in a text."""

_WRITTEN: Final = 2**16
"""Number of entries that are written, or looked at, together."""

_LEFT_OUT: Final = -1


class EntryFile:
    """Pairs of a term's number and its count, in a temporary file that ends with the object."""

    def __init__(self) -> None:
        self._spill = Spill(PAIR)
        self._terms, self._counts = array("i"), array("i")
        self.size = 0
        """Number of entries."""

    def add(self, terms: Sequence[int], counts: Sequence[int]) -> None:
        """Add the entries of a text."""
        self._terms.extend(terms)
        self._counts.extend(counts)
        self.size += len(terms)
        if len(self._terms) >= _WRITTEN:
            self.flush()

    def append(self, pairs: NDArray[Any]) -> None:
        """Write the entries of several texts, of type `PAIR`, after all that were written."""
        self._spill.append(pairs)
        self.size += len(pairs)

    def flush(self) -> None:
        """Write what was added."""
        pairs = np.empty(len(self._terms), PAIR)
        pairs["term"], pairs["count"] = self._terms, self._counts
        self._spill.append(pairs)
        self._terms, self._counts = array("i"), array("i")

    def read(self, first: int, last: int) -> NDArray[Any]:
        """Entries from `first` to before `last`; any thread may read."""
        return self._spill.read(first, last)

    def parts(self) -> Iterator[NDArray[Any]]:
        """All entries, some at a time."""
        for part in blocks(self.size, _WRITTEN):
            yield self.read(part.start, part.stop)


@dataclass(frozen=True, eq=False)
class TextSamples(Samples):
    """Counts of words in texts, which were read once, when they were opened.

    Takes the memory of the vocabulary, of the row pointers and of three blocks. The counts are in a
    temporary file of eight bytes an entry, a word in a text.
    """

    source: str
    shape: tuple[int, int]
    nnz: int
    indptr: NDArray[np.int64] = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    vectorizer: AnyVectorizer = field(repr=False)
    documents: Documents = field(repr=False)
    entries: EntryFile = field(repr=False)
    starts: NDArray[np.int64] = field(repr=False)
    """Where the entries of each text begin in the file, with those of words that are left out."""
    columns: NDArray[np.int32] = field(repr=False)
    """Feature of each term in the file; negative for one that is left out."""
    is_sparse = True

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for part in blocks(self.shape[0], rows):
            pairs = self.entries.read(self.starts[part.start], self.starts[part.stop])
            columns = self.columns[pairs["term"]]
            kept = columns >= 0
            indptr = self.indptr[part.start : part.stop + 1]
            yield csr_block(pairs["count"][kept], columns[kept], indptr, self.shape[1])

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the texts, see `Samples.ids`."""
        names = self.documents.ids()
        return None if names is None else _chunked(names, rows)


def _chunked(names: Iterator[str], rows: int) -> Iterator[Sequence[str]]:
    while block := list(islice(names, rows)):
        yield block


def open_texts(documents: Documents, vectorizer: Vectorizer) -> TextSamples:
    """Count the words of all texts, which reads them once.

    Without a vocabulary of the vectorizer it is learnt, which takes the memory of all terms, those
    that are left out later too. Raises `InputError` if a text cannot be read, there is none, or no
    word is left.
    """
    number_of: dict[str, int]
    if vectorizer.vocabulary is None:
        number_of = defaultdict()
        number_of.default_factory = number_of.__len__
    else:
        number_of = {term: number for number, term in enumerate(vectorizer.vocabulary)}
    entries, starts = _count(documents, vectorizer, number_of)
    if len(starts) == 1:
        raise InputError(f"{documents.source} is empty: it has no texts")
    if vectorizer.vocabulary is None:
        terms, columns = _vocabulary(documents, vectorizer, number_of, entries)
        vectorizer = replace(vectorizer, vocabulary=terms)
        indptr = row_pointers(entries, starts, columns)
    else:
        terms, columns = vectorizer.vocabulary, np.arange(len(number_of), dtype=np.int32)
        indptr = starts
    shape = len(starts) - 1, len(terms)
    return TextSamples(
        documents.source, shape, int(indptr[-1]), indptr, terms, vectorizer, documents, entries,
        starts, columns,
    )  # fmt: skip


def _count(
    documents: Documents, vectorizer: Vectorizer, number_of: dict[str, int]
) -> tuple[EntryFile, NDArray[np.int64]]:
    """Count the terms of each text; with a default, `number_of` numbers new ones."""
    terms_of, entries, starts = vectorizer.analyzer(), EntryFile(), array("q", [0])
    learns = vectorizer.vocabulary is None
    for row, text in enumerate(documents.texts()):
        if "\0" in text:
            raise InputError(
                f"{documents.place(row)} holds NUL characters, as binary files do: leave it out, "
                "or save it as text"
            )
        counts = Counter(terms_of(text))
        found = counts if learns else [term for term in counts if term in number_of]
        entries.add([number_of[term] for term in found], [counts[term] for term in found])
        starts.append(entries.size)
    entries.flush()
    return entries, np.array(starts, np.int64)


def _vocabulary(
    documents: Documents, vectorizer: Vectorizer, number_of: dict[str, int], entries: EntryFile
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Terms in enough texts, in their order, and the column of each number."""
    frequency = np.zeros(len(number_of), np.int64)
    for part in entries.parts():
        frequency += np.bincount(part["term"], minlength=len(number_of))
    terms = sorted(t for t, n in number_of.items() if frequency[n] >= vectorizer.min_df)
    if not terms:
        raise InputError(
            f"{documents.source} has no word in {vectorizer.min_df} or more texts: "
            + (
                "words have two or more letters or digits"
                if not number_of
                else "give a smaller --min-df (min_df)"
            )
        )
    columns = np.full(len(number_of), _LEFT_OUT, np.int32)
    columns[[number_of[term] for term in terms]] = np.arange(len(terms))
    return tuple(terms), columns


def row_pointers(
    entries: EntryFile, starts: NDArray[np.int64], columns: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Row pointers without the entries of terms that are left out."""
    if (columns >= 0).all():
        return starts
    indptr, row, total = np.zeros_like(starts), 1, 0
    for part, pairs in zip(blocks(entries.size, _WRITTEN), entries.parts(), strict=True):
        kept = np.concatenate([[0], np.cumsum(columns[pairs["term"]] >= 0)])
        end = int(np.searchsorted(starts, part.stop, side="right"))
        indptr[row:end] = total + kept[starts[row:end] - part.start]
        total, row = total + int(kept[-1]), end
    return indptr
