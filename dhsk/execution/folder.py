"""Temporary places, removed with the last reference to them, or after their process was killed.

Rejected: process numbers, which are used again and differ by namespace; age, as a run may take
days.
"""

import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from uuid import uuid4

from dhsk import systems
from dhsk.errors import StoreError
from dhsk.execution.lock import machine, sign
from dhsk.files import is_at, parse_object, remove_if_abandoned
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place

PREFIX: Final = "dhsk-"

_SUFFIX: Final = ".lock"

Remove: TypeAlias = Callable[[Path, str], None]
"""Called with a folder and a name: removes the files of that name."""

_REMOVE_SECONDS: Final = 5.0


class LockedName:
    """A new name in a folder, for files that are removed when this process ends.

    A file ``dhsk-NAME.lock`` is locked as long as the name is in use. The kernel ends the
    lock with the process, even if it is killed; the next one in the same folder removes the files
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
        lock, descriptor = _locked_file(folder)
        self.folder, self.name = folder, lock.name.removesuffix(_SUFFIX)
        self.release = weakref.finalize(
            self, _release, os.getpid(), descriptor, lock, None if tidy else remove, self.name
        )
        """Removes the files and gives up the name; called when Python ends at the latest."""


def sweep(folder: Path, remove: Remove) -> None:
    """Remove the files of names in a folder whose processes have ended.

    Those are of this user, and signed under this kernel or on this host before it restarted.
    """
    for lock in folder.glob(f"{PREFIX}*{_SUFFIX}"):
        name = lock.name.removesuffix(_SUFFIX)
        with suppress(OSError):
            remove_if_abandoned(lock, partial(_remove_if_ours, remove, folder, name))


def _remove_if_ours(remove: Remove, folder: Path, name: str, descriptor: int) -> bool:
    """Remove the files of a name that was used on this machine; whether it was."""
    who = parse_object(lambda: os.read(descriptor, 4096))  # empty if not signed, or by others
    ours = any(who.get(key) == here for key, here in machine().items())
    if ours:
        remove(folder, name)
    return ours


def remove_folder(folder: Path, name: str) -> None:
    """Remove a folder with its contents; a link of that name stays."""
    path = folder / name
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)


def _locked_file(folder: Path) -> tuple[Path, int]:
    """Make, lock and sign a file of a new name, again if `sweep` removes it before it is locked."""
    while True:
        descriptor, name = tempfile.mkstemp(_SUFFIX, PREFIX, folder)
        lock = Path(name)
        if systems.try_lock(descriptor) is not False and is_at(descriptor, lock):
            sign(descriptor)
            return lock, descriptor
        os.close(descriptor)


def _release(owner: int, descriptor: int, lock: Path, remove: Remove | None, name: str) -> None:
    if os.getpid() != owner:  # a fork: its parent uses the files
        return
    if remove is not None:
        remove(lock.parent, name)
    systems.close_and_remove(descriptor, lock)


class TemporaryFolder:
    """A new folder, removed with the last reference to this object or when Python ends.

    Making one also removes those that killed processes left. The default parent is the system's
    folder for temporary files.
    """

    def __init__(self, parent: Path | None = None) -> None:
        locked = LockedName(parent or Path(tempfile.gettempdir()), remove_folder)
        self.path = locked.folder / locked.name
        self.remove = locked.release
        """Removes the folder earlier."""
        self._locked = locked
        self.path.mkdir(mode=0o700)


class TemporaryPrefix:
    """A new prefix on a server, removed as a `TemporaryFolder`; a killed process leaves it."""

    def __init__(self, parent: ObjectPath) -> None:
        self.path = parent / f"dhsk-{uuid4().hex[:8]}"
        self.remove = weakref.finalize(self, _remove, self.path)


TemporaryPlace: TypeAlias = TemporaryFolder | TemporaryPrefix


def temporary_place(parent: Place | None) -> TemporaryPlace:
    """Make a folder, or a prefix on a server."""
    if isinstance(parent, ObjectPath):
        return TemporaryPrefix(parent)
    if parent is not None:
        parent.mkdir(parents=True, exist_ok=True)
    return TemporaryFolder(parent)


def _remove(path: ObjectPath) -> None:
    with suppress(StoreError):
        path.remove_below(_REMOVE_SECONDS)
