"""What SVMs of low rank cost: the formulas by hand, their growth, and their limits."""

from dataclasses import replace
from typing import Any

import pytest

from dhsk.errors import InputError
from dhsk.execution.resources import Resources
from dhsk.gram.plan import make_plan
from dhsk.planning.exact_cost import GridShape
from dhsk.planning.low_rank_cost import MAKINGS, PASSES, LowRankCost, low_rank_cost
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import Line, Rates

GB = 10**9

RATES = Rates(Line(1e-9, 1e-10), Line(1e-9, 5e-11), Line(2e-8, 1e-8), 1e-8, 1e9, 2e9, 5e-10, 100.0,
              "made up")  # fmt: skip


def cost(rank: int = 1000, n: int = 10_000, memory: int = 64 * GB, **given: Any) -> LowRankCost:
    """Cost on four workers, of 100 features."""
    plan = {k: given.pop(k) for k in ("product_dtype", "nnz") if k in given}
    prediction = Prediction(make_plan(n, 100, Resources(4, 4, memory), **plan), RATES, 2e-9)
    return low_rank_cost(prediction, GridShape(**given), rank)


READING = 10_000 * 800 * 1e-9 / 4
"""Four threads read all samples at 1 ns a byte."""


def test_landmarks_by_hand() -> None:
    """Four rounds: reading, N k kernel values at twice GEMM's time, N k^2/2 multiply-adds."""
    found = cost()
    assert found.rounds == 4
    values = 10**7 * (2 * (1e-9 + 100 * 1e-10) + 2e-9) / 4
    assert found.landmarks == pytest.approx(4 * READING + values + 2 * 5e9 * 1e-10 / 4)
    assert [cost(k).rounds for k in (1, 128, 129, 1024, 8000)] == [1, 1, 2, 4, 4]


def test_landmarks_without_their_factor() -> None:
    """Round r of 4 computes r blocks of kernel values, where one is new: 2.5 times the values."""
    short = cost(memory=cost().memory - 1)
    values = 10**7 * (2 * (1e-9 + 100 * 1e-10) + 2e-9) / 4
    assert not short.held
    assert short.landmarks - cost().landmarks == pytest.approx(1.5 * values)


def test_solver_by_hand() -> None:
    """Ten columns: products with coefficients, second derivatives, and the reading of features."""
    columns = 10 * 70 * 2 * 1e-10
    squares = 2 * 10 * 0.125 * 500 * 1e-10
    reading = (50 + 2) * 8 * 0.05e-9
    expected = 1.2 * 10**7 * (columns + squares + reading) / 4
    assert cost(classes=10).solving == pytest.approx(expected)


def test_features_that_are_not_held_are_computed_in_every_pass() -> None:
    """Each of the 52 passes of one model computes N k kernel values."""
    short = cost(memory=cost().memory - 1)
    each = READING + 10**7 * (1e-9 + 100 * 1e-10 + 2e-9) / 4
    assert short.solving - cost().solving == pytest.approx((PASSES[0] + MAKINGS[0]) * each)


def test_memory_by_hand() -> None:
    """Processes, tasks, landmarks, second derivatives, coefficients, labels; then the features."""
    found = cost(classes=10, folds=5)
    idle = 265_000_000 + 4 * 145_000_000
    tasks = 4 * (1250 * 800 + 3 * 1250 * 8000)  # an eighth of the samples in a span
    landmarks = 5 * 1000 * 800
    squares = (10 + 4) * 1001**2 * 8
    coefficients = 8 * 8 * 1001 * 50
    labels = 8 * 10_000 * 6
    assert found.least_bytes == idle + tasks + landmarks + squares + coefficients + labels
    assert found.memory == found.least_bytes + 8 * 10**7
    assert found.disk == 10_000 * 800


def test_held_where_it_fits_to_the_byte() -> None:
    """One byte less, and the features are computed; less than the rest, and nothing fits."""
    ample = cost()
    assert cost(memory=ample.memory).held
    short = cost(memory=ample.memory - 1)
    assert (short.held, short.fits_memory) == (False, True)
    assert short.memory == ample.least_bytes
    assert short.seconds > ample.seconds
    assert not cost(memory=ample.least_bytes - 1).fits_memory


def test_two_classes_are_one_column() -> None:
    """One against the other, in every fold and for every C."""
    assert cost().columns == 1
    assert cost(folds=5, chain=3).columns == 15
    assert cost(classes=3, folds=5, chain=3).columns == 45


@pytest.mark.parametrize(
    "larger", [{"rank": 1001}, {"n": 10_001}, {"classes": 3}, {"folds": 2}, {"chain": 2},
               {"kernels": 2}],
)  # fmt: skip
def test_more_costs_more(larger: dict[str, int]) -> None:
    """Seconds grow with all that there is to do, and memory with all but kernels."""
    assert cost(**larger).seconds > cost().seconds
    assert cost(**larger).memory >= cost().memory
    assert cost(**larger).memory > cost().memory or "kernels" in larger


def test_faster_threads_and_more_of_them_take_less() -> None:
    """Rates and workers are used."""
    plan = make_plan(10_000, 100, Resources(8, 8, 64 * GB))
    found = low_rank_cost(Prediction(plan, RATES, 2e-9), GridShape(), 1000)
    assert found.landmarks == pytest.approx(cost().landmarks / 2)
    assert found.solving == pytest.approx(cost().solving / 2)
    slow = replace(RATES, float64=Line(2e-9, 2e-10))
    found = low_rank_cost(replace(cost().prediction, rates=slow), GridShape(), 1000)
    assert found.seconds > cost().seconds


def test_single_precision_halves_the_features() -> None:
    """And takes less time, here half of it for each multiply-add."""
    single = cost(product_dtype="float32")
    assert single.feature_bytes == cost().feature_bytes // 2
    assert single.landmarks < cost().landmarks
    assert single.solving < cost().solving


def test_sparse_samples_take_the_sparse_path() -> None:
    """A value then costs the shared features."""
    found = cost(nnz=10_000 * 1)
    reading = 10_000 * 24 * 1e-9 / 4
    values = 10**7 * (2 * (2e-8 + 0.01 * 1e-8) + 2e-9) / 4
    assert found.prediction.plan.sparse_path
    assert found.landmarks == pytest.approx(4 * reading + values + 2 * 5e9 * 1e-10 / 4)


def test_more_landmarks_than_samples_are_all_samples() -> None:
    """The cost is that of N."""
    assert cost(20_000) == cost(10_000)
    assert cost(20_000).rank == 10_000


@pytest.mark.parametrize("rank", [0, -3])
def test_no_landmarks_are_refused(rank: int) -> None:
    """The number is named."""
    with pytest.raises(InputError, match=f"rank must be at least 1, got {rank}"):
        cost(rank)
