"""The one-class support vector machine on a matrix in memory, certified."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.solvers.dual import MAX_STEPS
from dhsk.solvers.pairs import FINE_TOLERANCE, MORE_STEPS
from dhsk.solvers.smo import ascend, rounding_of
from dhsk.solvers.sources import ArraySource

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
        LIBSVM's rho: K b is not below it for inliers, among them the samples on the boundary, those
        within their bounds. Nor is it for these where K b is summed in another order.
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
        Greatest KKT violation. Steps go on to `FINE_TOLERANCE` where `MORE_STEPS` are enough.

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

    def go_on(tol: float, most: int) -> int:
        more, _ = ascend(K, lower, weights, b, -product, tol, most)
        product[:] = source.product(b[:, None])[:, 0]
        return more

    for _ in range(1 + _POLISHES):
        more = go_on(tol, max(MAX_STEPS, 100 * n))
        steps += more
        if _violation(weights, b, product) <= tol or not more:
            break
    if tol > FINE_TOLERANCE:
        steps += go_on(FINE_TOLERANCE, MORE_STEPS * steps)
    violation, offset = _violation(weights, b, product), _offset(K, weights, b, product)
    return OneClassFit(b, offset, float(b @ product) / 2, violation, steps, violation <= tol)


def _starting_point(weights: Floats, nu: float) -> Floats:
    """LIBSVM's: the first samples at their bounds, as many as the sum allows."""
    ends = np.cumsum(weights)
    return np.asarray(np.clip(nu * ends[-1] - (ends - weights), 0.0, weights))


def _violation(weights: Floats, b: Floats, product: Floats) -> float:
    """KKT violation: 0 at the exact optimum."""
    lowest = float(product[b < weights].min(initial=np.inf))
    highest = float(product[b > 0].max(initial=-np.inf))
    return max(0.0, highest - lowest)


def _offset(K: NDArray[Any], weights: Floats, b: Floats, product: Floats) -> float:
    """LIBSVM's rho, but the least of the samples within their bounds, not their mean.

    At the optimum these are equal, on the boundary; the least, less what rounding may change in
    another sum, makes them inliers whatever was left. Where there are none it is the middle of what
    the others allow; where all are at their upper bounds, which LIBSVM leaves infinite, the least
    that they allow.
    """
    grow, shrink = b < weights, b > 0
    free = grow & shrink
    if free.any():
        rounding = rounding_of(float(product.max()), float(np.diagonal(K).max()), float(b.sum()))
        rounding *= float(np.finfo(K.dtype).eps / np.finfo(np.float64).eps)
        return float(product[free].min()) - rounding
    highest = float(product[shrink].max(initial=-np.inf))
    return (float(product[grow].min()) + highest) / 2 if grow.any() else highest
