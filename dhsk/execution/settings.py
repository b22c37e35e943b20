"""Settings of the whole process that calls need for a while, several at once."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any, Final

import dask
from threadpoolctl import OpenBLASController, threadpool_limits


class SharedSetting:
    """A setting of the process, in force as long as any thread is in its context.

    Managers that save a setting and restore it do so wrongly where they overlap: the second saves
    what the first has set, and restores that after the first is gone. Here the first thread that
    comes begins the setting, and the last one that leaves ends it. A forked process is not within
    the calls of its parent: in it the setting ends at once.

    Parameters
    ----------
    setting
        Makes the manager that begins and ends the setting.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting = setting
        self._lock = Lock()
        self._users = 0
        self._begun: AbstractContextManager[Any] | None = None
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._end_in_child,
        )

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Have the setting in force."""
        self.acquire()
        process = os.getpid()
        try:
            yield
        finally:
            if os.getpid() == process:
                self.release()

    def acquire(self) -> None:
        """Count one user more; the first begins the setting."""
        with self._lock:
            if self._users == 0:
                begun = self._setting()
                begun.__enter__()
                self._begun = begun
            self._users += 1

    def release(self) -> None:
        """Count one user less; the last ends the setting."""
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._end()

    def _end(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.__exit__(None, None, None)

    def _end_in_child(self) -> None:
        self._users = 0
        self._lock.release()
        self._end()


class _OneBlasThread:
    """BLAS libraries of the process on one thread each; may end in another thread than it began."""

    def __enter__(self) -> None:
        _take_control()
        self._limits = threadpool_limits(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        _take_control()
        self._limits.restore_original_limits()
        _take_control()


def _take_control() -> None:
    """Have the next thread that sets limits be heard.

    From threadpoolctl 3.8 on, OpenBLAS belongs to the thread that set its limit first, until that
    has ended its context; limits of other threads are passed over without a word.
    """
    take = getattr(OpenBLASController, "clear_controlling_thread", None)
    if take is not None:
        take(force=True)


one_blas_thread: Final = SharedSetting(_OneBlasThread)
"""BLAS on one thread. Tasks fill the cores, so BLAS inside of each gets one. It also makes results
reproducible: products may differ in the last bit with the number of threads."""

large_graphs: Final = SharedSetting(
    lambda: dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
)
"""Dask takes tasks with arrays among their arguments without a warning."""

short_logs: Final = SharedSetting(
    lambda: dask.config.set({"distributed.admin.low-level-log-length": 1})
)
"""Logs that Dask's developers read are one entry long in what is started meanwhile. Each connection
keeps its last messages, a thousand by default, with the vectors that travel in them: 300 MB of a
hundred passes over 6,000 samples."""
