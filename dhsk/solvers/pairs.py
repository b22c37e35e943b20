"""Problems of pairs of classes, solved on whole matrices, on working sets, or in rounds."""

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from dhsk.arrays import Floats
from dhsk.execution.tasks import Executor
from dhsk.solvers.ball import balls_about_means
from dhsk.solvers.block_steps import BlockSteps, entries_of_pair, solve_pair
from dhsk.solvers.coordinates import Coordinates
from dhsk.solvers.decomposition import Decomposition, Round, RoundWatch
from dhsk.solvers.device_pairs import matrix_for, solve_on_device
from dhsk.solvers.rounds import solve_in_rounds
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import ArraySource, Source
from dhsk.solvers.task_groups import in_groups, seconds_by_coordinates, seconds_on_matrix
from dhsk.solvers.whole import (
    FINE_SAMPLES,
    BegunPairs,
    PairTask,
    Solved,
    Unsolved,
    solve_whole,
)
from dhsk.solvers.working_set import SUPPORT_SHARE

STEPPED_COLUMNS: Final = 3
"""Most problems of all pairs of a matrix that are solved in steps on blocks where matrices fit in
memory: more share what working sets and whole matrices compute. Measured: the 45 pairs of 60,000
images of MNIST took 2.5 times as long in steps, with a tenth of the labels drawn at random 5.5."""

STEPS_SHARE: Final = 0.05
"""As `SUPPORT_SHARE` of working sets, where steps on blocks are the other way."""

SETS_PART: Final = 0.1
"""How far problems are, at most, before steps on blocks: a guess."""

APART: Final = ArraySource(np.zeros((0, 0)))
"""In the place of the source of a task to which it is sent apart."""

Way: TypeAlias = Literal["whole matrices", "coordinates", "working sets", "rounds"]
"""How the problems of a pair are solved, see `way_of`."""


