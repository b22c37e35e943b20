"""Sums over samples that Newton's method needs, each computed in one pass over the features.

Arrays may be on a device: numpy's functions take them, if no array of numpy is among them.

In all functions `blocks` are the features of a span, `codes`, (n,), and `weights`, (n, groups), are
those of its samples, and V are coefficients, (k + 1, J), the constant feature last.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Codes, Floats, Indices
from dhsk.arrays import blocks as blocks_of
from dhsk.devices import is_numpys
from dhsk.linear.active_rows import add_curved, add_rows
from dhsk.linear.losses import Loss

Blocks = Iterable[tuple[slice, NDArray[Any]]]
"""Blocks of features of a span, from `Span.blocks`."""

_SMALL: Final = 1_000_000
_LEAST_ROWS: Final = 10
"""Most multiplications of a product, and least rows of its parts. OpenBLAS packs the matrices of
larger products, which takes as long again with few columns: measured, 7,500 rows of 2,000 features
times 10 columns took 5.3 ms in parts of 48 rows, 10.8 ms as a whole."""

_FEW: Final = 0.5
"""Share of nonzero factors below which sums row by row are faster than matrix products."""

_GATHERED_BYTES: Final = 16 * 2**20
_LEAST_GATHERED: Final = 64
_PIECE_ROWS: Final = 1024
"""Bytes of scaled rows that a task gathers before it squares them, for all columns; least rows of a
column; rows of a block that are scaled at a time."""

_GOLDEN: Final = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Columns:
    """Problems that are solved together, one a column."""

    positive: Indices
    """Code of the positive class, (J,)."""
    group: Indices
    """Column of the sample weights, (J,)."""
    C: Floats
    """Factor of the losses, (J,)."""

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.C)

    def only(self, chosen: Any) -> "Columns":
        """Some of the problems, by any numpy index."""
        return Columns(self.positive[chosen], self.group[chosen], self.C[chosen])


class Targets(NamedTuple):
    """Labels and sample weights, which passes cut into spans."""

    codes: Codes
    """Class of each sample as an integer from 0, (N,)."""
    weights: NDArray[Any]
    """Factors of C, one column a group, (N, groups); 0 leaves a sample out."""

    def scale(self, columns: Columns) -> Floats:
        """LIBLINEAR's scale of tolerances, (J,): the share of the smaller class."""
        found = np.empty(len(columns))
        for j, (positive, group) in enumerate(zip(columns.positive, columns.group, strict=True)):
            used = self.weights[:, group] > 0
            own = np.count_nonzero(used & (self.codes == positive))
            found[j] = max(1, min(own, np.count_nonzero(used) - own)) / max(1, used.sum())
        return found


class Estimate(NamedTuple):
    """Samples and features that Hessians are estimated by."""

    share: Floats
    """Share of the samples of each column, (J,)."""
    root: NDArray[Any] | None = None
    """Factor of the features, (k, r), applied before they are squared: squares of kernel values in
    float32 would lose their small components."""


def gradients(
    blocks: Blocks, codes: Codes, weights: NDArray[Any], V: Floats, columns: Columns, loss: Loss
) -> tuple[Floats, Floats]:
    """Weighted sums of a span's losses at V, (J,), and their gradients, (k + 1, J)."""
    values, sums = np.zeros_like(V[0]), np.zeros_like(V)
    for Z, sign, weight, margin in _margins(blocks, codes, weights, V, columns):
        values += np.einsum("ij,ij->j", loss.value(margin), weight, dtype=np.float64)
        _add(sums, Z, loss.slope(margin) * sign * weight)
    return values, sums


def curvatures(
    blocks: Blocks,
    codes: Codes,
    weights: NDArray[Any],
    V: Floats,
    D: Floats,
    columns: Columns,
    loss: Loss,
) -> Floats:
    """Hessians of a span's losses at V times directions D, (k + 1, J).

    Margins are recomputed: beside the features of the blocks, one more product is cheap.
    """
    sums, n_columns = np.zeros_like(D), len(columns)
    for Z, _, weight, both in _margins(blocks, codes, weights, np.hstack([V, D]), columns):
        margin, along = both[:, :n_columns], both[:, n_columns:]
        _add(sums, Z, loss.curvature(margin) * along * weight)
    return sums


