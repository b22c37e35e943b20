"""Comparison of two classifiers by their scores on the same folds."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.errors import InputError

_ROUNDING: Final = 1e-9
"""Relative difference of two scores, or of a difference and its error, that may be rounding."""


@dataclass(frozen=True)
class FoldSizes:
    """Sizes that the standard error of a mean over folds depends on.

    Attributes
    ----------
    n
        Folds of one repeat.
    repeats
        Number of repeats.
    n_train, n_test
        Samples in the training and in the test part of a fold, the mean of all folds.
    n_samples
        Number of samples.
    repeatable
        Whether the samples can be divided anew, as the folds are not the user's own.
    """

    n: int
    repeats: int
    n_train: float
    n_test: float
    n_samples: int
    repeatable: bool

    @property
    def error_factor(self) -> float:
        """Standard error of a mean over the standard deviation, see `paired_difference`."""
        return float(np.sqrt(1 / (self.n * self.repeats) + self.n_test / self.n_train))

    def paired(self, one: ArrayLike, other: ArrayLike) -> "PairedDifference":
        """Compare scores on these folds, see `paired_difference`."""
        return paired_difference(one, other, n_train=self.n_train, n_test=self.n_test)


@dataclass(frozen=True)
class PairedDifference:
    """Mean of the fold-wise differences of two scores, and its corrected standard error.

    Attributes
    ----------
    difference
        Mean over the folds of the first score less the second, in units of the score.
    standard_error
        Its standard error by `paired_difference`; 0 of a single fold.
    """

    difference: float
    standard_error: float

    @property
    def within(self) -> bool:
        """Whether the first is better by one standard error at most, so that it may be chance.

        Equality counts as within, to nine digits: no last bit decides.
        """
        return self.difference <= self.standard_error * (1 + _ROUNDING)

    @property
    def is_sure(self) -> bool:
        """Whether the first is better by more than two standard errors."""
        return self.difference > 2.0 * self.standard_error

    @property
    def words(self) -> str:
        """Difference and standard error: 0.0089 ± 0.0010."""
        return f"{self.difference:.4f} ± {self.standard_error:.4f}"


def about_equal(one: float, other: float) -> bool:
    """Whether two scores differ by rounding at most."""
    return abs(one - other) <= _ROUNDING * max(abs(one), abs(other))


def deviation(scores: ArrayLike, ddof: int = 0) -> float:
    """Standard deviation of scores; 0 if they differ by rounding at most."""
    values = np.asarray(scores, dtype=np.float64)
    return 0.0 if about_equal(values.min(), values.max()) else float(values.std(ddof=ddof))


def paired_difference(
    one: ArrayLike, other: ArrayLike, *, n_train: float, n_test: float
) -> PairedDifference:
    """Compare scores on the same folds, with the correction of Nadeau and Bengio.

    Training sets overlap, and repeats share their samples, so fold-wise differences d_1 ... d_m are
    not independent. The variance of their mean is taken as s² (1/m + n_test / n_train), where s² is
    the variance of the d_j with Bessel's correction [1]_, equations 9 and 10; it is m = k r for r
    repeats of k folds [2]_. A single sample on which two classifiers differ, in every repeat, is a
    difference of sqrt((m - 1) / (m + k - 1)) < 1 standard errors, so it never counts as evidence.

    Parameters
    ----------
    one, other
        Scores of two classifiers, (m,), fold by fold, and repeat by repeat.
    n_train, n_test
        Samples in the training and in the test part of a fold, the mean of all folds.

    Returns
    -------
    PairedDifference
        Mean of the differences, and its standard error.

    Raises
    ------
    InputError
        The scores are not of the same folds.

    References
    ----------
    .. [1] C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine Learning 52
       (2003), 239-281.
    .. [2] R. R. Bouckaert and E. Frank, "Evaluating the Replicability of Significance Tests for
       Comparing Learning Algorithms", PAKDD (2004).

    Examples
    --------
    >>> found = paired_difference([0.9, 0.8, 1.0], [0.8, 0.8, 1.0], n_train=20, n_test=10)
    >>> found.words, found.within
    ('0.0333 ± 0.0527', True)
    """
    first, second = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not len(first):
        raise InputError(
            f"scores of the same folds are needed, got shapes {first.shape} and {second.shape}"
        )
    apart = first - second
    # Equal scores that were summed in another order differ by rounding.
    apart[np.abs(apart) <= _ROUNDING * np.maximum(np.abs(first), np.abs(second))] = 0.0
    m = len(apart)
    error = float(apart.std(ddof=1)) * np.sqrt(1 / m + n_test / n_train) if m > 1 else 0.0
    return PairedDifference(float(apart.mean()), float(error))
