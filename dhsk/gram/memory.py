"""Memory of a running task, from arithmetic; its figures come from tests/benchmarks/memory.py."""

import math

from dhsk.kernels.rows import DENSE_BYTES, sparse_is_cheaper

RESULT_COPIES = 2
"""Tile-sized arrays of the stored type in a running task: one is computed, one is written."""

CHUNK_BYTES = 2 * 2**24
"""What reading chunks of samples holds besides the samples. CSR arrays are read in whole chunks of
a million numbers, however few are wanted, as bytes and as numbers."""

DENSE_STRIPS = 3
"""Dense strips that the product of two sparse blocks holds, at most `DENSE_BYTES` each."""

SPARSE_COPIES = 4
"""Copies of a CSR block that a sparse product makes: transposed, sorted, and in float64."""

CSR_ENTRY_BYTES = 16
"""An entry of a sparse product before it is dense: a number and an index."""


def task_bytes(
    tile: int, group: int, dim: int, row_bytes: float, item: int, product_item: int, n_kernels: int
) -> int:
    """Peak memory of a task that computes and writes the tiles of a group, in bytes.

    Parameters
    ----------
    tile, group
        Edge of a tile in entries, and of the group in tiles.
    dim
        Number of features.
    row_bytes
        Bytes of one sample as the workers hold it.
    item, product_item
        Bytes of a stored entry and of an entry of a product.
    n_kernels
        Kernels computed from each product.

    Returns
    -------
    int
        Bytes, besides those of the idle process.
    """
    # A single kernel of the stored type overwrites its product in the result itself.
    products = 0 if n_kernels == 1 and item == product_item else min(n_kernels, 2)
    # Two results take turns; memory that is never touched is never there.
    results = min(RESULT_COPIES, group**2 * n_kernels)
    entries = (results * item + products * product_item) * tile**2
    block = tile * row_bytes
    sparse = block < product_item * tile * dim
    product = _sparse_product_bytes(tile, dim, row_bytes, product_item) if sparse else 0
    # The marks of equal rows are made of a copy of the block.
    reading = CHUNK_BYTES if sparse else max(block, min(2 * block, CHUNK_BYTES))
    return math.ceil(entries + (group + 1) * block + reading + product)


def _sparse_product_bytes(tile: int, dim: int, row_bytes: float, product_item: int) -> float:
    """Temporaries of `inner_product` on two CSR blocks, whichever path it may take."""
    fill = CSR_ENTRY_BYTES * min(DENSE_BYTES // 8, tile**2)
    as_sparse = SPARSE_COPIES * tile * row_bytes + fill
    # Σ_c f_c² <= Σ_c f_c: where this many multiply-adds are cheaper, no strip is ever dense.
    row_entries = (row_bytes - 8) / (product_item + 8)
    if sparse_is_cheaper(row_entries, dim):
        return as_sparse
    return max(as_sparse, DENSE_STRIPS * min(DENSE_BYTES, product_item * tile * dim))
