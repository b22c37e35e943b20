"""Which samples stand for all: landmarks, uniform or by randomly pivoted Cholesky."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.errors import BudgetError, InputError
from dhsk.nystrom.cholesky import Factor
from dhsk.nystrom.placed import Placed
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.units import human_bytes

_LEAST_BLOCK: Final = 128
"""Pivots proposed at a time: some 120 make the products of matrices pay (Epperly et al., 2024)."""

_ROUNDS: Final = 4
"""Rounds in which many pivots are proposed: each takes a pass over the samples."""


@dataclass
class PivotState:
    """Pivots of a partial Cholesky factorisation so far: all that the rest of it depends on.

    Attributes
    ----------
    left
        Diagonal of what the factor leaves, (N,).
    error
        Its sum as a part of the trace: of a positive semi-definite matrix the trace norm.
    pivots
        Numbers of the pivots in the order of their choice, (r,).
    random
        State of the random numbers.
    """

    left: Floats
    error: float
    pivots: Indices
    random: Mapping[str, Any]


def uniform(n: int, k: int, rng: np.random.Generator) -> Indices:
    """Landmarks without regard to the samples.

    Parameters
    ----------
    n
        Number of samples.
    k
        Most landmarks.
    rng
        Random numbers.

    Returns
    -------
    ndarray
        Numbers of different samples, (min(k, n),).
    """
    return rng.choice(n, min(k, n), replace=False)


def block_of(k: int) -> int:
    """Pivots proposed at a time where k are wanted."""
    return max(_LEAST_BLOCK, k // _ROUNDS)


@dataclass(eq=False)
class RandomPivots:
    """Landmarks by accelerated randomly pivoted Cholesky.

    The law of the pivots is that of the plain algorithm [1]_, which draws each one by the diagonal
    of what the pivots before it leave. Here a block is drawn at once by the same diagonal, and
    each proposal is accepted with the share of its weight that the accepted ones leave it [2]_.
    One pass over the samples extends the factor by all that were accepted.

    Attributes
    ----------
    placed
        Samples, with a positive semi-definite kernel.
    factor
        Factor of the pivots so far, extended in place.
    diagonal
        That of the matrix, (N,).
    k
        Most landmarks. There are fewer where `tol` or the numerical rank of the matrix is reached:
        a diagonal entry counts as rounding when k eps of it is left, eps being that of the rows.
    rng
        Random numbers; the same ones give the same landmarks, with the same `block`.
    tol
        Relative trace error, below 1, at which it ends, with as few pivots as reach it.
    block
        Pivots proposed at a time; 0 for `block_of` k.

    References
    ----------
    .. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503, algorithm 2.1.
    .. [2] E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection: kernel matrix
       approximation by accelerated randomly pivoted Cholesky", arXiv 2410.03969.
    """

    placed: Placed
    factor: Factor
    diagonal: Floats
    k: int
    rng: np.random.Generator
    tol: float = 0.0
    block: int = 0

    def __post_init__(self) -> None:
        """Settle the number of pivots, and what counts as rounding."""
        self.k = min(self.k, self.placed.n)
        self.block = self.block or block_of(self.k)
        self._trace = float(self.diagonal.sum())
        self._floor = self.k * float(np.finfo(self.placed.dtype).eps) * self.diagonal

    def choose(
        self,
        begun: PivotState | None = None,
        keep: Callable[[PivotState], None] = lambda _: None,
        report: OnProgress = ignore,
    ) -> PivotState:
        """Choose all pivots.

        Parameters
        ----------
        begun
            Where an earlier call stood, whose factor is given.
        keep
            Receives the state after every round.
        report
            Receives progress.

        Returns
        -------
        PivotState
            The pivots, and what they leave.

        Raises
        ------
        InputError
            The diagonal of the matrix is zero.
        """
        if not self._trace > 0:
            raise InputError(
                f"the kernel of each of the {self.placed.n} samples with itself is 0: scale them"
            )
        random = self.rng.bit_generator
        now = begun or PivotState(self.diagonal, 1.0, np.empty(0, np.intp), random.state)
        random.state = now.random
        while len(now.pivots) < self.k and now.error > self.tol:
            report(Progress("landmarks", len(now.pivots), self.k))
            following = self._round(now)
            if following is None:  # what is left is rounding
                break
            now = following
            keep(now)
        report(Progress("landmarks", self.k, self.k))
        return now

    def _round(self, now: PivotState) -> PivotState | None:
        """One block of proposals: what is chosen after it, None if nothing is left to choose."""
        factor, rng, chosen = self.factor, self.rng, len(now.pivots)
        drawn = _draw(now.left, self._floor, self.block, rng)
        if drawn is None:
            return None
        rows = self.placed.take(drawn)
        known = factor.of(drawn, rows)
        H = self.placed.kernel.of_rows(rows).astype(np.float64) - known @ known.T
        taken, L = _accept(H, now.left[drawn], self._floor[drawn], self.k - chosen, rng)
        if not len(taken):  # not even the first, whose weight is whole
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
    """Numbers of samples by what is left of them, with repeats; None if that is only rounding."""
    sums = np.where(left > floor, left, 0.0)
    np.cumsum(sums, out=sums)
    if not sums[-1] > 0:
        return None
    found: Indices = np.searchsorted(sums, rng.random(block) * sums[-1], side="right")
    return found


def _accept(
    H: Floats, weights: Floats, floor: Floats, most: int, rng: np.random.Generator
) -> tuple[Indices, Floats]:
    """Numbers of the accepted proposals, and the Cholesky factor of their part of H."""
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
    """How many of the new columns it takes to bring the trace down to what is asked for."""
    return min(int(np.searchsorted(np.cumsum(gained), excess)) + 1, len(gained))


def require_room(held: int, room: int | None, what: str, instead: str) -> None:
    """Refuse an array that does not fit.

    Parameters
    ----------
    held
        Its bytes.
    room
        Bytes that it may take; None for any number.
    what, instead
        What it is for, and what to do, for the message.

    Raises
    ------
    BudgetError
        It does not fit.
    """
    if room is not None and held > room:
        raise BudgetError(
            f"{what} take {human_bytes(held)} but {human_bytes(room)} of memory are left: "
            f"allow more, or {instead}"
        )
