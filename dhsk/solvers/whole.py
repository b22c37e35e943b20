"""Problems of pairs of classes, each on its whole matrix in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.caching import cached_value
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.solvers.ball import smallest_ball
from dhsk.solvers.dual import (
    LARGEST_SINGLE,
    Dual,
    Fit,
    Steps,
    certify,
    gradient,
    improve,
    unfinished,
    violations,
)
from dhsk.solvers.problems import Pair
from dhsk.solvers.small import fits_of_small, is_small
from dhsk.solvers.smo import SINGLE_TOLERANCE, largest_entry, matrix_bytes
from dhsk.solvers.sources import Source

FINE_TOLERANCE: Final = 1e-10
"""Violation at which decision values of equivalent problems, such as with weights or with repeated
samples, agree to the nine digits that scikit-learn's checks ask for."""

MORE_STEPS: Final = 4
"""Limit of the steps to `FINE_TOLERANCE`, as a multiple of those before. Measured: from 1e-3 they
take two to three times as many."""

FINE_SAMPLES: Final = 2048
"""Most samples of a problem that is solved to `FINE_TOLERANCE`. Measured on pairs of about 4,000
MNIST images, it took 8 and 25 % more processor time for the whole fit (s = 1, C = 100 and s = 0.7,
C = 10)."""

BALL_TOLERANCE: Final = 1e-3
"""Tolerance of squared radii: bounds on the capacity are rounded up to whole numbers."""

_POLISHES: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""


