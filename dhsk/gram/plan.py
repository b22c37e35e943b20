"""Tiles, bytes, flops and memory of a Gram computation, by arithmetic."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from dhsk.errors import BudgetError, InputError
from dhsk.execution.memory import MemoryNeed
from dhsk.execution.resources import TASKS_PER_THREAD, WORKER_BYTES, Resources
from dhsk.gram.memory import (
    CHUNK_BYTES,
    CSR_ROW_BYTES,
    csr_entry_bytes,
    product_bytes,
    upload_bytes,
)
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.tiling import DtypeName, Layout, Tiling
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.panels import panel_cost
from dhsk.kernels.rows import ProductPath, are_never_dense, cheapest_path
from dhsk.units import counted, format_bytes

SMALL_TILE, LARGE_TILE = 1024, 2048
"""Largest default tile edge, below and above `LARGE_N` samples: 1024 gives enough tiles for all
workers, 2048 halves the bookkeeping and the reading of samples."""

LARGE_N = 8 * LARGE_TILE
"""Number of samples with 36 large tiles, enough for a dozen workers."""

MANY_FILES = 5000
"""Number of tile files above which the default tile doubles, up to `HUGE_TILE`: a resumed run lists
them all, and shared file systems limit their number."""

HUGE_TILE = 8192
"""Edge of tiles of half a gigabyte in float64, with a gigabyte of memory a task."""

MIN_TILE = 64
"""Edge below which a tile costs more in bookkeeping than in arithmetic."""

LARGEST_GROUP = 4
"""Edge of a task's group in tiles: with 4 a task reads half a block of samples a tile."""

GROUPS_PER_THREAD = 3
"""Fewest groups a thread, so that the last ones end at about the same time."""

STARTS = 300
"""Tasks a second for which groups are sized: half of what a scheduler starts (`ASSUMED_TASKS`)."""

ENTRY_SECONDS = 4e-9
"""Seconds of an entry by which they are sized: 3 to 5 ns measured with 100 features in float64."""


