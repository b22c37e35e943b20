"""Memory of fits by arithmetic: never above what is allowed, and whole where that is possible."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dhsk
from dhsk.execution.memory import Share, share_memory
from dhsk.execution.resources import TASKS_PER_THREAD, Resources
from dhsk.models.fit_plan import (
    FIT_BASE_BYTES,
    KEPT_BYTES,
    SMALLEST_PART,
    FitCounts,
    plan_fits,
)
from dhsk.planning.training import equal_classes
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.smo import matrix_bytes
from dhsk.units import parse_bytes

GB = 1_000_000_000

FLOAT64 = np.dtype(np.float64)


def plan(
    n: int = 2000,
    classes: int = 2,
    folds: int = 5,
    values: int = 3,
    memory: float = 8 * GB,
    threads: int = 4,
    workers: int = 0,
    dtype: Any = FLOAT64,
    kernels: int = 1,
) -> Share:
    """Plan of classes of equal size."""
    counts = FitCounts.of(np.arange(n) % classes, folds, values, "ovo")
    resources = Resources(workers, threads, int(memory))
    return plan_fits(counts, np.dtype(dtype), kernels, resources)


def fits_and_tasks(found: Share) -> list[int]:
    """Numbers of both, as people read them."""
    return [int(number) for number in re.findall(r"\d+", dict(found.table)["fits"])[:2]]


def largest(n: int, classes: int) -> int:
    """Samples of the largest pair."""
    counts = np.sort(np.bincount(np.arange(n) % classes))
    return int(counts[-2:].sum())


@given(
    n=st.integers(4, 4000),
    classes=st.integers(2, 4),
    folds=st.integers(1, 4),
    values=st.integers(1, 4),
    memory=st.floats(1e8, 3e9),
    threads=st.integers(1, 16),
    workers=st.integers(0, 4),
    kernels=st.integers(1, 3),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_never_above_the_memory(n: int, classes: int, dtype: Any, **given: Any) -> None:
    """Whatever is asked for: within it, with room for a part worth solving, or refused."""
    try:
        found = plan(n, classes, dtype=dtype, **given)
    except dhsk.BudgetError:
        return
    block = matrix_bytes(largest(n, classes), np.dtype(dtype))
    assert found.need.total <= given["memory"]
    assert 1 <= found.at_once <= max(1, given["threads"])
    assert found.room <= block
    assert found.room >= min(block, matrix_bytes(SMALLEST_PART, np.dtype(dtype)))
    assert found.whole == (found.room >= block)
    problems = given["kernels"] * classes * (classes - 1) // 2
    assert fits_and_tasks(found) == [
        problems * given["folds"] * given["values"],
        problems * (given["folds"] if found.split_folds else 1),
    ]
    assert found.at_once <= problems * given["folds"]
    assert found.at_once <= found.window <= TASKS_PER_THREAD * given["threads"]
    # What is in the peak: all tasks with their matrices, and the processes.
    matrices = found.shared or (found.blocks or found.at_once) * found.room
    idle = Resources(given["workers"], given["threads"], 0).idle_bytes
    used = matrices + found.at_once * FIT_BASE_BYTES + idle
    assert found.need.total > used


@pytest.mark.parametrize("way", ["ovo", "ovr"])
@pytest.mark.parametrize(("n", "classes"), [(2000, 2), (2000, 4), (60, 3)])
def test_classes_of_equal_size_are_counted_without_samples(n: int, classes: int, way: Any) -> None:
    """What a plan on paper counts is what there is."""
    pairs = make_pairs(np.arange(n) % classes, np.ones((5, n)), [1.0, 2.0, 3.0], way)
    counts = FitCounts.of_classes(equal_classes(n, classes), 5, 3, way)
    assert counts == FitCounts.of(np.arange(n) % classes, 5, 3, way)
    assert counts.pairs == len(pairs)
    assert (counts.columns, counts.folds) == (15, 5)
    sizes = [len(pair.members) for pair in pairs]
    assert (counts.most, counts.least) == (max(sizes), min(sizes))
    assert counts.box_bytes == sum(pair.dual.boxes.nbytes for pair in pairs)


def test_threads_are_used_where_memory_is_ample() -> None:
    """Also by problems that are smaller than the smallest part worth solving."""
    for n, classes in ((40, 2), (300, 10), (2000, 2)):
        found = plan(n, classes, memory=8 * GB)
        assert found.whole
        assert found.at_once == 4
        assert found.window == TASKS_PER_THREAD * 4


def test_fewer_at_a_time_where_each_then_has_its_whole_matrix() -> None:
    """Rounds over parts take passes; waiting takes none."""
    block = matrix_bytes(16_000, FLOAT64)
    found = plan(16_000, folds=2, values=1, memory=2.7 * block)
    assert (found.whole, found.at_once) == (True, 2)
    assert found.window == 2  # memory bounds the tasks in flight
    found = plan(16_000, folds=2, values=1, memory=0.9 * block)
    assert (found.whole, found.at_once) == (False, 1)
    assert found.room > 0.4 * block


def test_threads_share_memory_where_pairs_differ_in_size() -> None:
    """Small pairs are solved beside a large one; of workers each has its own memory."""
    counts = FitCounts.of_classes([6000, 5000, *[500] * 8], folds=5, values_of_C=3)
    block = matrix_bytes(11_000, FLOAT64)
    memory = int(1.6 * block) + GB
    found = plan_fits(counts, FLOAT64, 3, Resources(0, 4, memory))
    assert (found.whole, found.room) == (True, block)
    assert (found.at_once, found.window) == (4, 4)
    assert block + matrix_bytes(1_000, FLOAT64) <= found.shared < 2 * block
    assert found.need.total <= memory
    equal = FitCounts.of_classes([5500, 5500], folds=5, values_of_C=3)
    for other, resources in ((equal, Resources(0, 4, memory)), (counts, Resources(1, 4, memory))):
        assert plan_fits(other, FLOAT64, 3, resources).shared == 0


@pytest.mark.parametrize(("sizes", "way"), [([6000, 5000], "ovo"), ([4000, 4000, 3000], "ovr")])
def test_threads_share_the_matrix_of_all_samples(sizes: list[int], way: Any) -> None:
    """All of them work where one matrix fits, and a second one is planned where two do."""
    counts = FitCounts.of_classes(sizes, 5, 3, way)
    block = matrix_bytes(11_000, FLOAT64)
    for times, blocks in ((1.3, 1), (2.4, 2), (20.0, 2)):
        found = plan_fits(counts, FLOAT64, 3, Resources(0, 4, int(times * block) + GB))
        assert (found.whole, found.at_once, found.blocks) == (True, 4, blocks)
        assert found.need.parts["matrices"] == blocks * block
        assert found.need.total <= times * block + GB
    assert plan_fits(counts, FLOAT64, 3, Resources(2, 4, 64 * GB)).blocks == 0  # of each worker


def test_problems_of_two_of_three_classes_share_no_matrix() -> None:
    """Also where all pairs have as many samples."""
    counts = FitCounts.of_classes([4000] * 3, folds=5, values_of_C=3)
    assert not counts.one_matrix
    assert plan_fits(counts, FLOAT64, 3, Resources(0, 4, 64 * GB)).blocks == 0


def test_folds_are_tasks_of_their_own_where_there_are_few() -> None:
    """45 pairs of one kernel are split, those of two are not."""
    assert plan(classes=2).split_folds
    assert fits_and_tasks(plan(classes=2, threads=1))[1] == 5
    assert plan(classes=10).split_folds
    assert fits_and_tasks(plan(classes=10))[1] == 225
    assert not plan(classes=10, kernels=2).split_folds
    assert fits_and_tasks(plan(classes=10, kernels=2))[1] == 90


def test_refusal_has_the_numbers_that_help() -> None:
    """With the memory it asks for the plan is made, with less it is not."""
    with pytest.raises(
        dhsk.BudgetError, match=r"exact fits on 2000 samples need at least .* but .* are allowed"
    ) as caught:
        plan(memory=0.2 * GB)
    assert "\n" not in str(caught.value)
    low, high = 0.2 * GB, 8.0 * GB
    while high - low > 1000:
        middle = (low + high) / 2
        try:
            plan(memory=middle)
            high = middle
        except dhsk.BudgetError:
            low = middle
    (needed,) = re.findall(r"at least ([\d.]+ MiB)", str(caught.value))
    assert parse_bytes(needed) == pytest.approx(high, rel=0.001)


def test_table_is_for_people() -> None:
    """It says how, and with how much."""
    rows = dict(plan().table)
    assert rows["fits"] == "15 SVMs in 5 tasks, 4 at a time, each on its whole matrix"
    assert "7.45 GiB allowed" in rows["memory of the fits"]
    rows = dict(plan(16_000, folds=2, values=1, memory=1.5 * GB).table)
    assert rows["fits"].endswith("in rounds over parts of the matrix")


@pytest.mark.parametrize("workers", [0, 3])
def test_working_sets_need_no_memory_for_passes(workers: int) -> None:
    """A million samples fit in 4 GB: all pairs of a kernel share the memory, and none is split."""
    counts = FitCounts.of_classes([500_000] * 2, folds=3, values_of_C=3)
    resources = Resources(workers, 4, 4 * GB)
    with pytest.raises(dhsk.BudgetError):
        plan_fits(counts, FLOAT64, 5, resources)
    found = plan_fits(counts, FLOAT64, 5, resources, "working sets")
    assert found.way == "working sets"
    assert not found.split_folds
    assert not found.held
    assert found.at_once == 1
    assert found.need.total <= 4 * GB
    assert found.need.total >= 4 * counts.box_bytes + found.room  # bounds, coefficients, gradients
    (fits, *_) = found.table
    assert fits[1].endswith("on working sets, from kernel values that are computed on demand")


@given(memory=st.integers(1, 10**12), matrix=st.integers(0, 10**12), threads=st.integers(1, 64))
def test_shares_add_up(memory: int, matrix: int, threads: int) -> None:
    """As many at a time as have their matrix, at least one, at most the threads."""
    at_once, each = share_memory(memory, matrix, threads)
    assert 1 <= at_once <= threads
    assert at_once * each <= memory
    assert at_once == 1 or each >= matrix
    assert at_once == threads or (at_once + 1) * matrix > memory


def test_workers_keep_what_they_loaded_for_fits() -> None:
    """Those that no fit runs on at the moment are larger than idle ones all the same."""
    found = plan(16_000, folds=2, values=1, memory=2.5 * GB, workers=4)
    assert found.at_once == 1
    used = Resources(4, 4, 0).idle_bytes + found.room + FIT_BASE_BYTES + 3 * KEPT_BYTES
    assert used < found.need.total <= 2.5 * GB


@pytest.mark.parametrize(("n", "classes"), [(3000, 2), (3000, 6), (3000, 12)])
def test_the_division_into_tasks_is_that_of_any_number_of_workers(n: int, classes: int) -> None:
    """Where memory is ample: fits have the same names in checkpoints, and the same certificates."""
    plans = [plan(n, classes, memory=64 * GB, threads=t, workers=t) for t in (1, 2, 4, 16)]
    assert len({(fits_and_tasks(p)[1], p.split_folds, p.whole, p.room) for p in plans}) == 1
