"""Tiles that stay in memory between the passes of one call."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from typing import Any

from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, TileValues
from dhsk.kernels import Kernel


class HeldTiles:
    """Source that keeps the tiles of as many groups as fit the memory, from their first pass on.

    Later passes have the same strips of the same bits, so results do not depend on the memory. The
    groups that came first are kept: to drop the oldest would keep none until it is needed again.

    Parameters
    ----------
    source
        Source of the tiles, in this process.
    tiling
        Partition into tiles.
    itemsize
        Bytes of an entry.
    room
        Bytes that may be kept.
    """

    def __init__(self, source: SourceOfTiles, tiling: Tiling, itemsize: int, room: int) -> None:
        self._source = source
        self._tiling = tiling
        self._itemsize = itemsize
        self._room = room
        self._lock = Lock()
        self._groups: dict[Group, list[TileValues]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without tiles, which would travel with every task, and a lock."""
        raise TypeError("tiles in memory are those of one process")

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of the source."""
        return self._source.kernels

    def part(self, rows: slice, cols: slice) -> "HeldTiles":
        """Give this source, as nothing travels."""
        del rows, cols
        return self

    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield values; see `TileSource.__call__`."""
        held = self._groups.get(group) if in_strips else None
        if held is not None:
            yield from held
        elif in_strips and self._reserve(group):
            yield from self._kept(group)
        else:
            yield from self._source(group, in_strips=in_strips)

    def _kept(self, group: Group) -> Iterator[TileValues]:
        """Values of a group for which there is room, kept when the last one was yielded."""
        kept = []
        try:
            for values in self._source(group, in_strips=True):
                kept.append(replace(values, values=values.values.copy()))
                yield values
        except BaseException:
            with self._lock:
                self._room += self._bytes(group)
            raise
        self._groups[group] = kept

    def _reserve(self, group: Group) -> bool:
        """Take the room of a group, if there is enough."""
        with self._lock:
            size = self._bytes(group)
            fits = size <= self._room
            self._room -= size if fits else 0
        return fits

    def _bytes(self, group: Group) -> int:
        tiling = self._tiling
        edges = ((tiling.rows(i), tiling.cols(j)) for i, j in group)
        entries: int = sum((r.stop - r.start) * (c.stop - c.start) for r, c in edges)
        return entries * self._itemsize * len(self.kernels)