def way_of(n: int, source: Source, room: int, *, whole: bool = False) -> Way:
    """How the problems of n samples are solved, where their matrix may take `room` bytes.

    A matrix that is small, or is stored, or whose `whole` is wanted, is read as such for any number
    of support vectors, if it fits. Of others those of a linear kernel are not computed at all; the
    rest of those of computed values have working sets first.
    """
    if source.bilinear and n > FINE_SAMPLES:
        return "coordinates"
    on_demand = source.computes and not whole
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

    Each is solved in the way of `way_of`, large ones on a device if it holds the matrix. What
    working sets leave, see `dhsk.solvers.decomposition`, is solved in steps on blocks if the source
    has an approximation and the columns are few, or the matrix takes more than room bytes; others
    on the whole matrix, or in rounds. Of these, what an earlier run has `found` is not solved
    again. The option `fine` is for `dhsk.solvers.whole.solve_whole`.
    """
    large: dict[int, list[PairTask]] = {}
    known, watch = found or {}, watch or RoundWatch()

    def whole(some: Iterable[PairTask]) -> Iterator[Solved]:
        return _solve_whole(some, tol, fine, executor, watch)

    def small() -> Iterator[PairTask]:
        for task in tasks:
            if _way(task, room) == "whole matrices":
                yield task
            else:
                large.setdefault(id(task.source), []).append(task)

    yield from whole(small())
    for own in large.values():
        if all(_way(task, room) == "coordinates" for task in own):
            yield from _solve_linear(own, known, tol, room, executor, watch)
            continue
        if (matrix := matrix_for(own)) is not None:
            yield from (known[task.key] for task in own if task.key in known)
            new = [task for task in own if task.key not in known]
            yield from solve_on_device(matrix, new, tol, watch)
            continue
        quick, with_balls = None, any(task.ball for task in own)
        if sum(task.columns for task in own) <= STEPPED_COLUMNS and not with_balls:
            quick = own[0].source.approximate(room // 2)
        left, starts, few = own, dict[int, Floats](), quick is not None
        if all(_way(task, room) == "working sets" for task in own):
            fitting = all(task.fits(room) for task in own)
            leave = STEPS_SHARE if few else SUPPORT_SHARE if fitting else math.inf
            largest = largest_block(room, own[0].source.dtype)
            how = Decomposition(tol, largest, leave)
            sets = replace(watch, on_round=_first_part(watch)) if few else watch
            starts = yield from _solve_on_working_sets(own, how, executor, sets)
            left = [own[k] for k in starts]
        yield from (known[task.key] for task in left if task.key in known)
        others = [task for task in left if few or not task.fits(room)]
        new = [task for task in left if task.key not in known]
        yield from whole(task for task in new if task not in others)
        if others and quick is None and not with_balls:  # in memory when sets are no more
            quick = others[0].source.approximate(room // 2)
        if quick is not None:
            stepping = {k: task for k, task in enumerate(own) if task in others and task in new}
            yield from _solve_in_blocks(stepping, quick, starts, tol, room, watch)
        elif others:
            yield from _solve_in_rounds(others, known.keys(), tol, room, executor, watch)


def _way(task: PairTask, room: int) -> Way:
    """How a pair is solved."""
    return way_of(len(task.pair.members), task.source, room, whole=task.ball)


def _solve_whole(
    tasks: Iterable[PairTask], tol: float, fine: bool, executor: Executor, watch: RoundWatch
) -> Iterator[Solved]:
    """Solve pairs on their whole matrices, in as many tasks as each takes."""
    known, begun = dict[Any, PairTask](), BegunPairs(watch.checkpoint, watch.name)
    shared = dict[int, Any]()  # a source keeps what its tasks read

    def apart(task: PairTask) -> PairTask:
        known[task.key] = task
        return replace(task, source=APART, begun=begun.of(task.key, len(task.pair.members)))

    def going_on(
        some: Iterable[PairTask],
    ) -> Iterator[tuple[Any, Sequence[PairTask], float, bool]]:
        for _, own in groupby(some, key=lambda task: id(task.source)):
            for group in in_groups(own, _seconds_on_matrix):
                source = group[0].source
                if id(source) not in shared:
                    shared[id(source)] = executor.share(source)
                yield shared[id(source)], list(map(apart, group)), tol, fine

    left: Iterable[PairTask] = tasks
    while left:
        open_ = []
        for found in chain.from_iterable(executor.run(_solve_shared, going_on(left))):
            if isinstance(found, Unsolved):
                begun.put(found)
                open_.append(known[found.key])
            else:
                yield found
                begun.drop(found[0])
        left = open_


def _solve_shared(
    source: Source, tasks: Sequence[PairTask], tol: float, fine: bool
) -> list[Solved | Unsolved]:
    """Solve pairs on whole matrices of a source that is sent once: the task of a worker."""
    return [solve_whole(replace(task, source=source), tol, fine) for task in tasks]


def _solve_linear(
    tasks: Sequence[PairTask],
    known: Mapping[Any, Solved],
    tol: float,
    room: int,
    executor: Executor,
    watch: RoundWatch,
) -> Iterator[Solved]:
    """Solve pairs of a linear kernel by coordinates; what is left after many steps, on blocks.

    A few problems of sparse rows are solved on blocks at once, on all cores. Measured in processor
    seconds, by coordinates and on blocks: 0.8 and 0.6 for 18,156 rows like a9a's, 0.8 and 0.5 for
    39,799 like w8a's; but 4.2 and 30 for the 45 pairs of 15,000 images of MNIST, 10 and 59 for
    100,000 samples of 20 numbers, half of them support vectors.
    """
    yield from (known[task.key] for task in tasks if task.key in known)
    new = {number: task for number, task in enumerate(tasks) if task.key not in known}
    begun = BegunPairs(watch.checkpoint, f"{watch.name}-coordinates")
    rows = tasks[0].source.linear_rows(tasks[0].pair.members[:1])
    few = sum(task.columns for task in tasks) <= STEPPED_COLUMNS
    waiting = {} if few and not isinstance(rows, np.ndarray) else dict(new)
    shared = executor.share(tasks[0].source)
    while waiting:
        left = [
            replace(task, key=k, source=APART, begun=begun.of(k, len(task.pair.members)))
            for k, task in waiting.items()
        ]
        own = ((shared, group, tol) for group in in_groups(left, _seconds_by_coordinates))
        waiting = {}
        for found in chain.from_iterable(executor.run(_by_coordinates, own)):
            if not isinstance(found, Unsolved):
                number, fits, radius2 = found
                yield new.pop(number).key, fits, radius2
                begun.drop(number)
                continue
            begun.put(found)
            if not found.is_tired:
                waiting[found.key] = new[found.key]
    quick = tasks[0].source.approximate(room // 2) or tasks[0].source
    starts = {k: state.b for k in new if (state := begun.of(k, 0)) is not None}
    numbers = {task.key: number for number, task in new.items()}
    for solved in _solve_in_blocks(new, quick, starts, tol, room, watch):
        yield solved
        begun.drop(numbers[solved[0]])


def _by_coordinates(
    source: Source, tasks: Sequence[PairTask], tol: float
) -> list[Solved | Unsolved]:
    """Solve pairs by coordinates, or go on with them: the task of a worker."""
    return [_one_by_coordinates(source, task, tol) for task in tasks]


def _one_by_coordinates(source: Source, task: PairTask, tol: float) -> Solved | Unsolved:
    rows = source.linear_rows(task.pair.members)
    assert rows is not None  # the source is bilinear
    solver = Coordinates(rows, task.pair.dual, tol, task.begun)
    if not solver.solve():
        return Unsolved(task.key, solver.begun, solver.is_tired)
    return task.key, solver.fits, 0.0


def _seconds_on_matrix(task: PairTask) -> float:
    return seconds_on_matrix(len(task.pair.members), task.columns)


def _seconds_by_coordinates(task: PairTask) -> float:
    return seconds_by_coordinates(len(task.pair.members), task.columns)


def _first_part(watch: RoundWatch) -> Callable[[Round], None]:
    """What is told of rounds on working sets which steps on blocks may follow."""
    return lambda one: watch.on_round(replace(one, part=1.0 if one.ended > one.left else SETS_PART))


def _as_part(watch: RoundWatch, part: float) -> Callable[[Round], None]:
    """What is told of rounds of a pair that is a part of all; those before it were counted."""
    return lambda one: watch.on_round(replace(one, share=part * (one.share or 0.0)))


def _solve_in_blocks(
    tasks: Mapping[int, PairTask],
    quick: Source,
    starts: Mapping[int, Floats],
    tol: float,
    room: int,
    watch: RoundWatch,
) -> Iterator[Solved]:
    """Solve pairs one after the other, each on all cores; `quick` approximates their source."""
    columns = sum(task.columns for task in tasks.values())
    for number, task in tasks.items():
        told = _as_part(watch, task.columns / columns)
        own = replace(watch, name=f"{watch.name}-blocks-{number}", on_round=told)
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
