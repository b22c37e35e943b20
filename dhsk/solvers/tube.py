"""Problems of one column with any linear term: regression, and the one-class SVM.

They maximise s'b - zone |b|_1 - b'Kb/2 over bounds of b and a given sum of it; the gradient is
f = s - K b. Small ones are solved on their whole matrix, others on sets of those samples that
violate the optimality conditions most [1]_, from the columns of which all gradients follow. Where
these are many, or sets take many rounds, steps are made on the whole matrix in float32, if it fits,
from gradients that are computed anew in float64 as often as that is needed.

Rejected: LIBSVM's doubled problem of 2N variables, of which at most one of a pair is not 0 at an
optimum (twice the gradients in each step; see `dhsk.solvers.smo`).

References
----------
.. [1] T. Joachims, "Making large-scale SVM learning practical", Advances in Kernel Methods (1999).
"""

from dataclasses import dataclass
from itertools import count, starmap
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, blocks
from dhsk.caching import cached_value
from dhsk.execution.tasks import Executor
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.dual import MAX_STEPS
from dhsk.solvers.pairs import FINE_SAMPLES, FINE_TOLERANCE, MORE_STEPS, SINGLE_TOLERANCE
from dhsk.solvers.smo import (
    ascend,
    largest_entry,
    matrix_bytes,
    padded,
    rounding_of,
    settle,
)
from dhsk.solvers.sources import ArraySource, Combination, Source, fill_symmetric

WHOLE: Final = 4096
"""Most samples that are solved on their whole matrix, of 200 MB with its float32 copy."""

POLISHES: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""

SUPPORT_SHARE: Final = 0.1
MOST_ROUNDS: Final = 16
"""Share of the samples with coefficients, and number of sets, from which on the whole matrix pays.
"""

LEAST_SET, LARGEST_SET, SET_SHARE = 1024, 4096, 32
"""Samples of a set: this share of all, within these bounds."""

STRIP: Final = 1024
"""Rows of the whole matrix that are computed at a time."""

SMALLEST_SET: Final = 64
"""Samples of a set where memory is scarce."""

READ_AT_ONCE: Final = 2**28
"""Entries of the matrix that steps read between two reports, half a second. A constant, as the
steps begin anew there: results must not depend on who listens."""

LEAST_AT_ONCE: Final = 1000
"""Fewest steps between two reports."""


@dataclass(frozen=True, eq=False)
class TubeProblem:
    """A problem of n samples; arrays are (n,)."""

    linear: Floats
    """s, in regression the targets."""
    lower: Floats
    upper: Floats
    zone: float = 0.0
    """What each unit of |b_i| loses: in regression the width of the zone without loss."""

    def part(self, chosen: Indices) -> "TubeProblem":
        """Restrict the problem to some samples."""
        return TubeProblem(self.linear[chosen], self.lower[chosen], self.upper[chosen], self.zone)

    def sides(self, b: Floats, f: Floats) -> tuple[Floats, Floats]:
        """Gradients of coefficients that grow, and of those that shrink; infinite at bounds."""
        grows = np.where(b < 0.0, f + self.zone, f - self.zone)
        shrinks = np.where(b > 0.0, f - self.zone, f + self.zone)
        grows[b >= self.upper] = -np.inf
        shrinks[b <= self.lower] = np.inf
        return grows, shrinks

    def violation(self, b: Floats, f: Floats) -> float:
        """KKT violation, 0 at the optimum."""
        grows, shrinks = self.sides(b, f)
        return max(0.0, float(grows.max(initial=-np.inf) - shrinks.min(initial=np.inf)))

    def intercept(self, b: Floats, f: Floats) -> float:
        """LIBSVM's -rho: the mean of the free samples, or the middle of what others allow."""
        grows, shrinks = self.sides(b, f)
        free = grows == shrinks  # inside of the bounds, and not at 0 if the loss changes there
        if free.any():
            return float(grows[free].mean())
        ends = np.array([grows.max(initial=-np.inf), shrinks.min(initial=np.inf)])
        return float(ends[np.isfinite(ends)].mean())

    def gap(self, b: Floats, f: Floats, intercept: float) -> float:
        """Duality gap of a regression, whose bounds are symmetric, relative to the primal."""
        norm2 = float(b @ (self.linear - f))
        errors = np.maximum(np.abs(f - intercept) - self.zone, 0.0)
        primal = norm2 / 2 + float(self.upper @ errors)
        dual = float(self.linear @ b) - self.zone * float(np.abs(b).sum()) - norm2 / 2
        return (primal - dual) / primal if primal > 0 else 0.0

    def settle(self, b: Floats) -> None:
        """Set coefficients within rounding of a bound, or of 0, to it, in place."""
        if self.zone > 0:
            below, above = np.minimum(self.upper, 0.0), np.maximum(self.lower, 0.0)
            settle(b, np.where(b > 0, above, self.lower), np.where(b > 0, self.upper, below))
        else:
            settle(b, self.lower, self.upper)


