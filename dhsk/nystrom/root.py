"""The small factorisation of the Nyström method."""

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import InputError


def inverse_root(K: Floats) -> Floats:
    """Root of the pseudo-inverse of a kernel matrix of landmarks.

    Parameters
    ----------
    K
        Kernel between landmarks, symmetric, (k, k), float64 or float32.

    Returns
    -------
    Floats
        R, (k, rank), float64, with R R' = K^+, largest eigenvalue of K first. Dropped are
        eigenvalues below k eps times the largest entry of the diagonal, eps being that of K's type:
        so far may rounding of the entries move them. Dropped too are those below k times the eps
        of float64 times the largest eigenvalue, as far as their computation may move them, and
        those no greater than the most negative one, which tells how far rounding did reach.

    Raises
    ------
    InputError
        K has an eigenvalue below -sqrt(eps) times the largest, or is all zero.
    """
    values, vectors = np.linalg.eigh(K.astype(np.float64))
    eps, largest = float(np.finfo(K.dtype).eps), float(np.abs(values).max())
    if values[0] < -np.sqrt(eps) * largest:
        raise InputError(
            f"the kernel matrix of the {len(K)} landmarks has eigenvalue {values[0]:.3g}: "
            "choose a positive semi-definite kernel"
        )
    rounding = max(eps * float(K.diagonal().max()), float(np.finfo(np.float64).eps) * largest)
    cut = max(len(K) * rounding, -values[0])
    kept = np.flatnonzero(values > cut)[::-1]
    if not kept.size:
        raise InputError(f"the kernel is 0 between all {len(K)} landmarks: choose others")
    root: Floats = vectors[:, kept] / np.sqrt(values[kept])
    return root
