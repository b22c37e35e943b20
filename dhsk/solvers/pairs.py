"""Solve the problems of pairs of classes: those that fit the memory whole, others in rounds."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.execution.tasks import Executor
from dhsk.solvers.ball import balls_about_means, smallest_ball
from dhsk.solvers.dual import Dual, Fit, certify, gradient, improve, unfinished
from dhsk.solvers.problems import Pair
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import largest_entry, matrix_bytes
from dhsk.solvers.sources import Source

SINGLE_TOLERANCE: Final = 1e-4
"""Violation down to which steps are made in single precision; below it they chase rounding."""

FINE_TOLERANCE: Final = 1e-10
"""Violation at which decisions of one problem put in two ways, such as by weights or by repeated
samples, agree to what scikit-learn asks: nine digits."""

MORE_STEPS: Final = 4
"""As many times more steps may go on to `FINE_TOLERANCE` as were made before. From 1e-3 twice to
three times as many were seen."""

FINE_SAMPLES: Final = 2048
"""Samples of a problem up to which steps go on. On pairs of about 4,000 MNIST images it took 8 and
25 % more processor time for the whole fit (s = 1, C = 100 and s = 0.7, C = 10)."""

BALL_TOLERANCE: Final = 1e-3
"""Of squared radii: bounds of the capacity are rounded up to whole numbers."""

_POLISHES: Final = 3
"""Rounding drifts the gradient during many steps: so often a solution goes on from a new one."""

_LARGEST_SINGLE: Final = 1e30
"""Entries of a matrix up to which steps in float32 do not overflow."""


@dataclass(frozen=True, eq=False)
class PairTask:
    """A pair of classes on a matrix, solved as one task.

    Attributes
    ----------
    key
        What tells it from other tasks.
    source
        The matrix.
    pair
        The problems.
    ball
        Whether the ball that holds the samples of the pair is wanted too.
    """

    key: Any
    source: Source
    pair: Pair
    ball: bool = False


Solved: TypeAlias = tuple[Any, list[Fit], float]
"""Key of a task, one fit for each of its columns, and the squared radius of the ball, or 0."""


def solve_pairs(
    tasks: Iterable[PairTask], tol: float, room: int, executor: Executor, *, fine: bool = False
) -> Iterator[Solved]:
    """Solve pairs of classes to the same tolerance, each as soon as it is solved.

    Parameters
    ----------
    tasks
        The problems. Those that do not fit are kept until all others are solved.
    tol
        Greatest KKT violation.
    room
        Bytes that the matrix of one task may take. A pair that does not fit is solved in rounds:
        the worst violators on a part of the matrix, then the gradients of all by one pass over it.
    executor
        Runs the tasks.
    fine
        Whether pairs that fit go on beyond the tolerance, see `solve_block`.

    Yields
    ------
    Solved
        A task's key, fits and squared radius.
    """
    large: dict[int, list[PairTask]] = {}

    def small() -> Iterator[tuple[PairTask, float, bool]]:
        for task in tasks:
            if matrix_bytes(len(task.pair.members), task.source.dtype) <= room:
                yield task, tol, fine
            else:
                large.setdefault(id(task.source), []).append(task)

    yield from executor.run(solve_whole, small())
    for own in large.values():
        yield from _solve_in_rounds(own, tol, room, executor)


def _solve_in_rounds(
    tasks: Sequence[PairTask], tol: float, room: int, executor: Executor
) -> Iterator[Solved]:
    """Solve pairs on one matrix, none of which fits."""
    source = tasks[0].source
    with_ball = [number for number, task in enumerate(tasks) if task.ball]
    radii2: dict[int, float] = {}
    if with_ball:
        balls = balls_about_means(source, [tasks[number].pair.members for number in with_ball])
        radii2 = {number: ball.radius2 for number, ball in zip(with_ball, balls, strict=True)}
    pairs = {number: task.pair for number, task in enumerate(tasks)}
    largest = largest_block(room, source.dtype)
    for number, fits in solve_in_rounds(source, pairs, tol, largest, executor):
        yield tasks[number].key, fits, radii2.get(number, 0.0)


def largest_block(room: int, dtype: "np.dtype[Any]") -> int:
    """Samples whose matrix takes at most some bytes, at least two."""
    return max(2, int(np.sqrt(room / dtype.itemsize)) // 64 * 64)


def solve_whole(task: PairTask, tol: float, fine: bool) -> Solved:
    """Solve a pair whose matrix fits the memory: the task that workers run.

    Parameters
    ----------
    task
        Which.
    tol
        Greatest KKT violation.
    fine
        Whether to go on beyond the tolerance, see `solve_block`.

    Returns
    -------
    Solved
        Its key, fits and squared radius.
    """
    K = task.source.block(task.pair.members)
    fits = solve_block(K, task.pair.dual, tol, fine=fine)
    return task.key, fits, smallest_ball(K, BALL_TOLERANCE).radius2 if task.ball else 0.0


def solve_block(K: NDArray[Any], dual: Dual, tol: float, *, fine: bool = False) -> list[Fit]:
    """Solve all columns on a matrix in memory.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    dual
        The problems.
    tol
        Greatest KKT violation.
    fine
        Go on to `FINE_TOLERANCE`, where `MORE_STEPS` are enough for that, for matrices in float64
        of up to `FINE_SAMPLES`. It is for a model that is used: in a grid, where the steps take
        most of the time, the tolerance is enough.

    Returns
    -------
    list of Fit
        One for each column.
    """
    b = np.zeros(dual.shape)
    f = np.broadcast_to(dual.sign, dual.shape).copy()
    # Steps wait for the memory: in half of the bytes they take 0.7 to 0.8 of the time. The rest of
    # the way, if rounding left any, goes on from an exact gradient in the matrix's own type.
    coarse = max(tol, SINGLE_TOLERANCE)
    entry = largest_entry(K)
    half = K.astype(np.float32, copy=False) if entry <= _LARGEST_SINGLE else K
    work = improve(half, dual, b, f, range(len(b)), coarse)
    del half
    f = gradient(K, dual, b)
    for _ in range(_POLISHES):
        left = unfinished(dual, b, f, tol, entry)
        if not left:
            break
        work += improve(K, dual, b, f, left, tol)
        f = gradient(K, dual, b)
    if fine and K.dtype == np.float64 and len(K) <= FINE_SAMPLES:
        for column in unfinished(dual, b, f, FINE_TOLERANCE, entry):
            most = int(MORE_STEPS * work[0, column])
            work += improve(K, dual, b, f, [column], FINE_TOLERANCE, most)
        f = gradient(K, dual, b)
    return certify(dual, b, f, work, tol)
