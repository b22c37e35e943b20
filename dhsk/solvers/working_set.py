"""The working set of a pair of classes: which samples it holds, and which are looked at next.

The first set is a sample of both classes. After each solution on the set the gradients of more
samples are computed, in stages: those of larger and larger samples, then of all, then, while
violators join, of those nearest to the margin. In the end no sample of all violates the optimality
conditions. Passes over all samples so begin with coefficients that are nearly right, and are few.

On MNIST, first sets of 2,048 and stages of four times the size took the same time, and as many near
samples as support vectors a fifth more.
"""

import math
from typing import Any, ClassVar, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.dual import Dual, least_violation, most_steps, violation_and_intercept
from dhsk.solvers.problems import Pair
from dhsk.solvers.smo import SINGLE_TOLERANCE
from dhsk.solvers.subproblem import SetSolution, excess_of, middles_of
from dhsk.solvers.together import PairState

FIRST: Final = 1024
"""Most samples of the first set."""

FIRST_SHARE: Final = 32
"""Divisor of the number of samples: their share in the first set, if it is of `LEAST` or more."""

LEAST: Final = 128
"""Least samples of the first set."""

LEAST_OF_CLASS: Final = 16
"""Least samples of each class in a stage, if it has them and they are at most half of the first."""

GROWTH: Final = 8.0
"""Largest ratio of the numbers of samples of consecutive stages."""

NEAREST: Final = 8
"""Divisor of the number of samples: the share that is looked at near the margin."""

JOINING: Final = 1000
"""Violators that may always join, if there is room; more do if there are more support vectors."""

SPARE: Final = 256
"""Least number of samples near the margin that join the set beside the violators: a quarter of the
support vectors if those are more."""

_EXACT, _ROUGH, _UNKNOWN = range(3)
"""How far gradients are known: from float64 entries, from those of a set in float32, or not."""

_SINGLE_ROUNDINGS: Final = 8 * float(np.finfo(np.float32).eps)
"""Largest error of a gradient from entries in float32, for entries and a norm of the coefficients
of 1. Errors of random signs add up to less; the factor 8 is a guess, and looks correct the rest."""

_DIGITS: Final = 9
"""Decimal digits in which the gradients of equal samples agree."""

_DISTINCT: Final = 0.9
"""Share of distinct values among the highest from which on these are chosen as they are. With it,
60,000 samples of 200 kinds of which 0.3 % have a wrong label take 5 rounds in place of 96."""

LAST_SHARE: Final = 8
"""Divisor of the number of samples: the share of the stage before all, if the whole matrix fits.
What is computed up to its solution is 1 to 4 % of the matrix."""

SETTLED: Final = 0.1
"""Violators of a stage, as a share of its support vectors, up to which it counts as solved."""

CLEAR: Final = 0.1
"""Share of support vectors and violators in a stage up to which working sets are sure to pay."""

REPEATS: Final = 3
"""Most further looks at a stage that is not solved."""

SUPPORT_SHARE_OF_FIRST: Final = 0.95
"""Share of support vectors in the first set from which on no more is looked at: 0.3 to 0.8 measured
on pairs of MNIST classes, also with a tenth of the labels drawn at random; 1 where C is tiny."""

SUPPORT_SHARE: Final = 0.22
"""Share of support vectors from which on the whole matrix costs less than columns. It is
extrapolated from two stages: measured on the 45 pairs of MNIST, 0.06 to 0.25, where 0.05 to 0.17
are found; with a tenth of the labels drawn at random, 0.22 to 0.44. Single pairs of 4,000 and
12,000 samples and 5 features took 0.5 to 1.2 times the time of the whole matrix with 0.22, 0.7 to
1.2 with 0.12, and up to 3.4 with 0.35."""

MORE_OF_ALL: Final = 1.6
"""The same for those that are found when all samples have been looked at, as a multiple."""

MAX_ROUNDS: Final = 500
"""Most solutions on the set."""


