"""Warm start of Newton's method by a fit of a part of the samples."""

from dataclasses import replace
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.linear.newton import Newton, Solution, Targets
from dhsk.linear.preconditioner import Factors
from dhsk.linear.state import State

_SHARE: Final = 12
"""Number of all samples over those of the part, at least."""

_ROWS: Final = (2048, 32768)
"""Least and most samples of the part."""

_TOL: Final = 3e-2
"""Tolerance on the part. Measured: a looser one took longer in total on MNIST."""

_PATIENCE: Final = 100
"""Conjugate gradient iterations of a step above which factors pay, on the part."""


def solve_columns(
    newton: Newton, *, seed: int, threads: int, state: State | None = None
) -> tuple[Solution, Factors]:
    """Solve on a part of the samples first if there are many, then on all; or resume from a state.

    The seed chooses the part, and threads of this process solve on it. The factors are the last
    preconditioner.
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
    """Solution on a part of the samples, whose features are freed on return."""
    n = newton.Z.n
    chosen = np.sort(np.random.default_rng(seed).choice(n, count, replace=False))
    Z = newton.Z.part(chosen, threads)
    targets = Targets(newton.targets.codes[chosen], newton.targets.weights[chosen])
    columns = replace(newton.columns, C=newton.columns.C * (n / count))
    tol = max(newton.tol, _TOL)
    small = Newton(Z, targets, columns, newton.loss, tol, newton.room, patience=_PATIENCE)
    return small.solve().coef
