"""Low rank as it is asked for: landmarks, features and loss, described and checked once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final, Literal, Self, TypeAlias, get_args

import numpy as np

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, whole_parameter

SELECTIONS: Final = ("rpcholesky", "uniform", "kmeans")
"""Methods of choosing landmarks."""

_EACH: Final = 3
"""Landmarks per feature. Measured: on images, word counts and mutations the trace error was within
1.3 times the least possible with as many features."""

_MOST: Final = 3000
"""Most landmarks by default, as m of them cost N m^2."""

LossName: TypeAlias = Literal["squared_hinge", "logistic"]

MOST_SEED: Final = 2**32 - 1
"""The greatest seed of numpy's `RandomState`, which the splitters of scikit-learn use."""


@dataclass(frozen=True)
class LowRank:
    """Nyström features that take the place of the exact kernel matrix.

    Attributes
    ----------
    rank
        Number of features, or several to try.
    selection
        How landmarks are chosen: "rpcholesky", "uniform" or "kmeans", see `NystromFeatures`.
    oversampling
        Landmarks for each feature, at least 1. Of more, the leading components are kept.
    loss
        "squared_hinge", or "logistic" for logistic regression.
    landmark_tol
        Relative trace error, below 1, at which "rpcholesky" stops, that of the samples which it
        searches. With more than `rank` landmarks, the components that are dropped add to the error.
    random_state
        Seed of the landmarks.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_wine(return_X_y=True)
    >>> X = minmax_scale(X)
    >>> found = dhsk.cross_validate(X, y, time_scale=0.3, C=10, low_rank=dhsk.LowRank([20, 80]))
    >>> print(found)
    CvResult(taken: heat s=0.3, rank 20, C = 10; mean accuracy 0.989; 2 candidates, 5 folds)
    advice: take heat s=0.3, rank 20, C = 10: ...
    """

    rank: int | Sequence[int]
    selection: str | Indices = "rpcholesky"
    oversampling: float = 1.0
    loss: str = "squared_hinge"
    landmark_tol: float = 0.0
    random_state: int = 0

    def checked(self) -> Self:
        """The same in plain numbers; InputError for a parameter that cannot be used."""
        if isinstance(self.selection, str) and self.selection not in SELECTIONS:
            raise InputError(
                f"selection must be one of {', '.join(SELECTIONS)} or indices of rows, but it is "
                f"{self.selection!r}"
            )
        check_loss(self.loss)
        check_seed(self.random_state)
        real_parameter("oversampling", self.oversampling, 1)
        if not 0 <= real_parameter("landmark_tol", self.landmark_tol) < 1:
            raise InputError(
                f"landmark_tol must be at least 0 and below 1, but it is {self.landmark_tol!r}"
            )
        oversampling, tol = float(self.oversampling), float(self.landmark_tol)
        return replace(self, rank=self.ranks, oversampling=oversampling, landmark_tol=tol)

    @property
    def ranks(self) -> tuple[int, ...]:
        """Numbers of features to try, ascending; InputError for one below 1, or none."""
        rank: Any = self.rank
        several = rank if isinstance(rank, Iterable) and not isinstance(rank, str) else [rank]
        ranks = tuple(sorted({int(whole_parameter("rank", one, 1)) for one in several}))
        if not ranks:
            raise InputError("rank must be a number of features, or several, got none")
        return ranks

    @property
    def largest(self) -> int:
        """Largest number of features."""
        return self.ranks[-1]

    @property
    def method(self) -> str:
        """Name of the selection; empty for indices."""
        return self.selection if isinstance(self.selection, str) else ""

    def count(self, n: int) -> int:
        """Number of landmarks of n samples, at the largest rank."""
        if isinstance(self.selection, str):
            return ceil(min(n, self.oversampling * self.largest))
        return len(self.selection)

    def among(self, n: int) -> Self:
        """The same, with a selection by indices as an array; InputError if it does not fit n."""
        if isinstance(self.selection, str):
            return self
        numbers = np.asarray(self.selection)
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
        return replace(self, selection=numbers.astype(np.intp))


def check_loss(loss: object) -> None:
    """Raise InputError if there is no loss of this name."""
    if not isinstance(loss, str) or loss not in get_args(LossName):
        raise InputError(
            f"loss must be {' or '.join(map(repr, get_args(LossName)))}, but it is {loss!r}; the "
            "hinge loss is that of the exact HeatSVC"
        )


def check_seed(seed: object, count: int = 1) -> None:
    """Raise InputError if `count` seeds from one on are no whole numbers from 0 to 2^32 - 1."""
    most = MOST_SEED - count + 1
    if whole_parameter("random_state", seed, 0) > most:
        raise InputError(f"random_state must be at most {most}, but it is {seed!r}")


def usual_oversampling(rank: int, selection: Any) -> float:
    """Default number of landmarks per feature: 3 with "rpcholesky", up to 3,000 in all, else 1."""
    if isinstance(selection, str) and selection == "rpcholesky":
        return max(1.0, min(_EACH, _MOST / rank))
    return 1.0
