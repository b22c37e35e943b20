"""Quantities of a Gram matrix that need no samples."""

import numpy as np
from scipy.sparse.linalg import eigsh

from dhsk.arrays import Floats
from dhsk.gram.matrix import GramMatrix


def leading_eigenvalues(G: GramMatrix, count: int = 100) -> Floats:
    """Largest eigenvalues of a symmetric Gram matrix, which is read into memory (8 N^2 bytes).

    Parameters
    ----------
    G
        The matrix, (N, N).
    count
        How many eigenvalues.

    Returns
    -------
    ndarray
        (min(count, N),), largest first.
    """
    K = G.submatrices([(slice(None), slice(None))], np.float64)[0]
    n = K.shape[0]
    if count >= n // 4:  # Lanczos pays for a small part of the spectrum only
        return np.ascontiguousarray(np.linalg.eigvalsh(K)[::-1][:count])
    # The start vector is fixed so that the same matrix gives the same digits.
    values = eigsh(K, k=count, v0=np.ones(n), return_eigenvectors=False, tol=1e-8)
    return np.sort(np.asarray(values, dtype=np.float64))[::-1].copy()
