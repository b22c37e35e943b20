"""Leading eigenpairs of a symmetric matrix that is known by its products only.

Of a centred heat kernel of 6,000 mixtures (k = 20, residual 1e-6), blocks of 22 vectors take 12
passes, of 30 take 11, of 40 take 10, of 80 take 8; ARPACK takes 70 products with single vectors.
Rejected: SciPy's `lobpcg`, which takes 13 passes there in blocks of 30 and, where no eigenvalue
stands out, 44 for 16 (k = 20) and 62 for 30 (k = 3), see `tests/benchmarks/spectra.py`; filtered
subspace iteration, which forgets the space that it has built.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.run_progress import passes_of_call

Multiply: TypeAlias = Callable[[Floats], Floats]
"""Product of a symmetric matrix with a block of vectors, (N, b) float64."""

SMALL: Final = 1000
"""Most rows for which the whole matrix is made by one pass and decomposed: a tenth of a second."""

MOST_BLOCKS: Final = 24
"""Blocks of a basis at most. Then the space is restarted with its best vectors."""

BASIS_BYTES: Final = 2 << 30
"""Memory of a basis at most, if no limit is given."""

FEWEST_BLOCKS: Final = 5
"""Blocks of a basis at least, so that a restarted space grows before it is restarted again."""

MAX_PASSES: Final = 200
"""Default of the most products with a block."""

_ESTIMATE: Final = 0.5
"""Share of the tolerance that the estimated residuals must reach before they are measured."""

_NEGLIGIBLE: Final = 64 * np.finfo(np.float64).eps
"""Length of a new direction, relative to the largest eigenvalue, below which it is rounding."""


WHOLE_COPIES: Final = 6
"""Matrices in memory while one is decomposed as a whole: it, its symmetric part, the vectors, and
LAPACK's own, of which two are work space."""


@dataclass(frozen=True)
class Eigenpairs:
    """Leading eigenpairs of a symmetric matrix, with their certificate."""

    values: Floats
    """Largest eigenvalues, descending, (k,)."""
    vectors: Floats
    """Orthonormal eigenvectors in columns, (N, k); the largest entry of each is positive."""
    residuals: Floats
    """Norms of ``A v - value v`` from a new product, divided by the largest absolute eigenvalue."""
    passes: int
    """Products with a block of vectors, the last one for the residuals."""
    tol: float
    """Upper bound that the residuals should satisfy."""

    @property
    def converged(self) -> bool:
        """Whether all residuals satisfy the bound."""
        return bool((self.residuals <= self.tol).all())


