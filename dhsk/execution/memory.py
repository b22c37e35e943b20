"""What an operation needs of memory, by part: computed once, for the plan and for the run."""

from collections.abc import Mapping
from dataclasses import dataclass

from dhsk.errors import BudgetError
from dhsk.execution.limits import core_count, held_bytes, own_room
from dhsk.units import human_bytes


@dataclass(frozen=True)
class MemoryNeed:
    """Peak memory of an operation, predicted before it runs.

    Attributes
    ----------
    name
        The operation.
    parts
        Bytes of each part; all of them are in memory at the same time.
    """

    name: str
    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        """Bytes of all parts."""
        return sum(self.parts.values())

    @property
    def words(self) -> str:
        """The parts for people, largest first; those that take nothing are left out."""
        sizes = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{part} {human_bytes(size)}" for part, size in sizes if size)

    def check(self, allowed: int, instead: str) -> None:
        """Refuse what does not fit.

        Parameters
        ----------
        allowed
            Bytes for all parts.
        instead
            The ways out, for the message.

        Raises
        ------
        BudgetError
            It does not fit.
        """
        if self.total > allowed:
            raise BudgetError(
                f"{self.name} needs {human_bytes(self.total)} ({self.words}) but "
                f"{human_bytes(allowed)} are allowed: {instead}"
            )


@dataclass(frozen=True)
class Allowance:
    """What this process may use.

    Attributes
    ----------
    memory
        Most bytes that it may hold, as the user gave it; None if none were given.
    held
        Bytes that it holds before it begins.
    room
        Bytes that it may still take.
    cores
        Tasks at a time.
    """

    memory: int | None
    held: int
    room: int
    cores: int

    @classmethod
    def now(cls, memory: int | None) -> "Allowance":
        """That of this process as it is."""
        return cls(memory, held_bytes(), own_room(memory), core_count())
