"""Squared distances of features, and nearest neighbours: in one pass over tiles, or of a block.

Rejected: `argpartition` of every strip (more than the product costs); a heap (ten neighbours are a
short list, and for 100 insertion costs as much as two products).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, get_index_dtype

from dhsk.arrays import ROWS, SUPPORT, Floats, Indices, Rows, blocks
from dhsk.compiled import compiled
from dhsk.gram.passes import over_groups
from dhsk.gram.storage.staged import Side as SideName
from dhsk.gram.storage.staged import StagedSamples
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, extent, within
from dhsk.kernels import Kernel
from dhsk.kernels.base import chosen_parameter
from dhsk.kernels.duplicates import row_hashes

_SQUARE: Final = 128  # samples whose kernel values are computed for their diagonal

NEAR: Final = 1e-3
"""Equal samples have squared distances below this part of K_ii + K_jj, in float32 too."""

SLACK: Final = {"float64": 1e-9, "float32": 1e-4}
"""Bound on rounding errors of squared distances, relative to K_ii + K_jj, so that equal samples are
seen before they are compared: sums of 1e6 products, as errors add up at random."""

ABOVE: Final = 1 + 8 * float(np.finfo(np.float64).eps)
"""Factor that makes up for the rounding of a root and of its square."""

_BLOCK: Final = 32  # values that are compared with the limits before any is looked at

_Best = tuple[Floats, Indices]

_InBlocks = Callable[[int], Iterable[Rows]]
"""Samples in blocks of at most so many."""

NEIGHBOR: Final = np.dtype([("distance", np.float64), ("index", np.intp)])
"""What is known of a neighbour."""


@dataclass(frozen=True)
class Side:
    """What distances need of the samples of rows or of columns."""

    norms2: Floats
    """K(x, x) of each sample, (N,)."""

    marks: NDArray[np.uint64]
    """Hashes of the samples, (N,), the same for equal ones; (0,) where K_ij = K_ii for these.

    Rounding makes K_ij of equal samples differ from K_ii, unless the kernel sets both to 1.
    """

    def take(self, chosen: Indices | slice) -> "Side":
        """Side of some samples."""
        return Side(self.norms2[chosen], self.marks[chosen] if self.marks.size else self.marks)


def squared_distances(values: Floats, rows: Side, cols: Side) -> Floats:
    """Squared distances from kernel values (a, b), which are overwritten; none is below 0."""
    scale = np.add.outer(rows.norms2, cols.norms2)
    values *= -2.0
    values += scale
    if rows.marks.size and cols.marks.size:
        equal = np.equal.outer(rows.marks, cols.marks) & (values < NEAR * scale)
        values[equal] = 0.0
    return np.maximum(values, 0.0, out=values)


def side_of(samples: StagedSamples, side: SideName, kernel: Kernel) -> Side:
    """Side of the samples of a rectangular matrix, which has no diagonal to read."""
    return _side(partial(_blocks, samples, side), samples.count(side), kernel)


def marks_of(samples: StagedSamples, side: SideName, kernel: Kernel) -> NDArray[np.uint64]:
    """Hashes of samples, see `Side.marks`; none where there are no samples, as of a graph."""
    return _marks(partial(_blocks, samples, side) if samples.has(side) else None, kernel)


def _blocks(samples: StagedSamples, side: SideName, size: int) -> Iterator[Rows]:
    return (samples.read(side, part) for part in blocks(samples.count(side), size))


def side_of_rows(rows: Rows, kernel: Kernel) -> Side:
    """Side of samples in memory."""
    n = rows.shape[0]
    return _side(lambda size: (rows[part] for part in blocks(n, size)), n, kernel)


def _side(in_blocks: _InBlocks, n: int, kernel: Kernel) -> Side:
    if kernel.unit_diagonal:
        norms2 = np.ones(n)
    else:
        of_blocks = [np.diagonal(kernel.of_rows(block)) for block in in_blocks(_SQUARE)]
        norms2 = np.concatenate(of_blocks, dtype=np.float64)
    return Side(norms2, _marks(in_blocks, kernel))


def _marks(in_blocks: _InBlocks | None, kernel: Kernel) -> NDArray[np.uint64]:
    if kernel.unit_diagonal or in_blocks is None:
        return np.empty(0, dtype=np.uint64)
    return np.concatenate([row_hashes(block) for block in in_blocks(ROWS)])


def nearest(
    source: SourceOfTiles, tiling: Tiling, sides: tuple[Side, Side], k: int, dtype: Any
) -> _Best:
    """Find the k nearest columns of each row: distances and indices, (N, k), ascending.

    Of a symmetric matrix a sample is no neighbour of itself. Equal distances are in the order of
    the indices. A task is told the distances that are beaten already: it returns the best of its
    group, and looks only at blocks of values that contain a better one.
    """
    best = np.full((tiling.n_rows, k), np.inf), np.full((tiling.n_rows, k), -1, dtype=np.intp)
    slack = SLACK[np.dtype(dtype).name] if sides[0].marks.size else 0.0

    def arguments(_group: Group, rows: slice, cols: slice) -> tuple[Any, ...]:
        last = best[0][:, -1]
        limits = _limits(last[rows]), _limits(last[cols]) if tiling.symmetric else None
        return (sides[0].take(rows), sides[1].take(cols)), limits, k, slack

    for parts in over_groups(_nearest_of_group, source, tiling, arguments):
        for rows, distances, indices in parts:
            _merge(best, rows, distances, indices)
    return best


def nearest_of_rows(kernel: Kernel, fitted: Rows, side: Side, k: int, rows: Rows) -> NDArray[Any]:
    """Find the k nearest fitted rows of each of some rows, (rows, k), of `NEIGHBOR`, ascending."""
    n, own = rows.shape[0], side_of_rows(rows, kernel)
    best = np.full((n, k), np.inf), np.full((n, k), -1, dtype=np.intp)
    view = _of_part(own, best, np.full(n, np.inf), slice(0, n))
    none = np.empty((0, k)), np.empty((0, k), dtype=np.intp), np.empty(0)
    buffer = np.empty(n * min(SUPPORT, fitted.shape[0]), rows.dtype)
    slack = SLACK[rows.dtype.name] if own.marks.size else 0.0
    for part in blocks(fitted.shape[0], SUPPORT):
        across, size = side.take(part), part.stop - part.start
        values = kernel.of_rows(rows, fitted[part], buffer[: n * size].reshape(n, size))
        cols = across.norms2, across.marks, *none
        _sweep(values, view, cols, np.array([0, part.start]), slack, False, False)
    found = np.empty((n, k), NEIGHBOR)
    found["distance"], found["index"] = best
    return found


def graph_of(
    indices: Indices, distances: Floats, n_cols: int, mode: str
) -> "csr_array[Any, tuple[int, int]]":
    """Graph of neighbours, (N, n_cols), nearest first; edges are 1, or in mode "distance" that."""
    # Integers of 32 bits where they suffice: many algorithms on graphs refuse others.
    kind = get_index_dtype(maxval=max(indices.size, n_cols))
    starts = np.arange(len(indices) + 1, dtype=kind) * kind(indices.shape[1])
    data = distances if mode == "distance" else np.ones_like(distances)
    return csr_array((data.ravel(), indices.ravel().astype(kind), starts), (len(indices), n_cols))


def check_mode(mode: object) -> None:
    """Raise InputError for an unknown mode of a graph."""
    chosen_parameter("mode", mode, ("connectivity", "distance"))


def _limits(distances: Floats) -> Floats:
    """Squares of distances, no less than those whose roots round to them."""
    return distances**2 * ABOVE


def _merge(best: _Best, rows: slice, distances: Floats, indices: Indices) -> None:
    """Take the best of what is known and of a group, in place."""
    k = distances.shape[1]
    both = (
        np.concatenate([best[0][rows], distances], axis=1),
        np.concatenate([best[1][rows], indices], axis=1),
    )
    order = np.lexsort(both[::-1], axis=1)[:, :k]
    for known, candidates in zip(best, both, strict=True):
        known[rows] = np.take_along_axis(candidates, order, axis=1)


def _nearest_of_group(
    source: SourceOfTiles,
    tiling: Tiling,
    group: Group,
    sides: tuple[Side, Side],
    limits: tuple[Floats, Floats | None],
    k: int,
    slack: float,
) -> list[tuple[slice, Floats, Indices]]:
    """Nearest neighbours of rows and, mirrored, of columns within a group, as a task."""
    extents = extent(tiling, group)
    found = [
        (np.full((len(side.norms2), k), np.inf), np.full((len(side.norms2), k), -1, dtype=np.intp))
        for side in sides
    ]
    # Copies, as arrays that come to a worker are read-only.
    bounds = [np.empty(0) if limit is None else limit.copy() for limit in limits]
    for tile in source(group, in_strips=True):
        parts = within(tile.rows, extents[0]), within(tile.cols, extents[1])
        mirrored = tiling.symmetric and tile.i != tile.j
        views = [
            _of_part(side, best, bound, part)
            for side, best, bound, part in zip(sides, found, bounds, parts, strict=True)
        ]
        firsts = np.array([tile.rows.start, tile.cols.start])
        _sweep(tile.values, views[0], views[1], firsts, slack, mirrored, tiling.symmetric)
    used = zip(extents, found, limits, strict=True)
    return [(part, *best) for part, best, limit in used if limit is not None]


def _of_part(side: Side, best: _Best, limit: Floats, part: slice) -> Sequence[NDArray[Any]]:
    """Arrays of one side of a strip, for the compiled loop."""
    taken = side.take(part)
    return taken.norms2, taken.marks, best[0][part], best[1][part], limit[part]


@compiled(error_model="numpy")
def _sweep(
    values: Any, rows: Any, cols: Any, firsts: Any, slack: float, mirrored: bool, itself: bool
) -> None:
    """Find neighbours among the kernel values of a strip, (a, b).

    `rows` and `cols` are squared norms, hashes, best distances, their indices, and limits: what is
    above its limit, squared, is no neighbour. `mirrored` strips serve their columns too. `itself`
    says that a sample must not be its own neighbour.
    """
    row_norms2, row_marks, row_best, row_index, row_limit = rows
    col_norms2, col_marks, col_best, col_index, col_limit = cols
    least, has_marks = 1.0 - slack, row_marks.size > 0
    for i in range(values.shape[0]):
        own, here = row_norms2[i], firsts[0] + i
        for start in range(0, values.shape[1], _BLOCK):
            stop, limit, hits = min(start + _BLOCK, values.shape[1]), row_limit[i], 0
            if mirrored:
                for j in range(start, stop):
                    lowest = (own + col_norms2[j]) * least - 2.0 * values[i, j]
                    hits += (lowest <= limit) | (lowest <= col_limit[j])
            else:
                for j in range(start, stop):
                    hits += (own + col_norms2[j]) * least - 2.0 * values[i, j] <= limit
            if hits == 0:
                continue
            for j in range(start, stop):
                scale, there = own + col_norms2[j], firsts[1] + j
                if itself and here == there:
                    continue
                square = max(scale - 2.0 * values[i, j], 0.0)
                if has_marks and row_marks[i] == col_marks[j] and square < NEAR * scale:
                    square = 0.0
                if square <= row_limit[i]:
                    last = _insert(row_best[i], row_index[i], np.sqrt(square), there)
                    row_limit[i] = min(row_limit[i], last * last * ABOVE)
                if mirrored and square <= col_limit[j]:
                    last = _insert(col_best[j], col_index[j], np.sqrt(square), here)
                    col_limit[j] = min(col_limit[j], last * last * ABOVE)


@compiled(error_model="numpy")
def _insert(best: Any, index: Any, distance: float, number: int) -> Any:
    """Insert a neighbour into the ascending list of the best; returns the last distance."""
    place = best.size - 1
    if distance > best[place] or (distance == best[place] and number > index[place] >= 0):
        return best[place]
    while place > 0 and (
        best[place - 1] > distance or (best[place - 1] == distance and index[place - 1] > number)
    ):
        best[place], index[place] = best[place - 1], index[place - 1]
        place -= 1
    best[place], index[place] = distance, number
    return best[-1]
