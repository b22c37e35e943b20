"""Which samples stand for all: landmarks, uniform or by randomly pivoted Cholesky."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import solve_triangular

from dhsk.arrays import Floats, Indices, Rows
from dhsk.errors import BudgetError, InputError
from dhsk.gram.sizes import human_bytes
from dhsk.kernels import Kernel
from dhsk.svm.model import ROWS, blocks
from dhsk.svm.sources import RowsSource

BLOCK: Final = 128
"""Pivots proposed at a time: some 120 make the products of matrices pay (Epperly et al., 2024)."""


@dataclass(frozen=True)
class Landmarks:
    """Pivots of a partial Cholesky factorisation, and how much of the matrix they leave.

    Attributes
    ----------
    indices
        Numbers of the pivots in the order of their choice, (r,).
    factor
        F, (N, r), float64: F F' is the Nyström approximation of the matrix from these pivots.
    trace_error
        Trace of K - F F' as a part of that of K: of a positive semi-definite matrix the trace
        norm, exact to rounding.
    """

    indices: Indices
    factor: Floats
    trace_error: float


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


def rp_cholesky(
    rows: Rows,
    kernel: Kernel,
    k: int,
    *,
    rng: np.random.Generator,
    tol: float = 0.0,
    block: int = BLOCK,
    room: int | None = None,
) -> Landmarks:
    """Landmarks by accelerated randomly pivoted Cholesky.

    The law of the pivots is that of the plain algorithm [1]_, which draws each one by the diagonal
    of what the pivots before it leave. Here a block is drawn at once by the same diagonal, and
    each proposal is accepted with the share of its weight that the accepted ones leave it [2]_.

    Parameters
    ----------
    rows
        Samples by row, checked and mapped, (N, dim).
    kernel
        A positive semi-definite kernel.
    k
        Most landmarks. There are fewer where `tol` or the numerical rank of the matrix is reached:
        a diagonal entry counts as rounding when k eps of it is left.
    rng
        Random numbers; the same ones give the same landmarks, with the same `block`.
    tol
        Relative trace error, below 1, at which it ends, with as few pivots as reach it.
    block
        Pivots proposed at a time.
    room
        Bytes that the factor may take, 8 N k; None for no limit.

    Returns
    -------
    Landmarks
        The pivots, with the factor.

    Raises
    ------
    BudgetError
        The factor does not fit.
    InputError
        The diagonal of the matrix is zero.

    References
    ----------
    .. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky",
       arXiv 2207.06503, algorithm 2.1.
    .. [2] E. N. Epperly, J. A. Tropp and R. J. Webber, "Embrace rejection: kernel matrix
       approximation by accelerated randomly pivoted Cholesky", arXiv 2410.03969.
    """
    n = rows.shape[0]
    k = min(k, n)
    require_room(8 * n * k, room, f"{k} landmarks of {n} samples", "take fewer landmarks")
    left = RowsSource(rows, kernel).diagonal()
    trace, floor = float(left.sum()), k * float(np.finfo(rows.dtype).eps) * left
    if not trace > 0:
        raise InputError(f"the kernel of each of the {n} samples with itself is 0: scale them")
    F, pivots = np.empty((n, k)), np.empty(0, np.intp)
    while len(pivots) < k and left.sum() > tol * trace:
        weights = np.where(left > floor, left, 0.0)
        if not weights.any():
            break
        done = len(pivots)
        drawn = rng.choice(n, block, p=weights / weights.sum())
        H = (
            np.asarray(kernel.of_rows(rows[drawn]), np.float64)
            - F[drawn, :done] @ F[drawn, :done].T
        )
        taken, L = _accept(H, weights[drawn], floor[drawn], k - done, rng)
        if not len(taken):  # not even the first, whose weight is whole: what is left is rounding
            break
        _extend(F[:, : done + len(taken)], rows, kernel, drawn[taken], L)
        kept = _enough(F[:, done : done + len(taken)], left.sum() - tol * trace)
        new = F[:, done : done + kept]
        pivots = np.concatenate([pivots, drawn[taken][:kept]])
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0.0)
    return Landmarks(pivots, F[:, : len(pivots)], float(left.sum()) / trace)


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


def _extend(F: Floats, rows: Rows, kernel: Kernel, new: Indices, L: Floats) -> None:
    """Fill the last columns of a Cholesky factor, those of new pivots, by blocks of rows."""
    done, landmarks = F.shape[1] - len(new), rows[new]
    ahead = F[new, :done].T
    for part in blocks(len(F), ROWS):
        columns = kernel.of_rows(rows[part], landmarks) - F[part, :done] @ ahead
        F[part, done:] = solve_triangular(L, columns.T, lower=True).T


def _enough(new: Floats, excess: float) -> int:
    """How many of the new columns it takes to bring the trace down to what is asked for."""
    gained = np.cumsum(np.einsum("ij,ij->j", new, new))
    return min(int(np.searchsorted(gained, excess)) + 1, len(gained))
