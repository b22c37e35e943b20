"""Low-rank preconditioner of K + D: a partial Cholesky factor, inverted by Woodbury's formula."""

from collections.abc import Iterator
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.errors import InputError
from dhsk.execution.run import Run
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.tasks import Executor
from dhsk.execution.threads import Threads
from dhsk.kernels import Kernel
from dhsk.nystrom.cholesky import InMemoryFactor
from dhsk.nystrom.landmarks import RandomPivots
from dhsk.nystrom.placed import in_memory
from dhsk.run_progress import passes_of_call

LEAST_SAMPLES: Final = 1000
"""Fewest samples for which a rank is chosen: below, all passes take milliseconds."""

_WORTH: Final = 4
"""Passes over the matrix that making the factor may cost, about. Measured on 5,000 samples of 100
features, alpha 1 to 0.001: 38 to 1,485 passes become 3 to 86 with a factor of this cost."""

_KERNEL_FLOPS: Final = 40
"""Cost of a kernel value, in multiplications and additions of a matrix product."""

_READ_FLOPS: Final = 16
"""Cost of an entry in memory in a pass, likewise: passes wait for memory."""

_DEVICE_SPEED: Final = 32
"""Passes of a device in the time of one on the processor, about, where the factor is made: 26 on an
H200 beside 16 cores, of 784 features in float32."""

_LEAST_RANK: Final = 16

_COPIES: Final = 1.25
"""Factors in memory while one is made, with the blocks that extend it."""

_ATTEMPTS: Final = 8
"""Multiples of rounding that are tried on a diagonal, each 100 times the one before."""

_ROWS: Final = 4096
"""Rows of the factor that a task multiplies."""


