"""Problems of pairs of classes, solved on whole matrices, on working sets, or in rounds."""

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.execution.tasks import Executor
from dhsk.solvers.ball import balls_about_means, smallest_ball
from dhsk.solvers.block_steps import SETS_PART, BlockSteps, entries_of_pair, solve_pair
from dhsk.solvers.decomposition import Decomposition, Round, RoundWatch
from dhsk.solvers.dual import Dual, Fit, certify, gradient, improve, unfinished
from dhsk.solvers.problems import Pair
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import largest_entry, matrix_bytes
from dhsk.solvers.sources import Source
from dhsk.solvers.working_set import SUPPORT_SHARE

SINGLE_TOLERANCE: Final = 1e-4
"""Violation down to which steps are made in float32; below it they follow rounding errors."""

FINE_TOLERANCE: Final = 1e-10
"""Violation at which decision values of equivalent problems, such as with weights or with repeated
samples, agree to the nine digits that scikit-learn's checks ask for."""

MORE_STEPS: Final = 4
"""Limit of the steps to `FINE_TOLERANCE`, as a multiple of those before. Measured: from 1e-3 they
take two to three times as many."""

FINE_SAMPLES: Final = 2048
"""Most samples of a problem that is solved to `FINE_TOLERANCE`. Measured on pairs of about 4,000
MNIST images, it took 8 and 25 % more processor time for the whole fit (s = 1, C = 100 and s = 0.7,
C = 10)."""

BALL_TOLERANCE: Final = 1e-3
"""Tolerance of squared radii: bounds on the capacity are rounded up to whole numbers."""

STEPPED_COLUMNS: Final = 3
"""Most problems of all pairs of a matrix that are solved in steps on blocks where matrices fit in
memory: more share what working sets and whole matrices compute. Measured: the 45 pairs of 60,000
images of MNIST took 2.5 times as long in steps, with a tenth of the labels drawn at random 5.5."""

STEPS_SHARE: Final = 0.05
"""As `SUPPORT_SHARE` of working sets, where steps on blocks are the other way."""

_POLISHES: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""

_LARGEST_SINGLE: Final = 1e30
"""Largest entry of a matrix for which steps in float32 do not overflow."""


@dataclass(frozen=True, eq=False)
class PairTask:
    """A pair of classes on a matrix, solved as one task."""

    key: Any
    """Identifies the task."""
    source: Source
    pair: Pair
    ball: bool = False
    """Whether to compute the smallest ball that contains the samples of the pair."""

    def fits(self, room: int) -> bool:
        """Whether its whole matrix takes at most room bytes."""
        return matrix_bytes(len(self.pair.members), self.source.dtype) <= room

    @property
    def columns(self) -> int:
        """Number of problems."""
        return self.pair.dual.shape[0]

    def way(self, room: int) -> "Way":
        """How it is solved, see `way_of`."""
        return way_of(len(self.pair.members), self.source, room, ball=self.ball)


Way: TypeAlias = Literal["whole matrices", "working sets", "rounds"]
"""How the problems of a pair are solved, see `way_of`."""

Solved: TypeAlias = tuple[Any, list[Fit], float]
"""Key of a task, one fit for each of its columns, and the squared radius of the ball, or 0."""


def way_of(n: int, source: Source, room: int, *, ball: bool = False) -> Way:
    """How the problems of n samples are solved, where their matrix may take `room` bytes.

    A matrix that is small, or is stored, or whose ball is wanted, is read as a whole for any number
    of support vectors, if it fits. Others of computed values have working sets first.
    """
    on_demand = source.computes and not ball
    fits = matrix_bytes(n, source.dtype) <= room
    if fits and (not on_demand or n <= FINE_SAMPLES):
        return "whole matrices"
    return "working sets" if on_demand else "rounds"


