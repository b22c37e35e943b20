"""Functions that numba compiles, by one process at a time, and keeps on disk for all others.

Workers that start together on an empty cache would each compile all that they need: seconds of
every core. And two that keep two signatures of one function at the same time may give their files
the same name, so that later processes would load the code of the other signature.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, TypeVar

import numba
from numba.core import caching as _caching
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from dhsk import systems
from dhsk.clock import working_seconds

FunctionCache: Any = _caching.FunctionCache  # (it has no types)

Function = TypeVar("Function", bound=Callable[..., Any])

LOCK_NAME: Final = "dhsk-compiling.lock"

WAITING_SECONDS: Final = 60.0
"""Most time to wait for the turn of another process, which may be stopped. All functions that a
search of digits needs took 27 s of processor time together, with cores busy otherwise."""

TURN_SECONDS: Final = 0.02
"""Time between two tries."""


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorator as `numba.njit` with ``nogil`` and ``cache``: one process compiles, others wait.

    The lock is the kernel's and ends with its process. Where no folder can be written, every
    process compiles for itself.
    """

    def decorate(function: Function) -> Function:
        made: Any = numba.njit(nogil=True, **options)(function)
        is_compiled = isinstance(made, Dispatcher)  # not under NUMBA_DISABLE_JIT
        if is_compiled:
            with suppress(RuntimeError):  # no folder can be written
                made._cache = _SharedCache(function)
                made.compile = partial(_compile, made)
        dispatcher: Function = made
        return dispatcher

    return decorate


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Compile or load; a turn that this or a function called by it needed then ends."""
    with _turn.at_most_one():
        return type(dispatcher).compile(dispatcher, signature)


class _SharedCache(FunctionCache):  # type: ignore[misc]  # its base is untyped
    """Cache of a function on disk; what is not there is compiled when it is this process's turn."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept, of another process too that had to be waited for; None if nothing is."""
        found = super().load_overload(sig, target_context)
        if found is None:
            _turn.take()
            found = super().load_overload(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; it serves this process where the disk has no room for it."""
        with suppress(OSError):
            super().save_overload(sig, data)


class _Turn:
    """The turn of this process to compile; used by the thread that has the compiler's lock."""

    def __init__(self) -> None:
        self._depth = 0
        self._descriptor: int | None = None

    @contextmanager
    def at_most_one(self) -> Iterator[None]:
        """Block in which a turn may be taken; the outermost one ends it."""
        with global_compiler_lock, nullcontext() if self._depth else working_seconds.stopped():
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._descriptor is not None:
                    # Not only closed: a process that was forked meanwhile has the file open too.
                    systems.unlock(self._descriptor)
                    os.close(self._descriptor)
                    self._descriptor = None

    def take(self) -> None:
        """Wait for the turn; without locks, or for too long, go on without it."""
        if self._descriptor is not None or self._depth == 0:
            return
        with suppress(OSError):
            _folder().mkdir(parents=True, exist_ok=True)
            descriptor = systems.open_to_lock(_folder() / LOCK_NAME, create=True)
            try:
                _wait_for(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor


def _wait_for(descriptor: int) -> None:
    """Lock a file, or give up after `WAITING_SECONDS`, at once where there are no locks."""
    end = monotonic() + WAITING_SECONDS
    while systems.try_lock(descriptor) is False and monotonic() < end:
        sleep(TURN_SECONDS)


@cache
def _folder() -> Path:
    """Folder of numba's cache for this file, whose lock serves all functions."""
    return Path(FunctionCache(compiled).cache_path)


_turn: Final = _Turn()
