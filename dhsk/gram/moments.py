"""Moments of symmetric matrices in one pass, and from them the alignment with labels."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats, blocks
from dhsk.errors import InputError
from dhsk.execution.kept_pass import pass_of_call
from dhsk.gram.passes import STRIP_ROWS, over_groups
from dhsk.gram.plan import LARGEST_GROUP
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, SourceOfTiles, extent, within
from dhsk.gram.views import centred
from dhsk.samples.labels import check_labels

MOST_CLASSES: Final = 10_000
"""Most classes of labels: each is a vector of numbers."""

ROUNDING: Final = 256 * float(np.finfo(np.float64).eps)
"""Norm of a centred matrix, as a share of that of its mean, at which entries differ by rounding."""

MANY_VECTORS: Final = 256
"""Vectors from which on a tile is work enough for a task, and as much as a kill should lose."""

FIRST: Final = slice(0, 1)
"""The first of some vectors."""


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
    """What one pass finds of a matrix."""

    row_means: Floats
    """(N,)."""

    product: Floats
    """K v of the first vector, (N,); 0 without vectors."""

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


def moments(source: SourceOfTiles, tiling: Tiling, columns: FormVectors) -> list[Moments]:
    """Sums of the symmetric matrix of each kernel; the same bits on all executors.

    Within `passes_kept` the sums so far are kept: for each kernel two numbers a sample and one a
    vector of the columns, and the moments of its entries.
    """

    def arguments(_group: Group, rows: slice, cols: slice) -> tuple[Any, ...]:
        return columns.part(rows), columns.part(cols)

    kernels = len(source.kernels)
    sums, spreads = np.zeros((kernels, 2, tiling.n_rows)), np.array([_NOTHING] * kernels)
    forms = np.zeros((kernels, columns.count))
    edge = 1 if columns.count >= MANY_VECTORS else LARGEST_GROUP
    kept = pass_of_call(sums, spreads, forms)
    for parts, own, own_forms in over_groups(_of_group, source, tiling, arguments, kept.done, edge):
        for part, values in parts:
            sums[..., part] += values
        pairs = zip(spreads.tolist(), own, strict=True)
        spreads[:] = [_Spread(*one).joined(_Spread(*other)) for one, other in pairs]
        forms += own_forms
        kept.advance()
    return [
        Moments(totals / tiling.n_rows, product, _Spread._make(spread).scatter, form)
        for (totals, product), spread, form in zip(sums, spreads.tolist(), forms, strict=True)
    ]


def squared_norm(source: SourceOfTiles, tiling: Tiling) -> float:
    """Sum of all squared entries of the symmetric matrix of the first kernel, in one pass."""
    return float(sum(over_groups(_squares_of_group, source, tiling, lambda *_: ())))


def _squares_of_group(source: SourceOfTiles, _tiling: Tiling, group: Group) -> float:
    """Sum of the squares of the tiles of a group and their mirror images, as a task."""
    total = 0.0
    for tile in source(group, in_strips=True):
        for part in blocks(len(tile.values), STRIP_ROWS):
            strip = tile.values[part].astype(np.float64, copy=False)
            total += (1 if tile.i == tile.j else 2) * float(np.vdot(strip, strip))
    return total


class _Spread(NamedTuple):
    """Number, mean, and sum of squares about the mean (Chan, Golub & LeVeque 1983)."""

    number: float
    mean: float
    scatter: float

    def joined(self, other: "_Spread") -> "_Spread":
        number, step = self.number + other.number, other.mean - self.mean
        return _Spread(
            number,
            self.mean + step * other.number / number,
            self.scatter + other.scatter + step**2 * self.number * other.number / number,
        )


_NOTHING: Final = _Spread(0.0, 0.0, 0.0)


def _of_group(
    source: SourceOfTiles, tiling: Tiling, group: Group, above: FormVectors, left: FormVectors
) -> tuple[list[tuple[slice, Floats]], list[_Spread], Floats]:
    """Sums over the tiles of a group and their mirror images, as a task."""
    extents, kernels = extent(tiling, group), len(source.kernels)
    sums = [np.zeros((kernels, 2, part.stop - part.start)) for part in extents]
    spreads, forms = [_NOTHING] * kernels, np.zeros((kernels, above.count))
    for tile in source(group, in_strips=True):
        times, k = 1 if tile.i == tile.j else 2, tile.kernel
        rows, cols = within(tile.rows, extents[0]), within(tile.cols, extents[1])
        for part in blocks(len(tile.values), STRIP_ROWS):
            strip = tile.values[part].astype(np.float64, copy=False)
            here = slice(rows.start + part.start, rows.start + part.stop)
            sums[0][k, 0, here] += strip.sum(axis=1)
            if times == 2:
                sums[1][k, 0, cols] += strip.sum(axis=0)
                for vector in above.values(here, FIRST).T:
                    sums[1][k, 1, cols] += vector @ strip
            spreads[k] = spreads[k].joined(_spread_of(strip, times))
            for some, product, form in _forms(strip, (above, here), (left, cols)):
                forms[k, some] += times * form
                if some.start == 0:
                    sums[0][k, 1, here] += product
    return list(zip(extents, sums, strict=True)), spreads, forms


def _spread_of(strip: Floats, times: int) -> _Spread:
    mean = float(strip.mean())
    less = strip - mean
    return _Spread(float(times * strip.size), mean, times * float(np.vdot(less, less)))


def _forms(
    strip: Floats, above: tuple[FormVectors, slice], left: tuple[FormVectors, slice]
) -> Iterator[tuple[slice, Floats, Floats]]:
    """Sums K_ij v_j of the first vector and v_i K_ij v_j of each, over a strip, by their blocks."""
    for some in blocks(above[0].count, STRIP_ROWS):
        product = strip @ left[0].values(left[1], some)
        first = product[:, 0].copy()
        product *= above[0].values(above[1], some)
        yield some, first, product.sum(axis=0)


@dataclass(frozen=True)
class DenseVectors:
    """Vectors in an array."""

    array: Floats
    """(N, count)."""

    @property
    def marked(self) -> Floats:
        """What tells them from others, for array jobs."""
        return self.array

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


def alignment(source: SourceOfTiles, tiling: Tiling, y: ArrayLike) -> float:
    """Centred alignment of a symmetric matrix with labels; see `Operations.alignment`."""
    Y = centred(target_columns(y, tiling.n_rows))
    target = float(np.linalg.norm(Y.T @ Y))
    if target == 0:
        raise InputError("all rows of y are the same, so that nothing is aligned with it")
    (found,) = moments(source, tiling, DenseVectors(Y))
    centred_norm = float(np.sqrt(found.centred_norm2))
    mean = tiling.n_rows * abs(float(found.row_means.mean()))  # norm of a matrix of that entry
    if centred_norm <= ROUNDING * mean:
        raise InputError(
            f"the kernel is constant on these samples to rounding, as its centred matrix has norm"
            f" {centred_norm:.1g} and its mean alone {mean:.1g}: where samples differ, a smaller"
            " time or width tells them apart"
        )
    return float(found.forms.sum()) / (centred_norm * target)


def target_columns(y: ArrayLike, n_samples: int) -> Floats:
    """Features of labels, (N, columns): those given, numbers as one, or an indicator a class."""
    given = np.asarray(y)
    if given.ndim == 2 or (given.dtype.kind == "f" and np.any(given != np.round(given))):
        return _numbers(given, n_samples)
    labels = check_labels(y, n_samples, "y", numbers="if they are, give them as y[:, None]")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"y has {len(classes)} classes, more than {MOST_CLASSES}: give numbers of a regression "
            "as a column, y[:, None]"
        )
    columns = np.zeros((n_samples, len(classes)))
    columns[np.arange(n_samples), codes] = 1.0
    return columns


def _numbers(given: NDArray[Any], n_samples: int) -> Floats:
    """Finite numbers as columns, (N, columns), or an InputError."""
    if given.ndim > 2 or len(given) != n_samples:
        raise InputError(
            f"y must have a row for each of the {n_samples} samples, but its shape is {given.shape}"
        )
    if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
        raise InputError("y must be finite numbers if it has columns or is no whole numbers")
    return given.reshape(n_samples, -1).astype(np.float64)
