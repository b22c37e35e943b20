"""Checks of the parameters that choose landmarks."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, whole_parameter
from dhsk.nystrom.approximation import SELECTIONS

_EACH: Final = 3
_MOST: Final = 3000
"""Landmarks per feature with which the trace error was within 1.3 times the least possible with as
many features, on images, word counts and mutations; and an upper bound, as they cost N m^2."""


def check_choice(n_components: int, selection: str | ArrayLike, oversampling: float | None) -> None:
    """Check the parameters that choose landmarks, before any work.

    Parameters
    ----------
    n_components
        Number of features.
    selection
        One of `SELECTIONS`, or indices of samples, which `numbered` checks.
    oversampling
        Number of landmarks per feature; None for `usual_oversampling`.

    Raises
    ------
    InputError
        The selection is unknown, or a number is below 1.
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
    """Default number of landmarks per feature: 3 with "rpcholesky", up to 3,000 in all, else 1.

    Parameters
    ----------
    n_components
        Number of features.
    selection
        As checked by `check_choice`.
    """
    if isinstance(selection, str) and selection == "rpcholesky":
        return max(1.0, min(_EACH, _MOST / n_components))
    return 1.0


def check_landmark_tol(tol: float) -> None:
    """Refuse a tolerance of the relative trace error that is negative, or 1 or above.

    Parameters
    ----------
    tol
        The tolerance.

    Raises
    ------
    InputError
        It is out of this range.
    """
    if not 0 <= real_parameter("landmark_tol", tol) < 1:
        raise InputError(f"landmark_tol must be at least 0 and below 1, but it is {tol!r}")


def numbered(selection: str | ArrayLike, n: int) -> str | Indices:
    """Check the indices of landmarks among the samples.

    Parameters
    ----------
    selection
        As checked by `check_choice`.
    n
        Number of samples.

    Returns
    -------
    str or Indices
        The same selection, indices as an array.

    Raises
    ------
    InputError
        They are not integers, or there is no such sample.
    """
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
