"""Archives of arrays: nothing of one is read before its headers say that it fits."""

import io
import math
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import BudgetError
from dhsk.samples.binary import read_header
from dhsk.samples.paths import reading
from dhsk.units import human_bytes

_HEAD_BYTES: Final = 1 << 17
"""Most bytes before the values of an array: numpy's usual headers have at most 65,535."""


def read_arrays(path: Path, room: int) -> dict[str, NDArray[Any]]:
    """Read all arrays of an archive that `numpy.savez` wrote.

    Parameters
    ----------
    path
        The file.
    room
        Bytes that they may take.

    Returns
    -------
    dict
        Arrays by their names.

    Raises
    ------
    InputError
        The archive is damaged: also where an array is of another size than its header says.
    BudgetError
        They do not fit; nothing was read but headers.
    """
    with reading(str(path)):
        with zipfile.ZipFile(path) as archive:
            needed = sum(_bytes_of(archive, member) for member in archive.infolist())
        if needed > room:
            raise BudgetError(
                f"the arrays of {path} take {human_bytes(needed)} but {human_bytes(room)} of "
                "memory are left: make room, or read it on a machine with more"
            )
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


def was_written_here(path: Path) -> bool:
    """Whether a file begins as model files do, damaged or not: with the array of their header."""
    with path.open("rb") as file:
        begin = file.read(64)
    return begin.startswith(b"PK") and b"header.npy" in begin


def _bytes_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Bytes of an array, unpacked, as two headers say it: the archive's and its own.

    Raises
    ------
    ValueError
        They contradict each other.
    """
    with archive.open(member) as handle:
        head = io.BytesIO(handle.read(_HEAD_BYTES))
    shape, _, dtype = read_header(head)
    size = head.tell() + math.prod(shape) * dtype.itemsize
    if size != member.file_size:
        raise ValueError(
            f"{member.filename} has {member.file_size} bytes where its header says {size}"
        )
    return size
