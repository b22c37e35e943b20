"""Leading eigenvalues of a Gram matrix in a few passes."""

from typing import Final

import numpy as np

from dhsk.arrays import Floats, blocks
from dhsk.execution.tasks import Executor
from dhsk.solvers.sources import ArraySource, Source

SMALL: Final = 1000
"""Most samples for which the whole matrix is decomposed: a tenth of a second."""

PASSES: Final = 3
"""Passes with narrow blocks of vectors, before one with all of them together."""

OVERSAMPLING: Final = 20
"""Vectors of a block in addition to the number of eigenvalues."""

MOST_BYTES: Final = 1 << 28
"""Largest matrix, in bytes, that is read into memory instead of in each pass."""

MANY: Final = 20_000
"""Samples from which fewer eigenvalues are computed, so that the blocks stay small."""


def usual_count(n: int) -> int:
    """Number of eigenvalues in a report of n samples."""
    return 100 if n < MANY else 30


def bytes_of(n: int) -> int:
    """Memory of `leading_eigenvalues` for n samples, in bytes."""
    if n <= SMALL:
        return 16 * n * n
    block = 8 * n * (usual_count(n) + OVERSAMPLING)
    # If passes read the matrix, parts of a block are on their way to tasks and back.
    read = 8 * n * n if 8 * n * n <= MOST_BYTES else 4 * block
    return read + 3 * PASSES * block


def leading_eigenvalues(
    source: Source, count: int | None = None, executor: Executor | None = None
) -> tuple[Floats, bool]:
    """Largest eigenvalues of a symmetric matrix, descending; whether they are exact to rounding.

    With more than `SMALL` samples they are the Ritz values of a block Krylov space [1]_, which are
    at most the true values, and agree with them to many digits where the spectrum decays. The
    default count is `usual_count`. A matrix that fits in memory is multiplied on `executor`, if
    there is one, in this process.

    References
    ----------
    .. [1] C. Musco and C. Musco, "Randomized block Krylov methods for stronger and faster
       approximate singular value decomposition", NeurIPS 28 (2015), algorithm 2.
    """
    count = usual_count(source.n) if count is None else count
    if source.n <= max(SMALL, (PASSES + 1) * (count + OVERSAMPLING)):
        K = source.block(np.arange(source.n))[:, : source.n].astype(np.float64, copy=False)
        return np.ascontiguousarray(np.linalg.eigvalsh(K)[::-1][:count]), True
    if 8 * source.n**2 <= MOST_BYTES:
        whole = source.block(np.arange(source.n))[:, : source.n]
        source = ArraySource(whole, executor)
    # A fixed seed: the same matrix gives the same digits.
    V = np.random.default_rng(0).standard_normal((source.n, count + OVERSAMPLING))
    krylov = []
    for _ in range(PASSES):
        V = np.linalg.qr(source.product(V))[0]
        krylov.append(V)
    Q = np.linalg.qr(np.concatenate(krylov, axis=1))[0]
    # Block by block: vectors travel with the tasks, and all at once would take three times as many
    # bytes.
    width = count + OVERSAMPLING
    products = [source.product(Q[:, part]) for part in blocks(Q.shape[1], width)]
    projected = Q.T @ np.concatenate(products, axis=1)
    values = np.linalg.eigvalsh((projected + projected.T) / 2)
    return np.ascontiguousarray(values[::-1][:count]), False
