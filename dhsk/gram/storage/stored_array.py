"""An array of a store: chunk files, their record of checksums, and the description.

Rejected as the record: slots that workers write (many writers of one array), bytes at the end of a
chunk (zarr's codec takes the last four), extended attributes (cp and rsync lose them).
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.errors import CorruptTileError, IncompleteStoreError
from dhsk.gram.storage.chunks import (
    ChunkWriter,
    chunk_size,
    read_chunk,
    stored_checksum,
    write_chunk,
)
from dhsk.gram.storage.descriptions import (
    agree,
    attributes_in,
    attributes_of,
    described_array,
    read_description,
    write_description,
)
from dhsk.objects.places import Place as Location
from dhsk.objects.places import size_of, sizes_below

RECORD: Final = "dhsk_chunk_crc32c"
"""Attribute with the checksums of all chunks in the order of their places, eight hexadecimal digits
each, zeros if unknown. Every chunk file ends in the checksum of its content; this record finds a
sound chunk in the place of another."""

_DIGITS: Final = 8

Place: TypeAlias = tuple[int, ...]
"""Indices of a chunk."""


@dataclass
class StoredArray:
    """An array with one file per chunk; fields as for `zarr.create_array`."""

    folder: Location
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: Any
    fill_value: float
    triangle: bool = False
    """Whether only the chunks (i, j) with i <= j are stored."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes besides the record."""
    _record: NDArray[np.uint32] | None = field(default=None, init=False)
    """Record as it was read last; None if it was not."""

    def __getstate__(self) -> dict[str, Any]:
        """State without the record, which workers read as needed."""
        return {**vars(self), "_record": None}

    # Places

    @property
    def blocks(self) -> Place:
        """Number of chunks along each axis."""
        return tuple(-(-n // step) for n, step in zip(self.shape, self.chunks, strict=True))

    @property
    def n_chunks(self) -> int:
        """Number of chunks that are stored."""
        b = self.blocks
        return b[0] * (b[0] + 1) // 2 if self.triangle else int(np.prod(b))

    def places(self) -> Iterator[Place]:
        """Places of the chunks that are stored, row by row."""
        return (p for p in np.ndindex(self.blocks) if not self.triangle or p[0] <= p[1])

    def _number(self, place: Place) -> int:
        """Number of places before this one."""
        if self.triangle:
            i, j = place
            return i * self.blocks[0] - i * (i - 1) // 2 + j - i
        return int(np.ravel_multi_index(place, self.blocks))

    # Chunks

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk file."""
        return chunk_size(self.chunks, np.dtype(self.dtype))

    def path_of(self, place: Place) -> Location:
        """File of a chunk."""
        return self.folder.joinpath("c", *map(str, place))

    def read(self, place: Place, out: NDArray[Any]) -> None:
        """Read a chunk as `read_chunk`, and compare its checksum with the record."""
        found = read_chunk(self.path_of(place), out)
        # A repair in another process may have written both again.
        if not self._is_recorded(place, found) and not self._is_recorded(place, found, again=True):
            raise CorruptTileError(
                f"its checksum is {found:08x}, and that of its place "
                f"{self.record()[self._number(place)]:08x}: it is another chunk"
            )

    def is_sound(self, place: Place) -> bool:
        """Read a chunk; whether it exists and has the right checksum."""
        try:
            self.read(place, np.empty(self.chunks, self.dtype))
        except (CorruptTileError, IncompleteStoreError):
            return False
        return True

    def present(self) -> set[Place]:
        """Places of the chunks that exist in full size."""
        sizes = sizes_below(self.folder / "c").items()
        names = [name.split("/") for name, size in sizes if size == self.chunk_bytes]
        return {tuple(map(int, name)) for name in names if all(map(str.isdigit, name))}

    def writer(self, place: Place) -> ChunkWriter:
        """Writer of a chunk by strips, of two axes."""
        rows, width = self.chunks
        return ChunkWriter(self.path_of(place), (rows, width), self.dtype)

    def write(self, place: Place, values: NDArray[Any]) -> None:
        """Write a chunk of values, C-ordered, padded to the full shape, atomically."""
        shape = (self.chunks[0], math.prod(self.chunks[1:]))
        write_chunk(self.path_of(place), values.reshape(len(values), -1), shape)

    def _is_recorded(self, place: Place, found: int, *, again: bool = False) -> bool:
        expected = int(self.record(again=again)[self._number(place)])
        return expected in (0, found)

    # Description and record

    def begin(self) -> None:
        """Write the description of a new array, unless it exists."""
        if size_of(self.folder / "zarr.json") is None:
            self._describe(np.zeros(self.n_chunks, np.uint32))

    def is_described(self) -> bool:
        """Whether the description, which other readers of zarr use, is right.

        It is read once: another process may add the record in between.
        """
        said = read_description(self.folder)
        self._record = self._decoded(attributes_in(said).get(RECORD))
        return agree(said, self._described(self._record))

    def describe(self) -> None:
        """Write the description again, with the record if that is readable."""
        self._describe(self.record(again=True))

    def record(self, *, again: bool = False) -> NDArray[np.uint32]:
        """Checksums of all chunks by their places, 0 if unknown; read once, or `again`."""
        if again or self._record is None:
            self._record = self._decoded(attributes_of(self.folder).get(RECORD))
        return self._record

    def forget(self, places: Iterable[Place]) -> None:
        """Remove chunks that will be written again from the record."""
        known = self.record(again=True)
        left = known.copy()
        left[[self._number(place) for place in places]] = 0
        if (left != known).any():
            self._describe(left)

    def complete(self) -> None:
        """Record the checksums in the files of chunks that are not in the record."""
        known = self.record(again=True)
        if known.all():
            return
        whole = known.copy()
        for number, place in enumerate(self.places()):
            if not known[number]:
                whole[number] = stored_checksum(self.path_of(place), self.chunk_bytes)
        if (whole != known).any():
            self._describe(whole)

    def _describe(self, record: NDArray[np.uint32]) -> None:
        write_description(self.folder, self._described(record))
        self._record = record

    def _described(self, record: NDArray[np.uint32]) -> dict[str, Any]:
        known = {RECORD: record.astype(">u4").tobytes().hex()} if record.any() else {}
        return described_array(
            self.shape, self.chunks, self.dtype, self.fill_value, {**self.attributes, **known}
        )

    def _decoded(self, text: Any) -> NDArray[np.uint32]:
        """The record from a description's text; all unknown if that is damaged."""
        text = text if isinstance(text, str) else ""
        try:
            found = np.frombuffer(bytes.fromhex(text), ">u4").astype(np.uint32)
        except ValueError:
            found = np.zeros(0, np.uint32)
        whole = len(found) == self.n_chunks and len(text) == _DIGITS * len(found)
        return found if whole else np.zeros(self.n_chunks, np.uint32)