@dataclass(frozen=True)
class TubeLimits:
    """What bounds a solution."""

    tol: float
    """Tolerance of the KKT violation."""
    room: int
    """Bytes for matrices."""
    most_steps: int | None = None
    """Steps after which to end, on the whole matrix; None for no bound but the usual one."""
    fine: float = FINE_TOLERANCE
    """Violation to which small problems are solved, if that takes few steps more."""
    executor: Executor | None = None
    """Computes parts of a whole matrix; None for one by one."""


@dataclass(frozen=True, eq=False)
class TubeFit:
    """Solution, with its gradient f = s - K b, recomputed."""

    b: Floats
    f: Floats
    steps: int


def fine_tolerance(problem: TubeProblem) -> float:
    """Violation to which small problems are solved, in units of the linear term."""
    return FINE_TOLERANCE * max(1.0, float(np.abs(problem.linear).max()))


def solve_tube(
    source: Source,
    problem: TubeProblem,
    start: Floats,
    limits: TubeLimits,
    report: OnProgress = ignore,
) -> TubeFit:
    """Solve a problem from a feasible start, whose sum is kept."""
    n = source.n
    if limits.most_steps is not None:
        return _in_steps(source.block(np.arange(n)), problem, start, limits)
    if n <= WHOLE and matrix_bytes(n, source.dtype) <= limits.room:
        return _on_whole(source.block(np.arange(n)), problem, start, limits, report)
    return _on_sets(source, problem, start, limits, report)


def _in_steps(K: NDArray[Any], problem: TubeProblem, start: Floats, limits: TubeLimits) -> TubeFit:
    """Improve the start by at most some steps."""
    assert limits.most_steps is not None
    b = start.copy()
    f = _gradient(K, problem, b)
    bounds = problem.lower, problem.upper
    steps, _ = ascend(K, bounds, b, f, limits.tol, limits.most_steps, zone=problem.zone)
    problem.settle(b)
    return TubeFit(b, _gradient(K, problem, b), steps)


def _on_whole(
    K: NDArray[Any], problem: TubeProblem, start: Floats, limits: TubeLimits, report: OnProgress
) -> TubeFit:
    """Solve a problem on its matrix in memory: first in float32, and small ones finely."""
    n, steps, bounds = len(K), 0, (problem.lower, problem.upper)
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
    if entry <= np.finfo(np.float32).max / n and K.dtype == np.float64:
        steps += go_on(K.astype(np.float32), max(limits.tol, SINGLE_TOLERANCE), most)
    for _ in range(1 + POLISHES):
        if problem.violation(b, f) <= limits.tol or steps >= most:
            break
        more = go_on(K, limits.tol, most - steps)
        steps += more
        if not more:
            break
    fine = K.dtype == np.float64 and n <= FINE_SAMPLES and limits.tol > limits.fine
    if fine and problem.violation(b, f) <= limits.tol:
        steps += go_on(K, limits.fine, max(MORE_STEPS * steps, LEAST_AT_ONCE))
    told.end(problem.violation(b, f))
    return TubeFit(b, f, steps)


def _gradient(K: NDArray[Any], problem: TubeProblem, b: Floats) -> Floats:
    """Gradient on a matrix in memory."""
    product: Floats = ArraySource(K[:, : len(K)]).product(b[:, None])[:, 0]
    return problem.linear - product


# Sets


def _on_sets(
    source: Source, problem: TubeProblem, start: Floats, limits: TubeLimits, report: OnProgress
) -> TubeFit:
    """Solve a problem on sets of its samples, or on its matrix in float32."""
    b, steps, most = start.copy(), 0, max(MAX_STEPS, 100 * source.n)
    f = problem.linear - _columns(source, b)
    single = _Single(source, limits)
    told = ViolationReport(report, problem.violation(b, f), limits.tol)
    for _ in range(1 + POLISHES):
        if not single.made:
            steps += _sets(source, problem, (b, f), limits, single, told)
        if single.made:
            steps += _steps_in_single(single.matrix, problem, (b, f), limits.tol, most)
        problem.settle(b)
        f = problem.linear - _columns(source, b)
        told(problem.violation(b, f))
        if problem.violation(b, f) <= limits.tol or steps >= most:
            break
    told.end(problem.violation(b, f))
    return TubeFit(b, f, steps)


