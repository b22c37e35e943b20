"""Folds of a cross-validation, and classes that have too few samples."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from dhsk.arrays import Indices
from dhsk.errors import InputError, warn
from dhsk.results.asked import StratifiedFolds
from dhsk.samples import check_labels
from dhsk.samples.labels import is_absent

Fold = tuple[Indices, Indices]
"""Training and test samples."""

_LISTED: Final = 5
"""Classes that a message names."""


@dataclass(frozen=True)
class Classes:
    """Classes of a cross-validation."""

    names: NDArray[Any]
    """Labels, ascending, (k,)."""
    codes: Indices
    """Number of the class of each sample, (N,); -1 if the class is left out."""
    dropped: tuple[tuple[Any, int], ...]
    """Labels of the classes that are left out, with their numbers of samples."""

    @classmethod
    def of(cls, labels: NDArray[Any], min_class: int) -> "Classes":
        """Leave out classes of fewer than `min_class` samples; InputError if under two are left."""
        names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        kept = counts >= min_class
        if kept.sum() < 2:
            raise InputError(
                f"{np.count_nonzero(kept)} of {len(names)} classes has {min_class} samples or "
                f"more, but two are needed: the second largest has {np.sort(counts)[-2]}, so give "
                "a smaller min_class"
            )
        numbers = np.full(len(names), -1)
        numbers[kept] = np.arange(kept.sum())
        dropped = zip(names[~kept].tolist(), counts[~kept].tolist(), strict=True)
        return cls(names[kept], numbers[codes], tuple(dropped))


@dataclass(frozen=True)
class Division:
    """Samples that are divided into folds."""

    labels: NDArray[Any]
    """Labels, (N,)."""
    classes: Classes
    folds: list[Fold]
    """One or more."""
    splitter: str
    """Name of the splitter that made them."""
    repeats: int
    """Number of times that the samples are divided; `folds` has those of each, one by one."""
    given: "np.dtype[Any]"
    """Type of the labels as they were given, in which a model predicts them."""


@dataclass(frozen=True)
class FixedFolds:
    """Splitter into folds that are known, without classes of few samples."""

    folds: Sequence[Fold] = field(repr=False)
    min_class: int

    def get_n_splits(self, *_: Any) -> int:
        """Number of folds."""
        return len(self.folds)

    def split(self, *_: Any) -> Sequence[Fold]:
        """The folds."""
        return self.folds


def divide(n: int, y: Any, cv: Any, groups: Any = None) -> Division:
    """Check the labels, (N,), of n samples, and divide these into folds.

    `cv` is a number of stratified, shuffled folds, a splitter, or pairs of index arrays; `groups`
    is the group of each sample, (N,), or None. A splitter's `n_repeats` and `min_class`, if it has
    them, say how often it divides the samples, and which classes are left out of all folds.
    InputError if the samples cannot be divided so; InputWarning if a class has fewer samples than
    there are shuffled folds (scikit-learn warns too).
    """
    if isinstance(cv, Integral):
        if int(cv) < 2:
            raise InputError(f"cv must be at least 2 folds, got {cv}")
        cv = StratifiedFolds(int(cv))
    labels = check_labels(y, n)
    classes = Classes.of(labels, getattr(cv, "min_class", 1))
    if groups is not None:
        _check_groups(groups, classes, cv)
    splitter, folds = _split(labels, classes, cv, None if groups is None else np.asarray(groups))
    given = getattr(cv, "n_repeats", 1)
    repeats = int(given) if isinstance(given, Integral) else 1
    whole = repeats > 0 and len(folds) % repeats == 0
    kind = np.asarray(y).dtype
    own = kind if kind.kind in "bfiu" else labels.dtype
    return Division(labels, classes, folds, splitter, repeats if whole else 1, own)


def _split(labels: NDArray[Any], classes: Classes, cv: Any, groups: Any) -> tuple[str, list[Fold]]:
    """Name of the splitter, and its folds, without samples of classes that are left out."""
    codes, n = classes.codes, len(labels)
    if isinstance(cv, StratifiedFolds):
        _check_sizes(classes, cv.n_splits)
    try:
        splitter = check_cv(cv, labels, classifier=True)
        pairs = list(splitter.split(np.zeros(n), labels, groups))
    except (ValueError, TypeError) as error:
        raise InputError(f"the samples cannot be split by cv={cv!r:.80}: {error}") from error
    folds = [_indices(train, test, number, n) for number, (train, test) in enumerate(pairs)]
    if not folds:
        raise InputError("cv has no folds")
    folds = [(train[codes[train] >= 0], test[codes[test] >= 0]) for train, test in folds]
    for number, (_, test) in enumerate(folds):
        if not len(test):
            raise InputError(f"fold {number} has no test samples")
    if isinstance(cv, StratifiedFolds):
        splitter = cv.of_repeat(0, grouped=groups is not None)
    return str(splitter), folds


def _check_groups(groups: Any, classes: Classes, cv: Any) -> None:
    """Refuse groups that are not one for each sample, and fewer of them than our own folds."""
    n = len(classes.codes)
    if np.shape(groups) != (n,):
        named = f": give the column itself, X[{groups!r}]" if isinstance(groups, str) else ""
        raise InputError(
            f"groups has the shape {np.shape(groups)} for {n} samples: one for each{named}"
        )
    # As objects: numpy would turn the NaN of ["a", nan] into the group "nan".
    given = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    absent = next((row for row, one in enumerate(given.tolist()) if is_absent(one)), None)
    if absent is not None:
        raise InputError(
            f"groups: row {absent} (counted from 0) has no group: fill it in, or drop its sample"
        )
    if not isinstance(cv, StratifiedFolds):
        return
    used = classes.codes >= 0
    found = len(set(given[used].tolist()))
    both = set(zip(classes.codes[used].tolist(), given[used].tolist(), strict=True))
    if len(both) == len(classes.names) and found > 1:
        raise InputError(
            "each class is in one group alone, and no group is divided between folds, so that no "
            "fold could train on a class that it tests: give groups that have several classes, or "
            "classes that have several groups"
        )
    if found == 1:
        raise InputError(
            "all samples are of one group, and no group is divided between folds: two are needed"
        )
    if found < cv.n_splits:
        raise InputError(
            f"the samples are of {found} groups, fewer than the {cv.n_splits} folds, and no group "
            f"is divided between folds: give --folds {found} (cv={found})"
        )


def _check_sizes(classes: Classes, folds: int) -> None:
    """Refuse more folds than the largest class has samples; warn of classes that have fewer."""
    counts = np.bincount(classes.codes[classes.codes >= 0])
    if counts.max() == 1:
        raise InputError(
            f"each of the {len(counts):,} classes has one sample, and a fold tests samples of "
            "classes that are in the others: are these labels, and not numbers or names of samples?"
        )
    if counts.max() < folds:
        raise InputError(
            f"no class has as many samples as there are folds, {folds}: the largest has "
            f"{counts.max()}, so use at most {counts.max()} folds"
        )
    few = np.flatnonzero(counts < folds)
    remain = len(counts) - len(few) > 1  # two classes that can be told apart without the others
    if classes.names.dtype.kind == "i" and 2 * counts[few].sum() > counts.sum():
        raise InputError(
            f"the labels are {len(counts):,} different whole numbers, and more than half of the "
            f"samples have one that fewer than {folds} have, as numbers to predict do: "
            "dhsk.HeatKernelRidge predicts numbers; of classes, "
            + f"leave the small ones out with {_min_class(folds)}, or " * remain
            + "name them by text"
        )
    if few.size:
        found = [(name, int(counts[c])) for c, name in zip(few, classes.names[few], strict=True)]
        warn(
            f"{sizes(found)} fewer samples than the {folds} folds: where all of a class are held "
            "out, the fold is trained without it and counts them as wrong; "
            + (f"{_min_class(folds)} leaves such classes out" if remain else "add samples of them"),
        )


def _min_class(folds: int) -> str:
    """Words for the option that leaves out classes of fewer samples than folds."""
    return f"min_class={folds} of StratifiedFolds (--min-class {folds})"


def sizes(classes: Sequence[tuple[Any, int]]) -> str:
    """Say how many classes there are and how large: 2 classes (a: 1, b: 3) have."""
    listed = ", ".join(f"{name}: {count:,}" for name, count in classes[:_LISTED])
    more = ", ..." if len(classes) > _LISTED else ""
    one = len(classes) == 1
    return f"{len(classes):,} class{'' if one else 'es'} ({listed}{more}) ha{'s' if one else 've'}"


def _indices(train: Any, test: Any, number: int, n: int) -> Fold:
    """A fold as index arrays, checked."""
    try:
        parts = [np.arange(n)[np.asarray(part)] for part in (train, test)]
    except IndexError as error:
        raise InputError(f"fold {number} does not name samples 0 to {n - 1}: {error}") from error
    both = np.intersect1d(*parts)
    if len(both):
        raise InputError(
            f"fold {number} trains and tests on {len(both)} of the same samples, first {both[0]}"
        )
    return parts[0], parts[1]
