"""A Gram matrix on disk: one zarr group, tile = chunk.

Layout of a store, schema 2 (attributes of the group: "dhsk", the header, and "dhsk_crc32c", the
checksum of its JSON with sorted keys, which stores of earlier versions lack)::

    gram, gram-1, …  one array a kernel: (n_rows, n_cols), chunks (tile, tile), fill NaN, crc32c;
                     triangle layout: the chunks (i, j) with i <= j only
    feature_names.json  names of the features, if they have names; their digest is in the header
    rows, cols       the samples after their map to the sphere, as the tasks read them: `dense`
                     (samples, dim), or `data`, `indices`, `indptr` of CSR; cols only if rectangular

A chunk appears in one step (written beside, then renamed), so its presence at full size is the
record of a finished tile; its checksum is tested whenever it is read. This module and `staged` know
zarr, `chunks` knows its chunk files; no other room does.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import google_crc32c
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec
from zarr.storage import MemoryStore

from dhsk.errors import (
    CorruptTileError,
    IncompleteStoreError,
    StoreError,
    StoreMismatchError,
)
from dhsk.files import REFUSED, parse_json, refusal_of
from dhsk.gram.chunks import ChunkWriter, chunk_size, read_chunk
from dhsk.gram.header import Header
from dhsk.gram.lock import LOCK_NAME
from dhsk.gram.names import NAMES_FILE, digest_of_names, read_names, write_names
from dhsk.gram.staged import Side, StagedSamples
from dhsk.kernels import Kernel, kernel_from_spec

_SUM: Final = "dhsk_crc32c"
_DESCRIPTION: Final = (
    "the description of {} is damaged (zarr.json): restore that file from a copy, or compute the "
    "store again in another folder"
)


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
        self.samples = StagedSamples(path, header)
        self.kernels: list[Kernel] = [kernel_from_spec(spec) for spec in header.kernels]

    @classmethod
    def create(
        cls, path: Path, header: Header, feature_names: Sequence[str] | None = None
    ) -> "GramStore":
        """Make a store, or take up the one that is there if it is of the same samples and kernel.

        Parameters
        ----------
        path
            Folder, made with its parents if absent.
        header
            What it is to hold; of an existing store the tile size wins.
        feature_names
            Names of the features, if they have names; those of an existing store win.

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
        if is_occupied(path):
            store = cls.open(path)
            differences = store.header.differences(header)
            if differences:
                raise StoreMismatchError(
                    f"{path} was made with other {', '.join(differences)}: "
                    "choose another path, or delete it first"
                )
        else:
            described = header.to_json()
            attributes = {"dhsk": described, _SUM: _checksum(described)}
            zarr.create_group(str(path), attributes=attributes)
            store = cls(path, header)
        store.remove_leftovers()
        store.ensure_names(feature_names)
        store._ensure_arrays()
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
            attributes = parse_json((path / "zarr.json").read_text())["attributes"]
            described = attributes["dhsk"]
        except FileNotFoundError as error:
            what = "exists but is not a Gram store" if path.exists() else "does not exist"
            raise StoreError(
                f"{path} {what}: make one with dhsk gram, or check the path"
            ) from error
        except OSError as error:
            if error.errno in REFUSED:
                raise refusal_of(error) from error
            raise StoreError(f"{path} is not a Gram store of dhsk: check the path") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is not a Gram store of dhsk: check the path") from error
        try:
            store = cls(path, Header.of_json(described))
        except StoreMismatchError as error:
            raise StoreMismatchError(f"{path} cannot be read: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTileError(_DESCRIPTION.format(path)) from error
        if attributes.get(_SUM, _checksum(described)) != _checksum(described):
            raise CorruptTileError(_DESCRIPTION.format(path))
        return store

    def remove(self) -> None:
        """Delete the store; the description goes last, so that half of it is an incomplete one."""
        for name in (*self._array_names, *self.samples.sides):
            if (self.path / name).exists():
                shutil.rmtree(self.path / name)
        (self.path / NAMES_FILE).unlink(missing_ok=True)
        (self.path / "zarr.json").unlink()

    def remove_leftovers(self) -> None:
        """Delete what writes that were killed left beside the chunks."""
        for file in self.path.rglob("*.partial"):
            file.unlink(missing_ok=True)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, in the order of the columns; None where they have none.

        Raises
        ------
        CorruptTileError
            They are damaged or missing.
        """
        return read_names(self.path, self.header.feature_names)

    def has_sound_names(self) -> bool:
        """Whether the names of the features can be read, where they have names."""
        try:
            self.feature_names  # noqa: B018  # the reading is the test
        except CorruptTileError:
            return False
        return True

    def ensure_names(self, feature_names: Sequence[str] | None) -> None:
        """Write the names of the features if they are missing or damaged.

        Raises
        ------
        CorruptTileError
            They are, and these are others.
        """
        if self.has_sound_names():
            return
        if feature_names is None or digest_of_names(feature_names) != self.header.feature_names:
            raise CorruptTileError(
                f"the names of the features of {self.path} are damaged: give the samples that it "
                "was made from, with their names in the same order"
            )
        write_names(self.path, feature_names)

    def _ensure_arrays(self) -> None:
        """Make the arrays of tiles unless an earlier run, killed or not, has made them."""
        for name in self._array_names:
            if not (self.path / name / "zarr.json").exists():
                self._create_array(str(self.path), name)

    @property
    def _array_names(self) -> list[str]:
        stored = self.header.layout != "none"
        return [_array_name(index) for index in range(len(self.kernels))] if stored else []

    def _create_array(self, place: Any, name: str) -> "zarr.Array[Any]":
        h = self.header
        return zarr.create_array(
            place,
            name=name,
            shape=(h.n_rows, h.n_cols),
            chunks=(h.tile, h.tile),
            dtype=h.dtype,
            fill_value=float("nan"),
            filters=None,
            compressors=[Crc32cCodec()],
        )

    def damaged_arrays(self) -> list[str]:
        """Names of arrays whose description, for other readers of zarr, is missing or wrong."""
        return [name for name in self._array_names if not self._is_described(name)]

    def _is_described(self, name: str) -> bool:
        return is_described(self.path / name, self._create_array(MemoryStore(), name))

    def describe_arrays(self) -> None:
        """Write the missing and wrong descriptions of arrays again; their tiles stay."""
        for name in self.damaged_arrays():
            (self.path / name / "zarr.json").unlink(missing_ok=True)
        self._ensure_arrays()

    def damaged_sides(self) -> list[Side]:
        """Read all staged samples; sides that are missing or fail a checksum."""
        return [side for side in self.samples.sides if not self.samples.is_sound(side)]

    def index_of(self, kernel: Kernel) -> int | None:
        """Number of the array that holds a kernel's tiles; None if none does."""
        stored = self.header.layout != "none" and kernel in self.kernels
        return self.kernels.index(kernel) if stored else None

    # Tiles

    def chunk_writer(self, i: int, j: int, index: int = 0) -> ChunkWriter:
        """Writer of chunk (i, j) of a kernel, strip by strip."""
        return ChunkWriter(self._chunk_path(i, j, index), self._chunk_shape, self.header.dtype)

    def read_tile(self, i: int, j: int, index: int = 0) -> NDArray[Any]:
        """Read tile (i, j) of a kernel and test its checksum.

        Parameters
        ----------
        i, j
            Indices of a stored tile.
        index
            Number of the kernel.

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
        whole: NDArray[Any] = np.empty(self._chunk_shape, self.header.dtype)
        try:
            read_chunk(self._chunk_path(i, j, index), whole)
        except IncompleteStoreError as error:
            raise IncompleteStoreError(
                f"tile ({i}, {j}) of {self.path} is missing: run the command that made it again"
            ) from error
        except CorruptTileError as error:
            raise CorruptTileError(
                f"tile ({i}, {j}) of {self.path} is damaged ({error}): "
                "recompute it with dhsk verify --repair SAMPLES"
            ) from error
        rows, cols = tiling.rows(i), tiling.cols(j)
        return whole[: rows.stop - rows.start, : cols.stop - cols.start]

    def remove_tile(self, i: int, j: int) -> None:
        """Delete tile (i, j), so that a computation makes it again."""
        for index in range(len(self.kernels)):
            for chunk in self.header.chunks_of(i, j):
                self._chunk_path(*chunk, index).unlink(missing_ok=True)

    def missing_tiles(self) -> list[tuple[int, int]]:
        """Indices of the tiles that are not there in full size, of every kernel."""
        header = self.header
        present = [self._present_chunks(index) for index in range(len(self.kernels))]
        return [
            tile
            for tile in header.tiling.tiles()
            if not all(chunks.issuperset(header.chunks_of(*tile)) for chunks in present)
        ]

    def _present_chunks(self, index: int) -> set[tuple[int, int]]:
        size = chunk_size(self._chunk_shape, np.dtype(self.header.dtype))
        return {
            (int(file.parent.name), int(file.name))
            for file in (self.path / _array_name(index) / "c").glob("*/*")
            # A write in progress, or killed, has a longer name until it is renamed.
            if file.name.isdigit() and file.stat().st_size == size
        }

    def damaged_tiles(self) -> list[tuple[int, int]]:
        """Read every tile; indices of those that are missing or fail their checksum."""
        return [tile for tile in self.header.tiling.tiles() if not self._is_sound(tile)]

    def check_sound(self) -> None:
        """Read all tiles, samples and descriptions.

        A sound chunk in the place of another is not noticed: checksums are of the content alone.

        Raises
        ------
        IncompleteStoreError
            Tiles are missing, the others are sound.
        CorruptTileError
            Something is damaged; the message names it.
        """
        missing = self.missing_tiles()
        damaged = [tile for tile in self.damaged_tiles() if tile not in set(missing)]
        sides, arrays = self.damaged_sides(), self.damaged_arrays()
        sound_names = self.has_sound_names()
        if not (damaged or sides or arrays) and sound_names:
            self.check_complete()
            return
        total, parts = self.header.tiling.n_tiles, []
        if damaged:
            named = ", ".join(map(str, damaged[:8])) + (", ..." if len(damaged) > 8 else "")
            parts.append(f"{len(damaged)} of {total} tiles of {self.path} are damaged: {named}")
        if missing:
            parts.append(f"{len(missing)} of {total} tiles of {self.path} are missing")
        parts += [f"the samples ({side}) in {self.path} are damaged" for side in sides]
        parts += [f"{self.path / name / 'zarr.json'} is damaged" for name in arrays]
        parts += [] if sound_names else [f"{self.path / NAMES_FILE} is damaged"]
        raise CorruptTileError(
            f"{', and '.join(parts)}; recompute them with dhsk verify --repair SAMPLES"
        )

    def _is_sound(self, tile: tuple[int, int]) -> bool:
        try:
            for index in range(len(self.kernels)):
                for chunk in self.header.chunks_of(*tile):
                    self.read_tile(*chunk, index)
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

    @property
    def _chunk_shape(self) -> tuple[int, int]:
        return self.header.tile, self.header.tile

    def _chunk_path(self, i: int, j: int, index: int) -> Path:
        return self.path / _array_name(index) / "c" / str(i) / str(j)


def is_occupied(path: Path) -> bool:
    """Whether there is anything at a path but an empty folder, or one that is just being locked."""
    if not path.is_dir():
        return path.exists()
    return any(entry.name != LOCK_NAME for entry in path.iterdir())


def is_described(path: Path, expected: "zarr.Array[Any]") -> bool:
    """Whether zarr says of a folder what it says of an array; as text, where NaN equals itself."""
    try:
        found = zarr.open_array(str(path), mode="r", zarr_format=3)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    both = (found, expected)
    texts = {json.dumps(a.metadata.to_dict(), sort_keys=True, default=str) for a in both}
    return len(texts) == 1


def _checksum(described: object) -> str:
    """CRC-32C of what describes a store, as eight hexadecimal digits."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return f"{google_crc32c.value(text.encode()):08x}"


def _array_name(index: int) -> str:
    return "gram" if index == 0 else f"gram-{index}"
