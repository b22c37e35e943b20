"""Samples in numpy files: `.npy`, and dense or CSR arrays in `.npz` archives."""

import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError
from dhsk.objects.path import ObjectPath
from dhsk.samples.base import (
    Samples,
    check_columns,
    check_csr,
    check_real,
    csr_block,
    dense_block,
    flat_shape,
)
from dhsk.samples.paths import Origin

CSR_KEYS = frozenset({"data", "indices", "indptr", "shape"})
"""The arrays that `scipy.sparse.save_npz` writes for a CSR matrix."""

FEATURE_KEYS = ("feature_names", "features", "genes", "words", "vocabulary", "columns", "var_names")
SAMPLE_KEYS = ("sample_names", "samples", "ids", "cells", "documents", "index", "obs_names")
"""Keys of arrays of strings in an archive that are the names of the features, or the samples."""

_PIECE_BYTES = 2**16


class NpyHeader(NamedTuple):
    """Header of an array in the .npy format."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read_header(handle: IO[bytes]) -> NpyHeader:
    """Read the header of the .npy format, after which `handle` is at the first value.

    Raises `ValueError` if there is no header, or it is damaged.
    """
    try:
        version = npy.read_magic(handle)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        return NpyHeader(*read(handle))
    except OSError:
        raise
    # numpy parses the header as Python, and lets through what tokenizer, parser and dtypes raise of
    # a flipped bit: SyntaxError, TokenError, RecursionError, MemoryError, TypeError and others.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"its header is damaged: {reason}") from error


@dataclass(frozen=True)
class NpySamples(Samples):
    """A `.npy` file, in C or Fortran order; takes the memory of two blocks."""

    source: str
    shape: tuple[int, int]
    origin: Origin
    header: NpyHeader
    offset: int
    """Offset of the first value, in bytes."""
    is_sparse = False
    nnz = None

    def _blocks(self, rows: int) -> Iterator[Rows]:
        read = self._by_columns if self.header.fortran else self._by_rows
        for part in blocks(self.shape[0], rows):
            with self.origin.reading():
                block = dense_block(read(part.start, part.stop))
            yield block

    def _by_rows(self, first: int, last: int) -> NDArray[Any]:
        """Rows in C order; on a disk each block has its own memory map, which is freed with it."""
        path, (shape, _, dtype) = self.origin.path, self.header
        if isinstance(path, Path):
            mapped: NDArray[Any] = np.memmap(path, dtype, "r", self.offset, shape)
            return mapped[first:last]
        values = np.empty((last - first, *shape[1:]), dtype)
        begin = self.offset + first * self.shape[1] * dtype.itemsize
        path.read_parts(begin, values.reshape(-1).view(np.uint8).data)
        return values

    def _by_columns(self, first: int, last: int) -> NDArray[Any]:
        """Rows in Fortran order; a memory map would read all pages of the file."""
        path, ((n_samples, *tail), _, dtype) = self.origin.path, self.header
        values = np.empty((last - first, *tail), dtype, order="F")
        columns = values.reshape(last - first, -1, order="F").T  # a view, of contiguous rows
        parts = [
            (self.offset + (number * n_samples + first) * dtype.itemsize, column.view(np.uint8))
            for number, column in enumerate(columns)
        ]
        if isinstance(path, ObjectPath):
            path.read_ranges((start, part.data) for start, part in parts)
            return values
        with path.open("rb", buffering=0) as handle:
            for start, part in parts:
                handle.seek(start)
                if handle.readinto(part.data) != part.nbytes:
                    raise EOFError(f"a column ends early, at byte {start}")
        return values


@dataclass(frozen=True)
class NpzSamples(Samples):
    """A dense array in an archive; takes the memory of two blocks."""

    source: str
    shape: tuple[int, int]
    origin: Origin
    member: str
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    is_sparse = False
    nnz = None

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with _opened(self.origin, self.member) as (handle, _):
            dtype = read_header(handle).dtype
            for part in blocks(self.shape[0], rows):
                size = part.stop - part.start
                values = _read_values(handle, dtype, size * self.shape[1])
                yield dense_block(values.reshape(size, -1))

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return in_blocks(member_names(self.origin, SAMPLE_KEYS, self.shape[0]), rows)


@dataclass(frozen=True, eq=False)
class NpzCsrSamples(Samples):
    """A CSR matrix in an archive; takes the memory of the row pointers and three blocks."""

    source: str
    shape: tuple[int, int]
    nnz: int
    origin: Origin
    indptr: NDArray[np.int64] = field(repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    is_sparse = True

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with (  # each is read on from where it was
            _opened(self.origin, "data") as (data_file, _),
            _opened(self.origin, "indices") as (indices_file, _),
        ):
            data_dtype, index_dtype = read_header(data_file).dtype, read_header(indices_file).dtype
            for part in blocks(self.shape[0], rows):
                indptr = self.indptr[part.start : part.stop + 1]
                count = int(indptr[-1] - indptr[0])
                data = _read_values(data_file, data_dtype, count)
                indices = _read_values(indices_file, index_dtype, count)
                check_columns(self.source, indices, indptr, part.start, self.shape[1])
                yield csr_block(data, indices, indptr, self.shape[1])

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return in_blocks(member_names(self.origin, SAMPLE_KEYS, self.shape[0]), rows)


def open_npy(origin: Origin) -> NpySamples:
    """Open a `.npy` file of real numbers."""
    origin.refuse_key("a key goes with an .npz archive")
    source = str(origin)
    with origin.reading(), origin.path.open("rb") as handle:
        header = read_header(handle)
        offset = handle.tell()
    _check_stored(source, header)
    shape = flat_shape(source, header.shape)
    _check_size(source, origin.version.size, offset + shape[0] * shape[1] * header.dtype.itemsize)
    return NpySamples(source, shape, origin, header, offset)


def open_npz(origin: Origin) -> Samples:
    """Open a dense array of an archive, or a CSR matrix of `scipy.sparse.save_npz`."""
    keys = archive_keys(origin)
    if origin.key is None:
        if keys >= CSR_KEYS:
            return _open_csr(origin)
        _refuse_sparse(origin, keys)
    member = choose_key(origin, keys, ("X",), "samples")
    source = f"{origin.path}:{member}"
    header = member_header(origin, member)
    _check_stored(source, header)
    shape = flat_shape(source, header.shape)
    if header.fortran:
        raise InputError(
            f"{source} is stored by columns (Fortran order), which cannot be read by rows from an "
            "archive: save it again with np.ascontiguousarray(X), or alone with np.save"
        )
    names = member_names(origin, FEATURE_KEYS, shape[1])
    return NpzSamples(source, shape, origin, member, names)


def _open_csr(origin: Origin) -> NpzCsrSamples:
    source = str(origin.path)
    _check_format(origin)
    data, indices = member_header(origin, "data"), member_header(origin, "indices")
    _check_stored(f"{source}:data", data)
    shape, indptr = check_csr(
        source, load_member(origin, "shape"), data, indices, load_member(origin, "indptr")
    )
    names = member_names(origin, FEATURE_KEYS, shape[1])
    return NpzCsrSamples(source, shape, data.shape[0], origin, indptr, names)


def _check_format(origin: Origin) -> None:
    """Refuse the other formats that `scipy.sparse.save_npz` writes with the same four arrays."""
    if "format" not in archive_keys(origin):
        return
    name = load_member(origin, "format").item()
    name = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    if name != "csr":
        _refuse_format(origin, name.upper())


def _refuse_sparse(origin: Origin, keys: frozenset[str]) -> None:
    """Refuse sparse matrices in formats other than CSR, by the names of their arrays."""
    if keys >= {"row", "col", "data"}:
        _refuse_format(origin, "COO")
    if keys >= {"offsets", "data", "shape"}:
        _refuse_format(origin, "DIA")
    if keys >= CSR_KEYS - {"shape"}:
        raise InputError(
            f"{origin.path} has the arrays of a CSR matrix but for 'shape', (samples, features): "
            "write it with scipy.sparse.save_npz(FILE, X)"
        )


def _refuse_format(origin: Origin, name: str) -> NoReturn:
    raise InputError(
        f"{origin.path} is a sparse matrix in {name} format, but rows are read from CSR: "
        "convert it with scipy.sparse.save_npz(FILE, scipy.sparse.load_npz(FILE).tocsr())"
    )


def _check_stored(source: str, header: NpyHeader) -> None:
    """Refuse arrays that are not of real numbers."""
    if header.dtype.hasobject:
        _refuse_objects(source, header, "X.astype(float)")
    check_real(source, header.dtype)


def _refuse_objects(source: str, header: NpyHeader, conversion: str) -> NoReturn:
    if header.shape == ():
        what, way_out = "one Python object", "a sparse matrix is saved by scipy.sparse.save_npz"
    else:
        what, way_out = f"Python objects (dtype {header.dtype})", f"save {conversion} instead"
    raise InputError(
        f"{source} holds {what}, which numpy pickled and dhsk never unpickles, because that can "
        f"run foreign code: {way_out}"
    )


def archive_keys(origin: Origin) -> frozenset[str]:
    """Return the names of the arrays in an archive."""
    with _archive(origin) as archive:
        return frozenset(n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy"))


def choose_key(origin: Origin, keys: frozenset[str], usual: tuple[str, ...], what: str) -> str:
    """Return the key of `origin`, else the only key, else the first of the usual ones."""
    if origin.key in keys:
        return origin.key
    if origin.key is None:
        if len(keys) == 1:
            return next(iter(keys))
        for name in usual:
            if name in keys:
                return name
    problem = f"has no array {origin.key!r}" if origin.key else f"does not say which holds {what}"
    listed = ", ".join(sorted(keys)) or "none"
    raise InputError(
        f"{origin.path} {problem}: name one of its arrays ({listed}) as {origin.path}:NAME"
    )


@contextmanager
def _archive(origin: Origin) -> Iterator[zipfile.ZipFile]:
    """Open an archive."""
    with (
        origin.reading(),
        origin.path.open("rb") as handle,
        zipfile.ZipFile(handle) as archive,
    ):
        yield archive


@contextmanager
def _opened(origin: Origin, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """Open one array of an archive; gives its file and size in bytes."""
    name = f"{member}.npy"
    with _archive(origin) as archive, archive.open(name) as handle:
        yield handle, archive.getinfo(name).file_size


def member_header(origin: Origin, member: str) -> NpyHeader:
    """Read the header of one array of an archive."""
    with _opened(origin, member) as (handle, _):
        return read_header(handle)


def load_member(origin: Origin, member: str) -> NDArray[Any]:
    """Read an array of an archive, of any type except Python objects."""
    with _opened(origin, member) as (handle, size):
        return _read_whole(handle, f"{origin.path}:{member}", size)


def load_array(origin: Origin) -> NDArray[Any]:
    """Read the array of a `.npy` file, of any type except Python objects."""
    with origin.reading(), origin.path.open("rb") as handle:
        return _read_whole(handle, str(origin), origin.version.size)


def _read_whole(handle: IO[bytes], source: str, size: int) -> NDArray[Any]:
    """Read an array of a file of `size` bytes, whose header may be damaged."""
    header = read_header(handle)
    if header.dtype.hasobject:
        _refuse_objects(source, header, "y.astype(str)")
    count = math.prod(header.shape)
    _check_size(source, size, handle.tell() + count * header.dtype.itemsize, header.shape)
    values = _read_values(handle, header.dtype, count)
    return values.reshape(header.shape, order="F" if header.fortran else "C")


def member_names(origin: Origin, keys: Sequence[str], count: int) -> tuple[str, ...] | None:
    """Read names from the first array of some keys that holds `count` strings; None without one.

    Arrays of Python objects do not count, as they are never unpickled.
    """
    present = archive_keys(origin)
    for key in keys:
        if key in present:
            header = member_header(origin, key)
            if header.shape == (count,) and header.dtype.kind in "US":
                return as_text(load_member(origin, key))
    return None


def as_text(names: NDArray[Any]) -> tuple[str, ...]:
    """Names as strings; bytes are decoded as UTF-8, invalid ones as hexadecimal escapes."""
    return tuple(
        n.decode("utf-8", "backslashreplace") if isinstance(n, bytes) else str(n)
        for n in names.tolist()
    )


def in_blocks(names: Sequence[str] | None, rows: int) -> Iterator[Sequence[str]] | None:
    """Names of samples in blocks; None for None."""
    if names is None:
        return None
    return (names[part] for part in blocks(len(names), rows))


def _read_values(handle: IO[bytes], dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    values = np.empty(count, dtype)
    content = values.view(np.uint8)
    done = 0
    # In pieces, because a read from an archive takes several times its size in memory.
    while done < content.size:
        piece = handle.read(min(_PIECE_BYTES, content.size - done))
        if not piece:
            raise EOFError(f"an array ends {content.size - done} bytes early")
        content[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return values


def _check_size(source: str, size: int, announced: int, shape: tuple[int, ...] = ()) -> None:
    if announced > size or min(shape, default=0) < 0:
        raise InputError(
            f"{source} is truncated: it has {size} bytes and its header announces {announced}"
        )
