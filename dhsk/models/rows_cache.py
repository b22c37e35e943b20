"""Mapped samples of a store that this process needs again and again."""

from typing import Any, Final

import numpy as np
from scipy.sparse import vstack

from dhsk.arrays import Indices, Rows, blocks, union
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.gram.memory import CSR_ROW_BYTES, csr_entry_bytes

KEPT_BYTES: Final = 128 * 2**20
"""Most bytes of rows that are kept beside those that were asked for last."""

_PARTS: Final = 4
"""Parts a core, in which rows are read."""


def row_bytes(G: GramMatrix) -> float:
    """Mean bytes of a sample of a store in memory."""
    header, nnz = G.header, G.header.nnz[0]
    if nnz is None:
        return float(header.dim * np.dtype(header.product_dtype).itemsize)
    return csr_entry_bytes(header.product_dtype) * nnz / header.n_rows + CSR_ROW_BYTES


class RowsCache:
    """Rows of the samples of a matrix, kept in memory once they were read.

    Samples that are anywhere in a store take as long to read as most of it.
    """

    def __init__(self, G: GramMatrix) -> None:
        self._G = G
        self._samples: Indices = np.empty(0, np.intp)
        self._rows: Any = None

    def take(self, samples: Indices) -> Rows:
        """Rows of some samples, each once, in their order, (m, dim)."""
        if not np.isin(samples, self._samples, assume_unique=True).all():
            wanted = union([self._samples, samples], self._G.shape[0])
            if len(wanted) * row_bytes(self._G) > KEPT_BYTES:
                wanted = np.sort(samples)
            self._samples, self._rows = wanted, self._read(wanted)
        rows: Rows = self._rows[np.searchsorted(self._samples, samples)]
        return rows

    def _read(self, samples: Indices) -> Any:
        cores = core_count()
        size = max(1, -(-len(samples) // (_PARTS * cores)))
        parts = ((samples[part],) for part in blocks(len(samples), size))
        found: list[Any] = list(Threads(cores).run(self._G.staged_rows, parts, ordered=True))
        if isinstance(found[0], np.ndarray):
            return np.concatenate(found)
        return vstack(found, format="csr")
