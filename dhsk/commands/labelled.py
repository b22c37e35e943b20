"""Labels of the samples of a command: row by row, or by the names of the samples."""

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any, Final

import click
import numpy as np

from dhsk.arrays import Rows
from dhsk.commands.inputs import is_same_file, own_label_column, table_at
from dhsk.commands.reading import Reading
from dhsk.errors import InputError, warn
from dhsk.gram import GramMatrix
from dhsk.kernels import NodeKernel
from dhsk.samples import Samples
from dhsk.samples.base import as_read
from dhsk.samples.csv_tables import TableSamples
from dhsk.samples.dialect import is_number
from dhsk.samples.json_lines import JSONL, read_fields
from dhsk.samples.labels import Labels, labels_of_rows, read_labels
from dhsk.samples.names import listed, shown
from dhsk.samples.paths import Origin
from dhsk.samples.tables import HEAD, Table, TextColumn
from dhsk.samples.texts import TextSamples
from dhsk.systems import quoted
from dhsk.units import counted
from dhsk.verbosity import Verbosity, verbosity

_FEWEST: Final = 10
"""Least number of different values that name samples."""

_LONG: Final = 80
"""Mean length of values above which they are texts."""

_BLANKS: Final = 3
"""Mean number of blanks above which values are texts."""


def read_labels_of(
    opened: GramMatrix | Samples, labels: str, table: Reading, *, min_classes: int = 2
) -> Labels:
    """Labels or groups of samples, FILE or FILE:COLUMN; InputError if those are of other samples.

    Where a column of a table of labels has the names of the samples, labels are taken by it: rows
    may be in another order, and of more samples. Others go row by row.
    """
    samples = _Nodes.of(opened) if isinstance(opened, GramMatrix) else opened
    n, dim = opened.shape
    others = None
    if samples is not None and not own_label_column(samples.source, labels):
        others = _other_table(samples, labels, table)
        if others is not None and (named := _named(samples, others, table.id_column)) is not None:
            rows = _rows_of(samples, *named, others)
            return labels_of_rows(labels, rows, min_classes=min_classes, header=table.header)
    try:
        found = read_labels(labels, n, min_classes=min_classes, header=table.header)
    except InputError as error:
        if n == dim or samples is None or not _are_so_many(labels, dim, table):
            raise
        raise InputError(f"{error}. {_transposed(samples, table.id_column)}") from error
    if samples is None:
        _say_by_row(labels, table)
    elif others is not None:
        _refuse_other_rows(samples, others)
        if samples.each_id() is not None:
            _refuse_other_spelling(samples, others)
            _check_others(samples, others, labels)
        else:
            _warn_of_counted(samples, others)
    return found


def _other_table(samples: Samples, labels: str, table: Reading) -> Table | None:
    """Columns, or fields, of a file of labels; None if it has none, or is that of the samples."""
    origin, own = Origin.of(labels), _table_of(samples)
    if own is not None and is_same_file(own.origin.path, str(origin.path)):
        return None
    return read_fields(origin) if origin.suffix in JSONL else table_at(origin, table)


def _table_of(samples: Samples) -> Table | None:
    """Named columns of the file of samples; None if it has none."""
    texts = _text_column(samples)
    return getattr(as_read(samples), "table", None) if texts is None else texts.table


def _text_column(samples: Samples) -> TextColumn | None:
    """Column of the texts that are samples; None if these are none of a table."""
    read = as_read(samples)
    return read.text_column if isinstance(read, TextSamples) else None


def _say_by_row(labels: str, table: Reading) -> None:
    """Say that a store has no names, if those of labels may stand beside them."""
    others = table_at(Origin.of(labels), table)
    if others is not None and len(others.names) > 1 and verbosity() >= Verbosity.USUAL:
        where = others.origin.path
        click.echo(f"dhsk: {where} is taken row by row: a store has no sample names", err=True)


@dataclass(frozen=True, eq=False)
class _Nodes(Samples):
    """Nodes of a graph, of which only the names are known."""

    @classmethod
    def of(cls, G: GramMatrix) -> "_Nodes | None":
        """Those of a store; None if it is of samples, whose names no store has."""
        if not isinstance(G.kernel, NodeKernel) or G.feature_names is None:
            return None
        return cls(str(G.path), G.shape, names=G.feature_names)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        raise InputError(f"{self.source} has no samples by {rows} rows, but nodes of a graph")


def weights_of_labels(given: str | None, y: Labels) -> Any:
    """What `class_weight` takes, of the option; InputError for a class that no label is.

    A class that is not named has the factor 1.
    """
    if given is None or given == "balanced":
        return given
    known = {str(label): label for label in np.unique(y).tolist()}
    found: dict[Any, float] = {}
    for part in given.split(","):
        name, _, factor = part.rpartition("=")
        if name.strip() not in known:
            raise InputError(
                f"--class-weight {given}: there is no class {name.strip()!r}, the classes are "
                f"{listed(list(known))}"
            )
        found[known[name.strip()]] = float(factor)
    return found


