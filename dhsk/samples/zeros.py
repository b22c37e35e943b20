"""What becomes of samples of zeros, which no map to the sphere has an image for, and how many."""

import sys
import warnings
from threading import Lock
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Indices
from dhsk.errors import InputError, ZeroRowsWarning

ZeroRule: TypeAlias = Literal["center", "error"]
"""A sample of zeros becomes the centre of the positive orthant, or is refused."""

_OWN: Final = ("dhsk", "sklearn", "click", "contextlib", "joblib", "concurrent")
"""Packages whose frames a warning is not attributed to."""


def parse_zero_rule(name: object) -> ZeroRule:
    """Return `name` if it is one of the rules, or say which there are."""
    for known in get_args(ZeroRule):
        if isinstance(name, str) and name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"zero_rows must be {' or '.join(get_args(ZeroRule))}, but it is {name!r}")


class ZeroRows:
    """The rule, and the samples of zeros that were met under it.

    Samples may be read in several passes, by several threads, in blocks of any size: each counts
    once.

    Parameters
    ----------
    rule
        "center" or "error".

    Raises
    ------
    InputError
        It is neither.
    """

    def __init__(self, rule: ZeroRule = "center") -> None:
        self.rule = parse_zero_rule(rule)
        self._numbers: Indices = np.zeros(0, np.intp)
        self._lock = Lock()

    def __reduce__(self) -> Any:
        """A copy in another process counts for itself."""
        return ZeroRows, (self.rule,)

    def __eq__(self, other: object) -> bool:
        """Of the same rule."""
        return isinstance(other, ZeroRows) and self.rule == other.rule

    def __hash__(self) -> int:
        """Of the rule."""
        return hash(self.rule)

    def add(self, numbers: Indices) -> None:
        """Take down numbers of samples.

        Parameters
        ----------
        numbers
            Among all samples, ascending.
        """
        if numbers.size:
            with self._lock:
                self._numbers = np.union1d(self._numbers, numbers)

    @property
    def count(self) -> int:
        """How many samples there were."""
        return len(self._numbers)

    def warn(self, source: str, n_samples: int) -> None:
        """Say how many, once for all, if there were any; see `warn_of_zero_rows`."""
        warn_of_zero_rows([(source, self.count, n_samples)])


def warn_of_zero_rows(found: list[tuple[str, int, int]]) -> None:
    """Warn of samples of zeros that became the centre, at the line that called this package.

    Parameters
    ----------
    found
        Source, number of such samples, and of all, of each side of a matrix.
    """
    counts = [f"{count:,} of {n:,} samples of {source}" for source, count, n in found if count]
    if counts:
        warnings.warn(
            f"{' and '.join(counts)} are all zero: each takes the centre of the positive orthant, "
            "the same point for all; drop them, or refuse them with zero_rows='error' "
            "(--zero-rows error)",
            ZeroRowsWarning,
            stacklevel=frames_inside(),
        )


def frames_inside() -> int:
    """Frames from the caller of this to the first outside of this package and scikit-learn's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _package_of(frame) in _OWN:
        frame, level = frame.f_back, level + 1
    return level


def _package_of(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
