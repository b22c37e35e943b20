"""Memory of training exact and low-rank classifiers, by the functions of training itself."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance, Share
from dhsk.gram.plan import GramPlan
from dhsk.models.fit_plan import FitCounts, plan_exact, plan_fits
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.sources import RowsShape
from dhsk.solvers.problems import way_of_model
from dhsk.units import format_bytes

COLUMNS: Final = "", "one model", "how", "grid search", "how"
"""Heads of the table."""


ON_WORKERS: Final = "working sets on workers"
"""How one model is fitted whose samples do not fit this process, as each fit of a grid is."""

_WORDS: Final = {
    "whole matrices": "matrix in memory",
    "working sets": "columns as needed",
    ON_WORKERS: "columns, --workers",
}
"""Ways to fit, for people."""


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
class Training:
    """One model in this process, and a cross-validation; None if it does not fit the memory."""

    name: str
    model: Share | None
    grid: Share | None

    def row(self) -> list[str]:
        """Cells under `COLUMNS`."""
        return [self.name, *chain.from_iterable(map(_cells, (self.model, self.grid)))]


def _cells(fit: Share | None) -> tuple[str, str]:
    """Bytes and words for people."""
    if fit is None:
        return "-", "does not fit"
    return format_bytes(fit.need.total), _WORDS.get(fit.way, fit.way)


def equal_classes(n: int, classes: int) -> tuple[int, ...]:
    """Sizes of classes that share n samples equally."""
    return tuple((n + c) // classes for c in reversed(range(classes)))


def exact_training(
    rows: RowsShape, shape: GridShape, allowed: Allowance, gram: GramPlan
) -> Training:
    """Plan exact classifiers: one, and a cross-validation on samples.

    One is fitted in this process if its samples fit; else, as a grid, on workers that read them
    from disk, and within the same memory. `gram` is the plan of their matrix, with its workers,
    which is stored if that of every pair of classes fits in memory; `allowed` is the memory of this
    process.
    """
    one = FitCounts.of_classes(shape.sizes, multi_class=way_of_model("auto", len(shape.sizes)))
    grid = FitCounts.of_classes(shape.sizes, shape.folds, shape.chain)
    dtype = np.dtype(np.float64)

    def model() -> Share:
        with suppress(BudgetError):
            return plan_exact(rows, one, shape.sizes, allowed)
        return replace(on_sets(one, 1), way=ON_WORKERS)

    def on_sets(counts: FitCounts, kernels: int) -> Share:
        found = plan_fits(counts, dtype, kernels, gram.resources, "working sets")
        return replace(found, whole=False)

    def cells() -> Share:
        with suppress(BudgetError):
            gram.check()
            found = plan_fits(grid, dtype, shape.kernels, gram.resources)
            if found.whole:  # the matrix is made before the fits
                return replace(found, need=max(gram.need, found.need, key=lambda one: one.total))
        return on_sets(grid, shape.kernels)

    return Training("exact", _if_it_fits(model), _if_it_fits(cells))


def low_rank_training(
    rows: RowsShape, grid_rows: RowsShape, rank: int, shape: GridShape, allowed: Allowance
) -> Training:
    """Plan classifiers on Nyström features, all in this process, with memory `allowed`.

    `rows` describes the mapped samples of one model, `grid_rows` those of a cross-validation;
    `rank` is at most the number of samples.
    """
    columns = 1 if len(shape.sizes) == 2 else len(shape.sizes)
    keys = columns * shape.chain
    return Training(
        f"rank {rank:,}",
        _if_it_fits(lambda: plan_low_rank(rows, rank, columns, allowed)),
        _if_it_fits(lambda: plan_low_rank(grid_rows, rank, keys, allowed, shape.folds)),
    )


def _if_it_fits(planned: Callable[[], Share]) -> Share | None:
    try:
        return planned()
    except BudgetError:
        return None
