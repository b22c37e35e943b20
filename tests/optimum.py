"""What a solution of a pair of classes must be, beside one on the whole matrix."""

from typing import Any

import numpy as np
import pytest

from dhsk.solvers.dual import Fit
from dhsk.solvers.problems import Pair


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
