"""Sequential minimal optimisation of one dual problem whose matrix is in memory.

The problem is to maximise s'b - b'Kb/2 over lower <= b <= upper with a constant sum of b. For two
classes s is +1 and -1, and b_i = s_i alpha_i. Other s and bounds give the one-class SVM, the
smallest ball, and subproblems of a problem too large for memory. Regression also loses
zone |b_i|: there s is y, and the b_i are the differences of LIBSVM's two coefficients of a sample,
at most one of which is not 0. So N variables do for its 2N.

Rejected: LIBSVM, which takes neither a linear term nor a start, and float64 alone (its 6,867 steps
on 2,765 samples take 42 ms, here 16); shrinking (working sets do more).
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats
from dhsk.compiled import assign, compiled
from dhsk.solvers.newton import newton_steps, steps_between
from dhsk.solvers.simd import BLOCK, SMALLEST_CURVATURE, gain_of_block, update_block

_EPS: Final = float(np.finfo(np.float64).eps)

SINGLE_TOLERANCE: Final = 1e-4
"""Violation down to which steps are made in float32; below it they follow rounding errors."""

_SINGLE_ROUNDINGS: Final = 64 * float(np.finfo(np.float32).eps)
"""Least violation to which gradients are updated in float32, for a largest gradient of 1: an update
leaves half a unit in the last place, and those of 10,000 steps some 60."""

_ROUNDINGS: Final = 16.0
"""Roundings of the sum of absolute coefficients within which a coefficient is at its bound. Weights
times C leave 3 of them between the sums of two classes that are equal in exact arithmetic; the rest
is for the sums of the steps."""


def padded(n: int) -> int:
    """Length of the arrays of a problem of n variables: a multiple of `simd.BLOCK`."""
    return -(-n // BLOCK) * BLOCK


def matrix_bytes(n: int, dtype: "np.dtype[Any]") -> int:
    """Bytes of the matrix of n variables, with its float32 copy if it is in float64."""
    entry = dtype.itemsize + (4 if dtype.itemsize > 4 else 0)
    return n * padded(n) * entry


def largest_entry(K: NDArray[Any]) -> float:
    """Largest absolute value of the diagonal and the first row, at least 1/4 of that of the matrix.

    For a kernel, no entry exceeds the diagonal. For 1 - (1 - K)/unit, see `dhsk.kernels.stretched`,
    the differences from 1 are half the squared distances in a feature space, over the unit, and no
    distance is more than twice the largest from the first sample.
    """
    largest: float = _largest(np.diagonal(K), K[0, : len(K)])
    return largest


@compiled(error_model="numpy")
def _largest(diagonal: NDArray[Any], row: NDArray[Any]) -> float:
    """Largest absolute value of a diagonal and a row."""
    return float(max(np.abs(diagonal).max(), np.abs(row).max()))


@compiled(error_model="numpy")
def rounding_of(gradient: float, entry: float, size: float) -> float:
    """Violation that rounding alone may leave, below which no step is sure to gain anything.

    gradient is the largest absolute gradient (measured: at 1.5 units in its last place, but not at
    more, steps went on without end), entry the largest absolute entry of the matrix, and size the
    sum of the absolute coefficients.
    """
    return _EPS * (4.0 * gradient + entry * size)


@compiled(error_model="numpy")
def settle(b: Floats, lower: Floats, upper: Floats) -> None:
    """Set the coefficients that are within rounding of a bound to this bound, in place.

    The sum of the coefficients is given, and rounded. Where all would be at their bounds it leaves
    one of them some roundings away, and this one, as if it were free, would decide the intercept.
    The sum changes by no more than its rounding.
    """
    slack = _ROUNDINGS * _EPS * np.abs(b).sum()
    for i in range(len(b)):
        below, above = b[i] - lower[i], upper[i] - b[i]
        if min(below, above) <= slack:
            b[i] = lower[i] if below <= above else upper[i]


def diagonal_of(K: NDArray[Any]) -> Floats:
    """Diagonal of a padded matrix, (padded(n),), with zeros at the end."""
    found = np.zeros(K.shape[1])
    found[: len(K)] = np.diagonal(K)
    return found


def ascend(
    K: NDArray[Any],
    bounds: tuple[Floats, Floats],
    b: Floats,
    f: Floats,
    tol: float,
    max_steps: int,
    diagonal: Floats | None = None,
    zone: float = 0.0,
) -> tuple[int, float]:
    """Improve b in place, two variables a step, until its violation is at most `tol`.

    Each step takes the variable i of the highest gradient that may grow, and the j that may shrink
    with the largest second-order gain [1]_. Working set and stopping criterion are LIBSVM's.

    Parameters
    ----------
    K
        Symmetric matrix, (n, padded(n)), C-ordered, float64 or float32. The entries beyond n are
        never used, but must be finite.
    bounds
        Lower and upper bounds, (n,) each.
    b
        Feasible coefficients, (n,), changed in place.
    f
        Gradient s - K b, (n,), changed in place.
    tol
        Tolerance of the violation: the highest gradient of a variable that may grow less the lowest
        of one that may shrink. If rounding alone leaves more, the steps end there.
    max_steps
        Upper bound on the number of steps.
    diagonal
        `diagonal_of(K)`, if it is known from another problem.
    zone
        What each unit of |b_i| loses: the width of the zone without loss, in regression. The
        gradient stays s - K b.

    Returns
    -------
    int
        Number of steps.
    float
        Remaining violation.

    References
    ----------
    .. [1] R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order
       information for training support vector machines", JMLR 6 (2005), WSS 2 and equation 6.
    """
    if diagonal is None:
        diagonal = diagonal_of(K)
    limits, chunk = (float(tol), float(zone)), steps_between(len(b))
    steps = 0
    while True:
        state = f.astype(type_of_state(K.dtype, f, tol), copy=False)
        own, most = diagonal.astype(state.dtype, copy=False), min(chunk, max_steps - steps)
        done, violation = ascend_in_chunk(K, own, bounds, b, state, limits, most)
        f[:] = state  # the same array in float64
        steps += done
        if done < chunk or steps == max_steps:
            return steps, max(0.0, violation)
        steps = min(max_steps, steps + newton_steps(K, bounds, b, f, zone))


def type_of_state(dtype: "np.dtype[Any]", f: Floats, tol: float) -> "np.dtype[Any]":
    """Type in which a gradient is updated: that of the matrix if its rounding allows."""
    largest = float(np.abs(f).max(initial=0.0))
    allows = tol >= max(SINGLE_TOLERANCE, _SINGLE_ROUNDINGS * largest)
    return np.dtype(np.float32 if dtype == np.float32 and allows else np.float64)


@compiled(error_model="numpy")
def ascend_in_chunk(
    K: NDArray[Any],
    diagonal: Floats,
    bounds: tuple[Floats, Floats],
    b: Floats,
    gradient: Floats,
    limits: tuple[float, float],
    max_steps: int,
) -> tuple[int, float]:
    """Compiled part of `ascend`."""
    state = begin_steps(gradient, K.shape[1], bounds, b, limits[1])
    steps, highest, lowest = _steps(K, diagonal, bounds, b, state, limits, max_steps)
    assign(gradient, state[0])
    return steps, highest - lowest


@compiled(error_model="numpy")
def begin_steps(
    gradient: Floats, length: int, bounds: tuple[Floats, Floats], b: Floats, zone: float
) -> tuple[Floats, Floats, Floats]:
    """State of steps: the gradient, and what `gates` adds to it, each padded to `length`."""
    n, dtype, (lower, upper) = len(b), gradient.dtype, bounds
    f, grow = np.zeros(length, dtype), np.full(length, -np.inf, dtype)
    shrink = np.full(length, np.inf, dtype)
    assign(f[:n], gradient)
    for k in range(n):
        grow[k], shrink[k] = gates(b[k], lower[k], upper[k], zone)
    return f, grow, shrink


@compiled(error_model="numpy")
def gates(b: float, lower: float, upper: float, zone: float) -> tuple[float, float]:
    """What is added to the gradient of a coefficient that grows, and of one that shrinks.

    They are infinite at its bounds, and else what a unit of its absolute value loses.
    """
    grows = zone if b < 0.0 else -zone
    shrinks = -zone if b > 0.0 else zone
    return grows if b < upper else -np.inf, shrinks if b > lower else np.inf


@compiled(error_model="numpy")
def _steps(
    K: NDArray[Any],
    diagonal: Floats,
    bounds: tuple[Floats, Floats],
    b: Floats,
    state: tuple[Floats, Floats, Floats],
    limits: tuple[float, float],
    max_steps: int,
) -> tuple[int, float, float]:
    """Number of steps, and the highest and lowest gradients in the end.

    The state is that of `begin_steps`. Limits are the tolerance and the zone.
    """
    (f, grow, shrink), (tol, zone) = state, limits
    entry, unit = _largest(diagonal, K[0, : len(K)]), 4.0 * np.finfo(f.dtype).eps
    steps, size = 0, np.abs(b).sum()
    largest = np.abs(f).max()
    i, highest = move(f, grow, K[0], K[0], 0.0)
    while i >= 0:
        j, lowest = partner(f, shrink, diagonal, K[i], highest, diagonal[i])
        least = max(tol, rounding_of(largest, entry, size), unit * max(abs(highest), abs(lowest)))
        if j < 0 or highest - lowest <= least or steps == max_steps:
            return steps, highest, lowest
        free = (highest - (f[j] + shrink[j])) / curvature_of(diagonal[i], diagonal[j], K[i, j])
        size -= abs(b[i]) + abs(b[j])
        step = take_step((i, j), free, bounds, b, state, zone)
        size += abs(b[i]) + abs(b[j])
        i, highest = move(f, grow, K[i], K[j], step)
        steps += 1
    return steps, 0.0, 0.0


@compiled(error_model="numpy")
def curvature_of(own: float, other: float, between: float) -> float:
    """Curvature along a step of two variables, from their entries of the matrix."""
    return float(max(own + other - 2.0 * between, SMALLEST_CURVATURE))


@compiled(error_model="numpy")
def take_step(
    pair: tuple[int, int],
    free: float,
    bounds: tuple[Floats, Floats],
    b: Floats,
    state: tuple[Floats, Floats, Floats],
    zone: float,
) -> float:
    """Let a variable grow and one shrink by `free`, or to a bound; return by how much.

    A step ends where a coefficient becomes 0, if its loss changes there.
    """
    (i, j), (lower, upper), (_, grow, shrink) = pair, bounds, state
    end_i = min(upper[i], 0.0) if zone > 0.0 and b[i] < 0.0 else upper[i]
    end_j = max(lower[j], 0.0) if zone > 0.0 and b[j] > 0.0 else lower[j]
    room_i, room_j = end_i - b[i], b[j] - end_j
    step: float = min(free, room_i, room_j)
    # Bounds are reached exactly.
    b[i] = end_i if step == room_i else b[i] + step
    b[j] = end_j if step == room_j else b[j] - step
    for k in (i, j):
        grow[k], shrink[k] = gates(b[k], lower[k], upper[k], zone)
    return step


@compiled(error_model="numpy")
def move(
    f: Floats, grow: Floats, row_i: NDArray[Any], row_j: NDArray[Any], step: float
) -> tuple[int, float]:
    """Update the gradient; return the variable of the highest that may grow, or -1, and that."""
    highest, place = -np.inf, -1
    for start in range(0, f.size, BLOCK):
        found = update_block(f, grow, row_i, row_j, step, start)
        if found > highest:
            highest, place = found, start
    if place >= 0:
        for k in range(place, place + BLOCK):
            if f[k] + grow[k] == highest:
                return k, highest
    return -1, highest


@compiled(error_model="numpy")
def partner(
    f: Floats, shrink: Floats, diagonal: Floats, row: NDArray[Any], highest: float, own: float
) -> tuple[int, float]:
    """Variable of the largest gain that may shrink, or -1, and the lowest gradient of those."""
    best, lowest, place = 0.0, np.inf, -1
    for start in range(0, f.size, BLOCK):
        gain, low = gain_of_block(f, shrink, diagonal, row, highest, own, start)
        if gain > best:
            best, place = gain, start
        lowest = min(lowest, low)
    best, found = 0.0, -1
    if place >= 0:
        for k in range(place, place + BLOCK):
            d = highest - (f[k] + shrink[k])  # rounded as in the block: 0 of the variable itself
            if d > 0.0:  # most are not, in a small problem
                gain = d * d / max(own + diagonal[k] - 2.0 * row[k], SMALLEST_CURVATURE)
                if gain > best:
                    best, found = gain, k
    return found, lowest