def curvature_of(
    blocks: Blocks, codes: Codes, weights: NDArray[Any], V: Floats, columns: Columns, loss: Loss
) -> NDArray[Any]:
    """Second derivatives of a span's weighted losses by the decision values at V, (n, J)."""
    found = _margins(blocks, codes, weights, V, columns)
    return np.concatenate([loss.curvature(margin) * weight for _, _, weight, margin in found])


def curved(blocks: Blocks, curvature: NDArray[Any], D: NDArray[Any], chosen: Indices) -> Floats:
    """Hessians of a span's losses times directions D, (c, k + 1), of the features' type.

    curvature is from `curvature_of`, (n, J); chosen are its columns that D belongs to, (c,).
    """
    sums = np.zeros(D.shape)
    for part, Z in blocks:
        own = np.zeros_like(D)
        add_curved(Z, curvature[part], chosen, D, own)
        sums += own
    return sums


def slopes(
    blocks: Blocks,
    codes: Codes,
    weights: NDArray[Any],
    both: Floats,
    columns: Columns,
    loss: Loss,
    steps: Floats,
) -> Floats:
    """Derivatives of a span's losses at V + t D by t, for each t of steps, (steps, J).

    `both` are V and D side by side, (k + 1, 2 J).
    """
    n_columns = len(columns)
    sums = np.zeros_like(both, shape=(len(steps), n_columns))
    for _, sign, weight, found in _margins(blocks, codes, weights, both, columns):
        margin, along = found[:, :n_columns], found[:, n_columns:] * sign
        weighted = along * weight
        for number, step in enumerate(steps):
            slope = loss.slope(margin + margin.dtype.type(float(step)) * along)
            sums[number] += np.einsum("ij,ij->j", slope, weighted, dtype=np.float64)
    return sums


def held_out_decisions(
    blocks: Blocks, tested: NDArray[np.bool_], V: Floats, columns: Columns
) -> list[NDArray[Any]]:
    """Decision values of a span's test samples, of each fold (test samples, columns of the fold).

    tested is the mask of the folds' test samples, (n, folds); the problems of fold f have group
    f + 1.
    """
    own = [np.flatnonzero(columns.group == f + 1) for f in range(tested.shape[1])]
    found: list[list[NDArray[Any]]] = [[] for _ in own]
    for part, Z in blocks:
        decided = _decided(Z, V)
        for parts, used, chosen in zip(found, own, tested[part].T, strict=True):
            parts.append(decided[chosen][:, used])
    return [np.concatenate(parts) for parts in found]


def sums(blocks: Blocks) -> Floats:
    """Sums of a span's features, (k,)."""
    total: Floats = sum(Z.sum(axis=0, dtype=np.float64) for _, Z in blocks)
    return total


def active(
    blocks: Blocks, codes: Codes, weights: NDArray[Any], V: Floats, columns: Columns, loss: Loss
) -> Indices:
    """Number of a span's samples with nonzero second derivatives at V, (J,)."""
    counts: Indices = np.count_nonzero(
        curvature_of(blocks, codes, weights, V, columns, loss), axis=0
    )
    return counts