class WorkingSet(PairState):
    """State of a pair's problems: coefficients, gradients where they are known, and the set."""

    ARRAYS: ClassVar[tuple[str, ...]] = ("b", "f", "work", "members", "ring", "rows", "_doubt")

    VALUES: ClassVar[tuple[str, ...]] = (
        "left", "ended", "for_others", "violation", "single", "solved", "_moved",
        "_rounds", "_repeats", "_foresees", "_seen",
    )  # fmt: skip

    def __init__(
        self,
        pair: Pair,
        tol: float,
        entry: float,
        largest: int,
        leave: float = math.inf,
    ) -> None:
        dual = pair.dual
        self.pair = pair
        self.b = np.zeros(dual.shape)
        self.f = np.broadcast_to(dual.sign, dual.shape).copy()
        """Gradients, as coefficients (columns, n). Of the columns that are left, coefficients
        outside of the set are 0, and gradients are known for `members` and `rows`."""
        self.work = np.zeros((2, len(self.b)))
        """Steps and seconds of the columns, (2, columns)."""
        self.left = [c for c in range(len(self.b)) if not dual.trivial(c)]
        """Columns that are not solved."""
        self.ended, self.for_others = not self.left, False
        """Whether no column is left, or none can be improved, or all are `for_others`: the support
        vectors do not fit, or are so many that the whole matrix costs less."""
        self.violation = 0.0 if self.ended else math.inf
        self.single = tol / 2 >= SINGLE_TOLERANCE
        """Whether entries in float32 will do for the problems on the set."""
        self.solved, self._moved = False, True
        """Whether the problems are solved on the set, and not only begun."""
        self._rounds = self._repeats = 0
        self._doubt = np.full(dual.shape[1], _UNKNOWN, np.uint8)
        self._tol, self._entry, self._largest, self._leave = tol, entry, largest, leave
        self._used = np.flatnonzero(dual.boxes.any(axis=0))
        n = len(self._used)
        first = min(FIRST, max(LEAST, n // FIRST_SHARE), largest)
        self._stages = _stages(dual, self._used, first, n // LAST_SHARE if leave < math.inf else n)
        self.members = self._stages.pop(0)
        """Samples of the set, ascending."""
        # Whether support vectors are to be foreseen; samples and support vectors of a stage.
        self._foresees = leave < math.inf and len(self._stages) > 0
        self._seen: tuple[int, int] | None = None
        self.ring = self.members[:0]
        """Samples nearest to those of the set, ascending, which join it if they are violators."""
        self.rows = self._stages.pop(0) if self._stages else self.members
        """Samples to look at next, ascending."""

    @property
    def columns(self) -> Indices:
        """Columns that are left, as an array."""
        return np.array(self.left, dtype=np.intp)

    @property
    def is_exact(self) -> bool:
        """Whether the gradients of all samples are exact, also of those that no column uses."""
        return not self._doubt.any()

    @property
    def support(self) -> Indices:
        """Samples with a coefficient in a column that is left."""
        return np.flatnonzero(self.b[self.left].any(axis=0))

    @property
    def unknown(self) -> Indices:
        """Samples to look at whose gradients are not those of the present coefficients.

        Those of the last look, at all samples, are to be exact.
        """
        least = _ROUGH if len(self.rows) == len(self._used) else _UNKNOWN
        return self.rows[self._doubt[self.rows] >= least]

    def note(self, rows: Indices) -> None:
        """Note that the gradients of some samples have been computed."""
        self._doubt[rows] = _EXACT

    @property
    def pool(self) -> Indices:
        """Samples of the subproblem's task: those of the set, and then the ring."""
        return np.concatenate([self.members, self.ring])

    def take(self, solution: SetSolution) -> None:
        """Take the solution of the subproblem, and the samples that have joined the set."""
        # Columns that are not left may have support vectors outside of the pool.
        here, left = np.ix_(self.columns, self.pool), self.left
        self._moved = bool((self.b[here] != solution.b[left]).any())
        self.b[here], self.f[here] = solution.b[left], solution.f[left]
        self.work += solution.work
        tired = bool(self.work[0].max() >= most_steps(self.pair.dual.shape[1]))
        self.solved = solution.finished or tired
        if self._moved:
            self._doubt[:] = _UNKNOWN
        self._doubt[self.pool] = _ROUGH if solution.single else _EXACT
        self.single &= self._rounding <= self._tol
        self.members = np.sort(self.pool[solution.inside])
        self.ring = np.setdiff1d(self.ring, self.members, assume_unique=True)
        if not self.solved:
            return
        self._rounds += 1
        if self._foresees:
            self._foresee_from_set()

    @property
    def _rounding(self) -> float:
        """What rounding of the entries to float32 may do to a gradient, many times over."""
        sizes = np.linalg.norm(self.b[self.left], axis=1)
        return _SINGLE_ROUNDINGS * self._entry * float(sizes.max(initial=0.0))

    def _foresee_from_set(self) -> None:
        """Leave the pair to others if the set alone has too many support vectors."""
        support = len(self.support)
        if self._seen is None:
            self._seen = len(self.members), support
            self.for_others = support > SUPPORT_SHARE_OF_FIRST * len(self.members)
        elif self._repeats:
            self.for_others = self._is_too_many(len(self.rows), support)
        self.ended = self.for_others

    def _foresee(self, known: int, violators: int) -> None:
        """Leave the pair to others if a stage has too many support vectors.

        It is solved first, if many of its samples are support vectors or violators.
        """
        support = len(self.support)
        settled = violators <= SETTLED * support
        if not settled and support + violators > CLEAR * known and self._repeats < REPEATS:
            self._repeats += 1
            return
        self._repeats = 0
        support += violators * settled
        self.ended = self.for_others = self._is_too_many(known, support)
        self._seen = known, support

    def _is_too_many(self, count: int, support: int) -> bool:
        """Whether there will be too many support vectors, going by those of some samples.

        Their number grows like a power of the number of samples, known from two stages.
        """
        before, least = self._seen or (0, 0)
        if not 0 < least < support or count <= before:
            return False
        power = math.log(support / least) / math.log(count / before)
        n = len(self._used)
        return bool(support * (n / count) ** min(power, 1.0) > self._leave * n)

    def judge(self) -> None:
        """Choose what is next, now that the gradients of `rows` are known."""
        known = np.flatnonzero(self._doubt < _UNKNOWN)
        everywhere = not self._doubt[self._used].any()
        self.violation, left = self._unfinished(known)
        if everywhere:
            self.left = left
        self._foresees = self._foresees and not everywhere
        excess = self._excess(known)
        violators = int((excess > self._tol / 2).sum()) if left else 0
        if self._foresees:
            self._foresee(len(known), violators)
        if left and self._is_for_others():
            self.ended = self.for_others = True
        if self.ended:
            return
        if left:
            before = self.members
            self._grow(known, excess, violators)
            stuck = not self._moved and np.array_equal(before, self.members)
            if self.single and (stuck or not violators):  # only rounding of entries violates them
                stuck = self.single = False
        if not left or stuck:
            self.ended = everywhere  # solved, or rounding lets nothing more be gained
            self._look_further()
            return
        self.solved = False
        self.ring = self.ring[:0]
        if everywhere:
            self._look_near(known, excess)
        elif self._stages and not self._repeats:
            self._look_further()

    def _look_near(self, known: Indices, excess: Floats) -> None:
        """Look at the samples nearest to the margin until no violator is among them."""
        others = np.where(np.isin(known, self.members, assume_unique=True), -np.inf, excess)
        count = max(len(self._used) // NEAREST, len(self.members) // 2)
        self.ring = np.sort(known[highest(others, min(count, len(self.members)))])
        self.rows = np.union1d(self.members, known[highest(others, count)])

    def values(self) -> dict[str, Any]:
        """JSON values of an entry, with the number of stages that are left."""
        return super().values() | {"stages": len(self._stages)}

    def take_up(self, kept: dict[str, Any]) -> None:
        """Go on from arrays and values of an entry."""
        super().take_up({name: value for name, value in kept.items() if name != "stages"})
        self._stages = self._stages[len(self._stages) - kept["stages"] :]

    def _look_further(self) -> None:
        """Look at the samples of the next stage, or at all."""
        self.rows = self._stages.pop(0) if self._stages else self._used
        self._moved = True  # not known to be in vain, unless the set is solved again before

    def _unfinished(self, known: Indices) -> tuple[float, list[int]]:
        """Largest violation among known samples, and the columns that it leaves unsolved."""
        part, largest, left = self.pair.dual, 0.0, list[int]()
        own: Any = slice(None)
        if len(known) < part.shape[1]:  # else views, as copies are large
            part, own = part.part(known), known
        for c in self.left:
            b, f = self.b[c, own], self.f[c, own]
            violation, _ = violation_and_intercept(part, c, b, f)
            largest = max(largest, violation)
            if violation > least_violation(b, f, self._tol, self._entry):
                left.append(c)
        return largest, left

    def _excess(self, known: Indices) -> Floats:
        """How far beyond the margin each known sample is; -inf for support vectors."""
        dual = self.pair.dual
        middles = middles_of(dual, self.left, self.b, self.f, self.members)
        excess = excess_of(dual, self.f, middles, known)
        excess[np.isin(known, self.support, assume_unique=True)] = -np.inf
        return excess

    def _is_for_others(self) -> bool:
        support = len(self.support)
        if support >= self._largest or self._rounds >= MAX_ROUNDS:
            return True
        return support > MORE_OF_ALL * self._leave * len(self._used)

    def _grow(self, known: Indices, excess: Floats, violators: int) -> None:
        """Make a set of the support vectors, violators, and samples near the margin."""
        support = self.support
        joining = min(violators, 2 * max(JOINING, len(support)))
        joining += max(SPARE, len(support) // 4)
        others = highest(excess, min(joining, self._largest - len(support)))
        self.members = np.union1d(support, known[others])


def highest(values: Floats, count: int) -> Indices:
    """Indices of the highest values, but not of -inf; half of them have other values if they can.

    Equal samples have equal values. They would fill a set, and leave no room for others. But so
    have, where the matrix is nearly diagonal, all samples without a coefficient: 4,000 samples of
    which 60 are of the other class took 450 steps when one of equal values was taken first.
    """
    chosen = np.flatnonzero(values > -np.inf)
    if count >= len(chosen):
        return chosen
    keys = np.round(values[chosen], _DIGITS)
    highest = np.argpartition(-keys, count)[:count]
    if len(np.unique(keys[highest])) >= _DISTINCT * count:
        return chosen[highest]
    order = np.argsort(-keys, kind="stable")
    first, rest = np.split(order, [count // 2])
    _, starts, sizes = np.unique(-keys[rest], return_index=True, return_counts=True)
    copy = np.arange(len(rest)) - np.repeat(starts, sizes)
    others = rest[np.argsort(copy, kind="stable")[: count - len(first)]]
    return np.asarray(chosen[np.concatenate([first, others])])


def _stages(dual: Dual, used: Indices, first: int, last: int) -> list[Indices]:
    """Random samples of both classes, each within the next; the last are all that are used.

    They do not depend on the order in which a file has the classes. Those before all grow from
    about `first` to `last` samples; the first has of every column at least one of each class,
    without which it has no solution.
    """
    rng = np.random.default_rng(0)
    classes = [rng.permutation(used[dual.sign[used] == side]) for side in (1.0, -1.0)]
    least = [own[_first_of_columns(dual.boxes, own)] for own in classes]
    ratio = math.log(max(last / first, 1.0))
    steps = max(1, math.ceil(ratio / math.log(GROWTH)))
    totals = [first * math.exp(ratio * step / steps) for step in range(steps)]
    totals += [last] * (last > first)
    few = max(1, min(LEAST_OF_CLASS, first // 2))
    sizes = [[max(few, math.ceil(m * len(own) / len(used))) for own in classes] for m in totals]
    stages = [
        np.unique(np.concatenate([own[:n] for own, n in zip(classes, counts, strict=True)] + least))
        for counts in sizes
    ]
    return [stage for stage in stages if len(stage) < len(used)] + [used]


def _first_of_columns(boxes: Floats, order: Indices) -> list[int]:
    """Place, in some order, of the first sample of each column that has any."""
    return [int(own.argmax()) for own in (box[order] > 0 for box in boxes) if own.any()]
