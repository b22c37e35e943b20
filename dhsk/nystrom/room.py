"""Where an approximation is made, by the memory that it takes there."""

from dataclasses import dataclass
from typing import Final, Literal

from distributed import Client

from dhsk.errors import BudgetError
from dhsk.execution.workers import resources_of
from dhsk.gram.row_map import BLOCK_BYTES as READ_BYTES
from dhsk.nystrom.landmarks import block_of
from dhsk.nystrom.spans import BLOCK_BYTES, span_rows
from dhsk.units import human_bytes

Tier = Literal["features held", "samples held", "samples read in every pass", "on workers"]
"""What is in memory, and where passes run."""

_VECTORS: Final = 6
"""Numbers that the driver holds of every sample: the diagonal, what is left, sums, squares."""

_SQUARES: Final = 5
"""Matrices of landmarks by landmarks at a time, in float64."""

_COPIES: Final = 4
"""Blocks that a task holds at a time: kernel values, a product, its squares in float64."""

_READING: Final = 4
"""Blocks that reading and mapping samples takes."""


@dataclass(frozen=True)
class ApproximationNeed:
    """Memory of an approximation, in bytes.

    Attributes
    ----------
    samples
        All mapped samples.
    factor
        Features of all samples, by every landmark.
    small
        What one process holds in any case: numbers a sample, landmarks and their matrices.
    task
        What each pass holds at a time in every thread.
    span
        A span of samples as they are read.
    """

    samples: int
    factor: int
    small: int
    task: int
    span: int

    @classmethod
    def of(cls, n: int, mapped: int, item: int, m: int) -> "ApproximationNeed":
        """Arithmetic for m landmarks of n samples, which take so many bytes when mapped.

        Parameters
        ----------
        n
            Number of samples.
        mapped
            Bytes of all mapped samples.
        item
            Bytes of a kernel value.
        m
            Number of landmarks.
        """
        row = mapped / n
        block = min(BLOCK_BYTES, item * n * max(m, block_of(m)))
        small = 8 * (_VECTORS * n + _SQUARES * m * m) + int(3 * row * m)
        span = min(int(row * span_rows(n, row)), int(row * n))
        task = _COPIES * block + int(row * m) + item * m * m
        return cls(mapped, item * n * m, small, task, span)

    def parts(self, tier: Tier, threads: int) -> dict[str, int]:
        """Bytes that this process takes, by part.

        Parameters
        ----------
        tier
            What is in memory.
        threads
            Tasks at a time.
        """
        if tier == "on workers":
            return {"landmarks": self.small}
        passes = {"landmarks": self.small, "running tasks": threads * self.task}
        if tier == "samples read in every pass":
            read = (threads + 2) * min(self.span, READ_BYTES) + _READING * READ_BYTES
            return passes | {"samples as they are read": read}
        features = {"features": self.factor} if tier == "features held" else {}
        return passes | {"samples": self.samples} | features

    def bytes_in(self, tier: Tier, threads: int) -> int:
        """Bytes of all parts."""
        return sum(self.parts(tier, threads).values())


@dataclass(frozen=True)
class ApproximationPlan:
    """Where an approximation is made.

    Attributes
    ----------
    tier
        What is in memory, and where passes run.
    threads
        Tasks at a time.
    planned
        Bytes that this process takes.
    """

    tier: Tier
    threads: int
    planned: int


def plan_here(need: ApproximationNeed, what: str, room: int, threads: int) -> ApproximationPlan:
    """Hold as much as fits: features, else mapped samples, else neither.

    Parameters
    ----------
    need
        The memory that it takes.
    what
        What it is for, for the message.
    room
        Bytes that this process may take.
    threads
        Most tasks at a time.

    Raises
    ------
    BudgetError
        Not even one task fits beside the landmarks.
    """
    tiers: tuple[Tier, ...] = ("features held", "samples held", "samples read in every pass")
    for tier in tiers:
        for at_once in sorted({threads, 1}, reverse=True):
            planned = need.bytes_in(tier, at_once)
            if planned <= room:
                return ApproximationPlan(tier, at_once, planned)
    raise BudgetError(
        f"{what} take {human_bytes(planned)}, samples read anew in every pass, but "
        f"{human_bytes(room)} of memory are left: allow more, or take fewer landmarks"
    )


def plan_on_workers(
    need: ApproximationNeed, what: str, room: int, memory: int | None, client: Client
) -> ApproximationPlan:
    """Leave samples and passes to workers.

    Parameters
    ----------
    need, what, room
        As for `plan_here`.
    memory
        Bytes for all processes together; None for what the workers have.
    client
        Of the workers.

    Raises
    ------
    BudgetError
        The landmarks do not fit here, or a task does not fit a worker.
    """
    resources = resources_of(client, memory)
    planned = need.bytes_in("on workers", 1)
    each = need.task + need.span
    for wanted, left, where in (
        (planned, room, "this process"),
        (each, (resources.memory - resources.idle_bytes) // resources.threads, "a worker's thread"),
    ):
        if wanted > left:
            raise BudgetError(
                f"{what} take {human_bytes(wanted)} of {where}, but {human_bytes(left)} are left: "
                "allow more, or take fewer landmarks"
            )
    return ApproximationPlan("on workers", 2 * resources.threads, planned)
