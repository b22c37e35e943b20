"""The time of a process without that in which functions were compiled, and the end of a budget.

Estimates go by the former. Functions are compiled once, at their first use: what a run has left is
not in proportion to it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Final


class WorkingClock:
    """A clock that stands still within `stopped`, of which one block is entered at a time."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = 0.0, None  # threads see both or neither

    def __call__(self) -> float:
        """Seconds since some moment; they never fall."""
        left_out, since = self._state
        return (monotonic() if since is None else since) - left_out

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Block whose time is left out."""
        (left_out, _), since = self._state, monotonic()
        self._state = left_out, since
        try:
            yield
        finally:
            self._state = left_out + monotonic() - since, None


working_seconds: Final = WorkingClock()


class Deadline:
    """The end of a time budget that begins now, compilation included; None for no end."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = inf if seconds is None else monotonic() + seconds

    def __call__(self) -> bool:
        """Whether the time is over."""
        return monotonic() >= self._end


NO_END: Final = Deadline()
"""Never comes."""