@dataclass(eq=False)
class BegunPair:
    """Coefficients and gradients of a pair, (columns, n), whose solution is begun.

    A task ends after some steps, so that a killed run does not repeat all of them.
    """

    b: Floats
    f: Floats
    work: Floats
    """Steps and seconds, (2, columns)."""
    in_single: bool = True
    """Whether steps are still made in float32."""
    polishes: int = 0
    """Restarts so far from a recomputed gradient."""

    ARRAYS: ClassVar[tuple[str, ...]] = ("b", "f", "work")

    @classmethod
    def of(cls, dual: Dual) -> Self:
        """Nothing is done."""
        sign = np.broadcast_to(dual.sign, dual.shape).copy()
        return cls(np.zeros(dual.shape), sign, np.zeros((2, dual.shape[0])))

    @classmethod
    def of_entry(cls, kept: Mapping[str, Any]) -> Self:
        """Arrays and values of an entry."""
        return cls(**{name: kept[name] for name in (*cls.ARRAYS, "in_single", "polishes")})

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and JSON values for a checkpoint."""
        arrays = {name: getattr(self, name) for name in self.ARRAYS}
        return arrays, {"in_single": self.in_single, "polishes": self.polishes}

    def copy(self) -> Self:
        """The same in arrays of its own: those of a task may be read-only."""
        return replace(self, b=self.b.copy(), f=self.f.copy(), work=self.work.copy())

    def improve(self, K: NDArray[Any], dual: Dual, columns: Sequence[int], tol: float) -> bool:
        """Make as many steps as a task may; whether the columns are solved."""
        steps = Steps.of_task(len(K))
        untired = [c for c in columns if self.work[0, c] < steps.column]
        work = improve(K, dual, self.b, self.f, untired, tol, steps)
        self.work += work
        return bool(work[0].sum() < steps.all)


class BegunPairs:
    """What tasks have done of pairs that take several, by their keys, and its entries."""

    def __init__(self, entries: Checkpoint, name: str) -> None:
        self._entries, self._name = entries, name
        self._begun: dict[Any, BegunPair] = {}

    def of(self, key: Any, n: int) -> BegunPair | None:
        """What is done of a pair of n samples; a small one has no entry."""
        if key not in self._begun and n > FINE_SAMPLES:
            earlier = self._entries.get(self._name_of(key), BegunPair.of_entry)
            if earlier is not None:
                self._begun[key] = earlier
        return self._begun.get(key)

    def put(self, found: "Unsolved") -> None:
        """Keep what a task has done."""
        self._begun[found.key] = found.begun
        if found.begun.b.shape[1] > FINE_SAMPLES:
            self._entries.put(self._name_of(found.key), *found.begun.entry())

    def drop(self, key: Any) -> None:
        """Forget a pair, which is solved."""
        if self._begun.pop(key, None) is not None:
            self._entries.drop(self._name_of(key))

    def _name_of(self, key: Any) -> str:
        return digest_of(self._name, "begun", key)


@dataclass(frozen=True, eq=False)
class PairTask:
    """A pair of classes on a matrix."""

    key: Any
    """Identifies the task."""
    source: Source
    pair: Pair
    ball: bool = False
    """Whether to compute the smallest ball that contains the samples of the pair."""
    begun: BegunPair | None = None
    """What an earlier task has done."""

    def fits(self, room: int) -> bool:
        """Whether its whole matrix takes at most room bytes."""
        return matrix_bytes(len(self.pair.members), self.source.dtype) <= room

    @property
    def columns(self) -> int:
        """Number of problems."""
        return self.pair.dual.shape[0]


Solved: TypeAlias = tuple[Any, list[Fit], float]
"""Key of a task, one fit for each of its columns, and the squared radius of the ball, or 0."""


class Unsolved(NamedTuple):
    """Key of a task whose steps were not enough, and what they have done."""

    key: Any
    begun: BegunPair
    is_tired: bool = False
    """Whether another task should not go on in the same way."""


class Block:
    """The matrix of some samples in memory, (n, padded(n)), which several problems may share."""

    def __init__(self, K: NDArray[Any]) -> None:
        self.K = K
        self.entry = largest_entry(K)

    @cached_value
    def half(self) -> NDArray[Any]:
        """The same in float32, unless steps would overflow there."""
        return self.K.astype(np.float32, copy=False) if self.entry <= LARGEST_SINGLE else self.K

    @cached_value
    def radius2(self) -> float:
        """Squared radius of the ball that contains the samples."""
        return smallest_ball(self.K, BALL_TOLERANCE).radius2


def solve_whole(
    task: PairTask, tol: float, fine: bool, block: Block | None = None
) -> Solved | Unsolved:
    """Solve a pair whose matrix fits in memory, or go on with it: the task that workers run.

    All columns are solved to a KKT violation of tol. With `fine`, float64 matrices of up to
    `FINE_SAMPLES` samples are solved to `FINE_TOLERANCE` if `MORE_STEPS` are enough. This is for a
    model that is kept: in a grid, where the steps take most of the time, tol is enough.
    """
    block = block or Block(task.source.block(task.pair.members))
    fits = None
    if task.begun is None and is_small(block.K):
        tols = tol, FINE_TOLERANCE if fine else 0.0
        limits = _POLISHES, MORE_STEPS
        fits = fits_of_small(block.K, task.pair.dual, tols, limits, block.entry)
    if fits is None:
        begun = BegunPair.of(task.pair.dual) if task.begun is None else task.begun.copy()
        fits = _improved(block, task.pair.dual, begun, tol, fine)
    if fits is None:
        return Unsolved(task.key, begun)
    return task.key, fits, block.radius2 if task.ball else 0.0


def _improved(
    block: Block, dual: Dual, begun: BegunPair, tol: float, fine: bool
) -> list[Fit] | None:
    """Fits of all columns, or None where the steps of a task were not enough."""
    K, entry, columns = block.K, block.entry, range(dual.shape[0])
    if begun.in_single:
        # Steps are bound by memory bandwidth: in float32 they take 0.7 to 0.8 of the time. The rest
        # of the way, if any is left, starts from a recomputed gradient in the matrix's own type.
        if not begun.improve(block.half, dual, columns, max(tol, SINGLE_TOLERANCE)):
            return None
        begun.f, begun.in_single = gradient(K, dual, begun.b), False
    while begun.polishes < _POLISHES:
        left = unfinished(dual, begun.b, begun.f, tol, entry)
        if not left:
            break
        if not begun.improve(K, dual, left, tol):
            return None
        begun.f, begun.polishes = gradient(K, dual, begun.b), begun.polishes + 1
    if fine and K.dtype == np.float64 and len(K) <= FINE_SAMPLES:
        _refine(K, dual, begun, entry, tol)
    return certify(dual, begun.b, begun.f, begun.work, tol)


def _refine(K: NDArray[Any], dual: Dual, begun: BegunPair, entry: float, tol: float) -> None:
    """Go on to `FINE_TOLERANCE`, where that ends within tol."""
    before, most_violated = begun.b.copy(), np.maximum(violations(dual, begun.b, begun.f), tol)
    for column in unfinished(dual, begun.b, begun.f, FINE_TOLERANCE, entry):
        most = int(MORE_STEPS * begun.work[0, column])
        steps = Steps(most, most)
        begun.work += improve(K, dual, begun.b, begun.f, [column], FINE_TOLERANCE, steps)
    begun.f = gradient(K, dual, begun.b)
    # Violations rise and fall on the way: where the limit ends it, one may be above tol again.
    worse = violations(dual, begun.b, begun.f) > most_violated
    if worse.any():
        begun.b[worse] = before[worse]
        begun.f = gradient(K, dual, begun.b)
