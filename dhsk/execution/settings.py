"""Settings of the whole process that concurrent calls share."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any, Final

import dask
from threadpoolctl import ThreadpoolController

from dhsk import systems
from dhsk.execution.upstream import take_control_of_blas


class SharedSetting:
    """A setting of the process, in force as long as any thread is in its context.

    Context managers that save and restore a setting fail if they overlap: the second one saves the
    value that the first has set, and restores it after the first has ended. Here the first thread
    that enters begins the setting (calls `setting` and enters its result), and the last one that
    leaves ends it. In a forked process the setting ends at once.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        self._setting = setting
        self._lock = Lock()
        self._users = 0
        self._begun: AbstractContextManager[Any] | None = None
        systems.at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._end_in_child,
        )

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Keep the setting in force."""
        self.acquire()
        process = os.getpid()
        try:
            yield
        finally:
            if os.getpid() == process:
                self.release()

    def acquire(self) -> None:
        """Add a user; the first one begins the setting."""
        with self._lock:
            if self._users == 0:
                begun = self._setting()
                begun.__enter__()
                self._begun = begun
            self._users += 1

    def release(self) -> None:
        """Remove a user; the last one ends the setting."""
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
    """BLAS libraries of the process on one thread each; any thread may end it."""

    def __enter__(self) -> None:
        take_control_of_blas()
        self._limits = _libraries(len(sys.modules)).limit(limits=1, user_api="blas")

    def __exit__(self, *error: object) -> None:
        take_control_of_blas()
        self._limits.restore_original_limits()
        take_control_of_blas()


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """BLAS libraries of the process, looked for again when modules have been imported.

    To look for them takes 1.5 ms, three times as long as to predict one sample.
    """
    del n_modules
    return ThreadpoolController()


one_blas_thread: Final = SharedSetting(_OneBlasThread)
"""BLAS on one thread: tasks fill the cores, and products may differ in the last bit with the number
of BLAS threads."""

large_graphs: Final = SharedSetting(
    lambda: dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
)
"""Dask does not warn of tasks with arrays among their arguments."""

short_logs: Final = SharedSetting(
    lambda: dask.config.set({"distributed.admin.low-level-log-length": 1})
)
"""Connections that Dask opens meanwhile keep one message for debugging. By default each keeps its
last thousand (dask/distributed#1630), with the vectors in them: 300 MB for a hundred passes over
6,000 samples."""
