"""One-class SVM on a matrix in memory, certified."""

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.progress import OnProgress, ignore
from dhsk.solvers.dual import MAX_STEPS
from dhsk.solvers.pairs import FINE_TOLERANCE, MORE_STEPS
from dhsk.solvers.smo import ascend, rounding_of, settle
from dhsk.solvers.sources import ArraySource, Source
from dhsk.solvers.tube import (
    LEAST_AT_ONCE,
    POLISHES,
    READ_AT_ONCE,
    TubeLimits,
    TubeProblem,
    ViolationReport,
    solve_tube,
)


@dataclass(frozen=True)
class OneClassFit:
    """Solution of the one-class problem, with its certificate."""

    coef: Floats
    """b, (n,)."""
    offset: float
    """LIBSVM's rho. K b is at least rho for inliers. These include the free samples, on the
    boundary, in whatever order K b is summed."""
    objective: float
    """b'Kb/2."""
    violation: float
    """KKT violation, from a recomputed gradient."""
    steps: int
    """Steps of the solver."""
    converged: bool
    """Whether the violation is at most the tolerance."""


def solve_one_class(
    K: NDArray[Any], weights: Floats, nu: float, tol: float, report: OnProgress = ignore
) -> OneClassFit:
    """Minimise b'Kb/2 over 0 <= b <= weights with sum(b) = nu sum(weights) [1]_.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    weights
        Upper bounds, (n,), positive.
    nu
        Upper bound on the share of outliers, in (0, 1].
    tol
        Tolerance of the KKT violation. The solver continues to `FINE_TOLERANCE` if `MORE_STEPS`
        are enough.
    report
        Called with the progress of the violation from the first one to that tolerance, on a
        logarithmic scale.

    References
    ----------
    .. [1] B. Schölkopf et al., "Estimating the support of a high-dimensional distribution",
       Neural Computation 13 (2001), equation 3.10; scaled by nu n as in LIBSVM.
    """
    n = len(K)
    source = ArraySource(K[:, :n])
    lower, steps = np.zeros(n), 0
    b = _starting_point(weights, nu)
    settle(b, lower, weights)
    product = source.product(b[:, None])[:, 0]

    told = ViolationReport(report, _violation(weights, b, product), tol)
    at_once = max(LEAST_AT_ONCE, READ_AT_ONCE // n)

    def go_on(tol: float, most: int) -> int:
        gradient, done, more = -product, 0, at_once
        while more == at_once:
            here = min(at_once, most - done)
            more, left = ascend(K, (lower, weights), b, gradient, tol, here)
            done += more
            told(left)
        settle(b, lower, weights)
        product[:] = source.product(b[:, None])[:, 0]
        return done

    for _ in range(1 + POLISHES):
        more = go_on(tol, max(MAX_STEPS, 100 * n))
        steps += more
        if _violation(weights, b, product) <= tol or not more:
            break
    if tol > FINE_TOLERANCE:
        steps += go_on(FINE_TOLERANCE, MORE_STEPS * steps)
    entry = float(np.diagonal(K).max()), K.dtype
    violation, offset = _violation(weights, b, product), _offset(entry, weights, b, product)
    told.end(violation)
    return OneClassFit(b, offset, float(b @ product) / 2, violation, steps, violation <= tol)


def solve_one_class_on_sets(
    source: Source, weights: Floats, nu: float, limits: TubeLimits, report: OnProgress = ignore
) -> OneClassFit:
    """Solve the problem of `solve_one_class` without the whole matrix, or in few steps."""
    problem = TubeProblem(np.zeros(source.n), np.zeros(source.n), weights)
    start = _starting_point(weights, nu)
    problem.settle(start)
    found = solve_tube(source, problem, start, limits, report)
    b, product = found.b, -found.f
    violation = _violation(weights, b, product)
    return OneClassFit(
        b,
        _offset((float(source.diagonal().max()), source.dtype), weights, b, product),
        float(b @ product) / 2,
        violation,
        found.steps,
        violation <= limits.tol,
    )


def _starting_point(weights: Floats, nu: float) -> Floats:
    """LIBSVM's initial solution: the first samples at their bounds, as many as the sum allows."""
    total = nu * fsum(weights)
    full = int(np.searchsorted(np.cumsum(weights), total))
    b = np.where(np.arange(len(weights)) < full, weights, 0.0)
    if full < len(b):
        # Exact sums: where the bounds fill the total, no rounding of many sums is left over.
        b[full] = np.clip(total - fsum(weights[:full]), 0.0, weights[full])
    return b


def _violation(weights: Floats, b: Floats, product: Floats) -> float:
    """KKT violation, 0 at the optimum."""
    lowest = float(product[b < weights].min(initial=np.inf))
    highest = float(product[b > 0].max(initial=-np.inf))
    return max(0.0, highest - lowest)


def _offset(
    entry: "tuple[float, np.dtype[Any]]", weights: Floats, b: Floats, product: Floats
) -> float:
    """LIBSVM's rho, but with the minimum of K b over the free samples instead of the mean.

    At the optimum all free samples lie on the boundary. The minimum, less the rounding error of K b
    in another order of summation, makes them inliers whatever violation is left. Without free
    samples it is the middle of the interval that the others allow. If all samples are at their
    upper bounds, where LIBSVM's is infinite, it is the largest value of K b. entry is the largest
    of the diagonal, and the type of the matrix.
    """
    grow, shrink = b < weights, b > 0
    free = grow & shrink
    if free.any():
        largest, dtype = entry
        rounding = rounding_of(float(product.max()), largest, float(b.sum()))
        rounding *= float(np.finfo(dtype).eps / np.finfo(np.float64).eps)
        return float(product[free].min()) - rounding
    highest = float(product[shrink].max(initial=-np.inf))
    return (float(product[grow].min()) + highest) / 2 if grow.any() else highest
