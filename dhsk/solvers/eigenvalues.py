"""Leading eigenvalues of a Gram matrix by a few passes over it."""

from typing import Final

import numpy as np

from dhsk.arrays import Floats, blocks
from dhsk.solvers.sources import ArraySource, Source

SMALL: Final = 1000
"""Samples up to which the whole matrix is decomposed: a tenth of a second."""

PASSES: Final = 3
"""Of narrow blocks, before one of all of them together."""

OVERSAMPLING: Final = 20
"""Vectors of a block beyond the eigenvalues that are wanted."""

HELD_BYTES: Final = 1 << 28
"""A matrix of up to so many bytes is read once, not in each pass."""

MANY: Final = 20_000
"""Samples from which fewer eigenvalues are computed, so that the blocks stay small."""


def usual_count(n: int) -> int:
    """How many eigenvalues a report of n samples shows."""
    return 100 if n < MANY else 30


def bytes_of(n: int) -> int:
    """Bytes that `leading_eigenvalues` holds of n samples."""
    if n <= SMALL:
        return 16 * n * n
    block = 8 * n * (usual_count(n) + OVERSAMPLING)
    # Where the matrix is not held, parts of a block are on their way to tasks and back.
    read = 8 * n * n if 8 * n * n <= HELD_BYTES else 4 * block
    return read + 3 * PASSES * block


def leading_eigenvalues(source: Source, count: int | None = None) -> tuple[Floats, bool]:
    """Largest eigenvalues of a symmetric matrix.

    Parameters
    ----------
    source
        The matrix, (N, N).
    count
        How many eigenvalues; None for `usual_count`.

    Returns
    -------
    ndarray
        (min(count, N),), largest first: of more than `SMALL` samples the Ritz values of a block
        Krylov space [1]_, which are at most the true values, and equal to many digits wherever the
        spectrum falls.
    bool
        Whether they are exact to rounding.

    References
    ----------
    .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
       approximate singular value decomposition", NeurIPS 28 (2015), algorithm 2.
    """
    count = usual_count(source.n) if count is None else count
    if source.n <= max(SMALL, (PASSES + 1) * (count + OVERSAMPLING)):
        K = source.block(np.arange(source.n))[:, : source.n].astype(np.float64, copy=False)
        return np.ascontiguousarray(np.linalg.eigvalsh(K)[::-1][:count]), True
    if 8 * source.n**2 <= HELD_BYTES:
        source = ArraySource(source.block(np.arange(source.n))[:, : source.n])
    # The start is fixed so that the same matrix gives the same digits.
    V = np.random.default_rng(0).standard_normal((source.n, count + OVERSAMPLING))
    krylov = []
    for _ in range(PASSES):
        V = np.linalg.qr(source.product(V))[0]
        krylov.append(V)
    Q = np.linalg.qr(np.concatenate(krylov, axis=1))[0]
    # Block by block: vectors travel with the tasks, and all at once would take three times as much.
    width = count + OVERSAMPLING
    products = [source.product(Q[:, part]) for part in blocks(Q.shape[1], width)]
    projected = Q.T @ np.concatenate(products, axis=1)
    values = np.linalg.eigvalsh((projected + projected.T) / 2)
    return np.ascontiguousarray(values[::-1][:count]), False
