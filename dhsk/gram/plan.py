"""Tiles, bytes, flops and memory of a Gram computation, from arithmetic alone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from dhsk.errors import BudgetError, InputError
from dhsk.gram.sizes import human_bytes
from dhsk.kernels.rows import DENSE_BYTES

Layout: TypeAlias = Literal["triangle", "full"]
DtypeName: TypeAlias = Literal["float32", "float64"]

SMALL_TILE, LARGE_TILE = 1024, 2048
"""Largest tile edge chosen by default, below and above `LARGE_N` samples: 1024 leaves enough tiles
to share among workers, 2048 halves the bookkeeping and the reading of samples."""

LARGE_N = 8 * LARGE_TILE
"""From here on even the large tiles are 36, enough for a dozen workers to share."""

MIN_TILE = 64
"""Below this edge a tile costs more in bookkeeping than in arithmetic."""

TASKS_PER_THREAD = 2
"""Tasks in flight per worker thread: one runs, one waits, so that no worker idles."""

# The figures below were measured by tests/benchmarks/memory.py, over the whole process tree.

CLIENT_BYTES = 265_000_000
"""The process that drives, its scheduler and the blocks in which it stages samples included."""

WORKER_BYTES = 130_000_000
"""An idle worker process, its libraries loaded."""

PRODUCT_COPIES = 1
"""Tile-sized float64 arrays of a running task: the product, overwritten by the kernel."""

STORED_COPIES = 1
"""Tile-sized arrays of the stored type while a tile is written: its bytes with their checksum.
Float32 needs one more, for the cast."""

CHUNK_BYTES = 2 * 2**24
"""What reading a chunk of samples holds besides the samples: its bytes, and their copy."""

SPARSE_COPIES = 3
"""Dense strips that the product of two sparse blocks holds, at most `DENSE_BYTES` each."""


@dataclass(frozen=True)
class Tiling:
    """How a matrix is cut into square tiles.

    Attributes
    ----------
    n_rows, n_cols
        Shape of the matrix.
    tile
        Edge of a tile; the last tile of a row or column may be smaller.
    symmetric
        Only the tiles of the upper triangle are computed.
    """

    n_rows: int
    n_cols: int
    tile: int
    symmetric: bool

    @property
    def row_blocks(self) -> int:
        """Number of tiles from top to bottom."""
        return math.ceil(self.n_rows / self.tile)

    @property
    def col_blocks(self) -> int:
        """Number of tiles from left to right."""
        return math.ceil(self.n_cols / self.tile)

    @property
    def n_tiles(self) -> int:
        """Number of tiles that are computed."""
        b = self.row_blocks
        return b * (b + 1) // 2 if self.symmetric else b * self.col_blocks

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Indices (i, j) of the tiles that are computed, row by row."""
        for i in range(self.row_blocks):
            for j in range(i if self.symmetric else 0, self.col_blocks):
                yield i, j

    def rows(self, i: int) -> slice:
        """Rows of the matrix that tiles (i, .) cover."""
        return slice(i * self.tile, min((i + 1) * self.tile, self.n_rows))

    def cols(self, j: int) -> slice:
        """Columns of the matrix that tiles (., j) cover."""
        return slice(j * self.tile, min((j + 1) * self.tile, self.n_cols))


@dataclass(frozen=True)
class Resources:
    """What a computation may use.

    Attributes
    ----------
    workers
        Worker processes; 0 when the tasks run as threads of the calling process.
    threads
        Tasks that run at the same time, over all workers.
    memory
        Bytes that the whole process tree may hold: client, scheduler and workers.
    """

    workers: int
    threads: int
    memory: int

    @property
    def idle_bytes(self) -> int:
        """Memory of all processes before the first task."""
        return CLIENT_BYTES + self.workers * WORKER_BYTES


