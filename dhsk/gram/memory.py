"""Memory of samples, products and uploads; figures come from tests/benchmarks/memory.py."""

import math

import numpy as np

from dhsk.gram.storage.tiling import DtypeName
from dhsk.kernels.panels import panel_bytes
from dhsk.kernels.rows import DENSE_BYTES, are_ever_panels, are_never_dense

CHUNK_BYTES = 2 * 2**24
"""Memory for reading chunks of samples, besides the samples. CSR arrays are read in whole chunks of
a million numbers, as bytes and as numbers."""

UPLOADS = 2
"""Chunks that a task sends to a server at a time, while it fills the next one."""

DENSE_STRIPS = 3
"""Dense strips in memory in a product of two sparse blocks, each of at most `DENSE_BYTES`."""

SPARSE_COPIES = 4
"""Copies of a CSR block that a sparse product makes: transposed, sorted, and in float64."""

CSR_ENTRY_BYTES = 16
"""An entry of a sparse product before it becomes dense: a number and an index."""

CSR_ROW_BYTES = 8
"""Bytes of a row of CSR samples besides its entries: an index."""


def upload_bytes(chunk: int, open_chunks: int) -> int:
    """Bytes of the chunks of a task that are filled for a server, or on their way.

    A task that only waits for its last chunks lets the next one start.
    """
    return chunk * (open_chunks + 2 * UPLOADS)


def csr_entry_bytes(dtype: DtypeName) -> int:
    """Bytes of an entry of CSR samples: a number and an index."""
    return np.dtype(dtype).itemsize + 8


def product_bytes(
    edge: int,
    dim: int,
    block: float,
    row_entries: float | None,
    product_item: int,
    columns: int | None = None,
) -> int:
    """Bytes of an inner product of two blocks of samples, besides its factors and result.

    They have `edge` and `columns` samples, None for `edge` too. The fullest block has `block` bytes
    and on average `row_entries` entries a sample, None for dense samples; an entry of the product
    has `product_item` bytes.
    """
    if row_entries is None:
        return 0
    columns = edge if columns is None else columns
    product = SPARSE_COPIES * block + CSR_ENTRY_BYTES * min(DENSE_BYTES // 8, edge * columns)
    if not are_never_dense(row_entries, dim):
        strips = DENSE_STRIPS * min(DENSE_BYTES, product_item * max(edge, columns) * dim)
        product = max(product, strips)
    if are_ever_panels(row_entries, dim):
        product = max(product, panel_bytes(columns, dim))
    return math.ceil(product)
