"""Samples in CSV and TSV files, one per row, compressed or not.

Python's csv and float are used because they round every number correctly, which the default
parser of pandas before 3.1 does not, and let a message name the cell in error. `dialect` finds the
delimiter and the header.
"""

import shlex
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Final, NoReturn

import numpy as np

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, InputWarning
from dhsk.objects.places import Place
from dhsk.samples.base import Samples, flat_shape
from dhsk.samples.dialect import (
    LOOKED_AT,
    delimiter_of,
    has_decimal_comma,
    is_header,
    is_missing,
    is_number,
    records_of,
)
from dhsk.samples.numbering import Numbering
from dhsk.samples.paths import TABLES, Origin

_LISTED: Final = 10
"""Largest number of columns in a message."""

_FEWEST_WORDS: Final = 4
"""Least number of words of a value that is taken for a text."""

_WIDEST: Final = 40
"""Largest number of characters of a name or value in a message."""


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table; without a header, names are column numbers, counted from 0."""

    names: tuple[str, ...]
    has_header: bool

    def position(self, name: str, path: Place) -> int:
        """Return the position of a column, or raise `InputError` with the columns of the file."""
        if name in self.names:
            refuse_twice(path, self.names, name)
            return self.names.index(name)
        listed = listed_names(self.names)
        none = "" if self.has_header else "no header and "
        raise InputError(f"{path} has {none}no column {shown(name)}: its columns are {listed}")


@dataclass(frozen=True)
class TableSamples(Samples):
    """A CSV or TSV file; takes the memory of one block and one row of text."""

    source: str
    shape: tuple[int, int]
    origin: Origin
    columns: TableColumns
    kept: tuple[int, ...]
    """Positions of the columns that are features."""
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    id_column: int | None = None
    """Position of the column that names the samples."""
    is_sparse = False
    nnz = None

    def _blocks(self, rows: int) -> Iterator[Rows]:
        samples = self.samples()
        for part in blocks(self.shape[0], rows):
            size = part.stop - part.start
            block = np.empty((size, len(self.kept)))
            count = 0
            for count, sample in enumerate(islice(samples, size), 1):
                block[count - 1] = sample
            yield block[:count]

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return None if self.id_column is None else self._ids(self.id_column, rows)

    def _ids(self, position: int, rows: int) -> Iterator[Sequence[str]]:
        records = read_records(self.origin, skip=int(self.has_header))
        names = (record[position].strip() for record in records)
        while block := list(islice(names, rows)):
            yield block

    def samples(self) -> Iterator[list[float]]:
        """Yield the features of each sample, after checking that all are numbers."""
        for row, record in enumerate(read_records(self.origin, skip=int(self.has_header))):
            self._check_width(record, row)
            try:
                if "_" not in "".join(record):
                    yield [float(record[column]) for column in self.kept]
                    continue
                yield [_number(record[column]) for column in self.kept]
            except ValueError:
                self._refuse_text(record, row)

    def _check_width(self, record: list[str], row: int) -> None:
        if len(record) != len(self.columns.names):
            first_line = "header" if self.has_header else "first row"
            raise InputError(
                f"{self.source}: row {row} (counted from 0) has {len(record)} fields, "
                f"but the {first_line} has {len(self.columns.names)}"
            )

    def _refuse_text(self, record: list[str], row: int) -> NoReturn:
        column = next(column for column in self.kept if not is_number(record[column]))
        name, value = self.columns.names[column], record[column]
        option = f"--drop-column {shlex.quote(name)}"
        place = f"{self.source}: row {row} (counted from 0)"
        if is_missing(value):
            raise InputError(
                f"{place} has no value in column {shown(name)}: fill "
                f"it, drop the row and its label, or leave the column out with {option}"
            )
        if has_decimal_comma(value):
            raise InputError(
                f"{place} holds {shown(value)} in column {shown(name)}, a decimal comma: write "
                "decimal points, as pandas.read_csv(FILE, sep=';', decimal=',').to_csv does"
            )
        raise InputError(
            f"{self.source}: column {shown(name)} is not numeric, row {row} (counted from 0) holds "
            f"{shown(value)}: if it holds the labels name it with "
            f"--labels {shlex.quote(f'{self.origin.path}:{name}')}, if the samples' ids with "
            f"--id-column {shlex.quote(name)}, else leave it out with {option} "
            f"(drop_columns=[{name!r}]){self._text_hint(record)}"
        )

    def _text_hint(self, record: list[str]) -> str:
        """End of a message about a row of which a column, perhaps another one, holds texts."""
        texts = (column for column in self.kept if len(record[column].split()) >= _FEWEST_WORDS)
        column = next(texts, None)
        if column is None:
            return ""
        place = f"{self.origin.path}:{self.columns.names[column]}"
        return f"; to count the words of a column of texts give {shlex.quote(place)}"

    @property
    def has_header(self) -> bool:
        """Whether the first row names the columns."""
        return self.columns.has_header

    def how_begun(self) -> str:
        """Text of the warning: what the first row was taken for, and how to change it."""
        if self.has_header:
            return (
                f"the first row of {self.source} is taken for a header, as its numbers count "
                "upwards (--no-header, header=False if it is a sample)"
            )
        return (
            f"{self.source} has no header: its first row is taken for a sample, and columns "
            "are named by their numbers, from 0 (--header if it is one)"
        )


def refuse_twice(path: Place, names: Sequence[str], name: str) -> None:
    """Refuse a name that several columns have: which of them is meant is unknown."""
    if (count := names.count(name)) > 1:
        raise InputError(f"{path} has {count} columns called {shown(name)}: rename all but one")


def shown(text: str) -> str:
    """Quote a name or value from a file, shortened if it is long."""
    return repr(text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}...")


def listed_names(names: Sequence[str]) -> str:
    """List the first names of columns, each shortened if it is long."""
    few = [shown(name)[1:-1] for name in names[:_LISTED]]
    return ", ".join([*few, "..."] if len(names) > _LISTED else few)


def open_table(
    origin: Origin,
    drop_columns: Sequence[str] = (),
    header: bool | None = None,
    id_column: str | None = None,
) -> TableSamples:
    """Open a CSV or TSV file and count its samples, which reads it once.

    Warns (`InputWarning`) if the first row is numbers but taken for a header, or a feature looks
    like a sample number. Raises `InputError` if a feature is not a number, rows differ in length,
    or a column to drop does not exist.
    """
    origin.refuse_key("leave columns out with --drop-column")
    source = str(origin)
    columns = read_columns(origin, header)
    for name in drop_columns:
        columns.position(name, origin.path)
    named = None if id_column is None else columns.position(id_column, origin.path)
    left_out = {*drop_columns, id_column}
    kept = tuple(i for i, name in enumerate(columns.names) if name not in left_out)
    _refuse_index(origin, columns, kept)
    unsized = TableSamples(source, (0, len(kept)), origin, columns, kept)
    n_samples, numbering = 0, Numbering()
    for n_samples, sample in enumerate(unsized.samples(), 1):  # noqa: B007
        numbering.add(sample)
    made = replace(
        unsized,
        shape=flat_shape(source, (n_samples, len(kept))),
        feature_names=tuple(columns.names[i] for i in kept) if columns.has_header else None,
        id_column=named,
    )
    _warn(made, numbering, header)
    return made


def _number(field: str) -> float:
    if not is_number(field):
        raise ValueError
    return float(field)


def _warn(samples: TableSamples, numbering: Numbering, asked: bool | None) -> None:
    names = [samples.columns.names[c] for c in samples.kept]
    if asked is None and samples.has_header and all(map(is_number, names)):
        warnings.warn(samples.how_begun(), InputWarning, stacklevel=4)
    for place in numbering.found():
        name = names[place]
        warnings.warn(
            f"{samples.source}: column {shown(name)} holds a different whole number in every row "
            "but is taken for a feature: if it numbers the samples, name it with "
            f"--id-column {shlex.quote(name)} (id_column={name!r})",
            InputWarning,
            stacklevel=4,
        )


def read_records(origin: Origin, skip: int = 0, *, strict: bool = False) -> Iterator[list[str]]:
    """Yield the fields of each nonblank line, after the first `skip`; `strict` as in `dialect`."""
    own = "\t" if ".tsv" in origin.suffix else ","
    with origin.reading(), origin.open_text() as text:
        begin = list(islice(text, LOOKED_AT + 2))
        reader = records_of(chain(begin, text), delimiter_of(begin, own), strict=strict)
        yield from islice((record for record in reader if record), skip, None)


def read_columns(origin: Origin, header: bool | None = None) -> TableColumns:
    """Read the column names; `header` is None to detect them (see `dialect.is_header`)."""
    rows = list(islice(read_records(origin), LOOKED_AT + 1))
    if not rows:
        raise InputError(f"{origin.path} is empty: it has no rows")
    first = rows[0]
    if not (is_header(rows) if header is None else header):
        return TableColumns(tuple(map(str, range(len(first)))), has_header=False)
    names = tuple(name.strip() or _nameless(column) for column, name in enumerate(first))
    return TableColumns(names, has_header=True)


def usual_id_column(source: str, known: Collection[str], header: bool | None = None) -> str | None:
    """Name of the column called id in a table (FILE or FILE:KEY), unless it is in `known`.

    None if there is none, and for files that are not tables.
    """
    origin = Origin.of(source)
    if origin.suffix not in TABLES or origin.is_folder:
        return None
    names = read_columns(origin, header).names
    return next((n for n in names if n.lower() == "id" and n not in known), None)


def _refuse_index(origin: Origin, columns: TableColumns, kept: tuple[int, ...]) -> None:
    """Refuse as a feature what pandas and R write first, without a name: the rows' numbers.

    A nameless column elsewhere is a feature, such as the taxon that no lineage names.
    """
    if 0 not in kept or len(kept) == 1 or columns.names[0] != _nameless(0):
        return
    values = [row[0] for row in islice(read_records(origin, skip=1), LOOKED_AT)]
    if len(set(values)) == len(values) and all(value.strip().isdecimal() for value in values):
        raise InputError(
            f"{origin}: column 0 (counted from 0) has no name and another whole number in each row,"
            f" like the index that pandas writes: name the samples by it with --id-column "
            f"'{_nameless(0)}', or give it a name if it is a feature"
        )


def _nameless(column: int) -> str:
    """Name of a column without one, as in pandas."""
    return f"Unnamed: {column}"
