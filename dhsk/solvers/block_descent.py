"""Kernel ridge regression of very many samples, a block of them at a time.

Each step solves the equations of one block of samples exactly, for what the coefficients of all
others leave, and subtracts what that changes from the residuals of all samples: a block of columns
of the matrix is read, and not all of it [1]_, [2]_. So residuals are known after every step, and
certify without a further pass.

With blocks of 2 % of the samples a sweep over all of them reads the matrix once, as each entry and
its transpose, and does the work of some fifteen passes of conjugate gradients whose preconditioner
has 0.1 % as many columns as there are samples. Measured on 24,000 samples of
`tests/benchmarks/regression.py`, alpha 0.1: errors on others within 1 % of the exact solution's
after 4 sweeps, or 58 passes.

Rejected, measured on 14,000 and 24,000: Nesterov's acceleration as in [1]_ (residuals after 4
sweeps 0.11 in place of 0.13 at its best setting, up to 0.20 at others, and two numbers to choose);
the best step in the plane of the last one too (0.13); steps longer or shorter than the solution
(at best as good); blocks that leave to others what a low-rank approximation says that they will
explain (residuals grow).

.. [1] P. Rathore, Z. Frangella, J. Yang, M. Dereziński and M. Udell, "Have ASkotch: a neat solution
   for large-scale kernel ridge regression", arXiv 2407.10070.
.. [2] R. M. Gower and P. Richtárik, "Randomized iterative methods for linear systems", SIAM J.
   Matrix Anal. Appl. 36 (2015), section 3.8.
"""

from dataclasses import dataclass
from math import ceil, isqrt
from typing import Any, ClassVar, Final

import numpy as np
from scipy.linalg import LinAlgError

from dhsk.arrays import Floats, Indices
from dhsk.execution.checkpoint import NOWHERE, Checkpoint
from dhsk.execution.tasks import Executor
from dhsk.progress import ignore
from dhsk.run_progress import passes_of_call, passes_reported
from dhsk.solvers.conjugate_gradients import dots
from dhsk.solvers.factor import TiledFactor
from dhsk.solvers.ridge import RidgeSolution
from dhsk.solvers.sources import Combination, Source

_BALANCE: Final = 700
"""Samples of a block, squared, for each sample: factoring the block then takes as long as reading
its columns, about. Measured in float32 on two cores: 183 billion operations a second, and 0.8 to 1
billion values."""

_ROOM_SHARE: Final = 2
"""Divisor of the memory that is left: the share of the matrix of a block."""

PART_OF_ERROR: Final = 0.1
"""Residual relative to the error on samples not yet used, at which a fit ends by itself.

Fitted values are then within a tenth of that error of the exact solution's, as K (K + D)^-1 is a
contraction, so that the error itself is half a percent larger if the two are unrelated. Measured on
60,000 samples: 0.2573 in place of 0.2574."""

LEAST_GOAL: Final = 1e-6
"""Relative residual that is always enough there: of targets that are predicted to rounding."""

_UNSEEN: Final = 4
"""The last block in so many of the first sweep measure that error: they are predicted by most."""

_ATTEMPTS: Final = 4
"""Multiples of rounding that are added to a block that is not positive definite, each 100 times the
one before. The step is then shorter than it could be, and as right."""


