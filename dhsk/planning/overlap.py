"""Number of features that two sparse samples share, which the sparse product costs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.samples import Samples

SAMPLED_ENTRIES = 4_000_000
"""Entries after which reading stops: a second of the slowest formats."""

_BLOCK_ROWS = 1000


def measured_overlap(samples: Samples) -> tuple[float, int]:
    """Mean number of features that two different samples share, and the number of samples read.

    It is Σ_c n_c (n_c - 1) / (n (n - 1)) for n_c of the first n samples of a sparse source with
    feature c.
    """
    n_samples, dim = samples.shape
    found: list[NDArray[Any]] = []
    rows = entries = 0
    for block in samples.blocks(min(_BLOCK_ROWS, n_samples)):
        if not isinstance(block, csr_array):
            raise TypeError(f"{samples.source} is not sparse")
        found.append(block.indices)
        rows += block.shape[0]
        entries += block.nnz
        if entries >= SAMPLED_ENTRIES:
            break
    indices = np.concatenate(found)
    # Columns without an entry change nothing, and there may be too many to count.
    sorted_out = dim > max(entries, rows)
    in_column = np.unique(indices, return_counts=True)[1] if sorted_out else np.bincount(indices)
    counts = in_column.astype(np.float64)  # pairs may pass 2^63
    pairs = float(counts @ (counts - 1))
    return (pairs / (rows * (rows - 1)) if rows > 1 else float(entries)), rows
