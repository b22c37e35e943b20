"""Memory of training exact and low-rank classifiers, by the functions of training itself."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance, MemoryNeed
from dhsk.gram.plan import GramPlan
from dhsk.models.exact_plan import plan_exact
from dhsk.models.fit_plan import FitCounts, plan_fits
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.sources import RowsShape
from dhsk.solvers.pairs import FINE_SAMPLES
from dhsk.units import format_bytes

COLUMNS: Final = "", "one model", "how", "grid search", "how"
"""Heads of the table."""


ON_WORKERS: Final = "working sets on workers"
"""How one model is fitted whose samples do not fit this process, as each fit of a grid is."""


@dataclass(frozen=True)
class GridShape:
    """Sizes of the classes, and numbers of folds, values of C and kernels of a grid."""

    sizes: tuple[int, ...]
    folds: int = 5
    chain: int = 3
    kernels: int = 3

    @property
    def words(self) -> str:
        """Folds, values of C and kernels."""
        return f"{self.folds} folds x {self.chain} C x {self.kernels} kernels"

    @property
    def fits(self) -> int:
        """Models of the grid, and the winner on all samples."""
        return self.folds * self.chain * self.kernels + 1


@dataclass(frozen=True)
class PlannedFit:
    """Memory of a fit; `ample` if its matrix, or its features, are in memory."""

    need: MemoryNeed
    how: str
    ample: bool

    @property
    def cells(self) -> tuple[str, str]:
        """Bytes and words for people."""
        words = {
            "whole matrices": "matrix in memory",
            "working sets": "columns as needed",
            ON_WORKERS: "columns, --workers",
        }
        return format_bytes(self.need.total), words.get(self.how, self.how)


@dataclass(frozen=True)
class TrainingPlan:
    """One model in this process, and a cross-validation; None if it does not fit the memory."""

    name: str
    model: PlannedFit | None
    grid: PlannedFit | None

    def row(self) -> list[str]:
        """Cells under `COLUMNS`."""
        fits = (self.model, self.grid)
        cells = (fit.cells if fit is not None else ("-", "does not fit") for fit in fits)
        return [self.name, *chain.from_iterable(cells)]


def equal_classes(n: int, classes: int) -> tuple[int, ...]:
    """Sizes of classes that share n samples equally."""
    return tuple((n + c) // classes for c in reversed(range(classes)))


def exact_training(
    rows: RowsShape, shape: GridShape, allowed: Allowance, gram: GramPlan
) -> TrainingPlan:
    """Plan exact classifiers: one, and a cross-validation on samples.

    One is fitted in this process if its samples fit; else, as a grid, on workers that read them
    from disk, and within the same memory. `gram` is the plan of their matrix, with its workers,
    which is stored if that of every pair of classes fits in memory; `allowed` is the memory of this
    process.
    """
    one = FitCounts.of_classes(shape.sizes)
    grid = FitCounts.of_classes(shape.sizes, shape.folds, shape.chain)

    def model() -> PlannedFit:
        with suppress(BudgetError):
            here = plan_exact(rows, one, shape.sizes, allowed)
            how = "working sets" if one.most > FINE_SAMPLES else "whole matrices"
            return PlannedFit(here.need, how, here.whole)
        return on_sets(one, 1, ON_WORKERS)

    def on_sets(counts: FitCounts, kernels: int, how: str) -> PlannedFit:
        plan = plan_fits(counts, np.dtype(np.float64), kernels, gram.resources, on_sets=True)
        return PlannedFit(plan.need, how, ample=False)

    def cells() -> PlannedFit:
        dtype = np.dtype(np.float64)
        with suppress(BudgetError):
            gram.check()
            plan = plan_fits(grid, dtype, shape.kernels, gram.resources)
            if plan.whole:
                need = max(gram.need, plan.need, key=lambda need: need.total)  # one after the other
                return PlannedFit(need, "whole matrices", ample=True)
        return on_sets(grid, shape.kernels, "working sets")

    return TrainingPlan("exact", _if_it_fits(model), _if_it_fits(cells))


def low_rank_training(
    rows: RowsShape, grid_rows: RowsShape, rank: int, shape: GridShape, allowed: Allowance
) -> TrainingPlan:
    """Plan classifiers on Nyström features, all in this process, with memory `allowed`.

    `rows` describes the mapped samples of one model, `grid_rows` those of a cross-validation;
    `rank` is at most the number of samples.
    """
    columns = 1 if len(shape.sizes) == 2 else len(shape.sizes)

    def planned(own: RowsShape, keys: int, folds: int) -> PlannedFit:
        plan = plan_low_rank(own, rank, keys, allowed, folds)
        tier = plan.features.tier
        return PlannedFit(plan.need, tier, tier == "features in memory")

    return TrainingPlan(
        f"rank {rank:,}",
        _if_it_fits(lambda: planned(rows, columns, 1)),
        _if_it_fits(lambda: planned(grid_rows, columns * shape.chain, shape.folds)),
    )


def _if_it_fits(planned: Callable[[], PlannedFit]) -> PlannedFit | None:
    try:
        return planned()
    except BudgetError:
        return None
