"""Partial Cholesky factor of a kernel matrix, in memory or recomputed in every pass."""

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dhsk.arrays import Floats, Indices, Rows, stacked
from dhsk.nystrom.components import narrowed
from dhsk.nystrom.kept_values import KeptPasses
from dhsk.nystrom.placed import Placed

Parts = Iterable[tuple[slice, NDArray[Any]]]
"""Kernel values of a span, from `Span.blocks`."""


_ROUND: Final = "round-"
"""Begins the stage of a round."""


class InMemoryFactor:
    """F, (N, r), with F F' the Nyström approximation by r pivots, in an array of k columns.

    The rows of the pivots are lower triangular. `begun` is what an earlier run has kept beside its
    factor, which goes on from there; None if there is none.
    """

    def __init__(self, placed: Placed, k: int, passes: KeptPasses | None = None) -> None:
        self._placed = placed
        self._rows: list[Rows] = []
        self._whole = np.empty((placed.n, k), placed.dtype)
        self._pivots = np.zeros(0, np.intp)
        self._passes = passes or KeptPasses()
        self._kept = self._passes.columns(self._whole)
        self.begun = self._kept.found
        if self.begun is not None:
            self._pivots = self.begun["pivots"]
            self._rows.append(placed.take(self._pivots))

    @property
    def landmarks(self) -> Rows:
        """Mapped rows of the pivots, (r, dim)."""
        return stacked(self._rows)[: len(self._pivots)]

    @property
    def root(self) -> Floats:
        """R with F = K(X, pivots) R, (r, r), float64: the inverse of F' at the pivots."""
        return _inverse(np.tril(self.of(self._pivots))).T

    def finished(self) -> NDArray[Any]:
        """F, (N, r), contiguous; no columns can be appended after this."""
        self._kept.finish()
        self._forget_rounds()
        self._whole = narrowed(self._whole, len(self._pivots))
        return self._whole

    def of(self, chosen: Indices, rows: Rows | None = None) -> Floats:  # noqa: ARG002
        """Rows of F of some samples, in float64, by their indices and mapped rows."""
        return self._whole[chosen, : len(self._pivots)].astype(np.float64)

    def extend(
        self, pivots: Indices, rows: Rows, known: Floats, L: Floats
    ) -> tuple[Floats, Floats]:
        """Append the columns of new pivots.

        Parameters
        ----------
        pivots
            Indices of the new pivots, (m,).
        rows
            Mapped rows of the new pivots, (m, dim).
        known
            F of the new pivots so far, (m, r).
        L
            Cholesky factor of their residual kernel matrix, (m, m).

        Returns
        -------
        squares
            Squared norms of the rows of the new columns, (N,).
        gained
            Squared norms of the new columns, (m,).
        """
        done, dtype = len(self._pivots), self._placed.dtype
        columns = self._whole[:, : done + len(pivots)]
        squares = np.empty(self._placed.n)
        ahead = np.ascontiguousarray(known.T, dtype)
        across = np.ascontiguousarray(_inverse(L).T, dtype)
        passes = replace(self._passes, begun=perf_counter())  # columns are kept after each round
        gained = passes.sum(
            self._placed.values(rows),
            _fill,
            (columns, squares),
            ahead,
            across,
            written=(columns[:, done:], squares),
            stage=f"{_ROUND}{done}",
        )
        self._rows.append(rows)
        self._pivots = np.concatenate([self._pivots, pivots])
        return squares, gained

    def cut(self, width: int) -> None:
        """Keep the first columns only."""
        self._pivots = self._pivots[:width]

    def keep(self, arrays: dict[str, Any], values: dict[str, Any]) -> None:
        """Keep the columns of a round, and a state beside them."""
        self._kept.advance(len(self._pivots), arrays, values)
        self._kept.finish()
        self._forget_rounds()

    def _forget_rounds(self) -> None:
        if self._kept.is_whole:
            self._passes.forget(_ROUND)


def _fill(
    parts: Parts,
    F: NDArray[Any],
    squares: Floats,
    ahead: NDArray[Any],
    across: NDArray[Any],
) -> Floats:
    """Compute the last columns of a span's F, with the squared norms of their rows; return theirs.

    ahead is F of the new pivots so far, transposed, and across is L^-T.
    """
    done = len(ahead)
    gained = np.zeros(len(across))
    for part, K in parts:
        if done:
            np.subtract(K, F[part, :done] @ ahead, out=K)
        new = np.matmul(K, across, out=F[part, done:])
        squares[part], own = _squares(new)
        gained += own
    return gained


class ComputedFactor:
    """The factor of `InMemoryFactor`, but not stored: extensions recompute all kernel values."""

    def __init__(self, placed: Placed, passes: KeptPasses | None = None) -> None:
        self._placed, self._kept = placed, passes or KeptPasses()
        self._rows: list[Rows] = []
        self.root = np.zeros((0, 0))
        self.begun: dict[str, Any] | None = self._kept.entries.get(self._kept.name, dict)
        if self.begun is not None:
            self.root = self.begun.pop("root")
            self._rows.append(placed.take(self.begun["pivots"]))

    @property
    def landmarks(self) -> Rows:
        """Mapped rows of the pivots."""
        return stacked(self._rows)[: len(self.root)]

    def of(self, chosen: Indices, rows: Rows) -> Floats:  # noqa: ARG002
        """F of some samples, given their rows."""
        if not len(self.root):
            return np.zeros((rows.shape[0], 0))
        return self._placed.kernel.of_rows(rows, self.landmarks).astype(np.float64) @ self.root

    def extend(
        self,
        pivots: Indices,  # noqa: ARG002
        rows: Rows,
        known: Floats,
        L: Floats,
    ) -> tuple[Floats, Floats]:
        """Append the columns of new pivots."""
        across = _inverse(L).T
        done, count = len(self.root), len(L)
        root = np.zeros((done + count, done + count))
        root[:done, :done] = self.root
        root[:done, done:] = -self.root @ (known.T @ across)
        root[done:, done:] = across
        self.root = root
        self._rows.append(rows)
        last = np.ascontiguousarray(root[:, done:], self._placed.dtype)
        Z = self._placed.values(self.landmarks)
        squares, gained = zip(*Z.map(_measure, (), last), strict=True)
        return np.concatenate(squares), sum(gained)

    def cut(self, width: int) -> None:
        """Keep the first columns only."""
        self.root = self.root[:width, :width]

    def keep(self, arrays: dict[str, Any], values: dict[str, Any]) -> None:
        """Keep the root, which takes a tenth of all rounds, and a state beside it."""
        self._kept.entries.put(self._kept.name, {**arrays, "root": self.root}, values)


Factor: TypeAlias = InMemoryFactor | ComputedFactor


def _measure(parts: Parts, last: NDArray[Any]) -> tuple[Floats, Floats]:
    """Squared norms of rows and columns of a span's last columns of F."""
    rows, columns = zip(*(_squares(K @ last) for _, K in parts), strict=True)
    return np.concatenate(rows), sum(columns)


def _squares(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Squared norms of rows and of columns, summed in float64."""
    squared = values.astype(np.float64)
    squared *= squared
    return squared.sum(axis=1), squared.sum(axis=0)


def _inverse(L: Floats) -> Floats:
    found: Floats = solve_triangular(L, np.eye(len(L)), lower=True)
    return found
