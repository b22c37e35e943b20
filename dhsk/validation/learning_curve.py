"""Learning curves: scores on held-out samples against the number of training samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.errors import InputError
from dhsk.objects.places import Place
from dhsk.report import write_report
from dhsk.report.markup import joined, table, tag
from dhsk.report.words import score as score_words
from dhsk.results.asked import StratifiedFolds
from dhsk.results.columns import Cell, grouped
from dhsk.results.low_rank import check_seed
from dhsk.validation.cross_validate import cross_validate
from dhsk.validation.folds import FixedFolds, Fold, divide
from dhsk.validation.input import open_square, samples_first
from dhsk.validation.result import CvResult

SIZES: Final = (0.1, 0.325, 0.55, 0.775, 1.0)
"""Shares of the training samples, those of `sklearn.model_selection.learning_curve`."""


@dataclass(frozen=True)
class LearningCurve:
    """Outcome of `learning_curve`.

    Attributes
    ----------
    train_sizes_
        Numbers of training samples, ascending, (n_sizes,).
    result_
        All fits as one cross-validation, whose folds are those of the smallest size, then those of
        the next, and so on. ``LearningCurve(train_sizes, CvResult.from_json(path))`` is the same
        curve again.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> curve = dhsk.learning_curve(
    ...     X[:400], y[:400], train_sizes=[40, 320], kernels="cosine", C=[1, 10]
    ... )
    >>> curve
    LearningCurve(training samples 40, 320; 2 cells)
    >>> curve.test_scores().shape
    (2, 5)
    """

    train_sizes_: Sequence[int]
    result_: CvResult

    def test_scores(self, cell: Mapping[str, Any] | None = None) -> Floats:
        """Return the scores of one kernel and C on the held-out samples.

        Parameters
        ----------
        cell
            A row of `summary_` or `best_by_kernel_`, of which "label", "C" and "rank" are used;
            None for the cell with the highest mean at the largest size.

        Returns
        -------
        Floats
            Scores, (n_sizes, folds), as `test_scores` of scikit-learn's `learning_curve`.
        """
        if cell is None:
            cell = max(self.best_by_kernel_[-self._families :], key=lambda row: row["mean"])
        wanted = (cell["label"], cell["C"], cell.get("rank"))
        for own in self.result_.summary:
            if (own.label, own.C, own.rank) == wanted:
                return self._scores(own)
        raise InputError(f"no cell of the curve is {wanted[0]!r} with C = {wanted[1]:g}")

    @property
    def summary_(self) -> list[dict[str, Any]]:
        """One row per size, kernel and C: mean, standard deviation and error over the folds.

        ``sem`` is the standard error of the mean, from the standard deviation with Bessel's
        correction.
        """
        return [row for size in range(len(self.train_sizes_)) for row in self._rows(size)]

    @property
    def best_by_kernel_(self) -> list[dict[str, Any]]:
        """One row per size and family of kernels: its kernel and C with the highest mean."""
        found: list[dict[str, Any]] = []
        for size in range(len(self.train_sizes_)):
            families = grouped(self._rows(size), lambda row: row["kernel"]).values()
            found += [max(own, key=lambda row: row["mean"]) for own in families]
        return found

    def report(self, path: str | Place) -> None:
        """Write one self-contained HTML page, with the curve on top.

        Parameters
        ----------
        path
            File to write; replaced in one step if it exists.
        """
        write_report(self.result_, path, curve=self.best_by_kernel_)

    @property
    def _families(self) -> int:
        return len({cell.kernel for cell in self.result_.summary})

    def _scores(self, cell: Cell) -> Floats:
        rows = self.result_.rows_of[cell.point]
        return np.array([row.score for row in rows]).reshape(len(self.train_sizes_), -1)

    def _rows(self, size: int) -> list[dict[str, Any]]:
        return [
            {
                "train_size": self.train_sizes_[size],
                "kernel": cell.kernel,
                "label": cell.label,
                "C": cell.C,
                "rank": cell.rank,
                "mean": float(own.mean()),
                "std": float(own.std()),
                "sem": float(own.std(ddof=1) / np.sqrt(len(own))) if len(own) > 1 else 0.0,
            }
            for cell in self.result_.summary
            for own in [self._scores(cell)[size]]
        ]

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.train_sizes_))
        return f"LearningCurve(training samples {sizes}; {len(self.result_.summary)} cells)"

    def _repr_html_(self) -> str:
        """Table of the best cells, for notebooks."""
        head = ("training samples", "kernel", "C", f"mean {self.result_.scoring}", "std")
        rows = [
            (row["train_size"], row["label"], f"{row['C']:g}", score_words(row["mean"]),
             score_words(row["std"]))
            for row in self.best_by_kernel_
        ]  # fmt: skip
        return joined([tag("p", repr(self)), table(head, rows)])


@samples_first
def learning_curve(
    G_or_X: Any,
    y: Any,
    *,
    train_sizes: Sequence[float] = SIZES,
    cv: Any = 5,
    groups: Any = None,
    random_state: int = 0,
    **grid: Any,
) -> LearningCurve:
    """Score classifiers on held-out samples, trained on more and more of the others.

    All sizes, folds, C and kernels share one Gram matrix, or one set of features of low rank. The
    training samples of a fold are shuffled so that every size has the classes in proportion, and
    a smaller training set is part of each larger one.

    Parameters
    ----------
    G_or_X, y
        As for `cross_validate`.
    train_sizes
        Whole numbers of training samples; or floats, shares of the training samples of the
        smallest fold.
    cv, groups
        As for `cross_validate`: each fold's test samples score all sizes.
    random_state
        Seed of a number of folds, and of the order in which training samples are taken.
    **grid
        Further parameters of `cross_validate`, such as `kernels`, `time_scale`, `C`, `scoring`,
        `low_rank`, `sphere_map`, `out` and `progress`.

    Returns
    -------
    LearningCurve
        Scores by size, kernel, C and fold. Unlike scikit-learn's there are no scores of the
        training samples.

    Raises
    ------
    InputError
        Samples, labels or parameters cannot be used.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> curve = dhsk.learning_curve(
    ...     X[:600], y[:600], train_sizes=[50, 150, 450], cv=4, time_scale=0.5, C=10
    ... )
    >>> [(row["train_size"], round(row["mean"], 2)) for row in curve.best_by_kernel_]
    [(50, 0.89), (150, 0.97), (450, 0.98)]
    """
    square = open_square(G_or_X, precomputed=grid.get("kernels") == "precomputed")
    check_seed(random_state)
    if isinstance(cv, Integral) and int(cv) > 1:
        cv = StratifiedFolds(int(cv), random_state=random_state)
    division, rng = divide(square.shape[0], y, cv, groups), np.random.default_rng(random_state)
    labels = division.labels
    folds = [(in_proportion(train, labels, rng), test) for train, test in division.folds]
    sizes = absolute_sizes(train_sizes, min(len(train) for train, _ in folds))
    pairs: list[Fold] = [(train[:size], test) for size in sizes for train, test in folds]
    own = FixedFolds(pairs, getattr(cv, "min_class", 1))
    result = cross_validate(square, labels, cv=own, **grid)
    return LearningCurve(sizes, result)


def in_proportion(train: Indices, labels: NDArray[Any], rng: np.random.Generator) -> Indices:
    """Shuffle some samples so that classes are in proportion in whatever comes first."""
    _, codes = np.unique(labels[train], return_inverse=True)
    place = np.empty(len(train))
    for number in range(codes.max() + 1):
        own = rng.permutation(np.flatnonzero(codes == number))
        place[own] = (np.arange(len(own)) + rng.random()) / len(own)
    return train[np.argsort(place, kind="stable")]


def absolute_sizes(train_sizes: Sequence[float], most: int) -> list[int]:
    """Check sizes, and return them as ascending numbers of samples, each once."""
    given = np.asarray(train_sizes)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iuf":
        raise InputError(f"train_sizes must be numbers of samples, or shares, got {train_sizes!r}")
    if given.dtype.kind == "f":
        if not (np.all(given > 0) and np.all(given <= 1)):
            raise InputError(
                f"train_sizes must be shares above 0 and up to 1, or whole numbers, got "
                f"{given.tolist()}"
            )
        given = np.maximum(1, (given * most).astype(int))
    if given.min() < 1 or given.max() > most:
        raise InputError(
            f"train_sizes must lie between 1 and {most:,}, the training samples of the smallest "
            f"fold, got {given.min():,} to {given.max():,}"
        )
    return [int(size) for size in np.unique(given)]
