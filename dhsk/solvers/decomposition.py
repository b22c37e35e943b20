"""Problems whose matrix is computed on demand, solved on working sets of samples.

A subproblem is solved on a set of samples, whose matrix is in memory. The gradients of all others
follow from the columns of the support vectors alone; those that violate the optimality conditions
join the set, until there are none [1]_. So about two columns of the matrix are computed for each
support vector. All pairs, folds and C share the columns of a round.

Rejected: pairs of variables with a cache of rows, as LIBSVM has it (a row at a time multiplies at a
fraction of GEMM's speed); gradients changed by the columns whose coefficients changed (nearly all
change in a round, and rounding adds up); columns kept from look to look (7 to 37 % recur, at other
rows, and the bits would depend on the memory: 1.25 times the time when tried).

References
----------
.. [1] E. Osuna, R. Freund and F. Girosi, "An improved training algorithm for support vector
   machines", Neural Networks for Signal Processing VII (1997).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Indices, blocks, union
from dhsk.execution.checkpoint import NOWHERE, Checkpoint, KeptState, Resumable
from dhsk.execution.kept_pass import passes_kept
from dhsk.execution.tasks import Executor
from dhsk.solvers.dual import Fit, certify
from dhsk.solvers.problems import REST, Pair
from dhsk.solvers.sources import Combination, Source
from dhsk.solvers.subproblem import SetTask, solve_on_set
from dhsk.solvers.together import Together
from dhsk.solvers.working_set import WorkingSet

APART: Final = 0.25
"""Largest share of coefficients that are not of other pairs, at which each pair is multiplied with
its own columns of a block. Measured: from 0.3 to 0.5 on this takes longer."""


@dataclass(frozen=True)
class Round:
    """What is known after a round."""

    pairs: int
    ended: int
    """Number of pairs of classes, and of those that are solved or left to other solvers."""
    support: int
    """Support vectors so far, summed over the pairs."""
    violation: float
    """Largest KKT violation among the samples that were looked at."""
    left: int = 0
    """Number of pairs that are left."""
    entries: int = 0
    """Entries of columns computed so far."""
    needed: int = 0
    """Entries of the columns of the support vectors so far, each computed once for all pairs."""
    share: float | None = None
    """How far the pairs are, from 0 to 1; None where the columns tell it."""
    part: float = 1.0
    """Share of the whole solution that the columns are."""
    against_rest: bool = False
    """Whether pairs are of a class and the rest."""


@dataclass(frozen=True)
class RoundWatch:
    """Who is told of each round, and where its state is kept."""

    on_round: Callable[[Round], None] = lambda _: None
    checkpoint: Checkpoint = NOWHERE
    name: str = ""
    """Name of the checkpoint's entry, which differs for different problems."""

    def kept(self, state: Resumable) -> KeptState:
        """Restore a state from the entry, and keep it there."""
        return self.checkpoint.state(state, self.name)


