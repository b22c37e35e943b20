"""Files of named columns: what tables of text, lines of JSON and Arrow's files share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError, warn
from dhsk.samples.format import (
    Asked,
    Documents,
)
from dhsk.samples.names import is_it, listed_names, shown
from dhsk.samples.paths import Origin
from dhsk.samples.spectrum import known_features
from dhsk.systems import quoted

Row = TypeVar("Row")

TEXT_FIELD: Final = "text"
"""Column of the texts if none is named."""

HEAD: Final = 50
"""Rows by which columns are told apart, to describe a file."""

RUN: Final = 10
"""Those of them that follow each other."""

_NAMED: Final = 5
"""Most columns that a message describes."""

_OPTIONS: Final = 20
"""Most columns that a message leaves out by an option for each."""

ENCODED: Final = "encode categories as columns of 0 and 1 (pandas.get_dummies) and dates as numbers"


@dataclass(frozen=True)
class Table(ABC):
    """Named columns of a file, each of which can be read by itself."""

    origin: Origin
    names: tuple[str, ...]
    index: str | None = field(default=None, kw_only=True)
    """Column that is known to name the rows, such as the index of a pandas DataFrame."""
    gapped: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Columns that are known to have gaps, wherever these are."""
    word = "column"
    """What a column is called."""
    has_header = True
    """Whether names are in the file, and not numbers."""

    @property
    def delimiter(self) -> str | None:
        """What divides the fields of a row; None where values have types."""
        return None

    def position(self, name: str) -> int:
        """Position of a column; InputError with those of the file if there is none, or several."""
        path = self.origin.path
        if name not in self.names:
            none = "no" if self.has_header else "no header and no"
            raise InputError(
                f"{path} has {none} {self.word} {shown(name)}{is_it(name, self.names)}: its "
                f"{self.word}s are {listed_names(self.names) or 'none'}"
            )
        if (count := self.names.count(name)) > 1:
            raise InputError(f"{path} has {count} columns called {shown(name)}: rename all but one")
        return self.names.index(name)

    def place(self, name: str, row: int) -> str:
        """Words for a text, in messages."""
        return f"{self.origin.path}:{name}: row {row} (counted from 0)"

    @abstractmethod
    def values(self, name: str) -> Iterator[Any]:
        """Values of a column, as Python objects."""

    def written(self, name: str) -> Iterator[str]:
        """Values of a column as text; that of None for one that is missing."""
        return map(str, self.values(name))

    @abstractmethod
    def in_pandas(self, *options: str) -> str:
        """Call of pandas that reads the file, with some options."""

    @abstractmethod
    def head(self, stride: int = RUN, most: int = HEAD) -> dict[str, list[Any]]:
        """Values of each column in `most` rows: the first `RUN` of every `stride`.

        A file may be sorted, so that its first rows are of one class, or have its classes in turn,
        so that every second row is.
        """

    def texts(self, name: str) -> Iterator[str]:
        """Values of a column of texts; InputError for one that is missing, or no text."""
        for row, value in enumerate(self.values(name)):
            if value is None:
                raise InputError(
                    f"{self.place(name, row)} has no text in the {self.word} {shown(name)}: fill "
                    "it in, as '' if it is empty, or leave out the row and its label"
                )
            if not isinstance(value, str):
                raise InputError(
                    f"{self.place(name, row)} holds {shown(repr(value))} in the {self.word} "
                    f"{shown(name)}, which is no text: name a {self.word} of texts as "
                    f"{self.origin.path}:NAME"
                )
            yield value

    def label_column(self) -> str | None:
        """Column of the labels if none is named: the only one but for the index."""
        columns = [name for name in self.names if name != self.index]
        return columns[0] if len(columns) == 1 else None

    def labels(self) -> NDArray[Any]:
        """Labels in the column of the key, or the usual one, as Python objects, (n_samples,)."""
        name = self.origin.key or self.label_column()
        if name is None:
            raise InputError(
                f"{self.origin.path} has {len(self.names)} {self.word}s: name the one that holds "
                f"the labels as --labels {self.origin.path}:NAME ({listed_names(self.names)})"
            )
        self.position(name)
        # As in a CSV table of pandas, so that a model's labels do not depend on the format.
        values = [str(v) if isinstance(v, bool) else v for v in self.values(name)]
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels

    def holds_texts(self, asked: Asked) -> bool:
        """Whether the samples are texts: by the key, or of a vocabulary that is no columns."""
        known = known_features(asked.vectorizer)
        if self.origin.key is not None or known is None:
            return self.origin.key is not None
        return TEXT_FIELD in self.names and not set(known) <= set(self.names)


