"""Strings in memory and in files: records of FASTA and FASTQ, and lines of text."""

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NoReturn, TextIO

from dhsk.errors import InputError
from dhsk.samples.documents import Documents
from dhsk.samples.paths import FASTA, FASTQ, TEXT_FILES, Origin
from dhsk.samples.table import shown

_PIECE: Final = 2**20
"""Number of characters that are read together."""

_END: Final = ("", True)
"""Piece that ends a string."""


class Sequences(Documents):
    """Strings of a file in their order, in pieces: none is in memory as a whole."""

    origin: Origin

    def texts(self) -> Iterator[str]:
        """Yield the strings, each as a whole."""
        parts: list[str] = []
        for part, ends in self.pieces():
            parts.append(part)
            if ends:
                yield "".join(parts)
                parts = []

    @abstractmethod
    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield pieces of the strings, and whether one ends its string."""


@dataclass(frozen=True)
class Strings(Documents):
    """Strings in memory."""

    strings: Iterable[str]
    source = "the strings"

    def texts(self) -> Iterator[str]:
        """Yield the strings; InputError for what is none."""
        for row, text in enumerate(self.strings):
            if not isinstance(text, str):
                raise InputError(
                    f"{self.place(row)} is no string but of type {type(text).__name__}"
                )
            yield text

    def ids(self) -> None:
        """They have no names."""
        return


@dataclass(frozen=True)
class Lines(Sequences):
    """The lines of a text file."""

    source: str
    origin: Origin

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield pieces of the lines; InputError for an empty one."""
        row = 0
        with self.origin.reading(), self.origin.open_text() as text:
            for part, begins, ends in _lines(text):
                if begins and ends and not part:
                    raise InputError(
                        f"{self.place(row)} is an empty line: leave it out, with its label"
                    )
                yield part, ends
                row += ends

    def ids(self) -> None:
        """Lines have no names."""
        return


@dataclass(frozen=True)
class Records(Sequences):
    """The records of a FASTA or FASTQ file, which are named by the first words of their headers."""

    source: str
    origin: Origin

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield pieces of the sequences; InputError for one without a letter."""
        row, letters = -1, 0
        for is_header, part in self._parts():
            if is_header:
                if row >= 0:
                    self._refuse_empty(row, letters)
                    yield _END
                row, letters = row + 1, 0
            elif part:
                letters += len(part)
                yield part, False
        if row < 0:
            raise InputError(f"{self.source} is empty: it has no records")
        self._refuse_empty(row, letters)
        yield _END

    def headers(self) -> Iterator[str]:
        """Yield the headers, without the sign that begins them."""
        return (part for is_header, part in self._parts() if is_header)

    def ids(self) -> Iterator[str]:
        """First words of the headers."""
        return ((header.split(maxsplit=1) or [""])[0] for header in self.headers())

    def place(self, row: int) -> str:
        """Words for a record, in messages."""
        return f"{self.source}: record {row} (counted from 0)"

    def _parts(self) -> Iterator[tuple[bool, str]]:
        """Yield headers and pieces of the sequences, and whether it is a header."""
        read = _fasta if self.origin.suffix in FASTA else _fastq
        with self.origin.reading(), self.origin.open_text() as text:
            yield from read(self, text)

    def _refuse_empty(self, row: int, letters: int) -> None:
        if letters == 0:
            raise InputError(
                f"{self.place(row)} is empty, a header without a sequence: leave it out, with its "
                "label"
            )


def open_sequences(origin: Origin) -> Sequences:
    """Strings of a FASTA, FASTQ or text file."""
    origin.refuse_key("a label in the descriptions is named so with --labels")
    kind = Lines if origin.suffix in TEXT_FILES else Records
    return kind(str(origin.path), origin)


def sequence_labels(origin: Origin) -> list[str]:
    """Labels in the headers of records: the descriptions, or a value in them.

    The description is all after the first word. With a key it is what follows ``KEY=`` in it, up to
    a blank or semicolon, or in ``[KEY=...]``.
    """
    records, key = Records(str(origin.path), origin), origin.key
    found = []
    for row, header in enumerate(records.headers()):
        _, _, described = header.replace("\t", " ").partition(" ")
        described = described.strip()
        label = described if key is None else _value(described, key)
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


# Formats

_Block = tuple[list[str], bool, bool]
"""Consecutive lines, whether the first begins there and does not go on from the block before, and
whether the last ends there."""

_MARKS: Final = frozenset(">;@+")
"""Letters that begin a line of FASTA or FASTQ which is no sequence."""


def _blocks(text: TextIO) -> Iterator[_Block]:
    """Yield lines, without their ends, block by block."""
    begins, block = True, _block(text)
    while block:
        following = _block(text)
        lines = block.split("\n")
        ends = not following
        if not lines[-1]:
            lines.pop()
            ends = True
        yield lines, begins, ends
        begins, block = ends, following


def _block(text: TextIO) -> str:
    """Read characters, with line ends of all systems as line feeds."""
    block = text.read(_PIECE)
    if "\r" not in block:
        return block
    if block[-1] == "\r":  # a line feed may follow
        block += text.read(1)
    return block.replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: TextIO) -> Iterator[tuple[str, bool, bool]]:
    """Yield lines in pieces, and whether each begins and ends its line."""
    for lines, begins, ends in _blocks(text):
        last = len(lines) - 1
        for k, line in enumerate(lines):
            yield line, begins or k > 0, ends or k < last


def _fasta(records: Records, text: TextIO) -> Iterator[tuple[bool, str]]:
    """Yield headers and pieces of sequences, see `Records._parts`; comments begin with ;."""
    marked, row = "", -1  # a header or comment as far as it was read
    for lines, begins, ends in _blocks(text):
        first = 0
        if marked and not begins:
            marked += lines[0]
            first = 1
            if ends or len(lines) > 1:
                if marked[0] == ">":
                    yield True, marked[1:].strip()
                marked = ""
        marks = [k for k, line in enumerate(lines) if line[:1] in _MARKS and (k or begins)]
        for k in (*marks, len(lines)):
            letters = "".join(lines[first:k])
            if not letters.isalpha():
                letters = "".join(letters.split())
            if letters and row < 0:
                _refuse_line(records, 0, letters, "FASTA", ">")
            yield False, letters
            if k == len(lines):
                break
            if lines[k][0] in "@+":
                _refuse_line(records, max(row, 0), lines[k], "FASTA", ">")
            row, first = row + (lines[k][0] == ">"), k + 1
            if k == len(lines) - 1 and not ends:
                marked = lines[k]
            elif lines[k][0] == ">":
                yield True, lines[k][1:].strip()


def _fastq(records: Records, text: TextIO) -> Iterator[tuple[bool, str]]:
    """Yield headers and pieces of sequences, see `Records._parts`; lines may be wrapped."""
    state, header, row, left = "header", "", -1, 0
    for part, begins, ends in _lines(text):
        if state == "header":
            if begins and part[:1] != "@":
                if not part.strip():
                    continue
                _refuse_line(records, row + 1, part, "FASTQ", "@")
            header += part
            if ends:
                yield True, header[1:].strip()
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
