"""Gaps of dense samples: NaN, in whose place scaled columns have their mean."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from dhsk.arrays import Rows
from dhsk.errors import InputWarning
from dhsk.samples.base import WrappedSamples
from dhsk.samples.names import listed
from dhsk.samples.zeros import frames_inside

_SAID = 5
"""Most columns that a warning names."""


@dataclass(frozen=True, eq=False)
class GappedSamples(WrappedSamples):
    """The same samples, whose gaps are counted in each pass."""

    _counts: dict[int, int] = field(default_factory=dict, repr=False)
    """Gaps of the last pass, by column."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        self._counts.clear()
        for block in self.samples.blocks(rows):
            if isinstance(block, np.ndarray) and (gaps := np.isnan(block)).any():
                for column in np.flatnonzero(gaps.any(axis=0)).tolist():
                    found = int(np.count_nonzero(gaps[:, column]))
                    self._counts[column] = self._counts.get(column, 0) + found
            yield block

    def warn(self) -> None:
        """Warn, once for the same samples, of gaps in the last pass, by column."""
        if not self._counts or vars(self.samples).get("_told_gaps"):
            return
        vars(self.samples)["_told_gaps"] = True  # not a field, as what was read is none
        names = self.feature_names
        most = sorted(self._counts.items(), key=lambda one: -one[1])
        said = [f"{column if names is None else names[column]} {n:,}" for column, n in most]
        warnings.warn(
            f"{self.source} has no value in {sum(self._counts.values()):,} places "
            f"({'column ' if len(said) == 1 else 'columns '}{listed(said, _SAID)}, of "
            f"{self.shape[0]:,} rows): the means of the training samples stand there",
            InputWarning,
            stacklevel=frames_inside(),
        )
