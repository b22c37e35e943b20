"""A Gram matrix on disk: one zarr group, tile = chunk; the only room that knows zarr.

Layout of a store, schema 1 (attributes of the group, under "dhsk": the header)::

    gram            (n_rows, n_cols), chunks (tile, tile), fill NaN, crc32c; triangle layout: the
                    chunks (i, j) with i <= j only
    rows, cols      the samples after their map to the sphere, as the tasks read them: `dense`
                    (samples, dim), or `data`, `indices`, `indptr` of CSR; cols only if rectangular

A chunk appears in one step (written beside, then renamed), so its presence at full size is the
record of a finished tile; its checksum is tested whenever it is read.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from scipy.sparse import csr_array
from zarr.codecs import Crc32cCodec

from dhsk.arrays import Rows
from dhsk.errors import CorruptTileError, IncompleteStoreError, StoreError, StoreMismatchError
from dhsk.gram.header import SCHEMA, Header

CHECKSUM_BYTES = 4
"""crc32c appends four bytes to a chunk."""

CSR_CHUNK = 1 << 20
"""Entries in a chunk of the samples' CSR arrays."""

DENSE_CHUNK_BYTES = 1 << 24
"""Size of a chunk of dense samples at most, or of one sample."""

Side: TypeAlias = Literal["rows", "cols"]