def solve_pairs(
    tasks: Iterable[PairTask],
    tol: float,
    room: int,
    executor: Executor,
    *,
    fine: bool = False,
    watch: RoundWatch | None = None,
    found: Mapping[Any, Solved] | None = None,
) -> Iterator[Solved]:
    """Solve pairs of classes to a KKT violation of tol, in order of completion.

    Each is solved in the way of `way_of`. What working sets leave, see
    `dhsk.solvers.decomposition`, is solved in steps on blocks if the source has an approximation
    and the columns are few, or the matrix takes more than room bytes; others on the whole matrix,
    or in rounds. Of these, what an earlier run has `found` is not solved again. The option `fine`
    is for `solve_block`.
    """
    large: dict[int, list[PairTask]] = {}
    known, watch = found or {}, watch or RoundWatch()

    def whole(some: Iterable[PairTask]) -> Iterator[Solved]:
        return executor.run(solve_whole, ((task, tol, fine) for task in some))

    def small() -> Iterator[PairTask]:
        for task in tasks:
            if task.way(room) == "whole matrices":
                yield task
            else:
                large.setdefault(id(task.source), []).append(task)

    yield from whole(small())
    for own in large.values():
        quick = None if any(task.ball for task in own) else own[0].source.approximate(room // 2)
        left, starts = own, dict[int, Floats]()
        free = quick is not None and quick.bilinear  # nothing is saved by few samples
        few = quick is not None and sum(task.columns for task in own) <= STEPPED_COLUMNS
        if all(task.way(room) == "working sets" for task in own) and not free:
            fitting = all(task.fits(room) for task in own)
            leave = STEPS_SHARE if few else SUPPORT_SHARE if fitting else math.inf
            largest = largest_block(room, own[0].source.dtype)
            how = Decomposition(tol, largest, leave)
            sets = replace(watch, on_round=_first_part(watch)) if few else watch
            starts = yield from _solve_on_working_sets(own, how, executor, sets)
            left = [own[k] for k in starts]
        yield from (known[task.key] for task in left if task.key in known)
        others = [task for task in left if free or few or not task.fits(room)]
        new = [task for task in left if task.key not in known]
        yield from whole(task for task in new if task not in others)
        if quick is not None:
            stepping = {k: task for k, task in enumerate(own) if task in others and task in new}
            yield from _solve_in_blocks(stepping, quick, starts, tol, room, watch)
        elif others:
            yield from _solve_in_rounds(others, known.keys(), tol, room, executor, watch)


def _first_part(watch: RoundWatch) -> Callable[[Round], None]:
    """What is told of rounds on working sets which steps on blocks may follow."""
    return lambda one: watch.on_round(replace(one, part=1.0 if one.ended > one.left else SETS_PART))


def _solve_in_blocks(
    tasks: Mapping[int, PairTask],
    quick: Source,
    starts: Mapping[int, Floats],
    tol: float,
    room: int,
    watch: RoundWatch,
) -> Iterator[Solved]:
    """Solve pairs one after the other, each on all cores; `quick` approximates their source."""
    for number, task in tasks.items():
        own = replace(watch, name=f"{watch.name}-blocks-{number}")
        steps = BlockSteps(task.source, quick, tol, room // 2)
        yield task.key, solve_pair(steps, task.pair, starts.get(number), own), 0.0
        own.checkpoint.drop(*entries_of_pair(task.pair, own))  # the fits are kept by now


def _solve_on_working_sets(
    tasks: Sequence[PairTask], how: Decomposition, executor: Executor, watch: RoundWatch
) -> Generator[Solved, None, dict[int, Floats]]:
    """Solve pairs on the same matrix; return the coefficients of those that are left."""
    pairs = {number: task.pair for number, task in enumerate(tasks)}
    found, left = how.solve(tasks[0].source, pairs, executor, watch)
    for number, fits in found.items():
        yield tasks[number].key, fits, 0.0
    return left


def _solve_in_rounds(
    tasks: Sequence[PairTask],
    known: Collection[Any],
    tol: float,
    room: int,
    executor: Executor,
    watch: RoundWatch,
) -> Iterator[Solved]:
    """Solve pairs on the same matrix, none of which fits in memory, but for those that are known.

    These stay among the pairs of the checkpoint, which would else be that of others.
    """
    source = tasks[0].source
    done = {number for number, task in enumerate(tasks) if task.key in known}
    with_ball = [n for n, task in enumerate(tasks) if task.ball and n not in done]
    radii2: dict[int, float] = {}
    if with_ball:
        balls = balls_about_means(source, [tasks[number].pair.members for number in with_ball])
        radii2 = {number: ball.radius2 for number, ball in zip(with_ball, balls, strict=True)}
    pairs = {number: task.pair for number, task in enumerate(tasks)}
    largest = largest_block(room, source.dtype)
    own = replace(watch, name=f"{watch.name}-rounds")
    for number, fits in solve_in_rounds(source, pairs, tol, largest, executor, own, done):
        yield tasks[number].key, fits, radii2.get(number, 0.0)


def largest_block(room: int, dtype: "np.dtype[Any]") -> int:
    """Number of samples, at least two, whose matrix takes at most room bytes."""
    return max(2, int(np.sqrt(room / dtype.itemsize)) // 64 * 64)


def solve_whole(task: PairTask, tol: float, fine: bool) -> Solved:
    """Solve a pair whose matrix fits in memory: the task that workers run."""
    K = task.source.block(task.pair.members)
    fits = solve_block(K, task.pair.dual, tol, fine=fine)
    return task.key, fits, smallest_ball(K, BALL_TOLERANCE).radius2 if task.ball else 0.0


def solve_block(K: NDArray[Any], dual: Dual, tol: float, *, fine: bool = False) -> list[Fit]:
    """Solve all columns to a KKT violation of tol on a matrix in memory, (n, padded(n)).

    With `fine`, float64 matrices of up to `FINE_SAMPLES` samples are solved to `FINE_TOLERANCE` if
    `MORE_STEPS` are enough. This is for a model that is kept: in a grid, where the steps take most
    of the time, tol is enough.
    """
    b = np.zeros(dual.shape)
    f = np.broadcast_to(dual.sign, dual.shape).copy()
    # Steps are bound by memory bandwidth: in float32 they take 0.7 to 0.8 of the time. The rest of
    # the way, if any is left, starts from a recomputed gradient in the matrix's own type.
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
