"""Several small problems in a task: one costs a client and its scheduler 6 ms of a core."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

Problem = TypeVar("Problem")

GROUP_SECONDS: Final = 0.1
"""Seconds of a group, about. Measured on five tf-idf folds of 39,774 recipes of 20 classes: 11 s,
and 14 with a task for each pair."""

STEP_SECONDS: Final = 1e-9
"""Seconds for each squared sample of a fit: its steps grow like the samples, and each goes over a
column."""

BLOCK_SECONDS: Final = 6e-9
"""Seconds for each entry of the matrix of a pair: it is read, evaluated and checked."""

SMALL_SECONDS: Final = 1e-4
"""Seconds of a fit to few samples, roughly."""

COORDINATES_SECONDS: Final = 3e-6
"""Seconds of a sample in a column that is solved by coordinates, by a profile of the recipes."""


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
    return BLOCK_SECONDS * n**2 + columns * (SMALL_SECONDS + STEP_SECONDS * n**2)


def seconds_by_coordinates(n: int, columns: int) -> float:
    """About the seconds of a problem of n samples by coordinates."""
    return COORDINATES_SECONDS * n * columns
