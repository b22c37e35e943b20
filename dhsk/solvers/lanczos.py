"""Lanczos quadrature from the coefficients of conjugate gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal

from dhsk.arrays import Floats, Indices

Steps = Sequence[tuple[Indices, Floats, Floats]]
"""Of each step: the columns that made it, its lengths and ratios, as in `ConjugateGradients`."""


@dataclass(frozen=True, eq=False)
class LanczosRecord:
    """What a descent in A with preconditioner P tells of the eigenvalues of P^-1 A.

    Conjugate gradients from a vector z tridiagonalise M = P^-1/2 A P^-1/2 in the Krylov space of
    w = P^-1/2 z [1]_. If M has one negative direction among these, results are NaN.

    Attributes
    ----------
    steps
        Steps of the first descent.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, section 11.3.
    """

    steps: Steps

    def log_quadrature(self, columns: int) -> Floats:
        """Estimates of w' log(M) w / w'w by Gauss quadrature [1]_, for the first columns, (k,).

        They converge twice as fast as the solution. 0 for a column without steps.

        References
        ----------
        .. [1] S. Ubaru, J. Chen and Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos
           quadrature", SIAM J. Matrix Anal. Appl. 38 (2017).
        """
        found = np.zeros(columns)
        for column in range(columns):
            lengths, ratios = self._of(column)
            if len(lengths):
                found[column] = _log_of(lengths, ratios)
        return found

    def _of(self, column: int) -> tuple[Floats, Floats]:
        """Lengths and ratios of the steps of a column."""
        own = [
            (lengths[columns == column], ratios[columns == column])
            for columns, lengths, ratios in self.steps
        ]
        empty = np.zeros(0)
        lengths, ratios = zip(*own, strict=True) if own else ((), ())
        return np.concatenate([empty, *lengths]), np.concatenate([empty, *ratios])


def _log_of(lengths: Floats, ratios: Floats) -> float:
    """e_1' log(T) e_1 with T of the steps of a column."""
    if not (lengths > 0).all():
        return float("nan")
    diagonal = 1 / lengths
    diagonal[1:] += ratios[:-1] / lengths[:-1]
    beside = np.sqrt(ratios[:-1]) / lengths[:-1]
    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    if nodes[0] <= 0:
        return float("nan")
    return float(vectors[0] ** 2 @ np.log(nodes))
