"""What columns of a table seem to be for, by their names and first rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.caching import cached_value
from dhsk.errors import InputError
from dhsk.samples.dates import said_of, time_order, way_of
from dhsk.samples.dialect import is_no_label
from dhsk.samples.format import FILLED, SHOWN
from dhsk.samples.kinds import (
    FEWEST_GROUPS,
    LACK_ZEROS,
    STAY_TOGETHER,
    are_dates,
    are_groups,
    are_numbers,
    dummies_in,
    how_written,
    is_gap,
    is_measurement,
    is_numeric,
    is_vector,
    lack_zeros,
    mean_length,
    names_groups,
    number_of,
    odd_in,
    present_of,
)
from dhsk.samples.label_columns import (
    FEWEST_MEASURED,
    is_group,
    is_measured,
    labels_of,
    n_classes,
    usual_labels,
)
from dhsk.samples.memory import LONG, MOST_KINDS
from dhsk.samples.names import listed, shown
from dhsk.samples.numbering import FEWEST_ROWS
from dhsk.samples.tables import HEAD, RUN, TEXT_FIELD, Table, usual_id

_MOST_VALUES: Final = 100_000
"""Most values of a table that is looked at whole for gaps and words."""

_INDEX: Final = "Unnamed: 0"
"""What pandas calls the index that it has written."""

_ID: Final = re.compile(r"((^|[\W_])(id|no|nr|number|index|key)|[a-z]I[dD])$")
"""Names of columns of ids: a word of its own at the end, or as in sampleId."""

_LEAST_PRESENT: Final = 0.05
"""Share of values up to which a column is left out: means in place of the others say little."""

_LONG: Final = 100_000
"""Least number of a patient's record, or of another file, that is taken for one by its values."""

_SAID: Final = 3
"""Most columns that may hold the labels, in a description."""

_WAYS: Final = {
    "decimal commas": "write points",
    "separators of thousands": "leave the commas out",
    "percent signs": "leave these out",
}
"""What to do with numbers that are written so."""


def ids_in(table: Table, names: Sequence[str]) -> str | None:
    """Which of some columns that hold no numbers seems to name the samples; None if none does."""
    return _ids_of({k: v for k, v in table.head().items() if k in names}, names)


