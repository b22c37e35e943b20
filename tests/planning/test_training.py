"""Memory of ways to train: that of the functions that training uses, and what does not fit."""

from typing import Any

import pytest

from dhsk.execution.memory import Allowance
from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.models.fit_plan import FitCounts, plan_exact
from dhsk.models.low_rank_plan import plan_low_rank
from dhsk.models.sources import RowsShape
from dhsk.planning.training import (
    COLUMNS,
    GridShape,
    Training,
    equal_classes,
    exact_training,
    low_rank_training,
)

GB = 10**9

HELD = 3 * 10**8


def allowed(memory: int) -> Allowance:
    """Two threads."""
    return Allowance(memory, HELD, max(0, memory - HELD), 2)


def exact(n: int, memory: int, **grid: Any) -> Training:
    """Exact classifiers of three classes and 100 features, on two workers."""
    gram = make_plan(GramSides(n, 100), Resources(2, 2, memory))
    shape = GridShape(equal_classes(n, 3), **grid)
    return exact_training(RowsShape(n, 100, 8), shape, allowed(memory), gram)


def test_exact_memory_is_that_of_the_fits() -> None:
    """One model in this process; of the grid the larger of matrix and fits."""
    found = exact(10_000, 16 * GB)
    assert found.model is not None
    assert found.grid is not None
    sizes = equal_classes(10_000, 3)
    counts = FitCounts.of_classes(sizes)
    expected = plan_exact(RowsShape(10_000, 100, 8), counts, sizes, allowed(16 * GB))
    assert found.model.need == expected.need
    assert (found.model.way, found.model.whole) == ("working sets", True)
    assert found.grid.need.name == "exact fits"
    small = exact(600, 16 * GB, folds=2, chain=1, kernels=1)
    assert small.grid is not None
    gram = make_plan(GramSides(600, 100), Resources(2, 2, 16 * GB)).need
    assert small.grid.need.total >= gram.total


def test_matrices_that_do_not_fit_are_not_whole() -> None:
    """It is said, because seconds are then a lower bound."""
    found = exact(40_000, 2 * GB)
    assert found.model is not None
    assert (found.model.way, found.model.whole) == ("working sets", False)
    assert found.model.need.total <= 2 * GB
    assert found.row()[2] == "columns as needed"
    assert found.grid is not None
    assert (found.grid.way, found.grid.whole) == ("working sets", False)


def test_what_does_not_fit_is_a_dash() -> None:
    """Under every head."""
    found = exact(40_000, HELD + 1)
    assert (found.model, found.grid) == (None, None)
    assert found.row() == ["exact", "-", "does not fit", "-", "does not fit"]
    assert len(found.row()) == len(COLUMNS)


def test_low_rank_memory_is_that_of_the_fits() -> None:
    """A column for each class; in the grid one for each class and C, with curvatures by fold."""
    rows = RowsShape(10_000, 100, 8)
    shape = GridShape(equal_classes(10_000, 3), folds=4, chain=2)
    found = low_rank_training(rows, rows, 500, shape, allowed(16 * GB))
    assert found.model is not None
    assert found.grid is not None
    assert found.model.need == plan_low_rank(rows, 500, 3, allowed(16 * GB)).need
    assert found.grid.need == plan_low_rank(rows, 500, 6, allowed(16 * GB), 4).need
    assert found.model.way == "features in memory"
    two = low_rank_training(rows, rows, 10_000, GridShape((5000, 5000)), allowed(64 * GB))
    assert two.name == "rank 10,000"
    assert two.model is not None
    assert two.model.need == plan_low_rank(rows, 10_000, 1, allowed(64 * GB)).need


@pytest.mark.parametrize(("n", "sizes"), [(10, (4, 3, 3)), (3, (1, 1, 1)), (2, (1, 1, 0))])
def test_classes_share_the_samples(n: int, sizes: tuple[int, ...]) -> None:
    """As equally as they can."""
    assert equal_classes(n, 3) == sizes


def test_fits_are_counted_with_the_winner() -> None:
    """Folds times C times kernels, and one on all samples."""
    assert GridShape((5, 5), 5, 3, 2).fits == 31
