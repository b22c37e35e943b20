"""Gaps of dense samples: NaN, in whose place scaled columns have their mean."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dhsk.arrays import Floats, Rows
from dhsk.errors import warn
from dhsk.samples.base import Samples, WrappedSamples
from dhsk.samples.names import listed
from dhsk.units import counted

_SAID: Final = 5
"""Most columns that a warning names."""

_BELOW, _ABOVE = (-9.0, -99.0, -999.0, -9999.0, -99999.0), (999.0, 9999.0, 99999.0)
"""Numbers that people write for what is missing, below all others or above."""

_FAR: Final = 3.0
"""Times the next largest value that such a number is at least."""


def code_in(values: Floats) -> float | None:
    """A number in a column that seems to stand for gaps: it comes again, far from all others."""
    present = values[np.isfinite(values)]
    kinds, counts = np.unique(present, return_counts=True)
    if len(kinds) < 3:
        return None
    if kinds[0] in _BELOW and kinds[1] >= 0 and counts[0] > 1:
        return float(kinds[0])
    if kinds[-1] in _ABOVE and 0 < _FAR * kinds[-2] <= kinds[-1] and counts[-1] > 1:
        return float(kinds[-1])
    return None


def codes_in(rows: Rows, names: Sequence[str] | None) -> str:
    """Words for columns of dense rows in which numbers seem to stand for gaps; empty for none."""
    if not isinstance(rows, np.ndarray):
        return ""
    found = [(k, code) for k, column in enumerate(rows.T) if (code := code_in(column)) is not None]
    if not found:
        return ""
    said = [f"{k if names is None else names[k]} ({code:g})" for k, code in found]
    return f"{'column' if len(said) == 1 else 'columns'} {listed(said, _SAID)}"


def warn_of_codes(rows: Rows, samples: Samples) -> None:
    """Warn of numbers in the rows of samples that seem to stand for gaps."""
    said = codes_in(rows, samples.feature_names)
    if said:
        warn(
            f"{samples.source} has far numbers that come again in {said}: if they stand for what "
            "is missing, leave it empty, as na_values of pandas.read_csv does",
        )


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
        more = f"; {counted(empty, 'column')} of gaps alone: no clue" if empty else ""
        warn(
            f"{self.source}: {counted(sum(self._counts.values()), 'gap')} in {n:,} rows "
            f"({'column' if len(said) == 1 else 'columns'} {listed(said, _SAID)}), where the means "
            f"of columns stand{more}",
        )
