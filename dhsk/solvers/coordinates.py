"""Problems of a linear kernel, solved one coefficient at a time on their normal vector.

Where the entries of the matrix are inner products of rows, K = X X', the normal vector w = X'b
gives the gradient of any sample for the entries of its row: f_i = s_i - x_i w. So a step takes the
optimum of one coefficient and changes w by a row; samples that stay at a bound are left out until
all others are solved [1]_. No entry of the matrix is computed.

That is for problems without an intercept. With one the sum of the coefficients is 0, for which the
steps have a multiplier t and a penalty: they solve the problem of the fixed intercept
t + penalty * sum. The sum falls as the intercept grows, and its zero is found by secants, three or
four solutions of which each starts from the one before.

Rejected: a constant feature (its intercept is shrunk, and is not LIBSVM's).

References
----------
.. [1] C.-J. Hsieh et al., "A dual coordinate descent method for large-scale linear SVM", ICML 2008,
   algorithm 3.
"""

from time import perf_counter
from typing import Any, Final, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload
from numpy.typing import NDArray

from dhsk.arrays import ROWS, Floats, Indices, Rows, blocks
from dhsk.compiled import compiled
from dhsk.solvers.dual import (
    Dual,
    Fit,
    certify,
    start_from_smaller_box,
    unfinished,
    violation_and_intercept,
)
from dhsk.solvers.smo import settle
from dhsk.solvers.whole import BegunPair

ENTRIES_OF_TASK: Final = 1 << 33
"""Entries of rows after which a task ends, and another one goes on: some ten seconds."""

LOOK_ENTRIES: Final = 10
"""Entries of a row that take as long as all else of a look at a sample."""

STEPS: Final = 500
"""Steps of a column for each sample after which others go on. Measured: 15 to 60 on 39,774 recipes
of ten words, 130 and 300 on tables of categories; on 20 numeric columns of which none tells the
classes apart 500 are not enough."""

SOLUTIONS: Final = 30
"""Most intercepts that are tried for a column."""

SHARE: Final = 0.5
"""Violation to which a problem of a fixed intercept is solved, as a share of the tolerance."""

SUM_SHARE: Final = 0.1
"""Change of a gradient that a sum which is not 0 may hide, as a share of the tolerance."""

_SEED: Final = 88172645463325252
"""State of the generator that orders the samples of a sweep: G. Marsaglia, "Xorshift RNGs", Journal
of Statistical Software 8 (2003)."""

_Entries: TypeAlias = NDArray[Any] | tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
"""Dense rows, or row pointers, columns and values."""