def _named(samples: Samples, others: Table, own: str | None) -> tuple[list[str], str] | None:
    """Names of samples, and the column of another table that has them; None if it has none."""
    if samples.each_id() is None:
        rows = _table_of(samples)
        column = None if rows is None else _shared_names(samples, rows, others)
        return None if rows is None or column is None else (list(rows.written(column)), column)
    column = own if own in others.names else _column_of_names(samples, others)
    if column is None:
        return None
    names = list(_names_of(samples))
    if column not in (own, others.names[0]) and _are_numbers(names):  # of an order, or an age
        raise InputError(
            f"column {column} of {others.origin.path} has the numbers that name the samples of "
            f"{samples.source}, in another order: make it the first column if it names them, or "
            "leave it out, so that labels go row by row"
        )
    return names, column


def _rows_of(samples: Samples, names: list[str], column: str, others: Table) -> list[int]:
    """Row of each sample in another table, by the column that has its name; tells of another order.

    InputError if a name is not there, or more than once.
    """
    values, where = list(others.written(column)), others.origin.path
    if values == names:
        return list(range(len(names)))
    place: dict[str, int] = {}
    for row, value in enumerate(values):
        if place.setdefault(value, row) != row:
            raise InputError(
                f"rows {place[value]} and {row} (counted from 0) of {where} are both "
                f"{shown(value)} by column {column}, which names the samples of "
                f"{samples.source}: keep one of each"
            )
    absent = [name for name in names if name not in place]
    if absent:
        raise InputError(
            f"{counted(len(absent), 'sample')} of {samples.source}, the first is "
            f"{shown(absent[0])}, {'have' if len(absent) > 1 else 'has'} no row in {where} by "
            f"column {column}: add what is missing, or leave these samples out"
        )
    if verbosity() >= Verbosity.USUAL:
        more = len(values) - len(set(names))
        unused = f", and {counted(more, 'row')} of others left out" if more else ""
        click.echo(f"dhsk: rows of {where} are taken by column {column}{unused}", err=True)
    return [place[name] for name in names]


def _check_others(samples: Samples, others: Table, labels: str) -> None:
    """Warn of a column that names others than the samples; refuse one that names a part of them."""
    names = list(_names_of(samples))
    for column in others.names:
        values = [] if labels.endswith(f":{column}") else list(others.written(column))
        if len(values) < _FEWEST or _repeats(values) or any(map(is_number, values)):
            continue
        if _are_texts(values):
            continue
        where, found = others.origin.path, set(values)
        if _in_another_order(names, values):
            absent = [name for name in names if name not in found]
            lacks = f", and not those of others, such as {shown(absent[0])}" if absent else ""
            raise InputError(
                f"column {column} of {where} has the names of {len(names) - len(absent)} of "
                f"{counted(len(names), 'sample')} of {samples.source}, in another order{lacks}"
                ": write the names alike, or leave that column out if labels go row by row"
            )
        if found.isdisjoint(names):
            warn(
                f"no value of column {column} of {where} is the name of a sample of "
                f"{samples.source} ({shown(values[0])}, but {shown(names[0])}): they are taken row "
                "by row, so make sure that both have the same order"
            )
        return


def _are_texts(values: list[str]) -> bool:
    """Whether values are long, or have several blanks, as texts do and names do not."""
    letters, blanks = (sum(map(count, values)) for count in (len, lambda value: value.count(" ")))
    return letters > _LONG * len(values) or blanks > _BLANKS * len(values)


def _repeats(values: list[str]) -> bool:
    """Whether more than one in ten values was there before: they name no samples."""
    return 10 * len(set(values)) < 9 * len(values)


def _in_another_order(names: list[str], values: list[str]) -> bool:
    """Whether a value is the name of a sample that stands elsewhere."""
    known = set(names)
    own = chain(names, repeat(None))
    return any(v in known and v != name for v, name in zip(values, own, strict=False))


def _refuse_other_spelling(samples: Samples, others: Table) -> None:
    """Refuse names in another order and other capitals, or without zeros that spreadsheets drop."""
    names = list(_names_of(samples))
    for column in others.names:
        values = list(others.written(column))
        numbers = all(map(str.isdecimal, (*names, *values)))
        own, found = ([_bare(name, numbers=numbers) for name in all_] for all_ in (names, values))
        named = len(set(found)) == len(found) and set(own) <= set(found)
        if named and found != own and (numbers or len(found) >= _FEWEST):
            name, other = next(
                (name, value)
                for name, bare in zip(names, own, strict=True)
                if (value := values[found.index(bare)]) != name
            )
            what, mend = "leading zeros", "alike, as text"
            if not numbers:
                other_signs = name.casefold() != other.casefold()
                what = "characters" if other_signs else "capitals"
                mend = (
                    "alike; R changes them unless check.names = FALSE" if other_signs else "alike"
                )
            raise InputError(
                f"column {column} of {others.origin.path} names the samples of {samples.source} "
                f"with other {what} ({shown(other)} is {shown(name)}), in another order: write the "
                f"names {mend}"
            )


