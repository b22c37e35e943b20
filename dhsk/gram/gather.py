"""Submatrices from one pass over the tiles."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.gram.storage.indexing import Part, Selector, by_block, grid, to_indices
from dhsk.gram.storage.tiling import Tiling
from dhsk.run_progress import passes_of_call


def gather(
    tile: Callable[[int, int], NDArray[Any]],
    tiling: Tiling,
    pairs: Sequence[tuple[Selector, Selector]],
    dtype: Any,
) -> list[NDArray[Any]]:
    """Submatrices of pairs of rows and columns, C-ordered; each tile needed is read once.

    `tile` returns the values of tile (i, j), called with i <= j only if the matrix is symmetric.
    """
    n, m, edge = tiling.n_rows, tiling.n_cols, tiling.tile
    chosen = [(to_indices(rows, n), to_indices(cols, m)) for rows, cols in pairs]
    results = [np.empty((len(rows), len(cols)), dtype=dtype) for rows, cols in chosen]
    groups = [(by_block(rows, edge), by_block(cols, edge)) for rows, cols in chosen]
    needed = []
    for i, j in tiling.tiles():
        wanted = [
            (result, a[i], b[j], transposed)
            for result, (rows, cols) in zip(results, groups, strict=True)
            for a, b, transposed in _sides(tiling.symmetric and i != j, rows, cols)
            if i in a and j in b
        ]
        if wanted:
            needed.append((i, j, wanted))
    passes = passes_of_call()
    for done, (i, j, wanted) in enumerate(needed, 1):
        _put(tile(i, j), wanted)
        passes.part(done, len(needed))
    return results


def _put(values: NDArray[Any], wanted: list[tuple[NDArray[Any], Part, Part, bool]]) -> None:
    """Write the entries of a tile that are wanted to where each result has them."""
    for result, row, col, transposed in wanted:
        if transposed:
            result[grid(col.place, row.place)] = values[grid(row.inside, col.inside)].T
        else:
            result[grid(row.place, col.place)] = values[grid(row.inside, col.inside)]


def _sides(
    mirrored: bool, rows: dict[int, Part], cols: dict[int, Part]
) -> Iterator[tuple[dict[int, Part], dict[int, Part], bool]]:
    """Parts of a selection on a tile and, if it is mirrored, on its mirror image."""
    yield rows, cols, False
    if mirrored:
        yield cols, rows, True