@dataclass(frozen=True)
class GramPlan:
    """Cost of a Gram computation, known before it runs; build it with `make_plan`.

    Attributes
    ----------
    tiling
        The cut into tiles.
    dim
        Number of features.
    row_bytes
        Bytes of one sample as the workers hold it.
    dtype
        Type of the stored entries.
    layout
        "triangle" stores the upper tiles, "full" also their mirror images.
    resources
        What it was planned for.
    """

    tiling: Tiling
    dim: int
    row_bytes: float
    dtype: DtypeName
    layout: Layout
    resources: Resources

    @property
    def flops(self) -> float:
        """Floating-point operations of the inner products, dense."""
        return 2.0 * self.dim * self.entries

    @property
    def entries(self) -> int:
        """Entries that are computed."""
        t = self.tiling
        if not t.symmetric:
            return t.n_rows * t.n_cols
        whole, rest = divmod(t.n_rows, t.tile)
        return (t.n_rows**2 + whole * t.tile**2 + rest**2) // 2

    @property
    def stored_tiles(self) -> int:
        """Tiles on disk: one file each."""
        t = self.tiling
        return t.row_blocks * t.col_blocks if self.layout == "full" else t.n_tiles

    @property
    def disk_bytes(self) -> int:
        """Bytes on disk: tiles padded to full size, and the mapped samples."""
        t = self.tiling
        tile_bytes = t.tile**2 * np.dtype(self.dtype).itemsize
        samples = t.n_rows if t.symmetric else t.n_rows + t.n_cols
        return self.stored_tiles * tile_bytes + math.ceil(samples * self.row_bytes)

    @property
    def task_bytes(self) -> int:
        """Peak memory of one running task, in bytes."""
        return task_bytes(self.tiling.tile, self.dim, self.row_bytes, self.dtype)

    @property
    def peak_bytes(self) -> int:
        """Predicted peak memory of the whole process tree, in bytes."""
        return self.resources.idle_bytes + self.resources.threads * self.task_bytes

    @property
    def window(self) -> int:
        """Tasks in flight at any time."""
        return TASKS_PER_THREAD * self.resources.threads

    def check(self, disk_free: int | None = None) -> None:
        """Refuse a plan that does not fit.

        Parameters
        ----------
        disk_free
            Free bytes where the store will be; None if unknown.

        Raises
        ------
        BudgetError
            The memory or the disk is too small.
        """
        if self.peak_bytes > self.resources.memory:
            raise BudgetError(
                f"tiles of {self.tiling.tile} rows need {human_bytes(self.peak_bytes)} "
                f"({human_bytes(self.resources.idle_bytes)} for the processes, "
                f"{self.resources.threads} x {human_bytes(self.task_bytes)} for running tasks) but "
                f"{human_bytes(self.resources.memory)} are allowed: give more memory, "
                "fewer workers or a smaller tile"
            )
        if disk_free is not None and self.disk_bytes > disk_free:
            raise BudgetError(
                f"the store needs {human_bytes(self.disk_bytes)} on disk but only "
                f"{human_bytes(disk_free)} are free: choose another disk, float32 or the "
                "triangle layout"
            )

    def table(self) -> list[tuple[str, str]]:
        """Rows (what, value) for people."""
        t, r = self.tiling, self.resources
        kind = "upper triangle" if t.symmetric and self.layout == "triangle" else "full"
        return [
            ("matrix", f"{t.n_rows:,} x {t.n_cols:,} {self.dtype}, {kind}, dim {self.dim:,}"),
            ("tiles", f"{t.n_tiles:,} of {t.tile:,} x {t.tile:,}, {self.window} in flight"),
            ("arithmetic", f"{self.flops / 1e9:,.3g} Gflop in products"),
            ("on disk", f"{human_bytes(self.disk_bytes)} in {self.stored_tiles:,} tile files"),
            ("workers", f"{r.workers or 1} process(es), {r.threads} task(s) at a time"),
            (
                "memory",
                f"{human_bytes(self.peak_bytes)} predicted for all processes together, "
                f"{human_bytes(r.memory)} allowed",
            ),
        ]