def _bare(name: str, *, numbers: bool) -> str:
    """A name without what spreadsheets, people and R's make.names change."""
    if numbers:
        return name.lstrip("0")
    return re.sub(r"[^0-9a-z]", ".", re.sub(r"^x(?=[0-9])", "", name.casefold()))


def _refuse_other_rows(samples: Samples, others: Table) -> None:
    """Refuse a column of both tables whose values tell that the rows are in another order."""
    rows, texts = _table_of(samples), _text_column(samples)
    for name in [] if rows is None else others.names:
        if rows is None or name not in rows.names:
            continue
        own, values = list(rows.written(name)), list(others.written(name))
        few = min(len(own), len(values)) < _FEWEST or _repeats(own) or _repeats(values)
        if not few and _has_most(set(own), set(values)) and _in_another_order(own, values):
            named = f"if it names the samples give --id-column {quoted(name)}, else "
            raise InputError(
                f"{samples.source} and {others.origin.path} have column {name} in another order: "
                f"{'' if texts is not None and name == texts.column else named}give the labels in "
                "the order of the samples"
            )


def _warn_of_counted(samples: Samples, others: Table) -> None:
    """Warn where the first column counts the rows, but in another order, and samples lack names."""
    name, n = others.names[0], samples.shape[0]
    values = list(others.written(name))
    if not all(map(str.isdecimal, values)):
        return
    numbers = np.array(values, np.float64)
    steps = np.sort(numbers)
    if len(values) == n >= _FEWEST and (np.diff(steps) == 1).all() and (numbers != steps).any():
        warn(
            f"column {name} of {others.origin.path} counts its rows in another order, from "
            f"{values[0]} on, but labels are taken row by row, as samples of {samples.source} have "
            f"no names: sort by {name} if it counts these"
        )


def _shared_names(samples: Samples, rows: Table, others: Table) -> str | None:
    """Column of two tables, no feature, that seems to name samples that both have; None if none."""
    texts = _text_column(samples)
    features = samples.feature_names or () if texts is None else (texts.column,)
    for name in others.names:
        if name not in rows.names or name in features:
            continue
        own = list(rows.written(name))
        values = list(others.written(name))
        if len(own) >= _FEWEST and _are_names(own, values):
            return name
    return None


def _are_so_many(labels: str, number: int, table: Reading) -> bool:
    try:
        return len(read_labels(labels, number, min_classes=1, header=table.header)) == number
    except InputError:
        return False


def _transposed(samples: Samples, ids: str | None) -> str:
    """Words for samples with as many features as there are labels, and ids in a column."""
    said = f"{samples.source} has {samples.shape[1]:,} features: if these are the samples, which"
    if not isinstance(samples, TableSamples):
        return f"{said} must be rows, transpose them"
    index = (
        []
        if ids in (None, samples.table.index)
        else [f"index_col={samples.table.position(str(ids))}"]
    )
    way = f"{samples.table.in_pandas(*index)}.T.to_csv(OTHER)"
    return f"{said} must be rows, transpose the table, as {way} does"


def _names_of(samples: Samples) -> Iterator[str]:
    return samples.each_id() or iter(())


def _has_most(values: Set[str], known: Set[str]) -> bool:
    return 2 * len(values & known) > len(values)


def _column_of_names(samples: Samples, others: Table) -> str | None:
    """Column that has the names of samples, or most of them; None if none has.

    Names in the same order need no column. Only columns whose first values all differ are read.
    """
    first = list(islice(_names_of(samples), HEAD))
    head = {name: [str(v).strip() for v in values] for name, values in others.head().items()}
    names = list(_names_of(samples))
    for name, values in head.items():
        if values and values == first[: len(values)] and list(others.written(name)) == names:
            return None
    known = set(names)
    distinct = {name: set(v) for name, v in head.items() if len(set(v)) == len(v)}
    likely = (n for n, v in distinct.items() if _has_most(v, known) or not _are_numbers(v))
    for name in likely:
        if _are_names(names, list(others.written(name))):
            return name
    if _are_numbers(known):
        return None
    words = (name for name, values in head.items() if not _are_numbers(values))
    return next((n for n in words if _have_repeats(names, list(others.written(n)))), None)


def _have_repeats(names: list[str], values: list[str]) -> bool:
    """Whether values are the names of most samples, and some names or values stand twice."""
    known, found = set(names), set(values)
    twice = len(known) < len(names) or len(found) < len(values)
    return twice and _has_most(known, found)


def _are_names(names: list[str], values: list[str]) -> bool:
    """Whether values are names of samples: of all, of most, or mostly names; each is there once.

    Numbers are names where all are the same: two tables count their rows from 0 and from 1.
    """
    known, found = set(names), set(values)
    if len(known) < len(names) or len(found) < len(values):
        return False
    if known == found:
        return True
    return (_has_most(known, found) or _has_most(found, known)) and not _are_numbers(known)


def _are_numbers(values: Iterable[str]) -> bool:
    return all(map(is_number, values))
