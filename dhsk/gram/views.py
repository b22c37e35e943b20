"""Tiles of views: values of another matrix that are centred or scaled when they are read.

Rejected: subtracting row means from products, as large numbers cancel; V is centred before and
after.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, blocks
from dhsk.gram.tiles import Group, SourceOfTiles, TileValues, within
from dhsk.kernels import Kernel

Adjust: TypeAlias = Callable[[NDArray[Any], Floats, Floats], None]
"""Turns entries, (a, b), into those of a view in place, by numbers of rows (a,) and cols (b,)."""

ADJUSTED_ROWS: Final = 256
"""Rows of a tile that are adjusted at a time, so that the numbers of both sides stay small."""


def subtract_sums(values: NDArray[Any], rows: Floats, cols: Floats) -> None:
    """Centre: K_ij - (g_i + g_j) with g the mean of a row less half the mean of all.

    The order of these operations makes entries symmetric bit for bit, with errors as of K_ij.
    """
    values -= np.add.outer(rows, cols)


def multiply_by_products(values: NDArray[Any], rows: Floats, cols: Floats) -> None:
    """Normalise: K_ij (s_i s_j) with s = 1 / sqrt(K_ii), symmetric bit for bit."""
    values *= np.multiply.outer(rows, cols)


def centred(V: Floats) -> Floats:
    """Columns of V, (N,) or (N, k), less their means.

    Twice, as the mean of large numbers is rounded: the second time leaves nothing of it.
    """
    once = V - V.mean(axis=0)
    twice: Floats = once - once.mean(axis=0)
    return twice


class ViewSource:
    """Source of the tiles of a view, pickled with the numbers of its samples.

    Parameters
    ----------
    base
        Source of the matrix that is viewed.
    adjust
        What the view makes of entries.
    margins
        Numbers of row and column samples.
    unit_diagonal
        Whether the diagonal is set to 1.
    origin
        The first row and the first column that have numbers.
    """

    def __init__(
        self,
        base: SourceOfTiles,
        adjust: Adjust,
        margins: tuple[Floats, Floats],
        *,
        unit_diagonal: bool = False,
        origin: tuple[int, int] = (0, 0),
    ) -> None:
        self.base = base
        self.adjust = adjust
        self.margins = margins
        self.unit_diagonal = unit_diagonal
        self.origin = origin

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of the matrix that is viewed."""
        return self.base.kernels

    def part(self, rows: slice, cols: slice) -> "ViewSource":
        """Source of the tiles within these rows and columns, with their numbers only."""
        return ViewSource(
            self.base.part(rows, cols),
            self.adjust,
            self._margins(rows, cols),
            unit_diagonal=self.unit_diagonal,
            origin=(rows.start, cols.start),
        )

    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield the values of the view, float64; see `TileSource.__call__`."""
        for tile in self.base(group, in_strips=in_strips):
            rows, cols = self._margins(tile.rows, tile.cols)
            values = tile.values.astype(np.float64)
            for part in blocks(len(values), ADJUSTED_ROWS):
                self.adjust(values[part], rows[part], cols)
            if self.unit_diagonal and tile.i == tile.j:
                first = tile.rows.start - tile.cols.start
                here = np.arange(len(values))
                values[here, first + here] = 1.0
            yield replace(tile, values=values)

    def _margins(self, rows: slice, cols: slice) -> tuple[Floats, Floats]:
        parts = [
            margin[within(part, slice(start, None))]
            for margin, part, start in zip(self.margins, (rows, cols), self.origin, strict=True)
        ]
        return parts[0], parts[1]
