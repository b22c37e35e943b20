"""Choice of landmarks, uniform or by randomly pivoted Cholesky."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.nystrom.cholesky import Factor
from dhsk.nystrom.placed import Placed
from dhsk.progress import Progress

_LEAST_BLOCK: Final = 128
"""Least pivots of a block: some 120 make matrix products pay (Epperly et al., 2024)."""

_ROUNDS: Final = 4
"""Number of blocks in which many pivots are proposed: each takes a pass over the samples."""

_SEARCHED: Final = 1 << 16
_EACH: Final = 16
_SEARCHED_BYTES: Final = 128 * 2**20
"""Samples that are searched for landmarks, or so many for each landmark if those are more; their
bytes at most. Measured on a million counts of words and on 60,000 images, 300 to 2,000 landmarks:
the trace error of landmarks among 8 to 64 times as many samples was 0.993 to 1.011 times that of
landmarks among all; two seeds differ by 0.01."""

_FEWER: Final = 4
"""All are searched unless they are so many times more: their features then come for nothing."""


@dataclass
class PivotState:
    """State of a partial Cholesky factorisation; the remaining rounds depend on nothing else."""

    left: Floats
    """Diagonal of the residual matrix, (N,)."""
    error: float
    """Trace of the residual relative to that of the matrix: relative trace norm of the error."""
    pivots: Indices
    """Indices of the pivots in the order of their choice, (r,)."""
    random: Mapping[str, Any]
    """State of the random numbers."""


def uniform(n: int, k: int, rng: np.random.Generator) -> Indices:
    """Indices of min(k, n) of n samples, drawn without replacement."""
    return rng.choice(n, min(k, n), replace=False)


def searched(n: int, row_bytes: float, k: int) -> int:
    """How many of n samples are searched for k landmarks, by the bytes of a mapped one."""
    part = min(max(_SEARCHED, _EACH * k), int(_SEARCHED_BYTES / max(1.0, row_bytes)))
    return n if part < _EACH * k or n <= _FEWER * part else part


def block_of(k: int) -> int:
    """Number of pivots in a block, for k landmarks."""
    return max(_LEAST_BLOCK, k // _ROUNDS)


@dataclass(eq=False)
class RandomPivots:
    """Landmarks by accelerated randomly pivoted Cholesky.

    The distribution of the pivots is that of the plain algorithm [1]_, which draws each pivot in
    proportion to the diagonal of the residual matrix. Here a block of proposals is drawn by the
    same diagonal. Each is accepted with probability equal to the share of its diagonal entry that
    the pivots accepted before it leave [2]_. One pass over the samples then extends the factor.

    References
    ----------
    .. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503, algorithm 2.1.
    .. [2] E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection: kernel matrix
       approximation by accelerated randomly pivoted Cholesky", arXiv 2410.03969.
    """

    placed: Placed
    """Samples, with a positive semi-definite kernel."""
    factor: Factor
    """Factor of the pivots so far, extended in place."""
    diagonal: Floats
    """Diagonal of the kernel matrix, (N,)."""
    k: int
    """Upper bound on the number of landmarks. There are fewer if `tol` or the numerical rank is
    reached: a residual below k eps of its diagonal entry counts as rounding, with the eps of the
    rows' type."""
    rng: np.random.Generator
    """Random numbers; equal ones give equal landmarks if `block` is equal."""
    tol: float = 0.0
    """Relative trace error, below 1, that is reached with as few pivots as possible."""
    block: int = 0
    """Number of pivots proposed at a time; 0 for `block_of` k."""

    def __post_init__(self) -> None:
        """Bound the number of pivots, and set the level of rounding."""
        self.k = min(self.k, self.placed.n)
        self.block = self.block or block_of(self.k)
        self._trace = float(self.diagonal.sum())
        self._floor = self.k * float(np.finfo(self.placed.dtype).eps) * self.diagonal

    def choose(
        self,
        begun: PivotState | None = None,
        keep: Callable[[PivotState], None] = lambda _: None,
        run: Run = Run(),  # noqa: B008  # frozen
    ) -> PivotState:
        """Choose all pivots, from a state `begun` if `factor` is its factor.

        `keep` receives the state after every round. Raises InputError if the diagonal is zero.
        """
        if not self._trace > 0:
            raise InputError(
                f"the kernel of each of the {self.placed.n} samples with itself is 0: scale them"
            )
        random = self.rng.bit_generator
        now = begun or PivotState(self.diagonal, 1.0, np.empty(0, np.intp), random.state)
        random.state = now.random
        while len(now.pivots) < self.k and now.error > self.tol:
            run.report(Progress("landmarks", len(now.pivots), self.k))
            following = self._round(now)
            if following is None:  # the residual is rounding
                break
            now = following
            keep(now)
        run.report(Progress("landmarks", self.k, self.k))
        return now

    def _round(self, now: PivotState) -> PivotState | None:
        """State after one block of proposals, None if the residual is rounding."""
        factor, rng, chosen = self.factor, self.rng, len(now.pivots)
        drawn = _draw(now.left, self._floor, self.block, rng)
        if drawn is None:
            return None
        rows = self.placed.take(drawn)
        known = factor.of(drawn, rows)
        H = self.placed.kernel.of_rows(rows).astype(np.float64) - known @ known.T
        taken, L = _accept(H, now.left[drawn], self._floor[drawn], self.k - chosen, rng)
        if not len(taken):  # not even the first, whose probability is 1
            return None
        squares, gained = factor.extend(drawn[taken], rows[taken], known[taken], L)
        count = _enough(gained, (now.error - self.tol) * self._trace)
        left = np.maximum(now.left - squares, 0.0)
        error = float(left.sum()) / self._trace
        if count < len(taken):
            factor.cut(chosen + count)
            error = max(0.0, now.error - float(gained[:count].sum()) / self._trace)
        pivots = np.concatenate([now.pivots, drawn[taken][:count]])
        return PivotState(left, error, pivots, rng.bit_generator.state)


def _draw(left: Floats, floor: Floats, block: int, rng: np.random.Generator) -> Indices | None:
    """Indices drawn with replacement in proportion to the residual; None if it is rounding."""
    sums = np.where(left > floor, left, 0.0)
    np.cumsum(sums, out=sums)
    if not sums[-1] > 0:
        return None
    found: Indices = np.searchsorted(sums, rng.random(block) * sums[-1], side="right")
    return found


def _accept(
    H: Floats, weights: Floats, floor: Floats, most: int, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Indices of the accepted proposals, and the Cholesky factor of their part of H."""
    chances = rng.random(len(H)) * weights
    taken: list[int] = []
    L = np.zeros((len(H), min(most, len(H))))
    for i, chance in enumerate(chances):
        count = len(taken)
        column = H[i:, i] - L[i:, :count] @ L[i, :count]
        if column[0] > max(chance, floor[i]):
            L[i:, count] = column / np.sqrt(column[0])
            taken.append(i)
            if len(taken) == most:
                break
    chosen = np.array(taken, np.intp)
    return chosen, L[chosen, : len(taken)]


def _enough(gained: Floats, excess: float) -> int:
    """Number of new columns that lower the trace of the residual by `excess`, or all."""
    return min(int(np.searchsorted(np.cumsum(gained), excess)) + 1, len(gained))
