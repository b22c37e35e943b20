"""The samples of a store, mapped to the sphere: what every task reads its rows from."""

from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import zarr
from scipy.sparse import csr_array, vstack
from zarr.codecs import Crc32cCodec

from dhsk.arrays import Indices, Rows
from dhsk.errors import CorruptTileError, IncompleteStoreError, StoreError
from dhsk.files import parse_json
from dhsk.gram.chunks import read_chunk, write_chunk
from dhsk.gram.header import Header
from dhsk.gram.indexing import by_block

CSR_CHUNK: Final = 1 << 18
"""Most entries in a chunk of the CSR arrays."""

DENSE_CHUNK_BYTES: Final = 1 << 24
"""Size of a chunk of dense samples at most, or of one sample."""

Side: TypeAlias = Literal["rows", "cols"]


class StagedSamples:
    """Reader and writer of the samples in one store.

    Parameters
    ----------
    path
        Folder of the store.
    header
        What it holds.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._header = header
        self._dtype = np.dtype(header.product_dtype)

    @property
    def sides(self) -> tuple[Side, ...]:
        """Sides that a store of these samples has."""
        return ("rows",) if self._header.symmetric else ("rows", "cols")

    def has(self, side: Side) -> bool:
        """Whether all samples of a side are stored."""
        try:
            attributes = parse_json((self.path / side / "zarr.json").read_text())["attributes"]
            return attributes.get("complete") is True
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return False  # never begun, or damaged

    def is_sound(self, side: Side) -> bool:
        """Read all samples of a side; whether they are there with the right checksums."""
        count = self._header.n_rows if side == "rows" else self._header.n_cols
        try:
            for start in range(0, count, self._header.tile):
                self.read(side, slice(start, min(start + self._header.tile, count)))
        except CorruptTileError:
            return False
        return self.has(side)

    @property
    def chunk_rows(self) -> int:
        """Samples in a chunk of dense samples: write whole ones, so that none is written twice."""
        row_bytes = self._dtype.itemsize * self._header.dim
        return max(1, min(self._header.tile, DENSE_CHUNK_BYTES // row_bytes))

    def start(self, side: Side) -> None:
        """Make empty arrays for the samples of a side, in place of any half-written ones."""
        h = self._header
        count, nnz = (h.n_rows, h.nnz[0]) if side == "rows" else (h.n_cols, h.nnz[1])
        parent = zarr.open_group(str(self.path), mode="r+")
        group = parent.create_group(side, overwrite=True)

        def create(name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any) -> None:
            group.create_array(
                name,
                shape=shape,
                chunks=chunks,
                dtype=dtype,
                filters=None,
                compressors=[Crc32cCodec()],
                config={"write_empty_chunks": True},
            )

        if nnz is None:
            create("dense", (count, h.dim), (self.chunk_rows, h.dim), self._dtype)
        else:
            create("indptr", (count + 1,), (min(CSR_CHUNK, count + 1),), "int64")
            chunk = min(CSR_CHUNK, max(1, nnz))
            create("indices", (nnz,), (chunk,), "int64")
            create("data", (nnz,), (chunk,), self._dtype)

    def write(self, side: Side, first: int, entry: int, block: Rows) -> None:
        """Write a block of samples, rounded to the type in which they are multiplied.

        Parameters
        ----------
        side
            "rows" or "cols".
        first
            Index of its first sample, at the start of a chunk if the samples are dense.
        entry
            Sparse: number of entries in the samples before it.
        block
            The samples, mapped.
        """
        count = block.shape[0]
        if not isinstance(block, csr_array):
            rows: Any = block.astype(self._dtype, copy=False)
            for start in range(0, count, self.chunk_rows):
                path = self._chunk_path(side, "dense", (first + start) // self.chunk_rows)
                write_chunk(path, rows[start : start + self.chunk_rows], self._dense_shape)
            return
        group = self._group(side, "r+")
        array(group, "indptr")[first : first + count + 1] = block.indptr + np.int64(entry)
        array(group, "indices")[entry : entry + block.nnz] = block.indices
        array(group, "data")[entry : entry + block.nnz] = block.data

    def finish(self, side: Side) -> None:
        """Record that all samples of a side are stored."""
        self._group(side, "r+").attrs["complete"] = True

    def read(self, side: Side, part: slice) -> Rows:
        """Read samples as the tasks use them.

        Parameters
        ----------
        side
            "rows" or "cols".
        part
            Which samples.

        Returns
        -------
        Rows
            (samples, dim), of the type in which they are multiplied.

        Raises
        ------
        CorruptTileError
            Their checksum is wrong.
        """
        nnz = self._header.nnz[0 if side == "rows" else 1]
        try:
            return self._read_dense(side, part) if nnz is None else self._read_csr(side, part)
        except (
            ValueError,
            KeyError,
            FileNotFoundError,
            CorruptTileError,
            IncompleteStoreError,
        ) as error:
            raise CorruptTileError(
                f"the samples ({side}) in {self.path} are damaged ({error}): "
                "put them right with dhsk verify --repair SAMPLES"
            ) from error

    def take(self, side: Side, indices: Indices) -> Rows:
        """Read chosen samples, tile by tile.

        Parameters
        ----------
        side
            "rows" or "cols".
        indices
            Which samples, in any order.

        Returns
        -------
        Rows
            (indices, dim), in their order.

        Raises
        ------
        CorruptTileError
            Their checksum is wrong.
        """
        count = self._header.n_rows if side == "rows" else self._header.n_cols
        tile = self._header.tile
        read: list[Any] = []
        places = []
        for block, part in sorted(by_block(indices, tile).items()):
            rows = self.read(side, slice(block * tile, min((block + 1) * tile, count)))
            read.append(rows[part.inside])
            places.append(part.place)
        back = np.argsort(np.concatenate(places))
        if isinstance(read[0], csr_array):
            return csr_array(vstack(read, format="csr"))[back]
        return np.concatenate(read)[back]

    def _read_dense(self, side: Side, part: slice) -> Rows:
        rows: Rows = self._read_array(side, "dense", part, self._dtype)
        return rows

    def _read_csr(self, side: Side, part: slice) -> Rows:
        def read(name: str, part: slice, dtype: Any) -> Any:
            return self._read_array(side, name, part, dtype)

        indptr = read("indptr", slice(part.start, part.stop + 1), np.int64)
        entries = slice(int(indptr[0]), int(indptr[-1]))
        data = read("data", entries, self._dtype)
        indices = read("indices", entries, np.int64)
        shape = (len(indptr) - 1, self._header.dim)
        return csr_array((data, indices, indptr - indptr[0]), shape=shape)

    def _read_array(self, side: Side, name: str, part: slice, dtype: Any) -> Any:
        """Part of an array, from its chunk files: zarr would read a missing one as zeros.

        Whole chunks are read in place; the result is the part of them that was asked for.
        """
        metadata = parse_json((self.path / side / name / "zarr.json").read_text())
        step, *others = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        chunks = range(part.start // step, -(-part.stop // step))
        out: Any = np.empty((len(chunks) * step, *others), dtype)
        for place, number in enumerate(chunks):
            path = self._chunk_path(side, name, number)
            read_chunk(path, out[place * step : (place + 1) * step])
        first = part.start - chunks.start * step
        return out[first : first + part.stop - part.start]

    @property
    def _dense_shape(self) -> tuple[int, int]:
        return self.chunk_rows, self._header.dim

    def _chunk_path(self, side: Side, name: str, number: int) -> Path:
        folder = self.path / side / name / "c" / str(number)
        return folder / "0" if name == "dense" else folder

    def _group(self, side: Side, mode: Literal["r", "r+"] = "r") -> zarr.Group:
        return zarr.open_group(str(self.path / side), mode=mode)


def array(group: zarr.Group, name: str) -> "zarr.Array[Any]":
    """Array of a group."""
    found = group[name]
    if not isinstance(found, zarr.Array):
        raise StoreError(f"{group.store_path} has no array {name}: it is not a store of dhsk")
    return found
