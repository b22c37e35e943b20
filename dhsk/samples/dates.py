"""Dates in columns of tables, and whether rows follow them."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time
from functools import partial
from itertools import pairwise
from typing import Any, Final

from dhsk.errors import warn
from dhsk.samples.base import Samples, as_read
from dhsk.samples.dialect import is_missing
from dhsk.samples.names import shown

_FEWEST: Final = 10
"""Least number of different dates that tell an order."""

_LOOKED_AT: Final = 500
"""Most rows of a table, and names of samples, that are looked at."""

_OTHERS: Final = re.compile(
    r"(\d{1,2}([./])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2}|\d\d([./])\d\d\4\d\d"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}"
    r"|[A-Za-z]{3,9} \d{1,2}, \d{4}|\d{4}-\d{2})( \d{1,2}:\d{2}(:\d{2})?( ?[AaPp][Mm])?)?"
)
"""What other dates than those of ISO 8601 look like, perhaps with a time."""

_CLOCK: Final = re.compile(r" (\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([AaPp])[Mm])?$")

_FORMATS: Final = (
    "%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y",
    "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m",
)  # fmt: skip


def _by_format(form: str, text: str) -> datetime:
    if not _OTHERS.fullmatch(text):
        raise ValueError(text)
    clock = _CLOCK.search(text)
    day = datetime.strptime(text if clock is None else text[: clock.start()], form)
    if clock is None:
        return day
    hour, minute, second = (int(part or 0) for part in clock.group(1, 2, 3))
    if clock[4]:
        hour = hour % 12 + 12 * (clock[4] in "Pp")
    return datetime.combine(day, time(hour, minute, second))


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
    """Order of several dates, gaps left out: 1, -1 where the newest come first, 0 for none."""
    for found in readings([value for value in values if not is_missing(str(value))]):
        if len(set(found)) < _FEWEST:
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
    table: Any = getattr(as_read(samples), "table", None)
    for name, values in {} if table is None else table.head(most=_LOOKED_AT).items():
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


def way_of(order: tuple[str, int]) -> str:
    """What to do about folds, for people."""
    return f"{OF_THE_PAST}{' once they are sorted, the oldest first' if order[1] < 0 else ''}"


def warn_of_order(samples: Samples, *, ordered: bool) -> None:
    """Warn of rows that follow dates where folds do not, or `ordered` folds do newest first."""
    order = order_of(samples)
    if order is None or (ordered and order[1] > 0):
        return
    way = "folds in their order are trained on the future: sort them, the oldest first"
    warn(
        f"rows of {samples.source} follow {said_of(order)}: {way if ordered else way_of(order)}",
    )
