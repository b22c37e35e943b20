"""Files on disk: errors of the system in plain words, and files that are written whole or not."""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final
from uuid import uuid4

from dhsk import systems
from dhsk.errors import BudgetError, DhskError, InputError, StoreError

PART: Final = ".part"
"""Ends the names of files that are being written, which begin with a dot."""

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk."""

REFUSED: Final = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EISDIR,
    errno.EBUSY,
    errno.ETXTBSY,
    errno.EIO,
    errno.ESTALE,
    errno.EFBIG,
)
"""Error numbers of a file that exists but cannot be read or written."""


def refusal_of(error: OSError) -> DhskError:
    """Error that says what the system refused, and the way out.

    It is a `BudgetError` for a full disk, a `StoreError` for a file that cannot be read or written,
    an `InputError` for a name that cannot be used.
    """
    reason = error.strerror or " ".join(str(error).split())
    name = _name_of(error)
    if error.errno in FULL:
        return BudgetError(
            f"the disk is full: {name or 'a file'} cannot be written ({reason}); what is finished "
            "is kept: make room and run the same again, or choose another folder"
        )
    if error.errno in REFUSED:
        return StoreError(
            f"{name or 'a file'} cannot be read or written ({reason}): change its permissions or "
            "limits, or choose another place"
        )
    # Without a name it may be of anything, such as a connection that was lost.
    what = f"{name}: {reason}; check the path" if name else reason
    return InputError(f"cannot go on: {what}")


def _name_of(error: OSError) -> str:
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return " and ".join(dict.fromkeys(names))


@contextmanager
def full_disk_is_budget() -> Iterator[None]:
    """Turn the `OSError` of a full disk or an exhausted quota into a `BudgetError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise refusal_of(error) from error


def refuse_device(path: Path) -> None:
    """Refuse what is there but no file of a disk: to replace /dev/stdout would end it for all."""
    if systems.is_device_name(path.absolute()) and path.exists():
        what = "a device, or the name of an open file"
    elif path.exists() and not path.is_file() and not path.is_dir():
        what = "a pipe, a socket or a device"
    else:
        return
    raise InputError(
        f"{path} is {what}: results appear whole or not at all, so give the name of a file"
    )


class FileBeside:
    """A file, opened as by `open`, that takes the place of `path` in one step when it is complete.

    Until then it is ``.NAME.RANDOM.part`` beside it, locked; a killed process leaves that, without
    the lock, for `remove_abandoned`. A link stays, and the file that it names is replaced. Raises
    `InputError` for a pipe or a device, and `OSError`, with `filename` set, if it cannot be made.
    """

    def __init__(self, path: Path, mode: str = "wb", **options: Any) -> None:
        refuse_device(path)
        if not path.name:  # "." and "/"
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        self.path = path
        self._place = Path(os.path.realpath(path)) if path.is_symlink() else path
        while True:
            # Processes of several machines may write the same file: a number is not enough.
            name = f".{self._place.name}.{_machine()}{uuid4().hex[:8]}{PART}"
            self._beside = self._place.with_name(name)
            with self.naming():
                self.file: IO[Any] = self._beside.open(mode, **options)
            """Open for writing."""
            self._lock = os.dup(self.file.fileno())  # it outlasts the file until that is renamed
            if systems.try_lock(self._lock) is not False and is_at(self._lock, self._beside):
                break
            self.discard()  # taken for abandoned before it was locked

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Have errors name the file that was to be written: Python names no open file."""
        try:
            yield
        except OSError as error:
            if error.errno and error.filename in (None, str(self._beside)):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise

    def commit(self, *, flush: bool = False) -> None:
        """Put it in its place; with `flush` it is on the disk first."""
        with self.naming():
            if flush:
                self.file.flush()
                os.fsync(self.file.fileno())
            self.file.close()
            systems.close_and_rename(self._take_lock(), self._beside, self._place)

    def discard(self) -> None:
        """Remove it, unless it is in its place."""
        with suppress(OSError):  # unwritten data are discarded too
            self.file.close()
        lock = self._take_lock()
        with suppress(OSError):
            if lock >= 0:
                systems.close_and_remove(lock, self._beside)
            else:
                self._beside.unlink(missing_ok=True)

    def _take_lock(self) -> int:
        lock, self._lock = self._lock, -1
        return lock


@contextmanager
def written_beside(
    path: Path, mode: str = "wb", *, flush: bool = False, **options: Any
) -> Iterator[IO[Any]]:
    """Open a file that takes the place of `path` when it is complete, and is removed if not.

    With `flush` it is on the disk before it takes its place. Raises `OSError`, with `filename` set,
    if it cannot be written.
    """
    remove_abandoned(Path(os.path.realpath(path)).parent)
    beside = FileBeside(path, mode, **options)
    try:
        with beside.naming():
            yield beside.file
        beside.commit(flush=flush)
    finally:
        beside.discard()


_tidied: Final[set[Path]] = set()
"""Folders without abandoned parts, as far as this process knows."""


def remove_abandoned(folder: Path) -> None:
    """Remove the parts of files that killed processes left in a folder, once a process.

    Those of a living process are locked, whatever container or namespace it is in. Parts of other
    users, and of machines whose locks may not be seen here, stay.
    """
    if folder in _tidied:
        return
    _tidied.add(folder)
    with suppress(OSError):
        for file in folder.glob(f".*.{_machine()}*{PART}"):
            with suppress(OSError):
                remove_if_abandoned(file)


def remove_if_abandoned(file: Path, also: Callable[[int], bool] = lambda _: True) -> None:
    """Remove a file of this user that no process holds; links are not followed.

    `also` is called with its descriptor while it is locked; the file stays if that returns False.
    Raises `OSError` if it cannot be opened.
    """
    descriptor = systems.open_to_lock(file)
    removed = False
    try:
        status = os.fstat(descriptor)
        ours = stat.S_ISREG(status.st_mode) and systems.is_own(status)
        removed = bool(
            ours and systems.try_lock(descriptor) and is_at(descriptor, file) and also(descriptor)
        )
    finally:
        if not removed:
            os.close(descriptor)
    if removed:
        systems.close_and_remove(descriptor, file)


def is_at(descriptor: int, file: Path) -> bool:
    """Whether a descriptor's open file is still the one at this path; links are not followed."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except FileNotFoundError:
        return False


def _machine() -> str:
    """Six digits of the running system."""
    return sha256(systems.boot_id().encode()).hexdigest()[:6]


def is_part(name: str) -> bool:
    """Whether a file is the part of one that a process writes, or left when it was killed."""
    return name.startswith(".") and name.endswith(PART)


def remove_parts(folder: Path) -> None:
    """Remove the parts that killed processes left in a folder and all below it."""
    for file in folder.rglob(f".*{PART}"):
        file.unlink(missing_ok=True)


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Make a folder and its parents, and remove those that were made if they stay empty.

    Raises `StoreError` if it cannot be written, `OSError` if it cannot be made for another reason.
    """
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno in REFUSED:
                raise not_writable(path, error) from error
            raise
        yield
    finally:
        with suppress(OSError):  # not empty: there are results
            for folder in made:
                folder.rmdir()


def check_writable(folder: Path) -> None:
    """Make a file without a name in a folder, before long work whose result is to go there.

    Where files need names it has that of a part: see `is_part`.

    Raises `StoreError` if it cannot be written, and `OSError`, with the folder as `filename`, if
    there is no room, or no such folder.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".", suffix=PART):
            pass
    except OSError as error:
        if error.errno in REFUSED:
            raise not_writable(folder, error) from error
        error.filename = str(folder)
        raise


def not_writable(folder: Path, error: OSError) -> StoreError:
    """Error for a folder that cannot be written."""
    return StoreError(
        f"{folder} cannot be written ({error.strerror}): choose another folder, or make it writable"
    )


def parse_path(name: str, value: Any) -> Path:
    """Take a path that the system can be asked for; `InputError` for anything else."""
    try:
        path = os.fsdecode(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a path, but it is {value!r}") from error
    if "\0" in path:
        raise InputError(f"{name} must be a path, but {path!r} has a NUL character")
    if "://" in path:
        raise InputError(f"{name} must be a path on a disk, but {path} is a URL")
    return Path(path)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; `ValueError` however it is damaged, also if nested deeper than Python reads."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deep") from error


def parse_object(read: Callable[[], str | bytes]) -> dict[str, Any]:
    """Object of JSON that a file holds; empty if the file is absent or damaged."""
    try:
        found = parse_json(read())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
