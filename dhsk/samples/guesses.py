"""What columns of a table seem to hold, by their names and first rows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any, Final

import numpy as np

from dhsk.errors import InputError
from dhsk.samples.format import LABELS, SHOWN, SamplesFile, value_notes
from dhsk.samples.kinds import (
    FEWEST_GROUPS,
    OF_THE_PAST,
    STAY_TOGETHER,
    are_numbers,
    how_written,
    in_time_order,
    is_gap,
    is_measurement,
    is_numeric,
    is_vector,
    mean_length,
    names_features,
    names_groups,
    number_of,
    present_of,
    rows_of_lists,
)
from dhsk.samples.looks import are_compositions, seems
from dhsk.samples.names import listed
from dhsk.samples.tables import HEAD, RUN, TEXT_FIELD, Table, usual_id

LONG: Final = 40
"""Mean number of characters from which a column is one of texts."""

_MOST_VALUES: Final = 100_000
"""Most values of a table that is looked at whole for gaps and words."""

_FEWEST_MEASURED: Final = 10
"""Least number of rows that tell measurements from classes, and names of samples from others."""

_INDEX: Final = "Unnamed: 0"
"""What pandas calls the index that it has written."""

_SPLITS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "holdout"})
"""Words of a column that divides the samples, which has no labels."""

_LEAST_SHARE: Final = 0.05
"""Least share of a second class: a column that has one value but for a few holds no labels."""

_OF_LABELS: Final = (
    *LABELS, "diagnosis", "dx", "disease", "sick", "ill", "species", "survived", "churn",
)  # fmt: skip
"""Names of a column of labels, in lower case."""

_MOST_CLASSES: Final = 10
"""Largest number of different numbers in a column of labels that has no usual name."""

_SAID: Final = 3
"""Most columns that may hold the labels, in a description."""

_WAYS: Final = {
    "decimal commas": "write points",
    "separators of thousands": "leave the commas out",
    "percent signs": "leave these out",
}
"""What to do with numbers that are written so."""

_IN_PANDAS: Final = {"decimal commas": "decimal=','", "separators of thousands": "thousands=','"}
"""Options with which pandas reads them."""


def ids_in(table: Table, names: Sequence[str]) -> str | None:
    """Which of some columns that hold no numbers seems to name the samples; None if none does."""
    return _ids_of({k: v for k, v in table.head().items() if k in names}, names)


@dataclass(frozen=True)
class _Roles:
    """What the columns of a table seem to be for."""

    columns: Mapping[str, list[Any]]
    """First values of each."""
    more: Mapping[str, list[Any]]
    """Values in all rows of a small table, and else the same."""
    own: Sequence[str]
    """Columns that do not hold numbers alone."""
    ids: str | None
    group: str | None
    text: str | None
    vector: str | None
    """Column of lists of numbers."""
    written: Mapping[str, str]
    """How numbers are written in columns where they are not read as such."""
    labels: Sequence[str]
    """Columns that may hold the labels, the likeliest first."""

    @classmethod
    def of(cls, table: Table, number: int, own_text: str) -> "_Roles":
        """Look at rows from all over the file, and of groups at all."""
        columns = table.head(max(RUN, RUN * number // HEAD))
        more = table.head(most=number) if number * len(columns) <= _MOST_VALUES else columns
        vectors = (k for k, v in columns.items() if not own_text and v and is_vector(v[0]))
        vector = next(vectors, None)
        own = [k for k, v in more.items() if k != vector and not all(map(is_numeric, v))]
        called, group = _groups_of(table, number)
        own_ids = [name for name in own if name not in called]
        ids = _ids_of({k: v for k, v in columns.items() if k not in called}, own_ids)
        texts = [k for k in own if k not in (ids, group) and mean_length(columns[k]) >= LONG]
        text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
        how = {name: how_written(more[name], table.delimiter or ",") for name in own}
        written = {name: words for name, words in how.items() if words}
        none = {text, vector, ids, *called, *texts, *written, *_dummies(columns)}
        labels = _labels_of({k: v for k, v in columns.items() if k not in none})
        classes = {name: columns[name] for name in called if name != group}
        labels += [name for name in _labels_of(classes) if name not in labels]
        if text and group and not labels:  # the subject of a text, not one who was examined
            labels, group = [group], None
        return cls(columns, more, own, ids, group, text, vector, written, labels)

    @property
    def label(self) -> str | None:
        """The likeliest column of the labels."""
        return next(iter(self.labels), None)

    @property
    def unlabelled(self) -> bool:
        """Whether labels are absent, rather than a class such as None."""
        values = [] if self.label is None else self.more[self.label]
        return any(v.strip() == "" if isinstance(v, str) else is_gap(v) for v in values)

    @property
    def measured(self) -> bool:
        """Whether the labels are numbers that are no classes."""
        if self.text or self.vector or self.label is None:
            return False
        return _is_measured(self.columns[self.label])

    @property
    def others(self) -> list[str]:
        """Columns that are no features as they are, and nothing else."""
        return [name for name in self.own if name not in (self.label, self.ids, self.group)]

    @property
    def empty(self) -> list[str]:
        """Those of few values, which are left out."""
        lengths = {name: len(present_of(self.more[name])) for name in self.others}
        return [name for name, n in lengths.items() if 2 * n <= len(self.more[name])]

    @property
    def gaps(self) -> list[str]:
        """Columns of numbers with gaps."""
        others = (name for name in self.others if name not in self.empty)
        return [k for k in others if all(map(is_numeric, present_of(self.more[k])))]

    @property
    def dropped(self) -> list[str]:
        """Columns that are left out."""
        return [name for name in self.others if name not in self.gaps]

    @property
    def numbers(self) -> list[str]:
        """Columns that are features as they are."""
        return [k for k in self.columns if k not in (*self.own, self.label, self.ids, self.group)]

    def rows(self) -> Iterator[tuple[str, str]]:
        """What is guessed, for people."""
        if self.text or self.vector:
            yield ("texts", self.text) if self.text else ("vectors", str(self.vector))
        if self.labels:
            others = ", ".join(self.labels[1:_SAID])
            kind = ", numbers: a regression, in Python" if self.measured else ""
            yield "labels", f"perhaps {self.label}{kind}{f' (or {others})' if others else ''}"
        if self.ids:
            yield "ids", self.ids
        if self.group:
            yield "groups", f"{self.group}: {STAY_TOGETHER}"
        for name in filter(lambda one: in_time_order(self.more[one]), self.own):
            yield "order", f"rows follow {name}: {OF_THE_PAST}"

    def rows_of_features(self) -> Iterator[tuple[str, str]]:
        """What keeps columns from being features, for people."""
        if self.gaps:
            lists = [self.more[name] for name in self.gaps]
            n = sum(any(map(is_gap, row)) for row in zip(*lists, strict=True))
            columns = f"{len(self.gaps):,} column{'s' if len(self.gaps) > 1 else ''}"
            whole = self.more is not self.columns
            whose = f"{len(lists[0]):,} rows" if whole else f"the {len(lists[0]):,} rows looked at"
            yield (
                "gaps",
                f"{n:,} of {whose} have some, in {columns} "
                f"({listed(self.gaps, SHOWN)}). dhsk takes none: fill them in first, as "
                "SimpleImputer of scikit-learn does",
            )
        if self.unlabelled:
            yield "gaps", f"rows without {self.label}: leave them out first"
        if self.empty:
            yield "empty", f"{listed(self.empty, SHOWN)}: left out, as half of the rows or more are"
        for words, way in _WAYS.items():
            names = [name for name, how in self.written.items() if how == words]
            if names:
                yield "numbers", f"{listed(names, SHOWN)} with {words}: {way} to keep them"
        if kinds := [name for name in self.dropped if _n_classes(self.more[name]) > 1]:
            way = f"pandas.get_dummies(table, columns={kinds[:SHOWN]!r}) makes numbers of them"
            yield "words", f"{listed(kinds, SHOWN)}: left out, but {way}"


def describe_table(words: str, table: Table, number: int, own_text: str = "") -> SamplesFile:
    """Tell columns of texts, labels, ids and numbers apart, by their names and first rows.

    `number` is that of all rows. The column `own_text` is the one that is read without a key.
    """
    path = str(table.origin.path)
    if not number:
        names = listed(table.names, SHOWN)
        raise InputError(f"{path} has columns ({names}) but no rows: write one for each sample")
    found = _Roles.of(table, number, own_text)
    columns, label, text = found.columns, found.label, found.text or found.vector
    rows = [
        ("rows", f"{number:,}"),
        ("columns", f"{len(columns):,}: {listed(list(columns), SHOWN)}"),
        *found.rows(),
    ]
    seen = f"features by the name {table.names[0]}: samples must be rows, so transpose the table"
    if label is None and text is None and names_features(table.names[0]):
        rows.append(("each row", seen))
    options, values, alone = "", None, False
    if text is None:
        rows += found.rows_of_features()
        if found.numbers and not found.gaps:  # of some columns notes would mislead
            lists = [list(map(number_of, columns[name])) for name in found.numbers]
            values = np.array(lists, np.float64).T
        elif label is not None and not (found.written or found.gaps):
            alone = True
            rows += [("features", "none: labels or predictions, of other samples")]
        options = "".join(f" --drop-column {quote(name)}" for name in found.dropped)
    elif found.text is None:
        values = rows_of_lists(columns[text])
    untold = found.text is not None and usual_id([found.ids or ""]) is not None
    if not (found.ids is None or alone or untold):
        options = f" --id-column {quote(found.ids)}{options}"
    rows += [] if values is None else value_notes(values, found.numbers if text is None else None)
    seem = None if values is None else seems(values)
    named = quote(path if text in (None, own_text) else f"{path}:{text}")
    labels = "LABELS" if label is None else quote(f"{path}:{label}")
    grouped = "" if found.group is None else f" --groups {quote(f'{path}:{found.group}')}"
    facts = {
        "rows": number, "columns": list(columns), "text": text, "label": label, "id": found.ids,
        "group": found.group,
    }  # fmt: skip
    described = SamplesFile(
        words, rows, "SAMPLES" if alone else named, labels, options, seem, grouped,
        facts=facts,
    )  # fmt: skip
    if text is None and (line := _as_it_is_read(table, found)):
        kept = described.following if found.label is None and names_features(table.names[0]) else []
        return replace(described, python=[line, *(kept if ".T.to_csv" in line else [])])
    if not found.measured:
        return described
    counts = values is not None and are_compositions(values)
    left = [*found.dropped, *(name for name in (found.ids, found.group) if name)]
    return replace(described, python=_regression(table, str(label), left, counts=counts))


def _as_it_is_read(table: Table, found: _Roles) -> str | None:
    """Line of Python that writes a table as it is read: with points, filled, or transposed."""
    stem, options = table.origin.path.name.partition(".")[0], list[str]()
    index = "" if table.index else ", index=False"
    commas = {*found.written.values()} & {*_IN_PANDAS}
    if commas and table.delimiter is not None:
        ways = ", ".join(_IN_PANDAS[words] for words in sorted(commas))
        return f"{table.in_pandas(ways)}.to_csv('{stem}_points.csv'{index}) in Python"
    if found.gaps or found.unlabelled:
        if any("?" in map(str, found.more[name]) for name in found.gaps):
            options = ["na_values='?'"]
        filled = f"{stem}_filled.csv"
        kept = f".dropna(subset={[found.label]!r})" if found.unlabelled else ""
        line = f"table = {table.in_pandas(*options)}{kept}; "
        line += f"table.fillna(table.median(numeric_only=True)).to_csv('{filled}'{index})"
        return f"{line} in Python, then dhsk info {quote(filled)}"
    if found.label is None and names_features(table.names[0]):
        return f"{table.in_pandas('index_col=0')}.T.to_csv('{stem}_samples.csv') in Python"
    return None


def _groups_of(table: Table, number: int) -> tuple[list[str], str | None]:
    """Columns that are called as groups of samples are, and the first that has many of them."""
    called, large = list[str](), list[str]()
    for name in table.names:
        if not names_groups(name):
            continue
        try:
            size = len(set(map(str, table.values(name))))
        except InputError:  # it is not in every row
            continue
        # Few ids that come again number other things than samples or their groups.
        if size < number and (size >= FEWEST_GROUPS or name.lower() != "id"):
            called.append(name)
            large += [name] if size >= FEWEST_GROUPS else []
    return called, next(iter(large), None)


def _dummies(columns: Mapping[str, list[Any]]) -> set[str]:
    """Columns of 0 and 1 of one category, of which each row has one, as pandas.get_dummies makes.

    One of them follows from the others, so that as a label it would be among the features.
    """
    siblings: dict[str, list[str]] = {}
    for name, values in columns.items():
        if "_" in name and all(is_numeric(v) and number_of(v) in (0, 1) for v in values):
            siblings.setdefault(name.rpartition("_")[0], []).append(name)
    return {
        name
        for names in siblings.values()
        if len(names) > 1
        for name in names
        if all(
            sum(map(number_of, row)) == 1 for row in zip(*(columns[k] for k in names), strict=True)
        )
    }


def _ids_of(columns: Mapping[str, list[Any]], own: Sequence[str]) -> str | None:
    """Column that seems to name the samples: so called, an index, or words that all differ."""
    usual, first = usual_id(list(columns)), next(iter(columns), "")
    if usual is not None:
        return usual
    if first == _INDEX and _all_differ(columns[first]):
        return first
    words = (name for name in own if name != TEXT_FIELD and mean_length(columns[name]) < LONG)
    differing = (name for name in words if _all_differ(columns[name]))
    texts = (
        k for k in differing if not any(is_numeric(v) or is_measurement(v) for v in columns[k])
    )
    return next(texts, None)


def _all_differ(values: list[Any]) -> bool:
    """Whether no value occurs twice or is absent, in enough rows to tell."""
    return len(values) >= _FEWEST_MEASURED and len(set(map(str, present_of(values)))) == len(values)


def _labels_of(columns: Mapping[str, list[Any]]) -> list[str]:
    """Columns that may hold the labels: those of a usual name, then words, then few numbers.

    Of several the last is the likelier. Where most columns of numbers have few, they may be counts.
    """
    found = [name for usual in _OF_LABELS for name in columns if name.lower() == usual]
    sizes = {name: _n_classes(values) for name, values in columns.items()}
    words = [k for k, v in columns.items() if sizes[k] and not are_numbers(v)]
    several = [name for name in words if sizes[name] > 1]
    likely = [name for name in several if _second_share(columns[name]) >= _LEAST_SHARE]
    found += reversed(likely or several)
    numbers = [k for k, v in columns.items() if sizes[k] > 1 and are_numbers(v)]
    few = [name for name in numbers if sizes[name] <= _MOST_CLASSES]
    if 2 * len(few) > sum(map(are_numbers, columns.values())):
        few = numbers if len(numbers) == 1 else []
    found += reversed(few)
    return list(dict.fromkeys(found or words[-1:]))


def _n_classes(values: list[Any]) -> int:
    """Number of classes; 0 for fractions, for what is mostly different, and for divisions."""
    present = present_of(values)
    if _divides(values) or (are_numbers(values) and any(number_of(v) % 1 for v in present)):
        return 0
    found = len(set(map(str, present)))
    return found if found <= max(2, len(present) // 2) else 0


def _second_share(values: list[Any]) -> float:
    """Share of the second largest class."""
    sizes = Counter(map(str, present_of(values))).most_common(2)
    return sizes[-1][1] / len(values)


def _is_measured(values: list[Any]) -> bool:
    """Whether values are numbers that are no classes."""
    return are_numbers(values) and len(values) >= _FEWEST_MEASURED and not _n_classes(values)


def _regression(table: Table, target: str, left: list[str], *, counts: bool) -> list[str]:
    """Lines of Python that fit the numbers of a column."""
    read = f"table = {table.in_pandas()}"
    fit = f".fit(table.drop(columns={[target, *left]!r}), table[{target!r}])"
    models = ["dhsk.HeatKernelRidge()", "dhsk.HeatGaussianProcessRegressor()"]
    if not counts:
        scaled = "sklearn.pipeline.make_pipeline(sklearn.preprocessing.StandardScaler(), "
        # R² on diabetes 0.47 and 0.49, on 800 samples of Friedman 1 0.85 and 0.84, 2 0.92 and 0.87.
        given = "kernel='gaussian'", "sphere_map='projective'"
        models = [f"{scaled}dhsk.HeatKernelRidge({one}))" for one in given]
    return [f"{read}; {model}{fit} in Python" for model in models]


def _divides(values: list[Any]) -> bool:
    """Whether values say to which part of the data a row belongs, such as train and test."""
    return all(str(value).strip().lower() in _SPLITS for value in values)
