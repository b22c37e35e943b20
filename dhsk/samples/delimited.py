"""Fields and columns of CSV and TSV files, compressed or not.

`dialect` finds the delimiter and the header.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from dhsk.errors import InputError
from dhsk.samples.dialect import LOOKED_AT, delimiter_of, is_header, is_number, records_of
from dhsk.samples.names import shown
from dhsk.samples.paths import Origin, packed
from dhsk.samples.tables import HEAD, Table

TABLES = packed(".csv", ".tsv")


@dataclass(frozen=True)
class CsvTable(Table):
    """The columns of a table; without a header, names are column numbers, counted from 0."""

    has_header: bool

    def records(self, *, strict: bool = False) -> Iterator[list[str]]:
        """Fields of each row below the header, see `read_records`."""
        return read_records(self.origin, int(self.has_header), strict=strict)

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

    def head(self) -> dict[str, list[str]]:
        """Fields of each column in the first rows that are whole, see `Table.head`."""
        rows = [row for row in islice(self.records(), HEAD) if len(row) == len(self.names)]
        return dict(zip(self.names, map(list, zip(*rows, strict=True)), strict=False))

    def texts(self, name: str) -> Iterator[str]:
        """Yield the texts of a column; InputError if all are numbers."""
        only_numbers, row, position = True, -1, self.position(name)
        for row, text in enumerate(self._quoted(name, position)):  # noqa: B007
            only_numbers = only_numbers and is_number(text)
            yield text
        if only_numbers and row >= 0:
            path = self.origin.path
            raise InputError(
                f"{path}:{name} holds numbers and no text: give {path} without ':{name}' if its "
                "columns are features, or name the column of the texts"
            )

    def _quoted(self, name: str, position: int) -> Iterator[str]:
        """Values of a column whose texts may hold the delimiter in quotes."""
        row = 0
        try:
            for record in self.records(strict=True):
                if len(record) != len(self.names):
                    raise InputError(
                        f"{self.place(name, row)} has {len(record)} fields, but the first row has "
                        f"{len(self.names)}: quote texts that contain the delimiter, as pandas' "
                        "to_csv does, or give the texts as .jsonl"
                    )
                yield record[position]
                row += 1
        except InputError as error:
            if isinstance(error.__cause__, csv.Error):
                raise InputError(
                    f"{self.place(name, row)} has a quotation mark that does not enclose a "
                    f"whole field ({error.__cause__}): quote such texts, as pandas' to_csv "
                    "does, or give the texts as .jsonl"
                ) from error
            raise


def read_records(origin: Origin, skip: int = 0, *, strict: bool = False) -> Iterator[list[str]]:
    """Yield the fields of each nonblank line, after the first `skip`; `strict` as in `dialect`."""
    with origin.reading(), origin.open_text() as text:
        begin = list(islice(text, LOOKED_AT + 2))
        reader = records_of(chain(begin, text), _delimiter_of(begin, origin), strict=strict)
        yield from islice((record for record in reader if record), skip, None)


def delimiter_in(origin: Origin) -> str:
    """Delimiter of a file, see `dialect.delimiter_of`."""
    with origin.reading(), origin.open_text() as text:
        return _delimiter_of(list(islice(text, LOOKED_AT + 2)), origin)


def _delimiter_of(begin: list[str], origin: Origin) -> str:
    return delimiter_of(begin, "\t" if ".tsv" in origin.suffix else ",")


def read_columns(origin: Origin, header: bool | None = None) -> CsvTable:
    """Read the column names; `header` is None to detect them (see `dialect.is_header`)."""
    rows = list(islice(read_records(origin), LOOKED_AT + 1))
    if not rows:
        raise InputError(f"{origin.path} is empty: it has no rows")
    first = rows[0]
    if not (is_header(rows) if header is None else header):
        return CsvTable(origin, tuple(map(str, range(len(first)))), has_header=False)
    names = tuple(name.strip() or nameless(column) for column, name in enumerate(first))
    return CsvTable(origin, names, has_header=True)


def nameless(column: int) -> str:
    """Name of a column without one, as in pandas."""
    return f"Unnamed: {column}"
