"""Preconditioned conjugate gradients on many right-hand sides that share every product."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Protocol

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.execution.checkpoint import Checkpoint

Multiply = Callable[[Floats], Floats]
"""Product of the matrix with the columns of V, (N, k)."""


class Preconditioner(Protocol):
    """A positive definite matrix P near the matrix of a system, whose inverse is cheap."""

    @property
    def rank(self) -> int:
        """Columns of the approximation that it is made of."""

    def solve(self, R: Floats) -> Floats:
        """P^-1 R for the columns of R, (N, k)."""


@dataclass(eq=False)
class SolveCheckpoint:
    """Checkpoint of the state between two products; without a folder nothing is written."""

    entries: Checkpoint = field(default_factory=lambda: Checkpoint(None))
    name: str = ""
    """Name of the entry, by everything that determines the state."""
    quiet: float = 20.0
    """Time between two entries, as a multiple of the time that one takes to write."""
    _next: float = field(default=0.0, init=False)

    def keep(self, run: "ConjugateGradients") -> None:
        """Write the state, unless an earlier entry is recent."""
        begin = perf_counter()
        if self.entries.folder is None or begin < self._next:
            return
        self.entries.put(self.name, run.arrays(), {"values": run.values()})
        end = perf_counter()
        self._next = end + self.quiet * (end - begin)

    def resume(self, run: "ConjugateGradients") -> bool:
        """Restore the state of an earlier process; whether there was one."""
        return bool(self.entries.get(self.name, run.restore))

    def drop(self) -> None:
        """Remove the entry of a finished solve."""
        self.entries.drop(self.name)


class ConjugateGradients:
    """State of all columns of (K + D) B = Y: solutions, residuals, directions, and what was spent.

    Each product serves all active columns. Norms of residuals are weighted by 1/D. Without a
    preconditioner D itself is one. The state depends on the arguments and on the number of products
    alone, so that a run that is restored from `arrays` and `values` ends with the same bits.

    Parameters
    ----------
    multiply
        Product with K + D.
    Y
        Right-hand sides, (N, k).
    shift
        Diagonal of D, positive, (N, 1).
    preconditioner
        P; None for D.
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

    def arrays(self) -> dict[str, Any]:
        """Arrays of the state."""
        steps = zip(*self.steps, strict=True) if self.steps else ((), (), ())
        parts = [np.concatenate([np.zeros(0), *part]) for part in steps]
        counts = np.array([len(columns) for columns, _, _ in self.steps], np.int64)
        own = {name: getattr(self, name) for name in self.ARRAYS}
        return (
            own
            | dict(zip(("columns", "lengths", "ratios"), parts, strict=True))
            | {"counts": counts}
        )

    def values(self) -> dict[str, int]:
        """Numbers of the state."""
        return {name: getattr(self, name) for name in self.VALUES}

    def restore(self, kept: dict[str, Any]) -> bool:
        """Take the state of `arrays` and `values`; an error leaves the own one as it is."""
        found = {name: kept[name] for name in self.ARRAYS}
        if found["B"].shape != self.B.shape:
            raise ValueError("another system")
        ends = np.cumsum(kept["counts"])[:-1]
        parts = (np.split(kept[name], ends) for name in ("columns", "lengths", "ratios"))
        steps = [(c.astype(np.intp), a, b) for c, a, b in zip(*parts, strict=True) if c.size]
        found |= {name: kept["values"][name] for name in self.VALUES}
        vars(self).update(found, steps=steps)
        return True

    def _preconditioned(self, R: Floats) -> Floats:
        return R / self._shift if self._preconditioner is None else self._preconditioner.solve(R)

    def _product(self, V: Floats) -> Floats:
        """(K + D) V, one pass."""
        self.passes += 1
        return self._multiply(V)


def dots(X: Floats, Y: Floats) -> Floats:
    """Inner products of the columns of X with those of Y, (k,)."""
    return np.asarray(np.einsum("ij,ij->j", X, Y))
