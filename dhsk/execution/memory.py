"""Memory of an operation, by part, and how it is divided: the same for the plan and for the run."""

from collections.abc import Mapping
from dataclasses import dataclass

from dhsk.errors import BudgetError
from dhsk.execution.limits import core_count, held_bytes, own_room
from dhsk.execution.resources import Resources
from dhsk.units import format_bytes


@dataclass(frozen=True)
class MemoryNeed:
    """Peak memory of an operation, predicted before it runs."""

    name: str
    """The operation."""

    parts: Mapping[str, int]
    """Bytes of each part; all of them are in memory at the same time."""

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    @property
    def words(self) -> str:
        """Parts with their sizes, largest first, without empty ones."""
        sizes = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{part} {format_bytes(size)}" for part, size in sizes if size)

    def check(self, allowed: int, instead: str) -> None:
        """Raise BudgetError, with the advice `instead`, if the parts exceed the allowed bytes."""
        if self.total > allowed:
            raise BudgetError(
                f"{self.name} needs {format_bytes(self.total)} ({self.words}) but "
                f"{format_bytes(allowed)} are allowed: {instead}"
            )


@dataclass(frozen=True)
class Allowance:
    """Memory and processors that an operation may use."""

    memory: int | None
    """The user's limit in bytes; None for no limit."""

    held: int
    """Bytes that the processes hold before the operation."""

    room: int
    """Bytes that they may still allocate."""

    cores: int
    """Tasks at a time."""

    @classmethod
    def now(cls, memory: int | None) -> "Allowance":
        """Allowance of this process in its present state."""
        return cls(memory, held_bytes(), own_room(memory), core_count())

    @classmethod
    def of_all(cls, memory: int | None, resources: Resources) -> "Allowance":
        """Allowance of this process and of workers together."""
        idle = resources.idle_bytes
        return cls(memory, idle, max(0, resources.memory - idle), resources.threads)


@dataclass(frozen=True)
class Share:
    """How an operation works within the memory that it may use, decided before it runs."""

    need: MemoryNeed
    """Peak of all processes."""

    at_once: int
    """Concurrent tasks."""

    way: str = ""
    """What is in memory, or how problems are solved, in words."""

    whole: bool = True
    """Whether that which is read most is in memory: the matrix of every pair, or the features."""

    room: int = 0
    """Bytes for what a task fills the memory with: its matrix, or second derivatives."""

    rows: int = 0
    """Samples of a block of kernel values."""

    threads: int = 1
    """Blocks that a task computes concurrently."""

    held: bool = False
    """Whether values that several tasks need stay in memory."""

    split_folds: bool = False
    """Whether each fold is a task, so that there are enough tasks."""

    shared: int = 0
    """Bytes that the matrices of concurrent tasks share, as their sizes differ; 0 if each has its
    own room."""

    blocks: int = 0
    """Most matrices of all samples in memory, which concurrent tasks share; 0 if each has its
    own."""

    window: int = 0
    """Number of submitted tasks."""

    table: tuple[tuple[str, str], ...] = ()
    """Rows (what, value) for people."""


def share_memory(memory: int, largest: int, threads: int) -> tuple[int, int]:
    """Number of tasks at a time, and bytes for each.

    At most `threads` tasks run at a time: fewer if each then has the `largest` bytes that one can
    use.
    """
    at_once = max(1, min(threads, memory // max(1, largest)))
    return at_once, memory // at_once


def require_room(
    needed: int, room: int | None, what: str, instead: str = "", where: str = ""
) -> None:
    """Raise BudgetError if more bytes are needed than there is room for; None is no limit.

    The message says what takes them, and `where`, and what to do instead.
    """
    if room is not None and needed > room:
        raise BudgetError(
            f"{what} take {format_bytes(needed)}{where} but {format_bytes(max(0, room))} of "
            f"memory are left: allow more{instead and ', or '}{instead}"
        )
