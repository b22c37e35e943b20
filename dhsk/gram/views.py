"""Tiles of views: values of another matrix that are centred or scaled when they are read.

Rejected: subtracting row means from products, as large numbers cancel; V is centred before and
after.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, blocks
from dhsk.gram.tiles import Group, SourceOfTiles, TileValues, within

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


@dataclass(eq=False)
class ViewSource(SourceOfTiles):
    """Source of the tiles of a view, float64, pickled with the numbers of its samples."""

    base: SourceOfTiles
    """Source of the matrix that is viewed."""
    adjust: Adjust
    """What the view makes of entries."""
    margins: tuple[Floats, Floats]
    """Numbers of row and column samples."""
    unit_diagonal: bool = False
    """Whether the diagonal is set to 1."""
    origin: tuple[int, int] = (0, 0)
    """The first row and the first column that have numbers."""

    def __post_init__(self) -> None:
        self.kernels = self.base.kernels

    def part(self, rows: slice, cols: slice) -> "ViewSource":
        """Source of the tiles within these rows and columns, with their numbers only."""
        base, margins = self.base.part(rows, cols), self._margins(rows, cols)
        return replace(self, base=base, margins=margins, origin=(rows.start, cols.start))

    def __call__(self, group: Group, *, in_strips: bool = False) -> Iterator[TileValues]:
        """Yield values, see `SourceOfTiles`."""
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
