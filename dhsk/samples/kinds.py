"""What a value of a table is, or a column: a gap, a number and how it is written, or groups."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.samples.base import Samples, as_read
from dhsk.samples.dates import is_date, readings
from dhsk.samples.dialect import has_decimal_comma, has_thousands, is_missing, is_number, value_of

_OF_GROUPS: Final = frozenset(
    {
        "", "patient", "subject", "donor", "person", "participant", "individual", "animal",
        "specimen", "session", "group", "batch", "customer", "client", "user", "author", "speaker",
        "mouse", "host", "family", "household", "plot",
    }
)  # fmt: skip
"""Names of a column whose values are groups of samples, in lower case, without "id"."""

_OF_FEATURES: Final = frozenset(
    {
        "otu", "otu id", "otuid", "asv", "asv id", "feature", "features", "feature id", "featureid",
        "taxon", "taxa", "taxonomy", "clade name", "gene", "genes", "gene id", "geneid",
        "gene name", "gene symbol", "probe id", "protein id",
    }
)  # fmt: skip
"""Names of the first column where rows are features, in lower case, without # and _."""

_FEATURE: Final = re.compile(
    r"((z?otu|[zs]?asv|denovo)[ _.-]?\d+|[kdpcofgs]__.*|(bacteria|archaea)[;|].*"
    r"|ens[a-z]{0,6}[gtp]\d{11}(\.\d+)?|cg\d{8}|\d+(_[asx])?_at)",
    re.IGNORECASE,
)
"""What taxa, genes and probes are called, and samples are not."""

_MOST_OF_FEATURES: Final = 0.8
"""Least share of rows with such a name where rows are features."""

FEWEST_GROUPS: Final = 10
"""Least number of groups, two in each of five folds; columns of fewer may hold the labels."""

_FEWEST_MEASURED: Final = 10
"""Least number of different numbers of a column of measurements."""

_GAPS_OF_ZEROS: Final = 0.1
"""Share of gaps above which whole numbers without a 0 may lack their zeros."""

LACK_ZEROS: Final = "; none is 0: if empty means 0, as of counts, write 0"
"""What to do about them."""

_MOST_ROWS: Final = 10_000
"""Most rows of a table in which groups are looked for, once for each column that is no feature."""

_CHANCE: Final = 1e-4
"""Largest probability that values come with one label each by chance, where they tell groups."""

STAY_TOGETHER: Final = "rows of one value stay in one fold (--groups)"


def names_groups(name: str) -> bool:
    """Whether a column is called as groups of samples are."""
    return name.lower().replace("_", " ").removesuffix("id").strip() in _OF_GROUPS


def are_groups(values: Sequence[Any], labels: Sequence[Any]) -> bool:
    """Whether values that come again have one label each, as plots that were visited often have.

    They are enough, and so are their rows, that it is no chance.
    """
    pairs = [(str(v), str(y)) for v, y in zip(values, labels, strict=True) if not is_gap(v)]
    sizes, kinds = Counter(value for value, _ in pairs), Counter(label for _, label in pairs)
    if len(sizes) < FEWEST_GROUPS or len(set(pairs)) > len(sizes):
        return False
    shares = [count / len(pairs) for count in kinds.values()]
    chances = (sum(share**size for share in shares) for size in sizes.values())
    return math.prod(chances) < _CHANCE


def groups_left_out(samples: Samples, labels: Sequence[int]) -> tuple[str, list[str]] | None:
    """A column of a table that is no feature and whose values are groups, and these; None if none.

    Those of the labels themselves are no groups: each has one label, and no other value has it.
    """
    table: Any = getattr(as_read(samples), "table", None)
    features = set(samples.feature_names or ())
    for name in [] if table is None else table.names:
        if name in features:
            continue
        values = list(map(str, islice(table.values(name), _MOST_ROWS)))
        if len(set(values)) > len(set(labels)) and are_groups(values, labels[: len(values)]):
            return name, values
    return None


def names_features(name: str) -> bool:
    """Whether the first column seems to name features, so that samples are columns."""
    return name.lower().replace("_", " ").strip("# ") in _OF_FEATURES


def are_features(values: Sequence[Any]) -> bool:
    """Whether values that name rows seem to be those of taxa, genes or probes."""
    found = sum(_FEATURE.fullmatch(str(value).strip()) is not None for value in values)
    return found > 1 and found >= _MOST_OF_FEATURES * len(values)


