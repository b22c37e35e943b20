"""Tasks that compute tiles of a store, each written while the next is computed."""

import math
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.execution.resources import Resources
from dhsk.execution.tasks import told_as
from dhsk.execution.workers import leave_slot
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.memory import UPLOADS
from dhsk.gram.passes import grouped
from dhsk.gram.plan import GROUPS_PER_THREAD, GramPlan
from dhsk.gram.storage.chunks import ChunkWriter
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tiles import Group, TileSource, TileValues, extent
from dhsk.objects.places import is_url

Task: TypeAlias = tuple[TileSource, Group]
"""Arguments of `compute_group`."""


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

    def __enter__(self) -> "TileWriter":
        return self

    def put(self, tile: TileValues) -> None:
        """Write the next strip of a tile of a kernel, from top to bottom."""
        self._append((tile.i, tile.j, tile.kernel), tile.values)
        if len(self._store.header.chunks_of(tile.i, tile.j)) > 1:
            self._append((tile.j, tile.i, tile.kernel), np.ascontiguousarray(tile.values.T))

    def _append(self, place: tuple[int, int, int], values: NDArray[Any]) -> None:
        if place not in self._open:
            self._open[place] = self._store.arrays[place[2]].writer(place[:2])
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


def groups_of(
    missing: Sequence[tuple[int, int]], header: Header, plan: GramPlan
) -> Sequence[Group]:
    """Tiles of each task: squares of them, or columns of a graph, the longest first."""
    if header.graph is not None:
        columns = sorted({j for _, j in missing}, reverse=True)
        return [tuple(tile for tile in missing if tile[1] == j) for j in columns]
    edge = plan.group  # that of the whole matrix: where few tiles are missing, they make fewer
    while edge > 1 and len(grouped(missing, edge)) < GROUPS_PER_THREAD * plan.resources.threads:
        edge -= 1
    return grouped(missing, edge)


def samples_of(group: Group, header: Header) -> int:
    """Samples of the last side that a task reads: the first so many, or all of a graph."""
    return header.n_rows if header.graph is not None else extent(header.tiling, group)[1].stop


def _words_of(_source: TileSource, group: Group) -> str:
    """Tiles of a group, in words."""
    return f"tile {group[0]}" if len(group) == 1 else f"tiles {group[0]} to {group[-1]}"


def _memory_of(source: TileSource, group: Group) -> int:
    """Bytes that the task of a group takes, by the mean of its samples."""
    header = GramStore.open(source.path).header
    rows = extent(header.tiling, group)[0]
    return bytes_of_task(header, rows.stop - rows.start)


def bytes_of_task(header: Header, rows: int) -> int:
    """Bytes of a task that computes tiles of so many rows, by the mean of the samples."""
    plan = plan_of(header, Resources(workers=0, threads=1, memory=0))
    return replace(plan, group=math.ceil(rows / header.tile)).task_bytes


@told_as(_words_of, _memory_of)
def compute_group(source: TileSource, group: Group) -> int:
    """Compute and write a group of tiles, as a task; return their number."""
    store = GramStore.open(source.path)
    with TileWriter(store) as writer:
        for values in source(group, in_strips=store.header.layout != "full"):
            writer.put(values)
        leave_slot()
    return len(group)
