"""Problems whose matrix does not fit in memory, solved in rounds over parts of it.

A round solves a subproblem in the variables that violate the optimality conditions most, as many as
fit in memory. One pass over the whole matrix then gives the gradients of all variables. If more
coefficients are free than fit, rounds progress slowly, so conjugate gradients continue in all free
coefficients at once, a pass each. All pairs, folds and C share every pass.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.execution.tasks import Executor
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.dual import (
    Fit,
    certify,
    improve,
    least_violation,
    unfinished,
    violation_and_intercept,
)
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import settle
from dhsk.solvers.sources import Source, products

MAX_PASSES: Final = 5000
"""Most passes over the matrix."""

PATIENCE: Final = 3
"""Consecutive steps of conjugate gradients that end at a bound, before the next round."""

WORTHWHILE: Final = 0.3
"""Least share of the violation among free coefficients for conjugate gradients to continue."""

MOST_TURNS: Final = 3
"""Most conjugate directions since a restart, for each free coefficient: rounding needs more than
one."""

GOLDEN_RATIO: Final = 0.6180339887498949


class RoundState:
    """State of the problems of a pair."""

    ARRAYS: ClassVar[tuple[str, ...]] = ("b", "f", "work")
    """Names of the arrays of a checkpoint."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.b = np.zeros(pair.dual.shape)
        self.f = np.broadcast_to(pair.dual.sign, pair.dual.shape).copy()
        self.work = np.zeros((2, len(self.b)))
        self.left = unfinished(pair.dual, self.b, self.f, 0.0)
        self.moved = False
        """Whether a coefficient has changed since the gradients were computed."""
        self.ended = False

    def certified(self, tol: float) -> list[Fit]:
        """The fit of each column."""
        return certify(self.pair.dual, self.b, self.f, self.work, tol)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of a checkpoint."""
        return {name: getattr(self, name) for name in self.ARRAYS}

    def values(self) -> dict[str, Any]:
        """JSON values of a checkpoint."""
        return {"left": self.left, "moved": self.moved, "ended": self.ended}

    def restore(self, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        for name, value in (arrays | values).items():
            setattr(self, name, value)

    def worst(self, count: int) -> Indices:
        """Samples of the highest gradients that may grow and of the lowest that may shrink.

        A sample's rank is its best in any column; violators rank before free coefficients.
        """
        dual = self.pair.dual
        best = np.full(dual.shape[1], dual.shape[1])
        # The worst column is always included, so every round makes progress.
        worst = max(self.left, key=self._violation, default=-1)
        for c in self.left:
            lower, upper = dual.bounds(c)
            for order, open_ in ((-self.f[c], self.b[c] < upper), (self.f[c], self.b[c] > lower)):
                some = self._spread[open_[self._spread]]
                ranked = some[np.argsort(order[some], kind="stable")]
                rank = np.arange(len(ranked)) - (c == worst)
                best[ranked] = np.minimum(best[ranked], rank)
        return np.sort(np.argsort(best, kind="stable")[:count])

    def part(self, number: int, source: Source, chosen: Indices) -> "PartTask":
        """Subproblems in the chosen variables, from the current coefficients."""
        return PartTask(number, source, self.pair, chosen, self.b[:, chosen], self.f[:, chosen])

    def take(self, chosen: Indices, b: Floats) -> None:
        """Take the solution of the subproblems in the chosen variables."""
        self.moved |= bool((self.b[:, chosen] != b).any())
        self.b[:, chosen] = b
        for column in self.left:
            settle(self.b[column], *self.pair.dual.bounds(column))

    def _violation(self, column: int) -> float:
        return violation_and_intercept(self.pair.dual, column, self.b[column], self.f[column])[0]

    @cached_value
    def _spread(self) -> Indices:
        """All samples, spread evenly: of equal violators, as at the start, some of each part."""
        return np.argsort(np.arange(self.pair.dual.shape[1]) * GOLDEN_RATIO % 1.0, kind="stable")


def solve_in_rounds(
    source: Source,
    pairs: dict[int, Pair],
    tol: float,
    largest: int,
    executor: Executor,
    watch: RoundWatch | None = None,
    done: Collection[int] = (),
) -> Iterator[tuple[int, list[Fit]]]:
    """Solve numbered pairs to a KKT violation of tol, by subproblems of up to `largest` variables.

    Yields the number of each pair that is not `done`, with a fit for each of its columns. The
    entry of the checkpoint, which has all pairs, stays.
    """
    states = {k: RoundState(pair) for k, pair in pairs.items()}
    every, watch = list(states.values()), watch or RoundWatch()
    passes = watch.checkpoint.resume(watch.name, every).get("passes", 0)
    entry = float(np.abs(source.diagonal()).max())
    for k in done:
        states.pop(k).ended = True
    for k in [k for k, state in states.items() if state.ended]:
        yield k, states.pop(k).certified(tol)
    while states:
        _improve_parts(source, states, tol, largest, executor)
        _renew_gradients(source, list(states.values()))
        for state in states.values():
            state.left = unfinished(state.pair.dual, state.b, state.f, tol, entry)
        given_up = passes > MAX_PASSES
        ended = [k for k, s in states.items() if not s.left or not s.moved or given_up]
        for k in ended:
            state = states.pop(k)
            state.ended = True
            yield k, state.certified(tol)
        solvers = [
            _FreeSetCG(state, c, tol, entry) for state in states.values() for c in state.left
        ]
        for state in states.values():
            state.moved = False
        passes += 1 + _ascend_within_bounds(source, solvers)
        if states:  # whoever has all fits may have dropped the entry
            watch.checkpoint.put(watch.name, every, {"passes": passes}, last=False)


def _improve_parts(
    source: Source, states: dict[int, RoundState], tol: float, largest: int, executor: Executor
) -> None:
    """Solve a subproblem of each pair in its worst variables."""
    tasks = [
        (state.part(k, source, state.worst(largest)), state.left, tol)
        for k, state in states.items()
    ]
    for k, chosen, b, work in executor.run(improve_part, tasks):
        states[k].take(chosen, b)
        states[k].work += work


@dataclass(frozen=True, eq=False)
class PartTask:
    """Subproblems of a pair: chosen variables, their coefficients and gradients, (columns, m)."""

    number: int
    source: Source
    pair: Pair
    chosen: Indices
    b: Floats
    f: Floats


def improve_part(
    task: PartTask, columns: list[int], tol: float
) -> tuple[int, Indices, Floats, Floats]:
    """Solve some columns of the subproblems of a pair: the task that workers run.

    Returns the number of the pair, the variables, their new coefficients, and steps and seconds of
    each column, (2, columns).
    """
    K = task.source.block(task.pair.members[task.chosen])
    dual = task.pair.dual.part(task.chosen)
    if task.b.any() or (task.f != dual.sign).any():
        # A warm start by the previous column needs all other coefficients of both to be 0.
        dual = replace(dual, chain=1)
    b, f = task.b.copy(), task.f.copy()  # the arrays of a task may be read-only
    work = improve(K, dual, b, f, columns, tol / 2)
    return task.number, task.chosen, b, work


def _renew_gradients(source: Source, states: list[RoundState]) -> None:
    """Recompute the gradients s - K b of the unfinished columns."""
    wanted = [(state, c) for state in states for c in state.left]
    vectors = [(state.pair.members, state.b[c]) for state, c in wanted]
    for (state, c), product in zip(wanted, products(source, vectors), strict=True):
        state.f[c] = state.pair.dual.sign - product


def _ascend_within_bounds(source: Source, solvers: list["_FreeSetCG"]) -> int:
    """Run conjugate gradients in all columns where that helps; return the number of passes."""
    passes = 0
    while passes < MAX_PASSES:
        solvers = [solver for solver in solvers if solver.worthwhile]
        if not solvers:
            break
        vectors = [(solver.members, solver.direction) for solver in solvers]
        for solver, product in zip(solvers, products(source, vectors), strict=True):
            solver.move(product)
        passes += 1
    return passes


class _FreeSetCG:
    """Conjugate gradients in the free coefficients of a column, those strictly within bounds."""

    def __init__(self, state: RoundState, column: int, tol: float, entry: float) -> None:
        self.members = state.pair.members
        self._state = state
        self._dual, self._column = state.pair.dual, column
        self._lower, self._upper = self._dual.bounds(column)
        self._b, self._f = state.b[column], state.f[column]
        self._tol = least_violation(self._b, self._f, tol, entry)
        self._stops = 0
        self._start()

    def _start(self) -> None:
        """Restart with the coefficients that are free now."""
        self._turns = 0
        self._free = (self._b > self._lower) & (self._b < self._upper)
        self._rest2 = 0.0
        self.direction = np.zeros(len(self._b))
        self._turn()

    def _turn(self) -> None:
        """Next direction: the gradient, projected to a sum of 0, conjugate to earlier ones."""
        within = np.zeros(len(self._b))
        if self._free.any():
            within[self._free] = self._f[self._free] - self._f[self._free].mean()
        rest2 = float(within @ within)
        self.direction *= rest2 / self._rest2 if self._rest2 else 0.0
        self.direction += within
        if self._free.any():
            # Rounding leaves a sum, the steepest direction of all, which would grow step by step.
            self.direction[self._free] -= self.direction[self._free].mean()
        self._rest2 = rest2
        self._turns += 1

    @property
    def worthwhile(self) -> bool:
        """Whether enough violation is left among the free coefficients."""
        # In exact arithmetic, one direction for each free coefficient would be enough.
        tired = self._turns > MOST_TURNS * max(1, int(self._free.sum()))
        if tired or self._stops >= PATIENCE or not self._rest2:
            return False
        spread = float(np.ptp(self._f[self._free]))
        violation, _ = violation_and_intercept(self._dual, self._column, self._b, self._f)
        return spread > self._tol / 2 and spread > WORTHWHILE * violation

    def move(self, product: Floats) -> None:
        """Step along the direction to the optimum or to the first bound.

        The product is that of the matrix with the direction, (n,).
        """
        self._state.moved = True
        d = self.direction
        ends = np.where(d > 0, self._upper, self._lower)
        room = np.divide(ends - self._b, d, out=np.full(len(d), np.inf), where=d != 0)
        first = int(room.argmin())
        curvature = float(d @ product)
        best = float(d @ self._f) / curvature if curvature > 0 else np.inf
        step = min(best, float(room[first]))
        np.clip(self._b + step * d, self._lower, self._upper, out=self._b)
        settle(self._b, self._lower, self._upper)
        self._f -= step * product
        if step == best:
            self._stops = 0
            self._turn()
        else:
            self._b[first] = ends[first]
            self._stops += 1
            self._start()
