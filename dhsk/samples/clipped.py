"""Samples to predict, whose values below 0 count as 0 where the fit saw counts only."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows, numbered
from dhsk.errors import InputError, warn
from dhsk.kernels.rows import place_of
from dhsk.samples.base import WrappedSamples

MOST: Final = 0.25
"""Largest sum of the values below 0, as a share of the sum of those above.

A MinMaxScaler that was fitted to other samples leaves 0.002 in shuffled folds and at most 0.05
where a class is new (wine, breast cancer, digits), and never more than this in one sample. The
values of z-scores below 0 sum to as much as those above.
"""


class _Below(NamedTuple):
    """Values below 0 of a block."""

    number: int
    total: float
    """Their sum, without its sign."""
    least: float
    row: int
    """Row of the least among all samples."""
    column: int


@dataclass(frozen=True, eq=False)
class ClippedSamples(WrappedSamples):
    """Samples with 0 in place of values below it, which are counted in each pass.

    A scaler that was fitted to other samples, as in every fold of a cross-validation, takes new
    ones a little below 0. A pass ends with InputError if the values below 0 are more than that.
    """

    _below: list[_Below] = field(default_factory=list, repr=False)
    """Of blocks that had some in the last pass."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        self._below.clear()
        above = 0.0
        for first, block in numbered(self.samples.blocks(rows)):
            values = block.data if isinstance(block, csr_array) else block
            below = (values < 0) & np.isfinite(values)
            if below.any():
                self._below.append(_below_zero(block, values, below, first))
                values[below] = 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                above += float(values.sum(dtype=np.float64))
            if below.any() and isinstance(block, csr_array):
                block.eliminate_zeros()
            yield block
        self._refuse_other_features(above)

    def _refuse_other_features(self, above: float) -> None:
        """Raise InputError if values below 0 weigh too much beside the sum of those above."""
        total = sum(found.total for found in self._below)
        if np.isfinite(above) and total > MOST * above:  # other values are refused by the map
            raise InputError(
                f"{self._said()}, and together {total / (total + above):.0%} of all values by "
                "size: these are other features than those of the fit, which had none below 0, "
                "such as z-scores for counts. Give the features of the fit; if a scaler was "
                "fitted to other samples, MinMaxScaler(clip=True) has no values below 0"
            )

    def warn(self) -> None:
        """Warn of values below 0 in the last pass, if there were any, with their number."""
        if not self._below:
            return
        warn(
            f"{self._said()}, where the samples of the fit had none: they count as 0. If they "
            "are more than the rounding of a scaler that was fitted to other samples "
            "(MinMaxScaler(clip=True) has none), these are not the features of the fit",
        )

    def _said(self) -> str:
        """Number of the values below 0 in the last pass, and the least."""
        least = min(self._below, key=lambda found: found.least)
        return (
            f"{sum(found.number for found in self._below):,} of the values of {self.source} are "
            f"below 0, the least {least.least:.3g} (row {least.row}, column {least.column}, "
            "counted from 0)"
        )


def _below_zero(block: Rows, values: Floats, below: NDArray[np.bool], first_row: int) -> _Below:
    """Values of a block that are below 0; `below` says which."""
    position = int(np.where(below, values, 0.0).argmin())
    row, column = place_of(block, position)
    return _Below(
        int(np.count_nonzero(below)),
        -float(values[below].sum(dtype=np.float64)),
        float(values.flat[position]),
        first_row + row,
        column,
    )