@dataclass(frozen=True)
class TextColumn(Documents):
    """A column of texts."""

    source: str
    table: Table
    column: str
    id_column: str | None

    def texts(self) -> Iterator[str]:
        """Yield the texts, see `Table.texts`."""
        return self.table.texts(self.column)

    def ids(self) -> Iterator[str] | None:
        """Values of the column with the ids."""
        return None if self.id_column is None else map(str, self.table.values(self.id_column))


def in_runs(rows: Iterable[Row], stride: int) -> Iterator[Row]:
    """The first `RUN` of every `stride` rows."""
    return (row for number, row in enumerate(rows) if number % stride < RUN)


def text_column(table: Table, id_column: str | None = None) -> TextColumn:
    """Texts of the column of the key, by default "text"; ids are those of a column "id"."""
    name = table.origin.key or TEXT_FIELD
    for given in (name, id_column):
        if given is not None:
            table.position(given)
    if id_column is None:
        id_column = usual_id([own for own in table.names if own != name])
    return TextColumn(f"{table.origin.path}:{name}", table, name, id_column)


def usual_id(names: Sequence[str]) -> str | None:
    """The first of some names that is "id", whatever its case; None if there is none."""
    return next((name for name in names if name.lower() == "id"), None)


# Messages


def first_of(words: Sequence[str]) -> str:
    """The first descriptions of columns, and how many there are more."""
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def way_of_one(path: Any, name: str, ids: str | None) -> str:
    """What a column without numbers may hold, the likelier first, and the options for that."""
    labels = f"if it holds the labels name it with --labels {quoted(f'{path}:{name}')}"
    if name == ids:
        return f"it seems to name the samples, so give --id-column {quoted(name)}; {labels}"
    return f"{labels}, if the samples' ids with --id-column {quoted(name)}"


def way_of_several(path: Any, ids: str | None) -> str:
    """The same for several columns, of which `ids` seems to name the samples."""
    labels = f"name that of the labels with --labels {quoted(f'{path}:NAME')}"
    if ids is None:
        return f"{labels}, of ids with --id-column NAME"
    return f"name the samples by --id-column {quoted(ids)}, {labels}"


def left_out(names: Sequence[str]) -> str:
    """The options that leave columns out, on one line, and the argument in Python."""
    if len(names) > _OPTIONS:
        return "--drop-column NAME for each (drop_columns)"
    options = " ".join(f"--drop-column {quoted(name)}" for name in names)
    return f"{options} (drop_columns={list(names)!r})"


def warn_of_twins(source: str, names: Sequence[str], kept: Iterable[int]) -> None:
    """Warn of kept columns of one name, which a model by names tells apart by their order alone."""
    places: dict[str, list[int]] = {}
    for column in kept:
        places.setdefault(names[column], []).append(column)
    twins = [
        f"{shown(name)} (columns {' and '.join(map(str, found))})"
        for name, found in places.items()
        if len(found) > 1
    ]
    if twins:
        warn(
            f"{source} has several columns of one name, counted from 0: {first_of(twins)}: rename "
            "all but one in the header, as pandas.read_csv(FILE).to_csv does, or leave out copies",
        )
