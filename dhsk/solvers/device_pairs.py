"""Problems of pairs of classes whose samples' whole matrix is on a device, all at the same time."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.devices import current_device
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.device_steps import DeviceMatrix, DeviceProblem, WholeOnDevice
from dhsk.solvers.dual import certify, most_steps, unfinished
from dhsk.solvers.problems import REST, Pair
from dhsk.solvers.whole import BegunPair, BegunPairs, PairTask, Solved, Unsolved

_TRIES: Final = 4
"""Times that a problem is improved from a gradient computed anew, steps before Newton's apart."""

_BEGUN: Final = 2.0
"""Violation of coefficients of 0."""


def matrix_for(tasks: Sequence[PairTask]) -> WholeOnDevice | None:
    """Matrix of pairs of one source on the device of the code in progress, if it holds it."""
    if current_device() is None or any(task.ball for task in tasks):
        return None
    return tasks[0].source.whole_on_device(_by_class([task.pair for task in tasks]))


def _by_class(pairs: Sequence[Pair]) -> Indices:
    """Samples of some pairs, class by class, so that threads read rows in order."""
    if pairs[0].second == REST:
        return pairs[0].members
    classes = dict[int, Indices]()
    for pair in pairs:
        first = pair.dual.sign > 0
        classes |= {pair.first: pair.members[first], pair.second: pair.members[~first]}
    return np.concatenate([classes[c] for c in sorted(classes)])


def solve_on_device(
    matrix: WholeOnDevice, tasks: Sequence[PairTask], tol: float, watch: RoundWatch
) -> Iterator[Solved]:
    """Solve pairs to a KKT violation of tol, certified from gradients in float64.

    What is done of a pair is in the checkpoint from one try to the next.
    """
    begun = BegunPairs(watch.checkpoint, watch.name)
    device, samples, values = matrix
    place = np.zeros(samples.max() + 1, np.intp)
    place[samples] = np.arange(len(samples))
    states = [_PairOnDevice(task, place, begun) for task in tasks]
    with device.turn():
        for _ in _tries(DeviceMatrix(device, values()), states, tol, watch):
            for state in states:
                begun.put(Unsolved(state.task.key, state.begun))
    for state in states:
        dual, own = state.task.pair.dual, state.begun
        yield state.task.key, certify(dual, own.b, own.f, own.work, tol), 0.0
        begun.drop(state.task.key)


class _PairOnDevice:
    """What is done of a pair, and its samples among those of the matrix."""

    def __init__(self, task: PairTask, place: Indices, begun: BegunPairs) -> None:
        self.task, self._places = task, place[task.pair.members]
        earlier = begun.of(task.key, len(self._places))
        self.begun = BegunPair.of(task.pair.dual) if earlier is None else earlier.copy()
        self.begun.in_single = False

    def problem(self, column: int) -> DeviceProblem:
        """Problem of a column, whose coefficients and gradient are those of the pair."""
        dual, own = self.task.pair.dual, self.begun
        bounds = dual.bounds(column)
        return DeviceProblem(self._places, dual.sign, *bounds, own.b[column], own.f[column])

    def left(self, tol: float, entry: float) -> list[int]:
        """Columns that are not solved, and may have more steps."""
        dual, own = self.task.pair.dual, self.begun
        most = most_steps(len(self._places))
        found = unfinished(dual, own.b, own.f, tol, entry)
        return [column for column in found if own.work[0, column] < most]


def _tries(
    matrix: DeviceMatrix, states: Sequence[_PairOnDevice], tol: float, watch: RoundWatch
) -> Iterator[None]:
    """Improve all columns until they are solved, or rounding lets nothing more be gained."""
    matrix.recompute([state.problem(c) for state in states for c in range(len(state.begun.b))])
    tries = 0
    while tries < _TRIES:
        left = [(state, c) for state in states for c in state.left(tol, matrix.entry)]
        if not left:
            return
        told = partial(_tell, watch, len(states), tol)
        problems, begin = [state.problem(c) for state, c in left], perf_counter()
        steps, more = matrix.improve(problems, tol, told)
        tired = [problems[k] for k in more]
        for k, one in zip(more, tired, strict=True):
            steps[k] += matrix.newton(one)
        if tired:
            matrix.recompute(tired)
        else:
            tries += 1
        seconds = (perf_counter() - begin) / len(left)
        for (state, c), count in zip(left, steps, strict=True):
            state.begun.work[:, c] += count, seconds
        yield


def _tell(watch: RoundWatch, pairs: int, tol: float, violations: Floats, support: int) -> None:
    """Tell of a launch: violations fall about evenly on a logarithmic scale, as a guess."""
    violation, ended = float(violations.max()), int(np.count_nonzero(violations <= tol))
    share = math.log(max(violation, tol) / _BEGUN) / math.log(tol / _BEGUN) if tol < _BEGUN else 1.0
    watch.on_round(Round(pairs, min(ended, pairs), support, violation, share=max(0.0, share)))
