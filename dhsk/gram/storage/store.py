"""A Gram matrix on disk: one zarr group, tile = chunk.

Layout of a store (attributes of the group: "dhsk", the header, and "dhsk_crc32c", the checksum of
its JSON with sorted keys)::

    gram, gram-1, …  one array a kernel: (n_rows, n_cols), chunks (tile, tile), fill NaN, crc32c;
                     triangle layout: the chunks (i, j) with i <= j only
    feature_names.json  names of the features, if they have names; their digest is in the header
    rows, cols       the samples after their map to the sphere, as the tasks read them: `dense`
                     (samples, dim), or `data`, `indices`, `indptr` of CSR; cols only if rectangular

A chunk is written to a temporary file and renamed, so a file of full size is a finished tile; its
checksum is tested at every reading. A finished array records in its attributes the checksum of
every place (`stored_array`), which finds whole tiles in the place of others. All of zarr.json
follows from the header (`descriptions`).

Presence at full size is the only record. Rejected: a journal (object stores cannot append), an
array of flags (many writers of one chunk), zarr's own count (it does not write a chunk that equals
the fill value, hence NaN).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import (
    CorruptTileError,
    IncompleteStoreError,
    StoreError,
    StoreMismatchError,
)
from dhsk.execution.lock import is_occupied
from dhsk.files import REFUSED, parse_json, refusal_of
from dhsk.gram.storage.descriptions import (
    DESCRIPTION,
    SUM,
    StoredGroup,
    checksum_of,
)
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.names import NAMES_FILE, digest_of_names, read_names, write_names
from dhsk.gram.storage.parts import whose
from dhsk.gram.storage.staged import Side, StagedSamples
from dhsk.gram.storage.stored_array import StoredArray
from dhsk.kernels import Kernel, kernel_from_spec
from dhsk.objects.places import Place, remove_below, remove_unfinished
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call
from dhsk.systems import quoted

_DESCRIPTION: Final = (
    "the description of {} is damaged (zarr.json): restore that file from a copy, or compute the "
    "store again in another folder"
)


class GramStore:
    """Reader and writer of one store; open it with `create` or `open`."""

    def __init__(self, path: Place, header: Header) -> None:
        self.path = path
        self.header = header
        self.samples = StagedSamples(path, header)
        self.kernels: list[Kernel] = [kernel_from_spec(spec) for spec in header.kernels]
        self.arrays: list[StoredArray] = self._arrays()

    @classmethod
    def create(
        cls, path: Place, header: Header, feature_names: Sequence[str] | None = None
    ) -> "GramStore":
        """Make a store, or open one of the same samples and kernels with its own tiles.

        Raises StoreMismatchError if it has other samples, kernels or another schema, and StoreError
        if the path is something else.
        """
        if is_occupied(path):
            store = cls.open(path)
            store.check_same(header)
        else:
            store = cls(path, header)
            store._group.describe()
        remove_unfinished(path)
        store.ensure_names(feature_names)
        for array in store.arrays:
            array.begin()
        return store

    @classmethod
    def open(cls, path: Place) -> "GramStore":
        """Open a store, complete or not; StoreError if there is none, or it has another schema."""
        try:
            attributes = parse_json((path / "zarr.json").read_bytes())["attributes"]
            described = attributes["dhsk"]
        except FileNotFoundError as error:
            what = "exists but is not a Gram store" if path.exists() else "does not exist"
            raise StoreError(
                f"{path} {what}: make one with dhsk gram, or check the path"
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            if isinstance(error, OSError) and error.errno in REFUSED:
                raise refusal_of(error) from error
            raise StoreError(f"{path} is not a Gram store of dhsk: check the path") from error
        try:
            store = cls(path, Header.of_json(described))
        except StoreMismatchError as error:
            raise StoreMismatchError(f"{path} cannot be read: {error}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTileError(_DESCRIPTION.format(path)) from error
        if attributes.get(SUM) != checksum_of(described):
            raise CorruptTileError(_DESCRIPTION.format(path))
        return store

    def check_same(self, header: Header) -> None:
        """Raise StoreMismatchError for a header of other samples, kernels or types."""
        differences = self.header.differences(header)
        if differences:
            raise StoreMismatchError(
                f"{self.path} was made with other {', '.join(differences)}: "
                "choose another path, or delete it first"
            )

    def remove(self) -> None:
        """Delete the store, its description last, so that it is incomplete until then."""
        folders = [array.folder for array in self.arrays]
        folders += [self.path / side for side in self.samples.sides]
        for folder in folders:
            remove_below(folder)
        (self.path / NAMES_FILE).unlink(missing_ok=True)
        (self.path / "zarr.json").unlink()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, in the order of the columns; errors as in `read_names`."""
        return read_names(self.path, self.header.feature_names)

    def has_sound_names(self) -> bool:
        """Whether the names of the features, if any, are readable."""
        try:
            self.feature_names  # noqa: B018  # it raises
        except CorruptTileError:
            return False
        return True

    def ensure_names(self, feature_names: Sequence[str] | None) -> None:
        """Write missing or damaged names of features; CorruptTileError if these are others."""
        if self.has_sound_names():
            return
        if feature_names is None or digest_of_names(feature_names) != self.header.feature_names:
            raise CorruptTileError(
                f"the names of the features of {self.path} are damaged: give the samples that it "
                "was made from, with their names in the same order"
            )
        write_names(self.path, feature_names)

    def _arrays(self) -> list[StoredArray]:
        """Arrays of tiles, one a kernel."""
        h = self.header
        if h.layout == "none":
            return []
        shape, chunks = (h.n_rows, h.n_cols), (h.tile, h.tile)
        triangle = h.symmetric and h.layout == "triangle"
        return [
            StoredArray(self.path / _array_name(k), shape, chunks, h.dtype, float("nan"), triangle)
            for k in range(len(self.kernels))
        ]

    def damaged_descriptions(self) -> list[Place]:
        """Descriptions that do not match the header and the stored arrays."""
        return [one.folder / DESCRIPTION for one in self._all_described() if not one.is_described()]

    def describe(self) -> None:
        """Write damaged descriptions again."""
        for one in self._all_described():
            if not one.is_described():
                one.describe()

    def _all_described(self) -> Iterator[StoredGroup | StoredArray]:
        """Everything that has a description."""
        yield self._group
        yield from self.arrays
        yield from self.samples.described()

    @property
    def _group(self) -> StoredGroup:
        described = self.header.to_json()
        return StoredGroup(self.path, {"dhsk": described, SUM: checksum_of(described)})

    def damaged_sides(self) -> list[Side]:
        """Read all staged samples; sides with missing or damaged ones."""
        return [side for side in self.samples.sides if not self.samples.is_sound(side)]

    def index_of(self, kernel: Kernel) -> int | None:
        """Number of the array of a kernel's tiles; None if they are not stored."""
        stored = self.header.layout != "none" and kernel in self.kernels
        return self.kernels.index(kernel) if stored else None

    # Tiles

    def read_tile(self, i: int, j: int, index: int = 0) -> NDArray[Any]:
        """Read stored tile (i, j) of a kernel, (rows of i, columns of j), and test its checksum.

        Raises IncompleteStoreError if the tile is missing, and CorruptTileError if its size or
        checksum is wrong, or it is the tile of another place.
        """
        tiling = self.header.tiling
        array = self.arrays[index]
        whole: NDArray[Any] = np.empty(array.chunks, array.dtype)
        try:
            array.read((i, j), whole)
        except IncompleteStoreError as error:
            raise IncompleteStoreError(
                f"tile ({i}, {j}) of {self.path} is missing: run the command that made it again"
            ) from error
        except CorruptTileError as error:
            raise CorruptTileError(
                f"tile ({i}, {j}) of {self.path} is damaged ({error}): "
                f"recompute it with dhsk verify {quoted(str(self.path))} --repair SAMPLES"
            ) from error
        rows, cols = tiling.rows(i), tiling.cols(j)
        return whole[: rows.stop - rows.start, : cols.stop - cols.start]

    def remove_tile(self, i: int, j: int) -> None:
        """Delete tile (i, j), so that it is computed again."""
        for array in self.arrays:
            for chunk in self.header.chunks_of(i, j):
                array.path_of(chunk).unlink(missing_ok=True)

    def forget(self, tiles: Iterable[tuple[int, int]]) -> None:
        """Remove tiles that will be computed again from the record of checksums."""
        places = [chunk for tile in tiles for chunk in self.header.chunks_of(*tile)]
        for array in self.arrays:
            array.forget(places)

    def record(self) -> None:
        """Record the checksums of all tiles, which must exist."""
        for array in self.arrays:
            array.complete()

    def missing_tiles(self) -> list[tuple[int, int]]:
        """Indices of the tiles that lack a file of full size for some kernel."""
        header = self.header
        if not self.arrays:
            return list(header.tiling.tiles())
        present = [array.present() for array in self.arrays]
        return [
            tile
            for tile in header.tiling.tiles()
            if not all(chunks.issuperset(header.chunks_of(*tile)) for chunks in present)
        ]

    def discard_damage(self, feature_names: Sequence[str] | None) -> list[tuple[int, int]]:
        """Prepare a repair: write damaged texts again, remove damaged tiles and staged samples.

        Returns the indices of the tiles. CorruptTileError if the names of features are others.
        """
        self.ensure_names(feature_names)
        damaged = self.damaged_tiles()
        for tile in damaged:
            self.remove_tile(*tile)
        remove_unfinished(self.path)
        self.describe()
        for side in self.damaged_sides():
            self.samples.start(side)
        return damaged

    def damaged_tiles(self) -> list[tuple[int, int]]:
        """Read all tiles; indices of missing and damaged ones."""
        damaged, report, total = [], passes_of_call().report, self.header.tiling.n_tiles
        for done, tile in enumerate(self.header.tiling.tiles(), 1):
            chunks = self.header.chunks_of(*tile)
            if not all(array.is_sound(chunk) for array in self.arrays for chunk in chunks):
                damaged.append(tile)
            report(Progress("checking", done, total))
        return damaged

    def check_sound(self) -> None:
        """Read all tiles, samples and descriptions.

        Raises CorruptTileError with the names of damaged ones, or else IncompleteStoreError if
        tiles are missing.
        """
        missing = self.missing_tiles()
        damaged = [tile for tile in self.damaged_tiles() if tile not in set(missing)]
        others = self.other_damage()
        if not (damaged or others):
            self.check_complete()
            return
        total, parts = self.header.tiling.n_tiles, []
        if damaged:
            named = _named(damaged)
            parts.append(f"{len(damaged)} of {total} tiles of {self.path} are damaged: {named}")
        if missing:
            parts.append(f"{len(missing)} of {total} tiles of {self.path} are missing")
        raise CorruptTileError(
            f"{', and '.join([*parts, *others])}; recompute them with dhsk verify "
            f"{quoted(str(self.path))} --repair SAMPLES"
        )

    def other_damage(self) -> list[str]:
        """Read what is beside the tiles; damaged samples, descriptions and names, in words."""
        parts = [
            f"the samples ({side}) in {self.path} are damaged" for side in self.damaged_sides()
        ]
        files = [*self.damaged_descriptions()]
        files += [] if self.has_sound_names() else [self.path / NAMES_FILE]
        return parts + [f"{file} is damaged" for file in files]

    def check_complete(self) -> None:
        """Raise IncompleteStoreError if tiles are missing."""
        missing = self.missing_tiles()
        if missing:
            parts = whose(self.path, self.header.tiling, missing)
            way = "run the command that made it again, it computes only these"
            if parts:
                way = f"run {parts} again, or the same command without --part, which does the rest"
            raise IncompleteStoreError(
                f"{self.path} lacks {len(missing)} of {self.header.tiling.n_tiles} tiles "
                f"({_named(missing)}): {way}"
            )


def _named(tiles: Sequence[tuple[int, int]]) -> str:
    """The first tiles, in words."""
    return ", ".join(map(str, tiles[:8])) + (", ..." if len(tiles) > 8 else "")


def _array_name(index: int) -> str:
    return "gram" if index == 0 else f"gram-{index}"
