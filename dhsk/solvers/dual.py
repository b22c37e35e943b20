"""Dual problems of two classes: several boxes on the same samples, solved and certified.

With b_i = s_i alpha_i, s the signs of the classes, the dual of a support vector machine is to
maximise s'b - b'Kb/2 over the b_i between 0 and s_i box_i whose sum is 0, and its gradient is
f = s - K b. Of one pair of classes every fold and every C is such a problem on the same matrix,
with a box of 0 where a sample is held out: a column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices, blocks
from dhsk.solvers.smo import ascend, rounding_of

MAX_STEPS: Final = 10_000_000
"""Steps after which a solution that has not converged is given up, or 100 a sample: LIBSVM's."""

_ROWS: Final = 256
"""Rows of the matrix that are brought to float64 at a time."""


@dataclass(frozen=True)
class Dual:
    """The problems of one pair of classes.

    Attributes
    ----------
    sign
        1 for the first class, -1 for the second, (n,).
    boxes
        Upper bounds of alpha, one row a column, (columns, n); 0 for samples that are held out.
    chain
        Columns that follow one another with the same samples and growing boxes.
    """

    sign: Floats
    boxes: Floats
    chain: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """Columns and samples."""
        return self.boxes.shape[0], self.boxes.shape[1]

    def bounds(self, column: int) -> tuple[Floats, Floats]:
        """Least and greatest values of b, (n,) each."""
        signed = self.sign * self.boxes[column]
        return np.minimum(signed, 0.0), np.maximum(signed, 0.0)

    def trivial(self, column: int) -> bool:
        """Whether one of the classes has no samples: then b = 0."""
        allowed = self.boxes[column] > 0
        return not (allowed & (self.sign > 0)).any() or not (allowed & (self.sign < 0)).any()

    def part(self, chosen: Indices) -> "Dual":
        """The same problems in some of the variables."""
        return Dual(self.sign[chosen], self.boxes[:, chosen], self.chain)


@dataclass(frozen=True)
class Fit:
    """Solution of one column, with what proves it.

    Attributes
    ----------
    support
        Which of the samples have a coefficient, ascending.
    coef
        Their s_i alpha_i: the decision is coef' K + intercept, above 0 for the first class.
    intercept
        As LIBSVM's -rho.
    objective
        Dual objective, the sum of the alphas less half of `norm2`.
    norm2
        Squared length of the normal vector in feature space, 1 over the squared margin.
    violation
        KKT violation over all samples, from a gradient computed anew.
    gap
        Primal less dual objective, as a part of the primal.
    steps, seconds
        Of the solver.
    converged
        Whether the violation is at most the tolerance.
    """

    support: Indices
    coef: Floats
    intercept: float
    objective: float
    norm2: float
    violation: float
    gap: float
    steps: int
    seconds: float
    converged: bool


def improve(
    K: NDArray[Any],
    dual: Dual,
    b: Floats,
    f: Floats,
    columns: Sequence[int],
    tol: float,
    most: int | None = None,
) -> Floats:
    """Solve columns in place; one that is still 0 starts from the one before in its chain.

    Parameters
    ----------
    K
        Matrix, (n, padded(n)), see `smo.ascend`.
    dual
        The problems.
    b, f
        Coefficients and gradients, (columns, n).
    columns
        Which to solve, ascending.
    tol
        Greatest violation.
    most
        Steps of a column at most; None for `MAX_STEPS`, or 100 a sample.

    Returns
    -------
    Floats
        Steps and seconds of each column, (2, columns).
    """
    work = np.zeros((2, dual.shape[0]))
    most = max(MAX_STEPS, 100 * dual.shape[1]) if most is None else most
    for column in columns:
        begin = perf_counter()
        if column % dual.chain and not b[column].any():
            _start_from_smaller_box(dual, b, f, column)
        lower, upper = dual.bounds(column)
        steps, _ = ascend(K, lower, upper, b[column], f[column], tol, most)
        work[:, column] = steps, perf_counter() - begin
    return work


def _start_from_smaller_box(dual: Dual, b: Floats, f: Floats, column: int) -> None:
    """Scale the solution of the column before by what is best for this one, within its box.

    The objective along t b is t s'b - t^2 b'Kb/2.
    """
    before = b[column - 1]
    smaller, larger = dual.boxes[column - 1], dual.boxes[column]
    used = smaller > 0
    if not before.any() or not (larger[used] >= smaller[used]).all():
        return
    norm2 = before @ (dual.sign - f[column - 1])
    most = (larger[used] / smaller[used]).min()
    best = dual.sign @ before / norm2 if norm2 > 0 else most
    scale = min(max(best, 0.0), most)
    lower, upper = dual.bounds(column)
    b[column] = np.clip(scale * before, lower, upper)
    f[column] = dual.sign - scale * (dual.sign - f[column - 1])


