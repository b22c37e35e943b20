"""Tasks of a fit on threads."""

from collections.abc import Iterator

import pytest

from dhsk.svm.runners import in_threads

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

    for taken, result in enumerate(in_threads(at_once)(abs, tasks())):
        assert result == taken
        assert made <= min(TASKS, taken + at_once + 1)
    assert taken == TASKS - 1