def usual_rank(
    n: int, dim: int, itemsize: int, room: int, *, computed: bool, on_device: bool = False
) -> int:
    """Rank of a preconditioner of n samples; 0 where it does not pay.

    The factor costs about `_WORTH` passes, fits in `room` bytes, and has at most a quarter of the
    columns of the matrix. Passes cost more if they compute the matrix, but less on a device. Fewer
    columns are made if they approximate the matrix well enough.
    """
    if n < LEAST_SAMPLES:
        return 0
    entry = 2 * dim + _KERNEL_FLOPS
    a_pass = n * entry // 2 if computed else n * _READ_FLOPS  # for each row
    if on_device:
        a_pass //= _DEVICE_SPEED
    # n (r entry + 2 r^2) = _WORTH n a_pass
    rank = (isqrt(entry**2 + 8 * _WORTH * a_pass) - entry) // 4
    rank = min(rank, n // 4, int(room / (_COPIES * itemsize * n)))
    return rank if rank >= _LEAST_RANK else 0


class LowRankPreconditioner:
    """P = F F' + D with F of few columns.

    Its inverse is D^-1 - D^-1 F (I + F' D^-1 F)^-1 F' D^-1. Products run on an executor, and have
    the same bits on any number of threads.

    Parameters
    ----------
    F
        Factor, (N, r), float64 or float32.
    shift
        Diagonal of D, positive, (N,).
    executor
        Runs the products.
    """

    def __init__(self, F: NDArray[Any], shift: Floats, executor: Executor) -> None:
        self._F, self._shift, self._executor = F, shift[:, None], executor
        inner = np.eye(self.rank)
        with one_blas_thread():
            for part in self._over(_gram, F, self._shift):
                inner += part
            self._factor = cho_factor(inner, lower=True)

    @property
    def rank(self) -> int:
        """Columns of F, r."""
        return int(self._F.shape[1])

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of P."""
        inner = 2 * np.log(np.diagonal(self._factor[0])).sum()
        return float(np.log(self._shift).sum() + inner)

    @property
    def inverse_trace(self) -> float:
        """Trace of P^-1, where D is a multiple of the identity."""
        left = np.trace(cho_solve(self._factor, np.eye(self.rank)))
        return float((len(self._F) - self.rank + left) / self._shift[0, 0])

    def draw(self, first: Floats, second: Floats) -> Floats:
        """Vectors of covariance P, (N, m), of normal numbers, (r, m) and (N, m)."""
        with one_blas_thread():
            parts = list(self._over(_expand, self._F, shared=first))
        return np.concatenate(parts) + np.sqrt(self._shift) * second

    def solve(self, R: Floats) -> Floats:
        """P^-1 R for the columns of R, (N, k)."""
        scaled = R / self._shift
        with one_blas_thread():
            inner = np.zeros((self.rank, R.shape[1]))
            for part in self._over(_project, self._F, scaled):
                inner += part
            coef = cho_solve(self._factor, inner)
            parts = self._over(_expand, self._F, shared=coef)
            return scaled - np.concatenate(list(parts)) / self._shift

    def _over(self, function: Any, *arrays: Any, shared: Any = None) -> Iterator[Any]:
        """Results of a function of blocks of rows of arrays, in order."""
        more = () if shared is None else (shared,)
        tasks = ((*(a[part] for a in arrays), *more) for part in blocks(len(self._F), _ROWS))
        return self._executor.run(function, tasks, ordered=True)


def _gram(F: NDArray[Any], shift: Floats) -> Floats:
    """F' D^-1 F of a block."""
    scaled = F / np.sqrt(shift)
    found: Floats = scaled.T @ scaled
    return found


def _project(F: NDArray[Any], R: Floats) -> Floats:
    """F' R of a block."""
    found: Floats = F.astype(np.float64, copy=False).T @ R
    return found


def _expand(F: NDArray[Any], coef: Floats) -> Floats:
    """F times coefficients, of a block."""
    found: Floats = F.astype(np.float64, copy=False) @ coef
    return found


def precondition(
    rows: Rows, kernel: Kernel, shift: Floats, rank: int, threads: int
) -> LowRankPreconditioner | None:
    """Make the preconditioner of K + D by randomly pivoted Cholesky, of at most some rank.

    There are fewer columns if the trace of what they leave of K is at most the least entry of D:
    the eigenvalues of P^-1 (K + D) are then between 1 and 2 [1]_. None if that needs no columns, or
    K is zero. Equal arguments give the same bits on any number of threads.

    Parameters
    ----------
    rows
        Mapped samples, (N, dim).
    kernel
        A positive semi-definite kernel.
    shift
        Diagonal of D, positive, (N,).
    rank
        Upper bound on the number of columns.
    threads
        Number of threads.

    References
    ----------
    .. [1] M. Díaz, E. N. Epperly, Z. Frangella, J. A. Tropp and R. J. Webber, "Robust, randomized
       preconditioning for kernel ridge regression", arXiv 2304.12465, theorem 2.2.
    """
    factor = _chosen(rows, kernel, float(shift.min()), rank, threads)
    if factor is None:
        return None
    return LowRankPreconditioner(factor[0].finished(), shift, Threads(threads))


def landmarks_for(rows: Rows, kernel: Kernel, least: float, rank: int, threads: int) -> Indices:
    """Indices of the pivots of `precondition`, for `precondition_by`, as many as leave `least`."""
    factor = _chosen(rows, kernel, least, rank, threads)
    return np.zeros(0, np.intp) if factor is None else factor[1]


def precondition_by(
    rows: Rows, kernel: Kernel, landmarks: Indices, shift: Floats, threads: int
) -> LowRankPreconditioner:
    """Make the preconditioner of given landmarks: a smooth function of the kernel's parameters."""
    own = rows[landmarks]
    with one_blas_thread():
        root = _cholesky(kernel.of_rows(own).astype(np.float64))
        tasks = ((kernel, rows[part], own, root) for part in blocks(rows.shape[0], _ROWS))
        F = np.concatenate(list(Threads(threads).run(_columns, tasks, ordered=True)))
    return LowRankPreconditioner(F, shift, Threads(threads))


def _columns(kernel: Kernel, rows: Rows, landmarks: Rows, root: Floats) -> NDArray[Any]:
    """Rows of the factor K(X, L) root'^-1, in the type of the rows."""
    values = kernel.of_rows(rows, landmarks)
    found = solve_triangular(root, values.T.astype(np.float64), lower=True, check_finite=False)
    return np.ascontiguousarray(found.T, values.dtype)


def _cholesky(K: Floats) -> Floats:
    """Cholesky factor of a positive semi-definite matrix, with as little added as makes it one.

    InputError if nothing near rounding does: the matrix is zero or indefinite.
    """
    largest = float(np.diagonal(K).max())
    rounding = len(K) * float(np.finfo(np.float64).eps)
    for added in rounding * 100.0 ** np.arange(_ATTEMPTS):
        try:
            shifted = K + added * largest * np.eye(len(K))
            found: Floats = cholesky(shifted, lower=True, check_finite=False)
        except LinAlgError:
            continue
        return found
    raise InputError(
        f"the kernel matrix of {len(K):,} landmarks, with diagonal entries up to {largest:g}, is "
        f"not positive semi-definite, nor with {added * largest:.1g} added to them: choose a "
        "positive definite kernel"
    )


def _chosen(
    rows: Rows, kernel: Kernel, least: float, rank: int, threads: int
) -> tuple[InMemoryFactor, Indices] | None:
    """Factor and pivots that leave a trace of at most `least`, or of a rank; None for none."""
    placed = in_memory(rows, kernel, threads)
    diagonal = placed.diagonal()
    trace = float(diagonal.sum())
    tol = least / trace if trace > 0 else 1.0
    if tol >= 1 or rank < 1:
        return None
    with one_blas_thread():
        factor = InMemoryFactor(placed, min(rank, placed.n))
        pivots = RandomPivots(placed, factor, diagonal, rank, np.random.default_rng(0), tol)
        chosen = pivots.choose(run=Run(report=passes_of_call().report)).pivots
    return (factor, chosen) if len(chosen) else None
