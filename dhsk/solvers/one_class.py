"""One-class SVM on a matrix in memory, certified."""

from dataclasses import dataclass
from math import fsum, log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.solvers.dual import MAX_STEPS
from dhsk.solvers.pairs import FINE_TOLERANCE, MORE_STEPS
from dhsk.solvers.smo import ascend, rounding_of, settle
from dhsk.solvers.sources import ArraySource

_POLISHES: Final = 3
"""Restarts from a recomputed gradient: rounding errors accumulate in it over many steps."""

READ_AT_ONCE: Final = 2**28
"""Entries of the matrix that steps read between two reports, half a second. A constant, as the
steps begin anew there: results must not depend on who listens."""

LEAST_AT_ONCE: Final = 1000
"""Fewest steps between two reports."""


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

    told = _ViolationReport(report, _violation(weights, b, product), tol)
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

    for _ in range(1 + _POLISHES):
        more = go_on(tol, max(MAX_STEPS, 100 * n))
        steps += more
        if _violation(weights, b, product) <= tol or not more:
            break
    if tol > FINE_TOLERANCE:
        steps += go_on(FINE_TOLERANCE, MORE_STEPS * steps)
    violation, offset = _violation(weights, b, product), _offset(K, weights, b, product)
    told.end(violation)
    return OneClassFit(b, offset, float(b @ product) / 2, violation, steps, violation <= tol)


class _ViolationReport:
    """Progress of a violation from the first one to that of the fine tolerance."""

    def __init__(self, report: OnProgress, first: float, tol: float) -> None:
        self._report, self._first, self._tol = report, first, tol
        self._done = 0
        self(first)

    def __call__(self, violation: float) -> None:
        """Report a violation; it may rise between steps, but the progress does not fall."""
        goal = min(self._tol, FINE_TOLERANCE)
        if violation <= goal or self._first <= goal:
            share = 1.0
        else:
            share = log(self._first / violation) / log(self._first / goal)
        self._done = max(self._done, min(int(1000 * share), 999))
        self._tell(violation)

    def end(self, violation: float) -> None:
        """Report the end."""
        self._done = 1000
        self._tell(violation)

    def _tell(self, violation: float) -> None:
        detail = f"violation {violation:.1e} of {self._tol:.0e}"
        self._report(Progress("training", self._done, 1000, detail))


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


def _offset(K: NDArray[Any], weights: Floats, b: Floats, product: Floats) -> float:
    """LIBSVM's rho, but with the minimum of K b over the free samples instead of the mean.

    At the optimum all free samples lie on the boundary. The minimum, less the rounding error of K b
    in another order of summation, makes them inliers whatever violation is left. Without free
    samples it is the middle of the interval that the others allow. If all samples are at their
    upper bounds, where LIBSVM's is infinite, it is the largest value of K b.
    """
    grow, shrink = b < weights, b > 0
    free = grow & shrink
    if free.any():
        rounding = rounding_of(float(product.max()), float(np.diagonal(K).max()), float(b.sum()))
        rounding *= float(np.finfo(K.dtype).eps / np.finfo(np.float64).eps)
        return float(product[free].min()) - rounding
    highest = float(product[shrink].max(initial=-np.inf))
    return (float(product[grow].min()) + highest) / 2 if grow.any() else highest
