"""Memory of a running task, from arithmetic; its figures come from tests/benchmarks/memory.py."""

import math

import numpy as np

from dhsk.gram.storage.tiling import DtypeName
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

CSR_ROW_BYTES = 8
"""What a row of CSR samples takes besides its entries: an index."""


def csr_entry_bytes(dtype: DtypeName) -> int:
    """Bytes of an entry of CSR samples: a number and an index."""
    return np.dtype(dtype).itemsize + 8


def product_bytes(
    edge: int, dim: int, block: float, row_entries: float | None, product_item: int
) -> int:
    """Memory of an inner product of two blocks of samples besides its factors and its result.

    Parameters
    ----------
    edge
        Samples of a block.
    dim
        Number of features.
    block
        Bytes of the fullest block.
    row_entries
        Entries of a sample in it on average; None if the samples are dense.
    product_item
        Bytes of an entry of the product.

    Returns
    -------
    int
        Bytes.
    """
    if row_entries is None:
        return 0
    product = SPARSE_COPIES * block + CSR_ENTRY_BYTES * min(DENSE_BYTES // 8, edge**2)
    # Σ_c f_c² <= Σ_c f_c: where this many multiply-adds are cheaper, no strip is ever dense.
    if not sparse_is_cheaper(row_entries, dim):
        strips = DENSE_STRIPS * min(DENSE_BYTES, product_item * edge * dim)
        product = max(product, strips)
    return math.ceil(product)


def task_bytes(
    tile: int,
    dim: int,
    block: float,
    blocks: float,
    row_entries: float | None,
    product_item: int,
    result_item: int,
) -> int:
    """Peak memory of a task that computes and writes the tiles of a group, in bytes.

    Parameters
    ----------
    tile
        Edge of a tile in entries.
    dim
        Number of features.
    block
        Bytes of the samples of a tile's rows as the workers hold them, where they are fullest.
    blocks
        Bytes of the samples of the rows of a group of tiles, likewise.
    row_entries
        Entries of a sample in the fullest block on average; None if the samples are dense.
    product_item
        Bytes of an entry of a product.
    result_item
        Bytes of an entry of a tile that is in memory besides its product; 0 if there is none.

    Returns
    -------
    int
        Bytes, besides those of the idle process.
    """
    entries = (product_item + result_item) * tile**2
    product = product_bytes(tile, dim, block, row_entries, product_item)
    if row_entries is None:
        temporary = min(2 * block, CHUNK_BYTES)
    elif sparse_is_cheaper(row_entries, dim):
        temporary = max(CHUNK_BYTES, product)  # one after the other
    else:
        temporary = CHUNK_BYTES + product  # measured: chunks are not given back
    return math.ceil(entries + 2 * blocks + temporary)
