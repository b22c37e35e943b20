"""Passes that compute features, of which an interrupted run finds what was done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import blocks
from dhsk.execution.checkpoint import NOWHERE, Checkpoint
from dhsk.nystrom.spans import FeatureMatrix

UNKEPT_SECONDS: Final = 25.0
"""Seconds of all passes before the first entry: features are large, and a disk reads some of them
no faster than they are computed."""

_PART_BYTES: Final = 64 * 2**20
"""Bytes of an entry: it is in memory twice when it is read."""


@dataclass(frozen=True)
class KeptPasses:
    """Passes over spans, whose sums are kept with the rows that they have written.

    Nothing is kept in the first seconds after `begun`.
    """

    entries: Checkpoint = NOWHERE
    name: str = ""
    """Begins the names of all entries."""
    advance: Callable[[int], None] = lambda _: None
    """Hears of the rows of each span of `sum`."""
    begun: float = field(default_factory=perf_counter)

    def values(self, values: NDArray[Any], columns: bool, stage: str = "") -> "KeptValues":
        """An array that is filled row by row, or column by column."""
        parts = _Parts(values, columns, self.entries, self.name + stage)
        return KeptValues(parts, self.begun + UNKEPT_SECONDS - perf_counter())

    def forget(self, stage: str) -> None:
        """Remove the entries of the stages that begin so."""
        self.entries.within(f"{self.name}{stage}").remove()

    def sum(
        self,
        Z: FeatureMatrix,
        function: Callable[..., Any],
        along: Sequence[NDArray[Any]],
        *shared: Any,
        written: NDArray[Any] | None = None,
    ) -> Any:
        """Sum over all spans, in their order, of what a function returns beside its rows.

        `written` is the array, (N, ...), that the function fills; None if it fills none.
        """
        out = np.empty((Z.n, 0)) if written is None else written
        kept = self.values(out, columns=False, stage=f"-{function.__name__}")
        total: Any = 0.0 if kept.found is None else kept.found["total"]
        for rows, own in Z.after(kept.done).map(function, along, *shared):
            total = total + own
            kept.advance(kept.done + rows, {"total": total})
            self.advance(rows)
        kept.finish()
        return total


class KeptValues:
    """An array, (N, k), that is filled in order and kept from time to time."""

    def __init__(self, parts: "_Parts", unkept: float) -> None:
        self._parts = parts
        self._first = perf_counter() + unkept
        self._kept = parts.entries.state(parts, parts.name, unkept)

    @property
    def done(self) -> int:
        """Number of rows or columns that are filled."""
        return self._parts.done

    @property
    def is_whole(self) -> bool:
        """Whether all that is filled is kept."""
        return not self._parts.is_new

    @property
    def found(self) -> dict[str, Any] | None:
        """What an earlier run has kept beside the values; None if it left no whole entry."""
        return self._parts.beside if self._kept.resumed else None

    def advance(
        self, done: int, arrays: Mapping[str, Any], values: Mapping[str, Any] | None = None
    ) -> None:
        """So many rows or columns are filled; arrays and JSON values are kept beside them."""
        self._parts.done, self._parts.beside = done, dict(arrays)
        self._parts.json = dict(values or {})
        self._kept.keep()

    def finish(self) -> None:
        """Keep what is not kept yet."""
        if perf_counter() >= self._first and self._parts.is_new:
            self._kept.keep(last=True)


class _Parts:
    """State of `KeptValues`: an entry has where its parts end, which are entries of their own."""

    def __init__(self, values: NDArray[Any], columns: bool, entries: Checkpoint, name: str) -> None:
        self.entries, self.name = entries, name
        self.done = 0
        self.beside = dict[str, Any]()
        self.json = dict[str, Any]()
        self._stops = [0]
        self._values, self._columns = values, columns

    @property
    def is_new(self) -> bool:
        """Whether there is more than the last entry has."""
        return self.done > self._stops[-1]

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is kept beside the values, once new parts are written."""
        for name, where in self._between(self._stops[-1], self.done):
            self.entries.put(name, {"part": self._values[where]})
        self._stops.append(self.done)
        return self.beside, self.json | {"stops": self._stops}

    def restore(self, kept: dict[str, Any]) -> None:
        """Read all parts; ValueError if one is absent or damaged."""
        stops = kept.pop("stops")
        for start, stop in pairwise(stops):
            for name, where in self._between(start, stop):
                part = self.entries.get(name, lambda kept: kept["part"])
                if part is None or part.shape != self._values[where].shape:
                    raise ValueError(f"the part {name} is not whole")
                self._values[where] = part
        self._stops, self.done, self.beside = stops, stops[-1], kept

    def _between(self, start: int, stop: int) -> Iterator[tuple[str, tuple[slice, slice]]]:
        """Names of the entries of some rows or columns, and their places in the array."""
        n, k = self._values.shape
        rows, columns = (0, n), (start, stop)
        if not self._columns:
            rows, columns = columns, (0, k)
        width = max(1, (columns[1] - columns[0]) * self._values.itemsize)
        for part in blocks(rows[1] - rows[0], max(1, _PART_BYTES // width)):
            first = rows[0] + part.start
            where = slice(first, rows[0] + part.stop), slice(*columns)
            yield f"{self.name}-{first}-{columns[0]}", where
