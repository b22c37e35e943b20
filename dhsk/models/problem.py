"""Labels, weights and parameters of a fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Codes, Floats, Indices, blocks
from dhsk.errors import InputError
from dhsk.solvers.problems import MultiClass

ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"] | None
"""Factors of C by label, "balanced", or None for 1, as in scikit-learn."""

LABELS: Final = 1 << 20
"""Labels that are looked at at a time."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Labels, weights and parameters of a fit."""

    classes: NDArray[Any]
    """Class labels, ascending, (k,), at least two."""
    codes: Codes
    """Class of each sample as an integer from 0, (N,); -1 for samples that are left out."""
    weights: Floats
    """Factors of C, (N,), read-only; at least one of each class is positive."""
    C: float
    """Upper bound on the dual coefficients; for a low-rank model, factor of the losses."""
    tol: float
    """Tolerance of the KKT violation; for a low-rank model, of the relative gradient."""
    fold_of: Indices | None = None
    """Fold of each sample from 0, for the decision values that sigmoids are fitted to, (N,); -1 for
    samples of weight 0. None without probabilities."""
    sample_weights: Floats | None = None
    """Sample weights of the sigmoids, without class weights, (N,). None without probabilities."""
    most_steps: int | None = None
    """Upper bound on the steps of an exact fit of a pair of classes; None for none."""
    multi_class: MultiClass = "ovo"
    """Problems of an exact fit; of two classes there is one."""

    @property
    def fold_weights(self) -> Floats:
        """Weights of the fit on all samples, and of the fit of each fold, (1 + folds, N)."""
        if self.fold_of is None:
            return self.weights[None].copy()
        folds = range(int(self.fold_of.max()) + 1)
        return np.stack([self.weights, *(self.weights * (self.fold_of != f) for f in folds)])


def coded(labels: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Classes of labels, ascending, (k,), and the code of each sample, (N,), of the smallest type.

    The labels are sorted in parts: to sort all of them takes several times their memory.
    """
    parts = list(blocks(len(labels), LABELS))
    classes = np.unique(np.concatenate([np.unique(labels[part]) for part in parts]))
    codes = np.empty(len(labels), np.min_scalar_type(-len(classes)))
    for part in parts:
        codes[part] = np.searchsorted(classes, labels[part])
    return classes, codes


def class_factors(class_weight: ClassWeight, labels: NDArray[Any]) -> Floats:
    """Positive class weight of each training sample, (n,), from scikit-learn's `class_weight`.

    Raises InputError if it cannot be used.
    """
    if class_weight is None:
        return np.ones(len(labels))
    from sklearn.utils.class_weight import compute_class_weight  # loading it takes a second

    classes, codes = np.unique(labels, return_inverse=True)
    try:
        if isinstance(class_weight, Mapping):
            weights = _by_label(class_weight, classes)
        else:
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


def _by_label(class_weight: Mapping[Any, float], classes: NDArray[Any]) -> Floats:
    """Weight of each class, 1 unless it is given; ValueError as of scikit-learn's function.

    That one looks for a class "1" under the number 1 alone, which is found here too.
    """
    names = classes.tolist()
    keys = [name if name in class_weight else _number_in(name) for name in names]
    lacking = [name for name, key in zip(names, keys, strict=True) if key not in class_weight]
    if lacking and len(names) - len(lacking) != len(class_weight):
        raise ValueError(f"The classes, {lacking}, are not in class_weight")
    return np.array([class_weight.get(key, 1.0) for key in keys], dtype=np.float64)


def _number_in(name: Any) -> Any:
    """The whole number that a text is; anything else as it is."""
    try:
        return int(name)
    except (ValueError, TypeError):
        return name


def weights_of_classes(class_weight: ClassWeight, problem: Problem) -> Floats:
    """Factor of C of each class of a problem, (k,); samples of weight 0 do not count."""
    codes = problem.codes[problem.weights > 0]
    factors = class_factors(class_weight, problem.classes[codes])
    found = np.empty(len(problem.classes))
    found[codes] = factors
    return found


def sample_factors(sample_weight: Any, n: int) -> Floats:
    """Sample weights, (n,), by default 1, or of one number, read-only.

    Raises InputError unless they are finite numbers, none of them negative and not all 0.
    """
    if sample_weight is None:
        return np.broadcast_to(np.float64(1.0), n)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"sample_weight must be numbers: {error}") from error
    if not weights.shape:  # scikit-learn takes one number for all
        weights = np.broadcast_to(weights, n)
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
