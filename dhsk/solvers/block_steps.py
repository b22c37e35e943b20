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

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import ClassVar, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import KeptState
from dhsk.solvers.box import BoxProblem
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.dual import (
    MAX_STEPS,
    Fit,
    certify,
    least_violation,
    start_from_smaller_box,
)
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import ascend, matrix_bytes, settle
from dhsk.solvers.sources import Combination, Source
from dhsk.solvers.together import PairState, Together
from dhsk.solvers.working_set import highest

BLOCK: Final = 2048
SMALLEST_BLOCK: Final = 64
"""Samples of a block, and fewest where memory is scarce."""

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

_BEFORE_EXACT, _AFTER_EXACT = 0.6, 0.9
"""How far a problem is when its gradients are first computed from the matrix itself, and then."""

_JOINING: Final = 2.5
"""Power of the share of samples that violate no more which tells the share of time: those that
violate least are soon right. Measured on two sets of 60,000: 1.6 to 5."""

_SPREAD: Final = 0.6180339887498949  # golden ratio: any first samples are spread evenly


class BlockState(PairState):
    """State of a problem on some samples of a source."""

    ARRAYS: ClassVar[tuple[str, ...]] = (
        "b", "f", "active", "pending", "recent", "exact_b", "exact_f",
    )  # fmt: skip
    VALUES: ClassVar[tuple[str, ...]] = (
        "begun", "fresh", "ended", "computed", "outer", "best", "since", "steps", "entries",
        "open", "most_open",
    )  # fmt: skip

    def __init__(
        self, problem: BoxProblem, members: Indices, b: Floats, f: Floats | None = None
    ) -> None:
        self.problem, self.members = problem, members
        """The problem, and its samples among those of the source, (n,)."""
        self.b, self.f = b.copy(), problem.linear.copy() if f is None else f.copy()
        """Coefficients and gradients, (n,); of samples that are not active those of an earlier
        step."""
        self.active, self.recent = np.arange(len(b)), np.zeros(0, np.intp)
        """Samples whose gradients are known, ascending, and samples of the last block."""
        self.pending, self.exact_b, self.exact_f = np.zeros((3, len(b)))
        """Changes of coefficients since the gradients of other samples were known, (n,); and
        coefficients and gradients when these were last computed from the matrix itself, (n,)."""
        self.begun, self.fresh, self.ended = False, False, False
        """Whether the gradients are known, are those of no step, and whether it is solved."""
        self.knows_gradients = f is not None or not b.any()
        self.outer, self.best, self.since = np.inf, np.inf, 0
        """Violation when all samples were looked at; the smallest one since, and steps after it."""
        self.computed = self.steps = self.entries = 0
        """How often gradients were computed from the matrix itself; steps of two samples, and
        entries of columns computed, so far."""
        self.open = self.most_open = 0
        """Fewest and most samples so far that violate the conditions."""

    @property
    def looks_at_all(self) -> bool:
        """Whether all gradients are known."""
        return len(self.active) == len(self.members)

    def open_gradients(self) -> tuple[Floats, Floats]:
        """Gradients of active samples that may grow, and negative ones of those that may shrink.

        The others are -inf.
        """
        own = self.problem.part(self.active)
        grows, shrinks = own.sides(self.b[self.active], self.f[self.active])
        return grows, -shrinks

    def violation(self, tol: float = 0.0) -> float:
        """KKT violation of the active samples, of which those beyond tol are counted."""
        grow, shrink = self.open_gradients()
        middle = (grow.max() - shrink.max()) / 2
        beyond = np.maximum(grow - middle, shrink + middle) > tol / 2
        count = int(np.count_nonzero(beyond))
        self.open = min(count, self.open) if self.most_open else count
        self.most_open = max(count, self.most_open)
        return max(0.0, float(grow.max() + shrink.max()))

    @property
    def share(self) -> float:
        """About how far the problem is, from 0 to 1."""
        if self.computed:
            return 1.0 if self.ended else _AFTER_EXACT
        joined: float = (1 - self.open / max(1, self.most_open)) ** _JOINING
        return _BEFORE_EXACT * joined

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
        self.active = np.arange(len(self.members))
        self.narrow()

    def worst(self, size: int) -> Indices:
        """Samples of a block: what was free in the last one, and the worst from both sides."""
        grow, shrink = self.open_gradients()
        if not self.b.any():  # all gradients of a class are equal
            spread = np.arange(len(grow)) * _SPREAD % 1.0 * np.abs(self.f).max()
            grow, shrink = grow - spread, shrink - spread
        recent = np.isin(self.active, self.recent, assume_unique=True)
        free = np.flatnonzero(recent & (grow > -np.inf) & (shrink > -np.inf))
        order = np.argsort(-np.maximum(grow[free], shrink[free]), kind="stable")
        kept = free[order[: size // 2]]
        grow[kept] = shrink[kept] = -np.inf
        up = highest(grow, (size - len(kept)) // 2)
        shrink[up] = -np.inf
        down = highest(shrink, size - len(kept) - len(up))
        return np.asarray(self.active[np.sort(np.concatenate([kept, up, down]))])

    def take(self, chosen: Indices, b: Floats, steps: int) -> None:
        """Take the coefficients of a block that was solved in some steps."""
        self.pending[chosen] += b - self.b[chosen]
        self.b[chosen] = b
        self.recent, self.fresh = chosen, False
        self.steps += steps

    def improves(self, violation: float) -> bool:
        """Whether steps still lead to smaller violations."""
        if violation < self.best:
            self.best, self.since = violation, 0
        else:
            self.since += 1
        patience = PATIENCE + PATIENCE_OF_BLOCK * len(self.members) // BLOCK
        return self.since < patience and self.computed < POLISHES


@dataclass(frozen=True)
class BlockSteps:
    """How problems are solved in steps on blocks."""

    source: Source
    quick: Source
    """The matrix, and what `Source.approximate` makes of it, or itself."""
    tol: float
    """Tolerance of the KKT violation."""
    room: int
    """Bytes for the matrix of a block."""

    @cached_value
    def size(self) -> int:
        """Samples of a block."""
        size = BLOCK
        while size > SMALLEST_BLOCK and matrix_bytes(size, self.source.dtype) > self.room:
            size //= 2
        return size

    @cached_value
    def entry(self) -> float:
        """Largest entry of the matrix."""
        return float(np.abs(self.source.diagonal()).max())

    def solve(self, state: BlockState, kept: KeptState | None = None) -> Iterator[float]:
        """Solve a problem; yield the violation before each step, and at the end."""
        while not state.ended:
            yield self._advance(state)
            if kept is not None:
                kept.keep(last=state.ended)

    def _advance(self, state: BlockState) -> float:
        """Make a step, look at all samples, compute the gradients anew, or end; the violation."""
        if not state.begun:
            if not state.knows_gradients:
                self._compute(state, self.quick)
            state.begun = True
            state.narrow()
        violation = state.violation(self.tol)
        least = least_violation(state.b, state.f, self.tol, self.entry)
        goal = least / 2 if state.computed < APPROXIMATE and not state.fresh else least
        if violation > goal and state.improves(violation):
            self._go_on(state, goal, violation)
        elif state.fresh:  # solved, or rounding lets nothing more be gained
            state.ended = True
        else:
            self._compute_exactly(state)
        return violation

    def _go_on(self, state: BlockState, goal: float, violation: float) -> None:
        """Make a step, or look at all samples if the active ones are near to the optimum."""
        if violation > CLOSER * state.outer:
            self._step(state, max(goal, INNER * violation))
        elif state.looks_at_all:
            state.narrow()
        else:
            others = np.setdiff1d(np.arange(len(state.b)), state.active, assume_unique=True)
            self._subtract(state, self.quick, others, state.pending)
            state.widen()

    def _compute(self, state: BlockState, source: Source) -> None:
        """Compute the gradients of all samples from the support vectors."""
        state.f[:] = state.problem.linear
        self._subtract(state, source, np.arange(len(state.b)), state.b)
        state.widen()

    def _compute_exactly(self, state: BlockState) -> None:
        """Compute the gradients from the matrix itself: from those of the last time, if any."""
        changes = state.b - state.exact_b
        if state.computed and np.count_nonzero(changes) < np.count_nonzero(state.b):
            state.f[:] = state.exact_f
            self._subtract(state, self.source, np.arange(len(state.b)), changes)
            state.widen()
        else:
            self._compute(state, self.source)
        state.exact_b, state.exact_f = state.b.copy(), state.f.copy()
        state.computed, state.fresh = state.computed + 1, True

    def _step(self, state: BlockState, goal: float) -> None:
        """Solve the problem in the worst samples, and change the gradients of all active ones."""
        source = self.quick if state.computed < APPROXIMATE else self.source
        chosen = state.worst(self.size)
        own, b, f = state.problem.part(chosen), state.b[chosen], state.f[chosen]
        K = source.block(state.members[chosen])
        K = K.astype(np.float32, copy=False) if source is self.quick else K
        steps, _ = ascend(K, (own.lower, own.upper), b, f, goal, MAX_STEPS, zone=own.zone)
        own.settle(b)
        change = np.zeros(len(state.b))
        change[chosen] = b - state.b[chosen]
        state.take(chosen, b, steps)
        self._subtract(state, source, state.active, change)

    def _subtract(self, state: BlockState, source: Source, rows: Indices, coef: Floats) -> None:
        """Subtract columns times coefficients, (n,), from the gradients of some samples."""
        columns = np.flatnonzero(coef)
        if not len(columns):
            return
        kind = source.dtype
        if source is not self.quick:  # stored samples are read in their order
            kind = np.dtype(np.float64)
            rows, columns = (own[np.argsort(state.members[own])] for own in (rows, columns))
        values = coef[columns, None].astype(kind, copy=False)
        part = Combination(state.members[rows], state.members[columns], values)
        (found,) = source.combine([part])
        state.f[rows] -= found[:, 0]
        state.entries += part.entries


def solve_pair(steps: BlockSteps, pair: Pair, start: Floats | None, watch: RoundWatch) -> list[Fit]:
    """Solve the problems of a pair, column by column, from coefficients, (columns, n), or from 0.

    Rounds say how far the pair is. Entries of the columns stay in the checkpoint, see
    `entries_of_pair`.
    """
    dual = pair.dual
    b = np.zeros(dual.shape) if start is None else start.copy()
    f, work = np.broadcast_to(dual.sign, dual.shape).copy(), np.zeros((2, len(b)))
    for c, name in enumerate(entries_of_pair(pair, watch)):
        begin, known = perf_counter(), not b[c].any()
        if dual.trivial(c):
            b[c] = 0.0
            continue
        if known and c % dual.chain:
            start_from_smaller_box(dual, b, f, c)
            settle(b[c], *dual.bounds(c))
        problem = BoxProblem(dual.sign, *dual.bounds(c))
        state = BlockState(problem, pair.members, b[c], f[c] if known else None)
        for violation in steps.solve(state, watch.checkpoint.state(Together([state], {}), name)):
            watch.on_round(_round(state, violation, (c + state.share) / len(b)))
        b[c], f[c] = state.b, state.f
        work[:, c] = state.steps, perf_counter() - begin
    return certify(dual, b, f, work, steps.tol)


def entries_of_pair(pair: Pair, watch: RoundWatch) -> list[str]:
    """Names of the entries of the columns of a pair in a checkpoint."""
    return [f"{watch.name}-{c}" for c in range(pair.dual.shape[0])]


def _round(state: BlockState, violation: float, share: float) -> Round:
    support, n = int(np.count_nonzero(state.b)), len(state.b)
    return Round(
        pairs=1,
        ended=int(state.ended),
        support=support,
        violation=violation,
        entries=state.entries,
        needed=support * n,
        share=share,
    )
