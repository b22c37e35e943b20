"""The one-class support vector machine on a matrix in memory, certified."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.svm.dual import MAX_STEPS
from dhsk.svm.smo import ascend
from dhsk.svm.sources import ArraySource

_POLISHES: Final = 3
"""Rounding drifts the gradient during many steps: so often a solution goes on from a new one."""


@dataclass(frozen=True)
class OneClassFit:
    """Solution of the one-class problem, with what proves it.

    Attributes
    ----------
    coef
        b, (n,).
    offset
        LIBSVM's rho: K b is above it for inliers.
    objective
        b'Kb/2.
    violation
        KKT violation, from a gradient computed anew.
    steps
        Of the solver.
    converged
        Whether the violation is at most the tolerance.
    """

    coef: Floats
    offset: float
    objective: float
    violation: float
    steps: int
    converged: bool


def solve_one_class(K: NDArray[Any], weights: Floats, nu: float, tol: float) -> OneClassFit:
    """Minimise b'Kb/2 over 0 <= b <= weights with a sum of b of nu times that of the weights.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    weights
        Upper bounds, (n,), above 0.
    nu
        Above 0, at most 1: share of the samples that may lie outside.
    tol
        Greatest KKT violation.

    Returns
    -------
    OneClassFit
        The solution, converged or not.

    References
    ----------
    .. [1] B. Schölkopf et al., "Estimating the support of a high-dimensional distribution",
       Neural Computation 13 (2001), equation 3.10; scaled by nu n as in LIBSVM.
    """
    n = len(K)
    source = ArraySource(K[:, :n])
    lower, steps = np.zeros(n), 0
    b = _starting_point(weights, nu)
    product = source.product(b[:, None])[:, 0]
    for _ in range(1 + _POLISHES):
        more, _ = ascend(K, lower, weights, b, -product, tol, max(MAX_STEPS, 100 * n))
        steps += more
        product = source.product(b[:, None])[:, 0]
        violation, offset = _violation_and_offset(weights, b, product)
        if violation <= tol or not more:
            break
    return OneClassFit(b, offset, float(b @ product) / 2, violation, steps, violation <= tol)


def _starting_point(weights: Floats, nu: float) -> Floats:
    """LIBSVM's: the first samples at their bounds, as many as the sum allows."""
    ends = np.cumsum(weights)
    return np.asarray(np.clip(nu * ends[-1] - (ends - weights), 0.0, weights))


def _violation_and_offset(weights: Floats, b: Floats, product: Floats) -> tuple[float, float]:
    """KKT violation, and LIBSVM's rho: that of the samples within their bounds, on average.

    Where there are none it is the middle of what the others allow; where all are at their upper
    bounds, which LIBSVM leaves infinite, the least that they allow.
    """
    grow, shrink = b < weights, b > 0
    lowest = float(product[grow].min(initial=np.inf))
    highest = float(product[shrink].max(initial=-np.inf))
    free = grow & shrink
    if free.any():
        offset = float(product[free].mean())
    else:
        offset = (lowest + highest) / 2 if grow.any() else highest
    return max(0.0, highest - lowest), offset