@dataclass(frozen=True)
class GramPlan:
    """Cost of a Gram computation, known before it runs.

    `make_plan` builds it for samples, `plan_graph` for the nodes of a graph.
    """

    tiling: Tiling
    sides: GramSides
    dtype: DtypeName
    """Type of the stored entries."""
    layout: Layout
    """Tiles on disk: the upper ones ("triangle"), also their mirror images ("full"), or none."""
    resources: Resources
    n_kernels: int
    """Number of kernels computed from each product."""
    product_dtype: DtypeName
    """Type in which samples are stored, multiplied and evaluated."""
    group: int
    """Edge, in tiles, of the square that a task computes."""
    graph_bytes: Callable[[Tiling], int] | None = None
    """Bytes of a task that computes a column of tiles of a graph; None if it computes products."""

    @property
    def row_bytes(self) -> float:
        """Bytes of one sample in a worker's memory."""
        return self.sides.row_bytes(self.product_dtype)

    @property
    def product_path(self) -> ProductPath:
        """How products of average tiles are multiplied."""
        s = self.sides
        if s.shared is None or s.row_entries is None:
            return "dense"
        return cheapest_path(s.shared, s.row_entries, s.dim)

    @property
    def sparse_path(self) -> bool:
        """Whether products of average tiles are multiplied as sparse matrices."""
        return self.product_path == "sparse"

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds of an entry on the path that products take, those of panels in GEMM's."""
        of_path: dict[ProductPath, float] = {
            "sparse": self.sides.shared or 0.0,
            "panels": panel_cost(self.sides.row_entries or 0.0, self.sides.dim),
            "dense": float(self.sides.dim),
        }
        return of_path[self.product_path]

    @property
    def flops(self) -> float:
        """Floating-point operations of the inner products."""
        return 2.0 * self.multiply_adds * self.entries

    @property
    def entries(self) -> int:
        """Number of entries that are computed."""
        t = self.tiling
        if not t.symmetric:
            return t.n_rows * t.n_cols
        whole, rest = divmod(t.n_rows, t.tile)
        return (t.n_rows**2 + whole * t.tile**2 + rest**2) // 2

    @property
    def stored_tiles(self) -> int:
        """Number of tiles on disk, a file each."""
        t = self.tiling
        tiles = t.row_blocks * t.col_blocks if self.layout == "full" else t.n_tiles
        return 0 if self.layout == "none" else self.n_kernels * tiles

    @property
    def tile_bytes(self) -> int:
        """Bytes of the stored tiles, padded to full size."""
        return self.stored_tiles * self.tiling.tile**2 * np.dtype(self.dtype).itemsize

    @property
    def disk_bytes(self) -> int:
        """Bytes of tiles and mapped samples on disk."""
        return self.tile_bytes + self.sample_bytes

    @property
    def sample_bytes(self) -> int:
        """Bytes of the mapped samples on disk."""
        return math.ceil(self.sides.samples * self.row_bytes)

    @property
    def block_reads(self) -> float:
        """Bytes of samples that all tasks read."""
        return 2 * self.group * self.tiling.tile * self.row_bytes * self.n_groups

    def block_bytes(self, rows: int) -> float:
        """Most bytes of consecutive samples in a worker's memory."""
        if self.sides.nnz is None:
            return rows * self.row_bytes
        each = csr_entry_bytes(self.product_dtype)
        return each * self.sides.most_entries(rows) + CSR_ROW_BYTES * rows

    @property
    def task_bytes(self) -> int:
        """Peak memory of one running task, in bytes, besides that of the idle process."""
        mirrors = 2 if self.layout == "full" and self.tiling.symmetric else 1
        stored = np.dtype(self.dtype).itemsize * self.tiling.tile**2
        uploads = self.resources.to_server * upload_bytes(stored, self.n_kernels * mirrors)
        of_graph = self.graph_bytes
        return uploads + (self._bytes_of_products if of_graph is None else of_graph(self.tiling))

    @property
    def _bytes_of_products(self) -> int:
        """Bytes of a task that computes a group of tiles from samples."""
        t, dim, sparse = self.tiling, self.sides.dim, self.sides.nnz is not None
        item, product_item = (np.dtype(kind).itemsize for kind in (self.dtype, self.product_dtype))
        # Tiles are written whole in the full layout, else strip by strip if not converted.
        converted = self.layout == "full" or item != product_item
        block = self.block_bytes(t.tile)
        group = self.block_bytes(min(self.group * t.tile, max(t.n_rows, t.n_cols)))
        entries = self.sides.most_entries(t.tile) / t.tile if sparse else None
        product = product_bytes(t.tile, dim, block, entries, product_item)
        if entries is None:
            temporary = min(2 * block, CHUNK_BYTES)
        elif are_never_dense(entries, dim):
            temporary = max(CHUNK_BYTES, product)  # one after the other
        else:
            temporary = CHUNK_BYTES + product  # measured: the memory of chunks is not freed
        values = (product_item + (item if converted else 0)) * t.tile**2
        return math.ceil(values + 2 * group + temporary)

    @property
    def need(self) -> MemoryNeed:
        """Predicted peak memory of the whole process tree."""
        r = self.resources
        parts = {"processes": r.idle_bytes, "running tasks": r.threads * self.task_bytes}
        what = "a Gram matrix" if self.graph_bytes is None else "a graph's matrix"
        return MemoryNeed(f"{what} in tiles of {self.tiling.tile} rows", parts)

    @property
    def peak_bytes(self) -> int:
        """Total of `need` in bytes."""
        return self.need.total

    @property
    def worker_bytes(self) -> int:
        """Predicted peak bytes of one worker process, or of the only process."""
        r = self.resources
        if not r.workers:
            return self.peak_bytes
        return WORKER_BYTES + math.ceil(r.threads / r.workers) * self.task_bytes

    @property
    def fits(self) -> bool:
        """Whether the predicted peak is within the memory limit."""
        return self.peak_bytes <= self.resources.memory

    @property
    def n_groups(self) -> int:
        """Number of tasks: squares of `group` x `group` tiles."""
        t = self.tiling
        return Tiling(t.row_blocks, t.col_blocks, self.group, t.symmetric).n_tiles

    @property
    def window(self) -> int:
        """Most tasks in flight."""
        return TASKS_PER_THREAD * self.resources.threads

    def check(self, disk_free: int | None = None) -> None:
        """Raise BudgetError if memory, or the disk's free bytes if known, are too small."""
        self.need.check(self.resources.memory, "give more memory, fewer workers or a smaller tile")
        if disk_free is not None and self.disk_bytes > disk_free:
            both = self.layout == "full" and self.tiling.symmetric
            raise BudgetError(
                f"the store needs {format_bytes(self.disk_bytes)} on disk but only "
                f"{format_bytes(disk_free)} are free: choose another disk, "
                f"{'float32 or the triangle layout' if both else 'or float32'}"
            )

    def table(self) -> list[tuple[str, str]]:
        """Rows (name, value) of a table for users."""
        t, r = self.tiling, self.resources
        kind = {"triangle": "upper triangle", "full": "full", "none": "not stored"}[self.layout]
        blocks = counted(t.n_tiles, "block")
        edge = f", up to {self.group} x {self.group} of them a task" if self.group > 1 else ""
        features, files = counted(self.sides.dim, "feature"), self.stored_tiles
        workers = counted(r.workers or 1, "process", "processes")
        return [
            ("matrix", f"{t.n_rows:,} x {t.n_cols:,} {self.dtype}, {kind}, {features}"),
            ("tiles", f"{blocks} of {t.tile:,} x {t.tile:,} entries{edge}"),
            ("arithmetic", f"{self.flops / 1e9:,.3g} Gflop in {self._products()}"),
            ("on disk", f"{format_bytes(self.disk_bytes)}, the matrix in {counted(files, 'file')}"),
            ("workers", f"{workers}, {counted(r.threads, 'task')} at a time"),
            (
                "memory",
                f"{format_bytes(self.peak_bytes)} predicted for all processes together, "
                f"{format_bytes(self.worker_bytes)} a worker, {format_bytes(r.memory)} allowed",
            ),
        ]

    def _products(self) -> str:
        """How samples are multiplied, in words."""
        s = self.sides
        if s.shared is None:
            return "matrix products"
        shared = f"{s.shared:,.2g}" if s.shared < 100 else f"{s.shared:,.0f}"
        if self.sparse_path:
            return f"sparse products: {shared} multiplications an entry, dense ones {s.dim:,}"
        if self.product_path == "panels":
            return f"entries of samples times dense ones: {s.row_entries:,.0f} a sample"
        return (
            f"dense products of some rows at a time: sparse ones need {shared} multiplications an "
            "entry and take longer"
        )