class GramStore:
    """Reader and writer of one store; open it with `create` or `open`.

    Parameters
    ----------
    path
        Folder of the zarr group.
    header
        What it holds.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self.header = header
        self._group = zarr.open_group(str(path), mode="r+")

    @classmethod
    def create(cls, path: Path, header: Header) -> "GramStore":
        """Make a store, or take up the one that is there if it is of the same samples and kernel.

        Parameters
        ----------
        path
            Folder, made with its parents if absent.
        header
            What it is to hold; of an existing store the tile size wins.

        Returns
        -------
        GramStore
            Open for reading and writing; some or all tiles may already be there.

        Raises
        ------
        StoreMismatchError
            The store is of other samples, another kernel, or another schema.
        StoreError
            The path holds something else.
        """
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            store = cls.open(path)
            differences = store.header.differences(header)
            if differences:
                raise StoreMismatchError(
                    f"{path} was made with other {', '.join(differences)}: "
                    "choose another path, or delete it first"
                )
        else:
            attributes = {"dhsk": dataclasses.asdict(header)}
            zarr.create_group(str(path), attributes=attributes)
            store = cls(path, header)
        store._remove_leftovers()
        store._ensure_array()
        return store

    @classmethod
    def open(cls, path: Path) -> "GramStore":
        """Open a store, complete or not.

        Parameters
        ----------
        path
            Folder of the store.

        Returns
        -------
        GramStore
            Open for reading and writing.

        Raises
        ------
        StoreError
            There is no store, or it has another schema.
        """
        try:
            attributes = json.loads((path / "zarr.json").read_text())["attributes"]["dhsk"]
        except FileNotFoundError as error:
            what = "exists but is not a Gram store" if path.exists() else "does not exist"
            raise StoreError(
                f"{path} {what}: make one with dhsk gram, or check the path"
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is not a Gram store of dhsk: check the path") from error
        if attributes.get("schema") != SCHEMA:
            raise StoreMismatchError(
                f"{path} has schema {attributes.get('schema')}, this version reads {SCHEMA}: "
                "open it with the version that wrote it"
            )
        lists = {key: tuple(attributes[key]) for key in ("fingerprints", "nnz")}
        return cls(path, Header(**(attributes | lists)))

    def _remove_leftovers(self) -> None:
        """Delete what writes that were killed left beside the chunks."""
        for file in self.path.rglob("*.partial"):
            file.unlink(missing_ok=True)

    def _ensure_array(self) -> None:
        """Make the array of tiles unless an earlier run, killed or not, has made it."""
        if "gram" in self._group:
            return
        h = self.header
        self._group.create_array(
            "gram",
            shape=(h.n_rows, h.n_cols),
            chunks=(h.tile, h.tile),
            dtype=h.dtype,
            fill_value=float("nan"),
            filters=None,
            compressors=[Crc32cCodec()],
            # Without this zarr compares every chunk with NaN before writing it.
            config={"write_empty_chunks": True},
        )

    # Tiles

    def write_tile(self, i: int, j: int, values: NDArray[Any]) -> None:
        """Write tile (i, j), and its mirror image in the full layout.

        Parameters
        ----------
        i, j
            Indices of the tile.
        values
            Its entries, (rows of i, columns of j).
        """
        array, tiling = self._array("gram"), self.header.tiling
        for r, c in self.header.chunks_of(i, j):
            array[tiling.rows(r), tiling.cols(c)] = values if (r, c) == (i, j) else values.T

    def read_tile(self, i: int, j: int) -> NDArray[Any]:
        """Read tile (i, j) and test its checksum.

        Parameters
        ----------
        i, j
            Indices of a stored tile.

        Returns
        -------
        ndarray
            (rows of i, columns of j), of the stored type.

        Raises
        ------
        IncompleteStoreError
            The tile is not there.
        CorruptTileError
            Its checksum or size is wrong.
        """
        tiling = self.header.tiling
        chunk = self._chunk_path(i, j)
        try:
            values = np.asarray(self._array("gram")[tiling.rows(i), tiling.cols(j)])
        except ValueError as error:
            raise CorruptTileError(
                f"tile ({i}, {j}) of {self.path} is damaged ({error}): "
                "recompute it with dhsk verify --repair SAMPLES"
            ) from error
        # A missing chunk reads as fill value without an error, and no kernel value is NaN.
        if np.isnan(values[0, 0]) and not chunk.exists():
            raise IncompleteStoreError(
                f"tile ({i}, {j}) of {self.path} is missing: run the command that made it again"
            )
        return values

    def remove_tile(self, i: int, j: int) -> None:
        """Delete tile (i, j), so that a computation makes it again."""
        for chunk in self.header.chunks_of(i, j):
            self._chunk_path(*chunk).unlink(missing_ok=True)

    def missing_tiles(self) -> list[tuple[int, int]]:
        """Indices of the tiles that are not there in full size."""
        itemsize = np.dtype(self.header.dtype).itemsize
        size = self.header.tile**2 * itemsize + CHECKSUM_BYTES
        present = {
            (int(file.parent.name), int(file.name))
            for file in (self.path / "gram" / "c").glob("*/*")
            # A write in progress, or killed, has a longer name until it is renamed.
            if file.name.isdigit() and file.stat().st_size == size
        }
        header = self.header
        return [t for t in header.tiling.tiles() if not present.issuperset(header.chunks_of(*t))]

    def damaged_tiles(self) -> list[tuple[int, int]]:
        """Read every tile; indices of those that are missing or fail their checksum."""
        return [tile for tile in self.header.tiling.tiles() if not self._is_sound(tile)]

    def check_sound(self) -> None:
        """Read every tile.

        Raises
        ------
        IncompleteStoreError
            Tiles are missing.
        CorruptTileError
            Tiles are damaged; the message names them.
        """
        self.check_complete()
        damaged = self.damaged_tiles()
        if damaged:
            named = ", ".join(map(str, damaged[:8])) + (", ..." if len(damaged) > 8 else "")
            raise CorruptTileError(
                f"{len(damaged)} of {self.header.tiling.n_tiles} tiles of {self.path} are damaged: "
                f"{named}; recompute them with dhsk verify --repair SAMPLES"
            )

    def _is_sound(self, tile: tuple[int, int]) -> bool:
        try:
            for chunk in self.header.chunks_of(*tile):
                self.read_tile(*chunk)
        except (CorruptTileError, IncompleteStoreError):
            return False
        return True

    def check_complete(self) -> None:
        """Make sure that every tile is there.

        Raises
        ------
        IncompleteStoreError
            Tiles are missing.
        """
        missing = self.missing_tiles()
        if missing:
            raise IncompleteStoreError(
                f"{self.path} lacks {len(missing)} of {self.header.tiling.n_tiles} tiles: "
                "run the command that made it again, it computes only these"
            )

    def _chunk_path(self, i: int, j: int) -> Path:
        return self.path / "gram" / "c" / str(i) / str(j)

    # Samples

    def has_samples(self, side: Side) -> bool:
        """Whether all samples of a side are stored."""
        return bool(side in self._group and self._group[side].attrs.get("complete", False))

    @property
    def chunk_rows(self) -> int:
        """Samples in a chunk of dense samples: write whole ones, so that none is written twice."""
        return max(1, min(self.header.tile, DENSE_CHUNK_BYTES // (8 * self.header.dim)))

    def start_samples(self, side: Side) -> None:
        """Make empty arrays for the samples of a side, in place of any half-written ones."""
        h = self.header
        count, nnz = (h.n_rows, h.nnz[0]) if side == "rows" else (h.n_cols, h.nnz[1])
        group = self._group.create_group(side, overwrite=True)

        def create(name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str) -> None:
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
            create("dense", (count, h.dim), (self.chunk_rows, h.dim), "float64")
        else:
            create("indptr", (count + 1,), (CSR_CHUNK,), "int64")
            create("indices", (nnz,), (CSR_CHUNK,), "int64")
            create("data", (nnz,), (CSR_CHUNK,), "float64")

    def write_samples(self, side: Side, first: int, entry: int, block: Rows) -> None:
        """Write a block of samples.

        Parameters
        ----------
        side
            "rows" or "cols".
        first
            Index of its first sample.
        entry
            Sparse: number of entries in the samples before it.
        block
            The samples, mapped.
        """
        count = block.shape[0]
        if not isinstance(block, csr_array):
            self._array(f"{side}/dense")[first : first + count] = block
            return
        self._array(f"{side}/indptr")[first : first + count + 1] = block.indptr + np.int64(entry)
        self._array(f"{side}/indices")[entry : entry + block.nnz] = block.indices
        self._array(f"{side}/data")[entry : entry + block.nnz] = block.data

    def finish_samples(self, side: Side) -> None:
        """Record that all samples of a side are stored."""
        self._group[side].attrs["complete"] = True

    def read_samples(self, side: Side, part: slice) -> Rows:
        """Read samples as the tile tasks use them.

        Parameters
        ----------
        side
            "rows" or "cols".
        part
            Which samples.

        Returns
        -------
        Rows
            (samples, dim).

        Raises
        ------
        CorruptTileError
            Their checksum is wrong.
        """
        try:
            if f"{side}/dense" in self._group:
                return np.asarray(self._array(f"{side}/dense")[part])
            return self._read_csr(side, part)
        except ValueError as error:
            raise CorruptTileError(
                f"the samples ({side}) in {self.path} are damaged ({error}): delete the store"
            ) from error

    def _read_csr(self, side: Side, part: slice) -> Rows:
        indptr = np.asarray(self._array(f"{side}/indptr")[part.start : part.stop + 1])
        entries = slice(int(indptr[0]), int(indptr[-1]))
        data = np.asarray(self._array(f"{side}/data")[entries])
        indices = np.asarray(self._array(f"{side}/indices")[entries])
        shape = (len(indptr) - 1, self.header.dim)
        return csr_array((data, indices, indptr - indptr[0]), shape=shape)

    def _array(self, name: str) -> "zarr.Array[Any]":
        array = self._group[name]
        if not isinstance(array, zarr.Array):
            raise StoreError(f"{self.path} has no array {name}: it is not a Gram store of dhsk")
        return array
