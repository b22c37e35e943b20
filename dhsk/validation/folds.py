"""Folds of a cross-validation, and classes that have too few samples."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from dhsk.arrays import Indices
from dhsk.errors import InputError, InputWarning
from dhsk.samples.zeros import frames_inside

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


def split_repeatedly(
    labels: NDArray[Any], classes: Classes, cv: Any, groups: Any, seeds: Sequence[int]
) -> tuple[str, list[Fold]]:
    """Divide the samples into folds once for each seed; return all folds, seed by seed.

    The same as `split` for one seed. InputError for several if `cv` is no number of folds.
    """
    if len(seeds) > 1 and not isinstance(cv, Integral):
        raise InputError(
            f"repeats={len(seeds)} shuffles the samples anew for each repeat, so cv must be a "
            f"number of folds, got {cv!r:.80}: give cv=5, or a splitter that repeats by itself "
            "(RepeatedStratifiedKFold) without repeats"
        )
    splitter, folds = split(labels, classes, cv, groups, seeds[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of small classes: said once
        for seed in seeds[1:]:
            folds += split(labels, classes, cv, groups, seed)[1]
    return splitter, folds


def split(
    labels: NDArray[Any], classes: Classes, cv: Any, groups: Any, seed: int
) -> tuple[str, list[Fold]]:
    """Divide the samples into folds; return the name of the splitter, and one fold or more.

    `cv` is a number of stratified, shuffled folds, a scikit-learn splitter, or pairs of index
    arrays. `groups` is the group of each sample, (N,), or None. Samples of classes that are left
    out are in no fold. InputError if the samples cannot be divided so; InputWarning if a class has
    fewer samples than there are folds (scikit-learn warns too).
    """
    codes, n = classes.codes, len(classes.codes)
    if groups is not None and np.shape(groups) != (n,):
        raise InputError(f"groups has the shape {np.shape(groups)} for {n} samples: one for each")
    kept = np.flatnonzero(codes >= 0)
    # Counted folds are made of the samples that are kept, as if there were no others; of splitters
    # and index arrays only the user knows what they count, so that they are given all.
    chosen = kept if isinstance(cv, Integral) else np.arange(n)
    if isinstance(cv, Integral):
        cv = _counted(classes, int(cv), seed, grouped=groups is not None)
    y, own = labels[chosen], None if groups is None else np.asarray(groups)[chosen]
    try:
        splitter = check_cv(cv, y, classifier=True)
        pairs = list(splitter.split(np.zeros(len(chosen)), y, own))
    except (ValueError, TypeError) as error:
        raise InputError(f"the samples cannot be split by cv={cv!r:.80}: {error}") from error
    folds = [_indices(train, test, number, chosen) for number, (train, test) in enumerate(pairs)]
    if not folds:
        raise InputError("cv has no folds")
    if len(kept) < n:
        folds = [(train[codes[train] >= 0], test[codes[test] >= 0]) for train, test in folds]
    for number, (_, test) in enumerate(folds):
        if not len(test):
            raise InputError(f"fold {number} has no test samples")
    return str(splitter), folds


def _counted(classes: Classes, folds: int, seed: int, *, grouped: bool) -> Any:
    """Splitter into a number of folds; refuses more than the largest class has samples."""
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
    if few.size:
        found = [(name, int(counts[c])) for c, name in zip(few, classes.names[few], strict=True)]
        warnings.warn(
            f"{sizes(found)} fewer samples than the {folds} folds: where all of a class are held "
            "out, the fold is trained without it and counts them as wrong; "
            f"min_class={folds} (--min-class {folds}) leaves such classes out",
            InputWarning,
            stacklevel=frames_inside(),
        )
    kind = StratifiedGroupKFold if grouped else StratifiedKFold
    return kind(folds, shuffle=True, random_state=seed)


def sizes(classes: Sequence[tuple[Any, int]]) -> str:
    """Say how many classes there are and how large: 2 classes (a: 1, b: 3) have."""
    listed = ", ".join(f"{name}: {count:,}" for name, count in classes[:_LISTED])
    more = ", ..." if len(classes) > _LISTED else ""
    one = len(classes) == 1
    return f"{len(classes):,} class{'' if one else 'es'} ({listed}{more}) ha{'s' if one else 've'}"


def _indices(train: Any, test: Any, number: int, chosen: Indices) -> Fold:
    """A fold as index arrays, checked."""
    try:
        parts = [chosen[np.asarray(part)] for part in (train, test)]
    except IndexError as error:
        last = len(chosen) - 1
        raise InputError(f"fold {number} does not name samples 0 to {last}: {error}") from error
    both = np.intersect1d(*parts)
    if len(both):
        raise InputError(
            f"fold {number} trains and tests on {len(both)} of the same samples, first {both[0]}"
        )
    return parts[0], parts[1]
