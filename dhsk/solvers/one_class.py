"""One-class SVM, certified."""

from dataclasses import dataclass
from math import fsum

import numpy as np

from dhsk.arrays import Floats
from dhsk.progress import OnProgress, ignore
from dhsk.solvers.box import BoxProblem
from dhsk.solvers.box_solver import Limits, solve_box
from dhsk.solvers.smo import rounding_of
from dhsk.solvers.sources import Source


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
    source: Source, weights: Floats, nu: float, limits: Limits, report: OnProgress = ignore
) -> OneClassFit:
    """Minimise b'Kb/2 over 0 <= b <= weights with sum(b) = nu sum(weights) [1]_.

    Parameters
    ----------
    source
        Matrix.
    weights
        Upper bounds, (n,), positive.
    nu
        Upper bound on the share of outliers, in (0, 1].
    limits
        Tolerance of the KKT violation, and memory.
    report
        Called with the progress of the violation from the first one to the finest tolerance, on a
        logarithmic scale.

    References
    ----------
    .. [1] B. Schölkopf et al., "Estimating the support of a high-dimensional distribution",
       Neural Computation 13 (2001), equation 3.10; scaled by nu n as in LIBSVM.
    """
    problem = BoxProblem(np.zeros(source.n), np.zeros(source.n), weights)
    start = _starting_point(weights, nu)
    problem.settle(start)
    found = solve_box(source, problem, start, limits, report)
    b, product = found.b, -found.f
    violation = problem.violation(b, found.f)
    return OneClassFit(
        b,
        _offset(source, weights, b, product),
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


def _offset(source: Source, weights: Floats, b: Floats, product: Floats) -> float:
    """LIBSVM's rho, but with the minimum of K b over the free samples instead of the mean.

    At the optimum all free samples lie on the boundary. The minimum, less the rounding error of K b
    in another order of summation, makes them inliers whatever violation is left. Without free
    samples it is the middle of the interval that the others allow. If all samples are at their
    upper bounds, where LIBSVM's is infinite, it is the largest value of K b.
    """
    grow, shrink = b < weights, b > 0
    free = grow & shrink
    if free.any():
        largest = float(source.diagonal().max())
        rounding = rounding_of(float(product.max()), largest, float(b.sum()))
        rounding *= float(np.finfo(source.dtype).eps / np.finfo(np.float64).eps)
        return float(product[free].min()) - rounding
    highest = float(product[shrink].max(initial=-np.inf))
    return (float(product[grow].min()) + highest) / 2 if grow.any() else highest
