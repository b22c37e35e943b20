"""Exact against low rank: the table, and the advice in every case."""

from typing import Any

import pytest

from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.planning.comparison import COLUMNS, RANKS, Comparison, compare
from dhsk.planning.exact_cost import GridShape
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import Line, Rates

GB = 10**9

RATES = Rates(Line(1e-9, 1e-10), Line(1e-9, 5e-11), Line(2e-8, 1e-8), 1e-8, 1e9, 2e9, 5e-10, 100.0,
              "made up")  # fmt: skip

GRID = GridShape(2, 5, 3, 3)


def compared(n: int, memory: int, *given: Any, shape: GridShape = GRID) -> Comparison:
    """Comparison on two workers, of 100 features."""
    plan = make_plan(n, 100, Resources(2, 2, memory))
    return compare(Prediction(plan, RATES, 2e-9), shape, *given)


def test_every_way_has_a_row() -> None:
    """Exact twice, then the ranks in order, each with all columns."""
    rows = compared(20_000, 16 * GB).table()
    names = [row[0] for row in rows]
    ranks = ["rank 500", "rank 1,000", "rank 2,000", "rank 5,000"]
    assert names == ["exact, stored", "exact, recomputed", *ranks]
    assert {len(row) for row in rows} == {len(COLUMNS)}


def test_ranks_above_the_samples_are_one_row() -> None:
    """All of them are as many as there are samples."""
    assert [row[0] for row in compared(800, 16 * GB).table()[2:]] == ["rank 500", "rank 800"]
    assert [row[0] for row in compared(800, 16 * GB, [9, 3]).table()[2:]] == ["rank 3", "rank 9"]


def test_exact_is_advised_for_moderate_samples() -> None:
    """It fits and is no slower by much than the highest rank."""
    found = compared(20_000, 16 * GB)
    exact = min(way.model.seconds for way in found.exact)
    assert exact < 5 * found.low[-1].model.seconds
    assert found.advice().startswith("take exact, ")
    assert "rank 5,000 (about" in found.advice()
    assert found.advice().endswith("would be an approximation")


def test_low_rank_is_advised_where_exact_is_much_slower() -> None:
    """A million samples: the ranks that fit are named, and why."""
    large = compared(10**6, 64 * GB, [500, 2000])
    assert large.advice().startswith("take low rank, rank 500 (about")
    assert "to rank 2,000 (about" in large.advice()
    assert ": exact, stored (at least" in large.advice()
    assert large.advice().endswith("it is an approximation, whose trace error is reported")


def test_samples_beyond_a_hundred_thousand_are_not_forgiven() -> None:
    """Of the same ratio of seconds, exact is taken at 100,000 samples and not at 100,001."""
    advice = {}
    for n in (100_000, 100_001):
        found = compared(n, 200 * GB, [1500])
        ratio = min(way.model.seconds for way in found.exact) / found.low[0].model.seconds
        assert 1 < ratio < 5
        advice[n] = found.advice().split()[1]
    assert advice == {100_000: "exact,", 100_001: "low"}


def test_exact_that_does_not_fit_leaves_low_rank() -> None:
    """Four million samples in 6 GB."""
    found = compared(4 * 10**6, 6 * GB)
    assert found.table()[1][1:3] == ["-", "-"]
    assert found.table()[1][-1] == "does not fit the memory"
    assert found.table()[2][-1] == "features recomputed"
    assert ": exact does not fit; it is an approximation" in found.advice()


def test_low_rank_that_does_not_fit_leaves_exact() -> None:
    """Second derivatives of rank 20,000 take 16 GB."""
    found = compared(30_000, 8 * GB, [20_000])
    assert found.table()[-1][-1] == "does not fit the memory"
    assert found.advice().endswith("a model): low rank does not fit")


def test_nothing_fits() -> None:
    """It is said, with the way out."""
    found = compared(10**6, 300_000_000)
    assert found.advice() == ("neither exact nor low rank fits: give more memory or fewer workers")


def test_a_full_disk_leaves_the_matrix_that_is_recomputed() -> None:
    """Tiles of 1.6 GB do not fit a disk of 1 GB; unknown disks hold anything."""
    full, unknown = (compared(20_000, 16 * GB, RANKS, free) for free in (GB, None))
    assert [row[-1] for row in full.table()[:2]] == ["does not fit the disk", "whole matrices"]
    assert "take exact, recomputed" in full.advice()
    assert unknown.table()[0][-1] == "whole matrices"


def test_a_grid_that_does_not_fit_is_told_apart() -> None:
    """Ten classes and three C have thirty matrices of second derivatives, one model ten."""
    found = compared(60_000, 5 * GB, [4000], shape=GridShape(10, 5, 3, 3))
    assert found.table()[-1][2] == "-"
    assert found.table()[-1][-1] == "features held, the grid does not fit"


def test_rounds_are_bounds_from_below() -> None:
    """Seconds of an exact fit in rounds are at least so many."""
    row = compared(40_000, 4 * GB).table()[1]
    assert row[1].startswith("> ")
    assert row[-1] == "in rounds"


def test_title_and_assumptions_say_what_is_counted() -> None:
    """Classes, the grid, and what the solvers are taken to do."""
    found = compared(20_000, 16 * GB, shape=GridShape(10, 5, 4, 2))
    assert found.title.endswith("SVMs of 10 classes, a grid of 5 folds x 4 C x 2 kernels")
    assert "2.5 steps a sample" in found.assumptions()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_samples_are_compared_too(n: int) -> None:
    """Also fewer than there are classes."""
    assert "take" in compared(n, 16 * GB, shape=GridShape(10, 5, 3, 3)).advice()