def _sets(
    source: Source,
    problem: TubeProblem,
    state: tuple[Floats, Floats],
    limits: TubeLimits,
    single: "_Single",
    told: "ViolationReport",
) -> int:
    """Improve coefficients and gradients, in place, set by set; return the number of steps."""
    (b, f), steps, members = state, 0, np.zeros(0, np.intp)
    most, size = max(MAX_STEPS, 100 * source.n), set_size(source, limits.room)
    entry = float(np.abs(source.diagonal()).max())
    for rounds in count():
        violation = problem.violation(b, f)
        told(violation)
        least = max(limits.tol, rounding_of(np.abs(f).max(), entry, np.abs(b).sum()))
        if violation <= least or steps >= most or single.pays(b, rounds):
            return steps
        members = _chosen(problem, b, f, members, size)
        own = problem.part(members)
        K, new, g = source.block(members), b[members], f[members]
        more, _ = ascend(K, (own.lower, own.upper), new, g, limits.tol / 2, most, zone=own.zone)
        own.settle(new)
        change = np.zeros(len(b))
        change[members] = new - b[members]
        if not change.any():
            return steps  # rounding lets nothing more be gained
        f -= _columns(source, change)
        b[members] = new
        steps += more
    return steps


class _Single:
    """The whole matrix in float32, made when it pays, if it fits."""

    def __init__(self, source: Source, limits: TubeLimits) -> None:
        self._source, self._executor = source, limits.executor
        self._fits = 4 * source.n * padded(source.n) <= limits.room
        self.made = False

    def pays(self, b: Floats, rounds: int) -> bool:
        """Whether many samples have coefficients, or there were many rounds."""
        many = np.count_nonzero(b) > SUPPORT_SHARE * len(b) or rounds >= MOST_ROUNDS
        self.made = bool(rounds > 0 and many and self._fits)
        return self.made

    @cached_value
    def matrix(self) -> NDArray[Any]:
        """The matrix, (n, padded(n))."""
        n = self._source.n
        K = np.zeros((n, padded(n)), np.float32)
        strips = ((K, part) for part in blocks(n, STRIP))
        run = self._executor.run if self._executor else starmap
        for _ in run(self._fill, strips):
            continue
        return K

    def _fill(self, K: NDArray[Any], part: slice) -> None:
        """Fill some rows from the diagonal on, and the columns below: the task of a thread."""
        rows, columns = np.arange(part.start, part.stop), np.arange(part.start, self._source.n)
        for panel in self._source.panels(rows, [columns]):
            i, j = part.start + panel.rows[0], part.start + panel.columns[0]
            fill_symmetric(K, panel.values, i, j)


def _steps_in_single(
    K: NDArray[Any],
    problem: TubeProblem,
    state: tuple[Floats, Floats],
    tol: float,
    most: int,
) -> int:
    """Improve coefficients, in place, by steps on a matrix in float32.

    What its rounding leaves is what the coefficients change by, times 6e-8: little, where the
    gradient is new.
    """
    b, f = state
    steps, _ = ascend(K, (problem.lower, problem.upper), b, f, tol / 2, most, zone=problem.zone)
    return steps


def set_size(source: Source, room: int) -> int:
    """Number of samples of a set: its matrix takes an eighth of the memory at most."""
    size = int(np.clip(source.n // SET_SHARE, LEAST_SET, LARGEST_SET))
    while size > SMALLEST_SET and 8 * matrix_bytes(size, source.dtype) > room:
        size //= 2
    return min(size, source.n)


def _chosen(problem: TubeProblem, b: Floats, f: Floats, before: Indices, size: int) -> Indices:
    """Samples of a set: the worst violators of both sides, free ones of the last set, and others.

    A half is of violators; what the last set leaves is of the next worst, or nearest to be.
    """
    grows, shrinks = problem.sides(b, f)
    middle = (grows.max() + shrinks.min()) / 2
    excess, fresh = np.maximum(grows - middle, middle - shrinks), size // 4
    worst = np.union1d(_highest(grows - middle, fresh), _highest(middle - shrinks, fresh))
    kept = np.setdiff1d(before, worst, assume_unique=True)
    free = (b[kept] > problem.lower[kept]) & (b[kept] < problem.upper[kept])
    kept = kept[np.argsort(~free, kind="stable")][: size - len(worst)]
    chosen = np.union1d(worst, kept)
    excess[chosen] = -np.inf
    return np.union1d(chosen, _highest(excess, size - len(chosen)))


def _highest(values: Floats, count: int) -> Indices:
    """Samples of the highest values, at most count of them, none of -inf, in descending order."""
    count = min(count, len(values))
    found = np.argpartition(-values, count - 1)[:count] if count else np.zeros(0, np.intp)
    found = found[values[found] > -np.inf]
    return np.asarray(found[np.argsort(-values[found], kind="stable")])


def _columns(source: Source, coef: Floats) -> Floats:
    """Product of the matrix with coefficients, (n,), from the columns of those that are not 0."""
    used = np.flatnonzero(coef)
    if not used.size:
        return np.zeros(source.n)
    (found,) = source.combine([Combination(np.arange(source.n), used, coef[used][:, None])])
    return np.asarray(found[:, 0])


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
