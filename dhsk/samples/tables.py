"""Files of named columns: what tables of text, lines of JSON and Arrow's files share."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from shlex import quote
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import InputError, InputWarning
from dhsk.samples.dialect import has_decimal_comma, is_missing, is_number, value_of
from dhsk.samples.format import (
    LABELS,
    SHOWN,
    Asked,
    Documents,
    SamplesFile,
    value_notes,
)
from dhsk.samples.looks import are_compositions, seems
from dhsk.samples.names import listed, listed_names, shown
from dhsk.samples.paths import Origin
from dhsk.samples.spectrum import known_features
from dhsk.samples.zeros import frames_inside

TEXT_FIELD: Final = "text"
"""Column of the texts if none is named."""

HEAD: Final = 50
"""Rows by which columns are told apart, to describe a file."""

LONG: Final = 40
"""Mean number of characters from which a column is one of texts."""

_NAMED: Final = 5
"""Most columns that a message describes."""

_OPTIONS: Final = 20
"""Most columns that a message leaves out by an option for each."""

ENCODED: Final = "encode categories as columns of 0 and 1 (pandas.get_dummies) and dates as numbers"

_FEWEST_MEASURED: Final = 10
"""Least number of rows that tell measurements from classes, and names of samples from others."""

_INDEX: Final = "Unnamed: 0"
"""What pandas calls the index that it has written."""

_SPLITS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "holdout"})
"""Words of a column that divides the samples, which has no labels."""


@dataclass(frozen=True)
class Table(ABC):
    """Named columns of a file, each of which can be read by itself."""

    origin: Origin
    names: tuple[str, ...]
    index: str | None = field(default=None, kw_only=True)
    """Column that is known to name the rows, such as the index of a pandas DataFrame."""
    word = "column"
    """What a column is called."""
    has_header = True
    """Whether names are in the file, and not numbers."""

    def position(self, name: str) -> int:
        """Position of a column; InputError with those of the file if there is none, or several."""
        path = self.origin.path
        if name not in self.names:
            none = "no" if self.has_header else "no header and no"
            raise InputError(
                f"{path} has {none} {self.word} {shown(name)}: its {self.word}s are "
                f"{listed_names(self.names) or 'none'}"
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

    @abstractmethod
    def head(self) -> dict[str, list[Any]]:
        """Values of each column in the first `HEAD` rows."""

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


def ids_in(table: Table, names: Sequence[str]) -> str | None:
    """Which of some columns that hold no numbers seems to name the samples; None if none does."""
    return _ids_of({k: v for k, v in table.head().items() if k in names}, names)


def way_of_one(path: Any, name: str, ids: str | None) -> str:
    """What a column without numbers may hold, the likelier first, and the options for that."""
    labels = f"if it holds the labels name it with --labels {quote(f'{path}:{name}')}"
    if name == ids:
        return f"it seems to name the samples, so give --id-column {quote(name)}; {labels}"
    return f"{labels}, if the samples' ids with --id-column {quote(name)}"


def way_of_several(path: Any, ids: str | None) -> str:
    """The same for several columns, of which `ids` seems to name the samples."""
    labels = f"name that of the labels with --labels {quote(f'{path}:NAME')}"
    if ids is None:
        return f"{labels}, of ids with --id-column NAME"
    return f"name the samples by --id-column {quote(ids)}, {labels}"


def left_out(names: Sequence[str]) -> str:
    """The options that leave columns out, on one line, and the argument in Python."""
    if len(names) > _OPTIONS:
        return "--drop-column NAME for each (drop_columns)"
    options = " ".join(f"--drop-column {quote(name)}" for name in names)
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
        warnings.warn(
            f"{source} has several columns of one name, counted from 0: {first_of(twins)}: rename "
            "all but one in the header, as pandas.read_csv(FILE).to_csv does, or leave out copies",
            InputWarning,
            stacklevel=frames_inside(),
        )


# Descriptions


def describe_table(
    words: str, origin: Origin, columns: Mapping[str, list[Any]], number: int, own_text: str = ""
) -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows.

    `number` is that of all rows. The column `own_text` is the one that is read without a key.
    """
    path = str(origin.path)
    lists = (name for name, v in columns.items() if v and isinstance(v[0], list) and not own_text)
    vector = next(lists, None)
    own = [name for name, v in columns.items() if name != vector and not all(map(_is_numeric, v))]
    ids = _ids_of(columns, own)
    texts = [name for name in own if name != ids and _mean_length(columns[name]) >= LONG]
    text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
    rest = [name for name in columns if name not in (text, ids)]
    label = _label_of({name: columns[name] for name in rest if name not in texts})
    rows = [
        ("rows", f"{number:,}"),
        ("columns", f"{len(columns):,}: {listed(list(columns), SHOWN)}"),
    ]
    rows += [("texts", text)] if text else [("vectors", vector)] if vector else []
    measured = text is None and vector is None and label is not None
    measured = measured and _is_measured(columns[label or ""])
    guess = f"perhaps {label}{', numbers: a regression, in Python' if measured else ''}"
    rows += [("labels", guess)] if label else []
    rows += [("ids", ids)] if ids else []
    text = text or vector
    options, signed, counts, alone, dropped = "", False, False, False, list[str]()
    if text is None:
        numbers = {name: v for name, v in columns.items() if name not in (*own, label, ids)}
        dropped = [name for name in own if name not in (label, ids)]
        gaps = [name for name in dropped if all(map(_is_numeric, _present(columns[name])))]
        rows += [("gaps", f"{listed(gaps, SHOWN)}: fill them in to keep them")] if gaps else []
        commas = [name for name in dropped if all(map(_has_comma, _present(columns[name])))]
        of_commas = f"{listed(commas, SHOWN)} with decimal commas: write points to keep them"
        rows += [("numbers", of_commas)] if commas else []
        if numbers:
            values = np.array([list(map(_number, v)) for v in numbers.values()], np.float64).T
            rows += value_notes(values, list(numbers))
            signed, counts = seems(values) == "z-scores", are_compositions(values)
        elif label is not None:
            alone = True
            rows += [("features", "none: labels or predictions, of other samples")]
        options = "" if ids is None or alone else f" --id-column {quote(ids)}"
        options += "".join(f" --drop-column {quote(name)}" for name in dropped)
    named = quote(path if text in (None, own_text) else f"{path}:{text}")
    samples = "SAMPLES" if alone else named
    labels = "LABELS" if label is None else quote(f"{path}:{label}")
    facts = {"rows": number, "columns": list(columns), "text": text, "label": label, "id": ids}
    found = SamplesFile(words, rows, samples, labels, options, signed, facts=facts)
    if not measured:
        return found
    left = [*dropped, *([] if ids is None else [ids])]
    return replace(found, python=_regression(origin, str(label), left, counts=counts))