def block_width(k: int) -> int:
    """Vectors of a block for k eigenpairs."""
    return k + max(4, k // 2)


def most_blocks(n: int, k: int, room: int | None = None) -> int:
    """Blocks of the largest basis in so many bytes, `BASIS_BYTES` by default."""
    width = block_width(k)
    # Besides the basis, four blocks: a product, its orthogonal part, and two on their way.
    fitting = (BASIS_BYTES if room is None else room) // (8 * n * width) - 4
    return max(FEWEST_BLOCKS, min(fitting, MOST_BLOCKS))


def eigenpairs_bytes(n: int, k: int, blocks: int = MOST_BLOCKS) -> int:
    """Memory of `leading_eigenpairs`, in bytes, besides that of a product."""
    if is_small(n, k):
        return WHOLE_COPIES * 8 * n * n
    width = block_width(k)
    return 8 * n * width * (blocks + 4) + 4 * 8 * (blocks * width) ** 2


def is_small(n: int, k: int) -> bool:
    """Whether all eigenpairs are computed at once: few rows, or few more than a basis has."""
    return n <= max(SMALL, 2 * FEWEST_BLOCKS * block_width(k))


def leading_eigenpairs(
    multiply: Multiply,
    n: int,
    k: int,
    *,
    tol: float = 1e-6,
    seed: int = 0,
    max_passes: int = MAX_PASSES,
    blocks: int = MOST_BLOCKS,
) -> Eigenpairs:
    """Compute the k largest eigenvalues and their eigenvectors by a block Krylov space [1]_.

    Each pass multiplies one block. The space is orthogonalised in full, and restarted with its best
    vectors [2]_ when it has as many `blocks`. Residuals are estimated from the projected matrix;
    once they satisfy `tol`, they are measured by one more pass. Small matrices are decomposed as a
    whole. With a matrix whose products are the same bits, so are the results.

    Parameters
    ----------
    multiply
        Product of the matrix with (n, b) float64.
    n
        Number of rows.
    k
        Number of eigenpairs, at least 1 and at most n.
    tol
        Upper bound on the residuals, relative to the largest absolute eigenvalue.
    seed
        Seed of the first block.
    max_passes
        Most products.
    blocks
        Most blocks of a basis, see `most_blocks`.

    References
    ----------
    .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
       approximate singular value decomposition", NeurIPS 28 (2015), algorithm 2.
    .. [2] K. Wu and H. Simon, "Thick-restart Lanczos method for large symmetric eigenvalue
       problems", SIAM J. Matrix Anal. Appl. 22 (2000).
    """
    if not 1 <= k <= n:
        raise InputError(f"k must be from 1 to the number of rows, {n:,}, but it is {k}")
    if is_small(n, k):
        values, vectors = _whole(multiply(np.eye(n)), k)
        return _certified(multiply, values, vectors, passes=2, tol=tol)
    space = _Space(n, k, blocks, seed)
    passes, reached, told = 0, np.inf, passes_of_call()
    told.begin(max_passes, tol)
    while True:
        while passes < max_passes - 1:
            space.extend(multiply)
            passes += 1
            estimate = space.estimate()
            told.passed(passes, estimate)
            if estimate <= _ESTIMATE * tol:
                break
        passes += 1
        found = _certified(multiply, *space.leading(), passes=passes, tol=tol)
        told.passed(passes, float(found.residuals.max()))
        stalled = found.residuals.max() > reached / 2
        if found.converged or stalled or passes >= max_passes - 1:
            told.end()
            return found
        reached = found.residuals.max()


def _whole(A: Floats, k: int) -> tuple[Floats, Floats]:
    """Leading eigenpairs of a matrix in memory."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k])


def _certified(
    multiply: Multiply, values: Floats, vectors: Floats, *, passes: int, tol: float
) -> Eigenpairs:
    """Eigenpairs with residuals from a new product."""
    rows = np.abs(vectors).argmax(axis=0)
    vectors = vectors * np.where(vectors[rows, np.arange(len(values))] < 0, -1.0, 1.0)
    lacking = np.linalg.norm(multiply(vectors) - vectors * values, axis=0)
    scale = np.abs(values).max()
    residuals = lacking / scale if scale > 0 else lacking
    return Eigenpairs(values, vectors, residuals, passes, tol)


class _Space:
    """Block Krylov space with an orthonormal basis and the matrix projected on it.

    ``A basis = basis @ projected + next @ coupling``, where the coupling with the block that is
    multiplied next belongs to the last columns of the basis, or after a restart to all of them.
    """

    def __init__(self, n: int, k: int, blocks: int, seed: int) -> None:
        self._k, self._width = k, block_width(k)
        self._most = min(blocks * self._width, (n // self._width - 1) * self._width)
        self._kept = k + self._width
        self._basis = np.empty((self._most, n))  # vectors by row: blocks are contiguous
        self._size = 0
        self._projected = np.empty((0, 0))
        self._scale = 0.0
        start = np.random.default_rng(seed).standard_normal((n, self._width))
        self._next = np.linalg.qr(start)[0]
        self._coupling = np.zeros((self._width, 0))

    def extend(self, multiply: Multiply) -> None:
        """Take the next block into the basis, and multiply it."""
        if self._size + self._width > self._most:
            self._restart()
        first, last = self._size, self._size + self._width
        self._basis[first:last] = self._next.T
        product = multiply(self._next)
        self._size = last
        projected = np.zeros((last, last))
        projected[:first, :first] = self._projected
        projected[first:, :first] = self._coupling
        projected[:first, first:] = self._coupling.T
        own = self._basis[first:last] @ product
        projected[first:, first:] = (own + own.T) / 2
        self._projected = projected
        self._values, self._ritz = np.linalg.eigh(projected)
        self._scale = max(self._scale, float(np.abs(self._values).max()))
        self._next, last_coupling = self._orthogonal(product)
        self._coupling = np.zeros((self._width, last))
        self._coupling[:, first:] = last_coupling

    def estimate(self) -> float:
        """Largest residual of the leading Ritz pairs, relative to the largest eigenvalue."""
        if self._scale == 0:
            return 0.0
        lacking = np.linalg.norm(self._coupling @ self._ritz[:, -self._k :], axis=0)
        return float(lacking.max() / self._scale)

    def leading(self) -> tuple[Floats, Floats]:
        """Leading Ritz values, descending, and vectors."""
        chosen = self._ritz[:, ::-1][:, : self._k]
        vectors = np.ascontiguousarray((chosen.T @ self._basis[: self._size]).T)
        return self._values[::-1][: self._k].copy(), vectors

    def _restart(self) -> None:
        """Keep the best vectors only."""
        best = slice(self._size - self._kept, self._size)
        ritz = self._ritz[:, best]
        self._basis[: self._kept] = ritz.T @ self._basis[: self._size]
        self._projected = np.diag(self._values[best])
        self._coupling = self._coupling @ ritz
        self._size = self._kept

    def _orthogonal(self, product: Floats) -> tuple[Floats, Floats]:
        """Orthonormal block of what a product adds to the space, and its coefficients."""
        basis = self._basis[: self._size]
        Q, R = np.linalg.qr(product - basis.T @ (basis @ product))
        # Where the space is invariant, columns are rounding: directions as good as random ones, but
        # nothing that the residuals of the space should count.
        R[np.abs(np.diag(R)) <= _NEGLIGIBLE * self._scale] = 0.0
        for _ in range(2):  # once leaves rounding errors where little is left
            Q, turn = np.linalg.qr(Q - basis.T @ (basis @ Q))
            R = turn @ R
        return Q, R
