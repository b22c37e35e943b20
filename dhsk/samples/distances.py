"""Tables of distances between samples, which are no features."""

from typing import Final

import numpy as np

from dhsk.arrays import Rows
from dhsk.errors import warn
from dhsk.samples.base import Samples
from dhsk.samples.looks import first_rows

_FEWEST: Final = 10
"""Least number of rows that tell distances."""

_LEAST_POSITIVE: Final = 0.9
"""Least share of values off the diagonal above 0; matrices of graphs have fewer."""

DISTANCES: Final = (
    "distances between samples, not features: give the measurements, or in Python a kernel of "
    "them, np.exp(-D**2 / (2 * sigma**2)), to SVC(kernel='precomputed') of scikit-learn"
)


def are_distances(rows: Rows) -> bool:
    """Whether the first rows seem to be those of a matrix of distances, or of its lower triangle.

    As many columns as rows of samples are for the caller to compare.
    """
    n = min(rows.shape)
    if not isinstance(rows, np.ndarray) or n < _FEWEST:
        return False
    upper, lower = np.triu_indices(n, 1), np.tril_indices(n, -1)
    below, above = rows[lower], rows[:n, :n].T[lower]
    empty = bool(np.isnan(rows[upper]).all())
    diagonal = rows.diagonal()
    if (diagonal[~np.isnan(diagonal)] if empty else diagonal).any():  # NaN is not 0
        return False
    positive = np.mean(below > 0) >= _LEAST_POSITIVE and not (below < 0).any()
    return bool(positive and (empty or np.allclose(below, above)))


def warn_of_distances(samples: Samples) -> None:
    """Warn of samples that seem to be distances between them."""
    if samples.shape[0] == samples.shape[1] and are_distances(first_rows(samples)):
        warn(f"{samples.source} seems to hold {DISTANCES}")
