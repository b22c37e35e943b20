"""Sizes of the samples of a Gram matrix, which determine its cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dhsk.gram.memory import CSR_ROW_BYTES, csr_entry_bytes
from dhsk.gram.storage.tiling import DtypeName
from dhsk.samples import Samples


@dataclass(frozen=True)
class GramSides:
    """Sizes of the row and column samples of a Gram matrix."""

    n_rows: int
    dim: int
    """Number of features."""
    n_cols: int | None = None
    """Number of column samples; None for the symmetric matrix of the row samples."""
    nnz: int | None = None
    """Stored entries of the sparse samples of both sides; None if they are dense."""
    fullest: Callable[[int], float] | None = field(default=None, compare=False, repr=False)
    """Most entries of a number of consecutive sparse samples; None if only the mean is known."""
    overlap: float | None = None
    """Mean number of features that two sparse samples share; None for uniform ones."""

    @classmethod
    def of(cls, sides: Sequence[Samples], overlap: float | None = None) -> "GramSides":
        """Sizes of opened samples, of one side or two."""
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
        """Number of samples of both sides."""
        return self.n_rows + (self.n_cols or 0)

    @property
    def row_entries(self) -> float | None:
        """Mean number of entries of a sparse sample; None if the samples are dense."""
        return None if self.nnz is None else self.nnz / self.samples

    @property
    def shared(self) -> float | None:
        """Mean number of features that two sparse samples share; None if the samples are dense."""
        if self.row_entries is None or self.overlap is not None:
            return None if self.row_entries is None else self.overlap
        return self.dim * (self.row_entries / self.dim) ** 2

    def most_entries(self, rows: int) -> float:
        """Most entries of consecutive samples; their mean if `fullest` is None."""
        average = rows * (self.row_entries or 0.0)
        return average if self.fullest is None else max(average, self.fullest(rows))

    def row_bytes(self, dtype: DtypeName) -> float:
        """Mean bytes of a sample in this type."""
        if self.row_entries is None:
            return np.dtype(dtype).itemsize * self.dim
        return csr_entry_bytes(dtype) * self.row_entries + CSR_ROW_BYTES
