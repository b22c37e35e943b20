"""Several small problems in a task: one costs a client, its scheduler and a worker some ms."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

Problem = TypeVar("Problem")

GROUP_SECONDS: Final = 0.1
"""Seconds of a group, about: many times what a task costs, and little beside what all take.

A task costs 10 ms of processor time. Measured on 39,774 recipes of 20 classes: 1,000 tasks of a
pair each took as long as their problems."""

WHOLE_SECONDS, STEP_SECONDS, FIT_SECONDS = 6e-9, 1e-9, 1e-4
"""Seconds of an entry of the matrix of a problem, of the steps of each column for it, and of the
fit of a column to few samples."""

COORDINATES_SECONDS: Final = 3e-6
"""Seconds of a sample in a column that is solved by coordinates; measured on the same recipes."""


def in_groups(
    problems: Iterable[Problem], seconds_of: Callable[[Problem], float]
) -> Iterator[list[Problem]]:
    """Consecutive problems in groups of about `GROUP_SECONDS`, as they come."""
    group, spent = list[Problem](), 0.0
    for problem in problems:
        group.append(problem)
        spent += seconds_of(problem)
        if spent >= GROUP_SECONDS:
            yield group
            group, spent = [], 0.0
    if group:
        yield group


def seconds_on_matrix(n: int, columns: int) -> float:
    """About the seconds of a problem of n samples on its whole matrix."""
    return WHOLE_SECONDS * n**2 + columns * (FIT_SECONDS + STEP_SECONDS * n**2)


def seconds_by_coordinates(n: int, columns: int) -> float:
    """About the seconds of a problem of n samples by coordinates."""
    return COORDINATES_SECONDS * n * columns
