"""Labels of the samples of a command: row by row, or by the names of the samples."""

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import click
import numpy as np

from dhsk.arrays import Rows
from dhsk.commands.inputs import own_label_column, table_at
from dhsk.commands.reading import Reading
from dhsk.errors import InputError, warn
from dhsk.gram import GramMatrix
from dhsk.kernels import NodeKernel
from dhsk.samples import Samples
from dhsk.samples.base import as_read
from dhsk.samples.csv_tables import TableSamples
from dhsk.samples.dialect import is_number
from dhsk.samples.labels import Labels, labels_of_rows, read_labels
from dhsk.samples.names import listed
from dhsk.samples.paths import Origin
from dhsk.samples.tables import HEAD, Table
from dhsk.units import counted
from dhsk.verbosity import Verbosity, verbosity

_FEWEST: Final = 10
"""Least number of different values that name samples."""


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
        others = table_at(Origin.of(labels), table)
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
        if samples.each_id() is not None:
            _refuse_other_spelling(samples, others)
            _warn_of_others(samples, others, labels)
        else:
            _warn_of_counted(samples, others)
    return found


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
        rows: Table | None = getattr(as_read(samples), "table", None)
        column = None if rows is None else _shared_names(samples, rows, others)
        return None if rows is None or column is None else (list(_texts_of(rows, column)), column)
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
    values, where = list(_texts_of(others, column)), others.origin.path
    if values == names:
        return list(range(len(names)))
    place: dict[str, int] = {}
    for row, value in enumerate(values):
        if place.setdefault(value, row) != row:
            raise InputError(
                f"rows {place[value]} and {row} (counted from 0) of {where} are both {value!r} by "
                f"column {column}, which names the samples of {samples.source}: keep one of each"
            )
    absent = [name for name in names if name not in place]
    if absent:
        raise InputError(
            f"{counted(len(absent), 'sample')} of {samples.source}, the first is {absent[0]!r}, "
            f"{'have' if len(absent) > 1 else 'has'} no row in {where} by column {column}: add "
            "what is missing, or leave these samples out"
        )
    if verbosity() >= Verbosity.USUAL:
        more = len(values) - len(names)
        unused = f", and {counted(more, 'row')} of others left out" if more else ""
        click.echo(f"dhsk: rows of {where} are taken by column {column}{unused}", err=True)
    return [place[name] for name in names]


def _warn_of_others(samples: Samples, others: Table, labels: str) -> None:
    """Warn of a column that names others than the samples."""
    if (name := _column_of_others(samples, others, labels)) is None:
        return
    first, other = next(_names_of(samples)), next(_texts_of(others, name))
    warn(
        f"no value of column {name} of {others.origin.path} is the name of a sample of "
        f"{samples.source} ({other!r}, but {first!r}): they are taken row by row, so make sure "
        "that both have the same order"
    )


def _refuse_other_spelling(samples: Samples, others: Table) -> None:
    """Refuse names in another order and other capitals, or without zeros that spreadsheets drop."""
    names = list(_names_of(samples))
    for column in others.names:
        values = list(_texts_of(others, column))
        numbers = all(map(str.isdecimal, (*names, *values)))
        own, found = ([_bare(name, numbers=numbers) for name in all_] for all_ in (names, values))
        named = len(set(found)) == len(found) and set(own) <= set(found)
        if named and found != own and (numbers or len(found) >= _FEWEST):
            other = values[found.index(own[0])]
            what = "leading zeros" if numbers else "capitals"
            raise InputError(
                f"column {column} of {others.origin.path} names the samples of {samples.source} "
                f"with other {what} ({other!r} is {names[0]!r}), in another order: write the names "
                f"alike{', as text' if numbers else ''}"
            )


def _bare(name: str, *, numbers: bool) -> str:
    """A name without what spreadsheets and people change."""
    return name.lstrip("0") if numbers else name.casefold()


def _warn_of_counted(samples: Samples, others: Table) -> None:
    """Warn where the first column counts the rows, but in another order, and samples lack names."""
    name, n = others.names[0], samples.shape[0]
    values = list(_texts_of(others, name))
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


def _column_of_others(samples: Samples, others: Table, labels: str) -> str | None:
    """Column that names other things than the samples: words that all differ, of no sample."""
    names, found = set(_names_of(samples)), None
    for column in others.names:
        values = [] if labels.endswith(f":{column}") else list(_texts_of(others, column))
        if names.intersection(values):
            return None
        differ = len(values) >= _FEWEST and len(set(values)) == len(values)
        if found is None and differ and not any(map(is_number, values)):
            found = column
    return found


def _shared_names(samples: Samples, rows: Table, others: Table) -> str | None:
    """Column of two tables, no feature, that seems to name samples that both have; None if none."""
    for name in others.names:
        if name not in rows.names or name in (samples.feature_names or ()):
            continue
        own = list(_texts_of(rows, name))
        values = list(_texts_of(others, name))
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


def _texts_of(table: Table, column: str) -> Iterator[str]:
    return map(str, table.values(column))


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
        if values and values == first[: len(values)] and list(_texts_of(others, name)) == names:
            return None
    known = set(names)
    distinct = {name: set(v) for name, v in head.items() if len(set(v)) == len(v)}
    likely = (n for n, v in distinct.items() if _has_most(v, known) or not _are_numbers(v))
    return next((name for name in likely if _are_names(names, list(_texts_of(others, name)))), None)


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
