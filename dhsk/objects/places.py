"""Places of stores and files, on a disk or on an S3-like server, and what is done with either."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, TypeAlias
from uuid import uuid4

import numpy as np

from dhsk import files, systems
from dhsk.errors import InputError, StoreError
from dhsk.files import PART, FileBeside, parse_path, remove_parts, written_beside
from dhsk.objects.path import SCHEME, ObjectPath

Place: TypeAlias = Path | ObjectPath
"""Path of a store or a file."""


def is_url(value: Any) -> bool:
    """Whether a value is a URL rather than a path of this machine."""
    return isinstance(value, ObjectPath) or (isinstance(value, str) and "://" in value)


def parse_place(name: str, value: Any) -> Place:
    """Take a path or an ``s3://`` URL, whose server is asked whether it answers.

    Raises InputError for another value, and StoreError if the server refuses.
    """
    if isinstance(value, ObjectPath):
        return value
    if not is_url(value):
        return parse_path(name, value)
    url = str(value)
    if not url.startswith(SCHEME):
        raise InputError(f"{url}: give a local path, or s3://BUCKET/PREFIX")
    place = ObjectPath.parse(url)
    place.check()
    return place


def scratch_in(place: Place | None) -> Place | None:
    """Prefix for temporary files beside results on a server; None for results on a disk.

    Who has results on a server may share no disk with the workers.
    """
    return place / "scratch" if place is not None and is_url(place) else None


# Questions


def size_of(place: Place) -> int | None:
    """Bytes of a file; None if there is none."""
    if isinstance(place, ObjectPath):
        return place.size()
    try:
        return place.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def sizes_below(place: Place) -> dict[str, int]:
    """Bytes of all files below, by their names relative to this place, with slashes."""
    if isinstance(place, ObjectPath):
        return place.sizes()
    found, skipped = {}, len(os.path.join(place, ""))  # noqa: PTH118  # stores have many files
    for folder, _, names in os.walk(place):
        for name in names:
            file = f"{folder}/{name}"
            with suppress(FileNotFoundError):  # renamed or removed since
                found[file[skipped:].replace(os.sep, "/")] = os.stat(file).st_size  # noqa: PTH116
    return found


def bytes_below(place: Place) -> int:
    """Bytes of all files below."""
    return sum(sizes_below(place).values())


def entries_of(place: Place) -> set[str]:
    """Names of the files and folders directly below; none if there is no folder."""
    if isinstance(place, ObjectPath):
        return place.entries()
    return {entry.name for entry in place.iterdir()} if place.is_dir() else set()


def free_bytes(place: Place) -> int | None:
    """Free bytes of the disk that a folder is or will be on; None for servers, which do not say."""
    if isinstance(place, ObjectPath):
        return None
    parent = next(path for path in (place, *place.absolute().parents) if path.exists())
    return shutil.disk_usage(parent).free


def is_within(place: Place, folder: Place) -> bool:
    """Whether a path is that of a folder or below it, by whatever name."""
    if isinstance(place, Path) and isinstance(folder, Path):
        whole, other = place.resolve(), folder.resolve()
        if whole.is_relative_to(other) or not other.exists():
            return whole.is_relative_to(other)
        # On disks of macOS and Windows names that differ by case only are one.
        return any(path.exists() and path.samefile(other) for path in (whole, *whole.parents))
    return f"{place}/".startswith(f"{folder}/")


# Content


def opened(place: Place) -> IO[bytes]:
    """Open a file for reading; an object is read whole."""
    return BytesIO(place.read_bytes()) if isinstance(place, ObjectPath) else place.open("rb")


@contextmanager
def written(
    place: Place, mode: str = "wb", *, flush: bool = False, **options: Any
) -> Iterator[IO[Any]]:
    """Open a file as `written_beside`; that of a server is in memory, and one request writes it."""
    if not isinstance(place, ObjectPath):
        with written_beside(place, mode, flush=flush, **options) as file:
            yield file
        return
    content = BytesIO()
    with content if "b" in mode else TextIOWrapper(content, **options) as file:
        yield file
        file.flush()
        place.write_bytes(content.getvalue())


def write_whole(place: Place, data: bytes) -> None:
    """Write a file atomically; on a disk it is flushed, and folders are made as needed."""
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
    with written(place, flush=True) as file:
        file.write(data)


def read_into(place: Place, start: int, *buffers: memoryview) -> None:
    """Read bytes from `start` on into buffers, one after the other.

    Raises EOFError, or StoreError for an object, if there are not enough.
    """
    if isinstance(place, ObjectPath):
        place.read_parts(start, *buffers)
        return
    with place.open("rb", buffering=0) as file:
        file.seek(start)
        for buffer in buffers:
            rest = buffer
            while rest:
                count = file.readinto(rest)
                if not count:
                    raise EOFError(str(place))
                rest = rest[count:]


# Folders


@contextmanager
def made_folder(place: Place) -> Iterator[None]:
    """Make a folder, see `files.made_folder`; a server has none."""
    if isinstance(place, ObjectPath):
        yield
        return
    with files.made_folder(place):
        yield


def check_writable(place: Place) -> None:
    """Write a temporary file into a folder, or an object below a prefix, before long work.

    Raises StoreError if that is refused; OSError if there is no room, or no such folder.
    """
    if not isinstance(place, ObjectPath):
        files.check_writable(place)
        return
    probe = place / f".{uuid4().hex}{PART}"  # which others that look do not take for a result
    probe.write_bytes(b"")
    with suppress(StoreError):  # who may write but not delete can still save results
        probe.unlink(missing_ok=True)


def remove_below(place: Place) -> None:
    """Delete a folder with all its files, if there is one."""
    if isinstance(place, ObjectPath):
        place.remove_below()
    elif place.exists():
        shutil.rmtree(place)


def remove_scratch(place: Place) -> None:
    """Remove what killed processes left in `scratch_in` a place."""
    scratch = scratch_in(place)
    if scratch is not None:
        remove_below(scratch)


def remove_empty(place: Place) -> None:
    """Remove a folder if it is empty."""
    if isinstance(place, Path):
        with suppress(OSError):
            place.rmdir()


def remove_unfinished(place: Place) -> None:
    """Remove the parts that killed processes left; a server keeps none."""
    if isinstance(place, Path):
        remove_parts(place)


# Content of known size that appears in its place in one step


def begin_whole(place: Place, size: int) -> "_File | _Object":
    """Begin content of a size in bytes; folders are made as needed.

    `write` takes the next bytes, `commit` puts all of them in their place, and `discard` forgets
    them, if they are not there.
    """
    return _Object(place, size) if isinstance(place, ObjectPath) else _File(place, size)


class _File:
    """A temporary file, which is flushed and renamed."""

    def __init__(self, path: Path, size: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._beside = FileBeside(path, buffering=0)
        # Allocated first: measured on ext4, that saves a quarter of the time to write. If the disk
        # is full, the write raises too.
        systems.reserve(self._beside.file.fileno(), size)

    def write(self, part: memoryview) -> None:
        with self._beside.naming():
            while part:
                part = part[self._beside.file.write(part) :]

    def commit(self) -> None:
        try:
            self._beside.commit(flush=True)
        finally:
            self.discard()

    def discard(self) -> None:
        self._beside.discard()


class _Object:
    """Bytes in memory, which one request writes: a server shows no part of it."""

    def __init__(self, path: ObjectPath, size: int) -> None:
        self._path = path
        self._bytes = np.empty(size, np.uint8)
        self._filled = 0

    def write(self, part: memoryview) -> None:
        end = self._filled + len(part)
        self._bytes[self._filled : end] = part
        self._filled = end

    def commit(self) -> None:
        self._path.write_bytes(self._bytes.data)

    def discard(self) -> None:
        pass
