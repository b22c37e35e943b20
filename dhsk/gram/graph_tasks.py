"""Tasks that compute the tiles of a matrix of graph nodes, a column of tiles each."""

from contextlib import closing
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats
from dhsk.errors import CorruptTileError
from dhsk.execution.tasks import told_as
from dhsk.execution.workers import executor_of, leave_slot
from dhsk.gram.graph_functions import NodeColumns, NodeSpectrum
from dhsk.gram.graph_plan import GraphPlan
from dhsk.gram.storage.store import GramStore
from dhsk.gram.tiles import TileValues
from dhsk.gram.writing import TileWriter
from dhsk.kernels import NodeKernel
from dhsk.kernels.base import mirror_upper
from dhsk.objects.places import Place, remove_unfinished
from dhsk.progress import OnProgress, counter


def compute_columns(
    store: GramStore, client: Client | None, plan: GraphPlan, report: OnProgress
) -> None:
    """Compute the missing tiles of a store whose similarity is staged."""
    total = store.header.tiling.n_tiles
    missing = store.missing_tiles()
    store.forget(missing)
    advance = counter(report, "tiles", total, total - len(missing))
    columns: dict[int, list[int]] = {}
    for i, j in missing:
        columns.setdefault(j, []).append(i)
    # The longest columns first, so that the last tasks are short.
    tasks = ((store.path.absolute(), j, tuple(columns[j])) for j in sorted(columns, reverse=True))
    with closing(executor_of(client, plan.window).run(compute_column, tasks)) as counts:
        for count in counts:
            advance(count)
    remove_unfinished(store.path)  # of workers that were killed
    store.check_complete()
    store.record()


def _words_of(_path: Place, j: int, wanted: tuple[int, ...]) -> str:
    """Tiles of a task, in words."""
    return f"{len(wanted)} tiles of column {j}"


@told_as(_words_of)
def compute_column(path: Place, j: int, wanted: tuple[int, ...]) -> int:
    """Compute column j of tiles and write some of its tiles, as a task; return their number."""
    store = GramStore.open(path)
    header = store.header
    tiling, dtype = header.tiling, np.dtype(header.dtype)
    columns = tiling.cols(j)
    values: Floats = np.empty((tiling.rows(max(wanted)).stop, columns.stop - columns.start))
    _columns_of(store).fill(columns, values)
    with TileWriter(store) as writer:
        for i in wanted:
            rows = tiling.rows(i)
            tile: NDArray[Any] = values[rows]
            if i == j:
                mirror_upper(tile)
            tile = np.ascontiguousarray(tile, dtype)
            writer.put(TileValues(i, j, 0, rows, columns, tile))
        leave_slot()
    return len(wanted)


def _columns_of(store: GramStore) -> NodeColumns:
    """What computes the columns of a store."""
    kernel = store.kernels[0]
    assert isinstance(kernel, NodeKernel)
    S = store.samples.read("rows", slice(0, store.header.n_rows))
    if not isinstance(S, csr_array):
        raise CorruptTileError(f"{store.path} has no sparse similarity: compute it again")
    described = store.header.graph or {}
    spectrum = NodeSpectrum.of_json(described) if "lowest" in described else None
    return NodeColumns(S, kernel, spectrum)
