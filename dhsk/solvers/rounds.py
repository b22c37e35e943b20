"""Problems whose matrix does not fit in memory, solved in rounds over parts of it.

A round solves a subproblem in the variables that violate the optimality conditions most, as many as
fit in memory. One pass over the whole matrix then gives the gradients of all variables. If more
coefficients are free than fit, rounds progress slowly, so conjugate gradients continue in all free
coefficients at once, a pass each. All pairs, folds and C share every pass.

Rounds alone do not end where more is free than fits: 1,000 samples of noise with C = 10^4 and a
tenth of the matrix took 1,000 passes for nothing, with conjugate gradients 0.9 s. Rejected: rows on
demand with a cache (a million steps, each a row of the disk).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.execution.kept_pass import passes_kept
from dhsk.execution.tasks import Executor
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.dual import (
    Fit,
    Steps,
    certify,
    improve,
    least_violation,
    most_steps,
    unfinished,
    violation_and_intercept,
)
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import settle
from dhsk.solvers.sources import Source, products
from dhsk.solvers.subproblem import SetSolution
from dhsk.solvers.together import PairState, Together

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


class RoundState(PairState):
    """State of the problems of a pair."""

    ARRAYS: ClassVar[tuple[str, ...]] = ("b", "f", "work", "chosen", "direction", "free", "ascent")
    VALUES: ClassVar[tuple[str, ...]] = ("left", "moved", "ended", "improved", "ascends")

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.b = np.zeros(pair.dual.shape)
        self.f = np.broadcast_to(pair.dual.sign, pair.dual.shape).copy()
        self.work = np.zeros((2, len(self.b)))
        self.left = unfinished(pair.dual, self.b, self.f, 0.0)
        self.moved = False
        """Whether a coefficient has changed since the gradients were computed."""
        self.ended = False
        self.improved = False
        """Whether the subproblem of this round is solved."""
        self.chosen = np.zeros(0, np.intp)
        """Variables of a subproblem that is begun."""
        self.ascends = False
        """Whether conjugate gradients have begun; their state is below, for each column."""
        self.direction = np.zeros(pair.dual.shape)
        self.free = np.zeros(pair.dual.shape, dtype=bool)
        self.ascent = np.zeros((len(self.b), len(_Ascent._fields)))

    def certified(self, tol: float) -> list[Fit]:
        """The fit of each column."""
        return certify(self.pair.dual, self.b, self.f, self.work, tol)

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

    def part(self, number: int, source: Source, count: int) -> "PartTask":
        """Subproblems in the worst variables, or those begun, from the current coefficients."""
        chosen = self.chosen if len(self.chosen) else self.worst(count)
        return PartTask(number, source, self.pair, chosen, self.b[:, chosen], self.f[:, chosen])

    def take(self, found: SetSolution) -> None:
        """Take the solution of subproblems."""
        self.work += found.work
        tired = bool(self.work[0].max() >= most_steps(self.pair.dual.shape[1]))
        self.improved = found.finished or tired
        self.chosen = self.chosen[:0] if self.improved else found.inside
        self.moved |= bool((self.b[:, found.inside] != found.b).any())
        self.b[:, found.inside] = found.b
        self.f[:, found.inside] = found.f
        for column in self.left if self.improved else ():
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
    rounds = _Rounds(source, list(states.values()), tol, watch or RoundWatch())
    for k in done:
        states.pop(k).ended = True
    for k in [k for k, state in states.items() if state.ended]:
        yield k, states.pop(k).certified(tol)
    while states:
        if not rounds.looked:
            rounds.improve_parts(states, largest, executor)
            for k in rounds.ended(states):
                yield k, states.pop(k).certified(tol)
        rounds.ascend(list(states.values()))


class _Rounds:
    """The matrix and the passes over it, with a checkpoint of all pairs after each part of them."""

    def __init__(
        self, source: Source, every: list[RoundState], tol: float, watch: RoundWatch
    ) -> None:
        self._source, self._tol, self._watch = source, tol, watch
        self._counts = {"passes": 0, "ascents": 0, "looked": 0}
        self._kept = watch.kept(Together(every, self._counts))
        self._entry = float(np.abs(source.diagonal()).max())

    def improve_parts(
        self, states: dict[int, RoundState], largest: int, executor: Executor
    ) -> None:
        """Solve a subproblem of each pair in its worst variables."""
        while open_ := {k: state for k, state in states.items() if not state.improved}:
            tasks = [
                (state.part(k, self._source, largest), state.left, self._tol)
                for k, state in open_.items()
            ]
            for found in executor.run(improve_part, tasks):
                states[found.number].take(found)
                self._kept.keep()

    def ended(self, states: dict[int, RoundState]) -> list[int]:
        """Recompute the gradients; the numbers of the pairs that have ended."""
        begun = self._renew_gradients(list(states.values()))
        self._counts["passes"] += 1
        for state in states.values():
            state.left = unfinished(state.pair.dual, state.b, state.f, self._tol, self._entry)
            state.ended = not state.left or not state.moved or self._counts["passes"] > MAX_PASSES
            state.moved = state.improved = False
        self._counts["looked"] = 1
        self._kept.keep()
        self._watch.checkpoint.drop(*begun)
        return [k for k, state in states.items() if state.ended]

    @property
    def looked(self) -> bool:
        """Whether the gradients are known, and conjugate gradients are next."""
        return bool(self._counts["looked"])

    def _renew_gradients(self, states: list[RoundState]) -> list[str]:
        """Recompute the gradients s - K b of the unfinished columns; the entries of the pass."""
        wanted = [(state, c) for state in states for c in state.left]
        vectors = [(state.pair.members, state.b[c]) for state, c in wanted]
        found, begun = self._products(vectors)
        for (state, c), product in zip(wanted, found, strict=True):
            state.f[c] = state.pair.dual.sign - product
        return begun

    def _products(self, vectors: list[tuple[Indices, Floats]]) -> tuple[list[Floats], list[str]]:
        """Products with sparse vectors in one pass, and the names of its entries."""
        what = [self._watch.name, *(values for _, values in vectors)]
        with passes_kept(self._watch.checkpoint, *what) as begun:
            return list(products(self._source, vectors)), begun

    def ascend(self, states: list[RoundState]) -> None:
        """Run conjugate gradients in all columns where that helps."""
        solvers = [
            _FreeSetCG(state, c, self._tol, self._entry) for state in states for c in state.left
        ]
        for state in states:
            state.ascends = True
        while self._counts["ascents"] < MAX_PASSES:
            solvers = [solver for solver in solvers if solver.worthwhile]
            if not solvers:
                break
            vectors = [(solver.members, solver.direction) for solver in solvers]
            found, begun = self._products(vectors)
            for solver, product in zip(solvers, found, strict=True):
                solver.move(product)
            self._counts["ascents"] += 1
            self._kept.keep()
            self._watch.checkpoint.drop(*begun)
        passes = self._counts["passes"] + self._counts["ascents"]
        self._counts.update(passes=passes, ascents=0, looked=0)
        for state in states:
            state.ascends = False
        if states:  # whoever has all fits may have dropped the entry
            self._kept.keep()


@dataclass(frozen=True, eq=False)
class PartTask:
    """Subproblems of a pair: chosen variables, their coefficients and gradients, (columns, m)."""

    number: int
    source: Source
    pair: Pair
    chosen: Indices
    b: Floats
    f: Floats


def improve_part(task: PartTask, columns: list[int], tol: float) -> SetSolution:
    """Solve some columns of the subproblems of a pair: the task that workers run."""
    K = task.source.block(task.pair.members[task.chosen])
    dual = task.pair.dual.part(task.chosen)
    if task.b.any() or (task.f != dual.sign).any():
        # A warm start by the previous column needs all other coefficients of both to be 0.
        dual = replace(dual, chain=1)
    b, f = task.b.copy(), task.f.copy()  # the arrays of a task may be read-only
    steps = Steps.of_task(len(K))
    work = improve(K, dual, b, f, columns, tol / 2, steps)
    finished = bool(work[0].sum() < steps.all)
    return SetSolution(task.number, task.chosen, b, f, work, finished)


class _Ascent(NamedTuple):
    """Numbers of conjugate gradients in a column."""

    tol: float
    """Violation to be reached."""
    rest2: float
    """Squared length of the projected gradient, 0 before the first direction."""
    turns: int
    """Directions since a restart."""
    stops: int
    """Consecutive steps that ended at a bound."""


class _FreeSetCG:
    """Conjugate gradients in the free coefficients of a column, those strictly within bounds.

    All that changes is in the arrays of the state, for its checkpoint.
    """

    def __init__(self, state: RoundState, column: int, tol: float, entry: float) -> None:
        self.members = state.pair.members
        self.direction = state.direction[column]
        self._state = state
        self._dual, self._column = state.pair.dual, column
        self._lower, self._upper = self._dual.bounds(column)
        self._b, self._f, self._free = state.b[column], state.f[column], state.free[column]
        if not state.ascends:
            self._start(_Ascent(least_violation(self._b, self._f, tol, entry), 0.0, 0, 0))

    @property
    def _numbers(self) -> _Ascent:
        return _Ascent(*self._state.ascent[self._column])

    def _start(self, numbers: _Ascent) -> None:
        """Restart with the coefficients that are free now."""
        self._free[:] = (self._b > self._lower) & (self._b < self._upper)
        self.direction[:] = 0.0
        self._turn(numbers._replace(rest2=0.0, turns=0))

    def _turn(self, numbers: _Ascent) -> None:
        """Next direction: the gradient, projected to a sum of 0, conjugate to earlier ones."""
        within = np.zeros(len(self._b))
        if self._free.any():
            within[self._free] = self._f[self._free] - self._f[self._free].mean()
        rest2 = float(within @ within)
        self.direction *= rest2 / numbers.rest2 if numbers.rest2 else 0.0
        self.direction += within
        if self._free.any():
            # Rounding leaves a sum, the steepest direction of all, which would grow step by step.
            self.direction[self._free] -= self.direction[self._free].mean()
        self._state.ascent[self._column] = numbers._replace(rest2=rest2, turns=numbers.turns + 1)

    @property
    def worthwhile(self) -> bool:
        """Whether enough violation is left among the free coefficients."""
        numbers = self._numbers
        # In exact arithmetic, one direction for each free coefficient would be enough.
        tired = numbers.turns > MOST_TURNS * max(1, int(self._free.sum()))
        if tired or numbers.stops >= PATIENCE or not numbers.rest2:
            return False
        spread = float(np.ptp(self._f[self._free]))
        violation, _ = violation_and_intercept(self._dual, self._column, self._b, self._f)
        return spread > numbers.tol / 2 and spread > WORTHWHILE * violation

    def move(self, product: Floats) -> None:
        """Step along the direction to the optimum or to the first bound.

        The product is that of the matrix with the direction, (n,).
        """
        self._state.moved = True
        d, numbers = self.direction, self._numbers
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
            self._turn(numbers._replace(stops=0))
        else:
            self._b[first] = ends[first]
            self._start(numbers._replace(stops=numbers.stops + 1))
