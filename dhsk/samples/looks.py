"""What values seem to be, by some rows of them: logarithms of counts, z-scores, other units."""

from typing import Final

import numpy as np

from dhsk.arrays import Floats

_CLOSE: Final = 1e-3
"""Relative difference from a whole number, or from the same total, that float32 explains."""

_SIGNED: Final = 0.05
"""Least share of values below 0 in z-scores, of which about half are."""

_HEAVY: Final = 0.5
"""Least share of all values that a column has where its unit hides the others."""


def seems(values: Floats) -> str | None:
    """What dense rows, (n, dim), seem to be: "z-scores" or "logarithms"; None for neither."""
    if (values < 0).mean() > _SIGNED:
        return "z-scores"
    if len(values) < 2 or (values < 0).any() or values.max() > 30 or _whole(values):
        return None
    counts = np.expm1(values)
    totals = counts.sum(axis=1)
    same = np.ptp(totals) <= _CLOSE * totals.max()
    return "logarithms" if same or _whole(counts) else None


def heavy_column(values: Floats) -> tuple[int, float] | None:
    """Column with most of all values, and its share, where columns seem to have other units.

    Counts and proportions have one unit: all values are whole, or all rows have the same total.
    """
    totals = values.sum(axis=1)
    if values.shape[1] < 3 or (values < 0).any() or _whole(values) or not totals.max() > 0:
        return None
    if np.ptp(totals) <= _CLOSE * totals.max():
        return None
    shares = values.sum(axis=0) / totals.sum()
    column = int(shares.argmax())
    return (column, float(shares[column])) if shares[column] >= _HEAVY else None


def _whole(values: Floats) -> bool:
    return bool((np.abs(values - np.round(values)) <= _CLOSE * np.maximum(values, 1)).all())
