"""Names in folders that everybody shares, and what killed processes left under theirs."""

import contextlib
import fcntl
import json
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from dhsk.execution.lock import WITHOUT_LOCKS, is_at, machine, sign

PREFIX: Final = "dhsk-"

_SUFFIX: Final = ".lock"

Remove: TypeAlias = Callable[[Path, str], None]
"""Removes, in a folder, what goes by a name."""


class Claim:
    """A new name in a folder, for what is to be gone when this process is.

    A file ``dhsk-NAME.lock`` is locked (`flock`) for as long as the name is in use. The kernel ends
    the lock with the process, however that ends; whoever claims a name in the same folder next
    removes what goes by names that nobody holds. No other user's files are touched, no link is
    followed, and nothing that another machine left in a folder that both see: its locks may not be
    visible here.

    Parameters
    ----------
    folder
        Where. It may be full of other people's files.
    remove
        Removes what goes by a name.
    tidy
        What goes by this name is removed by others, unless they are killed: here only then.
    """

    def __init__(self, folder: Path, remove: Remove, *, tidy: bool = False) -> None:
        sweep(folder, remove)
        lock, descriptor = _claimed(folder)
        self.folder, self.name = folder, lock.name.removesuffix(_SUFFIX)
        self.release = weakref.finalize(
            self, _release, os.getpid(), descriptor, lock, None if tidy else remove, self.name
        )
        """Removes what goes by the name, and gives it back; at the latest when Python ends."""


def sweep(folder: Path, remove: Remove) -> None:
    """Remove what goes by names whose processes are gone.

    Parameters
    ----------
    folder
        Where names are claimed.
    remove
        Removes what goes by a name.
    """
    for lock in folder.glob(f"{PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError), _abandoned(lock) as ours:
            if ours:
                remove(folder, lock.name.removesuffix(_SUFFIX))
                lock.unlink()  # while it is locked: afterwards it may be another's


def remove_folder(folder: Path, name: str) -> None:
    """Remove a folder with all that is in it; a link of that name is left alone."""
    path = folder / name
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _abandoned(lock: Path) -> Iterator[bool]:
    """Lock the file of a name, and say whether its owner was a process of ours that is gone."""
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if ours:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield ours and is_at(descriptor, lock) and _was_here(os.pread(descriptor, 4096, 0))
    finally:
        os.close(descriptor)


def _was_here(signature: bytes) -> bool:
    """Whether a lock was signed by dhsk, under this kernel or on this host before it restarted."""
    here = machine()
    try:
        who = json.loads(signature)
        return bool(who["boot"] == here["boot"] or who["host"] == here["host"])
    except (ValueError, KeyError, TypeError):  # of somebody else, or not yet signed
        return False


def _claimed(folder: Path) -> tuple[Path, int]:
    """Make, lock and sign a file of a new name; again if it was swept before it was locked."""
    while True:
        descriptor, name = tempfile.mkstemp(_SUFFIX, PREFIX, folder)
        lock = Path(name)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                os.close(descriptor)
                continue
        if is_at(descriptor, lock):
            sign(descriptor)
            return lock, descriptor
        os.close(descriptor)


def _release(owner: int, descriptor: int, lock: Path, remove: Remove | None, name: str) -> None:
    if os.getpid() != owner:  # a fork: what its parent uses is not its to remove
        return
    if remove is not None:
        remove(lock.parent, name)
    lock.unlink(missing_ok=True)
    os.close(descriptor)
