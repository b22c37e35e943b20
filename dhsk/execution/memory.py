"""Memory of an operation, by part: computed once, for the plan and for the run."""

from collections.abc import Mapping
from dataclasses import dataclass

from dhsk.errors import BudgetError
from dhsk.execution.limits import core_count, held_bytes, own_room
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
    """Memory and processors that this process may use."""

    memory: int | None
    """The user's limit in bytes; None for no limit."""

    held: int
    """Bytes that the process holds before the operation."""

    room: int
    """Bytes that it may still allocate."""

    cores: int
    """Tasks at a time."""

    @classmethod
    def now(cls, memory: int | None) -> "Allowance":
        """Allowance of this process in its present state."""
        return cls(memory, held_bytes(), own_room(memory), core_count())
