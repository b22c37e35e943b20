"""The grid of a cross-validation, checked before anything runs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import comb
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.gram.matrix import GramMatrix, width_of_matrix
from dhsk.kernels import (
    TIME_SCALES,
    CosineKernel,
    HeatKernel,
    Kernel,
    one_or_several,
    parameters_of,
    parse_kernel,
)
from dhsk.models.problem import ClassWeight, Problem, class_factors, sample_factors
from dhsk.planning.fits import exact_seconds
from dhsk.results.parts import FewSamples, Splitting
from dhsk.samples import Samples, SphereMap
from dhsk.samples.variance import width_of
from dhsk.solvers.problems import (
    MULTI_CLASS,
    MultiClass,
    check_multi_class,
    classes_of_problems,
    way_of_model,
)
from dhsk.validation.folds import Division, Fold
from dhsk.validation.scores import (
    Scorer,
    Scoring,
    ideal_decisions,
    ideal_sigmoids,
    make_scorer,
    score,
)

Kernels: TypeAlias = Kernel | str | Sequence[Kernel | str]
"""One kernel or several, or their names."""

DEFAULT_C = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Grid:
    """A grid of fits, checked."""

    classes: NDArray[Any]
    y: Indices
    """Labels as numbers of classes, (N,); -1 of samples that are left out."""
    folds: list[Fold]
    splitter: str
    weights: Floats
    """Factors of C, one row a fold, (folds, N); 0 for samples that are held out."""
    all_weights: Floats
    """Factors of C where all samples are trained on, (N,)."""
    C: list[float]
    """Ascending."""
    tol: float
    scoring: Scoring
    given: "np.dtype[Any]"
    """Type of the labels as they were given, in which a model predicts them."""
    dropped: tuple[tuple[Any, int], ...] = ()
    """Labels of the classes that are left out, with the number of their samples."""
    repeats: int = 1
    """Number of times that the samples are divided; `folds` has those of each, one by one."""
    ways: tuple[MultiClass, ...] = ("ovo",)
    """Fits of several classes that are tried, exact ones."""
    in_spreads: bool = False
    """Whether C is in units of the spread of the samples, by which it is to be divided."""
    C_scaled: list[float] | None = None
    """C in these units once it was divided; None if it was not."""

    @property
    def counts(self) -> Indices:
        """Samples of each class, (k,)."""
        return np.bincount(self.y[self.y >= 0], minlength=len(self.classes))

    def counts_among(self, size: int) -> list[int]:
        """Samples of each class among some of all, about."""
        counts, n = self.counts.tolist(), int(self.counts.sum())
        return [-(-size * count // n) for count in counts]

    @property
    def splitting(self) -> Splitting:
        """The folds, with the mean sizes of their parts."""
        sizes = np.mean([(len(train), len(test)) for train, test in self.folds], axis=0)
        return Splitting(len(self.folds), self.splitter, *sizes.tolist())

    def present(self, fold: int) -> Indices:
        """Numbers of the classes that a fold trains on, ascending."""
        return np.unique(self.y[self.weights[fold] > 0])

    @property
    def untrained(self) -> list[list[int]]:
        """Numbers of the classes that each fold lacks in training."""
        every = range(len(self.classes))
        return [np.setdiff1d(every, self.present(f)).tolist() for f in range(len(self.folds))]

    @property
    def untested(self) -> list[list[int]]:
        """Numbers of the classes that each fold lacks in its test part."""
        every = range(len(self.classes))
        return [np.setdiff1d(every, self.y[test]).tolist() for _, test in self.folds]

    def _lacking(self, by_fold: Iterable[Sequence[int]]) -> tuple[FewSamples, ...]:
        """Classes that folds lack, with the number of such folds."""
        names, counts = self.classes.tolist(), self.counts.tolist()
        folds = Counter(chain.from_iterable(by_fold))
        return tuple(FewSamples(names[c], counts[c], folds[c]) for c in sorted(folds))

    def problem(self, C: float, multi_class: MultiClass = "ovo") -> Problem:
        """Problem of training on all samples with one C."""
        names = self.classes.astype(self.given)
        return Problem(names, self.y, self.all_weights, C, self.tol, multi_class=multi_class)

    @property
    def work(self) -> float:
        """Work of the fits of a kernel on one fold with one C, in all ways; in one their number."""
        return sum(map(self.work_of, self.ways))

    def work_of(self, way: MultiClass) -> float:
        """The same in one way: that of the first one is the number of its fits."""
        sizes, first = self.counts.tolist(), self.ways[0]
        seconds = [exact_seconds(sizes, 1, 1, 1, 0.0, (one,)) for one in (way, first)]
        return len(classes_of_problems(len(sizes), first)) * seconds[0] / seconds[1]

    def among(self, members: Indices) -> "Grid":
        """The same grid on some samples, ascending; folds that test or train nothing are left out.

        The classes stay, so that classes and weights are those of all samples.
        """
        y, weights = self.y[members], self.weights[:, members]
        kept = [
            number
            for number, (_, test) in enumerate(self.folds)
            if np.isin(test, members).any() and len(np.unique(y[weights[number] > 0])) > 1
        ]
        place = np.full(len(self.y), -1)
        place[members] = np.arange(len(members))
        folds = [tuple(part[place[part] >= 0] for part in self.folds[number]) for number in kept]
        return replace(
            self,
            y=y,
            folds=[(place[train], place[test]) for train, test in folds],
            weights=weights[kept],
            all_weights=self.all_weights[members],
            repeats=self.repeats if len(kept) == len(self.folds) else 1,
        )

    def at(self, C: Sequence[float]) -> "Grid":
        """The same grid with other values of C, ascending."""
        return replace(self, C=sorted(C))

    def divided(self, C: Sequence[float]) -> "Grid":
        """The same grid with its values of C divided by the spread of the samples."""
        return replace(self, C=list(C), in_spreads=False, C_scaled=self.C)

    @property
    def described(self) -> dict[str, Any]:
        """What results say of classes, folds and scorer."""
        n = len(self.folds)
        return {
            "classes": tuple(self.classes.tolist()),
            "class_counts": tuple(self.counts.tolist()),
            "folds": self.splitting,
            "repeats": self.repeats,
            "scoring": self.scoring.name,
            "tol": self.tol,
            "dropped_classes": tuple(FewSamples(name, count, n) for name, count in self.dropped),
            "untrained_classes": self._lacking(self.untrained),
            "untested_classes": self._lacking(self.untested),
        }

    @property
    def columns(self) -> int:
        """Number of fits for each pair of classes."""
        return len(self.folds) * len(self.C)


MANY_PAIRS: Final = 2000
"""Most pairs of classes that a search tries beside one-vs-rest: those of 63 classes.

