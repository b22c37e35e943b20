"""The hinge loss on features in memory: dual coordinate descent, to a duality gap.

The dual of |w|^2/2 + C sum_i s_i max(0, 1 - y_i w z_i), z having a constant feature 1: maximise
sum_i a_i - |w|^2/2 over 0 <= a_i <= C s_i, where w = sum_i a_i y_i z_i. The gradient by a_i is
-g_i, g_i being y_i w z_i - 1. A step puts one a_i at its best: w changes by a multiple of z_i.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.lowrank.active_rows import SUMS
from dhsk.lowrank.primal import Solution
from dhsk.lowrank.primal_passes import Columns
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.svm.problems import Run
from dhsk.svm.train import Problem

_ROUND: Final = 20
"""Visits of each sample, on average, before all are looked at again and the gap is computed, which
takes three: 5 took up to twice as many in all, on handwritten digits at C from 0.1 to 1,000."""

_ENOUGH: Final = 0.1
"""Part of the violation of all samples below which those that are left gain little more."""

_MOST_ROUNDS: Final = 500

_BYTES: Final = (17, 24)
"""A sample: of each column, and of all together."""


def room_of(n: int, n_columns: int) -> int:
    """Bytes that a solution takes besides the features.

    Parameters
    ----------
    n
        Number of samples.
    n_columns
        Number of columns.
    """
    each, shared = _BYTES
    return n * (each * n_columns + shared)


def solve_hinge(
    Z: NDArray[Any],
    problem: Problem,
    columns: Columns,
    seed: int,
    run: Run,
    report: OnProgress = ignore,
) -> Solution:
    """Minimise |w|^2/2 + C sum_i s_i max(0, 1 - y_i f(z_i)), see `dhsk.lowrank.primal`.

    Follows [1]_, Algorithm 3, but ends by the duality gap: unlike the violation of the optimality
    conditions it says how far the objective is above its least value, and at large C it is small
    long before.

    Parameters
    ----------
    Z
        Features, (N, r), C-ordered, float64 or float32; sums are in float64.
    problem
        Labels and weights, and in `tol` the gap that may be left, as a part of the objective.
    columns
        What is to be told.
    seed
        Of the order in which the samples are taken.
    run
        Runs the columns; in this process.
    report
        Receives progress.

    Returns
    -------
    Solution
        The solution; columns that did not converge say so.

    References
    ----------
    .. [1] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual
       coordinate descent method for large-scale linear SVM", ICML 2008.
    """
    upper, squares = problem.C * problem.weights, _squares(Z)
    used = np.flatnonzero(upper > 0)
    descents = [
        _Descent(
            Z=Z,
            signs=np.where(problem.codes == positive, 1, -1).astype(np.int8),
            upper=upper,
            squares=squares,
            used=used,
            rng=np.random.default_rng([seed, number]),
        )
        for number, positive in enumerate(columns.positive)
    ]
    live, rounds = descents, 0
    while live and rounds < _MOST_ROUNDS:
        done = run(_Descent.round, [(descent,) for descent in live])
        live, rounds = [descent for descent in done if descent.relative > problem.tol], rounds + 1
        share = min((np.log(d.relative) / np.log(problem.tol) for d in live), default=1.0)
        report(Progress("training", int(1000 * share), 1000))
    return _solution(descents, problem.tol)


@dataclass(eq=False)
class _Descent:
    """Descent of one column.

    Attributes
    ----------
    Z
        Features, (N, r).
    signs
        y, (N,).
    upper
        C s, (N,).
    squares
        |z|^2, (N,).
    used
        Samples of weight above 0.
    rng
        Of their order.
    alpha
        a, (N,).
    w
        Coefficients that it gives, the last one of the constant feature, (r + 1,).
    sweeps, visits
        Sweeps so far, and samples that they looked at.
    objective, gap
        Of the primal problem at `w`, and what the dual one is below it.
    """

    Z: NDArray[Any]
    signs: NDArray[np.int8]
    upper: Floats
    squares: Floats
    used: Indices
    rng: np.random.Generator
    alpha: Floats = field(init=False)
    w: Floats = field(init=False)
    sweeps: int = field(default=0, init=False)
    visits: int = field(default=0, init=False)
    objective: float = field(default=np.inf, init=False)
    gap: float = field(default=np.inf, init=False)

    def __post_init__(self) -> None:
        n, width = self.Z.shape
        self.alpha, self.w = np.zeros(n), np.zeros(width + 1)

    @property
    def relative(self) -> float:
        """The gap as a part of the objective."""
        return self.gap / self.objective

    def round(self) -> "_Descent":
        """Sweep over all samples, then over those that may still move, and compute the gap."""
        order, most = self.used.copy(), _ROUND * len(self.used)
        sweeps, visits = _round(
            self.Z, self.signs, self.upper, self.squares, self.alpha, self.w, order, self.rng, most
        )
        self.sweeps += sweeps
        self.visits += visits + 2 * len(order)
        lost, self.gap = _proof(self.Z, self.signs, self.upper, self.alpha, self.used, self.w)
        self.objective = float(self.w @ self.w) / 2 + lost
        return self


def _solution(descents: Sequence[_Descent], tol: float) -> Solution:
    """All columns together."""
    relative = np.array([descent.relative for descent in descents])
    return Solution(
        coef=np.column_stack([descent.w for descent in descents]),
        objective=np.array([descent.objective for descent in descents]),
        gradient_norm=np.full(len(descents), np.nan),
        relative=relative,
        gap=np.array([descent.gap for descent in descents]),
        converged=relative <= tol,
        newton=max(descent.sweeps for descent in descents),
        passes=sum(-(-descent.visits // len(descent.used)) for descent in descents),
    )


@numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=SUMS)
def _decision(row: NDArray[Any], w: Floats) -> float:
    """Compute w z, z being a row and the constant feature."""
    total: float = w[row.size]
    for k in range(row.size):
        total += row[k] * w[k]
    return total


@numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=SUMS)
def _add(w: Floats, factor: float, row: NDArray[Any]) -> None:
    """Add a multiple of z to w."""
    for k in range(row.size):
        w[k] += factor * row[k]
    w[row.size] += factor


@numba.njit(nogil=True, error_model="numpy", cache=True, fastmath=SUMS)
def _squares(Z: NDArray[Any]) -> Floats:
    """|z|^2 of each sample, (N,)."""
    found = np.ones(len(Z))
    for i in range(len(Z)):
        for value in Z[i]:
            found[i] += np.float64(value) ** 2
    return found


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _round(
    Z: NDArray[Any],
    signs: NDArray[np.int8],
    upper: Floats,
    squares: Floats,
    alpha: Floats,
    w: Floats,
    order: Indices,
    rng: np.random.Generator,
    most_visits: int,
) -> tuple[int, int]:
    """Sweep over the samples of `order`, then those that are left; returns sweeps, and visits."""
    left, low, high, enough = len(order), -np.inf, np.inf, 0.0
    sweeps = visits = 0
    while visits < most_visits:
        sweeps, visits = sweeps + 1, visits + left
        left, least, most = _sweep(Z, signs, upper, squares, alpha, w, order[:left], rng, low, high)
        if sweeps == 1:
            enough = _ENOUGH * (most - least)
        if most - least <= enough:
            break
        low, high = least if least < 0 else -np.inf, most if most > 0 else np.inf
    return sweeps, visits


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _sweep(
    Z: NDArray[Any],
    signs: NDArray[np.int8],
    upper: Floats,
    squares: Floats,
    alpha: Floats,
    w: Floats,
    order: Indices,
    rng: np.random.Generator,
    low: float,
    high: float,
) -> tuple[int, float, float]:
    """Put each a_i of some samples at its best, shuffled; `alpha` and `w` are changed in place.

    Samples at a bound whose g is beyond `low` or `high` are left out: the others come to the front
    of `order`. Returns how many these are, and the least and the greatest of their projected g.
    """
    kept, least, most = 0, np.inf, -np.inf
    for place in range(len(order)):
        other = place + int(rng.random() * (len(order) - place))
        order[place], order[other] = order[other], order[place]
        i = order[place]
        g = signs[i] * _decision(Z[i], w) - 1.0
        projected = g
        if alpha[i] == 0.0:
            if g > high:
                continue
            projected = min(g, 0.0)
        elif alpha[i] == upper[i]:
            if g < low:
                continue
            projected = max(g, 0.0)
        order[kept] = i
        kept += 1
        least, most = min(least, projected), max(most, projected)
        if projected != 0.0:
            new = min(max(alpha[i] - g / squares[i], 0.0), upper[i])
            _add(w, (new - alpha[i]) * signs[i], Z[i])
            alpha[i] = new
    return kept, least, most


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _proof(
    Z: NDArray[Any],
    signs: NDArray[np.int8],
    upper: Floats,
    alpha: Floats,
    used: Indices,
    w: Floats,
) -> tuple[float, float]:
    """Compute w anew from `alpha`, in place; returns the losses, and the duality gap.

    The primal objective less the dual one is |w|^2 - sum_i a_i + sum_i C s_i max(0, -g_i), and
    |w|^2 - sum_i a_i = sum_i a_i g_i: of each sample a_i g_i or (a_i - C s_i) g_i, none below 0, so
    that nothing cancels.
    """
    w[:] = 0.0
    for i in used:
        if alpha[i] > 0.0:
            _add(w, alpha[i] * signs[i], Z[i])
    lost = gap = 0.0
    for i in used:
        g = signs[i] * _decision(Z[i], w) - 1.0
        if g > 0.0:
            gap += alpha[i] * g
        else:
            gap += (alpha[i] - upper[i]) * g
            lost -= upper[i] * g
    return lost, gap
