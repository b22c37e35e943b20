"""The partition of a matrix into tiles."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Layout: TypeAlias = Literal["triangle", "full", "none"]
"""Tiles on disk: the upper ones of a symmetric matrix, all, or none."""

DtypeName: TypeAlias = Literal["float32", "float64"]


@dataclass(frozen=True)
class Tiling:
    """Partition of a matrix into square tiles."""

    n_rows: int
    n_cols: int
    tile: int
    """Edge of a tile; the last tiles of rows and columns may be smaller."""
    symmetric: bool
    """Whether only the tiles of the upper triangle are computed."""

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

    @property
    def chunks(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of rows and of columns of the tiles, as `dask.array.Array.chunks`."""
        rows, cols = map(self.rows, range(self.row_blocks)), map(self.cols, range(self.col_blocks))
        return tuple(s.stop - s.start for s in rows), tuple(s.stop - s.start for s in cols)

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