Chosen and not measured to the pair: on 1,650 texts of 300 classes, which make 44,850 problems of
eleven texts for each fold, C and kernel, a search of both was to take four hours, and one of 300
problems against the rest took five minutes.
"""


def ways_of(
    multi_class: MultiClass | Literal["auto"], n_classes: int, *, search: bool
) -> tuple[MultiClass, ...]:
    """Fits of several classes that are tried.

    "auto" is in a search both, or one-vs-rest alone if there are too many pairs; else that of a
    single model.
    """
    check_multi_class(multi_class)
    if multi_class == "auto" and search and n_classes > 2:
        return ("ovr",) if comb(n_classes, 2) > MANY_PAIRS else MULTI_CLASS
    return (way_of_model(multi_class, n_classes),)


def make_grid(
    division: Division,
    C: Any = DEFAULT_C,
    *,
    class_weight: ClassWeight = None,
    sample_weight: Any = None,
    scoring: str | Scorer = "accuracy",
    tol: float = 1e-3,
) -> Grid:
    """Check weights, values of C and scorer for samples that are divided; see `cross_validate`.

    No sample is read. Whatever cannot be used raises an InputError.
    """
    chosen, labels, folds = division.classes, division.labels, division.folds
    values, (tolerance,) = sorted(positive("C", C)), positive("tol", tol)
    scorer = make_scorer(scoring, chosen.names)
    n = len(labels)
    samples = sample_factors(sample_weight, n) * (chosen.codes >= 0)
    weights = [
        _fold_weights(samples, class_weight, labels, train, f"the training part of fold {number}")
        for number, (train, _) in enumerate(folds)
    ]
    if scorer.probabilities and len(folds) < 2:
        raise InputError(
            f"scoring {scorer.name!r} needs probabilities, which are fitted to what other folds "
            "hold out: use two folds or more"
        )
    for number, (_, test) in enumerate(folds):
        _check_score(scorer, chosen.names, chosen.codes[test], number)
    return Grid(
        classes=chosen.names,
        y=chosen.codes,
        folds=folds,
        splitter=division.splitter,
        weights=np.stack(weights),
        all_weights=_fold_weights(samples, class_weight, labels, np.arange(n), "what is left"),
        C=values,
        tol=tolerance,
        scoring=scorer,
        dropped=chosen.dropped,
        repeats=division.repeats,
        given=division.given,
    )


def _fold_weights(
    samples: Floats, class_weight: ClassWeight, labels: NDArray[Any], train: Indices, what: str
) -> Floats:
    """Factors of C of a fold, (N,): of its training samples, and 0 for the others."""
    used = train[samples[train] > 0]
    if len(np.unique(labels[used])) < 2:
        raise InputError(
            f"{what} has one class only: choose folds that leave two, for which each class needs "
            "at least two samples"
        )
    weights = np.zeros(len(samples))
    # A fold may name a sample twice.
    np.add.at(weights, used, samples[used] * class_factors(class_weight, labels[used]))
    return weights


def _check_score(scoring: Scoring, classes: NDArray[Any], y: Indices, fold: int) -> None:
    """Refuse a score that is undefined because a fold tests no sample of some class."""
    present, k = np.unique(y), len(classes)
    if len(present) == k:
        return
    sigmoids = ideal_sigmoids(k) if scoring.probabilities else None
    try:
        score(scoring, ideal_decisions(y, k), np.arange(k), classes, y, sigmoids=sigmoids)
    except InputError as error:
        names = ", ".join(str(name) for name in classes[present])
        raise InputError(
            f"scoring {scoring.name!r} is not defined on fold {fold}, whose {len(y)} test samples "
            f"are all of {names}: choose fewer folds, or another score"
        ) from error


def positive(name: str, values: float | Iterable[float]) -> list[float]:
    """Unique numbers in the order given; InputError if one is not positive and finite."""
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} must be positive numbers, got {values!r}") from error
    if array.ndim > 1:
        raise InputError(f"{name} must be a number or several, got an array of {array.shape}")
    numbers = list(dict.fromkeys(array.tolist()))
    bad = [v for v in numbers if not 0 < v < np.inf]
    if bad or not numbers:
        raise InputError(f"{name} must be positive and finite, got {bad[0] if bad else 'none'}")
    return numbers


def candidates(
    source: GramMatrix | Samples,
    time_scale: Any,
    kernels: Kernels | None,
    sphere_map: SphereMap | None = None,
) -> list[Kernel]:
    """Kernels to try, at least one, each once, in the order given.

    Heat kernels are made at each of `time_scale`; `kernels` has more kernels, or names, of which
    heat and parametrix kernels are made at each time. With neither, they are the heat kernels
    around the sweet spot, or the kernel of a Gram matrix that holds no cosines. `sphere_map` is the
    map of samples that was given, by whose rows a Gaussian kernel of its name has its width.
    """
    chosen = _chosen(source, time_scale, kernels, sphere_map)
    for kernel in chosen:
        kernel.prepare()
    return chosen


def _chosen(
    source: GramMatrix | Samples,
    time_scale: Any,
    kernels: Kernels | None,
    sphere_map: SphereMap | None,
) -> list[Kernel]:
    if isinstance(source, Samples):
        dim, width = source.shape[1], width_of(source, sphere_map)
    else:
        dim, width = source.dim, partial(width_of_matrix, source)
    given = [] if kernels is None else one_or_several(kernels)
    if kernels is not None and not given:
        raise InputError("kernels is empty: name at least one, or None for the default ones")
    scales = positive("time_scale", TIME_SCALES if time_scale is None else time_scale)
    chosen = list(
        dict.fromkeys(
            parse_kernel(kernel, dim, scale, width)
            for kernel in given
            for scale in (scales if _has_a_time(kernel) else scales[:1])
        )
    )
    if time_scale is None and not chosen:
        if isinstance(source, GramMatrix) and not isinstance(source.kernel, CosineKernel):
            return [source.kernel]
    elif time_scale is None:
        return chosen
    return list(dict.fromkeys([*(HeatKernel.at_scale(dim, s) for s in scales), *chosen]))


def _has_a_time(kernel: Kernel | str) -> bool:
    """Whether this is the name of a kernel with a time."""
    return not isinstance(kernel, Kernel) and "time" in parameters_of(kernel)