def gradient(K: NDArray[Any], dual: Dual, b: Floats) -> Floats:
    """Gradients s - K b of all columns, computed anew in float64.

    Parameters
    ----------
    K
        Symmetric matrix, (n, n or more).
    dual
        The problems.
    b
        Coefficients, (columns, n).

    Returns
    -------
    Floats
        (columns, n).
    """
    n = dual.shape[1]
    f = np.broadcast_to(dual.sign, b.shape).copy()
    used = np.flatnonzero(b.any(axis=0))
    for part in blocks(len(used), _ROWS):
        rows = used[part]
        f -= b[:, rows] @ K[rows, :n].astype(np.float64, copy=False)
    return f


def certify(dual: Dual, b: Floats, f: Floats, work: Floats, tol: float) -> list[Fit]:
    """Say of each column what its solution is worth.

    Parameters
    ----------
    dual
        The problems.
    b, f
        Coefficients and their exact gradients, (columns, n).
    work
        Steps and seconds of the solver, (2, columns).
    tol
        Greatest violation of a solution that counts as converged.

    Returns
    -------
    list of Fit
        One for each column.
    """
    return [_certify(dual, c, b[c], f[c], work[:, c], tol) for c in range(dual.shape[0])]


def violation_and_intercept(dual: Dual, column: int, b: Floats, f: Floats) -> tuple[float, float]:
    """KKT violation of a column, and LIBSVM's intercept.

    Parameters
    ----------
    dual
        The problems.
    column
        Which of them.
    b, f
        Its coefficients and gradient, (n,).

    Returns
    -------
    float
        0 at the exact optimum.
    float
        Mean gradient of the coefficients within their bounds, or if there are none the middle of
        what the others allow. Where one class alone has samples, 1 for the first and -1 for the
        second: what decides for it at no cost, LIBSVM's choice.
    """
    if dual.trivial(column):
        only = dual.sign[dual.boxes[column] > 0]
        return 0.0, float(only[0]) if only.size else 0.0
    lower, upper = dual.bounds(column)
    grow, shrink = b < upper, b > lower
    highest = f[grow].max(initial=-np.inf)
    lowest = f[shrink].min(initial=np.inf)
    free = grow & shrink
    intercept = f[free].mean() if free.any() else (highest + lowest) / 2
    return max(0.0, float(highest - lowest)), float(intercept)


def unfinished(dual: Dual, b: Floats, f: Floats, tol: float, entry: float = 0.0) -> list[int]:
    """Columns whose violation is above a tolerance, and above rounding.

    Parameters
    ----------
    dual
        The problems.
    b, f
        Coefficients and gradients, (columns, n).
    tol
        The tolerance.
    entry
        Largest entry of the matrix, which decides what rounding leaves.

    Returns
    -------
    list of int
        Their numbers, ascending.
    """
    return [
        c
        for c in range(len(b))
        if violation_and_intercept(dual, c, b[c], f[c])[0] > least_violation(b[c], f[c], tol, entry)
    ]


def least_violation(b: Floats, f: Floats, tol: float, entry: float) -> float:
    """Violation down to which to solve a column: a tolerance, or what rounding leaves if more.

    Parameters
    ----------
    b, f
        Its coefficients and gradient, (n,).
    tol
        The tolerance.
    entry
        Largest entry of the matrix.

    Returns
    -------
    float
        The violation.
    """
    return max(tol, rounding_of(np.abs(f).max(), entry, np.abs(b).sum()))


def _certify(dual: Dual, column: int, b: Floats, f: Floats, work: Floats, tol: float) -> Fit:
    violation, intercept = violation_and_intercept(dual, column, b, f)
    norm2 = float(b @ (dual.sign - f))
    objective = float(b @ (dual.sign + f)) / 2
    slack = np.maximum(dual.sign * (f - intercept), 0.0)
    primal = norm2 / 2 + float(dual.boxes[column] @ slack)
    support = np.flatnonzero(b)
    return Fit(
        support=support,
        coef=b[support].copy(),
        intercept=intercept,
        objective=objective,
        norm2=norm2,
        violation=violation,
        gap=(primal - objective) / primal if primal > 0 else 0.0,
        steps=int(work[0]),
        seconds=float(work[1]),
        converged=violation <= tol,
    )
