"""Leading eigenvalues of a Gram matrix in a few passes."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.solvers.sources import Source

SMALL: Final = 1000
"""Most samples for which the whole matrix is decomposed: a tenth of a second."""

PASSES: Final = 3
"""Blocks of vectors in the Krylov space, after the random ones: a pass for each, and one more."""

OVERSAMPLING: Final = 20
"""Vectors of a block in addition to the number of eigenvalues."""

MANY: Final = 20_000
"""Samples from which fewer eigenvalues are computed, so that the blocks stay small."""


def usual_count(n: int) -> int:
    """Number of eigenvalues in a report of n samples."""
    return 100 if n < MANY else 30


def largest_pairs(S: Floats, k: int) -> tuple[Floats, Floats]:
    """The k largest eigenvalues of a symmetric matrix, ascending, and their vectors, (n, k).

    LAPACK's dsyevr, asked for few, finds none where all are nearly equal, as of samples that have
    nothing in common: all are computed then.
    """
    from scipy.linalg import eigh

    n = len(S)
    found, vectors = eigh(S, subset_by_index=(n - k, n - 1))
    if len(found) < k:
        found, vectors = np.linalg.eigh(S)
    return found[-k:], vectors[:, -k:]


def bytes_of(n: int) -> int:
    """Memory of `leading_eigenvalues` for n samples, in bytes."""
    if n <= SMALL:
        return 16 * n * n
    block = 8 * n * (usual_count(n) + OVERSAMPLING)
    # Of the block of a pass, parts are on their way to tasks and back.
    return (2 * (PASSES + 1) + 4) * block


def leading_eigenvalues(source: Source, count: int | None = None) -> tuple[Floats, bool]:
    """Largest eigenvalues of a symmetric matrix, descending; whether they are exact to rounding.

    With more than `SMALL` samples they are the Ritz values of a block Krylov space [1]_, which are
    at most the true values, and agree with them to many digits where the spectrum decays. The
    default count is `usual_count`.

    References
    ----------
    .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
       approximate singular value decomposition", NeurIPS 28 (2015), algorithm 2.
    """
    count = usual_count(source.n) if count is None else count
    if source.n <= max(SMALL, (PASSES + 1) * (count + OVERSAMPLING)):
        K = source.block(np.arange(source.n))[:, : source.n].astype(np.float64, copy=False)
        return np.ascontiguousarray(np.linalg.eigvalsh(K)[::-1][:count]), True
    # A fixed seed: the same matrix gives the same digits.
    V = np.random.default_rng(0).standard_normal((source.n, count + OVERSAMPLING))
    basis: list[Floats] = []
    product, width = source.product(V), V.shape[1]
    projected = np.zeros((PASSES * width, PASSES * width))
    for end in range(width, len(projected) + 1, width):
        basis.append(_orthonormal(product, basis))
        product = source.product(basis[-1])
        projected[:end, end - width : end] = np.concatenate([Q.T @ product for Q in basis])
    values = np.linalg.eigvalsh(projected, UPLO="U")
    return np.ascontiguousarray(values[::-1][:count]), False


def _orthonormal(V: Floats, basis: Sequence[Floats]) -> Floats:
    """Orthonormal columns of V without their parts in the blocks of an orthonormal basis."""
    Q = V
    for _ in range(2 if basis else 1):  # once leaves rounding errors where little is left
        for block in basis:
            Q = Q - block @ (block.T @ Q)
        Q = np.linalg.qr(Q)[0]
    return Q
