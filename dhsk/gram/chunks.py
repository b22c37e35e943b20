"""Chunk files of zarr arrays, written and read without the copies that its codecs make.

A chunk of these stores is what zarr v3's codecs `bytes` (little-endian) and `crc32c` make of it:
its entries in C order, padded to full size, and four bytes of checksum. Through zarr 3.1 a chunk of
16 MB costs 31 ms of processor time, mostly for fresh memory; here 5 ms, where its product takes 35.
"""

import errno
import os
import sys
import uuid
from pathlib import Path
from typing import Any, Final

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from dhsk.errors import CorruptTileError, IncompleteStoreError

CHECKSUM_BYTES: Final = 4

_STRIP_BYTES: Final = 1 << 20  # summed while it is in the cache, then written


def write_chunk(path: Path, values: NDArray[Any], shape: tuple[int, int]) -> None:
    """Write a chunk in one step: it is there whole or not at all, after a crash too.

    Parameters
    ----------
    path
        Its file; folders are made as needed.
    values
        Entries, (a, b), C-ordered, of the array's type.
    shape
        Shape of a full chunk, at least (a, b); the rest is filled with NaN.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        with partial.open("wb", buffering=0) as file:
            checksum = 0
            for strip in _strips(values, shape):
                checksum = google_crc32c.extend(checksum, strip)
                _write_all(file, strip)
            _write_all(file, np.array([checksum], dtype="<u4"))
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)  # Python names no file where it was opened before
        raise


def _strips(values: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Parts of a full chunk from top to bottom, C-ordered."""
    little = values.dtype.newbyteorder("<")
    step = max(1, _STRIP_BYTES // max(1, shape[1] * values.itemsize))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        strip = values[start:stop]
        if strip.shape != (stop - start, shape[1]):
            padded = np.full((stop - start, shape[1]), np.nan, little)
            padded[: strip.shape[0], : strip.shape[1]] = strip
            strip = padded
        yield np.ascontiguousarray(strip, dtype=little)


def _write_all(file: Any, strip: NDArray[Any]) -> None:
    rest = memoryview(strip.reshape(-1).view(np.uint8).data)
    while rest:
        rest = rest[file.write(rest) :]


def chunk_size(shape: tuple[int, int], dtype: "np.dtype[Any]") -> int:
    """Bytes of a chunk file."""
    return shape[0] * shape[1] * dtype.itemsize + CHECKSUM_BYTES


def read_chunk(path: Path, out: NDArray[Any]) -> NDArray[Any]:
    """Read a whole chunk and test its checksum.

    Parameters
    ----------
    path
        Its file.
    out
        C-ordered array of the shape of a full chunk and the array's type; it is overwritten.

    Returns
    -------
    ndarray
        `out`.

    Raises
    ------
    IncompleteStoreError
        There is no such file.
    CorruptTileError
        Its size or its checksum is wrong, or the disk cannot read it.
    """
    flat = out.reshape(-1).view(np.uint8)
    stored = np.empty(1, dtype="<u4")
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size != flat.size + CHECKSUM_BYTES:
                raise CorruptTileError(
                    f"it has {size} bytes where {flat.size + CHECKSUM_BYTES} belong"
                )
            _read_all(file, flat)
            _read_all(file, stored.view(np.uint8))
    except FileNotFoundError as error:
        raise IncompleteStoreError("it is missing") from error
    except OSError as error:
        if error.errno == errno.EIO:
            raise CorruptTileError("the disk cannot read it") from error
        raise
    found = google_crc32c.value(flat)
    if found != int(stored[0]):
        raise CorruptTileError(f"its checksum is {int(stored[0]):08x}, its content's {found:08x}")
    if sys.byteorder == "big":
        out.byteswap(inplace=True)
    return out


def _read_all(file: Any, into: NDArray[np.uint8]) -> None:
    rest = memoryview(into.data)
    while rest:
        count = file.readinto(rest)
        if not count:
            raise CorruptTileError("it ends early")
        rest = rest[count:]
