"""Newton steps of a dual problem, in all coefficients between their bounds at once.

Steps of two variables are many where K is ill-conditioned and C is large: a linear kernel of five
columns takes 46,000 on 400 samples at C = 150 over the variance, and does not end at 1,500 in
single precision. Which coefficients are at a bound is known long before, though, and the others
solve a linear system [1]_. With it these are 6,000 and 280,000.

References
----------
.. [1] K. Scheinberg, "An efficient implementation of an active set method for SVMs", JMLR 7 (2006).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dhsk.arrays import Floats, Indices

_FEWEST_STEPS: Final = 2000
_STEPS_EACH: Final = 4
"""Steps of two variables between Newton steps: so many, and so many for each variable. Most
problems have ended by then."""

_STEP_COST: Final = 8.0
_NEWTON_COST: Final = 1e5
"""Time of a step of two variables for each variable, and of a Newton step beside its products and
its factor, as the number of their operations in that time."""

_RIDGE: Final = 2.0 / 3.0
"""Power of the roundoff of K that is added to the diagonal, as a share of its mean. A step along
which a matrix of low rank is flat is a long one, then, and ends at a bound."""


def steps_between(n: int) -> int:
    """Number of steps of two variables, of n, after which Newton steps are tried."""
    return max(_FEWEST_STEPS, _STEPS_EACH * n)


def newton_steps(
    K: NDArray[Any],
    bounds: tuple[Floats, Floats],
    b: Floats,
    f: Floats,
    zone: float,
    n_all: int | None = None,
) -> int:
    """Improve b in place by Newton steps in the free coefficients; return their number.

    A step that meets a bound ends there, and the next one is in the coefficients that are left. The
    last one meets none; or they end when they have taken as long as the steps of two variables
    before them. Arguments are those of `dhsk.solvers.smo.ascend`, of all variables or the free ones
    of `n_all`.
    """
    n, n_all = len(b), n_all or len(b)
    steps, left = 0, _STEP_COST * n_all * steps_between(n_all)
    whole = False
    while not whole:
        low, high = _bounds_of_sign(bounds, b) if zone > 0.0 else bounds
        free = np.flatnonzero((low < b) & (b < high))
        left -= _NEWTON_COST + len(free) ** 3 / 3 + 2.0 * len(free) * n
        if len(free) < 2 or left < 0.0:
            break
        step = _newton_step(K, free, f[free] - zone * np.sign(b[free]))
        if step is None:
            break
        ends = np.where(step > 0.0, high[free], low[free])
        shares = np.divide(ends - b[free], step, out=np.full(len(step), np.inf), where=step != 0.0)
        share, first = min(1.0, float(shares.min())), int(shares.argmin())
        before = b[free]
        b[free] = np.clip(before + share * step, low[free], high[free])
        whole = share == 1.0
        if not whole:
            b[free[first]] = ends[first]
        f -= (b[free] - before) @ K[free, :n]
        steps += 1
    return steps


def _bounds_of_sign(bounds: tuple[Floats, Floats], b: Floats) -> tuple[Floats, Floats]:
    """Bounds between which coefficients keep their sign; those that are 0 stay so."""
    low, high = bounds
    low = np.where(b > 0.0, np.maximum(low, 0.0), np.where(b < 0.0, low, 0.0))
    high = np.where(b < 0.0, np.minimum(high, 0.0), np.where(b > 0.0, high, 0.0))
    return low, high


def _newton_step(K: NDArray[Any], free: Indices, gradient: Floats) -> Floats | None:
    """Step to where the gradients of coefficients of given sum are equal; None if there is none."""
    own = K[np.ix_(free, free)].astype(np.float64)
    reduced = own[1:, 1:] - own[1:, :1] - own[:1, 1:] + own[0, 0]  # the first keeps the sum
    n = len(reduced)
    reduced[np.diag_indices(n)] += np.finfo(K.dtype).eps ** _RIDGE * np.trace(reduced) / n
    try:
        factor = cho_factor(reduced, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:  # rounding has left no positive definite matrix
        return None
    found = cho_solve(factor, gradient[1:] - gradient[0], check_finite=False)
    step = np.concatenate([[-found.sum()], found])
    return step if np.isfinite(step).all() else None  # of a matrix at the end of the range
