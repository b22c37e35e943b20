"""What a solution of a pair of classes must be, beside one on the whole matrix."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dhsk.solvers.dual import Dual, Fit
from dhsk.solvers.problems import Pair
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import Block, PairTask, Unsolved, solve_whole


def solve_block(K: Any, dual: Dual, tol: float, *, fine: bool = False) -> list[Fit]:
    """Fits of all columns on a matrix in memory, (n, padded(n)), in as many tasks as they take."""
    task = PairTask(0, ArraySource(K), Pair(0, 1, np.arange(len(K)), dual))
    block = Block(K)
    while isinstance(found := solve_whole(task, tol, fine, block), Unsolved):
        task = replace(task, begun=found.begun)
    return found[1]


def assert_optimal(
    K: Any, pair: Pair, found: list[Fit], expected: list[Fit], tol: float, rounding: float
) -> None:
    """Feasible, with the violation it says, and the objective that is expected.

    Rounding is that of sums of changes, relative to the sum of the coefficients.
    """
    square = K[np.ix_(pair.members, pair.members)]
    for column, (fit, best) in enumerate(zip(found, expected, strict=True)):
        b = np.zeros(len(pair.members))
        b[fit.support] = fit.coef
        lower, upper = pair.dual.bounds(column)
        size = np.abs(b).sum()
        assert ((lower <= b) & (b <= upper)).all()
        assert abs(b.sum()) <= rounding * size
        f = pair.dual.sign - square @ b
        highest, lowest = f[b < upper].max(initial=-np.inf), f[b > lower].min(initial=np.inf)
        violation = 0.0 if pair.dual.trivial(column) else max(0.0, highest - lowest)
        assert fit.violation == pytest.approx(violation, abs=rounding * (1 + size))
        assert fit.converged
        assert fit.violation <= tol
        cost = tol * max(size, np.abs(best.coef).sum())
        assert fit.objective == pytest.approx(best.objective, abs=cost + rounding)
