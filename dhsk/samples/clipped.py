"""Samples to predict, whose values below 0 count as 0 where the fit saw counts only."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Rows
from dhsk.errors import InputWarning
from dhsk.samples.base import Samples
from dhsk.samples.zeros import frames_inside


@dataclass(frozen=True, eq=False)
class ClippedSamples(Samples):
    """Samples with 0 in place of values below it, which are counted in each pass.

    A scaler that was fitted to other samples, as in every fold of a cross-validation, takes new
    ones a little below 0.
    """

    samples: Samples
    _below: list[tuple[int, float]] = field(default_factory=list, repr=False)
    """Number of values below 0, and the least, of blocks that had some in the last pass."""

    def __post_init__(self) -> None:
        same = ("source", "shape", "is_sparse", "nnz", "indptr", "feature_names", "vectorizer")
        for name in same:
            object.__setattr__(self, name, getattr(self.samples, name))

    def _blocks(self, rows: int) -> Iterator[Rows]:
        self._below.clear()
        for block in self.samples.blocks(rows):
            values = block.data if isinstance(block, csr_array) else block
            below = (values < 0) & np.isfinite(values)
            if below.any():
                self._below.append((int(np.count_nonzero(below)), float(values[below].min())))
                values[below] = 0.0
                if isinstance(block, csr_array):
                    block.eliminate_zeros()
            yield block

    def ids(self, rows: int) -> Iterator[Sequence[str]] | None:
        """Names of the samples, see `Samples.ids`."""
        return self.samples.ids(rows)

    def warn(self) -> None:
        """Warn of values below 0 in the last pass, if there were any, with their number."""
        if not self._below:
            return
        counts, least = zip(*self._below, strict=True)
        warnings.warn(
            f"{sum(counts):,} of the values of {self.source} are below 0, the least "
            f"{min(least):.3g}, where the samples of the fit had none: they count as 0. If they "
            "are more than the rounding of a scaler that was fitted to other samples "
            "(MinMaxScaler(clip=True) has none), these are not the features of the fit",
            InputWarning,
            stacklevel=frames_inside(),
        )
