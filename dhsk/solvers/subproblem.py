"""The subproblems of a pair on its working set, solved by one task."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import (
    LARGEST_SINGLE,
    Dual,
    Steps,
    gradient,
    improve,
    most_steps,
    unfinished,
    violation_and_intercept,
)
from dhsk.solvers.smo import SINGLE_TOLERANCE, largest_entry, padded
from dhsk.solvers.sources import Source, fill_symmetric

ROUGHLY: Final = 200.0
"""Multiple of the tolerance to which a set is solved before samples join it, a tenth of it after
that. Measured on two classes of recipes against the rest: 0.7 of the steps; 0.8 with 20, 0.6 with
2,000."""


@dataclass(frozen=True, eq=False)
class SetTask:
    """Subproblems of a pair on a working set, and samples that may join it."""

    number: int
    """Identifies the pair."""
    source: Source
    """Matrix."""
    samples: Indices
    """Samples of the set, and then those nearest to it, among those of the source, (m,)."""
    dual: Dual
    """Problems of all these samples."""
    b: Floats
    """Coefficients of the set's samples to begin with, (columns, size)."""
    largest: int
    """Most samples of the set."""
    single: bool = False
    """Whether entries in float32 will do."""


@dataclass(frozen=True, eq=False)
class SetSolution:
    """Solution of the subproblems of a pair, of a `SetTask` or in a round."""

    number: int
    """That of the task."""
    inside: Indices
    """Places of the set's samples among those of the task, with those that have joined; in a round
    among those of the pair."""
    b: Floats
    f: Floats
    """Coefficients and gradients of all samples of the task, (columns, m)."""
    work: Floats
    """Steps and seconds, (2, columns)."""
    finished: bool
    """Whether these are solutions, and not only as near to them as a task gets."""
    single: bool = False
    """Whether entries were computed in float32."""


def solve_on_set(task: SetTask, columns: list[int], tol: float) -> SetSolution:
    """Solve some columns to a violation of tol: the task that workers run.

    Violators among the samples outside join the set, until there are none or the set is full.
    Before that it is solved roughly: what joins moves it anyway.
    """
    grown = _GrowingSet(task, columns)
    rough = ROUGHLY if grown.grows else 1.0
    while True:
        grown.solve(rough * tol)
        joining = grown.violators(tol)
        more = bool(len(joining)) and grown.has_room_for(len(joining))
        if not grown.effort or (not more and rough == 1.0):
            return grown.solution
        if more:
            grown.join(joining)
        rough = max(1.0, rough / 10) if more else 1.0


