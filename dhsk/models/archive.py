"""Files of arrays and JSON, in numpy's npz format: read with guards, never a pickle."""

import io
import json
import math
import zipfile
from collections.abc import Collection, Mapping
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import BudgetError, InputError
from dhsk.execution.limits import own_room
from dhsk.files import parse_json
from dhsk.models.base import Arrays
from dhsk.objects.places import Place, opened, parse_place, size_of, written
from dhsk.samples.binary import read_header
from dhsk.samples.paths import reading
from dhsk.units import format_bytes

SCHEMA: Final = 2
"""Version of the formats of files; no other one is read."""

_HEADER: Final = "header"
_HEAD_BYTES: Final = 1 << 17
"""Upper bound on the bytes before the values of an array: numpy's usual headers have 65,535."""


def write_archive(path: str | Place, header: Mapping[str, Any], arrays: Arrays) -> None:
    """Write JSON values and arrays with any file name; an existing file is replaced atomically.

    The header has its "format", and gets the `SCHEMA`. Raises OSError if the file cannot be
    written, StoreError if a server refuses it.
    """
    text = json.dumps({**header, "schema": SCHEMA}, default=_as_json).encode()
    parts: dict[str, Any] = {_HEADER: np.frombuffer(text, np.uint8), **arrays}
    with written(parse_place("path", path)) as file:
        # An open file: np.savez would add .npz to a name. No array needs pickle, and numpy before
        # 2.2 would take allow_pickle for one more array.
        np.savez(file, **parts)


def read_archive(
    path: str | Place, formats: Collection[str]
) -> tuple[Place, dict[str, Any], Arrays]:
    """Path, header and arrays of a file of one of these formats, written with this `SCHEMA`.

    Raises InputError if the file is missing, damaged or of another format or schema, BudgetError
    if its arrays do not fit in half of the free memory.
    """
    path = parse_place("path", path)
    with reading(str(path)):
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        _check_room(path, size_of(path) or 0)
        with opened(path) as file:  # by its name, an unreadable file is no archive either
            if not zipfile.is_zipfile(file):
                raise InputError(f"{path} is no dhsk model, or not the whole of one")
            arrays = _read_arrays(file, path)
    return path, _header(arrays.pop(_HEADER, None), path, formats), arrays


def was_written_here(path: Place) -> bool:
    """Whether a file, damaged or not, begins like one of `write_archive`: with the header."""
    with opened(path) as file:
        begin = file.read(64)
    return begin.startswith(b"PK") and b"header.npy" in begin


def names_of_header(header: Mapping[str, Any], dim: int) -> tuple[str, ...] | None:
    """Names of dim features in a header, None if there are none; ValueError if they are damaged."""
    names = header["feature_names"]
    if names is None:
        return None
    if len(names) != dim or not all(isinstance(name, str) for name in names):
        raise ValueError(f"feature_names are {len(names)} and not {dim} names")
    return tuple(names)


def _check_room(path: Place, needed: int) -> None:
    """Raise BudgetError if arrays do not fit in memory."""
    room = own_room(None)
    if needed > room:
        raise BudgetError(
            f"the arrays of {path} take {format_bytes(needed)} but {format_bytes(room)} of "
            "memory are left: make room, or read it on a machine with more"
        )


def _read_arrays(file: IO[bytes], path: Place) -> Arrays:
    """Read all arrays of an archive; raise BudgetError before that if they do not fit."""
    with zipfile.ZipFile(file) as archive:
        _check_room(path, sum(_bytes_of(archive, member) for member in archive.infolist()))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _bytes_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Unpacked bytes of an array; raise ValueError if its header contradicts the archive's."""
    with archive.open(member) as handle:
        head = io.BytesIO(handle.read(_HEAD_BYTES))
    shape, _, dtype = read_header(head)
    size = head.tell() + math.prod(shape) * dtype.itemsize
    if size != member.file_size:
        raise ValueError(
            f"{member.filename} has {member.file_size} bytes where its header says {size}"
        )
    return size


def _header(stored: NDArray[Any] | None, path: Place, formats: Collection[str]) -> dict[str, Any]:
    """Parsed header of a known format and schema."""
    try:
        header = parse_json(b"" if stored is None else stored.tobytes())
    except ValueError:
        header = None
    found = str(header.get("format")) if isinstance(header, dict) else ""
    if not (found.startswith("dhsk ") and found.endswith(" model")):
        raise InputError(f"{path} is no dhsk model: it is an archive of something else")
    if found not in formats:
        raise InputError(
            f"{path} is a {found}, but this dhsk reads a {' or a '.join(formats)}: load it with "
            "the version of dhsk that wrote it"
        )
    if header.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is a model of schema {header.get('schema')}, but this dhsk reads schema "
            f"{SCHEMA}: train it again, or use the dhsk that wrote it"
        )
    return dict(header)


def _as_json(value: Any) -> Any:
    """Python values of numpy scalars."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is no JSON")
