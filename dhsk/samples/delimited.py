"""Fields and columns of CSV and TSV files, compressed or not.

`dialect` finds the delimiter and the header.
"""

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from operator import not_
from typing import Final, NoReturn, TextIO

from dhsk.errors import InputError
from dhsk.samples.dialect import (
    LOOKED_AT,
    Opening,
    is_comment,
    is_header,
    is_number,
    opening_of,
    records_of,
    with_point,
    with_points,
)
from dhsk.samples.names import listed, shown
from dhsk.samples.paths import Origin, TextError, packed
from dhsk.samples.tables import HEAD, RUN, Table, in_runs

TABLES = packed(".csv", ".tsv", ".dat", ".data")

_SEARCHED: Final = 100_000
"""Most rows in which a line of pandas looks for points."""

_LOOKED_BELOW: Final = 20
"""Rows that tell a title from a header."""

_LEAST_WIDE: Final = 3
"""Least columns of a table whose first row is taken for a title, if it is one field."""

_DELIMITERS: Final = ";\t,"
"""What may divide fields below a title that has none."""

_MOST_COMMENTS: Final = 10_000
"""Most lines above a table, which bounds the memory where all rows begin with #."""


@dataclass(frozen=True)
class CsvTable(Table):
    """The columns of a table; without a header, names are column numbers, counted from 0."""

    has_header: bool
    commas: frozenset[int] = frozenset()
    """Columns whose numbers may have decimal commas."""

    def records(self) -> Iterator[list[str]]:
        """Fields of each row below the header, as written, see `read_records`."""
        return read_records(self.origin, int(self.has_header))

    def as_numbers(self, record: list[str]) -> list[str]:
        """A row with decimal points for decimal commas."""
        return with_points(record, self.commas)

    @property
    def delimiter(self) -> str:
        """What divides the fields of a row."""
        return opening_in(self.origin).delimiter

    def values(self, name: str) -> Iterator[str]:
        """Values of a column, without outer blanks."""
        position = self.position(name)
        for row, record in enumerate(self.records()):
            if position >= len(record):
                raise InputError(
                    f"{self.origin}: row {row} (counted from 0) has only {len(record)} fields, but "
                    f"{shown(name)} is column {position}"
                )
            yield record[position].strip()

    def in_pandas(self, *options: str) -> str:
        """Call of pandas that reads the file, see `Table.in_pandas`."""
        begin = opening_in(self.origin)
        sep = r"\s+" if begin.delimiter == " " else begin.delimiter
        if begin.commas and self.has_points:
            options = ("thousands='.'", *options)
        text = self._with_other_points() if "thousands='.'" in options else []
        kept = ", ".join(f"{name!r}: str" for name in text)
        own = [
            *([] if sep == "," else [f"sep={sep!r}"]),
            *([f"skiprows={_skiprows(begin.skipped)}"] if begin.skipped else []),
            *([] if self.has_header else ["header=None"]),
            *([] if begin.width is None else [f"usecols=range({begin.width})"]),
            *(["decimal=','"] if begin.commas else []),
            *options,
            *([f"dtype={{{kept}}}"] if kept else []),
            *(["index_col=0"] if self.index and not begin.lacks_name else []),
        ]
        return f"pandas.read_csv({', '.join([repr(str(self.origin.path)), *own])})"

    @property
    def has_points(self) -> bool:
        """Whether points separate thousands in columns of decimal commas, as in 1.234,5."""
        rows = islice(self.records(), _SEARCHED)
        some = (row[c] for row in rows for c in self.commas if c < len(row))
        return any("." in field and with_point(field) != field for field in some)

    def _with_other_points(self) -> list[str]:
        """Columns in which points separate no thousands, but pandas would take them away.

        Such as of dates, where it reads 1.5.2024 as 152024.
        """
        found = dict[str, None]()
        for row in islice(self.records(), _SEARCHED):
            for c, (name, field) in enumerate(zip(self.names, row, strict=False)):
                if "." not in field or not is_number(field.replace(".", "")):
                    continue
                if (self.commas and c not in self.commas) or with_point(field) == field:
                    found[name] = None
        return list(found)

    def head(self, stride: int = RUN, most: int = HEAD) -> dict[str, list[str]]:
        """Fields of each column in some rows that are whole, see `Table.head`."""
        some = islice(in_runs(self.records(), stride), most)
        rows = [self.as_numbers(row) for row in some if len(row) == len(self.names)]
        return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=False))

    def refuse_width(self, row: int, record: list[str]) -> NoReturn:
        """Refuse a row that has more or fewer fields than the first."""
        first_line = "header" if self.has_header else "first row"
        raise InputError(
            f"{self.origin}: row {row} (counted from 0) has {len(record)} fields, but the "
            f"{first_line} has {len(self.names)}: give each row as many, and leave out lines that "
            "are none"
        )

    def texts(self, name: str) -> Iterator[str]:
        """Yield the texts of a column; InputError if all are numbers."""
        only_numbers, row, position = True, -1, self.position(name)
        for row, text in enumerate(self._quoted(name, position)):  # noqa: B007
            only_numbers = only_numbers and is_number(with_point(text))
            yield text
        if only_numbers and row >= 0:
            path = self.origin.path
            raise InputError(
                f"{path}:{name} holds numbers and no text: give {path} without ':{name}' if its "
                "columns are features, or name the column of the texts"
            )

    def _quoted(self, name: str, position: int) -> Iterator[str]:
        """Values of a column whose texts may hold the delimiter in quotes."""
        for row, record in enumerate(self.records()):
            if len(record) != len(self.names):
                raise InputError(
                    f"{self.place(name, row)} has {len(record)} fields, but the first row has "
                    f"{len(self.names)}: quote texts that contain the delimiter, as pandas' "
                    "to_csv does, or give the texts as .jsonl"
                )
            yield record[position]


