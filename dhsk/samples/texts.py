"""Samples of raw texts: counts of their words, in a temporary file.

Texts are counted once, as words take 2.7 s to find where counts take 0.9 s to read (20 Newsgroups).
Rejected: CSR in memory (twelve bytes an entry).
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError
from dhsk.samples.base import Samples, csr_block
from dhsk.samples.format import Documents
from dhsk.samples.spectrum import AnyVectorizer
from dhsk.samples.spill import PART, Spill
from dhsk.samples.tables import TextColumn
from dhsk.samples.vectorizer import Vectorizer

PAIR: Final = np.dtype([("term", "i4"), ("count", "i4")])
"""An entry in the temporary file: the number of a term, and its count in a text."""


class Found(NamedTuple):
    """Entries of texts, one after another: numbers of terms and their counts, as `PAIR`."""

    pairs: NDArray[Any]
    ends: NDArray[np.int64]
    """Where the entries of each text end."""


class Counts:
    """Entries of all texts, in a temporary file of eight bytes an entry."""

    def __init__(self, found: Iterable[Found]) -> None:
        self.entries, starts = Spill(PAIR), array("q", [0])
        for pairs, ends in found:
            starts.extend((ends + self.entries.size).tolist())
            self.entries.append(pairs)
        self.starts = np.array(starts, np.int64)
        """Where the entries of each text begin in the file, (n_texts + 1,)."""

    def frequent(self, n_terms: int, least: int) -> Indices:
        """Numbers of the terms that are in so many texts, ascending."""
        frequency = np.full(n_terms, least)
        if least > 1:
            frequency[:] = 0
            for part in self.entries.parts():
                frequency += np.bincount(part["term"], minlength=n_terms)
        return np.flatnonzero(frequency >= least)

    def samples(
        self, documents: Documents, vectorizer: AnyVectorizer, terms: tuple[str, ...], columns: Any
    ) -> "TextSamples":
        """The counts as samples, of `terms`; `columns` has the one of each number, see there."""
        indptr = self._indptr(columns)
        known: Any = {
            "nnz": int(indptr[-1]), "indptr": indptr, "feature_names": terms,
            "vectorizer": vectorizer, "names": documents.ids,
            "text_column": documents if isinstance(documents, TextColumn) else None,
        }  # fmt: skip
        shape = len(self.starts) - 1, len(terms)
        return TextSamples(documents.source, shape, self, columns, **known)

    def _indptr(self, columns: NDArray[np.int32]) -> NDArray[np.int64]:
        """Row pointers without the entries of terms that are left out."""
        if (columns >= 0).all():
            return self.starts
        indptr, row, total, first = np.zeros_like(self.starts), 1, 0, 0
        for pairs in self.entries.parts():
            kept = np.concatenate([[0], np.cumsum(columns[pairs["term"]] >= 0)])
            end = int(np.searchsorted(self.starts, first + len(pairs), side="right"))
            indptr[row:end] = total + kept[self.starts[row:end] - first]
            total, row, first = total + int(kept[-1]), end, first + len(pairs)
        return indptr


def columns_of(kept: Sequence[int] | Indices, n_terms: int) -> NDArray[np.int32]:
    """Column of each number, if those that are kept are the columns; -1 for others."""
    columns = np.full(n_terms, -1, np.int32)
    columns[kept] = np.arange(len(kept))
    return columns


@dataclass(frozen=True, eq=False)
class TextSamples(Samples):
    """Counts of words in texts, which were read once, when they were opened.

    Takes the memory of the vocabulary, of the row pointers and of three blocks. The counts are in a
    temporary file.
    """

    counts: Counts = field(repr=False)
    columns: NDArray[np.int32] = field(repr=False)
    """Feature of each term in the file; negative for one that is left out."""
    text_column: TextColumn | None = field(default=None, repr=False, kw_only=True)
    """The column of a table that has the texts; None for those of other files, or in memory."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        starts = self.counts.starts
        for part, indptr in self.row_parts(rows):
            pairs = self.counts.entries.read(starts[part.start], starts[part.stop])
            columns = self.columns[pairs["term"]]
            kept = columns >= 0
            yield csr_block(pairs["count"][kept], columns[kept], indptr, self.shape[1])


def open_texts(documents: Documents, vectorizer: Vectorizer) -> TextSamples:
    """Count the words of all texts, which reads them once.

    Without a vocabulary of the vectorizer it is learnt, which takes the memory of all terms, those
    that are left out later too. Raises `InputError` if a text cannot be read, there is none, or no
    word is left.
    """
    known, number_of = vectorizer.vocabulary, dict[str, int]()
    if known is None:
        number_of = defaultdict()
        number_of.default_factory = number_of.__len__
    else:
        number_of = {term: number for number, term in enumerate(known)}
    counts = Counts(_count(documents, vectorizer, number_of))
    if len(counts.starts) == 1:
        raise InputError(f"{documents.source} is empty: it has no texts")
    columns = np.arange(len(number_of), dtype=np.int32)
    if known is None:
        terms = list(number_of)
        kept = counts.frequent(len(terms), vectorizer.min_df).tolist()
        if not kept:
            _refuse_empty(documents.source, vectorizer, len(terms))
        kept.sort(key=terms.__getitem__)
        known, columns = tuple(terms[number] for number in kept), columns_of(kept, len(terms))
        vectorizer = replace(vectorizer, vocabulary=known)
    return counts.samples(documents, vectorizer, known, columns)


def _refuse_empty(source: str, vectorizer: Vectorizer, size: int) -> NoReturn:
    rarer, none = "give a smaller --min-df (min_df)", "words have two or more letters or digits"
    raise InputError(
        f"{source} has no word in {vectorizer.min_df} or more texts: {rarer if size else none}"
    )


def _count(
    documents: Documents, vectorizer: Vectorizer, number_of: dict[str, int]
) -> Iterator[Found]:
    """Count the terms of each text; with a default, `number_of` numbers new ones."""
    terms_of, learns = vectorizer.analyzer(), vectorizer.vocabulary is None
    terms, counts, ends = array("i"), array("i"), array("q")
    for text in documents.sound_texts():
        found = Counter(terms_of(text))
        kept = found if learns else [term for term in found if term in number_of]
        terms.extend(number_of[term] for term in kept)
        counts.extend(found[term] for term in kept)
        ends.append(len(terms))
        if len(terms) >= PART:
            yield _found(terms, counts, ends)
            terms, counts, ends = array("i"), array("i"), array("q")
    yield _found(terms, counts, ends)


def _found(terms: Sequence[int], counts: Sequence[int], ends: Sequence[int]) -> Found:
    pairs = np.empty(len(terms), PAIR)
    pairs["term"], pairs["count"] = terms, counts
    return Found(pairs, np.array(ends, np.int64))
