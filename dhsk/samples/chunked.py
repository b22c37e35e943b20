"""Samples in arrays that are read by slices: zarr arrays, HDF5 datasets, and CSR groups.

The groups are as AnnData writes them in both formats:
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, SamplesChangedError
from dhsk.samples.base import Samples, check_columns, check_csr, check_real, csr_block, flat_shape
from dhsk.samples.binary import choose_key, in_blocks
from dhsk.samples.paths import Origin

Opener: TypeAlias = Callable[[], AbstractContextManager[Any]]
"""Opens an array or group for reading; errors inside become an `InputError`."""

_ENTRIES = ("data", "indices")
"""Arrays of a CSR group that have an element per entry."""

PIECE_BYTES = 2**20
"""Small chunks are read together, up to this size in bytes."""

_BAND_BYTES = 64 * 2**20
"""Upper bound on the size of the chunks of the same rows that are read together, in bytes."""


Index: TypeAlias = Callable[[], tuple[str, ...] | None]
"""Reads the names of all samples; None if there are none."""


@dataclass(frozen=True, eq=False)
class _Indexed(Samples):
    """Samples whose names, if any, are read on demand, all at once."""

    source: str
    shape: tuple[int, int]
    opener: Opener = field(repr=False)
    feature_names: tuple[str, ...] | None = field(default=None, repr=False, kw_only=True)
    index: Index | None = field(default=None, repr=False, kw_only=True)

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        names = None if self.index is None else self.index()
        _check_names(self.source, "obs", names, self.shape[0])
        return in_blocks(names, rows)


@dataclass(frozen=True, eq=False)
class ChunkedSamples(_Indexed):
    """A dense array; takes the memory of one block, and of one row of chunks.

    While zarr reads these chunks it takes up to three times their size more.
    """

    is_sparse = False
    nnz = None

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with self.opener() as array:
            if getattr(array, "shape", None) != self.shape:
                raise _other_than_opened(self.source)
            values = _Stream(array)
            for part in blocks(self.shape[0], rows):
                yield values.take(part.stop - part.start, np.float64)


@dataclass(frozen=True, eq=False)
class ChunkedCsrSamples(_Indexed):
    """A CSR group; takes the memory of the row pointers, three blocks and two chunks."""

    nnz: int
    indptr: NDArray[np.int64] = field(repr=False)
    is_sparse = True

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with self.opener() as group:
            parts = {} if hasattr(group, "shape") else group
            if any(getattr(parts.get(n), "shape", None) != (self.nnz,) for n in _ENTRIES):
                raise _other_than_opened(self.source)
            data, indices = _Stream(group["data"]), _Stream(group["indices"])
            for part in blocks(self.shape[0], rows):
                indptr = self.indptr[part.start : part.stop + 1]
                count = int(indptr[-1] - indptr[0])
                columns = indices.take(count, indices.array.dtype)
                check_columns(self.source, columns, indptr, part.start, self.shape[1])
                yield csr_block(data.take(count, np.float64), columns, indptr, self.shape[1])


def _other_than_opened(source: str) -> SamplesChangedError:
    return SamplesChangedError(
        f"{source} has changed since it was opened: it is no array of the same shape; run the same "
        "again when nothing writes to it"
    )


class _Stream:
    """Reads consecutive parts of a 1-D or 2-D array along its first axis, each chunk once."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self._step = _step(array)
        self._next = 0
        self._piece = np.empty((0, *array.shape[1:]), array.dtype)

    def take(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return the next `count` entries or rows as a fresh array of the type `dtype`."""
        taken = np.empty((count, *self.array.shape[1:]), dtype)
        done = 0
        while done < count:
            if not len(self._piece):
                self._read()
            part = self._piece[: count - done]
            taken[done : done + len(part)] = part
            self._piece = self._piece[len(part) :]
            done += len(part)
        return taken

    def _read(self) -> None:
        self._piece = self._piece[:0].copy()  # frees the last piece before the next is read
        self._piece = np.asarray(self.array[self._next : self._next + self._step])
        if not len(self._piece):
            raise EOFError(f"an array ends after {self._next} entries")
        self._next += len(self._piece)


def _step(array: Any) -> int:
    """Number of entries along the first axis to read at a time: whole chunks, if they fit.

    Rows that lie in more than `_BAND_BYTES` of chunks, and in more than one, are read by parts,
    for which their chunks are read several times: memory goes first.
    """
    row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
    # Contiguous HDF5 datasets have no chunks; those of a Dask array are listed axis by axis.
    chunks = [max(c) if isinstance(c, tuple) else c for c in array.chunks or (1, *array.shape[1:])]
    chunk_rows = int(chunks[0])
    most = max(_BAND_BYTES, array.dtype.itemsize * math.prod(chunks))
    if chunk_rows * row_bytes > most:
        return max(1, int(most // row_bytes))
    return chunk_rows * max(1, int(PIECE_BYTES // (chunk_rows * row_bytes)))


def open_chunked(
    source: str,
    opener: Opener,
    feature_names: tuple[str, ...] | None = None,
    index: Index | None = None,
) -> Samples:
    """Open an array, (n_samples, dim), or a CSR group; read its shape, type and row pointers.

    `opener` is called now and for each reading, `index` to read the names of the samples. Raises
    `InputError` if it is neither, has another number of dimensions, is empty, not real or
    inconsistent.
    """
    with opener() as node:
        if not hasattr(node, "shape"):
            return _open_csr(source, node, opener, feature_names, index)
        check_real(source, node.dtype)
        if len(node.shape) != 2:
            raise InputError(
                f"{source} has shape {tuple(node.shape)}, but samples need two dimensions "
                "(samples by features): store it in that shape"
            )
        if any(map(math.isnan, node.shape)):  # Dask, after boolean indexing
            raise InputError(
                f"{source} has shape {tuple(node.shape)}, of chunks whose sizes are unknown: call "
                "its compute_chunk_sizes() first"
            )
        shape = flat_shape(source, tuple(node.shape))
        _check_names(source, "var", feature_names, shape[1])
        return ChunkedSamples(source, shape, opener, feature_names=feature_names, index=index)


def _open_csr(
    source: str,
    group: Any,
    opener: Opener,
    feature_names: tuple[str, ...] | None,
    index: Index | None,
) -> ChunkedCsrSamples:
    encoding = group.attrs.get("encoding-type")
    if encoding == "csc_matrix":
        raise InputError(
            f"{source} is stored by columns (csc_matrix), but rows are read from CSR: convert it "
            "with adata.X = adata.X.tocsr() and write it again"
        )
    if encoding != "csr_matrix":
        listed = ", ".join(sorted(group)) or "nothing"
        raise InputError(
            f"{source} is a group (of {listed}) and not a csr_matrix: name one of its arrays"
        )
    missing = ", ".join(sorted({"data", "indices", "indptr"} - set(group)))
    if missing or "shape" not in group.attrs:
        raise InputError(
            f"{source} lacks {missing or 'the attribute shape'}, which a CSR matrix needs: "
            "write it again"
        )
    data = group["data"]
    check_real(f"{source}/data", data.dtype)
    shape, indptr = check_csr(
        source,
        np.asarray(group.attrs["shape"]),
        data,
        group["indices"],
        np.asarray(group["indptr"][:]),
    )
    _check_names(source, "var", feature_names, shape[1])
    return ChunkedCsrSamples(
        source, shape, opener, data.shape[0], indptr, feature_names=feature_names, index=index
    )


def _check_names(source: str, table: str, names: tuple[str, ...] | None, count: int) -> None:
    if names is not None and len(names) != count:
        axis = "columns" if table == "var" else "rows"
        raise InputError(
            f"{source} has {count} {axis}, but the index of {table} has {len(names)} names: "
            "write the file again"
        )


def find_samples(origin: Origin, group: Any) -> str | None:
    """Return the key of the samples: that of `origin`, `X`, or the only one; None for the group."""
    if origin.key is None and "encoding-type" in group.attrs and "indptr" in group:
        return None
    if origin.key is not None and origin.key in group:
        return origin.key
    return choose_key(origin, frozenset(group), ("X",), "samples")
