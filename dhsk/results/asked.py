"""What may be asked of a cross-validation beside its kernels and C, each in one small class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from dhsk.arrays import Indices
from dhsk.errors import InputError
from dhsk.kernels.base import Indefinite, chosen_parameter, parse_indefinite, whole_parameter
from dhsk.objects.places import Place
from dhsk.results.low_rank import check_seed
from dhsk.samples import ZeroRule
from dhsk.samples.zeros import parse_zero_rule

Choose = Literal["simplest", "best"]
"""Which cell is taken: the simplest within one standard error of the best, or the best."""

CHOICES: Final[tuple[Choose, ...]] = get_args(Choose)


Search = Literal["halving", "full"]
"""How much of a search runs on all samples: what may win, or everything."""

SEARCHES: Final[tuple[Search, ...]] = get_args(Search)


@dataclass(frozen=True)
class StratifiedFolds:
    """Splitter into stratified, shuffled folds, several times, without classes of few samples.

    It works wherever scikit-learn takes a splitter. With groups, none of them is divided between
    training and test.

    Attributes
    ----------
    n_splits
        Number of folds.
    n_repeats
        Number of times that the samples are shuffled and divided, with the seeds `random_state`,
        `random_state` + 1, ...
    min_class
        Fewest samples of a class. Smaller classes are in no fold; `cross_validate` leaves them out
        of the scores and of the model too, as if they had been held out. They stay in the matrix,
        its eigenvalues and spread, and among the samples that landmarks are chosen from.
    random_state
        Seed of the first division.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import minmax_scale
    >>> X, y = load_wine(return_X_y=True)
    >>> X = minmax_scale(X)  # one unit for all columns
    >>> folds = dhsk.StratifiedFolds(5, n_repeats=3)
    >>> folds.get_n_splits()
    15
    >>> result = dhsk.cross_validate(X, y, time_scale=1, C=10, cv=folds)
    >>> len(result.repeats_)
    3
    """

    n_splits: int = 5
    n_repeats: int = 1
    min_class: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        for name, least in (("n_splits", 2), ("n_repeats", 1), ("min_class", 1)):
            whole_parameter(name, getattr(self, name), least)
        check_seed(self.random_state, self.n_repeats)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds of all repeats."""
        del X, y, groups
        return self.n_splits * self.n_repeats

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[Indices, Indices]]:
        """Yield the training and test samples of each fold, repeat by repeat."""
        del X
        labels = np.asarray(y)
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        kept = np.flatnonzero((counts >= self.min_class)[codes])
        own = None if groups is None else np.asarray(groups)[kept]
        for repeat in range(self.n_repeats):
            splitter = self.of_repeat(repeat, grouped=groups is not None)
            for train, test in splitter.split(np.zeros(len(kept)), labels[kept], own):
                yield kept[train], kept[test]

    def of_repeat(self, repeat: int, *, grouped: bool) -> Any:
        """Return scikit-learn's splitter that makes the folds of one repeat."""
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

        kind = StratifiedGroupKFold if grouped else StratifiedKFold
        return kind(self.n_splits, shuffle=True, random_state=self.random_state + repeat)


@dataclass(frozen=True)
class Fitting:
    """How each SVM of a cross-validation is fitted: its tolerance, and what it takes.

    Attributes
    ----------
    tol
        KKT violation at which a fit has converged; of low rank, part of its gradient at 0 that may
        be left, times the part of the samples in the smaller class, as LIBLINEAR has it. If
        rounding leaves more the fit ends there, and its row says that it did not converge.
    zero_rows
        What becomes of samples of zeros under a map to the sphere: "center", the centre of the
        positive orthant, with a warning that counts them, or "error".
    indefinite
        What to do with kernels that are known not to be positive semi-definite: "error", or
        "allow", where fits may end at points that are no maxima.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> fit = dhsk.Fitting(tol=1e-5, zero_rows="error")
    >>> dhsk.cross_validate(X[:300], y[:300], time_scale=0.5, C=10, cv=3, fit=fit).tol
    1e-05
    """

    tol: float = 1e-3
    zero_rows: ZeroRule = "center"
    indefinite: Indefinite = "error"

    def __post_init__(self) -> None:
        parse_zero_rule(self.zero_rows)
        parse_indefinite(self.indefinite)


