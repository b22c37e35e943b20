"""What a computation may use: workers, threads and memory."""

from dataclasses import dataclass

TASKS_PER_THREAD = 2
"""Tasks in flight per worker thread: one runs, one waits, so that no worker idles."""

# The figures below were measured by tests/benchmarks/memory.py, over the whole process tree.

CLIENT_BYTES = 265_000_000
"""The process that drives, its scheduler and the blocks in which it stages samples included."""

WORKER_BYTES = 145_000_000
"""An idle worker process, its libraries loaded."""

LOADED_BYTES = 300_000_000
"""A process that trains, its libraries loaded: 262 MB were seen. Counted also before they are
loaded, so that a plan says what the run will."""


@dataclass(frozen=True)
class Resources:
    """What a computation may use.

    Attributes
    ----------
    workers
        Worker processes; 0 when the tasks run as threads of the calling process.
    threads
        Tasks that run at the same time, over all workers.
    memory
        Bytes that the whole process tree may hold: client, scheduler and workers.
    """

    workers: int
    threads: int
    memory: int

    @property
    def idle_bytes(self) -> int:
        """Memory of all processes before the first task."""
        return CLIENT_BYTES + self.workers * WORKER_BYTES
