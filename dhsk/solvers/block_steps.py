"""Problems of many support vectors, solved in steps on blocks of the worst samples.

A step solves the problem in the `BLOCK` samples that violate the optimality conditions most, whose
matrix is small, and changes the gradients of others by the columns whose coefficients it has
changed [1]_ [2]_. Nothing grows with the number of support vectors but these columns, about two for
each. Samples that are far from violating wait until all others are ten times nearer to the optimum.

Steps are on an approximation of the matrix, in single precision. Gradients are then computed anew
from the matrix itself, and further steps change them by so little that no digit is lost, as in
iterative refinement. The certificate is that of any solver.

Rejected: columns kept from step to step (the first use of memory takes longer than computing what
few features give).

References
----------
.. [1] T. Joachims, "Making large-scale SVM learning practical", Advances in Kernel Methods (1999).
.. [2] Z. Wen et al., "ThunderSVM: a fast SVM library on GPUs and CPUs", JMLR 19 (2018).
"""

from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.dual import (
    MAX_STEPS,
    Fit,
    certify,
    least_violation,
    start_from_smaller_box,
)
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import ascend, settle
from dhsk.solvers.sources import Combination, Source
from dhsk.solvers.together import PairState, Together
from dhsk.solvers.working_set import highest

BLOCK: Final = 2048
"""Samples of a block."""

INNER: Final = 0.1
"""Violation to which a block is solved, as a share of that of all samples."""

NEAR: Final = 2.0
"""Distance from violating within which samples are active, as a multiple of the violation."""

CLOSER: Final = 0.1
"""Violation of the active samples, as a share of that of all, after which all are looked at."""

WORTHWHILE: Final = 0.8
"""Largest share of active samples: with more of them all are."""

APPROXIMATE: Final = 2
"""How often gradients are computed anew after steps on the approximation."""

POLISHES: Final = 5
"""How often gradients are computed anew at most."""

PATIENCE: Final = 20
PATIENCE_OF_BLOCK: Final = 4
"""Steps without a smaller violation after which gradients are computed anew: so many, and so many
for each block of all samples. While support vectors join, violations rise and fall."""

_SPREAD: Final = 0.6180339887498949  # golden ratio: any first samples are spread evenly


