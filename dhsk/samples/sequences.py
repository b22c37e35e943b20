"""Strings in memory and in files: records of FASTA and FASTQ, and lines of text."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError
from dhsk.samples.dialect import is_of_numbers
from dhsk.samples.format import (
    SHOWN,
    Asked,
    Documents,
    Format,
    SamplesFile,
    described,
    refuse_header,
)
from dhsk.samples.kinds import names_groups
from dhsk.samples.molecules import letters_in
from dhsk.samples.names import listed, shown
from dhsk.samples.paths import Origin, packed
from dhsk.samples.spectrum import Spectrum
from dhsk.samples.text_folder import TEXT_FILES, one_text
from dhsk.samples.vectorizer import Vectorizer
from dhsk.systems import quoted

FASTA = packed(".fasta", ".fa", ".fna", ".ffn", ".faa", ".frn", ".fas")
FASTQ = packed(".fastq", ".fq")

_PIECE: Final = 2**20
"""Number of characters that are read together."""

_Part = tuple[str, NDArray[np.int64]]
"""Letters of consecutive strings, joined, and where strings end in them; the last may go on."""


class Sequences(Documents):
    """Strings of a file in their order, in parts: no long one is in memory as a whole."""

    origin: Origin
    empty: str
    """What an empty one is, and what to do with it."""

    def texts(self) -> Iterator[str]:
        """Yield the strings, each as a whole."""
        rest: list[str] = []
        for text, ends in self.parts():
            first = 0
            for end in ends.tolist():
                yield "".join((*rest, text[first:end]))
                rest, first = [], end
            rest.append(text[first:])

    def parts(self) -> Iterator[_Part]:
        """Yield the letters of the strings, some at a time, and where strings end in them.

        Raises `InputError` for an empty one.
        """
        row = left = 0
        for letters, ends in self._parts():
            empty = np.flatnonzero(np.diff(ends, prepend=-left) == 0)
            if empty.size:
                raise InputError(f"{self.place(row + int(empty[0]))} {self.empty}, with its label")
            row += len(ends)
            left = len(letters) - (int(ends[-1]) if len(ends) else -left)
            yield letters, ends

    @abstractmethod
    def _parts(self) -> Iterator[_Part]:
        """Yield the strings, empty ones too."""


@dataclass(frozen=True)
class Strings(Documents):
    """Strings in memory."""

    strings: Iterable[str]
    source = "the strings"

    def texts(self) -> Iterator[str]:
        """Yield the strings; InputError for what is none."""
        for row, text in enumerate(self.strings):
            absent: Any = text
            if absent is None or absent != absent:
                raise InputError(
                    f"{self.place(row)} is missing, as pandas reads an empty text: fill it in, "
                    "table[NAME].fillna(''), or drop it and its label"
                )
            if not isinstance(text, str):
                raise InputError(
                    f"{self.place(row)} is no string but of type {type(text).__name__}"
                )
            yield text


@dataclass(frozen=True)
class Lines(Sequences):
    """The lines of a text file."""

    source: str
    origin: Origin
    empty = "is an empty line: leave it out"

    def _parts(self) -> Iterator[_Part]:
        with self.origin.reading(), self.origin.open_text(newline=None) as text:
            for lines, _, complete in _blocks(text):
                ends = _line_ends(lines)
                yield "".join(lines), ends if complete else ends[:-1]


@dataclass(frozen=True)
class Records(Sequences):
    """The records of a FASTA or FASTQ file, which are named by the first words of their headers."""

    source: str
    origin: Origin
    empty = "is empty, a header without a sequence: leave it out"

    def _parts(self) -> Iterator[_Part]:
        begun = False
        for letters, starts, _ in self._read():
            yield letters, starts[int(not begun) :]  # a record ends where the next one starts
            begun = begun or len(starts) > 0
        if not begun:
            raise InputError(f"{self.source} is empty: it has no records")
        yield "", np.zeros(1, np.int64)

    def headers(self) -> Iterator[str]:
        """Yield the headers, without the sign that begins them."""
        for _, _, headers in self._read():
            yield from (header[1:].strip() for header in headers)

    def ids(self) -> Iterator[str]:
        """First words of the headers."""
        return ((header.split(maxsplit=1) or [""])[0] for header in self.headers())

    def place(self, row: int) -> str:
        """Words for a record, in messages."""
        return f"{self.source}: record {row} (counted from 0)"

    def _read(self) -> "Iterator[_Block]":
        read = _fasta if self.origin.suffix in FASTA else _fastq
        with self.origin.reading(), self.origin.open_text(newline=None) as text:
            yield from read(self, text)


def _open(origin: Origin, asked: Asked) -> Documents:
    """Strings of a FASTA, FASTQ or text file; of a known vocabulary of words a text file is one."""
    words = isinstance(asked.vectorizer, Vectorizer) and asked.vectorizer.vocabulary
    if words and origin.suffix in TEXT_FILES:
        return one_text(origin)
    if not isinstance(asked.vectorizer, Spectrum):
        if is_of_numbers(_first_lines(origin)):
            raise InputError(f"{origin.path} holds a table of numbers: name it .csv")
        raise InputError(
            f"{origin.path} holds strings: say how long the substrings are that are counted, as "
            "--spectrum 6 (vectorizer=dhsk.Spectrum(6))"
        )
    origin.refuse_key("a label in the descriptions is named so with --labels")
    kind = Lines if origin.suffix in TEXT_FILES else Records
    return kind(str(origin.path), origin)


def _line_labels(origin: Origin, asked: Asked) -> list[str]:
    origin.refuse_key("one label a line")
    with origin.reading(), origin.open_text(newline=None) as text:
        lines = [line.removesuffix("\n") for line in text]
    if lines and all(len(line) > 1 and line[0] == line[-1] == '"' for line in lines):
        lines = [line[1:-1].replace('""', '"') for line in lines]  # as R's write.table does
    refuse_header(origin, lines, asked)
    return lines


def _labels(origin: Origin, _: Asked) -> list[str]:
    """Labels in the headers of records: the descriptions, or a value in them.

    The description is all after the first word. With a key it is what follows ``KEY=`` in it, up to
    a blank or semicolon, or in ``[KEY=...]``.
    """
    records, key = Records(str(origin.path), origin), origin.key
    found = []
    for row, header in enumerate(records.headers()):
        description = header.replace("\t", " ").partition(" ")[2].strip()
        label = description if key is None else _value(description, key)
        if not label:
            what = "description" if key is None else f"{key}=... in its description"
            raise InputError(
                f"{records.place(row)}, {shown(header)}, has no {what}, which would be its label: "
                "give the labels of all records in a file of their own"
            )
        found.append(label)
    return found


def _value(description: str, key: str) -> str | None:
    name = re.escape(key)
    found = re.search(rf"\[{name}=([^]]*)\]|(?:^|[\s;]){name}=([^\s;]*)", description)
    return None if found is None else (found[1] or found[2] or "").strip()


# What is in a file

_Block = tuple[str, NDArray[np.int64], list[str]]
"""Letters of consecutive records, joined, where records start in them, and their headers."""

_SIGNS: Final = frozenset(">;")
"""Letters that begin a header or a comment of FASTA."""

_MARKS: Final = _SIGNS | frozenset("@+")
"""Letters that begin a line of FASTA or FASTQ which is no sequence."""


def _blocks(text: TextIO) -> Iterator[tuple[list[str], bool, bool]]:
    """Yield consecutive lines, without their ends, block by block.

    And whether the first one begins there, and whether the last one ends there.
    """
    begins, block = True, text.read(_PIECE)
    while block:
        following = text.read(_PIECE)
        lines = block.split("\n")
        ends = not following
        if not lines[-1]:
            lines.pop()
            ends = True
        yield lines, begins, ends
        begins, block = ends, following


def _lines(text: TextIO) -> Iterator[tuple[str, bool, bool]]:
    """Yield lines in pieces, and whether each begins and ends its line."""
    for lines, begins, ends in _blocks(text):
        last = len(lines) - 1
        for k, line in enumerate(lines):
            yield line, begins or k > 0, ends or k < last


def _line_ends(lines: list[str]) -> NDArray[np.int64]:
    return np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)))


def _fasta(records: Records, text: TextIO) -> Iterator[_Block]:
    """Yield blocks of records; comments begin with ;."""
    row, marked = -1, ""  # a header or comment as far as it was read
    for lines, begins, complete in _blocks(text):
        lines[0] = marked + lines[0]
        first = 0 if begins or marked else 1
        marks = [k for k, line in enumerate(lines) if line[:1] in _MARKS and k >= first]
        marked = ""
        if not complete and marks[-1:] == [len(lines) - 1]:
            marked = lines[marks.pop()]
            lines.pop()
        headers = [lines[k] for k in marks]
        for k in marks:
            lines[k] = ""
        letters = "".join(lines)
        if letters.split(maxsplit=1) != [letters]:
            lines[:] = ["".join(line.split()) for line in lines]
            letters = "".join(lines)
        ends = _line_ends(lines)
        heads = [k for k, header in zip(marks, headers, strict=True) if header[0] == ">"]
        if row < 0 or ">" in letters or not _SIGNS.issuperset(header[0] for header in headers):
            _refuse_other(records, row, lines, dict(zip(marks, headers, strict=True)))
        row += len(heads)
        yield letters, ends[heads], [header for header in headers if header[0] == ">"]


def _refuse_other(
    records: Records, row: int, lines: Sequence[str], headers: Mapping[int, str]
) -> None:
    """Refuse the first line, after the record `row`, that is in no FASTA file."""
    for k, line in enumerate(lines):
        sign = headers.get(k, "")[:1]
        row += sign == ">"
        if (sign and sign in "@+") or (line and row < 0):
            _refuse_line(records, max(row, 0), headers.get(k, line), "FASTA", ">")
        if ">" in line:
            raise InputError(
                f"{records.place(row)} has a > in its line {shown(line)}: a header begins a line, "
                "so a line feed is missing before it, as in files that were joined without one"
            )


def _fastq(records: Records, text: TextIO) -> Iterator[_Block]:
    """Yield blocks of records, about `_PIECE` letters each."""
    parts, starts, headers, n = list[str](), list[int](), list[str](), 0
    for is_header, part in _fastq_parts(records, text):
        if is_header:
            starts.append(n)
            headers.append(part)
        else:
            parts.append(part)
            n += len(part)
        if n >= _PIECE:
            yield "".join(parts), np.array(starts, np.int64), headers
            parts, starts, headers, n = [], [], [], 0
    yield "".join(parts), np.array(starts, np.int64), headers


def _fastq_parts(records: Records, text: TextIO) -> Iterator[tuple[bool, str]]:
    """Yield headers and pieces of sequences, and which it is; lines may be wrapped."""
    state, header, row, left = "header", "", -1, 0
    for part, begins, ends in _lines(text):
        if state == "header":
            if begins and part[:1] != "@":
                if not part.strip():
                    continue
                _refuse_line(records, row + 1, part, "FASTQ", "@")
            header += part
            if ends:
                yield True, header
                state, header, row, left = "sequence", "", row + 1, 0
        elif state == "sequence" and not (begins and part[:1] == "+"):
            letters = part.strip()
            left += len(letters)
            yield False, letters
        elif state != "quality":  # the line of the plus sign
            state = "quality" if ends else "plus"
        else:
            left -= len(part.rstrip())
            if ends and left <= 0:
                if left < 0:
                    raise InputError(
                        f"{records.place(row)} has {-left} more qualities than letters: is the "
                        "file damaged?"
                    )
                state = "header"
    if state != "header":
        raise InputError(
            f"{records.place(row)} ends before all its qualities: is the file complete?"
        )


def _refuse_line(records: Records, row: int, line: str, name: str, sign: str) -> NoReturn:
    other = {">": ("FASTA", FASTA), "@": ("FASTQ", FASTQ)}.get(line[0])
    hint = f"a record begins with {sign}"
    if other is not None and other[0] != name:
        hint = f"it is like {other[0]}, whose files are named {other[1][0]}; a file has one format"
    raise InputError(
        f"{records.place(row)} is no {name}: it has the line {shown(line.strip())}; {hint}"
    )


_WORDS: Final = "strings, counted with --spectrum"

_LOOKED_AT: Final = 1000
"""Number of lines that tell labels from strings."""

_SHORT: Final = 40
"""Mean number of letters of a line below which it may be a label."""


def _first_lines(origin: Origin) -> list[str]:
    with origin.reading(), origin.open_text() as text:
        return [line.strip() for line in islice(text, _LOOKED_AT)]


def _describe_lines(origin: Origin) -> SamplesFile:
    """Labels, if most lines come again, and are short; else strings."""
    lines = _first_lines(origin)
    if is_of_numbers(lines):
        path = str(origin.path)
        table = quoted(path[: -len(origin.suffix)] + origin.suffix.replace(".txt", ".csv"))
        way = f"rename it to {table}, then dhsk info {table}"
        return SamplesFile("a table of numbers", python=[way])
    kinds = list(dict.fromkeys(lines))
    if 1 < len(kinds) <= len(lines) // 2 and sum(map(len, lines)) < _SHORT * len(lines):
        said = f"{len(kinds):,} in the first {len(lines):,} lines: {listed(kinds, SHOWN)}"
        labels = quoted(str(origin.path))
        return SamplesFile("labels, one a line", [("classes", said)], "SAMPLES", labels)
    return described(f"lines of text; as samples, {_WORDS}", options=" --spectrum 6")(origin)


_KEY: Final = re.compile(r"(\w+)=")


def _describe(origin: Origin) -> SamplesFile:
    """Letters of the first records, and keys of their headers, which may be labels and groups."""
    records, path = Records(str(origin.path), origin), str(origin.path)
    letters, options = letters_in(next(records.parts())[0])
    headers = list(islice(records.headers(), _LOOKED_AT))
    keys = dict.fromkeys(key for header in headers for key in _KEY.findall(header))
    values = {key: {_value(header, key) for header in headers} for key in keys}
    few = {k: len(v) for k, v in values.items() if None not in v and 1 < len(v) <= len(headers) / 2}
    rows = [("letters", letters), *([("keys", ", ".join(few))] if few else [])]
    own, groups = [k for k in few if not names_groups(k)], [k for k in few if names_groups(k)]
    label = quoted(f"{path}:{min(own, key=few.__getitem__)}") if own else "LABELS"
    grouped = f" --groups {quoted(f'{path}:{groups[0]}')}" if groups else ""
    what = f"{_WORDS} ({origin.suffix})"
    return SamplesFile(what, rows, quoted(path), label, options, grouped=grouped)


FORMAT = Format((*FASTA, *FASTQ), _open, _describe, _labels)
LINES = Format(TEXT_FILES, _open, _describe_lines, _line_labels)
