"""Engine for samples whose features are weighted anew in every fold, as of tf-idf.

The weights are learnt from the training part of a fold, without its labels, so every fold has
samples and products of its own: as many Gram matrices as there are folds, each stored and fitted
like the one of unweighted samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Indices
from dhsk.kernels import Kernel
from dhsk.results.columns import Certificate, Row
from dhsk.results.parts import RunFacts
from dhsk.samples import Samples, scan
from dhsk.samples.gaps import GappedSamples
from dhsk.samples.weighted import LEARNT, MapName, WeightedSamples
from dhsk.solvers.problems import MultiClass
from dhsk.validation.cells import Cells, scored_together
from dhsk.validation.engine import Engine, Needs, TriedKernel
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import GridProgress

MakeEngine = Callable[[Samples, Grid, str], Engine]
"""Makes the engine of weighted samples, with a grid, and the name of its folder of products."""


class WeightedEngine:
    """Fits kernels on samples under a map of `LEARNT`; see `Engine`.

    `make` makes the engine of each fold, and that of all samples.
    """

    def __init__(
        self,
        samples: Samples,
        grid: Grid,
        make: MakeEngine,
        told: GridProgress,
        name: MapName,
    ) -> None:
        self._samples = samples
        self._grid = grid
        used = np.vstack([grid.weights, grid.all_weights]).T > 0
        self._counted = GappedSamples(samples)
        self._weights = LEARNT[name].learn(self._counted, used)
        self._name = name
        self._make = make
        self._told = told
        self._engines: list[Engine] = []

    def warn(self) -> None:
        """Warn of gaps, where means stand."""
        self._counted.warn()

    @property
    def samples(self) -> Samples:
        """Samples with the weights that all of them give."""
        return WeightedSamples(self._samples, self._weights[-1])

    @property
    def prepared(self) -> float:
        """Seconds spent on Gram matrices, or on landmarks and features."""
        return sum(engine.prepared for engine in self._engines)

    def needs(self, kernels: Sequence[Kernel]) -> Needs:
        """What a fold needs: they are fitted one after the other."""
        self._begin()
        return self._engines[0].needs(kernels)

    def relative_work(self, kernel: Kernel) -> float:
        """About the time of a kernel's fits, as of the engine of a fold."""
        self._begin()
        return self._engines[0].relative_work(kernel)

    def run(self, kernels: Sequence[Kernel], grid: Grid) -> Sequence[TriedKernel]:
        """Try some kernels; the spread is that under the weights of fold 0."""
        return [one for kernel in kernels for one in self._try(kernel, grid)]

    def _try(self, kernel: Kernel, grid: Grid) -> list[TriedKernel]:
        """Results of a kernel, at each rank if it is of low rank."""
        self._begin()
        with self._told.within(fold=0):
            firsts = self._engines[0].run([kernel], _fold(grid, 0))
        return [self._others(kernel, first, grid) for first in firsts]

    def _others(self, kernel: Kernel, first: TriedKernel, grid: Grid) -> TriedKernel:
        """Add the other folds to the first one, at the same C."""
        grid = replace(grid, C=first.C, in_spreads=False)
        C_scaled = {row.C: row.C_scaled for row in first.cells.rows}
        parts = [first.cells]
        for fold, engine in enumerate(self._engines[1:], start=1):
            with self._told.within(fold=fold):
                own = engine.run([kernel], _fold(grid, fold))
            parts.append(next(one.cells for one in own if one.rank == first.rank))
        by_fold: list[Sequence[Row]] = [cells.rows for cells in parts]
        if grid.scoring.probabilities:
            by_fold = [*scored_together(parts, grid)]
            for fold, own_rows in enumerate(by_fold):
                with self._told.within(fold=fold):
                    self._told.scored(own_rows)
        # It is a column of the cell, which is one over all folds: the worst.
        errors = [error for own in by_fold if (error := own[0].trace_error) is not None]
        rows = [
            replace(row, fold=fold, C_scaled=C_scaled[row.C], trace_error=max(errors, default=None))
            for fold, own in enumerate(by_fold)
            for row in own
        ]
        predicted = [guess for cells in parts for guess in cells.predicted]
        decisions = [one for cells in parts for one in cells.decisions]
        return replace(first, cells=Cells(rows, predicted, decisions))

    def _begin(self) -> None:
        """Make the engines of the folds."""
        if not self._engines:
            for fold, weights in enumerate(self._weights[:-1]):
                samples, name = WeightedSamples(self._samples, weights), f"{self._name}-{fold}"
                self._engines.append(self._make(samples, _fold(self._grid, fold), name))

    def refit(
        self, winner: TriedKernel, C: float, multi_class: MultiClass
    ) -> tuple[Any, Certificate]:
        """Fit one cell on all samples, with their weights; return the model and its certificate."""
        engine = self._make(self.samples, self._grid, f"{self._name}-all")
        model, proof = engine.refit(winner, C, multi_class)
        return replace(model, feature_weights=self._weights[-1]), proof

    def among(self, winner: TriedKernel, members: Indices) -> NDArray[Any]:
        """Values of the winner's kernel among some samples, under the weights of fold 0."""
        return self._engines[0].among(winner, members)

    def facts(self, winner: TriedKernel) -> RunFacts:
        """Samples and plan; the spectrum is that under the weights of fold 0."""
        found = self._engines[0].facts(winner)
        print_ = scan(self._samples, None).fingerprint  # of the samples without weights
        return replace(
            found,
            samples=replace(found.samples, sphere_map=self._name, fingerprint=print_),
            plan=(*found.plan, ("weights", f"learnt in each of {len(self._grid.folds)} folds")),
        )


def _fold(grid: Grid, fold: int) -> Grid:
    """The grid with one fold alone."""
    own = slice(fold, fold + 1)
    return replace(grid, folds=grid.folds[own], weights=grid.weights[own], repeats=1)
