"""Fits of all folds, classes and C on the features of one kernel, and their scores."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, blocks
from dhsk.execution.checkpoint import NOWHERE, Checkpoint
from dhsk.execution.kept_pass import UNKEPT_SECONDS
from dhsk.linear.losses import Loss
from dhsk.linear.newton import (
    Newton,
    Solution,
    curvature_bytes,
    kept_solution,
    solve_columns,
)
from dhsk.linear.passes import Columns, Targets, held_out_decisions
from dhsk.linear.preconditioner import Factors
from dhsk.linear.state import KeptSolve
from dhsk.nystrom.spans import FeatureMatrix
from dhsk.results.columns import Certificate, KernelColumns
from dhsk.run_progress import RunProgress
from dhsk.solvers.problems import positives
from dhsk.validation.cells import Cells, scored
from dhsk.validation.grid import Grid


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Fits of all folds, classes and C on the features of a kernel."""

    Z: FeatureMatrix
    """Features of all samples."""
    grid: Grid
    loss: Loss
    room: int
    """Bytes for second derivatives."""
    seed: int
    """Seed of the subsample whose fit is the initial solution."""
    threads: int
    """Threads of this process for that fit."""
    run: RunProgress
    """Hears of each batch of fits."""
    entries: Checkpoint = NOWHERE
    """Keeps the solves of these features, folds and C, and of this room."""

    def cells(self, names: KernelColumns) -> Cells:
        """Fit and score; one row for each fold and C, fold by fold, with the kernel's columns."""
        found: dict[tuple[int, int], list[_Fit]] = {}
        keys = [(p, c) for c in range(len(self.grid.C)) for p in positives(len(self.grid.classes))]
        batches = list(self._batches(keys))
        self.run.expect("training", 2 * len(batches))
        for number, some in enumerate(batches):
            for fold, c, fit in self._solved(number, some):
                found.setdefault((fold, c), []).append(fit)
        columns = sorted(found.items(), key=lambda one: one[0])
        held_out = (self._decisions(fold, fits) for (fold, _), fits in columns)
        proofs = [certificate(fits) for _, fits in columns]
        return scored(held_out, self.grid, "ovr", names, proofs.__getitem__)

    def _batches(self, keys: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
        """Groups of problems whose factors fit in memory together."""
        each = Factors.bytes_of(1, self.Z.width, self.Z.dtype.itemsize)
        each += curvature_bytes(self.Z, len(self.grid.folds))
        count = max(1, self.room // each)
        return (keys[part] for part in blocks(len(keys), count))

    def _solved(self, batch: int, keys: list[tuple[int, int]]) -> "Iterator[tuple[int, int, _Fit]]":
        """Fits of some problems on all folds."""
        begin = perf_counter()
        n_folds = len(self.grid.folds)
        positive, number = (np.array(part) for part in zip(*keys, strict=True))
        whole = Columns(positive, np.zeros(len(keys), np.intp), np.array(self.grid.C)[number])
        groups = np.repeat(np.arange(1, n_folds + 1), len(keys))
        columns = Columns(np.tile(positive, n_folds), groups, np.tile(whole.C, n_folds))
        with self.run.part("training", 2.0):
            solution = self._kept_solution(f"fits-{batch}", whole, columns)
            decided = self._held_out(solution, columns)
        seconds = (perf_counter() - begin) / len(columns)
        for j in range(len(columns)):
            fold, place = divmod(j, len(keys))
            fit = _Fit(solution, j, seconds, decided[fold][:, place])
            yield fold, int(number[place]), fit

    def _kept_solution(self, name: str, whole: Columns, columns: Columns) -> Solution:
        """Solution on all folds, from an earlier run or kept for a later one."""
        on_all = KeptSolve(self.entries, f"{name}-all", unkept=UNKEPT_SECONDS)
        on_folds = KeptSolve(self.entries, f"{name}-folds", unkept=UNKEPT_SECONDS)
        both = self._newton(whole, on_all), self._newton(columns, on_folds)
        solution = kept_solution(self.entries, name, lambda: self._solution(*both))
        on_folds.drop()
        on_all.drop()
        return solution

    def _solution(self, on_all: Newton, on_folds: Newton) -> Solution:
        """Solve on all folds, with warm starts from the solutions on all samples."""
        with self.run.part("training", 1.0):
            start, factors = solve_columns(on_all, seed=self.seed, threads=self.threads)
        with self.run.part("training", 1.0):
            state = on_folds.steps.last(factors)
            n_folds = len(self.grid.folds)
            return on_folds.solve(np.tile(start.coef, n_folds), factors, state)

    def _newton(self, columns: Columns, steps: KeptSolve) -> Newton:
        weights = np.column_stack([self.grid.all_weights, self.grid.weights.T])
        targets = Targets(self.grid.y, weights.astype(self.Z.dtype))
        return Newton(
            self.Z, targets, columns, self.loss, self.grid.tol, self.room, self.run, steps
        )

    def _held_out(self, solution: Solution, columns: Columns) -> list[NDArray[Any]]:
        """Decisions of each fold's columns on its test samples."""
        tested = np.zeros((self.Z.n, len(self.grid.folds)), dtype=bool)
        for fold, (_, test) in enumerate(self.grid.folds):
            tested[test, fold] = True
        into = self.Z.into(solution.coef)
        parts = list(self.Z.map(held_out_decisions, (tested,), into, columns))
        return [np.concatenate(own) for own in zip(*parts, strict=True)]

    def _decisions(self, fold: int, fits: "list[_Fit]") -> Floats:
        """Decisions of a fold's fits of all classes on its test samples, (n, J)."""
        test = self.grid.folds[fold][1]
        decisions = np.column_stack([fit.decisions for fit in fits]).astype(np.float64)
        return np.asarray(decisions[np.searchsorted(np.unique(test), test)])


@dataclass(frozen=True, eq=False)
class _Fit:
    """Fit of one class, C and fold: a column of a solution."""

    solution: Solution
    column: int
    seconds: float
    decisions: NDArray[Any]
    """Decisions on the test samples."""


def certificate(fits: Sequence[_Fit]) -> Certificate:
    """Certificate of the fits of all classes, which share their Newton steps: the worst of each."""
    own = [(fit.solution, fit.column) for fit in fits]
    return Certificate(
        seconds=sum(fit.seconds for fit in fits),
        converged=all(one.converged[j] for one, j in own),
        n_iter=max(one.newton for one, _ in own),
        gap=max(float(one.gap[j] / one.objective[j]) for one, j in own),
        n_features=len(fits[0].solution.coef) - 1,
        gradient=max(float(one.relative[j]) for one, j in own),
    )