def task_bytes(tile: int, dim: int, row_bytes: float, dtype: DtypeName) -> int:
    """Peak memory of a task that computes and writes one tile.

    Parameters
    ----------
    tile
        Edge of the tile.
    dim
        Number of features.
    row_bytes
        Bytes of one sample as stored: less than 8 * dim if it is sparse.
    dtype
        Type of the stored entries.

    Returns
    -------
    int
        Bytes.
    """
    copies = STORED_COPIES + (dtype == "float32")
    entries = (PRODUCT_COPIES * 8 + copies * np.dtype(dtype).itemsize) * tile**2
    block = tile * row_bytes
    dense_block = 8 * tile * dim
    strips = SPARSE_COPIES * min(DENSE_BYTES, dense_block) if block < dense_block else 0
    return math.ceil(entries + 2 * block + min(2 * block, CHUNK_BYTES) + strips)


def make_plan(
    n_rows: int,
    dim: int,
    resources: Resources,
    *,
    n_cols: int | None = None,
    nnz: int | None = None,
    dtype: str = "float64",
    tile: int | None = None,
    layout: str = "triangle",
) -> GramPlan:
    """Choose the tiles of a Gram computation and predict its cost.

    Parameters
    ----------
    n_rows
        Number of samples N.
    dim
        Number of features.
    resources
        Workers and memory.
    n_cols
        Number of samples on the other side; None for the symmetric matrix of the samples.
    nnz
        Stored entries of sparse samples, both sides together; None if they are dense.
    dtype
        "float32" or "float64": type of the stored entries.
    tile
        Edge of a tile; None takes the largest default that fits the memory.
    layout
        "triangle" stores the upper tiles of a symmetric matrix, "full" all of them.

    Returns
    -------
    GramPlan
        The plan; `GramPlan.check` says whether it fits.

    Raises
    ------
    InputError
        A parameter is out of its domain.
    """
    symmetric = n_cols is None
    columns = n_rows if n_cols is None else n_cols
    _check_counts(n_rows, columns, dim, tile)
    if dtype not in ("float32", "float64"):
        raise InputError(f"dtype must be float32 or float64, got {dtype!r}")
    if layout not in ("triangle", "full"):
        raise InputError(f"layout must be triangle or full, got {layout!r}")
    samples = n_rows if symmetric else n_rows + columns
    # A CSR entry is a float64 and an index of 4 or 8 bytes, a row one more index.
    row_bytes = 8.0 * dim if nnz is None else 16.0 * nnz / samples + 8.0
    kind = cast("DtypeName", dtype)
    if tile is None:
        tile = _largest_tile(max(n_rows, columns), dim, row_bytes, kind, resources)
    return GramPlan(
        tiling=Tiling(n_rows, columns, min(tile, max(n_rows, columns)), symmetric),
        dim=dim,
        row_bytes=row_bytes,
        dtype=kind,
        layout=cast("Layout", layout) if symmetric else "full",
        resources=resources,
    )


def _check_counts(n_rows: int, n_cols: int, dim: int, tile: int | None) -> None:
    if n_rows < 1 or n_cols < 1 or dim < 1:
        raise InputError(f"need at least one sample and one feature, got {n_rows} x {dim}")
    if tile is not None and tile < 1:
        raise InputError(f"tile must be at least 1, got {tile}")


def _largest_tile(
    n: int, dim: int, row_bytes: float, dtype: DtypeName, resources: Resources
) -> int:
    """Largest balanced default edge whose tasks fit; about MIN_TILE if none does."""
    free = max(resources.memory - resources.idle_bytes, 0) / resources.threads
    edge = LARGE_TILE if n >= LARGE_N else SMALL_TILE
    while edge > MIN_TILE and task_bytes(edge, dim, row_bytes, dtype) > free:
        edge //= 2
    # Equal tiles: 1030 samples become two blocks of 515, not 1024 and 6 padded to 1024.
    return math.ceil(n / math.ceil(n / edge))
