"""Tiles and memory of a matrix of graph nodes, by arithmetic."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.costs import Cost
from dhsk.errors import BudgetError
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.resources import TASKS_PER_THREAD, Resources
from dhsk.gram.graph_functions import WIDTH
from dhsk.gram.memory import CHUNK_BYTES, csr_entry_bytes, upload_bytes
from dhsk.gram.plan import MANY_FILES, MIN_TILE, SMALL_TILE
from dhsk.gram.storage.tiling import DtypeName, Tiling
from dhsk.units import counted, format_bytes

BLOCKS: Final = 6
"""Blocks of columns that a series has in memory: three terms, their sum, and two products."""

LEAST_COLUMNS: Final = 8
"""Columns of tiles, if the tiles are not smaller than `MIN_TILE` then: a task each."""

COPIES: Final = 5
"""Copies of S in a task: as it is read, S, A, 2A, and one on the way."""


@dataclass(frozen=True)
class GraphPlan:
    """Cost of a matrix of graph nodes: a task computes the tiles (0, j) to (j, j) of a column."""

    tiling: Tiling
    nnz: int
    """Entries of S."""
    dtype: DtypeName
    resources: Resources

    @property
    def task_bytes(self) -> int:
        """Peak memory of one running task, in bytes."""
        t = self.tiling
        column = 8 * t.n_rows * t.tile
        series = 8 * BLOCKS * t.n_rows * min(WIDTH, t.tile)
        graph = COPIES * (csr_entry_bytes("float64") * (self.nnz + t.n_rows) + 8 * t.n_rows)
        tile = np.dtype(self.dtype).itemsize * t.tile**2
        uploads = upload_bytes(tile, 1) if self.resources.to_server else 0
        return column + series + graph + tile + CHUNK_BYTES + uploads

    @property
    def disk_bytes(self) -> int:
        """Bytes of the tiles and of S on disk."""
        t = self.tiling
        tiles = t.n_tiles * t.tile**2 * np.dtype(self.dtype).itemsize
        return tiles + csr_entry_bytes("float64") * self.nnz + 8 * t.n_rows

    @property
    def need(self) -> MemoryNeed:
        """Predicted peak memory of the whole process tree."""
        parts = {
            "processes": self.resources.idle_bytes,
            "running tasks": min(self.resources.threads, self.tiling.col_blocks) * self.task_bytes,
        }
        return MemoryNeed(f"a graph's matrix in tiles of {self.tiling.tile} rows", parts)

    @property
    def window(self) -> int:
        """Most tasks in flight."""
        return TASKS_PER_THREAD * self.resources.threads

    def cost(self) -> Cost:
        """What a run will cost; its seconds depend on the spectrum of S."""
        n, disk = self.tiling.n_rows, self.disk_bytes
        what = (
            f"matrix of {counted(n, 'node')}, {counted(self.nnz, 'entry', 'entries')} of its graph"
        )
        return Cost(what, None, self.need.total, disk, disk)

    def check(self, disk_free: int | None = None) -> None:
        """Raise BudgetError if memory, or the disk's free bytes if known, are too small."""
        way_out = "give more memory, fewer workers or a smaller tile"
        self.need.check(self.resources.memory, way_out)
        if disk_free is not None and self.disk_bytes > disk_free:
            raise BudgetError(
                f"the store needs {format_bytes(self.disk_bytes)} on disk but only "
                f"{format_bytes(disk_free)} are free: choose another disk, or float32"
            )


def plan_graph(
    n: int, nnz: int, resources: Resources, dtype: DtypeName, tile: int | None
) -> GraphPlan:
    """Plan the tiles of n nodes; the default does not depend on the number of threads."""

    def planned(edge: int) -> GraphPlan:
        return GraphPlan(Tiling(n, n, min(edge, n), True), nnz, dtype, resources)

    if tile is not None:
        return planned(tile)
    edge = SMALL_TILE
    while planned(edge).tiling.n_tiles > MANY_FILES:
        edge *= 2
    while edge > MIN_TILE and n < LEAST_COLUMNS * edge:
        edge //= 2
    while edge > MIN_TILE and planned(edge).need.total > resources.memory:
        edge //= 2
    return planned(math.ceil(n / math.ceil(n / edge)))
