"""The samples of a store, mapped to the sphere: what every task reads its rows from."""

import shutil
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from dhsk.arrays import Indices, Rows, blocks
from dhsk.errors import CorruptTileError, IncompleteStoreError
from dhsk.gram.storage.chunks import read_chunk, write_chunk
from dhsk.gram.storage.descriptions import (
    attributes_of,
    group_text,
    is_group_text,
    write_description,
)
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.indexing import by_block
from dhsk.gram.storage.stored_array import StoredArray

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
        self._arrays = {side: self._arrays_of(side) for side in self.sides}

    @property
    def sides(self) -> tuple[Side, ...]:
        """Sides that a store of these samples has."""
        return ("rows",) if self._header.symmetric else ("rows", "cols")

    def has(self, side: Side) -> bool:
        """Whether all samples of a side are stored."""
        return attributes_of(self.path / side).get("complete") is True

    def is_sound(self, side: Side) -> bool:
        """Read all samples of a side; whether they are there with the right checksums."""
        return self.has(side) and all(array.is_sound() for array in self.arrays(side).values())

    def damaged_descriptions(self) -> list[Path]:
        """Folders whose description is not what follows from the samples in them."""
        damaged = []
        for side in self.sides:
            if not is_group_text(self.path / side, self._group_text(side)):
                damaged.append(self.path / side)
            damaged += [a.folder for a in self.arrays(side).values() if not a.is_described()]
        return damaged

    def describe(self) -> None:
        """Write the descriptions again; whether a side is complete stays as it was."""
        for side in self.sides:
            if not is_group_text(self.path / side, self._group_text(side)):
                write_description(self.path / side, self._group_text(side))
            for array in self.arrays(side).values():
                if not array.is_described():
                    array.describe()

    def _group_text(self, side: Side) -> bytes:
        return group_text({"complete": True} if self.has(side) else {})

    def arrays(self, side: Side) -> dict[str, StoredArray]:
        """The arrays of a side by their names."""
        return self._arrays[side]

    def _arrays_of(self, side: Side) -> dict[str, StoredArray]:
        h = self._header
        count, nnz = (h.n_rows, h.nnz[0]) if side == "rows" else (h.n_cols, h.nnz[1])
        folder = self.path / side
        if nnz is None:
            shape = (count, h.dim)
            return {
                "dense": StoredArray(folder / "dense", shape, self._dense_shape, self._dtype, 0)
            }
        chunk, pointers = min(CSR_CHUNK, max(1, nnz)), min(CSR_CHUNK, count + 1)
        return {
            "indptr": StoredArray(folder / "indptr", (count + 1,), (pointers,), np.int64, 0),
            "indices": StoredArray(folder / "indices", (nnz,), (chunk,), np.int64, 0),
            "data": StoredArray(folder / "data", (nnz,), (chunk,), self._dtype, 0),
        }

    @property
    def chunk_rows(self) -> int:
        """Samples in a chunk of dense samples: write whole ones, so that none is written twice."""
        row_bytes = self._dtype.itemsize * self._header.dim
        return max(1, min(self._header.tile, DENSE_CHUNK_BYTES // row_bytes))

    def start(self, side: Side) -> None:
        """Make empty arrays for the samples of a side, in place of any half-written ones."""
        folder = self.path / side
        if folder.exists():
            shutil.rmtree(folder)
        write_description(folder, group_text({}))
        for array in self.arrays(side).values():
            array.begin()

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
            dense = self.arrays(side)["dense"]
            for part in blocks(count, self.chunk_rows):
                path = dense.path_of(((first + part.start) // self.chunk_rows, 0))
                write_chunk(path, rows[part], self._dense_shape)
            return
        arrays = self.arrays(side)
        _write_at(arrays["indptr"], first, block.indptr + np.int64(entry))
        _write_at(arrays["indices"], entry, block.indices)
        _write_at(arrays["data"], entry, block.data)

    def finish(self, side: Side) -> None:
        """Record that all samples of a side are stored, and the checksums of their places."""
        for array in self.arrays(side).values():
            array.complete()
        write_description(self.path / side, group_text({"complete": True}))

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
        array = self.arrays(side)[name]
        step, *others = array.chunks
        chunks = range(part.start // step, -(-part.stop // step))
        out: Any = np.empty((len(chunks) * step, *others), dtype)
        for place, number in enumerate(chunks):
            index = (number, *(0 for _ in others))
            array.read(index, out[place * step : (place + 1) * step])
        first = part.start - chunks.start * step
        return out[first : first + part.stop - part.start]

    @property
    def _dense_shape(self) -> tuple[int, int]:
        return self.chunk_rows, self._header.dim


def _write_at(array: StoredArray, start: int, values: NDArray[Any]) -> None:
    """Write entries of a vector from some place on, behind those that were written before.

    Chunks of zeros too, which zarr leaves out: a chunk that is not there would be a damaged one.
    """
    step, stop = array.chunks[0], start + len(values)
    for number in range(start // step, -(-stop // step)):
        begin = number * step
        chunk = np.zeros(step, array.dtype)
        if begin < start:
            read_chunk(array.path_of((number,)), chunk)
        inside = slice(max(start, begin), min(stop, begin + step))
        chunk[inside.start - begin : inside.stop - begin] = values[
            inside.start - start : inside.stop - start
        ]
        write_chunk(array.path_of((number,)), chunk[:, None], (step, 1))
