"""Methods of many passes: what tasks and the method need is not given to tiles."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.run import Run
from dhsk.gram.spectra import _of_tasks, many_products

N, WIDTH, METHOD = 1200, 100, 10**6


@pytest.mark.parametrize("tiles", [10**6, 3 * 10**6])
def test_held_tiles_leave_room_for_tasks_and_the_method(
    counts: Any, monkeypatch: pytest.MonkeyPatch, tiles: int
) -> None:
    """The peak of passes is within what is left to tiles and tasks, and tiles are held."""
    G = dhsk.compute_gram(counts(N, 12), dhsk.HeatKernel(12, 0.1), tile=100)
    V, need = np.ones((N, WIDTH)), MemoryNeed("a method", {"vectors": METHOD})
    tasks = sum(_of_tasks(G, WIDTH, here=True).values())
    monkeypatch.setattr(Run, "room", METHOD + tasks + tiles)
    tracemalloc.start()
    try:
        with many_products(G, need, WIDTH, Run()) as (_, products):
            for _ in range(2):
                products(V)
            held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tiles / 2 < held
    assert peak < 1.05 * (tasks + tiles)