class _GrowingSet:
    """A working set with its matrix, which grows by rows and columns."""

    def __init__(self, task: SetTask, columns: list[int]) -> None:
        size, shape = task.b.shape[1], task.dual.shape
        self._task, self._columns = task, columns
        single = task.source.in_single(task.samples) if task.single else None
        self._source = single or task.source
        self._samples = np.arange(shape[1]) if single else task.samples
        self.inside = np.arange(size)
        self.b, self.work = np.zeros(shape), np.zeros((2, shape[0]))
        self.b[:, :size] = task.b
        self.f = np.broadcast_to(task.dual.sign, shape).copy()
        self._K = self._source.block(self._samples[:size])
        self.f[:, :size] = gradient(self._K, task.dual.part(self.inside), task.b)
        self.effort = Steps.of_task(size).all
        """Steps that are left."""

    @property
    def solution(self) -> SetSolution:
        """What was found."""
        found, single = (
            (self.inside, self.b, self.f, self.work),
            self._source is not self._task.source,
        )
        return SetSolution(self._task.number, *found, finished=self.effort > 0, single=single)

    @property
    def grows(self) -> bool:
        """Whether there are samples that may join."""
        return len(self.inside) < len(self._samples)

    @property
    def _outside(self) -> Indices:
        return np.setdiff1d(np.arange(len(self._task.samples)), self.inside)

    def solve(self, tol: float) -> None:
        """Solve the columns on the set; compute the gradients of all samples."""
        dual, b = self._task.dual.part(self.inside), self.b[:, self.inside]
        if b.any():
            dual = replace(dual, chain=1)  # each column starts from its own coefficients
        f, left = self.f[:, self.inside], self._columns
        entry = largest_entry(self._K)
        for K in self._matrices(tol, entry):
            if left and self.effort:
                f = self._improve(K, dual, b, f, left, tol)
                left = sorted(set(left) & set(unfinished(dual, b, f, tol, entry)))
        self.b[:, self.inside], self.f[:, self.inside] = b, f
        self._look()

    def _matrices(self, tol: float, entry: float) -> Iterator[NDArray[Any]]:
        """The matrix twice, first in float32 if that is safe: for the steps, and for what is left.

        Rounding errors of the gradients in float32 are gone in the second ones.
        """
        if self._has_room_for_half and tol >= SINGLE_TOLERANCE and entry <= LARGEST_SINGLE:
            yield self._K.astype(np.float32)
        elif self._K.dtype == np.float32:
            yield self._K
        yield self._K

    def _improve(
        self, K: NDArray[Any], dual: Dual, b: Floats, f: Floats, columns: list[int], tol: float
    ) -> Floats:
        """Make steps on a matrix of the set; gradients in float64."""
        work = improve(K, dual, b, f, columns, tol, Steps(most_steps(len(K)), self.effort))
        self.effort -= int(work[0].sum())
        self.work += work
        return gradient(self._K, dual, b)

    @property
    def _has_room_for_half(self) -> bool:
        """Whether the matrix fits in float32 beside that in float64."""
        wide = self._K.dtype == np.float64
        return wide and 1.5 * len(self.inside) ** 2 <= self._task.largest**2

    def _look(self) -> None:
        """Compute the gradients of the samples outside of the set."""
        outside, support = self._outside, np.flatnonzero(self.b[self._columns].any(axis=0))
        if not len(outside):
            return
        self.f[:, outside] = self._task.dual.sign[outside]
        for own, group, values in self._between(outside, support):
            wide = values.astype(np.float64, copy=False)
            self.f[:, outside[own]] -= self.b[:, support[group]] @ wide.T

    def violators(self, tol: float) -> Indices:
        """Samples outside of the set that violate the conditions by more than tol."""
        outside = self._outside
        middles = middles_of(self._task.dual, self._columns, self.b, self.f, self.inside)
        return outside[excess_of(self._task.dual, self.f, middles, outside) > tol]

    def has_room_for(self, joining: int) -> bool:
        """Whether the matrices before and after samples join fit in memory together."""
        old = len(self.inside)
        return old**2 + (old + joining) ** 2 <= self._task.largest**2

    def join(self, joining: Indices) -> None:
        """Add samples to the set, and their entries to the matrix."""
        old, new = len(self.inside), len(self.inside) + len(joining)
        K = np.empty((new, padded(new)), self._K.dtype)
        K[:old, :old], K[:, new:] = self._K[:, :old], 0.0
        for own, group, values in self._between(joining, self.inside):
            fill_symmetric(K, values, old + own, group)
        square = self._source.block(self._samples[joining])
        K[old:, old:new] = square[:, : len(joining)]
        self._K = K
        self.inside = np.concatenate([self.inside, joining])

    def _between(
        self, rows: Indices, columns: Indices
    ) -> Iterator[tuple[Indices, Indices, NDArray[Any]]]:
        """Entries between some samples, in parts: places of rows and of columns, and values."""
        signs, samples = self._task.dual.sign[columns], self._samples
        groups = [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
        panels = self._source.panels(samples[rows], [samples[columns[g]] for g in groups])
        for panel in panels:
            places = groups[panel.group][panel.columns]
            yield panel.rows, places, panel.values


def middles_of(
    dual: Dual, columns: list[int], b: Floats, f: Floats, members: Indices
) -> dict[int, float]:
    """Intercept of each column on some samples; 0 where a class is lacking."""
    part, found = dual.part(members), {}
    for c in columns:
        _, middle = violation_and_intercept(part, c, b[c, members], f[c, members])
        found[c] = middle if np.isfinite(middle) else 0.0
    return found


def excess_of(dual: Dual, f: Floats, middles: dict[int, float], rows: Indices) -> Floats:
    """How far samples without coefficients are beyond the margin, at most over the columns.

    It is positive for violators; -inf for samples that no column trains on.
    """
    excess = np.full(len(rows), -np.inf)
    for c, middle in middles.items():
        own = dual.sign[rows] * (f[c, rows] - middle)
        np.maximum(excess, np.where(dual.boxes[c, rows] > 0, own, -np.inf), out=excess)
    return excess
