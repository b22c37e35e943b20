"""Memory of training exact and low-rank classifiers, by the functions that training itself uses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance, MemoryNeed
from dhsk.gram.plan import GramPlan
from dhsk.models.exact_plan import plan_exact
from dhsk.models.fit_plan import FitCounts, FitPlan, plan_counts
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.sources import RowsShape
from dhsk.samples import Samples
from dhsk.units import human_bytes

RANKS: Final = 500, 1000, 2000, 5000
"""Ranks that are planned if none are named."""

COLUMNS: Final = "", "one model", "how", "grid", "how"
"""Heads of the table."""


@dataclass(frozen=True)
class SamplesShape:
    """Samples to be planned for, from a file or on paper.

    Attributes
    ----------
    n, dim
        Samples and features.
    nnz
        Entries of sparse samples; None if they are dense.
    opened
        The samples; None on paper.
    """

    n: int
    dim: int
    nnz: int | None = None
    opened: Samples | None = None

    @classmethod
    def of(cls, samples: Samples) -> "SamplesShape":
        """That of samples."""
        return cls(*samples.shape, samples.nnz, samples)

    def rows(self, dtype: str) -> RowsShape:
        """The samples as they will be when mapped."""
        if self.opened is not None:
            return RowsShape.of_samples(self.opened, dtype)
        return RowsShape(self.n, self.dim, np.dtype(dtype).itemsize, self.nnz)


@dataclass(frozen=True)
class GridShape:
    """Classifiers to train, counted.

    Attributes
    ----------
    sizes
        Samples of each class, of two classes at least.
    folds, chain, kernels
        Folds, values of C and kernels of a cross-validation.
    """

    sizes: tuple[int, ...]
    folds: int = 5
    chain: int = 3
    kernels: int = 3

    @property
    def keys(self) -> int:
        """Low-rank problems of a kernel with second derivatives of their own, for each C."""
        return 1 if len(self.sizes) == 2 else len(self.sizes)

    @property
    def fits(self) -> int:
        """Models of the grid, and the winner on all samples."""
        return self.folds * self.chain * self.kernels + 1


@dataclass(frozen=True)
class Planned:
    """What a fit takes and how it goes.

    Attributes
    ----------
    need
        Its memory.
    how
        What is in memory, in words.
    ample
        Whether memory does not slow it down: its matrix, or its features, are in memory.
    """

    need: MemoryNeed
    how: str
    ample: bool


@dataclass(frozen=True)
class TrainingPlan:
    """A way to train: one model in this process, and a cross-validation.

    Attributes
    ----------
    name
        The way.
    model, grid
        Their memory; None if they do not fit what is allowed.
    """

    name: str
    model: Planned | None
    grid: Planned | None

    def row(self) -> list[str]:
        """Cells under `COLUMNS`."""
        return [self.name, *_cells(self.model), *_cells(self.grid)]


def equal_classes(n: int, classes: int) -> tuple[int, ...]:
    """Sizes of classes that share n samples equally."""
    return tuple(len(part) for part in np.array_split(range(n), classes))


def exact_training(
    rows: RowsShape, shape: GridShape, allowed: Allowance, gram: GramPlan
) -> TrainingPlan:
    """Plan exact classifiers: one in this process, and a cross-validation on a stored matrix.

    Parameters
    ----------
    rows
        The mapped samples.
    shape
        The classifiers.
    allowed
        What this process may use.
    gram
        Plan of that matrix, with the workers.
    """
    one = FitCounts.of_classes(shape.sizes)
    grid = FitCounts.of_classes(shape.sizes, shape.folds, shape.chain)
    dtype = np.dtype(np.float64)  # of the matrix that a cross-validation stores

    def model() -> Planned:
        plan = plan_exact(rows, one, shape.sizes, allowed)
        return Planned(plan.need, _matrices(whole=plan.whole), plan.whole)

    def cells() -> Planned:
        gram.check()
        plan: FitPlan = plan_counts(grid, dtype, shape.kernels, gram.resources)
        need = max(gram.need, plan.need, key=lambda need: need.total)  # one after the other
        return Planned(need, _matrices(whole=plan.whole), plan.whole)

    return TrainingPlan("exact", _if_it_fits(model), _if_it_fits(cells))


def low_rank_training(
    rows: RowsShape, grid_rows: RowsShape, rank: int, shape: GridShape, allowed: Allowance
) -> TrainingPlan:
    """Plan classifiers on Nyström features, all in this process.

    Parameters
    ----------
    rows, grid_rows
        The mapped samples for one model, and for a cross-validation.
    rank
        Number of features; of more than there are samples, all samples.
    shape
        The classifiers.
    allowed
        What this process may use.
    """
    m = min(rank, rows.n)

    def planned(own: RowsShape, keys: int, folds: int) -> Planned:
        plan = plan_low_rank(own, m, keys, allowed, folds)
        tier = plan.features.tier
        return Planned(plan.need, tier.replace("held", "in memory"), tier == "features held")

    keys = shape.keys
    return TrainingPlan(
        f"rank {m:,}",
        _if_it_fits(lambda: planned(rows, keys, 1)),
        _if_it_fits(lambda: planned(grid_rows, keys * shape.chain, shape.folds)),
    )


def _matrices(*, whole: bool) -> str:
    return "whole matrices" if whole else "in rounds"


def _if_it_fits(planned: Callable[[], Planned]) -> Planned | None:
    try:
        return planned()
    except BudgetError:
        return None


def _cells(planned: Planned | None) -> tuple[str, str]:
    if planned is None:
        return "-", "does not fit"
    return human_bytes(planned.need.total), planned.how
