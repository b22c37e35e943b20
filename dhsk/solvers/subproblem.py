"""The subproblems of a pair on its working set, solved by one task."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

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
from dhsk.solvers.sources import Source


@dataclass(frozen=True, eq=False)
class SetTask:
    """Subproblems of a pair on a working set, and samples that may join it.

    Attributes
    ----------
    number
        Identifies the pair.
    source
        Matrix.
    samples
        Samples of the set, and then those nearest to it, among those of the source, (m,).
    dual
        Problems of all these samples.
    b
        Coefficients of the set's samples to begin with, (columns, size).
    largest
        Most samples of the set.
    """

    number: int
    source: Source
    samples: Indices
    dual: Dual
    b: Floats
    largest: int


@dataclass(frozen=True, eq=False)
class SetSolution:
    """Solution of a `SetTask`.

    Attributes
    ----------
    number
        That of the task.
    inside
        Places of the set's samples among those of the task: with those that have joined.
    b, f
        Coefficients and gradients of all samples of the task, (columns, m).
    work
        Steps and seconds, (2, columns).
    finished
        Whether these are solutions, and not only as near to them as a task gets.
    """

    number: int
    inside: Indices
    b: Floats
    f: Floats
    work: Floats
    finished: bool


def solve_on_set(task: SetTask, columns: list[int], tol: float) -> SetSolution:
    """Solve some columns to a violation of tol: the task that workers run.

    Violators among the samples outside join the set, until there are none or the set is full.
    """
    grown = _GrowingSet(task, columns)
    while True:
        grown.solve(tol)
        joining = grown.violators(tol)
        if not grown.effort or not len(joining) or not grown.has_room_for(len(joining)):
            return grown.solution
        grown.join(joining)


class _GrowingSet:
    """A working set with its matrix, which grows by rows and columns."""

    def __init__(self, task: SetTask, columns: list[int]) -> None:
        size, shape = task.b.shape[1], task.dual.shape
        self._task, self._columns = task, columns
        self.inside = np.arange(size)
        self.b, self.work = np.zeros(shape), np.zeros((2, shape[0]))
        self.b[:, :size] = task.b
        self.f = np.broadcast_to(task.dual.sign, shape).copy()
        self._K = task.source.block(task.samples[:size])
        self.effort = Steps.of_task(size).all
        """Steps that are left."""

    @property
    def solution(self) -> SetSolution:
        """What was found."""
        found = self.inside, self.b, self.f, self.work
        return SetSolution(self._task.number, *found, finished=self.effort > 0)

    @property
    def _outside(self) -> Indices:
        return np.setdiff1d(np.arange(len(self._task.samples)), self.inside)

    def solve(self, tol: float) -> None:
        """Solve the columns on the set; compute the gradients of all samples."""
        dual, b = self._task.dual.part(self.inside), self.b[:, self.inside]
        if b.any():
            dual = replace(dual, chain=1)  # each column starts from its own coefficients
        f = gradient(self._K, dual, b)
        left = self._columns
        if self._has_room_for_half and tol >= SINGLE_TOLERANCE:
            entry = largest_entry(self._K)
            if entry <= LARGEST_SINGLE:
                f = self._improve(self._K.astype(np.float32), dual, b, f, left, tol)
                left = sorted(set(left) & set(unfinished(dual, b, f, tol, entry)))
        if left and self.effort:
            f = self._improve(self._K, dual, b, f, left, tol)
        self.b[:, self.inside], self.f[:, self.inside] = b, f
        self._look()

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
            self.f[:, outside[own]] -= self.b[:, support[group]] @ values.T

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
        K = np.zeros((new, padded(new)), self._K.dtype)
        K[:old, :old] = self._K[:, :old]
        for own, group, values in self._between(joining, self.inside):
            K[np.ix_(old + own, group)] = values
        K[:old, old:new] = K[old:, :old].T
        square = self._task.source.block(self._task.samples[joining])
        K[old:, old:new] = square[:, : len(joining)]
        self._K = K
        self.inside = np.concatenate([self.inside, joining])

    def _between(
        self, rows: Indices, columns: Indices
    ) -> Iterator[tuple[Indices, Indices, Floats]]:
        """Entries between some samples, in parts: places of rows and of columns, and values."""
        signs, samples = self._task.dual.sign[columns], self._task.samples
        groups = [np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)]
        panels = self._task.source.panels(samples[rows], [samples[columns[g]] for g in groups])
        for panel in panels:
            places = groups[panel.group][panel.columns]
            yield panel.rows, places, panel.values.astype(np.float64, copy=False)


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