def _ids_of(columns: Mapping[str, list[Any]], own: Sequence[str]) -> str | None:
    """Column that seems to name the samples: so called, an index, or words that all differ."""
    usual, first = usual_id(list(columns)), next(iter(columns), "")
    if usual is not None:
        return usual
    if first == _INDEX and _all_differ(columns[first]):
        return first
    words = (name for name in own if name != TEXT_FIELD and _mean_length(columns[name]) < LONG)
    differing = (name for name in words if _all_differ(columns[name]))
    return next((name for name in differing if not any(map(_is_measure, columns[name]))), None)


def _all_differ(values: list[Any]) -> bool:
    """Whether no value occurs twice or is absent, in enough rows to tell."""
    return len(values) >= _FEWEST_MEASURED and len(set(map(str, _present(values)))) == len(values)


def _is_measure(value: Any) -> bool:
    """Whether a value is a number with a decimal comma, or a date."""
    try:
        datetime.fromisoformat(str(value).strip())
    except ValueError:
        return _has_comma(value)
    return True


def _has_comma(value: Any) -> bool:
    return isinstance(value, str) and has_decimal_comma(value)


def _label_of(columns: Mapping[str, list[Any]]) -> str | None:
    """Column that seems to hold the labels: of a usual name, else of words, else of numbers.

    Of several columns of words the last, and one of numbers only if no other has few: counts may.
    """
    usual = next((name for name in LABELS if name in columns), None)
    if usual is not None:
        return usual
    sizes = {name: _n_classes(values) for name, values in columns.items()}
    words = [k for k, v in columns.items() if sizes[k] and not _are_numbers(v)]
    several = [name for name in words if sizes[name] > 1]
    numbers = [k for k, v in columns.items() if sizes[k] > 1 and _are_numbers(v)]
    last = (several or words)[-1:] or (numbers if len(numbers) == 1 else [])
    return last[0] if last else None


def _n_classes(values: list[Any]) -> int:
    """Number of classes; 0 for fractions, for what is mostly different, and for divisions."""
    present = _present(values)
    if _divides(values) or (_are_numbers(values) and any(_number(v) % 1 for v in present)):
        return 0
    found = len(set(map(str, present)))
    return found if found <= max(2, len(present) // 2) else 0


def _is_measured(values: list[Any]) -> bool:
    """Whether values are numbers that are no classes."""
    return _are_numbers(values) and len(values) >= _FEWEST_MEASURED and not _n_classes(values)


def _regression(origin: Origin, target: str, left: list[str], *, counts: bool) -> list[str]:
    """Lines of Python that fit the numbers of a column.

    Measured on scikit-learn's diabetes: R² 0.49 both, 0.38 of ridge without its scaler and map.
    """
    read = {".parquet": "read_parquet", ".feather": "read_feather"}.get(origin.suffix, "read_csv")
    table = f"table = pandas.{read}({str(origin.path)!r})"
    fit = f".fit(table.drop(columns={[target, *left]!r}), table[{target!r}])"
    given = "" if counts else "sphere_map='projective'"
    models = f"dhsk.HeatKernelRidge({given})", f"dhsk.HeatGaussianProcessRegressor({given})"
    if not counts:
        scaled = "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), "
        models = f"{scaled}{models[0]})", f"{scaled}{models[1]})"
    return [f"{table}; {model}{fit} in Python" for model in models]


def _present(values: list[Any]) -> list[Any]:
    return [v for v in values if v is not None and not (isinstance(v, str) and is_missing(v))]


def _are_numbers(values: list[Any]) -> bool:
    """Whether all that are there are numbers, and not True and False."""
    return all(
        is_number(v) if isinstance(v, str) else type(v) in (int, float) for v in _present(values)
    )


def _number(value: Any) -> float:
    return float((value_of(value) or 0.0) if isinstance(value, str) else value)


def _divides(values: list[Any]) -> bool:
    """Whether values say to which part of the data a row belongs, such as train and test."""
    return all(str(value).strip().lower() in _SPLITS for value in values)


def _is_numeric(value: Any) -> bool:
    return isinstance(value_of(value) if isinstance(value, str) else value, int | float)


def _mean_length(values: list[Any]) -> float:
    return sum(len(str(value)) for value in values) / max(len(values), 1)
