"""Memory of a running task, from arithmetic; its figures come from tests/benchmarks/memory.py."""

import math

from dhsk.kernels.rows import DENSE_BYTES, sparse_is_cheaper

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
    tile: int,
    group: int,
    dim: int,
    row_bytes: float,
    row_entries: float | None,
    item: int,
    product_item: int,
    whole: bool,
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
    row_entries
        Entries of a sparse sample on average; None if the samples are dense.
    item, product_item
        Bytes of a stored entry and of an entry of a product.
    whole
        Tiles are written whole, as the full layout needs them, not strip by strip.

    Returns
    -------
    int
        Bytes, besides those of the idle process.
    """
    # Kernels that are not spherical convert whole tiles too.
    results = item if whole or item != product_item else 0
    entries = (product_item + results) * tile**2
    block = tile * row_bytes
    if row_entries is None:
        temporary = min(2 * block, CHUNK_BYTES)
    else:
        fill = CSR_ENTRY_BYTES * min(DENSE_BYTES // 8, tile**2)
        product = SPARSE_COPIES * block + fill
        temporary = max(CHUNK_BYTES, product)  # one after the other
        # Σ_c f_c² <= Σ_c f_c: where this many multiply-adds are cheaper, no strip is ever dense.
        if not sparse_is_cheaper(row_entries, dim):
            strips = DENSE_STRIPS * min(DENSE_BYTES, product_item * tile * dim)
            temporary = CHUNK_BYTES + max(product, strips)  # measured: chunks are not given back
    return math.ceil(entries + 2 * group * block + temporary)
