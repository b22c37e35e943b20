"""Blocks of predictions: enough for all cores, and within what is allowed."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance
from dhsk.models.predict import BlockNeed, plan_prediction
from dhsk.models.sources import RowsShape
from dhsk.samples import open_samples

MB = 10**6
DIM = 300
DENSE = RowsShape(30_000, DIM, 8)
SPARSE = RowsShape(30_000, DIM, 8, 300_000)


def need_of(n: int, fitted: RowsShape = DENSE, width: int = 1) -> BlockNeed:
    """A prediction of n samples, which take no memory here."""
    X: Any = np.broadcast_to(np.zeros(DIM), (n, DIM))
    return BlockNeed(open_samples(X), fitted, width)


def allowed(room: int, memory: int | None = None, cores: int = 2) -> Allowance:
    """So many bytes beside the 300 MB of the process."""
    return Allowance(memory, 300 * MB, room, cores)


@pytest.mark.parametrize(
    ("n", "rows"), [(1, 1), (128, 128), (129, 65), (2_000, 125), (8_000, 500), (10**6, 1_024)]
)
def test_few_samples_are_several_blocks_too(n: int, rows: int) -> None:
    """Even ones, on which several cores work, but not so small that they take longer."""
    assert need_of(n).rows == rows


def test_blocks_are_not_smaller_than_pays() -> None:
    """With few support vectors or features they have more samples, and with sparse ones."""
    assert need_of(2_000, RowsShape(1_500, DIM, 8)).rows == 250  # (24 + 300) 1,500 rows are 2^27
    assert need_of(2_000, RowsShape(1_500, DIM, 8, 15_000)).rows == 1_000
    assert need_of(2_000, RowsShape(5, DIM, 8)).rows == 1_000
    assert need_of(2_000, SPARSE).rows == 250
    assert need_of(2_000, RowsShape(0, DIM, 8)).rows == 1_000  # no support vectors at all


def test_blocks_are_smaller_with_very_many_classes() -> None:
    """The decisions of a block of 1,000 classes would take 4 GB."""
    need = need_of(10**5, width=499_500)
    assert need.rows * need.width <= 1 << 22


@pytest.mark.parametrize("fitted", [DENSE, SPARSE])
def test_neither_the_matrix_nor_all_decisions_are_in_memory(fitted: RowsShape) -> None:
    """200,000 samples, 30,000 support vectors, 190 pairs: 48 GB of kernel values, 304 MB of
    decisions, of which only the labels stay.
    """
    need = need_of(200_000, fitted, width=190)
    plan = plan_prediction(need, 8 * need.samples.shape[0], allowed(2_000 * MB))
    assert (plan.rows, plan.at_once) == (1_021, 2)
    assert plan.need.total - 300 * MB < 750 * MB
    small = plan_prediction(need, 8 * need.samples.shape[0], allowed(400 * MB, 700 * MB))
    assert small.rows < 1_021
    assert small.need.total <= 700 * MB


def test_size_of_blocks_depends_on_the_limit_alone() -> None:
    """Not on what the process holds, or on the number of cores: the values have the same bits."""
    need = need_of(10**5)
    plans = [
        plan_prediction(need, 0, allowed(room, 300 * MB, cores))
        for room, cores in ((250 * MB, 2), (150 * MB, 1), (240 * MB, 16))
    ]
    assert len({plan.rows for plan in plans}) == 1
    assert [plan.at_once for plan in plans] == [2, 1, 10]
    assert need.rows > plans[0].rows


def test_workers_each_have_the_model() -> None:
    """Their copies are counted."""
    need = need_of(10**5)
    here, there = (plan_prediction(need, 0, allowed(4_000 * MB), w) for w in (0, 3))
    assert there.need.total - here.need.total == 3 * 8 * 30_000 * DIM


def test_no_room_for_a_small_block_is_refused_with_the_numbers() -> None:
    """Before a sample is read."""
    match = (
        r"a prediction needs 34\d\.\d\d MiB \(process 343\.32 MiB, blocks of samples and kernel "
        r"values [\d.]+ kiB\) but 343\.\d\d MiB are allowed: allow more, or predict fewer samples "
        r"at a time"
    )
    with pytest.raises(BudgetError, match=match):
        plan_prediction(need_of(10**5), 0, allowed(60.3 * MB, 360.3 * MB))
    with pytest.raises(BudgetError, match=r"results 762.94 MiB"):
        plan_prediction(need_of(10**5), 8_000 * 10**5, allowed(500 * MB))


def test_long_samples_fill_a_block_sooner() -> None:
    """Blocks are of 16 MB as they are read, dense or sparse."""
    wide = open_samples(np.broadcast_to(np.zeros(40_000), (5_000, 40_000)))
    assert BlockNeed(wide, RowsShape(100, 40_000, 8), 1).rows == 52
    few = open_samples(csr_array(np.ones((600, DIM))))
    assert BlockNeed(few, SPARSE, 1).rows == 200
