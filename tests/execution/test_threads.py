"""Tasks on threads of this process."""

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from dhsk.execution.threads import Threads

pytestmark = pytest.mark.threads

TASKS = 50


@pytest.mark.parametrize("at_once", [1, 2])
def test_tasks_are_asked_for_only_when_they_are_needed(at_once: int) -> None:
    """No more than one task besides those at a time is made before a result is taken."""
    made = 0

    def tasks() -> Iterator[tuple[int]]:
        nonlocal made
        for number in range(TASKS):
            made += 1
            yield (number,)

    for taken, result in enumerate(Threads(at_once).run(abs, tasks(), ordered=True)):
        assert result == taken
        assert made <= min(TASKS, taken + at_once + 1)
    assert taken == TASKS - 1


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_a_task_holds_is_let_go_of_after_it(at_once: int) -> None:
    """Of the first tasks too."""
    held: list[weakref.ref[np.ndarray]] = []

    def tasks() -> Iterator[tuple[np.ndarray]]:
        for _ in range(TASKS):
            values = np.zeros(8)
            held.append(weakref.ref(values))
            yield (values,)

    results = Threads(at_once).run(len, tasks())
    for taken, _ in enumerate(results):
        if taken > 10:
            break
    gc.collect()
    alive = [number for number, one in enumerate(held) if one() is not None]
    assert min(alive, default=TASKS) >= taken - at_once
    results.close()
