"""What a computation may use: workers, threads and memory."""

from dataclasses import dataclass

TASKS_PER_THREAD = 2
"""Tasks in flight per worker thread: one runs, and one waits so that no worker idles."""

# The figures below were measured by tests/benchmarks/memory.py, over the whole process tree.

CLIENT_BYTES = 265_000_000
"""The client process, with its scheduler and the blocks in which it stages samples."""

WORKER_BYTES = 145_000_000
"""An idle worker process with its libraries loaded."""

LOADED_BYTES = 300_000_000
"""A training process with its libraries loaded: 262 MB were seen. Counted also before they are
loaded, so that a plan and its run agree."""


@dataclass(frozen=True)
class Resources:
    """What a computation may use."""

    workers: int
    """Worker processes; 0 for threads of the calling process."""

    threads: int
    """Tasks at a time, over all workers."""

    memory: int
    """Most bytes of client, scheduler and workers together."""

    to_server: bool = False
    """Whether results go to an S3-like server, so that tasks hold whole ones in memory."""

    @property
    def idle_bytes(self) -> int:
        """Memory of all processes before the first task."""
        return CLIENT_BYTES + self.workers * WORKER_BYTES


def are_heavy(workers: int, memory: int) -> bool:
    """Whether a client and worker processes alone take more than half of some memory."""
    return 2 * Resources(workers, workers, memory).idle_bytes > memory