def hessians(
    blocks: Blocks,
    codes: Codes,
    weights: NDArray[Any],
    V: Floats,
    columns: Columns,
    loss: Loss,
    estimate: Estimate,
) -> NDArray[Any]:
    """Estimated Hessians of a span's losses at V, (J, r + 1, r + 1), of the features' type."""
    share, root = estimate
    found: NDArray[Any] | None = None
    here = is_numpys(V)
    waiting: list[list[NDArray[Any]]] = [[] for _ in range(len(columns))]
    first = 0
    for Z, _, weight, margin in _margins(blocks, codes, weights, V, columns):
        if found is None:
            width = len(V) if root is None else root.shape[1] + 1
            found = np.zeros_like(Z, shape=(len(columns), width, width))
            row_bytes = len(columns) * len(V) * Z.dtype.itemsize
            most = max(_LEAST_GATHERED, _GATHERED_BYTES // row_bytes) if here else 0
        roots = np.sqrt(loss.curvature(margin) * weight * (_spread(first, len(Z), share) / share))
        roots = roots.astype(Z.dtype)
        first += len(Z)
        for piece in blocks_of(len(Z), _PIECE_ROWS if here else len(Z)):
            for total, rows, factors in zip(found, waiting, roots[piece].T, strict=True):
                rows.append(_scaled(Z[piece], factors))
                if sum(map(len, rows)) >= most:
                    _add_square(total, rows, root)
    assert found is not None  # a span has samples
    for total, rows in zip(found, waiting, strict=True):
        _add_square(total, rows, root)
    return found


def _spread(first: int, count: int, share: Floats) -> NDArray[np.bool_]:
    """Mask of the samples of each column's share, (count, J), the same in every run.

    Multiples of the golden ratio fill [0, 1) evenly, whatever the order of the samples.
    """
    at = np.arange(first, first + count, like=share) * _GOLDEN % 1
    return at[:, None] < share


def _scaled(Z: NDArray[Any], factors: NDArray[Any]) -> NDArray[Any]:
    """Rows of (Z, 1) times their factors, without those of factor 0."""
    used = np.flatnonzero(factors)
    rows = np.empty_like(Z, shape=(len(used), Z.shape[1] + 1))
    np.multiply(Z[used], factors[used, None], out=rows[:, :-1])
    rows[:, -1] = factors[used]
    return rows


def _add_square(total: NDArray[Any], rows: list[NDArray[Any]], root: NDArray[Any] | None) -> None:
    """Add A' A to total, where A are all rows times the root; clear the rows."""
    if rows:
        A = np.concatenate(rows)
        rows.clear()
        if root is not None:
            A = np.hstack([A[:, :-1] @ root, A[:, -1:]])
        # numpy computes half and mirrors it; unlike scipy's BLAS, it lets other threads run.
        total += A.T @ A


def _margins(
    blocks: Blocks, codes: Codes, weights: NDArray[Any], V: Floats, columns: Columns
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Features, signs, weights and margins of each block.

    Columns of V after the first J are directions, whose products have no signs.
    """
    for part, Z in blocks:
        found = _decided(Z, V)
        sign = np.where(codes[part, None] == columns.positive, 1, -1).astype(Z.dtype)
        found[:, : len(columns)] *= sign
        yield Z, sign, weights[part][:, columns.group], found


def _decided(Z: NDArray[Any], V: Floats) -> NDArray[Any]:
    """Decision values (Z, 1) V."""
    rows, factor = len(Z), V[:-1].astype(Z.dtype)
    found = np.empty_like(Z, shape=(rows, V.shape[1]))
    step = _SMALL // factor.size if is_numpys(Z) else rows
    for part in blocks_of(rows, step if step >= _LEAST_ROWS else rows):
        np.matmul(Z[part], factor, out=found[part])
    found += V[-1].astype(Z.dtype)
    return found


def _add(sums: Floats, Z: NDArray[Any], values: NDArray[Any]) -> None:
    """Add (Z, 1)' values to sums."""
    if is_numpys(Z) and np.count_nonzero(values) < _FEW * values.size:
        own = np.zeros((len(sums.T), Z.shape[1]), Z.dtype)
        add_rows(Z, values.astype(Z.dtype, copy=False), own)
        sums[:-1] += own.T
    else:
        sums[:-1] += (values.T @ Z).T  # measured: a quarter less time than Z.T @ values
    sums[-1] += values.sum(axis=0, dtype=np.float64)
