"""Temporary names in shared folders, and the removal of files that killed processes left."""

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

from dhsk.execution.lock import WITHOUT_LOCKS, machine, sign
from dhsk.files import is_at

PREFIX: Final = "dhsk-"

_SUFFIX: Final = ".lock"

Remove: TypeAlias = Callable[[Path, str], None]
"""Called with a folder and a name: removes the files of that name."""


class Claim:
    """A new name in a folder, for files that are removed when this process ends.

    A file ``dhsk-NAME.lock`` is locked (`flock`) as long as the name is in use. The kernel ends the
    lock with the process, even if it is killed; the next claim in the same folder removes the files
    of names that no process holds. Files of other users are never removed, links are not followed,
    and files from another machine stay, as its locks may not be visible here.

    Parameters
    ----------
    folder
        Folder, which may be shared with other people.
    remove
        Removes the files of a name.
    tidy
        Whether others remove the files at the end, so that only those of killed processes are
        removed here.
    """

    def __init__(self, folder: Path, remove: Remove, *, tidy: bool = False) -> None:
        sweep(folder, remove)
        lock, descriptor = _claimed(folder)
        self.folder, self.name = folder, lock.name.removesuffix(_SUFFIX)
        self.release = weakref.finalize(
            self, _release, os.getpid(), descriptor, lock, None if tidy else remove, self.name
        )
        """Removes the files and gives up the name; called when Python ends at the latest."""


def sweep(folder: Path, remove: Remove) -> None:
    """Remove the files of names in a folder whose processes have ended."""
    for lock in folder.glob(f"{PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError), _abandoned(lock) as ours:
            if ours:
                remove(folder, lock.name.removesuffix(_SUFFIX))
                lock.unlink()  # while it is locked: afterwards it may be another's


def remove_folder(folder: Path, name: str) -> None:
    """Remove a folder with its contents; a link of that name stays."""
    path = folder / name
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _abandoned(lock: Path) -> Iterator[bool]:
    """Lock a name's file; yield whether its owner was a process of this user that has ended."""
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
    except (ValueError, KeyError, TypeError):  # another program's, or not yet signed
        return False


def _claimed(folder: Path) -> tuple[Path, int]:
    """Make, lock and sign a file of a new name, again if `sweep` removes it before it is locked."""
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
    if os.getpid() != owner:  # a fork: its parent uses the files
        return
    if remove is not None:
        remove(lock.parent, name)
    lock.unlink(missing_ok=True)
    os.close(descriptor)
