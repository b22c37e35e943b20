"""Parameters that choose landmarks, checked."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, whole_parameter

SELECTIONS: Final = ("rpcholesky", "uniform")
"""Ways to choose landmarks, besides their numbers."""


def check_counts(n_components: int, oversampling: float) -> None:
    """Refuse numbers of features, and of landmarks for each, that cannot be.

    Parameters
    ----------
    n_components
        Most features.
    oversampling
        Landmarks for each feature.

    Raises
    ------
    InputError
        One is below 1.
    """
    whole_parameter("n_components", n_components, 1)
    if real_parameter("oversampling", oversampling) < 1:
        raise InputError(f"oversampling must be at least 1, but it is {oversampling!r}")


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


def checked_selection(selection: str | ArrayLike, n: int) -> str | Indices:
    """Check how landmarks are chosen.

    Parameters
    ----------
    selection
        One of `SELECTIONS`, or numbers of samples.
    n
        Number of samples.

    Returns
    -------
    str or Indices
        The same.

    Raises
    ------
    InputError
        There is no such way, or no such sample.
    """
    if isinstance(selection, str):
        if selection not in SELECTIONS:
            raise InputError(
                f"selection must be {', '.join(map(repr, SELECTIONS))} or numbers of rows, but it "
                f"is {selection!r}"
            )
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