class Coordinates:
    """Solves the problems of some rows, (n, dim), one column after the other, from what is begun.

    `tol` is the tolerance of the KKT violation.
    """

    def __init__(self, rows: Rows, dual: Dual, tol: float, begun: BegunPair | None = None) -> None:
        self._rows: Any = rows
        self._dual, self._tol = dual, tol
        self.begun = BegunPair.of(dual) if begun is None else begun.copy()
        self._entries = _entries_of(rows)
        self._norms2 = _norms2(rows)
        self._most = STEPS * dual.shape[1]
        entries: Any = self._rows.size if isinstance(rows, np.ndarray) else rows.nnz
        each = LOOK_ENTRIES + int(entries) // max(1, dual.shape[1])
        self._looks = max(dual.shape[1], ENTRIES_OF_TASK // each)
        """How many samples the task may still look at."""
        self._ended: set[int] = set()
        """Columns that this task has solved or given up, and not only begun."""

    def solve(self) -> bool:
        """Solve all columns, or make the steps of a task; whether all are solved."""
        for c in self._left:
            if self._looks <= 0:
                break
            begin = perf_counter()
            if self.begun.work[0, c] < self._most:
                self._solve(c)
            self.begun.work[1, c] += perf_counter() - begin
            if self._looks > 0 or self.begun.work[0, c] >= self._most:
                self._ended.add(c)
        return not self._left

    @property
    def is_tired(self) -> bool:
        """Whether more steps of this kind are not worth while in what is left."""
        return self._ended.issuperset(self._left)

    @property
    def fits(self) -> list[Fit]:
        """The fit of each column."""
        return certify(self._dual, self.begun.b, self.begun.f, self.begun.work, self._tol)

    @property
    def _left(self) -> list[int]:
        """Columns that are not solved."""
        entry = float(self._norms2.max())
        return unfinished(self._dual, self.begun.b, self.begun.f, self._tol, entry)

    def _start(self, c: int) -> float:
        """Begin from the solution of a smaller C, or of the same C in the fold before.

        Returns its intercept.
        """
        b, f, chain = self.begun.b, self.begun.f, self._dual.chain
        before = c - 1 if c % chain else c - chain
        if b[c].any() or before < 0:
            return self._intercept(c)
        if c % chain:
            start_from_smaller_box(self._dual, b, f, c)
        else:
            np.clip(b[before], *self._dual.bounds(c), out=b[c])
        return self._intercept(before)

    def _intercept(self, c: int) -> float:
        """Intercept that goes with the coefficients of a column."""
        found = violation_and_intercept(self._dual, c, self.begun.b[c], self.begun.f[c])[1]
        return found if np.isfinite(found) else 0.0

    def _solve(self, c: int) -> None:
        """Solve a column, or go as far as the task may."""
        intercept, b, bounds = self._start(c), self.begun.b[c], self._dual.bounds(c)
        used = np.flatnonzero(self._dual.boxes[c])
        penalty = float(self._norms2[used].mean()) or 1.0
        normal = _normal_vector(self._rows, b)
        problem = self._norms2, self._dual.sign, *bounds
        state, tried = np.array([intercept, b.sum()]), _Intercepts()
        least = SUM_SHARE * self._tol / float(self._norms2.max() or 1.0)
        for number in range(SOLUTIONS):
            left = self._most - int(self.begun.work[0, c])
            limits = penalty, SHARE * self._tol, self._looks, left, _SEED + number
            looks, steps = _ascend(self._entries, problem, used, (b, normal, state), limits)
            self._looks -= looks
            self.begun.work[0, c] += steps
            intercept, total = float(state[0] + penalty * state[1]), float(state[1])
            if self._looks <= 0 or abs(total) <= least or self.begun.work[0, c] >= self._most:
                break
            state[0] = tried.next(intercept, total, penalty)
        _balance(b, *bounds)
        settle(b, *bounds)
        self.begun.f[c] = self._dual.sign - _products(self._rows, _normal_vector(self._rows, b))


class _Intercepts:
    """Intercepts that were tried, and the sums of the coefficients, which fall as they grow."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._low, self._high = -np.inf, np.inf

    def next(self, intercept: float, total: float, penalty: float) -> float:
        """Where the sum is expected to be 0."""
        if total > 0:
            self._low = max(self._low, intercept)
        else:
            self._high = min(self._high, intercept)
        found, before = intercept + penalty * total, self._last
        self._last = intercept, total
        if before is not None and (total - before[1]) * (intercept - before[0]) < 0:
            found = intercept - total * (intercept - before[0]) / (total - before[1])
        if not self._low < found < self._high:
            inside = np.isfinite(self._low) and np.isfinite(self._high)
            found = (self._low + self._high) / 2 if inside else intercept + penalty * total
        return found


def _balance(b: Floats, lower: Floats, upper: Floats) -> None:
    """Change coefficients so that their sum is 0, in place: few of them, within their bounds."""
    total = float(b.sum())
    room = b - lower if total > 0 else b - upper
    free = (b > lower) & (b < upper)
    for some in (free, ~free):
        places = np.flatnonzero(some)
        for i in places[np.argsort(-np.abs(room[places]), kind="stable")]:
            step = min(total, room[i]) if total > 0 else max(total, room[i])
            b[i] -= step
            total -= step
            if total == 0.0:
                return


# Rows


def _entries_of(rows: Any) -> _Entries:
    """Rows as the compiled functions take them."""
    if isinstance(rows, np.ndarray):
        return np.ascontiguousarray(rows)
    return rows.indptr, rows.indices, rows.data


def _normal_vector(rows: Any, b: Floats) -> Floats:
    """Sum of the rows times coefficients, (dim,), in float64: of few dense rows at a time."""
    if not isinstance(rows, np.ndarray):
        return np.asarray(rows.T @ b, np.float64)
    found = np.zeros(rows.shape[1])
    for some in blocks(len(rows), ROWS):
        found += b[some] @ rows[some]
    return found


def _products(rows: Any, w: Floats) -> Floats:
    """Inner products of the rows with w, (n,), in float64."""
    if not isinstance(rows, np.ndarray):
        return np.asarray(rows @ w, np.float64)
    return np.concatenate([rows[some] @ w for some in blocks(len(rows), ROWS)])


def _norms2(rows: Any) -> Floats:
    """Squared lengths of rows."""
    if isinstance(rows, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()


def _product(rows: _Entries, i: int, w: Floats) -> float:
    """Inner product of a row with w."""
    return (_of_sparse if isinstance(rows, tuple) else _of_dense)(rows, i, w)


def _of_sparse(rows: Any, i: int, w: Floats) -> float:
    starts, columns, values = rows
    found = 0.0
    for place in range(starts[i], starts[i + 1]):
        found += values[place] * w[columns[place]]
    return found


def _of_dense(rows: Any, i: int, w: Floats) -> float:
    found = 0.0
    for k in range(len(w)):
        found += rows[i, k] * w[k]
    return found


def _add(rows: _Entries, i: int, step: float, w: Floats) -> None:
    """Add a multiple of a row to w."""
    (_add_sparse if isinstance(rows, tuple) else _add_dense)(rows, i, step, w)


def _add_sparse(rows: Any, i: int, step: float, w: Floats) -> None:
    starts, columns, values = rows
    for place in range(starts[i], starts[i + 1]):
        w[columns[place]] += step * values[place]


def _add_dense(rows: Any, i: int, step: float, w: Floats) -> None:
    for k in range(len(w)):
        w[k] += step * rows[i, k]


_FAST: Final[Any] = {"fastmath": {"reassoc"}}
"""Sums in any order: without it no vectors are used."""


@overload(_product, jit_options=_FAST, strict=False)
def _product_of(rows: Any, _i: Any, _w: Any) -> Any:
    """Compiled code of `_product`, by the type of the rows."""
    return _of_sparse if isinstance(rows, types.BaseTuple) else _of_dense


@overload(_add, jit_options=_FAST, strict=False)
def _add_of(rows: Any, _i: Any, _step: Any, _w: Any) -> Any:
    """Compiled code of `_add`, by the type of the rows."""
    return _add_sparse if isinstance(rows, types.BaseTuple) else _add_dense


# Steps


@compiled(error_model="numpy")
def _ascend(
    rows: _Entries,
    problem: tuple[Floats, Floats, Floats, Floats],
    order: Indices,
    found: tuple[Floats, Floats, Floats],
    limits: tuple[float, float, int, int, int],
) -> tuple[int, int]:
    """Sweep over the samples of `order` until no violation is above a tolerance, in place.

    The problem are squared lengths of rows, signs and bounds; `found` the coefficients, the normal
    vector, and multiplier and sum of the coefficients; `limits` the penalty, the tolerance, the
    most looks and steps, about, and the seed. Returns the numbers of looks and of steps.
    """
    (norms2, sign, lower, upper), (b, w, state) = problem, found
    (penalty, tol, most_looks, most_steps, seed), looks, steps = limits, 0, 0
    active, random = len(order), np.uint64(seed)
    most, least = np.inf, -np.inf  # of the sweep before
    while looks < most_looks and steps < most_steps:
        random = _shuffle(order[:active], random)
        highest, lowest, place, looks = 0.0, 0.0, 0, looks + active
        while place < active:
            i = order[place]
            g = sign[i] - _product(rows, i, w) - state[0] - penalty * state[1]
            grows, shrinks = b[i] < upper[i], b[i] > lower[i]
            if (not shrinks and g < least) or (not grows and g > most):
                active -= 1
                order[place], order[active] = order[active], i
                continue
            place += 1
            if (g > 0.0 and not grows) or (g < 0.0 and not shrinks):
                continue
            highest, lowest = max(highest, g), min(lowest, g)
            new = min(max(b[i] + g / (norms2[i] + penalty), lower[i]), upper[i])
            step = new - b[i]
            if step != 0.0:
                b[i] = new
                state[1] += step
                _add(rows, i, step, w)
                steps += 1
        most = highest if highest > 0.0 else np.inf
        least = lowest if lowest < 0.0 else -np.inf
        if highest - lowest <= tol:
            if active == len(order):
                break
            active, most, least = len(order), np.inf, -np.inf
    return looks, steps


@compiled(error_model="numpy")
def _shuffle(order: Indices, random: Any) -> Any:
    """Put samples in a random order, in place; the next state of the generator."""
    for k in range(len(order)):
        random ^= random << np.uint64(13)
        random ^= random >> np.uint64(7)
        random ^= random << np.uint64(17)
        left = np.uint64(len(order) - k)
        other = k + np.int64((random >> np.uint64(32)) * left >> np.uint64(32))
        order[k], order[other] = order[other], order[k]
    return random
