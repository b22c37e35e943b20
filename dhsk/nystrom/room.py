"""Memory of an approximation, and the tier that fits."""

from dataclasses import dataclass
from typing import Final, Literal

from dhsk.errors import BudgetError
from dhsk.execution.limits import own_room
from dhsk.execution.run import Run
from dhsk.gram.row_map import BLOCK_BYTES as READ_BYTES
from dhsk.nystrom.landmarks import block_of
from dhsk.nystrom.spans import BLOCK_BYTES, span_rows
from dhsk.units import format_bytes

Tier = Literal[
    "features in memory", "samples in memory", "samples read in every pass", "on workers"
]
"""Data in memory, and where passes run."""

_VECTORS: Final = 6
"""Vectors (N,) in this process: the diagonal, its residual, sums, squares."""

_SQUARES: Final = 5
"""Matrices of landmarks by landmarks in memory at a time, in float64."""

_COPIES: Final = 4
"""Blocks that a task has in memory: kernel values, a product, its squares in float64."""

_READING: Final = 4
"""Blocks in memory while samples are read and mapped."""


@dataclass(frozen=True)
class ApproximationNeed:
    """Memory of an approximation, in bytes."""

    samples: int
    """All mapped samples."""
    factor: int
    """Features of all samples, one for each landmark."""
    small: int
    """Vectors of all samples, landmarks and their matrices, which this process always needs."""
    task: int
    """One running task of a pass."""
    span: int
    """One span of samples."""

    @classmethod
    def of(cls, n: int, mapped: int, item: int, m: int) -> "ApproximationNeed":
        """Memory for m landmarks of n samples of `mapped` bytes, with kernel values of `item`."""
        row = mapped / n
        block = min(BLOCK_BYTES, item * n * max(m, block_of(m)))
        small = 8 * (_VECTORS * n + _SQUARES * m * m) + int(3 * row * m)
        span = min(int(row * span_rows(n, row)), int(row * n))
        task = _COPIES * block + int(row * m) + item * m * m
        return cls(mapped, item * n * m, small, task, span)

    def parts(self, tier: Tier, threads: int) -> dict[str, int]:
        """Memory of this process by part, in bytes, with a running task in every thread."""
        if tier == "on workers":
            return {"landmarks": self.small}
        passes = {"landmarks": self.small, "running tasks": threads * self.task}
        if tier == "samples read in every pass":
            read = (threads + 2) * min(self.span, READ_BYTES) + _READING * READ_BYTES
            return passes | {"samples as they are read": read}
        features = {"features": self.factor} if tier == "features in memory" else {}
        return passes | {"samples": self.samples} | features

    def bytes_in(self, tier: Tier, threads: int) -> int:
        """Bytes of all parts."""
        return sum(self.parts(tier, threads).values())


@dataclass(frozen=True)
class ApproximationPlan:
    """Tier, threads and memory of an approximation."""

    tier: Tier
    threads: int
    """Number of concurrent tasks."""
    planned: int
    """Memory of this process, in bytes."""


def plan_here(need: ApproximationNeed, what: str, room: int, threads: int) -> ApproximationPlan:
    """Keep in memory what fits in room bytes: features, else mapped samples, else neither.

    Raises BudgetError, with `what` in its message, if not even one task fits beside the landmarks.
    """
    tiers: tuple[Tier, ...] = (
        "features in memory",
        "samples in memory",
        "samples read in every pass",
    )
    for tier in tiers:
        for at_once in sorted({threads, 1}, reverse=True):
            planned = need.bytes_in(tier, at_once)
            if planned <= room:
                return ApproximationPlan(tier, at_once, planned)
    raise BudgetError(
        f"{what} take {format_bytes(planned)}, even with samples read in every pass, but "
        f"{format_bytes(room)} of memory are left: allow more, or take fewer landmarks"
    )


def plan_on_workers(need: ApproximationNeed, what: str, run: Run) -> ApproximationPlan:
    """Leave samples and passes to workers, within the memory of a run.

    Raises BudgetError if the landmarks do not fit in this process, or a task on a worker.
    """
    resources = run.resources
    planned = need.bytes_in("on workers", 1)
    each = need.task + need.span
    for wanted, left, where in (
        (planned, own_room(None), "this process"),
        (each, (resources.memory - resources.idle_bytes) // resources.threads, "a worker's thread"),
    ):
        if wanted > left:
            raise BudgetError(
                f"{what} take {format_bytes(wanted)} of {where}, but "
                f"{format_bytes(max(left, 0))} are left: allow more, or take fewer landmarks"
            )
    return ApproximationPlan("on workers", 2 * resources.threads, planned)
