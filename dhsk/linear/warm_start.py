"""Solving from nothing: over a part of the samples first, if there are many."""

from dataclasses import replace
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.linear.checkpoint import State
from dhsk.linear.newton import Newton, Solution, Targets
from dhsk.linear.preconditioner import Factors

_SHARE: Final = 12
"""All samples over those of the part."""

_ROWS: Final = (2048, 32768)
"""Least and most samples of it."""

_TOL: Final = 3e-2
"""Tolerance on it: a looser one left more to do on all samples, on MNIST."""

_PATIENCE: Final = 100
"""Conjugate gradients of a step after which factors pay there."""


def solve_columns(
    newton: Newton, *, seed: int, threads: int, state: State | None = None
) -> tuple[Solution, Factors]:
    """Solve from nothing, over a part of the samples first if there are many.

    Parameters
    ----------
    newton
        The problems.
    seed
        Of the choice of that part.
    threads
        Threads of this process that it may take for the part.
    state
        From `Newton.keep`, to go on from.

    Returns
    -------
    Solution
        Of all samples.
    Factors
        The last ones.
    """
    factors = Factors(newton.columns)
    n, width = newton.Z.n, newton.Z.width
    least, most = _ROWS
    fitting = newton.room // (4 * width * newton.Z.dtype.itemsize)
    count = min(most, n // _SHARE, max(least, fitting))
    if state is not None or count < max(least, 2 * width):
        return newton.solve(factors=factors, state=state), factors
    start = _start(newton, count, seed, threads)
    return newton.solve(start, factors), factors


def _start(newton: Newton, count: int, seed: int, threads: int) -> Floats:
    """Solution over a part of the samples, whose features are let go of with it."""
    n = newton.Z.n
    chosen = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
    Z = newton.Z.part(chosen, threads)
    targets = Targets(newton.targets.codes[chosen], newton.targets.weights[chosen])
    columns = replace(newton.columns, C=newton.columns.C * (n / count))
    tol = max(newton.tol, _TOL)
    small = Newton(Z, targets, columns, newton.loss, tol, newton.room, patience=_PATIENCE)
    return small.solve().coef
