"""Samples in CSV and TSV files, one a row, compressed or not.

Python's csv and float are used because they round every number correctly, which the default
parser of pandas before 3.1 does not, and let a message name the cell that is wrong.
"""

import csv
import io
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np

from dhsk.arrays import Rows
from dhsk.errors import InputError
from dhsk.samples.base import Samples, flat_shape, row_ranges
from dhsk.samples.paths import TABLES, Origin

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Spellings of an absent value, in lower case."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table; without a header, names are column numbers, counted from 0."""

    names: tuple[str, ...]
    has_header: bool

    def position(self, name: str, path: Path) -> int:
        """Return where a column stands, or say which there are in the file."""
        if name in self.names:
            return self.names.index(name)
        listed = ", ".join(self.names[:10]) + (", ..." if len(self.names) > 10 else "")
        raise InputError(f"{path} has no column {name!r}: its columns are {listed}")


@dataclass(frozen=True)
class TableSamples(Samples):
    """A CSV or TSV file; memory in use: one block and one row of text."""

    source: str
    shape: tuple[int, int]
    origin: Origin
    columns: Columns
    kept: tuple[int, ...]
    """Positions of the columns that are features."""
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    id_column: int | None = None
    """Position of the column that names the samples."""
    is_sparse = False
    nnz = None

    def blocks(self, rows: int) -> Iterator[Rows]:
        """Yield row blocks, as `Samples.blocks` says."""
        samples = self.samples()
        for first, last in row_ranges(self.shape[0], rows):
            block = np.empty((last - first, len(self.kept)))
            for row, sample in enumerate(islice(samples, last - first)):
                block[row] = sample
            yield block

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Ids of the samples, as `Samples.ids` says."""
        return None if self.id_column is None else self._ids(self.id_column, rows)

    def _ids(self, position: int, rows: int) -> Iterator[Sequence[str]]:
        records = read_records(self.origin, skip=int(self.columns.has_header))
        names = (record[position] for record in records)
        while block := list(islice(names, rows)):
            yield block

    def samples(self) -> Iterator[list[float]]:
        """Yield the features of each sample, after checking that all are numbers."""
        for row, record in enumerate(read_records(self.origin, skip=int(self.columns.has_header))):
            self._check_width(record, row)
            try:
                yield [float(record[column]) for column in self.kept]
            except ValueError:
                self._refuse_text(record, row)

    def _check_width(self, record: list[str], row: int) -> None:
        if len(record) != len(self.columns.names):
            first_line = "header" if self.columns.has_header else "first row"
            raise InputError(
                f"{self.source}: row {row} (counted from 0) has {len(record)} fields, "
                f"but the {first_line} has {len(self.columns.names)}"
            )

    def _refuse_text(self, record: list[str], row: int) -> NoReturn:
        column = next(column for column in self.kept if not is_number(record[column]))
        name, value = self.columns.names[column], record[column]
        option = f"--drop-column {shlex.quote(name)}"
        if value.strip().lower() in MISSING:
            raise InputError(
                f"{self.source}: row {row} (counted from 0) has no value in column {name!r}: fill "
                f"it, drop the row and its label, or leave the column out with {option}"
            )
        raise InputError(
            f"{self.source}: column {name!r} is not numeric, row {row} (counted from 0) holds "
            f"{value!r}: leave it out with {option} (drop_columns=[{name!r}]), "
            f"and if it holds the labels name it with "
            f"--labels {shlex.quote(f'{self.origin.path}:{name}')}"
        )


def open_table(
    origin: Origin, drop_columns: Sequence[str] = (), id_column: str | None = None
) -> TableSamples:
    """Open a CSV or TSV file and count its samples, which reads it once.

    Raises
    ------
    InputError
        If a kept cell is no number, rows differ in length, or a column to drop does not exist.
    """
    origin.refuse_key("leave columns out with --drop-column")
    source = str(origin)
    columns = read_columns(origin)
    for name in drop_columns:
        columns.position(name, origin.path)
    named = None if id_column is None else columns.position(id_column, origin.path)
    left_out = {*drop_columns, id_column}
    kept = tuple(i for i, name in enumerate(columns.names) if name not in left_out)
    _refuse_pandas_index(source, columns, kept)
    unsized = TableSamples(source, (0, len(kept)), origin, columns, kept)
    shape = flat_shape(source, (sum(1 for _ in unsized.samples()), len(kept)))
    return replace(
        unsized,
        shape=shape,
        feature_names=tuple(columns.names[i] for i in kept) if columns.has_header else None,
        id_column=named,
    )


def read_records(origin: Origin, skip: int = 0) -> Iterator[list[str]]:
    """Yield the fields of each line that is not blank, after the first `skip`."""
    delimiter = "\t" if ".tsv" in origin.suffix else ","
    with origin.reading(), origin.open_bytes() as handle:
        # utf-8-sig: spreadsheets write a byte order mark, which would become part of a name.
        text = io.TextIOWrapper(handle, encoding="utf-8-sig", newline="")
        records = (record for record in csv.reader(text, delimiter=delimiter) if record)
        yield from islice(records, skip, None)


def read_columns(origin: Origin) -> Columns:
    """Read the column names: a first row with any field that is not a number is a header.

    Raises
    ------
    InputError
        If the file is empty, or its first row may be the counting header that pandas writes.
    """
    first = next(read_records(origin), None)
    if first is None:
        raise InputError(f"{origin.path} is empty: it has no rows")
    if _counts(first):
        raise InputError(
            f"{origin.path} begins with the row {','.join(first[:3])},..., which looks like the "
            "header that pandas writes for columns without names but could be a sample: give the "
            "columns names, or write neither header nor index (header=False, index=False)"
        )
    if all(is_number(field) or field.strip().lower() in MISSING for field in first):
        return Columns(tuple(map(str, range(len(first)))), has_header=False)
    names = tuple(name.strip() or f"Unnamed: {column}" for column, name in enumerate(first))
    return Columns(names, has_header=True)


def usual_id_column(source: str, known: Collection[str]) -> str | None:
    """Name the column of a table that names the samples, if one is called id; None of other files.

    Parameters
    ----------
    source
        FILE or FILE:KEY.
    known
        Columns that are something else.
    """
    origin = Origin.of(source)
    if origin.suffix not in TABLES or origin.path.is_dir():
        return None
    found = (n for n in read_columns(origin).names if n.lower() == "id" and n not in known)
    return next(found, None)


def _counts(record: list[str]) -> bool:
    """Tell whether a row is 0, 1, 2, ..., perhaps after the empty cell above an index."""
    names = record[1:] if record[0] == "" else record
    return len(names) >= 3 and names == [str(number) for number in range(len(names))]


def _refuse_pandas_index(source: str, columns: Columns, kept: tuple[int, ...]) -> None:
    nameless = next((columns.names[i] for i in kept if columns.names[i] == f"Unnamed: {i}"), None)
    if nameless is not None:
        raise InputError(
            f"{source}: column {nameless.removeprefix('Unnamed: ')} (counted from 0) has no name, "
            "like the index that pandas writes: leave it out with --drop-column "
            f"'{nameless}', or give it a name"
        )


def is_number(field: str) -> bool:
    """Tell whether Python reads a field as a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True
