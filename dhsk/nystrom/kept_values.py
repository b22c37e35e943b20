"""Passes that compute features, of which an interrupted run finds what was done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter
from typing import Any, Final

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
    """Hears of the number of rows of each span of `sum`."""
    begun: float = field(default_factory=perf_counter)

    def rows(self, stage: str, *arrays: NDArray[Any]) -> "KeptValues":
        """Arrays that are filled row by row, (N, ...), in a stage that has that name."""
        return self._values(_Parts(arrays, self.entries, f"{self.name}-{stage}"))

    def columns(self, values: NDArray[Any]) -> "KeptValues":
        """An array that is filled column by column."""
        return self._values(_Parts((values,), self.entries, self.name, by_columns=True))

    def _values(self, parts: "_Parts") -> "KeptValues":
        return KeptValues(parts, self.begun + UNKEPT_SECONDS - perf_counter())

    def forget(self, stage: str) -> None:
        """Remove the entries of the stages that begin so."""
        self.entries.within(f"{self.name}-{stage}").remove()

    def sum(
        self,
        Z: FeatureMatrix,
        function: Callable[..., Any],
        along: Sequence[NDArray[Any]],
        *shared: Any,
        written: Sequence[NDArray[Any]] = (),
        stage: str = "",
    ) -> Any:
        """Sum over all spans, in their order, of what a function returns, a number or an array.

        The arguments are those of `FeatureMatrix.map`. `written` are the arrays, (N, ...), that the
        function fills; the stage has the name of the function, unless it is given.
        """
        kept = self.rows(stage or function.__name__, *written)
        total: Any = None if kept.found is None else kept.found["total"]
        for rows, own in Z.after(kept.done).map(_counted, along, function, shared):
            total = own if total is None else total + own
            kept.advance(kept.done + rows, {"total": total})
            self.advance(rows)
        kept.finish()
        return total


def _counted(parts: Any, *given: Any) -> tuple[int, Any]:
    """Rows of a span, and what a function returns of its blocks."""
    *along, function, shared = given
    rows = 0

    def counting() -> Iterator[tuple[slice, NDArray[Any]]]:
        nonlocal rows
        for part, values in parts:
            rows += len(values)
            yield part, values

    own = function(counting(), *along, *shared)
    return rows, own


class KeptValues:
    """Arrays that are filled in order and kept from time to time."""

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

    def __init__(
        self,
        arrays: Sequence[NDArray[Any]],
        entries: Checkpoint,
        name: str,
        *,
        by_columns: bool = False,
    ) -> None:
        self.entries, self.name = entries, name
        self.done = 0
        self.beside = dict[str, Any]()
        self.json = dict[str, Any]()
        self._stops = [0]
        self._arrays, self._by_columns = arrays, by_columns

    @property
    def is_new(self) -> bool:
        """Whether there is more than the last entry has."""
        return self.done > self._stops[-1]

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is kept beside the values, once new parts are written."""
        for name, where in self._between(self._stops[-1], self.done):
            self.entries.put(name, {f"part-{k}": own[where] for k, own in enumerate(self._arrays)})
        self._stops.append(self.done)
        return self.beside, self.json | {"stops": self._stops}

    def restore(self, kept: dict[str, Any]) -> None:
        """Read all parts; KeyError or ValueError if one is absent or damaged."""
        stops = kept.pop("stops")
        for start, stop in pairwise(stops):
            for name, where in self._between(start, stop):
                parts = self.entries.get(name, dict) or {}
                for k, own in enumerate(self._arrays):
                    part = parts[f"part-{k}"]
                    if part.shape != own[where].shape:
                        raise ValueError(f"the part {name} has another shape")
                    own[where] = part
        self._stops, self.done, self.beside = stops, stops[-1], kept

    def _between(self, start: int, stop: int) -> Iterator[tuple[str, Any]]:
        """Names of the entries of some rows or columns, and their places in the arrays."""
        if not self._arrays:
            return
        first = self._arrays[0]
        if self._by_columns:
            each, rows = first[:1, start:stop].nbytes, slice(0, len(first))
        else:
            each, rows = sum(own[:1].nbytes for own in self._arrays), slice(start, stop)
        for part in blocks(rows.stop - rows.start, max(1, _PART_BYTES // max(1, each))):
            where = slice(rows.start + part.start, rows.start + part.stop)
            name = f"{self.name}-{where.start}-{start}"
            yield name, (where, slice(start, stop)) if self._by_columns else where
