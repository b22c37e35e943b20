"""Samples of strings: counts of their substrings, in a temporary file."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import blocks
from dhsk.errors import InputError
from dhsk.objects.places import size_of
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call
from dhsk.samples.alphabets import Alphabet, Characters, Tokens
from dhsk.samples.format import Documents
from dhsk.samples.hashed import HashedTable
from dhsk.samples.sequences import Sequences, Strings
from dhsk.samples.spectrum import Spectrum, known_features
from dhsk.samples.substrings import SubstringTable
from dhsk.samples.tally import Tally
from dhsk.samples.texts import Counts, Found, TextSamples, columns_of

_BATCH: Final = 2**17
"""Number of substrings that are counted together."""

_PAIRS: Final = str.maketrans("ACGT", "TGCA")

_UNPACKED: Final = 4
"""About as many letters as there are in a byte of a compressed file."""


def open_spectrum(documents: Documents, spectrum: Spectrum) -> TextSamples:
    """Count the substrings of all strings, which reads them once.

    Without a vocabulary it is learnt. Takes the memory of the distinct substrings, or of hashed
    columns, and of a batch. Raises `InputError` if a string cannot be read, there is none, or no
    substring is left.
    """
    (low, high), known = spectrum.range, known_features(spectrum)
    hashed, dna = spectrum.n_features is not None, spectrum.letters == "dna"
    tokens = spectrum.letters == "tokens"
    alphabet = Tokens(hashed=hashed) if tokens else Characters(dna=dna, hashed=hashed)
    table: HashedTable | SubstringTable
    if spectrum.n_features is not None:
        table = HashedTable(low, high, spectrum.n_features, canonical=spectrum.canonical)
    else:
        table = SubstringTable(low, high, canonical=spectrum.canonical)
        if known is not None:
            _know(table, alphabet, spectrum, known)
    counts = Counts(_count(documents, spectrum, table, alphabet))
    if len(counts.starts) == 1:
        raise InputError(f"{documents.source} is empty: it has no strings")
    table.finish()
    if known is not None:
        columns = np.arange(len(known), dtype=np.int32)
    else:
        assert isinstance(table, SubstringTable)
        kept = counts.frequent(table.size, spectrum.min_df)
        if not len(kept):
            _refuse_empty(documents.source, spectrum, table.size)
        kept = kept[_order(table, alphabet.ranks(), kept)]
        known, columns = _terms(table, alphabet, kept), columns_of(kept, table.size)
        spectrum = replace(spectrum, vocabulary=known)
    return counts.samples(documents, spectrum, known, columns)


def _count(
    documents: Documents, spectrum: Spectrum, table: Tally, alphabet: Alphabet
) -> Iterator[Found]:
    low, high = spectrum.range
    size = max(1, _BATCH // (high - low + 1))
    if spectrum.letters == "tokens":
        batches = _joined(map(alphabet.numbers, documents.sound_texts()), np.concatenate, size)
    else:
        batches = _character_batches(documents, alphabet, size)
    report, done, expected = passes_of_call().report, 0, _expected_letters(documents)
    for letters, ends in batches:
        yield table.add(letters, ends)
        done += len(letters)
        report(Progress("letters", done, max(done + 1, expected), table.detail))
    report(Progress("letters", done, done))


def _expected_letters(documents: Documents) -> int:
    """About as many letters as there are to count; 0 if that is not known."""
    if isinstance(documents, Strings):
        strings = documents.strings
        known = strings if isinstance(strings, list | tuple) else ()
        return sum(len(text) for text in known if isinstance(text, str))
    if isinstance(documents, Sequences):
        place = documents.origin.path
        return (size_of(place) or 0) * (_UNPACKED if str(place).endswith(".gz") else 1)
    return 0


_Batch = tuple[Any, NDArray[np.int64]]


def _character_batches(documents: Documents, alphabet: Alphabet, size: int) -> Iterator[_Batch]:
    """Yield letters of strings, some at a time, and where strings end in them."""
    joined = documents.parts() if isinstance(documents, Sequences) else None
    row = 0
    for text, ends in joined or _joined(documents.texts(), "".join, size):
        if "\0" in text:
            documents.refuse_nul(row + int(np.searchsorted(ends, text.index("\0"), "right")))
        row, done = row + len(ends), 0
        for start in range(0, max(len(text), 1), size):
            last = int(np.searchsorted(ends, start + size, "right"))
            yield alphabet.numbers(text[start : start + size]), ends[done:last] - start
            done = last


def _joined(strings: Iterable[Any], join: Callable[[Any], Any], size: int) -> Iterator[_Batch]:
    """Yield strings together, of about so many letters, and where each ends."""
    parts, ends, n = list[Any](), array("q"), 0
    for string in strings:
        parts.append(string)
        n += len(string)
        ends.append(n)
        if n >= size:
            yield join(parts), np.array(ends, np.int64)
            parts, ends, n = [], array("q"), 0
    if parts:
        yield join(parts), np.array(ends, np.int64)


def _know(
    table: SubstringTable, alphabet: Alphabet, spectrum: Spectrum, known: Sequence[str]
) -> None:
    """Number the substrings of a vocabulary in their order; InputError if one cannot be."""
    if not known:
        raise InputError("the vocabulary has no substrings")
    low, high = spectrum.range
    letters, lengths = alphabet.strings(known)
    alphabet.close()
    ends = np.cumsum(lengths)
    fit = (lengths >= low) & (lengths <= high)
    fit[np.searchsorted(ends, np.flatnonzero(letters == 0), "right")] = False
    if spectrum.canonical:
        bases = [term.upper().replace("U", "T") for term in known]
        fit &= np.array([own.translate(_PAIRS)[::-1] >= own for own in bases])
    if not fit.all():
        term = known[int(np.argmin(fit))]
        raise InputError(f"{term!r} in the vocabulary is none of the {spectrum.label}")
    if not table.know(letters, ends):
        raise InputError("a substring is in the vocabulary more than once")


def _refuse_empty(source: str, spectrum: Spectrum, size: int) -> NoReturn:
    shorter = "--spectrum (length), or other --letters (letters)"
    raise InputError(
        f"{source} has no {spectrum.label}: give a smaller "
        f"{'--min-df (min_df)' if size else shorter}"
    )


def _terms(table: SubstringTable, alphabet: Alphabet, kept: NDArray[np.int64]) -> tuple[str, ...]:
    terms: list[str] = []
    for own in blocks(len(kept), _BATCH):
        letters = [table.letter(k, kept[own]) for k in range(table.high)]
        terms += alphabet.terms(letters, len(letters[0]), table.high)
    return tuple(terms)


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