def read_records(origin: Origin, skip: int = 0) -> Iterator[list[str]]:
    """Yield the fields of each row, after the first `skip`.

    Blank lines are none, but between the values of a single column, where one is absent.
    Comments above the table are left out, rows without any value below it, and last columns that
    have no name and no value; a name of the first column that is missing is "".
    """
    with origin.reading(), origin.open_text() as text:
        begin = _opening(text, origin)
        records = _divided(chain(begin.lines, text), begin)
        first = [["", *next(records)]] if begin.lacks_name else []
        rows = islice(chain(first, _without_end(records)), skip, None)
        yield from rows if begin.width is None else _narrowed(rows, begin.width, origin)


def _narrowed(rows: Iterable[list[str]], width: int, origin: Origin) -> Iterator[list[str]]:
    """Rows without their empty ends; InputError for one that has a value there."""
    for row, record in enumerate(rows):
        column = next((c for c in range(width, len(record)) if record[c].strip()), None)
        if column is not None:
            raise InputError(
                f"{origin}: row {row} (counted from 0) holds {shown(record[column])} in column "
                f"{column}, which has no name, and no value in the first rows: name it in a header"
            )
        yield record[:width]


def _divided(lines: Iterable[str], begin: Opening) -> Iterator[list[str]]:
    """Records from the first that is not blank; TextError where a quotation mark is not closed."""
    try:
        yield from dropwhile(not_, records_of(lines, begin.delimiter))
    except csv.Error as error:
        above, reason = error.args
        raise TextError(
            f"has a quotation mark in line {len(begin.skipped) + above + 1} that is not closed, or "
            f"does not enclose a whole field ({reason}): remove it, or quote the field and double "
            "the marks in it, as pandas' to_csv does"
        ) from error


def _without_end(records: Iterator[list[str]]) -> Iterator[list[str]]:
    """Rows up to the last one that has a value: Excel writes ;;; for rows that were emptied."""
    empty: list[list[str]] = []
    width = 0
    for record in records:
        width = width or len(record)
        if not record:  # a value that is absent, where it is the only one of its row
            empty += [[""]] * (width == 1)
        elif len(record) > 1 and not any(record):
            empty.append(record)
        else:
            yield from empty
            empty.clear()
            yield record


def _skiprows(lines: Sequence[int]) -> str:
    """Lines to skip as pandas takes them: the number of the first ones, or a list."""
    first = len(lines)
    return str(first if list(lines) == list(range(first)) else list(lines))


def opening_in(origin: Origin) -> Opening:
    """How the table of a file begins."""
    with origin.reading(), origin.open_text() as text:
        return _opening(text, origin)


def _opening(text: TextIO, origin: Origin) -> Opening:
    own = "\t" if ".tsv" in origin.suffix else ","
    lines = []
    for line in islice(text, _MOST_COMMENTS):
        lines.append(line)
        if not is_comment(line):
            break
    found = opening_of([*lines, *islice(text, LOOKED_AT + 1)], own)
    _refuse_title(found)
    return found


def _refuse_title(begin: Opening) -> None:
    """Refuse a title above the header, as people write them in Excel.

    Otherwise its cells would be names of columns, or all columns one. It is alone in its row, and
    the next row that is not empty has words in three columns or more.
    """
    for delimiter in dict.fromkeys((begin.delimiter, *_DELIMITERS)):
        try:
            read = list(islice(records_of(begin.lines, delimiter), _LOOKED_BELOW))
        except csv.Error:  # quotation marks that are none there, or that are refused later
            continue
        first, *rows = [row for row in read if any(map(str.strip, row))] or [[]]
        title, header = list(filter(str.strip, first)), rows[0] if rows else []
        wide = len(header) >= _LEAST_WIDE and len(first) in (1, len(header))
        if not wide or len(title) != 1 or title[0] != first[0] or not all(map(_is_word, header)):
            continue
        if all(len(row) == len(header) for row in rows) and not all(map(_is_word, rows[-1])):
            raise TextError(
                f"has a title, {shown(title[0])}, above the header, which seems to be "
                f"{listed(header)}: remove the lines above the header"
            )


def _is_word(field: str) -> bool:
    return bool(field.strip()) and not is_number(with_point(field))


def read_columns(origin: Origin, header: bool | None = None) -> CsvTable:
    """Read the column names; `header` is None to detect them (see `dialect.is_header`)."""
    rows = list(islice(read_records(origin), LOOKED_AT + 1))
    if not rows:
        raise InputError(f"{origin.path} is empty: it has no rows")
    begin, first = opening_in(origin), rows[0]
    commas, rows = begin.commas, [with_points(row, begin.commas) for row in rows]
    if not (is_header(rows) if header is None else header):
        return CsvTable(origin, tuple(map(str, range(len(first)))), has_header=False, commas=commas)
    names = tuple(name.strip() or nameless(column) for column, name in enumerate(first))
    index = nameless(0) if begin.lacks_name or _has_index(rows) else None
    return CsvTable(origin, names, index=index, has_header=True, commas=commas)


def _has_index(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first column is what pandas and R write first, without a name: names of rows.

    A nameless column elsewhere is a feature, such as the taxon that no lineage names.
    """
    values = [row[0].strip() for row in rows[1:]]
    if rows[0][0].strip() or len(rows[0]) < 2 or len(set(values)) < len(values):
        return False
    return all(map(str.isdecimal, values)) or not any(map(is_number, values))


def nameless(column: int) -> str:
    """Name of a column without one, as in pandas."""
    return f"Unnamed: {column}"
