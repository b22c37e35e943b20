"""What exact SVMs cost: the formulas by hand, and the limits of memory."""

from typing import Any

import pytest

from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.planning.exact_cost import ROUND_PASSES, ExactCost, GridShape, exact_cost
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import Line, Rates

GB = 10**9

RATES = Rates(Line(1e-9, 1e-10), Line(1e-9, 5e-11), Line(2e-8, 1e-8), 1e-8, 1e9, 2e9, 5e-10, 100.0,
              "made up")  # fmt: skip


def cost(
    n: int = 10_000, memory: int = 64 * GB, *, stored: bool = False, **shape: Any
) -> ExactCost:
    """Cost on four workers, of 100 features."""
    plan = make_plan(n, 100, Resources(4, 4, memory))
    return exact_cost(Prediction(plan, RATES, 2e-9), GridShape(**shape), stored=stored)


def test_steps_are_those_of_all_fits() -> None:
    """2.5 steps a sample, each 0.85 ns a sample: of two classes on one thread, of ten on four."""
    assert cost().steps == pytest.approx(2.5 * 10_000 * 0.85e-9 * 10_000)
    assert cost(classes=10).steps == pytest.approx(45 * 2.5 * 2000 * 0.85e-9 * 2000 / 4)
    many = cost(classes=10, folds=5, chain=3, kernels=2)
    assert many.steps == pytest.approx(2 * 15 * cost(classes=10).steps)


def test_whole_matrices_take_a_pass_a_kernel() -> None:
    """The seconds are those of the plan, and the solver's."""
    recomputed, stored = cost(kernels=3), cost(kernels=3, stored=True)
    assert recomputed.whole
    p = recomputed.prediction
    assert recomputed.seconds == pytest.approx(p.recomputed(3) + recomputed.steps)
    assert stored.seconds == pytest.approx(p.stored(3) + stored.steps)


def test_rounds_take_passes() -> None:
    """A matrix that does not fit is read or computed again and again."""
    rounds = cost(40_000, 4 * GB)
    assert rounds.fits_memory
    assert not rounds.whole
    assert rounds.passes == ROUND_PASSES
    assert rounds.memory <= 4 * GB
    p = rounds.prediction
    assert rounds.seconds == pytest.approx(p.recomputed(ROUND_PASSES) + rounds.steps)


def test_disk_holds_tiles_only_if_they_are_stored() -> None:
    """Mapped samples always, the triangle of tiles on demand."""
    assert cost().disk == 10_000 * 800
    plan = cost().prediction.plan
    assert cost(stored=True).disk == 10_000 * 800 + plan.tile_bytes


def test_what_does_not_fit_says_how_much_would() -> None:
    """In the memory that is named the fits are possible, in a hundred bytes less they are not."""
    short = cost(memory=GB, n=200_000, folds=5, chain=3)
    assert not short.fits_memory
    assert short.memory > GB
    assert cost(memory=short.memory, n=200_000, folds=5, chain=3).fits_memory
    assert not cost(memory=short.memory - 100, n=200_000, folds=5, chain=3).fits_memory
