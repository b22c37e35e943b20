"""Kernel ridge regression by conjugate gradients; every pass over the matrix serves all targets."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.sources import Source

_RESTARTS: Final = 3
"""Restarts from a recomputed residual: rounding errors accumulate in it over many steps."""


@dataclass(frozen=True)
class RidgeSolution:
    """Solution of (K + D) B = Y, with its certificate."""

    coef: Floats
    """B, (N, k)."""
    residual: Floats
    """Norm of Y - (K + D) B relative to that of Y, (k,), from a recomputed product. Rows are
    weighted by 1/D, which is proportional to the sample weights."""
    converged: NDArray[np.bool_]
    """Whether the residual is at most the tolerance, (k,)."""
    indefinite: NDArray[np.bool_]
    """Whether the iteration stopped at a direction along which K + D is not positive, (k,)."""
    passes: int
    """Products with the matrix."""


def solve_ridge(
    source: Source,
    Y: Floats,
    alpha: float | Floats,
    *,
    tol: float,
    max_passes: int,
    progress: OnProgress | None = None,
) -> RidgeSolution:
    """Solve (K + D) B = Y; each pass over K serves all columns of Y that have not converged.

    The method is conjugate gradients [1]_ with D as preconditioner: unequal sample weights cost no
    more passes than repeated samples would.

    Parameters
    ----------
    source
        Positive semi-definite matrix K.
    Y
        Right-hand sides, (N, k).
    alpha
        Diagonal of D, positive: a number, or one a sample (N,), the penalty over the sample weight.
    tol
        Tolerance of the relative residual.
    max_passes
        Upper bound on the products with K, at least 2.
    progress
        Called with a `Progress` after every pass.

    Raises
    ------
    InputError
        A parameter is out of its domain, or the shapes do not match.

    References
    ----------
    .. [1] M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear
       systems", J. Res. Nat. Bur. Standards 49 (1952), section 3.
    """
    positive_parameter("tol", tol)
    whole_parameter("max_passes", max_passes, 2)
    shift = _check_shapes(source, Y, np.asarray(alpha, dtype=np.float64))
    _, exponents = np.frexp(np.abs(Y).max(axis=0))  # scaled exactly, so that no square overflows
    run = _Run(source, np.ldexp(Y, -exponents), shift, max_passes, progress or ignore)
    for _ in range(1 + _RESTARTS):
        left = np.flatnonzero((run.residual() > tol) & ~run.indefinite)
        if not left.size or run.passes + 2 > max_passes:
            break
        run.descend(left, tol)
        run.renew()
    run.report(Progress("passes", run.passes, run.passes))
    residual = run.residual()
    coef = np.ldexp(run.B, exponents)
    return RidgeSolution(coef, residual, residual <= tol, run.indefinite, run.passes)


def _check_shapes(source: Source, Y: Floats, alpha: Floats) -> Floats:
    """Check shapes and signs, and return the diagonal of D as a column."""
    if Y.ndim != 2 or len(Y) != source.n:
        raise InputError(f"Y has shape {Y.shape}, but a matrix of {source.n} needs ({source.n}, k)")
    if alpha.shape not in ((), (source.n,)):
        raise InputError(f"alpha has shape {alpha.shape}, but it must be a number or ({source.n},)")
    wrong = np.flatnonzero(~((alpha > 0) & (alpha < np.inf)))
    if wrong.size:
        raise InputError(
            f"alpha must be finite and above 0, but it is {alpha.reshape(-1)[wrong[0]]}"
        )
    return np.broadcast_to(alpha, source.n)[:, None]


class _Run:
    """State of all columns: solutions B, residuals R, and the number of passes."""

    def __init__(
        self, source: Source, Y: Floats, shift: Floats, max_passes: int, report: OnProgress
    ) -> None:
        self.B, self.R = np.zeros(Y.shape), Y.copy()
        self.indefinite = np.zeros(Y.shape[1], np.bool_)
        self.passes = 0
        self.report = report
        self._source, self._Y, self._shift = source, Y, shift
        self._max_passes = max_passes
        self._size2 = _dots(Y, Y / shift)

    def residual(self) -> Floats:
        """Relative residuals, (k,); 0 if the right-hand side is 0."""
        rest2 = _dots(self.R, self.R / self._shift)
        return np.sqrt(np.divide(rest2, self._size2, out=rest2, where=self._size2 > 0))

    def renew(self) -> None:
        """Recompute the residuals."""
        self.R = self._Y - self._multiply(self.B)

    def descend(self, columns: Indices, tol: float) -> None:
        """Iterate in some columns until each stops; leave one pass for `renew`."""
        P = self.R[:, columns] / self._shift
        rest2 = _dots(self.R[:, columns], P)
        while columns.size and self.passes + 1 < self._max_passes:
            AP = self._multiply(P)
            curvature = _dots(P, AP)
            fine = curvature > 0  # NaN is not
            self.indefinite[columns[~fine]] = True
            step = np.divide(rest2, curvature, out=np.zeros(len(rest2)), where=fine)
            self.B[:, columns] += step * P
            self.R[:, columns] -= step * AP
            Z = self.R[:, columns] / self._shift
            before, rest2 = rest2, _dots(self.R[:, columns], Z)
            open_ = fine & (rest2 > tol**2 * self._size2[columns])
            P = (Z + rest2 / before * P)[:, open_]
            columns, rest2 = columns[open_], rest2[open_]

    def _multiply(self, V: Floats) -> Floats:
        """(K + D) V, one pass."""
        product = self._source.product(V) + self._shift * V
        self.passes += 1
        self.report(Progress("passes", self.passes, self._max_passes))
        return product


def _dots(X: Floats, Y: Floats) -> Floats:
    """Inner products of the columns of X with those of Y, (k,)."""
    return np.asarray(np.einsum("ij,ij->j", X, Y))