def make_plan(
    sides: GramSides,
    resources: Resources,
    *,
    dtype: str = "float64",
    product_dtype: str = "float64",
    n_kernels: int = 1,
    tile: int | None = None,
    layout: str = "triangle",
) -> GramPlan:
    """Choose the tiles of a Gram computation and predict its cost; arguments as in `GramPlan`.

    The default `tile` is the largest edge whose tasks fit the memory.
    """
    n_cols = sides.n_rows if sides.n_cols is None else sides.n_cols
    symmetric, most = sides.n_cols is None, max(sides.n_rows, n_cols)
    _check_plan(sides, tile, layout, {"dtype": dtype, "product_dtype": product_dtype})

    def planned(edge: int, group: int) -> GramPlan:
        return GramPlan(
            tiling=Tiling(sides.n_rows, n_cols, min(edge, most), symmetric),
            sides=sides,
            dtype=cast("DtypeName", dtype),
            layout=cast("Layout", layout if symmetric or layout == "none" else "full"),
            resources=resources,
            n_kernels=n_kernels,
            product_dtype=cast("DtypeName", product_dtype),
            group=group,
        )

    return _largest_group(_largest_tile(most, planned) if tile is None else tile, planned)


def _check_plan(sides: GramSides, tile: int | None, layout: str, dtypes: Mapping[str, str]) -> None:
    """Raise InputError for a parameter out of its domain."""
    if sides.n_rows < 1 or sides.n_cols == 0 or sides.dim < 1:
        raise InputError(
            f"need at least one sample and one feature, got {sides.n_rows} x {sides.dim}"
        )
    if tile is not None:
        whole_parameter("tile", tile, 1)
    for name, value in dtypes.items():
        if value not in ("float32", "float64"):
            raise InputError(f"{name} must be float32 or float64, got {value!r}")
    if layout not in ("triangle", "full", "none"):
        raise InputError(f"layout must be triangle or full, got {layout!r}")


def _largest_tile(n: int, planned: Callable[[int, int], GramPlan]) -> int:
    """Largest balanced default edge whose tasks fit the memory; about MIN_TILE if none does."""
    edge = LARGE_TILE if n >= LARGE_N else SMALL_TILE
    while edge < HUGE_TILE and planned(edge, 1).stored_tiles > MANY_FILES:
        edge *= 2
    while edge > MIN_TILE and not planned(edge, 1).fits:
        edge //= 2
    # Equal tiles: 1030 samples become two blocks of 515, not 1024 and 6 padded to 1024.
    return math.ceil(n / math.ceil(n / edge))


def _largest_group(tile: int, planned: Callable[[int, int], GramPlan]) -> GramPlan:
    """Plan of the largest groups that fit the memory and occupy all threads.

    Where workers would ask for more than `STARTS` tasks a second, groups are larger.
    """
    single = planned(tile, 1)
    larger = (planned(tile, group) for group in range(LARGEST_GROUP, 1, -1))
    fitting = [*(plan for plan in larger if plan.fits), single]
    r = single.resources
    found = next((p for p in fitting if p.n_groups >= GROUPS_PER_THREAD * r.threads), single)
    if r.workers and found.n_groups > STARTS:
        brief = STARTS * ENTRY_SECONDS * tile**2
        slow = (p for p in reversed(fitting) if brief * p.group**2 >= r.threads)
        return max(found, next(slow, fitting[0]), key=lambda p: p.group)
    return found
