"""Problems to train on, from labels and weights as scikit-learn takes them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from dhsk.arrays import Codes, Floats, Indices, blocks
from dhsk.errors import InputError
from dhsk.models.problem import LABELS, ClassWeight, Problem, class_factors, coded


def make_problem(
    y: NDArray[Any],
    sample_weights: Floats,
    class_weight: ClassWeight,
    *,
    C: float,
    tol: float,
    folds: int | None = None,
    random_state: Any = None,
) -> Problem:
    """Make a problem of labels and sample weights, (N,), at least 0.

    "balanced" class weights count samples of a weight above 0. `folds` is the largest number of
    folds for Platt's sigmoids; None for no probabilities. Classes without a weight above 0 are
    left out, as if their samples were not there. Raises InputError if fewer than two are left.
    """
    if y.dtype.kind not in "iuU":  # others may be no labels; to find out takes a copy
        check_classification_targets(y)
    classes, codes = coded(y)
    used = sample_weights > 0
    classes, codes = _weighted_classes(classes, codes, used)
    weights = sample_weights
    if class_weight is not None:
        weights = weights.copy()
        weights[used] *= class_factors(class_weight, y[used])
    fold_of = None if folds is None else _folds(codes, used, folds, random_state)
    return Problem(classes, codes, weights, C, tol, fold_of, sample_weights)


def random_numbers(random_state: Any) -> np.random.RandomState:
    """Random number generator of scikit-learn's parameter `random_state`; InputError if invalid."""
    try:
        numbers: np.random.RandomState = check_random_state(random_state)
    except (ValueError, TypeError) as error:
        raise InputError(f"random_state={random_state!r} cannot be used: {error}") from error
    return numbers


def _weighted_classes(
    classes: NDArray[Any], codes: Codes, used: NDArray[np.bool_]
) -> tuple[NDArray[Any], Codes]:
    """Classes that have weights above 0, and codes; InputError for fewer than two."""
    if len(classes) < 2:
        raise InputError(
            f"The number of classes has to be greater than one; got {len(classes)} class"
        )
    present = np.zeros(len(classes), np.bool_)
    for part in blocks(len(codes), LABELS):
        present[codes[part][used[part]]] = True
    if present.sum() < 2:
        raise InputError(
            "Invalid input - all samples with positive weights belong to the same class."
        )
    # Samples of weight 0 count nowhere: those of the other classes may be in any.
    others = np.where(present, np.cumsum(present) - 1, 0).astype(codes.dtype)
    return classes[present], others[codes]


def _folds(codes: Codes, used: NDArray[np.bool_], most: int, random_state: Any) -> Indices:
    """Stratified fold of each sample, (N,); -1 for those of weight 0.

    Without the only sample of a class, all pairs of the class decide against it, as in LIBSVM.
    """
    counts = np.bincount(codes[used])
    several = counts[counts > 1]
    folds = min(most, int(several.min())) if several.size else 2
    fold_of = np.full(len(codes), -1)
    alone = np.flatnonzero(used & (counts[codes] == 1))
    fold_of[alone] = np.arange(len(alone)) % folds
    numbers = np.flatnonzero(used & (counts[codes] > 1))
    if numbers.size:
        seed = random_numbers(random_state)
        splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
        for fold, (_, held_out) in enumerate(splitter.split(numbers[:, None], codes[numbers])):
            fold_of[numbers[held_out]] = fold
    return fold_of
