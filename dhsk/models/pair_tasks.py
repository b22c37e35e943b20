"""Problems of all pairs of classes on kernel matrices, as tasks of them are sent to workers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Condition, Lock
from typing import Any, NamedTuple

import numpy as np

from dhsk.arrays import Codes, Floats, Indices
from dhsk.caching import cached_value
from dhsk.execution.tasks import told_as
from dhsk.solvers.dual import Fit
from dhsk.solvers.held_out import SupportVectors, held_out_decisions
from dhsk.solvers.problems import (
    REST,
    MultiClass,
    classes_of_problems,
    make_pair,
    members_of_classes,
)
from dhsk.solvers.smo import matrix_bytes
from dhsk.solvers.sources import Source
from dhsk.solvers.whole import (
    BegunPair,
    Block,
    PairTask,
    Solved,
    Unsolved,
    solve_whole,
)


@dataclass(frozen=True, eq=False)
class PairFits:
    """Fits of a kernel, in the unit of its matrix, see `dhsk.models.rescaling`."""

    fits: list[list[Fit]]
    """Fits of each pair, one for every column."""
    radii2: list[float]
    """Squared radius of the ball of each pair, or 0."""
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """The matrix of a kernel, and the values of C of all pairs of classes."""

    source: Source
    C: tuple[float, ...]
    """Upper bounds on the dual coefficients, ascending."""
    unit: float = 1.0
    """Unit of the matrix, see `dhsk.models.rescaling`."""
    name: str = ""
    """Identifies the problems in a checkpoint."""


class PairPart(NamedTuple):
    """Problems of one task: a pair of classes on some folds, with every C."""

    kernel: int
    pair: int
    folds: tuple[int, ...]


@dataclass(eq=False)
class _Lent:
    """A matrix, and the number of tasks that use it."""

    users: int = 0
    block: Block | None = None
    lock: Any = field(default_factory=Lock)


class SharedBlocks:
    """Matrices of all samples, by the number of their kernel, which the tasks of a process share.

    There are at most `most` of them, or with 0 as many as tasks at a time. One that no task uses is
    freed when another one is wanted.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._changed = Condition()
        self._lent: dict[int, _Lent] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Without matrices, which another process computes."""
        return SharedBlocks, (self._most,)

    @contextmanager
    def lent(self, kernel: int, make: Callable[[], Block]) -> Iterator[Block]:
        """The matrix of a kernel; who comes while it is computed waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_room_for(kernel))
            own = self._lent.setdefault(kernel, _Lent())
            own.users += 1
        try:
            with own.lock:
                if own.block is None:
                    own.block = make()
                    _ = own.block.half  # else each task that comes now would make one
            yield own.block
        finally:
            with self._changed:
                own.users -= 1
                self._changed.notify_all()

    def _has_room_for(self, kernel: int) -> bool:
        """Whether a matrix is there, or may be made; what is not used makes room for it."""
        if kernel in self._lent:
            return True
        used = {k: own for k, own in self._lent.items() if own.users}
        if self._most and len(used) >= self._most:
            return False
        self._lent = used
        return True


@dataclass(frozen=True, eq=False)
class SharedProblems:
    """Problems of all pairs of classes on some matrices: each process is sent them once."""

    codes: Codes
    weights: Floats
    problems: tuple[MatrixProblem, ...]
    balls: bool
    multi_class: MultiClass = "ovo"
    blocks: SharedBlocks = field(default_factory=SharedBlocks)

    @cached_value
    def classes(self) -> list[Indices]:
        """Samples of each class."""
        return members_of_classes(self.codes)

    @cached_value
    def pairs(self) -> list[tuple[int, int]]:
        """The two classes of each problem."""
        return classes_of_problems(len(self.classes), self.multi_class)

    @cached_value
    def sizes(self) -> list[int]:
        """Number of samples of each problem."""
        counts = list(map(len, self.classes))
        return [sum(counts) if b == REST else counts[a] + counts[b] for a, b in self.pairs]

    def bytes_of(self, parts: Sequence[PairPart]) -> int:
        """Bytes of the largest matrix of some parts, which are solved one after the other."""
        dtypes = (self.problems[part.kernel].source.dtype for part in parts)
        sizes = (self.sizes[part.pair] for part in parts)
        return max(map(matrix_bytes, sizes, dtypes))

    def task(self, part: PairPart, begun: BegunPair | None = None) -> PairTask:
        """Problems of a part, on its matrix, of which some may be done."""
        problem = self.problems[part.kernel]
        C = [value * problem.unit for value in problem.C]
        every = len(part.folds) == len(self.weights)
        weights = self.weights if every else self.weights[list(part.folds)]
        pair = make_pair(self.pairs[part.pair], self.classes, weights, C)
        ball = self.balls and 0 in part.folds  # the same for every fold
        return PairTask(part, problem.source, pair, ball, begun)

    def block(self, part: PairPart) -> AbstractContextManager[Block | None]:
        """The matrix that problems of all samples share; None for those that have their own."""
        if self.multi_class != "ovr" and len(self.classes) > 2:
            return nullcontext()
        members, source = np.concatenate(self.classes), self.problems[part.kernel].source
        return self.blocks.lent(part.kernel, lambda: Block(source.block(members)))


def _words_of(_shared: Any, parts: Sequence[PairPart], *_: Any) -> str:
    """Problems of some parts, in words."""
    part = parts[0]
    folds = f"fold {part.folds[0]}" if len(part.folds) == 1 else f"{len(part.folds)} folds"
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return f"problem {part.pair} of kernel {part.kernel}, {folds}{more}"


def _memory_of(shared: Any, parts: Sequence[PairPart], *_: Any) -> int:
    """Bytes of a task; `shared` is as the executor has given it."""
    problems: SharedProblems = getattr(shared, "value", shared)
    return problems.bytes_of(parts)


@told_as(_words_of, _memory_of)
def solve_parts(
    shared: SharedProblems,
    parts: Sequence[PairPart],
    begun: Sequence[BegunPair | None],
    tol: float,
    fine: bool,
) -> list[Solved | Unsolved]:
    """Solve the problems of some parts on their whole matrices: the task that workers run."""
    found = []
    for part, own in zip(parts, begun, strict=True):
        with shared.block(part) as block:
            found.append(solve_whole(shared.task(part, own), tol, fine, block))
    return found


def decide_parts(
    shared: SharedProblems,
    kernel: int,
    parts: Sequence[tuple[Indices, Indices]],
    found: SupportVectors,
) -> list[Floats]:
    """Decisions for parts of samples, each with its folds: the task that workers run."""
    source = shared.problems[kernel].source
    return [held_out_decisions(source, rows, folds, found) for rows, folds in parts]
