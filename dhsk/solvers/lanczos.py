"""Lanczos quadrature from the coefficients of conjugate gradients."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh_tridiagonal

from dhsk.arrays import Floats, Indices

Steps = Sequence[tuple[Indices, Floats, Floats]]
"""Of each step: the columns that made it, its lengths and ratios, as in `ConjugateGradients`."""


def log_quadrature(steps: Steps, columns: int) -> Floats:
    """Estimates of w' log(M) w / w'w by Gauss quadrature [1]_, for the first columns, (k,).

    Steps of conjugate gradients in A with preconditioner P, from a vector z, tridiagonalise
    M = P^-1/2 A P^-1/2 in the Krylov space of w = P^-1/2 z [2]_. Estimates converge twice as fast
    as the solution. They are 0 for a column without steps, and NaN if M has a negative direction
    among them.

    References
    ----------
    .. [1] S. Ubaru, J. Chen and Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos
       quadrature", SIAM J. Matrix Anal. Appl. 38 (2017).
    .. [2] G. H. Golub and C. F. Van Loan, "Matrix Computations", 4th edition, section 11.3.
    """
    found, none = np.zeros(columns), np.zeros(0)
    for column in range(columns):
        own = [(a[of == column], r[of == column]) for of, a, r in steps]
        lengths, ratios = (np.concatenate([none, *(one[k] for one in own)]) for k in range(2))
        if len(lengths):
            found[column] = _log_of(lengths, ratios)
    return found


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
