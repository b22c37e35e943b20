"""How fast this machine computes kernels: the measured part of a plan."""

from time import perf_counter

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from dhsk.arrays import Rows
from dhsk.kernels import Kernel
from dhsk.samples import apply_map


def tile_rate(kernel: Kernel, dim: int, density: float | None) -> float:
    """Measure how many entries of a kernel one thread computes in a second, on made-up samples.

    Parameters
    ----------
    kernel
        The kernel.
    dim
        Number of features.
    density
        Fraction of entries that are not zero in sparse samples; None for dense ones.

    Returns
    -------
    float
        Entries per second.
    """
    rng = np.random.default_rng(0)
    n = int(min(512, max(16, 2e7 // dim)))
    X = rng.random((n, dim))
    rows: Rows = X if density is None else csr_array(X * (density > X) + np.eye(n, dim))
    if kernel.spherical:
        rows = apply_map("projective", rows)
    half = n // 2
    with threadpool_limits(limits=1):
        kernel(rows[:8], rows[half:])  # fills caches and pages
        start = perf_counter()
        kernel(rows[:half], rows[half:])
        return half * (n - half) / (perf_counter() - start)