def block_size(n: int, itemsize: int, room: int) -> int:
    """Samples of a block, of n samples with `room` bytes left."""
    return max(1, min(n, isqrt(_BALANCE * n), isqrt(room // _ROOM_SHARE // itemsize)))


class BlockDescent:
    """State of (K + D) B = Y: solutions, residuals, and how many blocks were solved.

    It depends on the arguments, see `solve_in_blocks`, and on the number of blocks alone, so that a
    run that is restored from `entry` ends with the same bits. The shift is a column, (N, 1).
    """

    ARRAYS: ClassVar = ("B", "R", "unseen", "indefinite")
    VALUES: ClassVar = ("done", "seen")

    def __init__(
        self, source: Source, Y: Floats, shift: Floats, size: int, executor: Executor
    ) -> None:
        self.B, self.R = np.zeros(Y.shape), Y.copy()
        self.indefinite = np.zeros(Y.shape[1], np.bool_)
        self.unseen = np.zeros(Y.shape[1])
        """Sums of squared errors on samples before they were used, weighted by 1/D."""
        self.seen = 0.0
        """Sum of their weights."""
        self.done = 0
        self.blocks = ceil(len(Y) / size)
        """Number of blocks of a sweep."""
        self._source, self._shift, self._executor = source, shift, executor
        self._weight = float((1 / shift).sum())
        self._size = np.sqrt(dots(Y, Y / shift))

    def residual(self) -> Floats:
        """Relative residuals, (k,); 0 if the right-hand side is 0."""
        rest = np.sqrt(dots(self.R, self.R / self._shift))
        return np.divide(rest, self._size, out=rest, where=self._size > 0)

    def goal(self, tol: float | None) -> Floats:
        """Residuals at which the descent ends, (k,): tol, or by errors on samples not yet used.

        These are known when the first sweep has ended; until then the goal is 0.
        """
        if tol is not None:
            return np.full(len(self._size), tol)
        if self.done < self.blocks:
            return np.zeros(len(self._size))
        error = np.sqrt(self.unseen * self._weight / self.seen)
        relative = np.divide(error, self._size, out=error, where=self._size > 0)
        return np.maximum(PART_OF_ERROR * relative, LEAST_GOAL)

    def to_go(self, tol: float | None) -> float:
        """Largest residual, in units in which it ends at tol or `PART_OF_ERROR`."""
        residual, goal = self.residual(), self.goal(tol)
        if tol is not None or not goal.any():
            return float(residual.max())
        left = np.divide(residual, goal, out=np.zeros(len(goal)), where=goal > 0)
        return float(PART_OF_ERROR * left.max())

    def step(self) -> None:
        """Solve the next block."""
        members, shift = self._members(), self._shift
        own, weights = self.R[members], 1 / shift[members]
        if self.blocks - ceil(self.blocks / _UNSEEN) <= self.done < self.blocks:
            self.unseen += dots(own, own * weights)
            self.seen += float(weights.sum())
        self.done += 1
        direction = self._solution(members, own)
        if direction is None:
            self.indefinite[:] = True
            return
        change = self._source.combine([Combination(np.arange(len(self.R)), members, direction)])[0]
        change[members] += shift[members] * direction
        # The best length, 1 but for rounding: no step makes the objective larger.
        curvature, slope = dots(direction, change[members]), dots(direction, own)
        self.indefinite |= (curvature <= 0) & (slope > 0)
        length = np.divide(slope, curvature, out=np.zeros(len(slope)), where=curvature > 0)
        self.B[members] += length * direction
        self.R -= length * change

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and numbers of the state."""
        return {k: getattr(self, k) for k in self.ARRAYS}, {
            k: getattr(self, k) for k in self.VALUES
        }

    def restore(self, kept: dict[str, Any]) -> None:
        """Take the state of `entry`; an error leaves the own one as it is."""
        found = {name: kept[name] for name in (*self.ARRAYS, *self.VALUES)}
        if found["B"].shape != self.B.shape:
            raise ValueError("another system")
        vars(self).update(found)

    def _members(self) -> Indices:
        """Samples of the next block, ascending: every sweep has blocks of its own."""
        sweep, number = divmod(self.done, self.blocks)
        order = np.random.default_rng([0, sweep]).permutation(len(self.R))
        return np.sort(np.array_split(order, self.blocks)[number])

    def _solution(self, members: Indices, own: Floats) -> Floats | None:
        """Solution of the equations of a block; None if the block is not positive definite."""
        rounding = 0.0
        for _ in range(_ATTEMPTS):
            A = self._source.block(members)[:, : len(members)]
            unit = float(np.finfo(A.dtype).eps) * float(np.trace(A))
            A[np.diag_indices(len(A))] += (self._shift[members, 0] + rounding).astype(A.dtype)
            try:
                return TiledFactor(A, self._executor).solve(own).astype(np.float64)
            except LinAlgError:
                rounding = max(unit, 100 * rounding)
        return None


@dataclass(frozen=True, eq=False)
class Blocks:
    """How a system is solved in blocks."""

    size: int
    """Samples of a block, at most."""
    executor: Executor
    """Runs the factorisations."""
    checkpoint: Checkpoint = NOWHERE
    """Where a killed solve resumes."""
    name: str = ""
    """Name of its entry, by everything that determines the solution."""


def solve_in_blocks(
    source: Source, Y: Floats, shift: Floats, *, tol: float | None, most: int, how: Blocks
) -> RidgeSolution:
    """Solve (K + D) B = Y by sweeps over blocks of samples.

    Parameters
    ----------
    source
        Positive semi-definite matrix K.
    Y
        Right-hand sides, (N, k).
    shift
        Diagonal of D, positive, (N,).
    tol
        Tolerance of the relative residual; None for `PART_OF_ERROR` of the error on samples that
        were not yet used.
    most
        Upper bound on the sweeps.
    how
        Blocks and checkpoint.
    """
    _, exponents = np.frexp(np.abs(Y).max(axis=0))  # scaled exactly, so that no square overflows
    run = BlockDescent(source, np.ldexp(Y, -exponents), shift[:, None], how.size, how.executor)
    kept = how.checkpoint.state(run, how.name)
    passes = passes_of_call()
    passes.begin(most, PART_OF_ERROR if tol is None else tol)
    while not (run.indefinite.any() or run.done >= most * run.blocks):
        goal = run.goal(tol)
        passes.passed(run.done // run.blocks, run.to_go(tol))
        if (run.residual() <= goal).all():
            break
        passes.part(run.done % run.blocks, run.blocks)
        with passes_reported(ignore):  # a block tells of its own tiles
            run.step()
        kept.keep()
    passes.end()
    kept.drop()
    residual, goal = run.residual(), run.goal(tol)
    return RidgeSolution(
        coef=np.ldexp(run.B, exponents),
        residual=residual,
        converged=residual <= goal,
        indefinite=run.indefinite,
        tol=float(goal.max()),
        passes=ceil(run.done / run.blocks),
        steps=[],
    )
