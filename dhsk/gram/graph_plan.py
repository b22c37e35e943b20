"""Plan of a matrix of graph nodes, and of the matrix of any store, by arithmetic."""

import math
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dhsk.costs import Cost
from dhsk.execution.resources import Resources
from dhsk.gram.graph_functions import WIDTH
from dhsk.gram.memory import CHUNK_BYTES, CSR_ROW_BYTES, csr_entry_bytes
from dhsk.gram.plan import MANY_FILES, MIN_TILE, SMALL_TILE, GramPlan, make_plan
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.header import Header
from dhsk.gram.storage.tiling import Tiling
from dhsk.units import counted

BLOCKS: Final = 6
"""Blocks of columns that a series has in memory: three terms, their sum, and two products."""

LEAST_COLUMNS: Final = 8
"""Columns of tiles, if the tiles are not smaller than `MIN_TILE` then: a task each."""

COPIES: Final = 5
"""Copies of S in a task: as it is read, S, A, 2A, and one on the way."""


def plan_graph(
    n: int, nnz: int, resources: Resources, dtype: str = "float64", tile: int | None = None
) -> GramPlan:
    """Plan the tiles of n nodes, whose similarity S has nnz entries.

    A task computes the tiles (0, j) to (j, j) of a column. The default tile does not depend on the
    number of threads.
    """
    sides, graph_bytes = GramSides(n, n, nnz=nnz), partial(_column_bytes, nnz, dtype)

    def planned(edge: int) -> GramPlan:
        plan = make_plan(sides, resources, dtype=dtype, tile=edge)
        used = min(resources.threads, plan.tiling.col_blocks)
        return replace(
            plan, group=1, graph_bytes=graph_bytes, resources=replace(resources, threads=used)
        )

    if tile is not None:
        return planned(tile)
    edge = SMALL_TILE
    while planned(edge).tiling.n_tiles > MANY_FILES:
        edge *= 2
    while edge > MIN_TILE and n < LEAST_COLUMNS * edge:
        edge //= 2
    while edge > MIN_TILE and not planned(edge).fits:
        edge //= 2
    return planned(math.ceil(n / math.ceil(n / edge)))


def _column_bytes(nnz: int, dtype: str, t: Tiling) -> int:
    """Bytes of a task that computes a column of tiles of a graph of nnz entries."""
    column = 8 * t.n_rows * t.tile
    series = 8 * BLOCKS * t.n_rows * min(WIDTH, t.tile)
    graph = COPIES * (csr_entry_bytes("float64") * (nnz + t.n_rows) + CSR_ROW_BYTES * t.n_rows)
    return column + series + graph + np.dtype(dtype).itemsize * t.tile**2 + CHUNK_BYTES


def cost_of_graph(plan: GramPlan, nnz: int) -> Cost:
    """What a run will cost; its seconds depend on the spectrum of S."""
    n, disk = plan.tiling.n_rows, plan.disk_bytes
    what = f"matrix of {counted(n, 'node')}, {counted(nnz, 'entry', 'entries')} of its graph"
    return Cost(what, None, plan.peak_bytes, disk, disk)


def plan_of(header: Header, resources: Resources, sides: GramSides | None = None) -> GramPlan:
    """Plan of the matrix of a store; without its samples, by their mean."""
    if header.graph is not None:
        nnz = header.nnz[0] or 0
        return plan_graph(header.n_rows, nnz, resources, header.dtype, header.tile)
    n_cols = None if header.symmetric else header.n_cols
    entries = [nnz for nnz in header.nnz if nnz is not None]
    mean = GramSides(header.n_rows, header.dim, n_cols, sum(entries) if entries else None)
    return make_plan(
        sides or mean,
        resources,
        dtype=header.dtype,
        product_dtype=header.product_dtype,
        n_kernels=len(header.kernels),
        tile=header.tile,
        layout=header.layout,
    )
