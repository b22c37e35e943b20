"""Fits of all pairs of classes on kernel matrices: from the journal, whole, or in rounds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import comb
from typing import NamedTuple

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import digest_of
from dhsk.execution.tasks import Executor
from dhsk.models.journal import Journal
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import PairTask, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import Source


@dataclass(frozen=True, eq=False)
class PairFits:
    """Fits of a kernel: of each pair one for every column, and the ball that holds its samples.

    All of a matrix in some unit, see `dhsk.models.rescaling`.
    """

    fits: list[list[Fit]]
    radii2: list[float]
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """The matrix of a kernel, and the values of C to solve all pairs of classes with.

    Attributes
    ----------
    source
        The matrix.
    C
        Upper bounds of the dual coefficients, ascending.
    unit
        What differences of the kernel are divided by in the matrix, see `dhsk.models.rescaling`.
    name
        What tells its problems from all others in a journal.
    """

    source: Source
    C: tuple[float, ...]
    unit: float = 1.0
    name: str = ""


class _Part(NamedTuple):
    """What one task solves: a pair of classes on some folds, with every C."""

    kernel: int
    pair: int
    folds: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Placement:
    """Where tasks run, and what each may hold.

    Attributes
    ----------
    executor
        Runs the tasks.
    room
        Bytes of the matrix of a task.
    split_folds
        Whether each fold is a task of its own, so that there are enough.
    """

    executor: Executor
    room: int
    split_folds: bool = False


@dataclass(eq=False)
class PairSolver:
    """Solves all pairs of classes on the matrices of some kernels.

    Attributes
    ----------
    codes
        Class of each sample, (N,), from 0; -1 of samples that are left out.
    weights
        Factors of C, one row a fold, (folds, N); 0 for samples that are held out.
    tol
        Greatest KKT violation.
    problems
        The matrices, with as many values of C each.
    placement
        Where tasks run.
    journal
        Keeps what is finished.
    fine
        Whether to go on beyond the tolerance, see `dhsk.solvers.pairs.solve_block`.
    balls
        Whether the balls that hold the samples of the pairs are wanted too.
    on_fits
        Called with the number of fits that are finished.
    """

    codes: Indices
    weights: Floats
    tol: float
    problems: Sequence[MatrixProblem]
    placement: Placement
    journal: Journal = field(default_factory=Journal)
    fine: bool = False
    balls: bool = False
    on_fits: Callable[[int], None] = lambda _: None
    _made: dict[tuple[float, ...], list[Pair]] = field(default_factory=dict, init=False)

    @cached_value
    def n_pairs(self) -> int:
        """Number of pairs of classes."""
        return comb(int(self.codes.max()) + 1, 2)

    def pairs(self, k: int = 0) -> list[Pair]:
        """Problems of a kernel, in its unit; those of the same values of C are made once."""
        C = tuple(value * self.problems[k].unit for value in self.problems[k].C)
        if C not in self._made:
            self._made = {C: make_pairs(self.codes, self.weights, C)}
        return self._made[C]

    def solved(self, wanted: Sequence[int] = (0,)) -> Iterator[tuple[int, PairFits]]:
        """Solve the problems of kernels, each given as soon as all of its pairs are solved.

        Parameters
        ----------
        wanted
            Numbers of the kernels.

        Yields
        ------
        int
            Number of a kernel.
        PairFits
            Its fits.
        """
        found: dict[int, dict[_Part, tuple[list[Fit], float]]] = {k: {} for k in wanted}
        missing = []
        for part in (part for k in wanted for part in self._parts(k)):
            kept = self.journal.get(self._name_of(part))
            if kept is None:
                missing.append(part)
            else:
                found[part.kernel][part] = kept[0], kept[1]
                self.on_fits(len(kept[0]))
        yield from ((k, self._joined(found.pop(k), k)) for k in wanted if self._whole(found, k))
        for part, fits, radius2 in self._solve(missing):
            self.journal.put(self._name_of(part), fits, radius2)
            found[part.kernel][part] = fits, radius2
            self.on_fits(len(fits))
            if self._whole(found, part.kernel):
                yield part.kernel, self._joined(found.pop(part.kernel), part.kernel)

    def forget(self, k: int) -> None:
        """Drop the fits of a kernel from the journal."""
        self.journal.drop([self._name_of(part) for part in self._parts(k)])

    def _parts(self, k: int) -> list[_Part]:
        """Tasks of a kernel."""
        shares = self._shares(k)
        return [_Part(k, pair, share) for pair in range(self.n_pairs) for share in shares]

    def _shares(self, k: int) -> list[tuple[int, ...]]:
        """Folds of each task of a pair."""
        folds = range(len(self.weights))
        # A pair in rounds is one task: its folds share every pass.
        split = self.placement.split_folds and self._fits(k)
        return [(fold,) for fold in folds] if split else [tuple(folds)]

    def _fits(self, k: int) -> bool:
        """Whether the matrix of every pair fits the memory of a task."""
        return matrix_bytes(self._most, self.problems[k].source.dtype) <= self.placement.room

    @cached_value
    def _most(self) -> int:
        """Samples of the largest pair."""
        return int(np.sort(np.bincount(self.codes[self.codes >= 0]))[-2:].sum())

    def _name_of(self, part: _Part) -> str:
        return digest_of(self.problems[part.kernel].name, part.pair, list(part.folds))

    def _solve(self, parts: Sequence[_Part]) -> Iterator[tuple[_Part, list[Fit], float]]:
        """Each part as soon as it is solved; kernel by kernel if some do not fit the memory."""
        together = all(self._fits(k) for k in {part.kernel for part in parts})
        room, executor = self.placement.room, self.placement.executor
        for _, own in groupby(parts, key=lambda part: together or part.kernel):
            tasks = (self._task(part) for part in own)
            yield from solve_pairs(tasks, self.tol, room, executor, fine=self.fine)

    def _task(self, part: _Part) -> PairTask:
        pair = self.pairs(part.kernel)[part.pair]
        if len(part.folds) < len(self.weights):
            pair = pair.of_folds(part.folds)
        ball = self.balls and 0 in part.folds  # the same for every fold
        return PairTask(part, self.problems[part.kernel].source, pair, ball)

    def _whole(self, found: dict[int, dict[_Part, tuple[list[Fit], float]]], k: int) -> bool:
        """Whether every part of a kernel is there."""
        return len(found[k]) == self.n_pairs * len(self._shares(k))

    def _joined(self, found: dict[_Part, tuple[list[Fit], float]], k: int) -> PairFits:
        fits: list[list[Fit]] = [[] for _ in range(self.n_pairs)]
        radii2 = [0.0] * self.n_pairs
        for part in sorted(found):
            own, radius2 = found[part]
            fits[part.pair] += own
            radii2[part.pair] = max(radii2[part.pair], radius2)
        return PairFits(fits, radii2, self.problems[k].unit)
