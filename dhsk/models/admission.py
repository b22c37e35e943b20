"""Order of tasks that take different amounts of memory.

Rejected: a semaphore of bytes (a task that waits holds a thread); the smallest first (the large
ones are then alone at the end).
"""

from collections.abc import Iterable, Iterator
from typing import Any


class Admission:
    """Tasks that share some memory, as an iterator for an executor.

    It yields the first task whose memory fits beside those that run, and ends when none fits.
    Iterate again once the tasks that it has yielded are done and released. A task larger than the
    whole memory runs alone. With `room` 0 there is no limit, and tasks keep their order.
    """

    def __init__(self, room: int, sizes: Iterable[int], tasks: Iterable[Any]) -> None:
        self.waiting = list(zip(sizes, tasks, strict=True))
        self._room = room
        self._left = room

    def __iter__(self) -> Iterator[Any]:
        """Tasks that can run now."""
        while self.waiting:
            number = self._next()
            if number is None:
                return
            size, task = self.waiting.pop(number)
            self._left -= size
            yield task

    def _next(self) -> int | None:
        if not self._room:
            return 0
        fitting = (n for n, (size, _) in enumerate(self.waiting) if size <= self._left)
        alone = 0 if self._left == self._room else None
        return next(fitting, alone)

    def release(self, size: int) -> None:
        """Take back the memory of a task that has ended."""
        self._left += size
