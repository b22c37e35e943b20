"""Preconditioned conjugate gradients on many right-hand sides that share every product."""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from dhsk.arrays import Floats, Indices

Multiply = Callable[[Floats], Floats]
"""Product of the matrix with the columns of V, (N, k)."""


class Preconditioner(Protocol):
    """A positive definite matrix P near the matrix of a system, whose inverse is cheap."""

    @property
    def rank(self) -> int:
        """Columns of the approximation that it is made of."""

    def solve(self, R: Floats) -> Floats:
        """P^-1 R for the columns of R, (N, k)."""


class ConjugateGradients:
    """State of all columns of (K + D) B = Y: solutions, residuals, directions, and what was spent.

    Each product serves all active columns. Norms of residuals are weighted by 1/D. Without a
    preconditioner D itself is one. The state depends on the arguments and on the number of products
    alone, so that a run that is restored from `entry` ends with the same bits. `multiply` gives
    products with K + D; `shift` is the diagonal of D, (N, 1).
    """

    ARRAYS: ClassVar[tuple[str, ...]] = ("B", "R", "P", "active", "inner", "indefinite")
    VALUES: ClassVar = ("passes", "descents", "recomputed")

    def __init__(
        self, multiply: Multiply, Y: Floats, shift: Floats, preconditioner: Preconditioner | None
    ) -> None:
        self.B, self.R = np.zeros(Y.shape), Y.copy()
        self.P = np.zeros((len(Y), 0))
        self.active = np.zeros(0, np.intp)
        self.inner = np.zeros(0)
        """Inner products of residuals and preconditioned residuals of the active columns."""
        self.indefinite = np.zeros(Y.shape[1], np.bool_)
        self.passes, self.descents = 0, 0
        self.recomputed = True
        """Whether the residuals are those of a product, and not of the steps since."""
        self.steps: list[tuple[Indices, Floats, Floats]] = []
        """Active columns, lengths of steps and ratios of each step of the first descent."""
        self._multiply, self._Y, self._shift = multiply, Y, shift
        self._preconditioner = preconditioner
        self._size2 = dots(Y, Y / shift)

    def residual(self) -> Floats:
        """Relative residuals, (k,); 0 if the right-hand side is 0."""
        rest2 = dots(self.R, self.R / self._shift)
        return np.sqrt(np.divide(rest2, self._size2, out=rest2, where=self._size2 > 0))

    def renew(self) -> None:
        """Recompute the residuals, which ends a descent."""
        self.R = self._Y - self._product(self.B)
        self.recomputed = True
        self.active, self.P, self.inner = self.active[:0], self.P[:, :0], self.inner[:0]

    def start(self, columns: Indices) -> None:
        """Begin a descent in some columns."""
        self.descents += 1
        self.recomputed = False
        self.active = columns
        self.P = self._preconditioned(self.R[:, columns])
        self.inner = dots(self.R[:, columns], self.P)

    def step(self, tol: float) -> None:
        """Make one step in all active columns; those with a residual of at most tol end there."""
        columns, P = self.active, self.P
        AP = self._product(P)
        curvature = dots(P, AP)
        fine = curvature > 0  # NaN is not
        self.indefinite[columns[~fine]] = True
        step = np.divide(self.inner, curvature, out=np.zeros(len(fine)), where=fine)
        self.B[:, columns] += step * P
        self.R[:, columns] -= step * AP
        rest = self.R[:, columns]
        Z = rest / self._shift
        rest2 = dots(rest, Z)
        if self._preconditioner is not None:
            Z = self._preconditioner.solve(rest)
        inner = rest2 if self._preconditioner is None else dots(rest, Z)
        ratio = inner / self.inner
        if self.descents == 1:
            self.steps.append((columns, step, ratio))
        open_ = fine & (rest2 > tol**2 * self._size2[columns])
        self.P = (Z + ratio * P)[:, open_]
        self.active, self.inner = columns[open_], inner[open_]

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and numbers of the state."""
        steps = zip(*self.steps, strict=True) if self.steps else ((), (), ())
        parts = [np.concatenate([np.zeros(0), *part]) for part in steps]
        arrays = {name: getattr(self, name) for name in self.ARRAYS}
        arrays |= dict(zip(("columns", "lengths", "ratios"), parts, strict=True))
        arrays["counts"] = np.array([len(columns) for columns, _, _ in self.steps], np.int64)
        return arrays, {name: getattr(self, name) for name in self.VALUES}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take the state of `entry`; an error leaves the own one as it is."""
        found = {name: kept[name] for name in (*self.ARRAYS, *self.VALUES)}
        if found["B"].shape != self.B.shape:
            raise ValueError("another system")
        ends = np.cumsum(kept["counts"])[:-1]
        parts = (np.split(kept[name], ends) for name in ("columns", "lengths", "ratios"))
        steps = [(c.astype(np.intp), a, b) for c, a, b in zip(*parts, strict=True) if c.size]
        vars(self).update(found, steps=steps)

    def _preconditioned(self, R: Floats) -> Floats:
        return R / self._shift if self._preconditioner is None else self._preconditioner.solve(R)

    def _product(self, V: Floats) -> Floats:
        """(K + D) V, one pass."""
        self.passes += 1
        return self._multiply(V)


def dots(X: Floats, Y: Floats) -> Floats:
    """Inner products of the columns of X with those of Y, (k,)."""
    return np.asarray(np.einsum("ij,ij->j", X, Y))
