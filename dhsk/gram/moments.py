"""Means of rows, scatter of entries and quadratic forms of a symmetric matrix, in one pass."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dhsk.arrays import Floats, blocks
from dhsk.gram.passes import STRIP_ROWS, over_groups
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, extent, within


class FormVectors(Protocol):
    """Vectors of which quadratic forms are wanted, as the columns of a matrix (N, count)."""

    @property
    def count(self) -> int:
        """Number of vectors."""

    def part(self, rows: slice) -> "FormVectors":
        """The same vectors, of these samples only."""

    def values(self, rows: slice, columns: slice) -> Floats:
        """Entries of some samples and vectors."""


@dataclass(frozen=True)
class Moments:
    """What one pass finds."""

    row_means: Floats
    """(N,)."""

    scatter: float
    """Sum of (K_ij - mean)² over all entries."""

    forms: Floats
    """v' K v of each vector, (count,)."""

    @property
    def centred_norm2(self) -> float:
        """Squared Frobenius norm of the centred matrix.

        With A = K - mean and its row means r, of mean 0, that is ||A||² - 2 N ||r||². Its relative
        error is eps / delta if the kernel is constant up to delta, as that of centred entries; if
        features of spread 1 lie at a distance d from 0, it is eps d³, theirs being eps d².
        """
        less = self.row_means - self.row_means.mean()
        return max(self.scatter - 2 * len(less) * float(less @ less), 0.0)


def moments(source: SourceOfTiles, tiling: Tiling, columns: FormVectors) -> Moments:
    """Sums of a symmetric matrix; the same bits on all executors."""

    def arguments(_group: Group, rows: slice, cols: slice) -> tuple[Any, ...]:
        return columns.part(rows), columns.part(cols)

    sums, spread = np.zeros(tiling.n_rows), _Spread(0.0, 0.0, 0.0)
    forms = np.zeros(columns.count)
    for parts, group_spread, group_forms in over_groups(_of_group, source, tiling, arguments):
        for part, values in parts:
            sums[part] += values
        spread = spread.joined(group_spread)
        forms += group_forms
    return Moments(sums / tiling.n_rows, spread.scatter, forms)


@dataclass(frozen=True)
class _Spread:
    """Count, mean, and sum of squares about the mean (Chan, Golub & LeVeque 1983)."""

    count: float
    mean: float
    scatter: float

    def joined(self, other: "_Spread") -> "_Spread":
        count, step = self.count + other.count, other.mean - self.mean
        return _Spread(
            count,
            self.mean + step * other.count / count,
            self.scatter + other.scatter + step**2 * self.count * other.count / count,
        )


def _of_group(
    source: SourceOfTiles, tiling: Tiling, group: Group, above: FormVectors, left: FormVectors
) -> tuple[list[tuple[slice, Floats]], _Spread, Floats]:
    """Sums over the tiles of a group and their mirror images, as a task."""
    extents = extent(tiling, group)
    sums = [np.zeros(part.stop - part.start) for part in extents]
    spread, forms = _Spread(0.0, 0.0, 0.0), np.zeros(above.count)
    for tile in source(group, in_strips=True):
        times = 1 if tile.i == tile.j else 2
        rows, cols = within(tile.rows, extents[0]), within(tile.cols, extents[1])
        for part in blocks(len(tile.values), STRIP_ROWS):
            strip = tile.values[part].astype(np.float64, copy=False)
            here = slice(rows.start + part.start, rows.start + part.stop)
            sums[0][here] += strip.sum(axis=1)
            if times == 2:
                sums[1][cols] += strip.sum(axis=0)
            spread = spread.joined(_spread_of(strip, times))
            for some, form in _forms(strip, (above, here), (left, cols)):
                forms[some] += times * form
    return list(zip(extents, sums, strict=True)), spread, forms


def _spread_of(strip: Floats, times: int) -> _Spread:
    mean = float(strip.mean())
    less = strip - mean
    return _Spread(float(times * strip.size), mean, times * float(np.vdot(less, less)))


def _forms(
    strip: Floats, above: tuple[FormVectors, slice], left: tuple[FormVectors, slice]
) -> Iterator[tuple[slice, Floats]]:
    """Sums v_i K_ij v_j over a strip, by blocks of vectors."""
    for some in blocks(above[0].count, STRIP_ROWS):
        product = strip @ left[0].values(left[1], some)
        product *= above[0].values(above[1], some)
        yield some, product.sum(axis=0)


@dataclass(frozen=True)
class DenseVectors:
    """Vectors in an array."""

    array: Floats
    """(N, count)."""

    @property
    def count(self) -> int:
        """Number of vectors."""
        return int(self.array.shape[1])

    def part(self, rows: slice) -> "DenseVectors":
        """The same vectors, of these samples only."""
        return DenseVectors(self.array[rows])

    def values(self, rows: slice, columns: slice) -> Floats:
        """Entries of some samples and vectors."""
        return self.array[rows, columns]
