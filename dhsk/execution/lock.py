"""Lock of a store for one writer or several parts of a computation.

It ends with its process even if that is killed.

Rejected: a file with a process number (stale after a kill, wrong on another machine); `lockf` (none
between threads, and any close ends it); a lock on the folder (impossible on NFS).
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from dhsk import systems
from dhsk.errors import StoreError, warn
from dhsk.files import REFUSED, is_at, is_part, made_folder, not_writable
from dhsk.objects.places import Place, entries_of

LOCK_NAME: Final = ".lock"

TURNS_NAME: Final = ".parts"
"""File whose lock is held by the one of several writers whose turn it is."""

TURN_SECONDS: Final = 0.2
"""Time between two tries to have a turn."""

RELEASE_SECONDS: Final = 1.0
"""Time for which one of several tries again: the last of them has the lock alone as it ends."""


@contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Lock a store's folder, made if absent, for one writer; readers and workers need no lock.

    The lock is the kernel's on a file ``.lock`` in the folder, see `systems.try_lock`. A killed
    process leaves an unlocked file, which the next writer takes over. At the end the file is
    removed, and so are folders that were made here and stayed empty.

    It holds between machines on NFS from version 4 on, or 3 with lockd, as Linux turns `flock` into
    a lock at the server, and on Lustre mounted with ``flock``. With the mount options
    ``local_lock`` or ``localflock`` it holds on each machine alone. On a file system without locks
    a warning says so, and the work continues.

    Raises StoreError if another process or thread writes to the store, or the folder is not
    writable.
    """
    with _locked(path):
        yield


@dataclass(frozen=True)
class Turns:
    """What several writers of a store do one after the other; made by `one_of_several`."""

    attempt: Callable[[], AbstractContextManager[bool]]
    """Context within which this writer has its turn, if it yields True."""

    has_locks: bool = True
    """Whether the file system has locks; without, nobody waits."""

    @contextmanager
    def alone(self, waiting: Callable[[], None]) -> Iterator[None]:
        """Exclude the other writers, and wait for one that does; `waiting` is then called often."""
        while True:
            with self.attempt() as has_turn:
                if has_turn:
                    yield
                    return
            waiting()
            sleep(TURN_SECONDS)


@contextmanager
def _turn(file: Path) -> Iterator[bool]:
    descriptor = systems.open_to_lock(file, create=True)
    try:
        yield systems.try_lock(descriptor) is not False
    finally:
        os.close(descriptor)


@contextmanager
def one_of_several(path: Path) -> Iterator[Turns]:
    """Lock a store's folder, made if absent, together with others that call this.

    Nobody has it as its `sole_writer` meanwhile; limits and errors are those of that. The file
    ``.parts``, by which they take turns, stays for whoever finishes the store.
    """
    with _locked(path, shared=True) as has_locks:
        yield Turns(partial(_turn, path / TURNS_NAME), has_locks)


@contextmanager
def _locked(path: Path, *, shared: bool = False) -> Iterator[bool]:
    """Lock a folder, alone or with others; yield whether the file system has locks."""
    file, descriptor = path / LOCK_NAME, None
    with made_folder(path):
        try:
            try:
                descriptor, has_locks = _acquire(file, shared=shared)
                sign(descriptor)
            except OSError as error:
                if error.errno not in REFUSED:
                    raise
                raise StoreError(
                    f"{not_writable(path, error)}; a finished store can be read as it is"
                ) from error
            yield has_locks
        finally:
            if descriptor is not None:
                _release(descriptor, file, shared=shared)


def _release(descriptor: int, file: Path, *, shared: bool) -> None:
    """End a lock; the last of several removes its file."""
    if shared:
        systems.unlock(descriptor)
        if not systems.try_lock(descriptor) or not is_at(descriptor, file):
            os.close(descriptor)
            return
    with suppress(OSError):
        systems.close_and_remove(descriptor, file)


def is_occupied(path: Place) -> bool:
    """Whether a path exists and is not a folder that is empty but for locks and parts of files."""
    entries = {name for name in entries_of(path) if not is_part(name)}
    return path.is_file() or not entries <= {LOCK_NAME, TURNS_NAME}


def _acquire(file: Path, *, shared: bool) -> tuple[int, bool]:
    """Open and lock the file, again if its last holder removes it or the folder in between."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = systems.open_to_lock(file, create=True)
        except FileNotFoundError:
            continue
        try:
            has_locks = _lock(descriptor, file, shared=shared)
            if is_at(descriptor, file):
                return descriptor, has_locks
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, file: Path, *, shared: bool) -> bool:
    """Lock an open file; False, with a warning, if the file system has no locks."""
    locked = systems.try_lock(descriptor, shared=shared)
    end = monotonic() + RELEASE_SECONDS
    while shared and locked is False and monotonic() < end:
        sleep(TURN_SECONDS / 10)
        locked = systems.try_lock(descriptor, shared=True)
    if locked is None:
        warn(
            f"the file system of {file.parent} has no locks: make sure that no other command "
            "writes to this store",
            UserWarning,
        )
    elif not locked:
        raise StoreError(
            f"{file.parent} is being written by {holder_in(file.read_text)}: wait until it has "
            "ended, stop it, or choose another folder"
        )
    return bool(locked)


def machine() -> dict[str, str]:
    """Name of this host, and the identifier of its boot."""
    return {"host": socket.gethostname(), "boot": systems.boot_id()}


def now_in_words() -> str:
    """The present time, for messages."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def sign(descriptor: int) -> None:
    """Write into a locked file which process holds it, for messages: locking does not need it."""
    who = {**machine(), "pid": os.getpid(), "since": now_in_words()}
    os.truncate(descriptor, 0)
    with suppress(OSError):  # a full disk must not stop a repair that needs no space
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(who).encode())
        os.fsync(descriptor)  # network file systems may wait with it until the file is closed


def holder_in(record: Callable[[], str | bytes]) -> str:
    """Process that a record names, in words."""
    try:
        who = json.loads(record())
        return f"process {who['pid']} on {who['host']} since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # just made, or just removed
        return "another process"
