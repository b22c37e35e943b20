"""Passes over all tiles of a matrix, on the workers of a client or threads of this process.

Parts of V travel with the tasks. Rejected: scattering them (tasks would fetch from one another);
files beside the store (it may be read-only).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import blocks
from dhsk.errors import InputError
from dhsk.execution.kept_pass import pass_of_call
from dhsk.execution.tasks import Result
from dhsk.execution.workers import current_executor
from dhsk.gram.device_passes import Factor, Partial, device_edge, multiplied_on_device
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, extent, within
from dhsk.run_progress import passes_of_call

STRIP_ROWS = 256
"""Rows of a tile that are converted to the type of the other factor at a time."""


def grouped(tiles: Iterable[tuple[int, int]], edge: int) -> list[Group]:
    """Group tiles (i, j) by squares of `edge` tiles, in the order of each group's first tile."""
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, j in tiles:
        groups.setdefault((i // edge, j // edge), []).append((i, j))
    return [tuple(group) for group in groups.values()]


def over_groups(
    function: Callable[..., Result],
    source: SourceOfTiles,
    tiling: Tiling,
    arguments: Callable[[Group, slice, slice], tuple[Any, ...]],
    first: int = 0,
    edge: int = LARGEST_GROUP,
) -> Iterator[Result]:
    """Call a function for each group of tiles, as tasks: one pass over the matrix.

    Parameters
    ----------
    function
        Called as ``function(source, tiling, group, *arguments)``; it reads each tile once.
    source, tiling
        The matrix. Each task is given the part of the source that it needs.
    arguments
        Further arguments of a group's task, from the group and the rows and columns that it
        covers. It is called when the task is about to start, when earlier results are known.
    first
        Number of groups that are left out, from the first on.
    edge
        Most tiles along an edge of a group.

    Yields
    ------
    Result
        Results in the order of the groups on all executors, so that sums of them have the same
        bits everywhere.
    """
    every = grouped(tiling.tiles(), edge)
    groups = every[first:]

    def tasks() -> Iterator[tuple[Any, ...]]:
        for group in groups:
            rows, cols = extent(tiling, group)
            yield source.part(rows, cols), tiling, group, *arguments(group, rows, cols)

    passes, done = passes_of_call(), sum(map(len, every[:first]))
    with closing(_run(function, tasks())) as results:
        for group, result in zip(groups, results, strict=True):
            yield result
            done += len(group)
            passes.part(done, tiling.n_tiles)


def multiply(
    source: SourceOfTiles, tiling: Tiling, V: ArrayLike, dtype: Any, *, transposed: bool = False
) -> NDArray[Any]:
    """Multiply the matrices of a source with V, (M,) or (M, k), in one pass over the tiles.

    Sums are in the wider of the types of V and the matrices, `dtype`. The result, (kernels, N) or
    (kernels, N, k), is bit-identical on all executors. V is (N,) or (N, k) for the `transposed`
    matrices. Raises InputError if the shapes do not match.
    """
    transposed = transposed and not tiling.symmetric
    vectors = checked_vectors(tiling, V, transposed=transposed)
    total = np.result_type(dtype, vectors.dtype)
    columns = vectors.reshape(len(vectors), -1).astype(total, copy=False)
    n_out = tiling.n_cols if transposed else tiling.n_rows
    result = np.zeros((len(source.kernels), n_out, columns.shape[1]), total)

    def arguments(group: Group, rows: slice, cols: slice) -> tuple[Any, ...]:
        forward = None if transposed else (cols, columns[cols])
        mirrored = tiling.symmetric and any(i != j for i, j in group)
        backward = (rows, columns[rows]) if transposed or mirrored else None
        return forward, backward, total

    kept, edge = pass_of_call(result), device_edge(source, tiling) or LARGEST_GROUP
    for parts in over_groups(_multiply_group, source, tiling, arguments, kept.done, edge):
        for part, values in parts:
            result[:, part] += values
        kept.advance()
    return result.reshape(*result.shape[:2], *vectors.shape[1:])


def checked_vectors(tiling: Tiling, V: ArrayLike, *, transposed: bool = False) -> NDArray[Any]:
    """Return V as an array, or raise InputError if a matrix cannot be multiplied by it."""
    vectors, shape = np.asarray(V), (tiling.n_rows, tiling.n_cols)
    if vectors.ndim not in (1, 2) or len(vectors) != shape[0 if transposed else 1]:
        raise InputError(f"cannot multiply {shape} by {vectors.shape}")
    return vectors


def _multiply_group(
    source: SourceOfTiles,
    tiling: Tiling,
    group: Group,
    forward: Factor | None,
    backward: Factor | None,
    dtype: Any,
) -> Partial:
    """Products of the tiles of a group with their parts of V, as a task."""
    found = multiplied_on_device(source, tiling, group, (forward, backward), dtype)
    if found is not None:
        return found
    extents = extent(tiling, group)
    k = (forward or backward or (None, np.empty((0, 0))))[1].shape[1]
    sums = [np.zeros((len(source.kernels), part.stop - part.start, k), dtype) for part in extents]
    for tile in source(group, in_strips=True):
        rows, cols = within(tile.rows, extents[0]), within(tile.cols, extents[1])
        if forward is not None:
            _add_product(sums[0][tile.kernel, rows], tile.values, forward[1][cols])
        if backward is not None and not (tiling.symmetric and tile.i == tile.j):
            _add_transposed(sums[1][tile.kernel, cols], tile.values, backward[1][rows])
    used = zip(extents, sums, (forward, backward), strict=True)
    return [(part, values) for part, values, factor in used if factor is not None]


def _strips(tile: NDArray[Any], dtype: Any) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Strips of a tile in the type of the result; the whole tile if it is of that type."""
    step = tile.shape[0] if tile.dtype == dtype else STRIP_ROWS
    for part in blocks(tile.shape[0], step):
        yield part, tile[part].astype(dtype, copy=False)


def _add_product(into: NDArray[Any], tile: NDArray[Any], V: NDArray[Any]) -> None:
    for part, strip in _strips(tile, into.dtype):
        into[part] += strip @ V


def _add_transposed(into: NDArray[Any], tile: NDArray[Any], V: NDArray[Any]) -> None:
    for part, strip in _strips(tile, into.dtype):
        into += strip.T @ V[part]


def _run(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]]
) -> Generator[Result, None, None]:
    """Results in the order of the tasks, so that sums do not depend on timing."""
    with current_executor() as executor:
        yield from executor.run(function, tasks, ordered=True)


def diagonal(source: SourceOfTiles, tiling: Tiling) -> NDArray[Any]:
    """Diagonal entries of the first kernel, (min(N, M),), from the tiles on the diagonal."""
    blocks: Sequence[int] = range(min(tiling.row_blocks, tiling.col_blocks))
    return np.concatenate(list(_run(_diagonal_block, ((source, block) for block in blocks))))


def _diagonal_block(source: SourceOfTiles, block: int) -> NDArray[Any]:
    (tile,) = source(((block, block),))
    values: NDArray[Any] = np.diagonal(tile.values).copy()
    return values