class BlockState(PairState):
    """State of the problems of a pair, of which one column after the other is solved.

    Attributes
    ----------
    b, f, work
        Coefficients, gradients, and steps and seconds, as of a working set.
    column
        Column that is being solved.
    active
        Samples whose gradients are known, ascending.
    pending
        Changes of coefficients since the gradients of other samples were known, (n,).
    recent
        Samples of the last block.
    begun, fresh
        Whether the gradients of the column are known, and are those of no step.
    computed
        How often gradients have been computed from the matrix itself.
    outer, best, since
        Violation when all samples were looked at; the smallest one since, and steps after it.
    entries
        Entries of columns computed so far.
    """

    ARRAYS: ClassVar[tuple[str, ...]] = ("b", "f", "work", "active", "pending", "recent")
    VALUES: ClassVar[tuple[str, ...]] = (
        "column", "begun", "fresh", "computed", "outer", "best", "since", "entries",
    )  # fmt: skip

    def __init__(self, pair: Pair, b: Floats | None = None) -> None:
        dual = pair.dual
        self.pair = pair
        self.b = np.zeros(dual.shape) if b is None else b
        self.f = np.broadcast_to(dual.sign, dual.shape).copy()
        self.work = np.zeros((2, dual.shape[0]))
        self.column, self.entries = -1, 0
        self.next_column()

    def next_column(self) -> None:
        """Go on to the next column."""
        n = self.b.shape[1]
        self.column += 1
        self.active, self.pending, self.recent = np.arange(n), np.zeros(n), np.zeros(0, np.intp)
        self.begun = self.fresh = False
        self.computed = 0
        self.outer = self.best = np.inf
        self.since = 0

    @property
    def ended(self) -> bool:
        """Whether all columns are solved."""
        return bool(self.column == len(self.b))

    @property
    def looks_at_all(self) -> bool:
        """Whether all gradients are known."""
        return bool(len(self.active) == self.b.shape[1])

    def own(self, some: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """Coefficients, gradients, and lower and upper bounds of some samples in the column."""
        part, c = self.pair.dual.sign[some] * self.pair.dual.boxes[self.column, some], self.column
        return self.b[c, some], self.f[c, some], np.minimum(part, 0.0), np.maximum(part, 0.0)

    def open_gradients(self) -> tuple[Floats, Floats]:
        """Gradients of active samples that may grow, and negative ones of those that may shrink.

        The others are -inf.
        """
        b, f, lower, upper = self.own(self.active)
        return np.where(b < upper, f, -np.inf), np.where(b > lower, -f, -np.inf)

    def violation(self) -> float:
        """KKT violation of the active samples."""
        grow, shrink = self.open_gradients()
        return max(0.0, float(grow.max() + shrink.max()))

    def narrow(self) -> None:
        """Keep those samples active that are free, or near to violating; all are known."""
        grow, shrink = self.open_gradients()
        middle = (grow.max() - shrink.max()) / 2
        self.outer = max(0.0, float(grow.max() + shrink.max()))
        self.best, self.since = np.inf, 0
        self.pending[:] = 0.0
        nearest = np.maximum(grow - middle, shrink + middle)
        near = np.flatnonzero(nearest > -NEAR * self.outer)
        if 0 < len(near) <= WORTHWHILE * len(nearest):
            self.active = near

    def widen(self) -> None:
        """Look at all samples, whose gradients are known again."""
        self.active = np.arange(self.b.shape[1])
        self.narrow()

    def worst(self) -> Indices:
        """Samples of a block: what was free in the last one, and the worst from both sides."""
        grow, shrink = self.open_gradients()
        if not self.b[self.column].any():  # all gradients of a class are equal
            spread = np.arange(len(grow)) * _SPREAD % 1.0
            grow, shrink = grow - spread, shrink - spread
        recent = np.isin(self.active, self.recent, assume_unique=True)
        free = np.flatnonzero(recent & (grow > -np.inf) & (shrink > -np.inf))
        order = np.argsort(-np.maximum(grow[free], shrink[free]), kind="stable")
        kept = free[order[: BLOCK // 2]]
        grow[kept] = shrink[kept] = -np.inf
        up = highest(grow, (BLOCK - len(kept)) // 2)
        shrink[up] = -np.inf
        down = highest(shrink, BLOCK - len(kept) - len(up))
        chosen: Indices = self.active[np.sort(np.concatenate([kept, up, down]))]
        return chosen

    def take(self, chosen: Indices, changes: Floats, steps: int) -> None:
        """Take the changes of a block that was solved in some steps of two samples."""
        self.b[self.column, chosen] += changes
        settle(self.b[self.column], *self.pair.dual.bounds(self.column))
        self.pending[chosen] += changes
        self.recent, self.fresh = chosen, False
        self.work[0, self.column] += steps

    def improves(self, violation: float) -> bool:
        """Whether steps still lead to smaller violations."""
        if violation < self.best:
            self.best, self.since = violation, 0
        else:
            self.since += 1
        patience = PATIENCE + PATIENCE_OF_BLOCK * self.b.shape[1] // BLOCK
        return bool(self.since < patience and self.computed < POLISHES)

    def told(self) -> Round:
        """What is known after a step."""
        support, n = int(np.count_nonzero(self.b.any(axis=0))), self.b.shape[1]
        violation = 0.0 if self.ended else self.violation()
        return Round(1, int(self.ended), support, self.entries, support * n, violation)


@dataclass(frozen=True)
class BlockSteps:
    """How pairs are solved in steps on blocks.

    Attributes
    ----------
    source, quick
        The matrix, and `Source.approximate` of it.
    tol
        Tolerance of the KKT violation.
    """

    source: Source
    quick: Source
    tol: float

    @cached_value
    def entry(self) -> float:
        """Largest entry of the matrix."""
        return float(np.abs(self.source.diagonal()).max())

    def solve(self, pair: Pair, start: Floats | None, watch: RoundWatch) -> list[Fit]:
        """Solve the problems of a pair, from coefficients, (columns, n), or from 0."""
        state = BlockState(pair, start)
        kept = watch.kept(Together([state], {}))
        while not state.ended:
            self.advance(state)
            watch.on_round(state.told())
            kept.keep(last=state.ended)
        return certify(pair.dual, state.b, state.f, state.work, self.tol)

    def advance(self, state: BlockState) -> None:
        """Begin a column, make a step, look at all samples, or end it."""
        begin, c = perf_counter(), state.column
        if state.pair.dual.trivial(c):
            state.b[c] = 0.0
            state.next_column()
            return
        if not state.begun:
            self._begin(state)
        violation = state.violation()
        least = least_violation(state.b[c], state.f[c], self.tol, self.entry)
        goal = least / 2 if state.computed < APPROXIMATE else least
        if (
            violation > goal
            and not (state.fresh and violation <= least)
            and state.improves(violation)
        ):
            self._go_on(state, goal, violation)
        elif state.fresh:  # solved, or rounding lets nothing more be gained
            state.next_column()
        else:
            self._compute(state, self.source)
            state.computed, state.fresh = state.computed + 1, True
        state.work[1, c] += perf_counter() - begin

    def _go_on(self, state: BlockState, goal: float, violation: float) -> None:
        """Make a step, after a look at all samples if the active ones are near to the optimum."""
        if violation > CLOSER * state.outer:
            self._step(state, max(goal, INNER * violation))
        elif state.looks_at_all:
            state.narrow()
        else:
            self._look_at_all(state)

    def _begin(self, state: BlockState) -> None:
        """Compute the gradients of a column, from what it begins with."""
        c, dual = state.column, state.pair.dual
        if state.b[c].any():
            self._compute(state, self.quick)
        elif c % dual.chain:
            start_from_smaller_box(dual, state.b, state.f, c)
            settle(state.b[c], *dual.bounds(c))
        state.begun = True
        state.narrow()

    def _compute(self, state: BlockState, source: Source) -> None:
        """Compute the gradients of all samples from the support vectors."""
        c = state.column
        support = np.flatnonzero(state.b[c])
        state.f[c] = state.pair.dual.sign
        self._subtract(state, source, np.arange(len(state.b[c])), support, state.b[c, support])
        state.widen()

    def _look_at_all(self, state: BlockState) -> None:
        """Change the gradients of samples that were not active."""
        others = np.setdiff1d(np.arange(len(state.pending)), state.active, assume_unique=True)
        changed = np.flatnonzero(state.pending)
        self._subtract(state, self.quick, others, changed, state.pending[changed])
        state.widen()

    def _step(self, state: BlockState, goal: float) -> None:
        """Solve the problem in the worst samples, and change the gradients of all active ones."""
        source = self.quick if state.computed < APPROXIMATE else self.source
        chosen = state.worst()
        K = source.block(state.pair.members[chosen])
        K = K.astype(np.float32, copy=False) if source is self.quick else K
        before, f, lower, upper = state.own(chosen)
        b = before.copy()
        steps, _ = ascend(K, (lower, upper), b, f, goal, MAX_STEPS)
        settle(b, lower, upper)
        state.take(chosen, b - before, steps)
        moved = np.flatnonzero(b != before)
        self._subtract(state, source, state.active, chosen[moved], (b - before)[moved])

    def _subtract(
        self, state: BlockState, source: Source, rows: Indices, columns: Indices, coef: Floats
    ) -> None:
        """Subtract columns times coefficients from the gradients of some samples."""
        members = state.pair.members
        kind = source.dtype if source is self.quick else np.dtype(np.float64)
        part = Combination(members[rows], members[columns], coef[:, None].astype(kind, copy=False))
        (found,) = source.combine([part])
        state.f[state.column, rows] -= found[:, 0]
        state.entries += part.entries
