"""Functions that numba compiles, by one process at a time, and keeps on disk for all others.

Workers that start together on an empty cache would each compile all that they need: seconds of
every core. And two that keep two signatures of one function at the same time may give their files
the same name, so that later processes would load the code of the other signature.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep
from types import CodeType, FunctionType
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


def is_at_hand(function: Any, *arguments: Any) -> bool:
    """Whether a function is compiled for arguments of such types, in this process or on disk."""
    if not isinstance(function, Dispatcher):
        return True
    signature = tuple(function.typeof_pyval(argument) for argument in arguments)
    if signature in function.overloads:
        return True
    kept: Any = vars(function)["_cache"]
    return isinstance(kept, _SharedCache) and kept.has(signature, function.targetctx)


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Compile or load; a turn that this or a function called by it needed then ends."""
    with _turn.at_most_one():
        return type(dispatcher).compile(dispatcher, signature)


class _SharedCache(FunctionCache):  # type: ignore[misc]  # its base is untyped
    """Cache of a function on disk; what is not there is compiled when it is this process's turn."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """That of numba and the sources of all that is compiled into the function.

        numba's knows its own file alone: with another version of a function that it calls, the old
        one would go on.
        """
        return *super()._index_key(sig, codegen), sources_of(self._py_func)

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether something is kept."""
        key = self._index_key(sig, target_context.codegen())
        return key in self._cache_file._load_index()

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


@cache
def sources_of(function: Callable[..., Any]) -> str:
    """Hash of the files and constants, of its own package, that a function is compiled from."""
    own, seen, waiting = _package_of(function), set[Any](), [function]
    parts = set[str]()
    while waiting:
        one = waiting.pop()
        seen.add(one)
        parts.add(_hash_of(one.__code__.co_filename))
        for name, given in _globals_of(one).items():
            for place, item in enumerate(given if isinstance(given, tuple) else (given,)):
                # Those of dispatchers and of intrinsics.
                value = getattr(item, "py_func", getattr(item, "_defn", item))
                if isinstance(value, FunctionType):
                    if _package_of(value) == own and value not in seen:
                        waiting.append(value)
                elif isinstance(value, bool | int | float | str):
                    parts.add(f"{name}[{place}]={value!r}")
    return blake2b("\n".join(sorted(parts)).encode(), digest_size=12).hexdigest()


def _package_of(function: Callable[..., Any]) -> str:
    return str(function.__module__).partition(".")[0]


def _globals_of(function: Any) -> dict[str, Any]:
    """Values of the global names in a function, and in those within it."""
    codes, names = [function.__code__], set[str]()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    return {name: function.__globals__[name] for name in names & function.__globals__.keys()}


@cache
def _hash_of(path: str) -> str:
    return blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()


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


@compiled()
def assign(target: Any, source: Any) -> None:
    """Copy an array to one of the same length.

    Within compiled functions, in place of ``target[:] = source``: with that numba compiles the
    message of lengths that differ, which took 6 of the 21 s of a first fit of `SVC`.
    """
    for i in range(len(target)):
        target[i] = source[i]
