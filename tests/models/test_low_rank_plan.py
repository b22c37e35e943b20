"""Memory of low-rank fits: features first, unless the solver would have too little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dhsk
from dhsk.errors import BudgetError
from dhsk.execution.memory import Allowance
from dhsk.models.fit_plan import PROCESS_BYTES
from dhsk.models.low_rank_plan import plan_low_rank, solver_bytes, usual_dtype
from dhsk.models.sources import RowsShape
from dhsk.units import parse_bytes

GB, MB = 10**9, 10**6

HELD = 3 * 10**8

ROWS = RowsShape(100_000, 50, 8)


def allowed(memory: int) -> Allowance:
    """Two threads of a process that holds little."""
    return Allowance(memory, HELD, max(0, memory - HELD), 2)


def test_parts_by_hand() -> None:
    """Ten classes: a matrix for each, four more while each is made, a curvature for each sample."""
    plan = plan_low_rank(ROWS, 500, 10, allowed(64 * GB))
    assert plan.way == "features in memory"
    assert plan.room == solver_bytes(100_000, 500, 8, 10) == 10 * (5 * 501**2 + 100_000) * 8
    parts = plan.need.parts
    assert parts["features"] == 100_000 * 500 * 8
    assert parts["samples"] == 100_000 * 50 * 8
    assert parts["process"] == HELD + PROCESS_BYTES
    assert parts["second derivatives"] == plan.room
    assert plan.need.total == sum(parts.values())


@given(
    memory=st.integers(GB // 2, 8 * GB),
    m=st.integers(1, 3000),
    keys=st.integers(1, 40),
    folds=st.integers(1, 5),
)
def test_never_above_what_is_allowed(memory: int, m: int, keys: int, folds: int) -> None:
    """Whatever is asked for: within the memory, the solver's part included, or refused."""
    try:
        plan = plan_low_rank(ROWS, m, keys, allowed(memory), folds)
    except BudgetError:
        return
    assert plan.need.total <= memory
    own = memory - HELD - PROCESS_BYTES
    assert plan.room >= min(solver_bytes(100_000, m, 8, keys, 0), own // 4)


@pytest.mark.parametrize("m", [1, 300, 3000])
def test_what_is_refused_says_how_much_would_do(m: int) -> None:
    """To the digits that are said: so much is enough, and less is not."""
    with pytest.raises(BudgetError, match=f"a fit by {m:,} landmarks? of 100,000 samples") as error:
        plan_low_rank(ROWS, m, 10, allowed(HELD + MB))
    words = str(error.value).split(" needs ")[1].split(" (")[0]
    least = parse_bytes(words.replace(" ", ""))
    assert plan_low_rank(ROWS, m, 10, allowed(int(1.01 * least))).need.total > 0.98 * least
    with pytest.raises(BudgetError):
        plan_low_rank(ROWS, m, 10, allowed(int(0.99 * least)))


def test_features_leave_the_solver_its_part() -> None:
    """A byte less than both take is a thread less, and a byte less again no features."""
    ample = plan_low_rank(ROWS, 500, 10, allowed(64 * GB)).need.total
    assert plan_low_rank(ROWS, 500, 10, allowed(ample)).need.total == ample
    slow = plan_low_rank(ROWS, 500, 10, allowed(ample - 1))
    assert (slow.way, slow.at_once) == ("features in memory", 1)
    short = plan_low_rank(ROWS, 500, 10, allowed(slow.need.total - 1))
    assert short.way == "samples in memory"
    assert short.room == solver_bytes(100_000, 500, 8, 10, folds=0)


def test_folds_have_their_curvatures() -> None:
    """Second derivatives are shared by folds, curvatures are not."""
    one, five = (plan_low_rank(ROWS, 500, 3, allowed(64 * GB), folds).room for folds in (1, 5))
    assert five - one == 4 * 3 * 100_000 * 8


def test_many_features_are_single_precision() -> None:
    """From 2^22 on, of kernels that keep their digits."""
    heat, gaussian = dhsk.HeatKernel.at_scale(50, 1.0), dhsk.GaussianKernel(1.0)
    assert [usual_dtype(heat, n, 1024) for n in (4096, 4097)] == ["float64", "float32"]
    assert usual_dtype(gaussian, 10**6, 1024) == "float64"
    assert usual_dtype(heat, 100, 10**6) == "float64"


@pytest.mark.parametrize("nnz", [None, 5000])
def test_a_shape_is_that_of_its_rows(nnz: int | None) -> None:
    """Bytes that mapped rows take, dense and sparse."""
    dense = np.ones((100, 50))
    assert RowsShape.of(dense).nbytes == dense.nbytes
    shape = RowsShape(100, 50, 8, nnz)
    assert shape.mapped_bytes == (40_000 if nnz is None else 2 * (12 * 5000 + 400))
    assert shape.nbytes == (40_000 if nnz is None else 12 * 5000 + 400)
