"""Dual problems of two classes on the same samples, solved and certified.

With b_i = s_i alpha_i, where s are the signs of the classes, the dual of a support vector machine
maximises s'b - b'Kb/2 over the b_i between 0 and s_i box_i whose sum is 0. Its gradient is
f = s - K b. Every fold and every C of a pair of classes is such a problem on the same matrix, with
a box of 0 for each test sample: a column.

Rejected: a submatrix for each fold (its copy costs what its smaller size saves); warm starts along
times (six pairs of digits, seven times and five C: 80,434 steps from the smaller C, 114,690 from
the time before), and folds that start from the solution on all samples (five folds and five C, one
class of 3,000 images against the rest: 0.92 of the steps, and gradients made anew).
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.caching import cached_value
from dhsk.compiled import compiled
from dhsk.solvers.smo import ascend, diagonal_of, rounding_of, settle

MAX_STEPS: Final = 10_000_000
"""Most steps of a column, or 100 a sample if those are more: LIBSVM's limit."""

CHANGES_OF_TASK: Final = 1 << 33
"""Changed entries of a gradient after which a task ends, and another one goes on: its state goes
into the checkpoint. Measured where the matrix is in the cache: 0.8 ns an entry."""

STEPS_OF_TASK: Final = 32
"""Least steps of such a task for each variable, for which computing the matrix again is little."""

LARGEST_SINGLE: Final = 1e30
"""Largest entry of a matrix for which steps in float32 do not overflow."""

_ROWS: Final = 128
"""Rows of the matrix that all columns use before the next ones: they stay in the cache."""


@dataclass(frozen=True)
class Dual:
    """The problems of one pair of classes."""

    sign: Floats
    """1 for the first class, -1 for the second, (n,)."""
    boxes: Floats
    """Upper bounds on alpha, (columns, n); 0 for test samples."""
    chain: int = 1
    """Number of consecutive columns with the same samples and growing boxes."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of columns and of samples."""
        return self.boxes.shape[0], self.boxes.shape[1]

    def bounds(self, column: int) -> tuple[Floats, Floats]:
        """Lower and upper bounds on b, (n,) each."""
        signed = self.sign * self.boxes[column]
        return np.minimum(signed, 0.0), np.maximum(signed, 0.0)

    @cached_value
    def counts(self) -> Indices:
        """Training samples of each class in each column, (columns, 2)."""
        sides = np.stack([self.sign > 0, self.sign < 0], axis=1)
        return np.asarray((self.boxes > 0).astype(np.intp) @ sides.astype(np.intp))

    def trivial(self, column: int) -> bool:
        """Whether a class has no training samples, so that b = 0."""
        return not self.counts[column].all()

    def part(self, chosen: Indices) -> "Dual":
        """Restrict the problems to some variables."""
        return Dual(self.sign[chosen], self.boxes[:, chosen], self.chain)


@dataclass(frozen=True)
class Fit:
    """Solution of one column, with its certificate."""

    support: Indices
    """Indices of the support vectors among the samples, ascending."""
    coef: Floats
    """s_i alpha_i of the support vectors. The decision value is coef' K + intercept, positive for
    the first class."""
    intercept: float
    """LIBSVM's -rho."""
    objective: float
    """Dual objective, the sum of the alphas less half of `norm2`."""
    norm2: float
    """Squared norm of the normal vector in feature space, 1 over the squared margin."""
    violation: float
    """KKT violation over all samples, from a recomputed gradient."""
    gap: float
    """Duality gap relative to the primal objective."""
    steps: int
    seconds: float
    """Steps and time of the solver."""
    converged: bool
    """Whether the violation is at most the tolerance."""
    outside: Floats | None = None
    """Decision values of the samples that the column does not train on, in the order of the
    samples; None where they were not computed on the way."""


def most_steps(n: int) -> int:
    """Most steps of a column of n variables."""
    return max(MAX_STEPS, 100 * n)


