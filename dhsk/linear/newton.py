"""Newton's method for linear classifiers; every pass over the features serves all problems.

As in LIBLINEAR [1]_ the objective is |w|^2/2 + C sum_i s_i loss(y_i f(z_i)) with f(z) = w z + b,
where b is the coefficient of a constant feature 1 and counts in |w|. The objective is strongly
convex, so its suboptimality is at most half the squared norm of its gradient. This bound is the
certificate of a solution, however it was found.

Rejected: LIBLINEAR itself (one thread, float64, a copy of all features); dual coordinate descent
(random access); the eigenvectors of Z'Z as preconditioner (156 passes on MNIST at k = 2000, the
Hessians 57).

.. [1] R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang and C.-J. Lin, "LIBLINEAR: a library for
   large linear classification", JMLR 9 (2008).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.clock import NO_END
from dhsk.execution.checkpoint import Checkpoint
from dhsk.linear.features import Features, sum_of
from dhsk.linear.losses import Loss
from dhsk.linear.passes import (
    Columns,
    Targets,
    curvature_of,
    curvatures,
    curved,
    gradients,
    slopes,
)
from dhsk.linear.preconditioner import Factors, keys_of
from dhsk.linear.state import KeptSolve, State
from dhsk.progress import OnProgress, Progress, ignore

STEPS: Final = np.array([*2.0 ** np.arange(-12, 0), 0.75, 1.0, 1.25, 1.5, 2.0, 3.0])
"""Step lengths of the line search, whose slopes are all computed in one pass."""

_PATIENCE: Final = 8
_PATIENCE_IN_MEMORY: Final = 16
"""Conjugate gradient iterations of a Newton step above which new factors pay: where passes compute
features, and where these are in memory. Factors take passes, and time besides."""

MOST_NEWTON: Final = 200
_MOST_CONJUGATE: Final = 250
_FORCING: Final = 0.1
"""Relative residual of the conjugate gradients, at most, far from the solution."""

_GOOD_SLOPE: Final = 0.3
"""Slope at the full step relative to that at 0, at most, for the full step to be taken."""

_USUAL_PASSES: Final = 60
_MOST_BY_PASSES: Final = 0.9
"""Passes of a solve, as measured with five classes, and the most of it that they tell."""

_ROUNDING: Final = 8
"""Relative rounding error of the objective, in units of eps."""


@dataclass(frozen=True, eq=False)
class ColumnProofs:
    """Certificates of all columns, (J,) each."""

    objective: Floats
    """Objective."""
    gradient_norm: Floats
    """Norm of its gradient."""
    relative: Floats
    """Gradient norm relative to that at 0; below the tolerance at convergence."""
    gap: Floats
    """Upper bound on the suboptimality: half the squared gradient norm, by strong convexity."""
    converged: NDArray[np.bool_]
    """Whether the tolerance was reached."""


@dataclass(frozen=True, eq=False)
class Solution(ColumnProofs):
    """Coefficients of all columns, with their certificates."""

    coef: Floats
    """w, and b last, (width + 1, J)."""
    newton: int
    """Newton steps."""
    passes: int
    """Passes over the features."""
    stopped: bool = False
    """Whether the time was over, so that it is no final one."""


@dataclass
class Newton:
    """Newton's method on some problems, one a column."""

    Z: Features
    targets: Targets
    columns: Columns
    loss: Loss
    tol: float
    """Tolerance for the gradient relative to that at 0, before `Targets.scale`."""
    room: int
    """Memory for sums of Hessians, in bytes."""
    report: OnProgress = ignore
    steps: KeptSolve = field(default_factory=KeptSolve)
    """Where the state is kept after every step."""
    over: Callable[[], bool] = NO_END
    """Whether the time is over, asked between passes: then the solution is what there is."""
    patience: int = 0
    """Conjugate gradient iterations of a step above which factors are computed; 0: by `Z`."""
    passes: int = field(default=0, init=False)
    cut: bool = field(default=False, init=False)
    """Whether the last direction is one of fewer iterations, as the time was over."""

    def __post_init__(self) -> None:
        """Choose the default patience."""
        in_memory = self.Z.values is not None
        self.patience = self.patience or (_PATIENCE_IN_MEMORY if in_memory else _PATIENCE)

    def solve(
        self,
        start: Floats | None = None,
        factors: Factors | None = None,
        state: State | None = None,
    ) -> Solution:
        """Solve from an initial solution, by default 0, or resume.

        When the time is over, the step that was begun is taken along its direction so far. It is
        not kept: who goes on takes it whole, and ends with the bits of a solve without an end.
        From 0 it takes one iteration at least, as 0 tells no classes apart.

        Parameters
        ----------
        start
            Initial coefficients, (width + 1, J).
        factors
            Initial preconditioner, recomputed in place after slow steps.
        state
            From `steps` of the same problems, with its factors. Resuming gives the same bits if
            `room` is the same.
        """
        factors = Factors(self.columns) if factors is None else factors
        if state is None:
            state = self._begin(start, factors)
            self.steps.keep(state, factors)
        self.passes = state.passes
        while state.live.any() and state.newton < MOST_NEWTON and not self.cut:
            if self.over() and state.V.any():
                break
            if state.conjugate > self.patience:
                self._make(factors, state)
                self.steps.keep(state, factors)
                continue  # a look at the time
            before = _lengths(state.G)
            state.conjugate = self._step(state, factors)
            state.newton += 1
            state.live &= _lengths(state.G) > state.goal
            state.passes = self.passes
            if not self.cut:
                self.steps.keep(state, factors)
            self._tell(state)
        left = _lengths(state.G)
        # A step that is cut may end at a longer gradient, but at a lower objective.
        bound = np.minimum(left, before) if self.cut else left
        return Solution(
            coef=state.V,
            objective=state.f,
            gradient_norm=left,
            # Constant features have a gradient of 0 from the beginning.
            relative=np.divide(left, state.goal, out=np.zeros_like(left), where=left > 0)
            * self.tol
            * self.targets.scale(self.columns),
            gap=bound**2 / 2,
            converged=left <= state.goal,
            newton=state.newton,
            passes=state.passes,
            stopped=self.cut or bool(state.live.any() and state.newton < MOST_NEWTON),
        )

    def _begin(self, start: Floats | None, factors: Factors) -> State:
        """Initial state."""
        V = np.zeros((self.Z.width + 1, len(self.columns)))
        f, G = self._gradient(V, self.columns)
        goal = self.tol * self.targets.scale(self.columns) * _lengths(G)
        if start is not None:
            V = start.copy()
            f, G = self._gradient(V, self.columns)
        first = _lengths(G)
        state = State(V, f, G, goal, first, first > goal, passes=self.passes)
        if start is not None and not factors:
            state.conjugate = self.patience + 1
        return state

    def _make(self, factors: Factors, state: State) -> None:
        """Compute the factors of the active columns at their coefficients."""
        columns = factors.columns_like(self.columns.only(state.live))
        first = {key: j for j, key in reversed(list(enumerate(keys_of(self.columns))))}
        at = state.V[:, [first[key] for key in keys_of(columns)]]
        self.passes += factors.compute(self.Z, self.targets, at, columns, self.loss, self.room)
        state.makes, state.conjugate, state.passes = state.makes + 1, 0, self.passes

    def _step(self, state: State, factors: Factors) -> int:
        """Take a Newton step of the active columns, and count its conjugate gradient iterations.

        A column stops when the line search fails.
        """
        V, f, G, some = state.V, state.f, state.G, np.flatnonzero(state.live)
        columns = self.columns.only(some)
        D, count = self._direction(V[:, some], G[:, some], columns, factors)
        slope = np.einsum("ij,ij->j", G[:, some], D)
        t = np.ones(len(some))
        f_new, G_new = self._gradient(V[:, some] + D, columns)
        bad = np.abs(np.einsum("ij,ij->j", G_new, D)) > _GOOD_SLOPE * np.abs(slope)
        if bad.any():
            worse = some[bad]
            t[bad] = self._lengths_of_step(V[:, worse], D[:, bad], columns.only(bad), slope[bad])
            found = self._gradient(V[:, worse] + t[bad] * D[:, bad], columns.only(bad))
            f_new[bad], G_new[:, bad] = found
        rounding = _ROUNDING * np.finfo(self.Z.dtype).eps * np.abs(f[some])
        better = f_new < f[some] - rounding
        better |= (f_new <= f[some] + rounding) & (_lengths(G_new) < 0.9 * _lengths(G[:, some]))
        good = some[better]
        V[:, good] += t[better] * D[:, better]
        f[good], G[:, good] = f_new[better], G_new[:, better]
        state.live[some[~better]] = False  # rounding of the features allows no better
        return count

    def _gradient(self, V: Floats, columns: Columns) -> tuple[Floats, Floats]:
        """Objective and its gradient."""
        parts = self.Z.map(gradients, self.targets, self.Z.into(V), columns, self.loss)
        values, sums = next(parts)
        for value, part in parts:
            values += value
            sums += part
        self.passes += 1
        objective = np.einsum("ij,ij->j", V, V) / 2 + columns.C * values
        return objective, V + columns.C * self.Z.back(sums)

    def _direction(
        self, V: Floats, G: Floats, columns: Columns, factors: Factors
    ) -> tuple[Floats, int]:
        """Newton direction by preconditioned conjugate gradients, and their iterations."""
        D, R = np.zeros_like(V), -G
        first = _lengths(R)
        scale = np.sqrt(len(R)) * columns.C  # any unit will do: it only measures the distance
        limit = np.minimum(_FORCING, np.sqrt(first / np.maximum(first, scale))) * first
        P, before, open_ = np.zeros_like(V), np.ones(len(columns)), np.arange(len(columns))
        at = self._point(V, columns)
        for count in range(1, _MOST_CONJUGATE + 1):
            own = columns.only(open_)
            S = factors.solve(R[:, open_], own)
            now = np.einsum("ij,ij->j", R[:, open_], S)
            keep = now / before[open_] if count > 1 else np.zeros(len(open_))
            P[:, open_] = S + keep * P[:, open_]
            before[open_] = now
            Q = self._curved(at, P[:, open_], own, open_)
            a = now / np.einsum("ij,ij->j", P[:, open_], Q)
            D[:, open_] += a * P[:, open_]
            R[:, open_] -= a * Q
            open_ = open_[_lengths(R[:, open_]) > limit[open_]]
            self.cut = bool(len(open_)) and self.over()
            if self.cut or not len(open_):
                break
        return D, count

    def _point(self, V: Floats, columns: Columns) -> NDArray[Any]:
        """Argument `at` of `_curved`: curvatures at V, (N, J), if features are in memory, else V.

        Curvatures are small beside features in memory. Passes that compute features, or run on
        workers, compute curvatures too.
        """
        inner = self.Z.into(V)
        if self.Z.values is None:
            return inner
        self.passes += 1
        found, done = np.empty((self.Z.n, len(columns)), self.Z.dtype), 0
        for part in self.Z.map(curvature_of, self.targets, inner, columns, self.loss):
            found[done : done + len(part)] = part
            done += len(part)
        return found

    def _curved(self, at: NDArray[Any], P: Floats, columns: Columns, chosen: Indices) -> Floats:
        """Hessian of the objective times P, for chosen columns of `_point`."""
        into = self.Z.into(P)
        self.passes += 1
        if self.Z.values is None:
            given = (at[:, chosen], into, columns, self.loss)
            sums = sum_of(self.Z.map(curvatures, self.targets, *given))
        else:
            D = np.ascontiguousarray(into.T, self.Z.dtype)
            sums = sum_of(self.Z.map(curved, (at,), D, chosen)).T
        return P + columns.C * self.Z.back(sums)

    def _lengths_of_step(
        self, V: Floats, D: Floats, columns: Columns, slope: Floats
    ) -> NDArray[Any]:
        """Step lengths where the slope along D is about 0, interpolated between `STEPS`."""
        both = np.hstack([self.Z.into(V), self.Z.into(D)])
        parts = self.Z.map(slopes, self.targets, both, columns, self.loss, STEPS)
        self.passes += 1
        own = np.einsum("ij,ij->j", V, D) + STEPS[:, None] * np.einsum("ij,ij->j", D, D)
        found = np.vstack([slope, own + columns.C * sum_of(parts)])
        at = np.concatenate([[0.0], STEPS])
        lengths = np.empty(len(columns))
        for j, along in enumerate(found.T):
            above = int(np.argmax(along > 0))
            if not above:
                lengths[j] = at[-1]
                continue
            low, high = along[above - 1], along[above]
            lengths[j] = at[above - 1] + (at[above] - at[above - 1]) * low / (low - high)
        return lengths

    def _tell(self, state: State) -> None:
        """Report progress by the logarithm of the worst gradient, at first by the passes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            done = np.log(state.first / _lengths(state.G)) / np.log(state.first / state.goal)
        share = float(np.clip(np.nanmin(done), 0, 1)) if np.isfinite(done).any() else 1.0
        share = max(share, min(_MOST_BY_PASSES, self.passes / _USUAL_PASSES))
        self.report(Progress("training", int(1000 * share), 1000))


# Warm start by a fit of a part of the samples

_SHARE_OF_ALL: Final = 12
"""Number of all samples over those of the part, at least."""

_ROWS_OF_PART: Final = (2048, 32768)
"""Least and most samples of the part."""

_TOL_OF_PART: Final = 3e-2
"""Tolerance on the part. Measured: a looser one took longer in total on MNIST."""

_PATIENCE_OF_PART: Final = 100
"""Conjugate gradient iterations of a step above which factors pay, on the part."""


def kept_solution(entries: Checkpoint, name: str, solve: Callable[[], Solution]) -> Solution:
    """Solution that an earlier run has found, or found and kept now if it was not stopped."""
    found = entries.get(name, lambda kept: Solution(**kept))
    if found is None:
        found = solve()
        if not found.stopped:
            entries.put(name, vars(found))
    return found


def solve_columns(newton: Newton, *, seed: int, threads: int) -> tuple[Solution, Factors]:
    """Solve on a part of the samples first if there are many, then on all; or resume.

    The seed chooses the part, and threads of this process solve on it. The factors are the last
    preconditioner.
    """
    factors = Factors(newton.columns)
    state = newton.steps.last(factors)
    n, width = newton.Z.n, newton.Z.width
    least, most = _ROWS_OF_PART
    fitting = newton.room // (4 * width * newton.Z.dtype.itemsize)
    count = min(most, n // _SHARE_OF_ALL, max(least, fitting))
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
    tol = max(newton.tol, _TOL_OF_PART)
    small = Newton(Z, targets, columns, newton.loss, tol, newton.room, patience=_PATIENCE_OF_PART)
    return small.solve().coef


def curvature_bytes(Z: Features, n_columns: int) -> int:
    """Bytes of the curvatures of some columns, which are computed if features are in memory."""
    return 0 if Z.values is None else Z.n * n_columns * Z.dtype.itemsize


def _lengths(G: Floats) -> Floats:
    """Norms of columns."""
    lengths: Floats = np.sqrt(np.einsum("ij,ij->j", G, G))
    return lengths