@dataclass(frozen=True)
class Refit:
    """Which candidate of a cross-validation is taken, and what is done with it.

    Attributes
    ----------
    choose
        "simplest", of the simplest kernel within one standard error of the highest mean, the best
        candidate; or "best", the highest mean. See `CvResult.decision`.
    test
        Samples and labels held out from everything, on which the model is scored.
    model
        Whether to fit the candidate on all samples; False takes it for `CvResult.best_` and all
        that is shown of single samples only. With `test` it is fitted in any case.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> refit = dhsk.Refit("best", test=(X[500:], y[500:]))
    >>> result = dhsk.cross_validate(X[:500], y[:500], time_scale=0.5, C=[1, 10], refit=refit)
    >>> round(result.test.score, 2)
    0.91
    """

    choose: Choose = "simplest"
    test: tuple[Any, Any] | None = None
    model: bool = True

    def __post_init__(self) -> None:
        test: Any = self.test
        chosen_parameter("choose", self.choose, CHOICES)
        if test is not None and not (isinstance(test, tuple | list) and len(test) == 2):
            raise InputError(f"test must be samples and labels, (X, y), got {test!r:.80}")

    @classmethod
    def of(cls, given: object) -> "Refit":
        """Return what a parameter `refit` asks for: True, False or a `Refit`."""
        if isinstance(given, bool | np.bool_):
            return cls(model=bool(given))
        if isinstance(given, cls):
            return given
        raise InputError(f"refit must be True, False or a dhsk.Refit, got {given!r:.80}")

    @property
    def fits(self) -> bool:
        """Whether the candidate is fitted on all samples."""
        return self.model or self.test is not None


@dataclass(frozen=True)
class Output:
    """What a cross-validation keeps on disk, and what it computes beside the scores.

    Attributes
    ----------
    folder
        Folder or ``s3://`` prefix for what is finished while the grid runs: the fits in `fits`,
        from which the same call continues, and the rows of `CvResult.results_` in `results.csv`,
        which is replaced, in one step, after each kernel. One that is there is removed once the
        samples are read.
    store
        Folder or ``s3://`` prefix for the stores of inner products, `cosine` and, if a kernel needs
        it, `linear`, and one for each kernel that no products determine. None for some in
        `folder`/fits/gram, or temporary ones, which are removed at the end. Only for samples.
    disk
        Most bytes that all stores may take, as a number or like "10GB"; None for 1 GB and half of
        what is free, with `store` for all of that. Larger ones are not written: without `store`
        kernel values are then computed on demand, and with it nothing is begun.
    eigenvalues
        Whether to compute the leading eigenvalues of the taken kernel's matrix, for the report.
        None for up to 1,000 samples, where they take a tenth of a second; of more they take passes
        over the matrix, about as long as all fits of a small grid. None are computed on working
        sets or of low rank.
    baselines
        Whether to score common methods of scikit-learn on the same folds: of sparse counts
        `LinearSVC` on tf-idf and on square roots of proportions, of dense samples logistic
        regression and `SVC` on scaled columns, a random forest and boosted trees; too, of dense
        compositions logistic regression on log-ratios, of other samples of 50 columns
        and more logistic regression and `SVC` on rows of length 1. None for those that take less
        than 10 s, half the seconds of the kernels up to a minute, or a fifth of those, if no kernel
        was asked for.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> out = dhsk.Output("found", disk="1GB", eigenvalues=False)
    >>> dhsk.cross_validate(X[:300], y[:300], time_scale=0.5, C=10, cv=3, out=out).eigenvalues
    ()
    """

    folder: str | Place | None = None
    store: str | Place | None = None
    disk: int | str | None = None
    eigenvalues: bool | None = None
    baselines: bool | None = None

    def __post_init__(self) -> None:
        for name in ("eigenvalues", "baselines"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool | np.bool_):
                raise InputError(f"{name} must be True, False or None, got {value!r:.80}")

    @classmethod
    def of(cls, given: "str | Place | Output | None") -> "Output":
        """Return what a parameter `out` asks for: a folder, or all of it."""
        return given if isinstance(given, cls) else cls(given)  # type: ignore[arg-type]
