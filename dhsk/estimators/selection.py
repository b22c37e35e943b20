"""Number of landmarks that is usual."""

from typing import Final

from numpy.typing import ArrayLike

_EACH: Final = 3
"""Landmarks per feature. Measured: on images, word counts and mutations the trace error was within
1.3 times the least possible with as many features."""

_MOST: Final = 3000
"""Most landmarks by default, as m of them cost N m^2."""


def usual_oversampling(n_components: int, selection: str | ArrayLike) -> float:
    """Default number of landmarks per feature: 3 with "rpcholesky", up to 3,000 in all, else 1."""
    if isinstance(selection, str) and selection == "rpcholesky":
        return max(1.0, min(_EACH, _MOST / n_components))
    return 1.0
