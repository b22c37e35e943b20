"""Samples in CSV and TSV files, one per row, compressed or not.

Python's float is used because it rounds every number correctly, which the default parser of pandas
before 3.1 does not, and lets a message name the cell in error.
"""

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Final, NoReturn

import numpy as np

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, warn
from dhsk.samples.base import Samples, flat_shape
from dhsk.samples.delimited import (
    TABLES,
    CsvTable,
    opening_in,
    read_columns,
    read_records,
)
from dhsk.samples.dialect import (
    AS_WRITTEN,
    has_decimal_comma,
    has_decimal_point,
    has_thousands,
    is_missing,
    is_number,
    may_have_points,
    number_or_gap,
)
from dhsk.samples.format import Asked, Format, SamplesFile, refuse_header
from dhsk.samples.guesses import describe_table
from dhsk.samples.kinds import is_word_for_none
from dhsk.samples.names import shown
from dhsk.samples.numbering import Numbering
from dhsk.samples.paths import Origin
from dhsk.samples.refusals import NoNumbersError
from dhsk.samples.roles import ids_in
from dhsk.samples.tables import (
    ENCODED,
    TextColumn,
    first_of,
    left_out,
    text_column,
    warn_of_twins,
    way_of_one,
    way_of_several,
)
from dhsk.systems import quoted

_SEARCHED: Final = 500
"""Number of rows in which a message looks for other columns with the same defects."""

_IN_UNITS: Final = re.compile(r"[+-]?\d[\d.,]*\s?([^\W\d_]{1,3}|[%°‰]C?)")
"""A number with its unit, or a percent sign."""

_FEWEST_WORDS: Final = 4
"""Least number of words of a value that is taken for a text."""


