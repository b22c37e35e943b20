"""Writes each tile when it is computed, and flushes it while others are computed.

Rejected: O_DIRECT. It saves 15 % of the time of the tiles, but every later reading waits for the
disk, and not all file systems take it.
"""

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.gram.memory import UPLOADS
from dhsk.gram.storage.chunks import ChunkWriter
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tiles import TileValues
from dhsk.objects.places import Spare, is_url


class TileWriter:
    """Context that writes strips of tiles, or whole tiles in the full layout, to the store.

    The computing thread copies a strip to the page cache, or to the memory of an upload, while it
    is in the cache of its core. Another thread flushes; it only waits, so that the two do not
    compete for a core. Chunks go to a server by `UPLOADS` threads, as each waits for its answer.
    """

    def __init__(self, store: GramStore) -> None:
        self._store = store
        self._open: dict[tuple[int, int, int], ChunkWriter] = {}
        self._limit = UPLOADS if is_url(store.path) else 1
        self._flusher = ThreadPoolExecutor(self._limit)
        self._flushing: set[Future[None]] = set()
        self._spare: Spare = []

    def __enter__(self) -> "TileWriter":
        return self

    def put(self, tile: TileValues) -> None:
        """Write the next strip of a tile of a kernel, from top to bottom."""
        self._append((tile.i, tile.j, tile.kernel), tile.values)
        if len(self._store.header.chunks_of(tile.i, tile.j)) > 1:
            self._append((tile.j, tile.i, tile.kernel), np.ascontiguousarray(tile.values.T))

    def _append(self, place: tuple[int, int, int], values: NDArray[Any]) -> None:
        if place not in self._open:
            self._open[place] = self._store.chunk_writer(*place, spare=self._spare)
        chunk = self._open[place]
        chunk.append(values)
        tiling = self._store.header.tiling
        rows = tiling.rows(place[0])
        if chunk.rows == rows.stop - rows.start:
            chunk.finish()
            self._wait(self._limit - 1)
            self._flushing.add(self._flusher.submit(chunk.commit))
            del self._open[place]

    def _wait(self, left: int) -> None:
        """Wait until at most `left` chunks are on their way."""
        while len(self._flushing) > left:
            done, self._flushing = wait(self._flushing, return_when=FIRST_COMPLETED)
            for chunk in done:
                chunk.result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flusher.shutdown()
        for chunk in self._open.values():
            chunk.discard()
        if error is None:
            self._wait(0)
