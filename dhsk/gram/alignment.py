"""How well a kernel agrees with labels."""

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.gram.moments import DenseVectors, moments
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import SourceOfTiles
from dhsk.gram.views import centred
from dhsk.samples.labels import check_labels

MOST_CLASSES: Final = 10_000
"""Most classes of labels: each is a vector of numbers."""

ROUNDING: Final = 256 * float(np.finfo(np.float64).eps)
"""Norm of a centred matrix, as a share of that of its mean, at which entries differ by rounding."""


def alignment(source: SourceOfTiles, tiling: Tiling, y: ArrayLike) -> float:
    """Centred alignment of a symmetric matrix with labels; see `Operations.alignment`."""
    Y = centred(target_columns(y, tiling.n_rows))
    target = float(np.linalg.norm(Y.T @ Y))
    if target == 0:
        raise InputError("all rows of y are the same, so that nothing is aligned with it")
    found = moments(source, tiling, DenseVectors(Y))
    centred_norm = float(np.sqrt(found.centred_norm2))
    mean = tiling.n_rows * abs(float(found.row_means.mean()))  # norm of a matrix of that entry
    if centred_norm <= ROUNDING * mean:
        raise InputError(
            f"the kernel is constant on these samples to rounding, as its centred matrix has norm"
            f" {centred_norm:.1g} and its mean alone {mean:.1g}: where samples differ, a smaller"
            " time or width tells them apart"
        )
    return float(found.forms.sum()) / (centred_norm * target)


def target_columns(y: ArrayLike, n_samples: int) -> Floats:
    """Features of labels, (N, columns): those given, numbers as one, or an indicator a class."""
    given = np.asarray(y)
    if given.ndim == 2 or (given.dtype.kind == "f" and np.any(given != np.round(given))):
        return _numbers(given, n_samples)
    labels = check_labels(y, n_samples, "y", numbers="if they are, give them as y[:, None]")
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) > MOST_CLASSES:
        raise InputError(
            f"y has {len(classes)} classes, more than {MOST_CLASSES}: give numbers of a regression "
            "as a column, y[:, None]"
        )
    columns = np.zeros((n_samples, len(classes)))
    columns[np.arange(n_samples), codes] = 1.0
    return columns


def _numbers(given: NDArray[Any], n_samples: int) -> Floats:
    """Finite numbers as columns, (N, columns), or an InputError."""
    if given.ndim > 2 or len(given) != n_samples:
        raise InputError(
            f"y must have a row for each of the {n_samples} samples, but its shape is {given.shape}"
        )
    if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
        raise InputError("y must be finite numbers if it has columns or is no whole numbers")
    return given.reshape(n_samples, -1).astype(np.float64)
