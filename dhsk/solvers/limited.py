"""Problems of at most some steps, as scikit-learn's `max_iter` bounds them.

On the whole matrix where it fits in memory; else a step computes the two rows that it needs, of
which the last ones are kept. Without a bound, problems are solved on sets and blocks of samples,
which multiply faster.
"""

from collections import OrderedDict
from time import monotonic
from typing import Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.dual import differences
from dhsk.solvers.smo import (
    ascend,
    begin_steps,
    curvature_of,
    matrix_bytes,
    move,
    padded,
    partner,
    rounding_of,
    take_step,
)
from dhsk.solvers.sources import Combination, Source

TOLD_EVERY: Final = 1.0
"""Seconds between two reports."""


class LimitedSteps:
    """Steps of problems on the matrix of some samples, which takes at most `room` bytes."""

    def __init__(
        self, source: Source, members: Indices, room: int, report: OnProgress = ignore
    ) -> None:
        self._rows = _Rows(source, members, room)
        self._report = report
        whole = matrix_bytes(len(members), source.dtype) <= room
        self._K = source.block(members) if whole else None

    def gradient(self, linear: Floats, b: Floats) -> Floats:
        """What linear - K b is, (n,)."""
        if self._K is None:
            return self._rows.gradient(linear, b)
        return differences(self._K, linear, b)

    def ascend(
        self,
        linear: Floats,
        bounds: tuple[Floats, Floats],
        b: Floats,
        tol: float,
        most: int,
        zone: float = 0.0,
    ) -> int:
        """Improve b in place, as `smo.ascend` does; return the number of steps."""
        f = self.gradient(linear, b)
        if self._K is None:
            return self._on_rows(bounds, b, f, (tol, zone), most)
        steps, _ = ascend(self._K, bounds, b, f, tol, most, zone=zone)
        return steps

    def _on_rows(
        self,
        bounds: tuple[Floats, Floats],
        b: Floats,
        gradient: Floats,
        limits: tuple[float, float],
        most: int,
    ) -> int:
        """Steps on rows that are computed when they are needed."""
        rows, diagonal, (tol, zone) = self._rows, self._rows.diagonal, limits
        state = begin_steps(gradient, len(diagonal), bounds, b, zone)
        none, largest, steps, told = np.zeros(len(diagonal)), np.abs(gradient).max(), 0, monotonic()
        i, highest = move(state[0], state[1], none, none, 0.0)
        while i >= 0 and steps < most:
            row = rows[i]
            j, lowest = partner(state[0], state[2], diagonal, row, highest, diagonal[i])
            least = max(tol, rounding_of(largest, diagonal.max(), np.abs(b).sum()))
            if j < 0 or highest - lowest <= least:
                break
            gap = highest - (state[0][j] + state[2][j])
            free = gap / curvature_of(diagonal[i], diagonal[j], row[j])
            step = take_step((i, j), free, bounds, b, state, zone)
            i, highest = move(state[0], state[1], row, rows[j], step)
            steps += 1
            if monotonic() - told >= TOLD_EVERY:
                told = monotonic()
                self._report(
                    Progress("steps", steps, most, f"violation {highest - lowest:.1e} of {tol:.0e}")
                )
        return steps


class _Rows:
    """Rows of the matrix of some samples, (padded(n),) each, of which the last ones are kept."""

    def __init__(self, source: Source, members: Indices, room: int) -> None:
        self._source, self._members = source, members
        self._most = max(2, room // (8 * padded(len(members))))
        self._kept: OrderedDict[int, Floats] = OrderedDict()

    @property
    def diagonal(self) -> Floats:
        """Diagonal, with zeros at the end."""
        found = np.zeros(padded(len(self._members)))
        found[: len(self._members)] = self._source.diagonal()[self._members]
        return found

    def __getitem__(self, i: int) -> Floats:
        """Row of a sample."""
        if i in self._kept:
            self._kept.move_to_end(i)
            return self._kept[i]
        if len(self._kept) == self._most:
            self._kept.popitem(last=False)
        row = np.zeros(padded(len(self._members)))
        row[: len(self._members)] = self._combined(np.array([i]), np.ones(1))
        self._kept[i] = row
        return row

    def gradient(self, linear: Floats, b: Floats) -> Floats:
        """What linear - K b is, from the rows that b needs."""
        used = np.flatnonzero(b)
        return linear - self._combined(used, b[used]) if len(used) else linear.copy()

    def _combined(self, chosen: Indices, coef: Floats) -> Floats:
        part = Combination(self._members, self._members[chosen], coef[:, None])
        (found,) = self._source.combine([part])
        return found[:, 0]
