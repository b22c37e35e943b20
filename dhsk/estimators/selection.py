"""Parameters that choose landmarks, checked."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, whole_parameter
from dhsk.nystrom.approximation import SELECTIONS

_EACH: Final = 3
_MOST: Final = 3000
"""Landmarks for each feature with which the trace error came within 1.3 times the least of so many
features, on images, word counts and mutations; and where that ends, as they cost N m^2."""


def check_choice(n_components: int, selection: str | ArrayLike, oversampling: float | None) -> None:
    """Refuse words and numbers for a choice of landmarks that cannot be, before any work.

    Parameters
    ----------
    n_components
        Most features.
    selection
        One of `SELECTIONS`, or numbers of samples, which are left to `numbered`.
    oversampling
        Landmarks for each feature; None leaves it to `usual_oversampling`.

    Raises
    ------
    InputError
        There is no such way to choose, or a number is below 1.
    """
    whole_parameter("n_components", n_components, 1)
    if oversampling is not None and not real_parameter("oversampling", oversampling) >= 1:
        raise InputError(f"oversampling must be at least 1, but it is {oversampling!r}")
    if isinstance(selection, str) and selection not in SELECTIONS:
        raise InputError(
            f"selection must be one of {', '.join(SELECTIONS)} or numbers of rows, but it is "
            f"{selection!r}"
        )


def usual_oversampling(n_components: int, selection: str | ArrayLike) -> float:
    """Landmarks for each feature where they are to be found well: three, but 3,000 in all.

    Parameters
    ----------
    n_components
        Most features.
    selection
        As checked by `check_choice`; other than by Cholesky, one landmark is a feature.
    """
    if isinstance(selection, str) and selection == "rpcholesky":
        return max(1.0, min(_EACH, _MOST / n_components))
    return 1.0


def check_trace_error(name: str, tol: float) -> None:
    """Refuse a relative trace error that is negative or not below 1.

    Parameters
    ----------
    name
        Of the parameter.
    tol
        Its value.

    Raises
    ------
    InputError
        It is.
    """
    if not 0 <= real_parameter(name, tol) < 1:
        raise InputError(f"{name} must be at least 0 and below 1, but it is {tol!r}")


def numbered(selection: str | ArrayLike, n: int) -> str | Indices:
    """Check numbers of landmarks among the samples.

    Parameters
    ----------
    selection
        As checked by `check_choice`.
    n
        Number of samples.

    Returns
    -------
    str or Indices
        The same.

    Raises
    ------
    InputError
        They are no numbers, or there is no such sample.
    """
    if isinstance(selection, str):
        return selection
    numbers = np.asarray(selection)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size:
        raise InputError(
            "selection must be numbers of rows, (k,), but it is an array of shape "
            f"{numbers.shape} and type {numbers.dtype}"
        )
    outside = numbers[(numbers < 0) | (numbers >= n)]
    if outside.size:
        raise InputError(
            f"selection names row {outside[0]}, but the {n} samples have rows 0 to {n - 1}"
        )
    return numbers.astype(np.intp)
