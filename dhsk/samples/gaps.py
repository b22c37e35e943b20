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
from dhsk.units import counted

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
        names, n = self.feature_names, self.shape[0]
        most = sorted(self._counts.items(), key=lambda one: -one[1])
        said = [f"{k if names is None else names[k]} {count:,}" for k, count in most]
        empty = sum(count == n for _, count in most)
        more = f"; {counted(empty, 'column')} of gaps alone count for nothing" if empty else ""
        warnings.warn(
            f"{self.source} has {counted(sum(self._counts.values()), 'gap')} in its {n:,} rows "
            f"({'column' if len(said) == 1 else 'columns'} {listed(said, _SAID)}), where the means "
            f"of the training samples stand{more}",
            InputWarning,
            stacklevel=frames_inside(),
        )
