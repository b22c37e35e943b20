"""Columns of a table that may hold the labels, by their names and values."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dhsk.samples.format import LABELS
from dhsk.samples.kinds import are_numbers, number_of, present_of

FEWEST_MEASURED: Final = 10
"""Least number of rows that tell measurements from classes, and names of samples from others."""

_SPLITS: Final = frozenset({"train", "test", "val", "valid", "validation", "dev", "holdout"})
"""Words of a column that divides the samples, which has no labels."""

_LEAST_SHARE: Final = 0.02
_LEAST_OF_LAST: Final = 10
"""Least share of a second class: a column that has one value but for a few holds no labels. The
last one, of two values, may if so many rows have the rarer."""

_OF_LABELS: Final = (
    *LABELS, "diagnosis", "dx", "disease", "sick", "ill", "species", "survived", "churn",
)  # fmt: skip
"""Names of a column of labels, in lower case."""

_MOST_CLASSES: Final = 10
"""Largest number of different numbers in a column of labels that has no usual name."""


def labels_of(columns: Mapping[str, list[Any]]) -> list[str]:
    """Columns that may hold the labels: those of a usual name, then words, then few numbers.

    Before words the last column goes, if no other has two numbers, and after them one called group.
    Of several the last is the likelier. Where most columns of numbers have few, they may be counts.
    """
    found = usual_labels(columns)
    sizes = {name: n_classes(values) for name, values in columns.items()}
    numbers = [k for k, v in columns.items() if sizes[k] > 1 and are_numbers(v)]
    two = [name for name in numbers if sizes[name] == 2]
    found += two if two == [*columns][-1:] else []
    words = [k for k, v in columns.items() if sizes[k] and not are_numbers(v)]
    several = [name for name in words if sizes[name] > 1]
    least = {name: _LEAST_SHARE * len(columns[name]) for name in several}
    least |= {name: _LEAST_OF_LAST for name in [*columns][-1:] if sizes[name] == 2}
    likely = [name for name in several if _second_size(columns[name]) >= least[name]]
    found += reversed(likely or several)
    found += [name for name in numbers if is_group(name)]
    few = [name for name in numbers if sizes[name] <= _MOST_CLASSES]
    if 2 * len(few) > sum(map(are_numbers, columns.values())):
        few = numbers if len(numbers) == 1 else two if two == [*columns][:1] else []
    found += reversed(few)
    return list(dict.fromkeys(found or words[-1:]))


def usual_labels(columns: Iterable[str]) -> list[str]:
    """Columns that are called as labels are, the likeliest first."""
    names = list(columns)
    return [name for usual in _OF_LABELS for name in names if name.lower() == usual]


def is_group(name: str) -> bool:
    """Whether a column is called as groups that are compared are, as well as those of samples."""
    return name.lower() == "group"


def n_classes(values: list[Any]) -> int:
    """Number of classes; 0 for fractions, for what is mostly different, and for divisions."""
    present = present_of(values)
    if _divides(values) or (are_numbers(values) and any(number_of(v) % 1 for v in present)):
        return 0
    found = len(set(map(str, present)))
    return found if found <= max(2, len(present) // 2) else 0


def _second_size(values: list[Any]) -> int:
    return Counter(map(str, present_of(values))).most_common(2)[-1][1]


def is_measured(values: list[Any]) -> bool:
    """Whether values are numbers that are no classes."""
    return are_numbers(values) and len(values) >= FEWEST_MEASURED and not n_classes(values)


def _divides(values: list[Any]) -> bool:
    """Whether values say to which part of the data a row belongs, such as train and test."""
    return all(str(value).strip().lower() in _SPLITS for value in values)
