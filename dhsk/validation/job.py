"""The fits of a grid, kernel by kernel: from the journal, on workers, or in rounds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from dhsk.execution.checkpoint import digest_of
from dhsk.execution.tasks import Run
from dhsk.models.fit_plan import FitPlan
from dhsk.progress import OnProgress, Progress
from dhsk.solvers.ball import balls_about_means
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import largest_block
from dhsk.solvers.parts import Part, solve_part
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import Source
from dhsk.validation.cells import Solved, rows_of_kernel
from dhsk.validation.grid import Grid
from dhsk.validation.journal import Journal


@dataclass(frozen=True)
class Candidate:
    """A kernel of the grid.

    Attributes
    ----------
    source
        Its matrix.
    names
        Columns that name it in the results.
    key
        What tells its matrix from every other, as a JSON value.
    C
        Values of C to try on it, ascending; of all candidates of a job as many.
    C_scaled
        The same in units of the spread of the samples, if they were chosen so.
    unit
        What differences of the kernel are divided by in the matrix, see `dhsk.models.rescaling`.
    """

    source: Source
    names: dict[str, Any]
    key: Any
    C: tuple[float, ...] = ()
    C_scaled: tuple[float, ...] | None = None
    unit: float = 1.0


@dataclass(frozen=True)
class Cells:
    """Results of one kernel: a row for every fold and C, and the classes that each predicted."""

    rows: list[dict[str, Any]]
    predicted: list[list[int]]


class Job:
    """What is to be fitted, and where.

    Parameters
    ----------
    grid
        Folds and labels.
    candidates
        Kernels, with their values of C.
    plan
        Memory of the tasks.
    journal
        Keeps what is finished.
    run
        Runs the tasks.
    report
        Receives progress.
    """

    def __init__(
        self,
        grid: Grid,
        candidates: Sequence[Candidate],
        plan: FitPlan,
        journal: Journal,
        run: Run,
        report: OnProgress,
    ) -> None:
        self._grids = [replace(grid, C=list(one.C)) for one in candidates]
        self._candidates = candidates
        self._plan = plan
        self._journal = journal
        self._run = run
        self._report = report
        self._done = 0
        self._n_pairs = math.comb(len(grid.classes), 2)
        self._pairs: dict[tuple[float, ...], list[Pair]] = {}
        weights = np.ascontiguousarray(grid.weights)
        test = [held_out.tolist() for _, held_out in grid.folds]
        name = digest_of(grid.y, weights, test, grid.tol, grid.scoring.key)
        own = ([list(one.C), one.C_scaled, one.unit, one.key] for one in candidates)
        self._names = [digest_of(name, *parts) for parts in own]

    def results(self) -> Iterator[tuple[int, Cells]]:
        """Fit and score everything that the journal does not have.

        Yields
        ------
        int
            Number of a kernel.
        Cells
            Its results, as soon as they are finished.
        """
        missing = []
        for k, name in enumerate(self._names):
            kept = self._journal.get(name)
            if kept is None:
                missing.append(k)
            else:
                yield k, Cells(**kept[1])
        self._advance((len(self._names) - len(missing)) * self._problems)
        for k, solved in self.solved(sorted(missing, key=self._steepness)):
            yield k, self._score(k, solved)

    def _steepness(self, k: int) -> float:
        """Cheap kernels are the least: at a small time nearly all samples are support vectors."""
        time = self._candidates[k].names["time"]
        return -math.inf if time is None else -time

    def pairs(self, k: int = 0) -> list[Pair]:
        """Problems of a kernel, in its unit; those of the same values of C are made once."""
        grid, one = self._grids[k], self._candidates[k]
        C = tuple(value * one.unit for value in one.C)
        if C not in self._pairs:
            self._pairs = {C: make_pairs(grid.y, grid.weights, C)}
        return self._pairs[C]

    @property
    def _problems(self) -> int:
        """Problems of a kernel."""
        return self._n_pairs * self._grids[0].columns

    def _advance(self, count: int) -> None:
        self._done += count
        self._report(Progress("fits", self._done, len(self._candidates) * self._problems))

    def _score(self, k: int, solved: Solved) -> Cells:
        """Rows of a kernel, which take the place of its fits in the journal."""
        candidate = self._candidates[k]
        rows, predicted = rows_of_kernel(
            candidate.source,
            self._grids[k],
            self.pairs(k),
            solved,
            candidate.names,
            candidate.C_scaled,
        )
        cells = Cells(rows, predicted)
        self._journal.put(self._names[k], [], vars(cells))
        self._journal.drop([self._name_of(part) for part in self._parts(k)])
        return cells

    def solved(self, wanted: Sequence[int] = (0,)) -> Iterator[tuple[int, Solved]]:
        """Fit kernels, each given as soon as all of its pairs are solved.

        Parameters
        ----------
        wanted
            Numbers of the kernels.

        Yields
        ------
        int
            Number of a kernel.
        Solved
            Its fits.
        """
        found: dict[int, dict[Part, tuple[list[Fit], float]]] = {k: {} for k in wanted}
        missing = []
        for part in (part for k in wanted for part in self._parts(k)):
            kept = self._journal.get(self._name_of(part))
            if kept is None:
                missing.append(part)
            else:
                found[part.kernel][part] = kept[0], kept[1]
                self._advance(len(kept[0]))
        for k in wanted:
            yield from self._complete(found, k)
        for part, fits, radius2 in self._solve(missing):
            self._journal.put(self._name_of(part), fits, radius2)
            found[part.kernel][part] = fits, radius2
            self._advance(len(fits))
            yield from self._complete(found, part.kernel)

    def _parts(self, k: int) -> list[Part]:
        """Tasks of a kernel."""
        folds = range(len(self._grids[k].folds))
        # A pair in rounds is one task: its folds share every pass.
        split = self._plan.split_folds and self._plan.whole
        shares = [(fold,) for fold in folds] if split else [tuple(folds)]
        return [Part(k, p, share) for p in range(self._n_pairs) for share in shares]

    def _name_of(self, part: Part) -> str:
        return digest_of(self._names[part.kernel], part.pair, list(part.folds))

    def _solve(self, parts: Sequence[Part]) -> Iterator[tuple[Part, list[Fit], float]]:
        """Each part as soon as it is solved; kernel by kernel if some do not fit the memory."""
        if self._plan.whole:
            yield from self._solve_whole(parts)
            return
        for k, own in groupby(parts, key=lambda part: part.kernel):
            small: list[Part] = []
            large: list[Part] = []
            dtype = self._candidates[k].source.dtype
            for part in own:
                size = matrix_bytes(len(self.pairs(k)[part.pair].members), dtype)
                (small if size <= self._plan.room else large).append(part)
            yield from self._solve_whole(small)
            if large:
                yield from self._solve_in_rounds(k, large)

    def _solve_whole(self, parts: Sequence[Part]) -> Iterator[tuple[Part, list[Fit], float]]:
        tasks = (
            (
                part,
                self._candidates[part.kernel].source,
                self.pairs(part.kernel)[part.pair],
                self._grids[part.kernel].tol,
            )
            for part in parts
        )
        yield from self._run(solve_part, tasks)

    def _solve_in_rounds(
        self, k: int, parts: Sequence[Part]
    ) -> Iterator[tuple[Part, list[Fit], float]]:
        source, tol = self._candidates[k].source, self._grids[k].tol
        largest = largest_block(self._plan.room, source.dtype)
        pairs = {part.pair: self.pairs(k)[part.pair] for part in parts}
        balls = balls_about_means(source, [pair.members for pair in pairs.values()])
        of_pair = {part.pair: (part, ball.radius2) for part, ball in zip(parts, balls, strict=True)}
        for number, fits in solve_in_rounds(source, pairs, tol, largest, self._run):
            part, radius2 = of_pair[number]
            yield part, fits, radius2

    def _complete(
        self, found: dict[int, dict[Part, tuple[list[Fit], float]]], k: int
    ) -> Iterator[tuple[int, Solved]]:
        """The fits of a kernel if every part of it is there, once."""
        if len(found[k]) == len(self._parts(k)):
            yield k, self._join(found.pop(k), self._candidates[k].unit)

    def _join(self, found: dict[Part, tuple[list[Fit], float]], unit: float) -> Solved:
        fits: list[list[Fit]] = [[] for _ in range(self._n_pairs)]
        radii2 = [0.0] * self._n_pairs
        for part in sorted(found, key=lambda part: (part.pair, part.folds)):
            own, radius2 = found[part]
            fits[part.pair] += own
            radii2[part.pair] = max(radii2[part.pair], radius2)
        return Solved(fits, radii2, unit)