def how_written(values: list[Any], delimiter: str) -> str | None:
    """How numbers are written that are not read as such; None for words, or plain numbers."""
    present = list(map(str, present_of(values)))
    rest = [text for text in present if not is_number(text)]
    if not rest:
        return None
    if all(has_thousands(t, ",") for t in rest) and any(has_thousands(t, delimiter) for t in rest):
        return "separators of thousands"
    if all(map(has_decimal_comma, rest)) and not any("." in text for text in present):
        return "decimal commas"
    return "percent signs" if all(map(is_percent, rest)) else None


def is_percent(text: str) -> bool:
    """Whether a text is a number with a percent sign."""
    return text.strip().endswith("%") and is_number(text.strip()[:-1])


def is_vector(value: Any) -> bool:
    """Whether a value is a list of numbers, or gaps."""
    return isinstance(value, list) and all(isinstance(v, int | float | None) for v in value)


def rows_of_lists(values: list[Any]) -> NDArray[np.float64] | None:
    """Lists of numbers as rows; None if they differ in length, or one is missing."""
    if not all(map(is_vector, values)) or len(set(map(len, values))) != 1:
        return None
    return np.array(values, np.float64)


def is_measurement(value: Any) -> bool:
    """Whether a value is a number with a comma or a percent sign, or a date."""
    text = str(value).strip()
    return is_date(text) or has_decimal_comma(text) or has_thousands(text, ",") or is_percent(text)


def are_dates(values: list[Any]) -> bool:
    """Whether all that are there are dates, and there are any."""
    present = present_of(values)
    return bool(present) and next(readings(present), None) is not None


def is_gap(value: Any) -> bool:
    """Whether a value is absent; NaN is not equal to itself."""
    return value is None or (is_missing(value) if isinstance(value, str) else value != value)


def present_of(values: list[Any]) -> list[Any]:
    """Values that are no gaps."""
    return [value for value in values if not is_gap(value)]


def are_numbers(values: list[Any]) -> bool:
    """Whether all that are there are numbers, and not True and False."""
    return all(
        is_number(v) if isinstance(v, str) else type(v) in (int, float) for v in present_of(values)
    )


def number_of(value: Any) -> float:
    """Value as a number; 0 for what is none."""
    try:
        return float((value_of(value) or 0.0) if isinstance(value, str) else value)
    except OverflowError:  # whole numbers of JSON have any length
        return math.inf


def is_numeric(value: Any) -> bool:
    """Whether a value is a number, or True or False, as it is read."""
    return not is_gap(value) and isinstance(
        value_of(value) if isinstance(value, str) else value, int | float
    )


def mean_length(values: list[Any]) -> float:
    """Mean number of characters."""
    return sum(len(str(value)) for value in values) / max(len(values), 1)


def dummies_in(columns: Mapping[str, list[Any]]) -> set[str]:
    """Columns of 0 and 1 of one category, as pandas.get_dummies makes: each row has one, or a gap.

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
            sum(map(number_of, row)) <= 1 for row in zip(*(columns[k] for k in names), strict=True)
        )
    }


def odd_in(values: list[Any]) -> list[str]:
    """What else is in a column that mostly holds many different numbers: "n.d.", "12 mm"."""
    present = present_of(values)
    numbers = [value for value in present if is_numeric(value)]
    if 2 * len(numbers) <= len(present) or len(set(map(str, numbers))) < _FEWEST_MEASURED:
        return []
    return list(dict.fromkeys(str(v).strip() for v in present if not is_numeric(v)))


def is_word_for_none(text: str) -> bool:
    """Whether a cell among numbers has none itself, as "n.d.", or is an error of Excel's."""
    return text.startswith("#") or not any(map(str.isdigit, text))


def lack_zeros(columns: Sequence[list[Any]]) -> bool:
    """Whether columns with many gaps seem to be counts of which zeros were left empty."""
    present = [value for values in columns for value in present_of(values)]
    gaps = sum(map(len, columns)) - len(present)
    numbers = list(map(number_of, present))
    return (
        len(columns) > 1
        and gaps > _GAPS_OF_ZEROS * (gaps + len(present))
        and all(number >= 1 and number % 1 == 0 for number in numbers)
    )
