"""Dates in columns of tables, and whether rows follow them."""

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from functools import partial
from itertools import pairwise
from typing import Any, Final

from dhsk.errors import InputWarning
from dhsk.samples.base import Samples
from dhsk.samples.names import shown
from dhsk.samples.zeros import frames_inside

_FEWEST: Final = 10
"""Least number of different dates that tell an order."""

_LOOKED_AT: Final = 500
"""Most names of samples that are looked at."""

_OTHERS: Final = re.compile(r"\d{1,4}([./])\d{1,2}\1\d{1,4}( \d{2}:\d{2}(:\d{2})?)?")
"""What other dates than those of ISO 8601 look like."""

_FORMATS: Final = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y")


def _by_format(form: str, text: str) -> datetime:
    if not _OTHERS.fullmatch(text):
        raise ValueError(text)
    day, _, clock = text.partition(" ")
    found = datetime.strptime(day, form)  # compared among themselves
    return datetime.combine(found, time.fromisoformat(clock)) if clock else found


_PARSERS: Final[Sequence[Callable[[str], datetime]]] = (
    datetime.fromisoformat,
    *(partial(_by_format, form) for form in _FORMATS),
)


def readings(values: Sequence[Any]) -> Iterator[list[datetime]]:
    """Values as dates, with a time or without, in each way that reads all of them."""
    texts = [str(value).strip() for value in values]
    for parse in _PARSERS:
        try:
            yield list(map(parse, texts))
        except ValueError:
            continue


def is_date(value: Any) -> bool:
    """Whether a value is a date, with a time or without."""
    return next(readings([value]), None) is not None


def time_order(values: Sequence[Any]) -> int:
    """Order of dates that mostly differ: 1, -1 where the newest come first, 0 for none."""
    for found in readings(values):
        if 2 * len(set(found)) <= max(_FEWEST, len(found)):
            continue
        try:
            steps = [other >= one for one, other in pairwise(found)]
            back = [other <= one for one, other in pairwise(found)]
        except TypeError:  # some have a time zone
            continue
        if all(steps) or all(back):
            return 1 if all(steps) else -1
    return 0


def order_of(samples: Samples) -> tuple[str, int] | None:
    """What dates rows follow, in words, and their order, see `time_order`; None for none.

    These are a column that is no feature, in the first rows of a table, or the names of samples.
    """
    table: Any = getattr(samples, "table", None)
    for name, values in {} if table is None else table.head().items():
        order = 0 if name in (samples.feature_names or ()) else time_order(values)
        if order:
            return f"column {shown(name)}", order
    names = next(samples.ids(_LOOKED_AT) or iter(()), [])
    order = time_order(names)
    return ("the dates that name them", order) if order else None


def said_of(order: tuple[str, int]) -> str:
    """What rows follow, for people."""
    return f"{order[0]}{', newest first' if order[1] < 0 else ''}"


OF_THE_PAST: Final = (
    "shuffled folds tell the past by the future too; --in-order (cv=TimeSeriesSplit(5)) keeps to "
    "the order"
)


def warn_of_order(samples: Samples) -> None:
    """Warn of rows that follow dates where folds do not."""
    order = order_of(samples)
    if order is None:
        return
    sort = " once they are sorted, the oldest first" if order[1] < 0 else ""
    warnings.warn(
        f"rows of {samples.source} follow {said_of(order)}: {OF_THE_PAST}{sort}",
        InputWarning,
        stacklevel=frames_inside(),
    )
