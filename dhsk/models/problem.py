"""What is to be trained, from labels and weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError

ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None
"""Factors of C by label, "balanced", or None for 1, as scikit-learn has them."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be trained.

    Attributes
    ----------
    classes
        Labels, ascending, (k,), at least two.
    codes
        Class of each sample, (N,), from 0; -1 of samples that are left out.
    weights
        Factors of C, (N,); in each class one at least is above 0.
    C
        Upper bound of the dual coefficients, or of a low-rank model factor of the losses.
    tol
        Greatest KKT violation, or of a low-rank model part of the first gradient.
    fold_of
        Fold of each sample for the decisions that sigmoids are fitted to, (N,), from 0, and -1
        where its weight is 0; None for a model without probabilities.
    sample_weights
        What each sample counts in the sigmoids, (N,): without the weights of the classes; None
        without probabilities.
    """

    classes: NDArray[Any]
    codes: Indices
    weights: Floats
    C: float
    tol: float
    fold_of: Indices | None = None
    sample_weights: Floats | None = None

    @property
    def fold_weights(self) -> Floats:
        """Weights of the whole fit, and of those that leave out a fold each, (1 + folds, N)."""
        if self.fold_of is None:
            return self.weights[None]
        folds = range(int(self.fold_of.max()) + 1)
        return np.stack([self.weights, *(self.weights * (self.fold_of != f) for f in folds)])


def class_factors(class_weight: ClassWeight, labels: NDArray[Any]) -> Floats:
    """Weight of the class of each sample, as scikit-learn computes it from these samples.

    Parameters
    ----------
    class_weight
        As scikit-learn has it.
    labels
        Labels of the samples that are trained on, (n,).

    Returns
    -------
    Floats
        (n,), positive.

    Raises
    ------
    InputError
        It cannot be used.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    try:
        weights = compute_class_weight(class_weight, classes=classes, y=labels)
    except (ValueError, TypeError) as error:
        raise InputError(f"class_weight cannot be used: {error}") from error
    bad = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
    if len(bad):
        raise InputError(
            f"class_weight must be positive and finite, but it is {weights[bad[0]]} for class "
            f"{classes[bad[0]]}: leave its samples out"
        )
    return np.asarray(weights, dtype=np.float64)[codes]


def sample_factors(sample_weight: Any, n: int) -> Floats:
    """Check factors of C by sample.

    Parameters
    ----------
    sample_weight
        (n,), or None for 1.
    n
        Number of samples.

    Returns
    -------
    Floats
        (n,), none negative, not all 0.

    Raises
    ------
    InputError
        They cannot be used.
    """
    if sample_weight is None:
        return np.ones(n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"sample_weight must be numbers: {error}") from error
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}, but it must be ({n},)")
    bad = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(bad):
        # scikit-learn's checks look for these words.
        words = "Negative values in data passed to `sample_weight`"
        raise InputError(
            f"{words if weights[bad[0]] < 0 else 'sample_weight must be finite'}: it is "
            f"{weights[bad[0]]} for sample {bad[0]} (counted from 0)"
        )
    if not weights.any():
        raise InputError(
            "all sample weights are zero: leave out sample_weight, or give some above 0"
        )
    return weights