@dataclass(frozen=True)
class Roles:
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
    odd: Mapping[str, Sequence[str]]
    """What else is in columns of numbers that is none."""
    labels: Sequence[str]
    """Columns that may hold the labels, the likeliest first."""

    @classmethod
    def of(cls, table: Table, number: int, own_text: str) -> "Roles":
        """Look at rows from all over the file, and of groups at all."""
        columns = table.head(max(RUN, RUN * number // HEAD))
        more = table.head(most=number) if number * len(columns) <= _MOST_VALUES else columns
        vectors = (k for k, v in columns.items() if not own_text and v and is_vector(v[0]))
        vector = next(vectors, None)
        own = [k for k, v in more.items() if k in table.gapped or not all(map(is_numeric, v))]
        own = [k for k in own if k != vector]
        called, group = _groups_of(table, number)
        own_ids = [name for name in own if name not in called]
        ids = _ids_of({k: v for k, v in more.items() if k not in called}, own_ids)
        texts = [k for k in own if k not in (ids, group) and mean_length(columns[k]) >= LONG]
        text = TEXT_FIELD if TEXT_FIELD in own else next(iter(texts), None)
        delimiter = table.delimiter or ","  # which is read from the file
        how = {name: how_written(more[name], delimiter) for name in own}
        written = {name: words for name, words in how.items() if words}
        dates = [k for k in own if are_dates(columns[k])]
        told = {*written, *dates, *called, ids, *usual_labels(own)}
        odd = {k: cells for k in own if k not in told and (cells := odd_in(more[k]))}
        none = {text, vector, ids, *called, *texts, *written, *dates, *dummies_in(columns), *odd}
        compared = (k for k in called if is_group(k) and len({*map(str, more[k])}) < FEWEST_GROUPS)
        none -= {*compared}
        labels = labels_of({k: v for k, v in more.items() if k not in none})
        classes = {name: columns[name] for name in called if name != group}
        labels += [name for name in labels_of(classes) if name not in labels]
        if text and group and not labels:  # the subject of a text, not one who was examined
            labels, group = [group], None
        elif text and group and group.lower() == "subject":
            group = next((name for name in called if name != group), None)
        if len(next(iter(more.values()))) == number:  # else other rows may have other classes
            labels = [k for k in labels if len({*map(str, present_of(more[k]))}) > 1]
        if group is None and labels and not text:
            none.add(labels[0])
            several = (k for k in own if k not in none)
            group = next((k for k in several if are_groups(more[k], more[labels[0]])), None)
            labels = [name for name in labels if name != group]
        return cls(columns, more, own, ids, group, text, vector, written, odd, labels)

    @property
    def label(self) -> str | None:
        """The likeliest column of the labels."""
        return next(iter(self.labels), None)

    @cached_value
    def unlabelled(self) -> bool:
        """Whether labels are absent, rather than a class such as None."""
        values = [] if self.label is None else self.more[self.label]
        return any(is_no_label(v) if isinstance(v, str) else is_gap(v) for v in values)

    @cached_value
    def order(self) -> int:
        """Order of the dates that rows follow, see `time_order`."""
        return next(filter(None, (time_order(self.more[name]) for name in self.own)), 0)

    @property
    def measured(self) -> bool:
        """Whether the labels are numbers that are no classes."""
        if self.text or self.vector or self.label is None:
            return False
        return is_measured(self.columns[self.label])

    @cached_value
    def others(self) -> list[str]:
        """Columns that are no features as they are, and nothing else."""
        return [name for name in self.own if name not in (self.label, self.ids, self.group)]

    @cached_value
    def empty(self) -> list[str]:
        """Those of nearly no values, which are left out."""
        lengths = {name: len(present_of(self.more[name])) for name in self.others}
        return [k for k, n in lengths.items() if n <= _LEAST_PRESENT * len(self.more[k])]

    @cached_value
    def gaps(self) -> list[str]:
        """Columns of numbers with gaps."""
        empty = set(self.empty)
        others = (name for name in self.others if name not in empty)
        return [k for k in others if all(map(is_numeric, present_of(self.more[k])))]

    @cached_value
    def dropped(self) -> list[str]:
        """Columns that are left out."""
        gaps = set(self.gaps)
        return [name for name in self.others if name not in gaps]

    @cached_value
    def dates(self) -> list[str]:
        """Those that are left out as they are dates."""
        return [k for k in self.dropped if are_dates(self.more[k])]

    @cached_value
    def categories(self) -> list[str]:
        """Those that are left out as they are words, of which there are few."""
        none = {*self.dates, *self.written, *self.odd}
        names = (name for name in self.dropped if name not in none)
        return [k for k in names if 1 < n_classes(self.more[k]) <= MOST_KINDS]

    @cached_value
    def constant(self) -> list[str]:
        """Columns of numbers that are all the same."""
        if not self.label or len(self.more[self.label]) < FEWEST_MEASURED:
            return []
        return [name for name in self.numbers if len(set(map(str, self.more[name]))) == 1]

    @property
    def single(self) -> list[str]:
        """Columns that would be labels, but have one class in all rows."""
        words = [k for k in self.dropped if not is_numeric(self.more[k][0])]
        names = dict.fromkeys([*usual_labels(self.columns), *words])
        return [k for k in names if len({*map(str, present_of(self.more[k]))}) == 1]

    @cached_value
    def numbers(self) -> list[str]:
        """Columns that are features as they are."""
        none = {*self.own, self.label, self.ids, self.group}
        return [name for name in self.columns if name not in none]

    @cached_value
    def measures(self) -> list[str]:
        """Columns of numbers, with gaps or without."""
        return [*self.numbers, *self.gaps]

    @cached_value
    def values(self) -> Floats:
        """Their values, (rows, columns); NaN for gaps."""
        lists = [self.more[name] for name in self.measures]
        filled = [[np.nan if is_gap(v) else number_of(v) for v in values] for values in lists]
        return np.array(filled, np.float64).T

    @cached_value
    def infinite(self) -> list[str]:
        """Columns with infinite values."""
        values = self.values
        return [name for k, name in enumerate(self.measures) if np.isinf(values[:, k]).any()]

    def rows(self) -> Iterator[tuple[str, str]]:
        """What is guessed, for people."""
        if self.text or self.vector:
            yield ("texts", self.text) if self.text else ("vectors", str(self.vector))
        if self.labels:
            others = ", ".join(self.labels[1:_SAID])
            kind = ", numbers: a regression, in Python" if self.measured else ""
            yield "labels", f"perhaps {self.label}{kind}{f' (or {others})' if others else ''}"
        elif len(single := self.single) == 1:
            yield "labels", f"none: {single[0]} has one class, and labels need two"
        if self.ids:
            yield "ids", self.ids
        if self.group:
            yield "groups", f"{self.group}: {STAY_TOGETHER}"
        if self.unlabelled:
            yield "gaps", f"rows without {self.label}: leave them out first"
        texts = self.more[self.text] if self.text else []
        if blank := sum(is_gap(text) or not str(text).strip() for text in texts):
            yield "empty", f"{blank:,} of the {len(texts):,} texts looked at: leave them out first"
        for name in self.own:
            if order := time_order(self.more[name]):
                yield "order", f"rows follow {said_of((name, order))}: {way_of((name, order))}"

    def rows_of_features(self) -> Iterator[tuple[str, str]]:
        """What keeps columns from being features, for people."""
        if self.gaps:
            lists = [self.more[name] for name in self.gaps]
            n = sum(any(map(is_gap, row)) for row in zip(*lists, strict=True))
            columns = f"{len(self.gaps):,} column{'s' if len(self.gaps) > 1 else ''}"
            whole = self.more is not self.columns
            whose = f"{len(lists[0]):,} rows" if whole else f"the {len(lists[0]):,} rows looked at"
            some = f"{n:,} of {whose}" if n else "some rows"  # others than those looked at
            said = f"{some} have some, in {columns} ({listed(self.gaps, SHOWN)}): {FILLED}"
            yield "gaps", said + (LACK_ZEROS if lack_zeros(lists) else "")
        if self.infinite:
            yield (
                "infinite",
                f"{listed(self.infinite, SHOWN)}: refused, leave empty what is missing",
            )
        if self.constant:
            yield "constant", f"{listed(self.constant, SHOWN)}: one value, which tells nothing"
        if self.empty:
            yield "empty", f"{listed(self.empty, SHOWN)}: left out, as nearly all rows are"
        for words, way in _WAYS.items():
            names = [name for name, how in self.written.items() if how == words]
            if names:
                yield "numbers", f"{listed(names, SHOWN)} with {words}: {way} to keep them"
        if self.odd:
            cells = [f"{name} ({shown(some[0])})" for name, some in self.odd.items()]
            yield (
                "cells",
                f"{listed(cells, SHOWN)}: no numbers, so these columns are left out; write numbers "
                "without units, and leave cells empty that have none",
            )
        for follow, way in (False, "; write days since the first"), (True, ", as the rows' order"):
            dates = [k for k in self.dates if bool(time_order(self.more[k])) == follow]
            if dates:
                yield "dates", f"{listed(dates, SHOWN)}: left out{way}"
        if kinds := self.categories:
            way = f"pandas.get_dummies(table, columns={kinds[:SHOWN]!r}) makes numbers of them"
            yield (
                "words",
                f"{listed(kinds, SHOWN)}: left out, but {way}, where known before the labels",
            )


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
    numbered = (k for k, v in columns.items() if _numbers_samples(k, v, is_first=k == first))
    return next(texts, None) or next(numbered, None) or _of_records(columns)


def _numbers_samples(name: str, values: list[Any], *, is_first: bool) -> bool:
    """Whether whole numbers that all differ are called ids, or come first and count the rows."""
    if not are_numbers(values) or not _all_differ(values):
        return False
    found = list(map(number_of, values))
    if any(value % 1 for value in found):
        return False
    counted = max(found) - min(found) == len(found) - 1
    runs = (found[first : first + RUN] for first in range(0, len(found), RUN))
    in_turn = all(other - one == 1 for run in runs for one, other in pairwise(run))
    return _ID.search(name) is not None or (is_first and (counted or in_turn))


def _of_records(columns: Mapping[str, list[Any]]) -> str | None:
    """The only column of long numbers that all differ, beside fractions, as those of patients.

    They have as many digits, and do not all end in 0, as prices do.
    """
    numbers = {k: present_of(v) for k, v in columns.items() if are_numbers(v)}
    found = {k: list(map(number_of, v)) for k, v in numbers.items() if v}
    whole = {k: v for k, v in found.items() if not any(value % 1 for value in v)}
    long = [
        k for k, v in whole.items()
        if min(v) >= _LONG and len(str(int(min(v)))) == len(str(int(max(v))))
        and len(v) >= FEWEST_ROWS and _all_differ(columns[k]) and any(value % 10 for value in v)
        and not usual_labels([k])
    ]  # fmt: skip
    return long[0] if len(long) == 1 and len(whole) < len(found) else None


def _all_differ(values: list[Any]) -> bool:
    """Whether no value occurs twice or is absent, in enough rows to tell."""
    return len(values) >= FEWEST_MEASURED and len(set(map(str, present_of(values)))) == len(values)
