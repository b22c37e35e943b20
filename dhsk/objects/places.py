"""Places of stores, on a disk or on an S3-like server, and what is done with either."""

import shutil
from pathlib import Path
from typing import Any, TypeAlias

from dhsk.errors import InputError
from dhsk.files import parse_path, remove_parts, written_beside
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


def write_whole(place: Place, data: bytes) -> None:
    """Write a file atomically; on a disk it is flushed, and folders are made as needed."""
    if isinstance(place, ObjectPath):
        place.write_bytes(data)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with written_beside(place, flush=True) as file:
        file.write(data)


def size_of(place: Place) -> int | None:
    """Bytes of a file; None if there is none."""
    if isinstance(place, ObjectPath):
        return place.size()
    try:
        return place.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def bytes_below(place: Place) -> int:
    """Bytes of all files below."""
    if isinstance(place, ObjectPath):
        return sum(place.sizes().values())
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def remove_below(place: Place) -> None:
    """Delete a folder with all its files, if there is one."""
    if isinstance(place, ObjectPath):
        place.remove_below()
    elif place.exists():
        shutil.rmtree(place)


def remove_unfinished(place: Place) -> None:
    """Remove the parts that killed processes left; a server keeps none."""
    if isinstance(place, Path):
        remove_parts(place)
