"""Samples in arrays that are read by slices: zarr arrays, HDF5 datasets, and CSR groups.

The groups are as AnnData writes them in both formats:
https://anndata.readthedocs.io/en/stable/fileformat-prose.html
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dhsk.arrays import Rows, blocks
from dhsk.errors import InputError, SamplesChangedError
from dhsk.samples.base import Samples, check_columns, check_csr, check_real, csr_block, flat_shape
from dhsk.samples.paths import Origin

Opener: TypeAlias = Callable[[], AbstractContextManager[Any]]
"""Opens an array or group for reading; errors inside become an `InputError`."""

PIECE_BYTES = 2**20
"""Small chunks are read together, up to this size in bytes."""

_BAND_BYTES = 64 * 2**20
"""Upper bound on the size of the chunks of the same rows that are read together, in bytes."""


@dataclass(frozen=True, eq=False)
class ChunkedSamples(Samples):
    """A dense array; takes the memory of one block, and of one row of chunks.

    While zarr reads these chunks it takes up to three times their size more.
    """

    opener: Opener = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with self.opener() as array:
            if getattr(array, "shape", None) != self.shape:
                raise _other_than_opened(self.source)
            values = _in_order(array)
            for part in blocks(self.shape[0], rows):
                yield values.next_rows(part.stop - part.start, np.float64)


@dataclass(frozen=True, eq=False)
class ChunkedCsrSamples(Samples):
    """A CSR group; takes the memory of the row pointers, three blocks and two chunks."""

    opener: Opener = field(repr=False)

    def _blocks(self, rows: int) -> Iterator[Rows]:
        with self.opener() as group:
            parts = {} if hasattr(group, "shape") else group
            found: list[Any] = [parts.get(name) for name in ("data", "indices")]
            if any(getattr(each, "shape", None) != (self.nnz,) for each in found):
                raise _other_than_opened(self.source)
            data, indices = map(_in_order, found)
            for part, indptr in self.row_parts(rows):
                count = int(indptr[-1] - indptr[0])
                columns = indices.next_rows(count, found[1].dtype)
                check_columns(self.source, columns, indptr, part.start, self.shape[1])
                yield csr_block(data.next_rows(count, np.float64), columns, indptr, self.shape[1])


def _other_than_opened(source: str) -> SamplesChangedError:
    return SamplesChangedError(
        f"{source} has changed since it was opened: it is no array of the same shape; run the same "
        "again when nothing writes to it"
    )


def _in_order(array: Any) -> Any:
    """What reads an array from its beginning; some arrays do so themselves."""
    own = hasattr(array, "next_rows")
    return array if own else Stream(_pieces(array), array.shape[1:], array.dtype)


class Stream:
    """Cuts pieces of consecutive rows, of which each may be of any size, anew."""

    def __init__(
        self, pieces: Iterator[NDArray[Any]], tail: tuple[int, ...], dtype: DTypeLike
    ) -> None:
        self._pieces, self._piece = pieces, np.empty((0, *tail), dtype)

    def next_rows(self, count: int, dtype: DTypeLike) -> NDArray[Any]:
        """The next `count` rows as a fresh array of the type `dtype`; fewer at the end."""
        taken = np.empty((count, *self._piece.shape[1:]), dtype)
        done = 0
        while done < count:
            if not len(self._piece):
                self._piece = self._piece[:0].copy()  # frees the last piece before the next
                self._piece = next(self._pieces, self._piece)
                if not len(self._piece):
                    break
            part = self._piece[: count - done]
            taken[done : done + len(part)] = part
            self._piece = self._piece[len(part) :]
            done += len(part)
        return taken[:done]


def _pieces(array: Any) -> Iterator[NDArray[Any]]:
    """Parts of an array along its first axis, each chunk once; EOFError at its end."""
    first, step = 0, _step(array)
    while len(piece := np.asarray(array[first : first + step])):
        first += len(piece)
        yield piece
        del piece  # before the next is read
    raise EOFError(f"an array ends after {first} entries")


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


def open_chunked(source: str, opener: Opener) -> Samples:
    """Open an array, (n_samples, dim), or a CSR group; read its shape, type and row pointers.

    `opener` is called now and for each reading. Raises `InputError` if it is neither, has another
    number of dimensions, is empty, not real or inconsistent.
    """
    with opener() as node:
        if not hasattr(node, "shape"):
            return _open_csr(source, node, opener)
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
        return ChunkedSamples(source, flat_shape(source, tuple(node.shape)), opener)


def _open_csr(source: str, group: Any, opener: Opener) -> ChunkedCsrSamples:
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
    data, indices, indptr = (group[name] for name in ("data", "indices", "indptr"))
    check_real(f"{source}/data", data.dtype)
    stored = np.asarray(group.attrs["shape"]), data, indices, np.asarray(indptr[:])
    shape, starts = check_csr(source, *stored)
    return ChunkedCsrSamples(source, shape, opener, nnz=data.shape[0], indptr=starts)


def find_samples(origin: Origin, group: Any) -> str | None:
    """Return the key of the samples: that of `origin`, `X`, or the only one; None for the group."""
    if origin.key is None and "encoding-type" in group.attrs and "indptr" in group:
        return None
    if origin.key is not None and origin.key in group:
        return origin.key
    return choose_key(origin, frozenset(group), ("X",), "samples")


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


def read_vector(origin: Origin, array: Any) -> NDArray[Any]:
    """Read an array whole, one label or name per sample, (n_samples,)."""
    if len(array.shape) != 1:
        raise InputError(
            f"{origin}: shape {tuple(array.shape)} is not one label per sample, (n_samples,)"
        )
    values = np.asarray(array[:])
    if values.dtype.names is not None:
        raise InputError(
            f"{origin} holds records of {len(values.dtype.names)} fields and not one label per "
            "sample: write the field with the labels as an array of its own"
        )
    if values.dtype.hasobject:  # strings of HDF5 are bytes
        texts = [v.decode("utf-8") if isinstance(v, bytes) else v for v in values]
        values = np.array(texts, dtype=object)
    return values