@dataclass(frozen=True)
class Decomposition:
    """How pairs are solved on working sets."""

    tol: float
    """Tolerance of the KKT violation."""
    largest: int
    """Most samples of a set."""
    leave: float = math.inf
    """Share of support vectors from which on a pair is left to others."""

    def solve(
        self,
        source: Source,
        pairs: dict[int, Pair],
        executor: Executor,
        watch: RoundWatch | None = None,
    ) -> tuple[dict[int, list[Fit]], dict[int, Floats]]:
        """Solve numbered pairs; the fits of each, and coefficients of those left to others.

        The entry of the checkpoint stays, for a call that is killed later.
        """
        watch = watch or RoundWatch()
        entry = float(np.abs(source.diagonal()).max())
        states = {
            k: WorkingSet(pair, self.tol, entry, self.largest, self.leave)
            for k, pair in pairs.items()
        }
        shared = {"entries": 0, "share": 0.0}
        kept = watch.kept(Together(list(states.values()), shared))
        while some := {k: state for k, state in states.items() if not state.ended}:
            source.expect_columns(shared["share"])
            while not all(state.solved for state in some.values()):
                for _ in _solved_on_sets(source, some, self, executor):
                    kept.keep()
            going_on = [state for state in some.values() if not state.ended]
            split = Pair.sides if len(states) > 1 else _together
            looked, begun = _look(source, going_on, split, watch)
            for state in going_on:
                state.judge()
            share = max(shared["share"], _share(states.values()))
            shared.update(entries=shared["entries"] + looked, share=share)
            kept.keep(last=all(state.ended for state in states.values()))
            watch.checkpoint.drop(*begun)
            every = list(states.values())
            watch.on_round(_round(every, int(shared["entries"]), source.n, split))
        # For those who go on, also in a call that resumes here.
        source.expect_columns(shared["share"])
        left = {k: state.b for k, state in states.items() if state.for_others}
        solved = {k: state for k, state in states.items() if k not in left}
        return {k: self._fits(state, alone=len(pairs) == 1) for k, state in solved.items()}, left

    def _fits(self, state: WorkingSet, *, alone: bool) -> list[Fit]:
        """Fits, with the decision values of other samples where the pair has those of all."""
        dual, f = state.pair.dual, state.f
        fits = certify(dual, state.b, f, state.work, self.tol)
        if not state.is_exact or not (alone or state.pair.second == REST):
            return fits
        others = [np.flatnonzero(box == 0) for box in dual.boxes]
        return [
            replace(fit, outside=dual.sign[own] - f[c, own] + fit.intercept)
            for c, (fit, own) in enumerate(zip(fits, others, strict=True))
        ]


def _share(states: Iterable[WorkingSet]) -> float:
    """Share of the samples that are in working sets, over all pairs."""
    members = sum(len(state.members) for state in states)
    return members / sum(len(state.pair.members) for state in states)


def _round(own: Sequence[WorkingSet], entries: int, n: int, split: "_Split") -> Round:
    support = [np.flatnonzero(state.b.any(axis=0)) for state in own]
    wanted = [
        (state, np.arange(len(state.pair.members)), found)
        for state, found in zip(own, support, strict=True)
    ]
    needed = (_samples_of(sides, n) for sides in _shared_sides(wanted, split).values())
    return Round(
        pairs=len(own),
        ended=sum(state.ended for state in own),
        left=sum(state.for_others for state in own),
        support=sum(map(len, support)),
        entries=entries,
        needed=sum(len(rows) * len(columns) for rows, columns in needed),
        violation=max(state.violation for state in own),
        against_rest=own[0].pair.second == REST,
    )


def _solved_on_sets(
    source: Source, states: dict[int, WorkingSet], how: Decomposition, executor: Executor
) -> Iterator[int]:
    """Solve the subproblems of all pairs whose set has changed, and yield the number of each."""
    # The largest first, so that none is alone at the end.
    largest_first = sorted(states.items(), key=lambda one: -len(one[1].pool))
    tasks = (
        (_task(k, source, state, how.largest), state.left, how.tol / 2)
        for k, state in largest_first
        if not state.solved
    )
    for solution in executor.run(solve_on_set, tasks):
        states[solution.number].take(solution)
        yield solution.number


def _task(number: int, source: Source, state: WorkingSet, largest: int) -> SetTask:
    pair, pool = state.pair, state.pool
    own, samples = source.for_task(pair.members[pool])
    b = state.b[:, state.members]
    return SetTask(number, own, samples, pair.dual.part(pool), b, largest, state.single)


# Gradients


_SUBTRACTED: Final = 1 << 20
"""Gradients from which combinations are subtracted at a time: copies of all ten million are 80 MB
each."""


@dataclass(frozen=True, eq=False)
class _Side:
    """Samples of one class to look at, and support vectors of one class, both of one pair."""

    state: WorkingSet
    rows: Indices
    support: Indices


_Split = Callable[[Pair, Indices], list[tuple[int, Indices]]]
"""Divides samples of a pair into those that pairs may share, with a number."""


