"""Samples in numpy files: `.npy`, and dense or CSR arrays in `.npz` archives."""

import math
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError
from dhsk.objects.path import ObjectPath
from dhsk.samples.base import Samples, check_real, dense_block, flat_shape
from dhsk.samples.chunked import choose_key, find_samples, open_chunked, read_vector
from dhsk.samples.format import LABELS, SHOWN, Asked, Format, SamplesFile, describe_arrays
from dhsk.samples.names import as_text, listed
from dhsk.samples.paths import Origin
from dhsk.systems import quoted

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


class NpyArray:
    """An array in the .npy format, of a file of `size` bytes; its values are read in order."""

    def __init__(self, handle: IO[bytes], source: str, size: int) -> None:
        self._handle, self._source, self._size = handle, source, size
        self.header = read_header(handle)
        self.shape, self.dtype = self.header.shape, self.header.dtype
        self.offset = handle.tell()
        """Offset of the first value, in bytes."""

    def next_rows(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """The next rows, or entries, as a fresh array."""
        tail = self.shape[1:]
        values = _read_values(self._handle, self.dtype, count * math.prod(tail))
        return values.astype(dtype, copy=False).reshape(count, *tail)

    def __getitem__(self, every: slice) -> NDArray[Any]:
        """All values, as of other arrays."""
        assert every == slice(None)
        return self.whole()

    def whole(self) -> NDArray[Any]:
        """All values, of any type except Python objects."""
        self.refuse_objects()
        self.check_size()
        values = _read_values(self._handle, self.dtype, math.prod(self.shape))
        return values.reshape(self.shape, order="F" if self.header.fortran else "C")

    def as_samples(self) -> tuple[int, int]:
        """Shape of samples, whose trailing axes are flattened; refuses what are none."""
        self.refuse_objects()
        check_real(self._source, self.dtype)
        return flat_shape(self._source, self.shape)

    def refuse_objects(self) -> None:
        """Refuse arrays that numpy pickled."""
        if not self.dtype.hasobject:
            return
        what, way_out = "one Python object", "a sparse matrix is saved by scipy.sparse.save_npz"
        if self.shape != ():
            what = f"Python objects (dtype {self.dtype})"
            way_out = "save X.astype(float) instead, or labels as y.astype(str)"
        raise InputError(
            f"{self._source} holds {what}, which numpy pickled and dhsk never unpickles, because "
            f"that can run foreign code: {way_out}"
        )

    def check_size(self) -> None:
        """Refuse an array that is longer than its file."""
        announced = self.offset + math.prod(self.shape) * self.dtype.itemsize
        if announced > self._size or min(self.shape, default=0) < 0:
            raise InputError(
                f"{self._source} is truncated: it has {self._size} bytes and its header announces "
                f"{announced}"
            )


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


# Files of one array


@contextmanager
def _opened_npy(origin: Origin) -> Iterator[NpyArray]:
    with origin.reading(), origin.path.open("rb") as handle:
        yield NpyArray(handle, str(origin), origin.version.size)


@dataclass(frozen=True, eq=False)
class NpySamples(Samples):
    """A `.npy` file, in C or Fortran order; takes the memory of two blocks."""

    origin: Origin
    header: NpyHeader
    offset: int
    """Offset of the first value, in bytes."""

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


def _open_npy(origin: Origin, _: Asked) -> NpySamples:
    origin.refuse_key("a key goes with an .npz archive")
    with _opened_npy(origin) as stored:
        shape = stored.as_samples()
        stored.check_size()
    return NpySamples(str(origin), shape, origin, stored.header, stored.offset)


def _npy_labels(origin: Origin, _: Asked) -> NDArray[Any]:
    origin.refuse_key("a key goes with an .npz archive")
    with _opened_npy(origin) as stored:
        return stored.whole()


# Archives


class Archive(Mapping[str, NpyArray]):
    """The arrays of an archive, as a group of AnnData has them if they are a CSR matrix."""

    def __init__(self, origin: Origin, stack: ExitStack) -> None:
        self._origin, self._stack = origin, stack
        names = self._opened().namelist()
        self._keys = frozenset(n.removesuffix(".npy") for n in names if n.endswith(".npy"))
        self.attrs: dict[str, Any] = {}
        if origin.key is None and self._keys >= CSR_KEYS:
            self.attrs = {"encoding-type": "csr_matrix", "shape": self["shape"].whole()}

    def _opened(self) -> zipfile.ZipFile:
        handle = self._stack.enter_context(self._origin.path.open("rb"))
        return self._stack.enter_context(zipfile.ZipFile(handle))

    def __getitem__(self, key: str) -> NpyArray:
        """An array, at its first value: each is opened by itself and read on from where it was."""
        if key not in self._keys:
            raise KeyError(key)
        archive, name = self._opened(), f"{key}.npy"
        handle = self._stack.enter_context(archive.open(name))
        return NpyArray(handle, f"{self._origin.path}:{key}", archive.getinfo(name).file_size)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


@contextmanager
def _opened_npz(origin: Origin, key: str | None = None) -> Iterator[Any]:
    """Open an archive, or the samples in it."""
    with origin.reading(), ExitStack() as stack:
        archive = Archive(origin, stack)
        if key is None:
            yield archive
            return
        stored = archive[key]
        stored.shape = stored.as_samples()
        yield stored


def _open_npz(origin: Origin, _: Asked) -> Samples:
    """Open a dense array of an archive, or a CSR matrix of `scipy.sparse.save_npz`."""
    with _opened_npz(origin) as archive:
        if origin.key is None:
            _refuse_format(origin, archive)
        key = find_samples(origin, archive)
        stored = archive["data" if key is None else key]
        stored.refuse_objects()
        if stored.header.fortran and len(stored.shape) > 1:
            raise InputError(
                f"{origin.path}:{key} is stored by columns (Fortran order), which cannot be read "
                "by rows from an archive: save it again with np.ascontiguousarray(X), or alone "
                "with np.save"
            )
    source = str(origin.path) if key is None else f"{origin.path}:{key}"
    samples = open_chunked(source, partial(_opened_npz, origin, key))
    features = _names(origin, FEATURE_KEYS, samples.shape[1])
    names = partial(_names, origin, SAMPLE_KEYS, samples.shape[0])
    return replace(samples, feature_names=features, names=names)


def _refuse_format(origin: Origin, archive: Archive) -> None:
    """Refuse sparse matrices in formats other than CSR, by the names of their arrays."""
    name = None
    if archive.keys() >= CSR_KEYS:
        if "format" in archive:  # others have the same four arrays
            name = archive["format"].whole().item()
            name = name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)
    elif archive.keys() >= {"row", "col", "data"}:
        name = "coo"
    elif archive.keys() >= {"offsets", "data", "shape"}:
        name = "dia"
    elif archive.keys() >= CSR_KEYS - {"shape"}:
        raise InputError(
            f"{origin.path} has the arrays of a CSR matrix but for 'shape', (samples, features): "
            "write it with scipy.sparse.save_npz(FILE, X)"
        )
    if name not in (None, "csr"):
        raise InputError(
            f"{origin.path} is a sparse matrix in {name.upper()} format, but rows are read from "
            "CSR: convert it with scipy.sparse.save_npz(FILE, scipy.sparse.load_npz(FILE).tocsr())"
        )


