"""The samples on both sides of a Gram matrix, as far as its cost depends on them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dhsk.gram.memory import CSR_ROW_BYTES, csr_entry_bytes
from dhsk.gram.storage.tiling import DtypeName
from dhsk.samples import Samples


@dataclass(frozen=True)
class GramSides:
    """Samples of a Gram matrix, as far as its cost depends on them.

    Attributes
    ----------
    n_rows
        Number of samples N.
    dim
        Number of features.
    n_cols
        Number of samples on the other side; None for the symmetric matrix of the samples.
    nnz
        Stored entries of sparse samples, both sides together; None if they are dense.
    fullest
        Entries that so many consecutive samples have at most; None takes as many as on average.
    overlap
        Features that two sparse samples share on average; None takes that of uniform ones.
    """

    n_rows: int
    dim: int
    n_cols: int | None = None
    nnz: int | None = None
    fullest: Callable[[int], float] | None = None
    overlap: float | None = None

    @classmethod
    def of(cls, sides: Sequence[Samples], overlap: float | None = None) -> "GramSides":
        """Those of opened samples, one side or two."""
        n_rows, dim = sides[0].shape
        n_cols = sides[1].shape[0] if len(sides) > 1 else None
        if not any(side.is_sparse for side in sides):
            return cls(n_rows, dim, n_cols)
        nnz = sum(side.nnz or 0 for side in sides)
        return cls(
            n_rows, dim, n_cols, nnz, lambda n: max(s.most_entries(n) for s in sides), overlap
        )

    @property
    def samples(self) -> int:
        """Samples, both sides together."""
        return self.n_rows + (self.n_cols or 0)

    @property
    def shared(self) -> float | None:
        """Features that two sparse samples share; None if the samples are dense."""
        if self.nnz is None or self.overlap is not None:
            return None if self.nnz is None else self.overlap
        return self.dim * (self.nnz / self.samples / self.dim) ** 2

    def row_bytes(self, dtype: DtypeName) -> float:
        """Bytes of a sample in this type, on average."""
        if self.nnz is None:
            return np.dtype(dtype).itemsize * self.dim
        return csr_entry_bytes(dtype) * self.nnz / self.samples + CSR_ROW_BYTES
