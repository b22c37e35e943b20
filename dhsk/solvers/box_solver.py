"""Problems of one column with any linear term: regression, and the one-class SVM.

Small ones are solved on their whole matrix, others in steps on blocks, see
`dhsk.solvers.block_steps`.

Rejected: LIBSVM's doubled problem of 2N variables for regression, of which at most one of a pair is
not 0 at an optimum (twice the gradients in each step; see `dhsk.solvers.smo`).
"""

from dataclasses import dataclass
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.block_steps import BlockState, BlockSteps
from dhsk.solvers.box import BoxFit, BoxProblem
from dhsk.solvers.dual import MAX_STEPS
from dhsk.solvers.limited import LimitedSteps
from dhsk.solvers.smo import SINGLE_TOLERANCE, ascend, largest_entry, matrix_bytes
from dhsk.solvers.sources import ArraySource, Source
from dhsk.solvers.whole import FINE_SAMPLES, FINE_TOLERANCE, MORE_STEPS

WHOLE: Final = 4096
"""Most samples that are solved on their whole matrix, of 200 MB with its float32 copy."""

POLISHES: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""

READ_AT_ONCE: Final = 2**28
"""Entries of the matrix that steps read between two reports, half a second. A constant, as the
steps begin anew there: results must not depend on who listens."""

LEAST_AT_ONCE: Final = 1000
"""Fewest steps between two reports."""


@dataclass(frozen=True)
class Limits:
    """What bounds a solution."""

    tol: float
    """Tolerance of the KKT violation."""
    room: int
    """Bytes for matrices."""
    most_steps: int | None = None
    """Steps after which to end; None for no bound but the usual one."""
    fine: float = FINE_TOLERANCE
    """Violation to which small problems are solved, if that takes few steps more."""


def fine_tolerance(problem: BoxProblem) -> float:
    """Violation to which small problems are solved, in units of the linear term."""
    return FINE_TOLERANCE * max(1.0, float(np.abs(problem.linear).max()))


def solve_box(
    source: Source,
    problem: BoxProblem,
    start: Floats,
    limits: Limits,
    report: OnProgress = ignore,
) -> BoxFit:
    """Solve a problem from a feasible start, whose sum is kept."""
    n = source.n
    if limits.most_steps is not None:
        return _in_steps(source, problem, start, limits, report)
    if n <= WHOLE and matrix_bytes(n, source.dtype) <= limits.room:
        return _on_whole(source.block(np.arange(n)), problem, start, limits, report)
    return _on_blocks(source, problem, start, limits, report)


def _in_steps(
    source: Source, problem: BoxProblem, start: Floats, limits: Limits, report: OnProgress
) -> BoxFit:
    """Improve the start by at most some steps."""
    assert limits.most_steps is not None
    how, b = LimitedSteps(source, np.arange(source.n), limits.room, report), start.copy()
    bounds = problem.lower, problem.upper
    steps = how.ascend(problem.linear, bounds, b, limits.tol, limits.most_steps, problem.zone)
    problem.settle(b)
    return BoxFit(b, how.gradient(problem.linear, b), steps)


def _on_whole(
    K: NDArray[Any], problem: BoxProblem, start: Floats, limits: Limits, report: OnProgress
) -> BoxFit:
    """Solve a problem on its matrix in memory: large ones first in float32, others finely."""
    n, steps, bounds = len(K), 0, (problem.lower, problem.upper)
    small = n <= FINE_SAMPLES
    b, entry = start.copy(), largest_entry(K)
    f = _gradient(K, problem, b)
    told = ViolationReport(report, problem.violation(b, f), limits.tol)

    def go_on(matrix: NDArray[Any], tol: float, most: int) -> int:
        at_once, done, more = max(LEAST_AT_ONCE, READ_AT_ONCE // n), 0, -1
        while more in (-1, at_once):
            here = min(at_once, most - done)
            more, left = ascend(matrix, bounds, b, f, tol, here, zone=problem.zone)
            done += more
            told(left)
        problem.settle(b)
        f[:] = _gradient(K, problem, b)
        return done

    most = max(MAX_STEPS, 100 * n)
    if not small and entry <= np.finfo(np.float32).max / n and K.dtype == np.float64:
        steps += go_on(K.astype(np.float32), max(limits.tol, SINGLE_TOLERANCE), most)
    for _ in range(1 + POLISHES):
        if problem.violation(b, f) <= limits.tol or steps >= most:
            break
        more = go_on(K, limits.tol, most - steps)
        steps += more
        if not more:
            break
    fine = small and K.dtype == np.float64 and limits.tol > limits.fine
    if fine and problem.violation(b, f) <= limits.tol:
        before = b.copy()
        steps += go_on(K, limits.fine, max(MORE_STEPS * steps, LEAST_AT_ONCE))
        if problem.violation(b, f) > limits.tol:  # its limit may end it anywhere on the way
            b[:] = before
            f[:] = _gradient(K, problem, b)
    told.end(problem.violation(b, f))
    return BoxFit(b, f, steps)


def _gradient(K: NDArray[Any], problem: BoxProblem, b: Floats) -> Floats:
    """Gradient on a matrix in memory."""
    product: Floats = ArraySource(K[:, : len(K)]).product(b[:, None])[:, 0]
    return problem.linear - product


def _on_blocks(
    source: Source, problem: BoxProblem, start: Floats, limits: Limits, report: OnProgress
) -> BoxFit:
    """Solve a problem in steps on blocks of its samples."""
    room = limits.room // 2
    quick = source.approximate(room) or source
    state = BlockState(problem, np.arange(source.n), start)
    for violation in BlockSteps(source, quick, limits.tol, room).solve(state):
        support = int(np.count_nonzero(state.b))
        detail = f"{support:,} support vectors, violation {violation:.1e} of {limits.tol:.0e}"
        report(Progress("training", round(1000 * state.share), 1000, detail))
    return BoxFit(state.b, state.f, state.steps)


class ViolationReport:
    """Progress of a violation from the first one to that of the fine tolerance."""

    def __init__(self, report: OnProgress, first: float, tol: float) -> None:
        self._report, self._first, self._tol = report, first, tol
        self._done = 0
        self(first)

    def __call__(self, violation: float) -> None:
        """Report a violation; it may rise between steps, but the progress does not fall."""
        goal = min(self._tol, FINE_TOLERANCE)
        if violation <= goal or self._first <= goal:
            share = 1.0
        else:
            share = log(self._first / violation) / log(self._first / goal)
        self._done = max(self._done, min(int(1000 * share), 999))
        self._tell(violation)

    def end(self, violation: float) -> None:
        """Report the end."""
        self._done = 1000
        self._tell(violation)

    def _tell(self, violation: float) -> None:
        detail = f"violation {violation:.1e} of {self._tol:.0e}"
        self._report(Progress("training", self._done, 1000, detail))
