"""Exact fits in memory stay within what they were allowed, what evaluates their matrix included."""

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.models.sources import RowsShape, RowsSource, edge_for, evaluation_bytes

KERNEL = dhsk.HeatKernel.at_scale(2_000, 0.8)

KINDS = ("dense", "even", "uneven", "sorted")


def rows_of(kind: str, n: int = 1_200) -> Any:
    """Unit rows; sparse ones with as many entries each, or every fiftieth with 50 times as many."""
    rng = np.random.default_rng(0)
    if kind == "dense":
        return dhsk.hyperspherical_map(rng.random((n, 2_000)))
    lengths = np.full(n, 20)
    if kind != "even":
        lengths[np.arange(n - n // 50, n) if kind == "sorted" else np.arange(0, n, 50)] *= 50
    columns = (2_000 * rng.random(lengths.sum()) ** 3).astype(int)
    rows = np.repeat(np.arange(n), lengths)
    counts = csr_array((np.ones(columns.size), (rows, columns)), shape=(n, 2_000))
    return dhsk.hyperspherical_map(counts)


def traced_peak(function: Any) -> int:
    """Most bytes that a call allocates at a time, as numpy and scipy tell."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("edge", [256, 1024])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_block_takes_is_known_before(kind: str, edge: int) -> None:
    """Of the longest rows, wherever they are."""
    rows = rows_of(kind)
    n = rows.shape[0]
    source = RowsSource(rows, KERNEL, edge=edge)
    source.block(np.arange(2))  # what is loaded once
    copy = rows.nbytes if kind == "dense" else rows.data.nbytes + rows.indices.nbytes
    beside = traced_peak(lambda: source.block(np.arange(n))) - 8 * n * 1_216 - copy
    assert beside <= evaluation_bytes(RowsShape.of(rows), edge)


def test_blocks_are_smaller_where_memory_is_short() -> None:
    """So that most of it is left for the matrix."""
    rows = RowsShape.of(rows_of("even", 3_000))
    edges = [edge_for(rows, allowed) for allowed in (1 << 20, 300 << 20, 1 << 40, None)]
    assert edges == [256, 512, 1024, 1024]


@pytest.mark.slow
@pytest.mark.parametrize("room", [110_000_000, 140_000_000])
@pytest.mark.parametrize("kind", KINDS)
def test_fits_stay_within_what_they_were_allowed(
    kind: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rounds: the matrix of 3,200 samples takes 123 MB."""
    X = rows_of(kind, 3_200)
    y = np.arange(3_200) % 2
    room += 3 * X.nbytes if kind == "dense" else 0  # mapped, and those of a pair twice
    options = {"C": 1.0, "kernel": KERNEL, "sphere_map": "identity", "tol": 0.1}
    dhsk.HeatSVC(**options).fit(X[:100], y[:100])  # what is loaded once
    before = 300_000_000  # as without the tests before: blocks grow with the memory that is allowed

    def memory_info(_: psutil.Process) -> SimpleNamespace:
        """Memory of this process as it would be if earlier tests gave nothing back meanwhile."""
        return SimpleNamespace(rss=before + tracemalloc.get_traced_memory()[0])

    monkeypatch.setattr(psutil.Process, "memory_info", memory_info)
    model = dhsk.HeatSVC(**options, memory=before + room)
    assert traced_peak(lambda: model.fit(X, y)) <= room