def _look(
    source: Source, states: Sequence[WorkingSet], split: _Split, watch: RoundWatch
) -> tuple[int, list[str]]:
    """Compute the gradients of the samples to look at.

    Pairs that share a class share the columns of its support vectors at its own samples, where that
    is less. Returns the number of entries computed, and the names under which sums are in the
    checkpoint.
    """
    wanted = [(state, state.unknown, state.support) for state in states]
    for state, rows, _ in wanted:
        state.note(rows)
        state.f[np.ix_(state.columns, rows)] = state.pair.dual.sign[rows]
    shared = _shared_sides(wanted, split).values()
    groups = [own for sides in shared for own in _least_entries(sides, source.n)]
    parts = [_combination(sides, source.n) for sides in groups]
    given: list[Any] = [one for part in parts for one in (part.rows, part.columns, part.coef)]
    with passes_kept(watch.checkpoint, watch.name, *given) as begun:
        combined = source.combine(parts) if parts else []
    for part, sides, found in zip(parts, groups, combined, strict=True):
        _subtract(part, sides, found)
    return sum(part.entries for part in parts), begun


def _shared_sides(
    wanted: Sequence[tuple[WorkingSet, Indices, Indices]], split: _Split
) -> dict[tuple[int, int], list[_Side]]:
    """Rows and support vectors of some pairs, by what they share."""
    groups: dict[tuple[int, int], list[_Side]] = {}
    for state, rows, support in wanted:
        for own, some in split(state.pair, rows):
            for other, vectors in split(state.pair, support):
                groups.setdefault((own, other), []).append(_Side(state, some, vectors))
    return groups


def _least_entries(sides: list[_Side], n: int) -> list[list[_Side]]:
    """Pairs together, or each alone if few of their samples are the same.

    Those that are nearest to margins are other ones for each pair. Measured on 39,774 recipes of 20
    classes against the rest: four looks of seven took 0.15 to 0.55 of the entries.
    """
    rows, columns = _samples_of(sides, n)
    alone = sum(len(side.rows) * len(side.support) for side in sides)
    return [sides] if len(rows) * len(columns) <= alone else [[side] for side in sides]


def _samples_of(sides: Sequence[_Side], n: int) -> tuple[Indices, Indices]:
    """Rows and columns that several pairs need, among n samples."""
    rows = union([side.state.pair.members[side.rows] for side in sides], n)
    return rows, union([side.state.pair.members[side.support] for side in sides], n)


def _together(pair: Pair, samples: Indices) -> list[tuple[int, Indices]]:
    """All samples of both classes: one pair shares nothing, and larger products are faster."""
    return [(pair.first, samples)] if len(samples) else []


def _combination(sides: Sequence[_Side], n: int) -> Combination:
    """What several pairs need of the same two classes."""
    (rows, columns), places = _samples_of(sides, n), _places(sides)
    coef = np.zeros((len(columns), places[-1].stop))
    for side, place in zip(sides, places, strict=True):
        at = np.searchsorted(columns, side.state.pair.members[side.support])
        coef[at, place] = side.state.b[np.ix_(side.state.columns, side.support)].T
    own = sum(len(side.support) * len(side.state.left) for side in sides)
    ends = tuple(place.stop for place in places) if own <= APART * coef.size else ()
    return Combination(rows, columns, coef, ends)


def _subtract(part: Combination, sides: Sequence[_Side], found: Floats) -> None:
    """Subtract combinations from the gradients of all sides."""
    for side, place in zip(sides, _places(sides), strict=True):
        for some in blocks(len(side.rows), _SUBTRACTED):
            rows = side.rows[some]
            at = np.searchsorted(part.rows, side.state.pair.members[rows])
            side.state.f[np.ix_(side.state.columns, rows)] -= found[at, place].T


def _places(sides: Sequence[_Side]) -> list[slice]:
    """Combinations of each side, one for each of its columns that is left."""
    ends = np.cumsum([len(side.state.left) for side in sides]).tolist()
    return [slice(end - len(side.state.left), end) for side, end in zip(sides, ends, strict=True)]