class Steps(NamedTuple):
    """Most steps of a column, and of all of them."""

    column: int
    all: int = sys.maxsize

    @classmethod
    def of_task(cls, n: int) -> Self:
        """Most steps of a task on the problems of n variables."""
        return cls(most_steps(n), max(CHANGES_OF_TASK // n, STEPS_OF_TASK * n))


def improve(
    K: NDArray[Any],
    dual: Dual,
    b: Floats,
    f: Floats,
    columns: Sequence[int],
    tol: float,
    steps: Steps | None = None,
) -> Floats:
    """Solve some columns, ascending, in place; return steps and seconds of all, (2, columns).

    K is (n, padded(n)), see `smo.ascend`; b and f are coefficients and gradients, (columns, n). A
    column that is still 0 gets a warm start from the one before in its chain.
    """
    work, diagonal = np.zeros((2, dual.shape[0])), diagonal_of(K)
    limit = steps or Steps(most_steps(dual.shape[1]))
    for column in columns:
        begin, bounds = perf_counter(), dual.bounds(column)
        room = min(limit.column, limit.all - int(work[0].sum()))
        if not room:
            break
        if column % dual.chain and not b[column].any():
            start_from_smaller_box(dual, b, f, column)
            settle(b[column], *bounds)
        count, _ = ascend(K, bounds, b[column], f[column], tol, room, diagonal)
        settle(b[column], *bounds)
        work[:, column] = count, perf_counter() - begin
    return work


def start_from_smaller_box(dual: Dual, b: Floats, f: Floats, column: int) -> None:
    """Warm start: the previous column's solution b, scaled by the best t within this column's box.

    The objective along t b is t s'b - t^2 b'Kb/2.
    """
    before, larger = (b[column - 1], f[column - 1]), (b[column], f[column])
    scale_into_box(dual.sign, dual.boxes[column - 1], dual.boxes[column], before, larger)


@compiled(error_model="numpy")
def scale_into_box(
    sign: Floats,
    small: Floats,
    large: Floats,
    before: tuple[Floats, Floats],
    after: tuple[Floats, Floats],
) -> None:
    """Compiled part of `start_from_smaller_box`; solutions are coefficients and gradients."""
    (b, f), most, linear, norm2 = before, np.inf, 0.0, 0.0
    for i in range(len(sign)):
        linear += sign[i] * b[i]
        norm2 += b[i] * (sign[i] - f[i])
        if small[i] > 0:
            most = min(most, large[i] / small[i])
    if linear == 0.0 or most < 1.0:  # nothing to start from, or a smaller box
        return
    scale = min(max(linear / norm2, 0.0), most) if norm2 > 0 else most
    for i in range(len(sign)):
        signed = sign[i] * large[i]
        after[0][i] = min(max(scale * b[i], min(signed, 0.0)), max(signed, 0.0))
        after[1][i] = sign[i] - scale * (sign[i] - f[i])


def gradient(K: NDArray[Any], dual: Dual, b: Floats) -> Floats:
    """Gradients s - K b of all columns, (columns, n), recomputed in float64.

    A BLAS may sum in another order where there are more columns, or on another processor. Here each
    column is summed in the order of its own coefficients.
    """
    f = np.broadcast_to(dual.sign, b.shape).copy()
    subtract_products(K, b, f)
    return f


def differences(K: NDArray[Any], linear: Floats, b: Floats) -> Floats:
    """What linear - K b is for one column, (n,), as of `gradient`."""
    f = linear.astype(np.float64)
    subtract_products(K, b[None], f[None])
    return f


@compiled(error_model="numpy")
def subtract_products(K: NDArray[Any], b: Floats, f: Floats) -> None:
    """Subtract K b from f, for each column, by the rows of its coefficients, four at a time.

    Measured on 1,000 samples and 25 columns, a third of them not 0: 0.7 of the time of one matrix
    product in float64; in float32, whose rows are converted where they are used, 0.4.
    """
    columns, n = f.shape
    for first in range(0, n, _ROWS):
        for c in range(columns):
            own, coef = f[c], b[c]
            used = first + np.flatnonzero(coef[first : first + _ROWS])
            fours = len(used) // 4 * 4
            for g in range(0, fours, 4):
                h, i, j, k = used[g], used[g + 1], used[g + 2], used[g + 3]
                s, t, u, v = coef[h], coef[i], coef[j], coef[k]
                for m in range(n):
                    own[m] -= s * K[h, m] + t * K[i, m] + u * K[j, m] + v * K[k, m]
            for h in used[fours:]:
                for m in range(n):
                    own[m] -= coef[h] * K[h, m]


def certify(dual: Dual, b: Floats, f: Floats, work: Floats, tol: float) -> list[Fit]:
    """Certify each column, from coefficients b and recomputed gradients f, (columns, n).

    work are steps and seconds, (2, columns). A column has converged if its violation is at most
    tol. Coefficients within rounding of a bound are set to it, in place.
    """
    fits = []
    for own, box, gradient_of_own, spent in zip(b, dual.boxes, f, work.T, strict=True):
        _settle_in_box(dual.sign, box, own)
        numbers = certificate(dual.sign, box, own, gradient_of_own)
        fits.append(fit_of(own, numbers, int(spent[0]), float(spent[1]), tol))
    return fits


@compiled(error_model="numpy")
def _settle_in_box(sign: Floats, box: Floats, b: Floats) -> None:
    """Compiled part of `certify`: numpy takes longer for the bounds of a small problem."""
    signed = sign * box
    settle(b, np.minimum(signed, 0.0), np.maximum(signed, 0.0))


def violation_and_intercept(dual: Dual, column: int, b: Floats, f: Floats) -> tuple[float, float]:
    """KKT violation of a column, and LIBSVM's intercept, from its coefficients and gradient, (n,).

    The intercept is the mean gradient of the free coefficients, or without any the middle of the
    interval that the others allow. If only one class has samples it is 1 for the first and -1 for
    the second.
    """
    violation, intercept = judge(dual.sign, dual.boxes[column], b, f)
    return float(violation), float(intercept)


def unfinished(dual: Dual, b: Floats, f: Floats, tol: float, entry: float = 0.0) -> list[int]:
    """Indices of the columns whose violation is above a tolerance, and above rounding.

    `entry` is the largest entry of the matrix, from which rounding errors follow.
    """
    sizes = zip(np.abs(f).max(axis=1).tolist(), np.abs(b).sum(axis=1).tolist(), strict=True)
    least = np.array([max(tol, rounding_of(largest, entry, size)) for largest, size in sizes])
    return [int(c) for c in np.flatnonzero(violations(dual, b, f) > least)]


def violations(dual: Dual, b: Floats, f: Floats) -> Floats:
    """KKT violations of all columns, (columns,), as of `violation_and_intercept`."""
    signed = dual.sign * dual.boxes
    highest = np.where(b < np.maximum(signed, 0.0), f, -np.inf).max(axis=1)
    lowest = np.where(b > np.minimum(signed, 0.0), f, np.inf).min(axis=1)
    return np.where(dual.counts.all(axis=1), np.maximum(highest - lowest, 0.0), 0.0)


def least_violation(b: Floats, f: Floats, tol: float, entry: float) -> float:
    """Violation to which a column can be solved: the tolerance, or rounding if that is more."""
    return max(tol, rounding_of(np.abs(f).max(), entry, np.abs(b).sum()))


def fit_of(b: Floats, numbers: Floats, steps: int, seconds: float, tol: float) -> Fit:
    """Fit of coefficients b, (n,), with the numbers of `certificate`."""
    intercept, objective, norm2, violation, gap = numbers.tolist()
    support = b.nonzero()[0]
    return Fit(
        support=support,
        coef=b[support],
        intercept=intercept,
        objective=objective,
        norm2=norm2,
        violation=violation,
        gap=gap,
        steps=steps,
        seconds=seconds,
        converged=violation <= tol,
    )


@compiled(error_model="numpy")
def certificate(sign: Floats, box: Floats, b: Floats, f: Floats) -> Floats:
    """Intercept, dual objective, squared norm of the normal vector, violation and gap, (5,)."""
    violation, intercept = judge(sign, box, b, f)
    norm2, objective, loss = objective_of(sign, box, b, f, intercept)
    primal = norm2 / 2 + loss
    gap = (primal - objective) / primal if primal > 0 else 0.0
    return np.array([intercept, objective, norm2, violation, gap])


@compiled(error_model="numpy")
def judge(sign: Floats, box: Floats, b: Floats, f: Floats) -> tuple[float, float]:
    """Compiled part of `violation_and_intercept`."""
    highest, lowest, total, free = -np.inf, np.inf, 0.0, 0
    first, second = 0.0, 0.0
    for i in range(len(sign)):
        if box[i] > 0.0:
            first, second = max(first, sign[i]), min(second, sign[i])
        signed = sign[i] * box[i]
        grows, shrinks = b[i] < max(signed, 0.0), b[i] > min(signed, 0.0)
        if grows:
            highest = max(highest, f[i])
        if shrinks:
            lowest = min(lowest, f[i])
        if grows and shrinks:
            total, free = total + f[i], free + 1
    if not second < 0.0 < first:
        return 0.0, first + second  # of samples of one class, or of none
    return max(0.0, highest - lowest), total / free if free else (highest + lowest) / 2


@compiled(error_model="numpy")
def objective_of(
    sign: Floats, box: Floats, b: Floats, f: Floats, intercept: float
) -> tuple[float, float, float]:
    """Squared norm of the normal vector, dual objective, and C times the hinge losses."""
    norm2, objective, loss = 0.0, 0.0, 0.0
    for i in range(len(sign)):
        norm2 += b[i] * (sign[i] - f[i])
        objective += b[i] * (sign[i] + f[i])
        loss += box[i] * max(sign[i] * (f[i] - intercept), 0.0)
    return norm2, objective / 2, loss
