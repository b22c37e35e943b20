"""A run: where a call computes, within what memory, where it is recorded, and who is told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from dhsk.bars import Show, shown
from dhsk.clock import NO_END
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.limits import own_room
from dhsk.execution.memory import Allowance
from dhsk.execution.resources import Resources
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Executor
from dhsk.execution.workers import computing, executor_of, resources_of
from dhsk.files import full_disk_is_budget
from dhsk.objects.places import Place, parse_place
from dhsk.progress import OnProgress, ignore
from dhsk.run_progress import RunProgress, told_whole
from dhsk.units import parse_bytes

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Run:
    """What travels from a public function to all that it calls, see `begun`."""

    memory: int | None = None
    """Most bytes for all processes; None for half of the free memory, or that of the workers."""

    client: "Client | ArrayJob | None" = None
    """Dask client, or a part of an array job; None for threads of this process."""

    store: Place | None = None
    """Place of Gram matrices; None to store none."""

    journal: Place | None = None
    """Place of checkpoints, from which a killed call resumes; None for no checkpoints."""

    scratch: Place | None = None
    """Prefix on a server for temporary files that workers read; None for a temporary folder."""

    report: OnProgress = ignore
    """Called with each event of progress."""

    over: Callable[[], bool] = NO_END
    """Whether the time for it is over."""

    @classmethod
    @contextmanager
    def begun(
        cls,
        progress: Show = None,
        *,
        memory: int | str | None = None,
        client: "Client | ArrayJob | None" = None,
        store: str | Place | None = None,
        journal: str | Place | None = None,
        scratch: str | Place | None = None,
        **guesses: float,
    ) -> Iterator[tuple[Self, RunProgress]]:
        """Begin the run of a public function, with its own parameters of these names.

        Within it BLAS has one thread everywhere and a full disk is a BudgetError. Yields the run,
        and how far it is: `guesses` are its parts, see `RunProgress`.

        Raises InputError for a `memory` that is none, or a place that is none.
        """
        limit = None if memory is None else parse_bytes(memory)
        places = {"store": store, "journal": journal, "scratch": scratch}
        parsed = {k: None if v is None else parse_place(k, v) for k, v in places.items()}
        with (
            shown(progress, **guesses) as told,
            full_disk_is_budget(),
            computing(client) as found,
        ):
            yield cls(limit, found, **parsed, report=told, over=NO_END), told

    @contextmanager
    def told(self, **guesses: float) -> Iterator[tuple[Self, RunProgress]]:
        """The same run with parts of its own; BLAS has one thread within it."""
        alone = one_blas_thread() if self.client is None else computing(self.client)
        with alone, told_whole(self.report, **guesses) as told:
            yield replace(self, report=told), told

    @property
    def room(self) -> int:
        """Bytes that this process may still allocate."""
        return own_room(self.memory)

    @property
    def allowance(self) -> Allowance:
        """Memory and processors of this process in its present state, with a client of all."""
        if self.client is None:
            return Allowance.now(self.memory)
        return Allowance.of_all(self.memory, self.resources)

    @property
    def resources(self) -> Resources:
        """Workers and threads, and the memory of all processes; ClusterError if there are none."""
        return resources_of(self.client, self.memory)

    def executor(self, window: int) -> Executor:
        """Executor of the workers, or of threads, with `window` tasks in flight."""
        return executor_of(self.client, window)
