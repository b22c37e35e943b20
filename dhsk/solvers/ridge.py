"""Kernel ridge regression by conjugate gradients; every pass over the matrix serves all targets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.execution.checkpoint import NOWHERE, Checkpoint, KeptState
from dhsk.execution.kept_pass import passes_kept
from dhsk.kernels.base import positive_parameter, whole_parameter
from dhsk.run_progress import passes_of_call
from dhsk.solvers.block_gradients import BlockConjugateGradients
from dhsk.solvers.conjugate_gradients import ConjugateGradients, Preconditioner
from dhsk.solvers.lanczos import Steps

_RESTARTS: Final = 3
"""Restarts from a recomputed residual: rounding errors accumulate in it over many steps."""


class Products(Protocol):
    """A symmetric matrix that is only multiplied."""

    @property
    def n(self) -> int:
        """Number of samples."""

    @property
    def product(self) -> Callable[[Floats], Floats]:
        """Product with V, (N, k)."""


class Factored:
    """P = K + D itself by Cholesky's factorisation: a step solves, and others take back rounding.

    Parameters
    ----------
    K
        Symmetric matrix, (N, N).
    shift
        Diagonal of D, positive, a number or (N,).

    Raises
    ------
    LinAlgError
        K + D is not positive definite to rounding.
    """

    def __init__(self, K: Floats, shift: Floats) -> None:
        self.rank = len(K)
        A = np.array(K, dtype=np.float64, order="F")
        A[np.diag_indices(self.rank)] += shift
        self._factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)

    def solve(self, R: Floats) -> Floats:
        """P^-1 R."""
        return np.asarray(cho_solve(self._factor, R, check_finite=False))


@dataclass(frozen=True, eq=False)
class Means:
    """What a solve may use besides the matrix."""

    preconditioner: Preconditioner | None = None
    """Approximation of K + D; None for D."""
    checkpoint: Checkpoint = NOWHERE
    """Where a killed solve resumes."""
    name: str = ""
    """Name of its entry, by everything that determines the solution."""

    @property
    def rank(self) -> int:
        """Columns of the preconditioner."""
        return 0 if self.preconditioner is None else self.preconditioner.rank


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
    tol: float
    """Largest residual that was asked for."""
    passes: int
    """Products with the matrix, or sweeps over all its columns."""
    steps: Steps
    """Steps of the first descent, from which quadratures are made; none of a block."""


def solve_ridge(
    source: Products,
    Y: Floats,
    alpha: float | Floats,
    *,
    tol: float,
    max_passes: int,
    means: Means | None = None,
    block: bool = True,
) -> RidgeSolution:
    """Solve (K + D) B = Y; each pass over K serves all columns of Y that have not converged.

    The method is preconditioned conjugate gradients [1]_, by default on a block: see
    `BlockConjugateGradients`. The preconditioner is D if there is no other: unequal sample weights
    cost no more passes than repeated samples would. A low-rank approximation of K plus D takes far
    fewer passes where the eigenvalues of K decay [2]_.

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
    means
        Preconditioner and checkpoint.
    block
        Whether columns share their directions too. If not, each takes the passes that it would
        alone, and its steps are recorded.

    Raises
    ------
    InputError
        A parameter is out of its domain, or the shapes do not match.

    References
    ----------
    .. [1] M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear
       systems", J. Res. Nat. Bur. Standards 49 (1952), section 3.
    .. [2] Z. Frangella, J. A. Tropp and M. Udell, "Randomized Nyström preconditioning", SIAM J.
       Matrix Anal. Appl. 44 (2023), arXiv 2110.02820.
    """
    positive_parameter("tol", tol)
    whole_parameter("max_passes", max_passes, 2)
    shift = _check_shapes(source, Y, np.asarray(alpha, dtype=np.float64))
    _, exponents = np.frexp(np.abs(Y).max(axis=0))  # scaled exactly, so that no square overflows
    means, begun = means or Means(), list[str]()

    def multiply(V: Floats) -> Floats:
        means.checkpoint.drop(*begun)  # of the pass before, which is in the state
        with passes_kept(means.checkpoint, means.name, V) as names:
            product = source.product(V)
        begun[:] = names
        # The layout of a plain sum would be that of the temporary array that numpy reuses.
        return np.asarray(np.add(product, shift * V, order="C"))

    method = BlockConjugateGradients if block else ConjugateGradients
    run = method(multiply, np.ldexp(Y, -exponents), shift, means.preconditioner)
    kept = means.checkpoint.state(run, means.name)
    _descend(run, tol, max_passes, kept)
    kept.drop()
    means.checkpoint.drop(*begun)
    residual = run.residual()
    coef = np.ldexp(run.B, exponents)
    converged = residual <= tol
    return RidgeSolution(coef, residual, converged, run.indefinite, tol, run.passes, run.steps)


def _descend(run: ConjugateGradients, tol: float, max_passes: int, kept: KeptState) -> None:
    """Descend until recomputed residuals are at most tol; the last pass recomputes them."""
    passes = passes_of_call()
    passes.begin(max_passes, tol)
    while True:
        if run.recomputed:
            left = np.flatnonzero((run.residual() > tol) & ~run.indefinite)
            if not left.size or run.passes + 2 > max_passes or run.descents > _RESTARTS:
                passes.end()
                return
            run.start(left)
        while run.active.size and run.passes + 1 < max_passes:
            run.step(tol)
            passes.passed(run.passes, float(run.residual().max()))
            kept.keep()
        run.renew()
        passes.passed(run.passes, float(run.residual().max()))
        kept.keep()


def _check_shapes(source: Products, Y: Floats, alpha: Floats) -> Floats:
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
