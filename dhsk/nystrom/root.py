"""Inverse root of the kernel matrix of the landmarks."""

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import InputError


def inverse_root(K: Floats) -> Floats:
    """R, (k, rank), float64, with R R' = K^+, largest eigenvalue of K first.

    Eigenvalues within rounding of 0 are dropped. Rounding of the entries of K may move them by k
    eps (of K's type) times the largest diagonal entry; computing them, by k eps (of float64) times
    the largest eigenvalue; and the most negative eigenvalue shows how far rounding did reach.

    Raises InputError if K has an eigenvalue below -sqrt(eps) times the largest, or is zero.
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
