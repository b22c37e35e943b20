"""Checks of the parameters that choose landmarks."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, whole_parameter
from dhsk.nystrom.approximation import SELECTIONS

_EACH: Final = 3
"""Landmarks per feature. Measured: on images, word counts and mutations the trace error was within
1.3 times the least possible with as many features."""

_MOST: Final = 3000
"""Most landmarks by default, as m of them cost N m^2."""


def check_choice(n_components: int, selection: str | ArrayLike, oversampling: float | None) -> None:
    """Raise InputError for an unknown selection, or numbers of features or landmarks below 1.

    `numbered` checks a selection by indices.
    """
    whole_parameter("n_components", n_components, 1)
    if oversampling is not None and not real_parameter("oversampling", oversampling) >= 1:
        raise InputError(f"oversampling must be at least 1, but it is {oversampling!r}")
    if isinstance(selection, str) and selection not in SELECTIONS:
        raise InputError(
            f"selection must be one of {', '.join(SELECTIONS)} or indices of rows, but it is "
            f"{selection!r}"
        )


def usual_oversampling(n_components: int, selection: str | ArrayLike) -> float:
    """Default number of landmarks per feature: 3 with "rpcholesky", up to 3,000 in all, else 1."""
    if isinstance(selection, str) and selection == "rpcholesky":
        return max(1.0, min(_EACH, _MOST / n_components))
    return 1.0


def check_landmark_tol(tol: float) -> None:
    """Raise InputError for a tolerance of the relative trace error outside [0, 1)."""
    if not 0 <= real_parameter("landmark_tol", tol) < 1:
        raise InputError(f"landmark_tol must be at least 0 and below 1, but it is {tol!r}")


def numbered(selection: str | ArrayLike, n: int) -> str | Indices:
    """Check that a selection by indices fits n samples; return it, indices as an array."""
    if isinstance(selection, str):
        return selection
    numbers = np.asarray(selection)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size:
        raise InputError(
            "selection must be indices of rows, (k,), but it is an array of shape "
            f"{numbers.shape} and type {numbers.dtype}"
        )
    outside = numbers[(numbers < 0) | (numbers >= n)]
    if outside.size:
        raise InputError(
            f"selection names row {outside[0]}, but the {n} samples have rows 0 to {n - 1}"
        )
    return numbers.astype(np.intp)