@dataclass(frozen=True, eq=False)
class TableSamples(Samples):
    """A CSV or TSV file; takes the memory of one block and one row of text."""

    table: CsvTable
    kept: tuple[int, ...]
    """Positions of the columns that are features."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        samples = self.samples()
        for part in blocks(self.shape[0], rows):
            size = part.stop - part.start
            block = np.empty((size, len(self.kept)))
            count = 0
            for count, sample in enumerate(islice(samples, size), 1):
                block[count - 1] = sample
            yield block[:count]

    def samples(self) -> Iterator[list[float]]:
        """Yield the features of each sample, after checking that all are numbers, or gaps."""
        for row, written in enumerate(self.table.records()):
            if len(written) != len(self.table.names):
                self.table.refuse_width(row, written)
            record = self._with_points(written, row) if self.table.commas else written
            try:
                if "_" in "".join(record) and not all(is_number(record[c]) for c in self.kept):
                    raise ValueError("an underscore, which Python takes in a number")
                values = [float(record[column]) for column in self.kept]
            except ValueError:
                found = [number_or_gap(record[column]) for column in self.kept]
                values = [value for value in found if value is not None]
                if len(values) < len(found):
                    self._refuse_text(record, row)
            yield values

    def _with_points(self, record: list[str], row: int) -> list[str]:
        """Numbers with points for decimal commas; refuse what has a decimal point already."""
        for column in self.kept:
            if column in self.table.commas and has_decimal_point(value := record[column]):
                raise InputError(
                    f"{self.source}: row {row} (counted from 0) holds {shown(value)} in column "
                    f"{shown(self.table.names[column])}, a decimal point, but others are commas: "
                    "write all numbers alike"
                )
        return self.table.as_numbers(record)

    def _refuse_text(self, record: list[str], row: int) -> NoReturn:
        """Refuse what is no number, with the other columns that have such in the first rows."""
        wrong = self._wrong(record, row)
        commas = self._with_commas(wrong)
        if len(commas) == len(wrong):
            self._refuse_comma(*next(iter(wrong.items())))
        wrong = {c: place for c, place in wrong.items() if c not in commas}
        if len(wrong) > 1:
            self._refuse_several(wrong, record)
        ((column, (row, value)),) = wrong.items()
        name = self.table.names[column]
        raise NoNumbersError.at(
            f"{self.source}: {self._text_hint(record)}column {shown(name)} is not numeric, row "
            f"{row} (counted from 0) holds {shown(value)}",
            f"{self._as_gap(column, value)}"
            f"{way_of_one(self.table.origin.path, name, ids_in(self.table, [name]))}; else "
            f"{ENCODED}, or leave it out with {left_out([name])}",
        )

    def _as_gap(self, column: int, value: str) -> str:
        """Words for a value that may stand for a gap, or has a unit: others are numbers."""
        if not self._holds_numbers(column):
            return ""
        if not is_word_for_none(value):
            return "write its numbers alone, without units and signs; "
        way = self.table.in_pandas(f"na_values=[{value!r}]")
        return f"if it stands for what is missing, leave it empty, as {way}.to_csv does; "

    def _holds_numbers(self, column: int) -> bool:
        """Whether most values are numbers, or all have one unit, as 12 mm or 5 %."""
        rows = map(self.table.as_numbers, islice(self.table.records(), _SEARCHED))
        values = [record[column] for record in rows if column < len(record)]
        numbers = sum(number_or_gap(one) is not None for one in values)
        found = [_IN_UNITS.fullmatch(one.strip()) for one in values if not is_missing(one)]
        units = {None if one is None else one[1] for one in found}
        return 2 * numbers > len(values) or (len(units) == 1 and None not in units)

    def _wrong(self, record: list[str], row: int) -> dict[int, tuple[int, str]]:
        """First row and value that is no number of each such column, by this row and the first."""
        first = map(self.table.as_numbers, islice(self.table.records(), _SEARCHED))
        rows = chain(enumerate(first), [(row, record)])
        found: dict[int, tuple[int, str]] = {}
        for place, fields in rows:
            for column in self.kept if len(fields) == len(self.table.names) else ():
                if column not in found and number_or_gap(fields[column]) is None:
                    found[column] = (place, fields[column])
        return dict(sorted(found.items()))

    def _with_commas(self, wrong: dict[int, tuple[int, str]]) -> set[int]:
        """Columns of numbers with commas, which are no others once these are read as numbers."""
        return {
            c for c, (_, value) in wrong.items()
            if has_decimal_comma(value) or has_thousands(value, ",")
        }  # fmt: skip

    def _refuse_comma(self, column: int, place: tuple[int, str]) -> NoReturn:
        (row, value), name = place, self.table.names[column]
        what, way = "a decimal comma: write decimal points", "decimal=','"
        if has_thousands(value, opening_in(self.table.origin).delimiter):
            what, way = "with separators of thousands: leave them out", "thousands=','"
        index = "" if self.table.index else ", index=False"
        written = f"{self.table.in_pandas(way)}.to_csv({_points_file(self.table)!r}{index})"
        raise InputError(
            f"{self.source}: row {row} (counted from 0) holds {shown(value)} in column "
            f"{shown(name)}, {what}, as {written} does"
        )

    def _refuse_several(self, wrong: dict[int, tuple[int, str]], record: list[str]) -> NoReturn:
        names = self.table.names
        texts = [f"{shown(names[c])} (row {row} holds {shown(v)})" for c, (row, v) in wrong.items()]
        ids = ids_in(self.table, [names[column] for column in wrong])
        mixed = [shown(names[c]) for c in wrong if names[c] != ids and self._holds_numbers(c)]
        mend = (
            f"write numbers alone in {first_of(mixed)}, without units and signs, and leave cells "
            "empty that have none; "
            if mixed
            else ""
        )
        left = left_out([n for c in wrong if (n := names[c]) != ids])
        raise NoNumbersError.at(
            f"{self.source}: {self._text_hint(record)}it has {len(wrong):,} columns that are not "
            f"numeric (rows are counted from 0): {first_of(texts)}",
            f"{mend}{way_of_several(self.table.origin.path, ids)}; {ENCODED}; or leave them "
            f"out with {left}",
        )

    def _text_hint(self, record: list[str]) -> str:
        """Beginning of a message about a table of which a column holds texts, by its first rows."""
        names, head = self.table.names, self.table.head()
        columns = {c: [record[c], *head.get(names[c], [])] for c in self.kept}
        words = {c: sum(len(v.split()) for v in values) for c, values in columns.items()}
        texts = [
            c for c in self.kept
            if max(words[c] / len(columns[c]), len(record[c].split())) >= _FEWEST_WORDS
        ]  # fmt: skip
        if not texts:
            return ""
        column = max(texts, key=words.__getitem__)
        place = quoted(f"{self.table.origin.path}:{names[column]}")
        return f"to count the words of a column of texts give {place}. Without them: "

    @property
    def has_header(self) -> bool:
        """Whether the first row names the columns."""
        return self.table.has_header

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


def _open(origin: Origin, asked: Asked) -> TableSamples | TextColumn:
    table = read_columns(origin, asked.header)
    asked = replace(asked, id_column=asked.id_column or table.index)
    if table.holds_texts(asked):
        return text_column(table, asked.id_column)
    return _open_numbers(table, asked)


def _open_numbers(table: CsvTable, asked: Asked) -> TableSamples:
    """Open columns of numbers and count the samples, which reads them once."""
    source, names = str(table.origin), table.names
    for name in asked.named:
        table.position(name)
    out = (*asked.named, table.index)
    kept = tuple(i for i, name in enumerate(names) if name not in out)
    unsized = TableSamples(source, (0, len(kept)), table, kept)
    n_samples, numbering, has_gaps = 0, Numbering(), False
    for n_samples, sample in enumerate(unsized.samples(), 1):  # noqa: B007
        numbering.add(sample)
        has_gaps = has_gaps or math.isnan(sum(sample))
    made = replace(
        unsized,
        shape=flat_shape(source, (n_samples, len(kept))),
        feature_names=tuple(names[i] for i in kept) if table.has_header else None,
        names=None if asked.id_column is None else partial(table.values, asked.id_column),
        has_gaps=has_gaps,
    )
    _warn(made, numbering, asked.header)
    return made


def _warn(samples: TableSamples, numbering: Numbering, asked: bool | None) -> None:
    names = [samples.table.names[c] for c in samples.kept]
    _warn_of_points(samples.table, names)
    warn_of_twins(samples.source, samples.table.names, samples.kept)
    if asked is None and samples.has_header and all(map(is_number, names)):
        warn(samples.how_begun())
    for place in numbering.found():
        name = names[place]
        warn(
            f"{samples.source}: column {shown(name)} holds a different whole number in every row "
            "but is taken for a feature: if it numbers the samples, name it with "
            f"--id-column {quoted(name)} (id_column={name!r})",
        )


def _warn_of_points(table: CsvTable, names: Collection[str]) -> None:
    """Warn of numbers such as 1.070 beside 917, or beside decimal commas."""
    begin, found = opening_in(table.origin), []
    if begin.delimiter == ",":
        return
    for name, values in table.head().items():
        if name not in names:
            continue
        dotted = [value for value in values if "." in value]
        whole = [value for value in values if value.strip().isdecimal()]
        beside = whole or begin.commas
        if beside and len(dotted) > 1 and all(map(may_have_points, dotted)):
            some = ", ".join(value.strip() for value in [dotted[0], *whole[:1]])
            found.append(f"{shown(name)} ({some})")
    if found:
        way = table.in_pandas(*([] if begin.commas and table.has_points else ["thousands='.'"]))
        warn(
            f"{table.origin}: points are read as decimal points in {first_of(found)}: if they "
            f"separate thousands, leave them out, as {way}.to_csv('{_points_file(table)}'"
            f"{'' if table.index else ', index=False'}) does"
        )


def _points_file(table: CsvTable) -> str:
    return f"{table.origin.path.name.partition('.')[0]}_points.csv"


def _labels(origin: Origin, asked: Asked) -> list[str]:
    """Values of the column of the key, or of the only one."""
    first = next(read_records(origin), [])
    if origin.key is not None or len(first) > 1:
        found: list[str] = read_columns(origin, asked.header).labels().tolist()
        return found
    column = [record[0] for record in read_records(origin)]
    if asked.header is not None:
        return column[int(asked.header) :]
    # A header is one line too many, or text above numbers.
    below = column[1:]
    text_above_numbers = bool(below) and not is_number(column[0]) and all(map(is_number, below))
    if len(column) == asked.n_samples + 1 or text_above_numbers:
        return below
    refuse_header(origin, column, asked)
    return column


def _describe(origin: Origin) -> SamplesFile:
    table = read_columns(origin)
    _warn_of_points(table, table.names)
    warn_of_twins(str(origin), table.names, range(len(table.names)))
    number, gapped = 0, set[str]()
    for number, record in enumerate(table.records(), 1):  # noqa: B007
        if not AS_WRITTEN.isdisjoint(record):
            gapped |= {k for k, v in zip(table.names, record, strict=False) if is_missing(v)}
    if number and not table.head():
        table.refuse_width(0, next(table.records()))
    return describe_table("a table", replace(table, gapped=frozenset(gapped)), number)


FORMAT = Format(TABLES, _open, _describe, _labels, has_columns=True)