def _names(origin: Origin, keys: Sequence[str], count: int) -> tuple[str, ...] | None:
    """Read names from the first array of some keys that holds `count` strings; None without one.

    Arrays of Python objects do not count, as they are never unpickled.
    """
    with _opened_npz(origin) as archive:
        for key in keys:
            if key in archive:
                stored = archive[key]
                if stored.shape == (count,) and stored.dtype.kind in "US":
                    return as_text(stored.whole())
    return None


def _npz_labels(origin: Origin, _: Asked) -> NDArray[Any]:
    with _opened_npz(origin) as archive:
        key = choose_key(origin, frozenset(archive), ("y", "labels"), "the labels")
        return read_vector(origin, archive[key])


def _describe_npz(origin: Origin) -> SamplesFile:
    with _opened_npz(origin) as archive:
        _refuse_format(origin, archive)
        headers = {key: archive[key].header for key in sorted(archive)}
    shown = [
        f"{key} {' x '.join(f'{size:,}' for size in header.shape) or 'scalar'} {header.dtype}"
        for key, header in headers.items()
    ]
    vectors = [key for key, header in headers.items() if len(header.shape) == 1]
    label = next((key for key in ("y", *LABELS) if key in vectors), None)
    labels = "LABELS" if label is None else quoted(f"{origin.path}:{label}")
    words, rows = "arrays, or a sparse matrix (.npz)", [("arrays", listed(shown, SHOWN))]
    return describe_arrays(words, origin, _open_npz, rows, labels)


def _describe_npy(origin: Origin) -> SamplesFile:
    """Describe samples, or labels: one axis of strings, or of whole numbers, booleans included."""
    with _opened_npy(origin) as stored:
        if len(stored.shape) != 1 or stored.dtype.kind not in "USbiu" or not stored.shape[0]:
            return describe_arrays("an array (.npy)", origin, _open_npy)
        found = Counter(as_text(stored.whole()))
    n, sizes = stored.shape[0], [f"{name} ({size:,})" for name, size in found.most_common(SHOWN)]
    more = ", ..." if len(found) > SHOWN else ""
    said = f"{n:,} of {len(found):,} classes, it seems: {', '.join(sizes)}{more}"
    facts = {"shape": [n], "n_classes": len(found)}
    name = quoted(str(origin.path))
    return SamplesFile("labels (.npy)", [("labels", said)], "SAMPLES", name, facts=facts)


NPY = Format((".npy",), _open_npy, _describe_npy, _npy_labels)
NPZ = Format((".npz",), _open_npz, _describe_npz, _npz_labels)
