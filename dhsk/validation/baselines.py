"""What is usually done with such data, from scikit-learn, on the folds of a grid.

Of counts of words, which are sparse, that is a linear SVM on tf-idf, or on the square roots of
proportions; of tables an SVM with a Gaussian kernel on scaled columns, and boosted trees. Each
setting is a candidate as every kernel at every C is one, so both are chosen by the same folds.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from queue import SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any, Final

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import vstack

from dhsk.arrays import Floats, Indices
from dhsk.costs import rough_seconds
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count, own_room
from dhsk.progress import Progress, counter
from dhsk.results.baselines import Baseline, Baselines
from dhsk.results.columns import Row
from dhsk.samples import Samples
from dhsk.samples.scan import rows_within
from dhsk.units import format_bytes
from dhsk.validation.engine import CvOptions
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import METHODS
from dhsk.validation.input import Square

SHARE: Final = 0.2
"""Most seconds that all methods together may take unasked, as a part of those of the kernels."""

LENIENCE: Final = 1.5
"""A method that has begun is left when it will take this many times what it was allowed: the work
that it has done is lost then."""

TRIAL: Final = 1000
"""Samples of the small fit by which the seconds of a method are estimated."""

TRIAL_ROUNDS: Final = 10
"""Rounds of boosting in that fit, of `ROUNDS`."""

ROUNDS: Final = 100

COPIES: Final = 4
"""Copies of the samples in memory: as read, as joined, the training part, and that as scaled."""

CACHE_BYTES: Final = 200_000_000
"""Cache of kernel values of scikit-learn's `SVC`."""

_BLOCK_BYTES: Final = 16 * 2**20


@dataclass(frozen=True)
class _Method:
    """A method of scikit-learn."""

    name: str
    steps: Callable[[float | None], Sequence[Any]]
    """Steps of its pipeline, at a C."""
    code: str
    """The same as an expression, with {C} in the place of C."""
    C: tuple[float | None, ...] = (0.1, 1.0, 10.0)
    power: int = 1
    """The seconds of a fit grow with this power of the number of samples."""
    probabilities: bool = False
    """Whether it has `predict_proba`."""

    def made(self, C: float | None, trial: bool = False) -> Any:
        """A pipeline that is not fitted; of a `trial` one that is fitted sooner."""
        from sklearn.pipeline import make_pipeline

        pipeline = make_pipeline(*self.steps(C))
        if trial and "max_iter" in pipeline[-1].get_params() and self.probabilities:
            pipeline[-1].set_params(max_iter=TRIAL_ROUNDS)
        return pipeline


def _tfidf(C: float | None) -> Sequence[Any]:
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    return TfidfTransformer(), LinearSVC(C=C, random_state=0)


def _square_roots(C: float | None) -> Sequence[Any]:
    from sklearn.preprocessing import FunctionTransformer, Normalizer
    from sklearn.svm import LinearSVC

    return Normalizer("l1"), FunctionTransformer(np.sqrt), LinearSVC(C=C, random_state=0)


def _scaled(C: float | None) -> Sequence[Any]:
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return StandardScaler(), SVC(C=C)


def _boosted(C: float | None) -> Sequence[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    del C
    return (HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0),)


OF_COUNTS: Final = (
    _Method(
        "LinearSVC on tf-idf",
        _tfidf,
        "make_pipeline(TfidfTransformer(), LinearSVC(C={C}, random_state=0))",
    ),
    _Method(
        "LinearSVC on square roots of proportions",
        _square_roots,
        'make_pipeline(Normalizer("l1"), FunctionTransformer(np.sqrt), '
        "LinearSVC(C={C}, random_state=0))",
    ),
)

OF_TABLES: Final = (
    _Method(
        "SVC(rbf) on scaled columns",
        _scaled,
        "make_pipeline(StandardScaler(), SVC(C={C}))",
        C=(1.0, 10.0, 100.0),
        power=2,
    ),
    _Method(
        "HistGradientBoostingClassifier",
        _boosted,
        "HistGradientBoostingClassifier(random_state=0)",
        C=(None,),
        probabilities=True,
    ),
)


def asked_for(given: bool | None, square: Square, *, default: bool) -> bool | None:
    """Whether any are asked for; None for those that take little, in a `default` search.

    Raises InputError if they are, but there is a matrix.
    """
    if given and not isinstance(square, Samples):
        raise InputError(
            "baselines are fitted to samples, but a matrix was given: give the samples, or leave "
            "baselines out"
        )
    return given if default or given else False


def baselines_of(
    square: Square,
    grid: Grid,
    options: CvOptions,
    rows: Sequence[Row],
    asked: bool | None,
    seconds: float,
) -> Baselines:
    """Score what is usually done on the folds of a grid.

    Parameters
    ----------
    square
        Samples; of a matrix nothing is tried.
    grid
        Folds, weights and scorer.
    options
        Its `journal` keeps each fit, its `memory` bounds what is read.
    rows
        Rows of the kernels.
    asked
        Whether any are tried; None for those that take, by the seconds of a small fit, and all
        together, less than `SHARE` of those of the kernels.
    seconds
        Those of this run so far; an earlier one may have fitted some kernels.

    Returns
    -------
    Baselines
        Scores of all candidates; methods that were left out with the reason.
    """
    if asked is False or not isinstance(square, Samples):
        return Baselines()
    need = _bytes(square)
    if need > own_room(options.memory):
        return Baselines(left_out=(f"all need {format_bytes(need)} of memory",))
    spent = max(seconds, sum(row.seconds for row in rows) / core_count())
    ends = perf_counter() + (math.inf if asked else SHARE * spent)
    X = _whole(square)
    methods = OF_COUNTS if square.is_sparse else OF_TABLES
    if square.is_sparse and X.nnz and X.data.min() < 0:
        return Baselines(left_out=("all are for counts, and some values are below 0",))
    tests = [test.tolist() for _, test in grid.folds]
    key = digest_of(X, grid.y, grid.weights, sklearn.__version__, grid.scoring.key, tests)
    tried: list[Baseline] = []
    left_out: list[str] = []
    options.report.expect_part(METHODS, len(methods))
    for method in methods:
        options.report.what = f"{method.name}, of scikit-learn"
        trial = _Trial(method, X, grid, options, key)
        try:
            with options.report.part(METHODS, 1.0):
                options.report(Progress("fits of scikit-learn", 0, 1))
                reason = trial.run(ends)
        except Exception as error:  # noqa: BLE001  # of other people's code: the kernels are done
            reason = f"failed ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        tried += trial.found if not reason else []
        left_out += [f"{method.name} {reason}"] if reason else []
    return Baselines(tuple(tried), tuple(left_out))


def _bytes(samples: Samples) -> int:
    """Bytes that samples take in scikit-learn's hands."""
    n, dim = samples.shape
    each = 8 * n * dim if samples.nnz is None else 12 * samples.nnz + 8 * n
    return COPIES * each + CACHE_BYTES


def _whole(samples: Samples) -> Any:
    """All samples in memory, (N, dim), dense or CSR."""
    parts: list[Any] = list(samples.blocks(rows_within(samples, _BLOCK_BYTES)))
    return vstack(parts, format="csr") if samples.is_sparse else np.concatenate(parts)


@dataclass
class _Trial:
    """A method on all folds of a grid."""

    method: _Method
    X: Any
    grid: Grid
    options: CvOptions
    key: str
    """Differs for other samples, labels, folds, weights and scorers."""
    found: list[Baseline] = field(default_factory=list)
    """Its candidates so far."""

    def __post_init__(self) -> None:
        self._checkpoint = Checkpoint(self.options.journal, "baseline-")
        self._fits = len(self.method.C) * self._folds

    def run(self, ends: float) -> str:
        """Try all candidates; return why not, or nothing if all is done.

        `ends` is when the time that all may take is over, as `perf_counter` counts.
        """
        if self.grid.scoring.probabilities and not self.method.probabilities:
            return "has no probabilities"
        known = [self._kept(C, fold) for C in self.method.C for fold in range(self._folds)]
        missing = known.count(None)
        allowed = ends - perf_counter()
        if missing and allowed < math.inf:
            expected = missing * self._seconds_of_a_fit()
            if expected > ends - perf_counter():
                return _too_long(expected)
        return self._score_all(missing, allowed)

    @property
    def _folds(self) -> int:
        return len(self.grid.folds)

    def _score_all(self, missing: int, allowed: float) -> str:
        """Fit what is missing; return why not all of it."""
        found = self._fits - missing
        advance = counter(self.options.report, "fits of scikit-learn", self._fits, found)
        spent, done = 0.0, 0
        entries: dict[float | None, list[tuple[float, float]]] = {C: [] for C in self.method.C}
        # Fold by fold: after one the time of all is known, while a large C takes much of it.
        for fold, C in product(range(self._folds), self.method.C):
            entry = self._kept(C, fold)
            if entry is None:
                expected = spent / done * missing if done >= len(self.method.C) else 0.0
                if expected > LENIENCE * allowed:
                    return _too_long(expected)
                entry = self._fitted(C, fold)
                if not np.isfinite(entry[0]):
                    return f"cannot be scored by {self.grid.scoring.name}"
                self._keep(C, fold, entry)
                spent, done = spent + entry[1], done + 1
                advance(1)
            entries[C].append(entry)
        self.found += [self._candidate(C, own) for C, own in entries.items()]
        return ""

    def _candidate(self, C: float | None, entries: Sequence[tuple[float, float]]) -> Baseline:
        code = self.method.code.replace("{C}", "" if C is None else f"{C:g}")
        scores, seconds = zip(*entries, strict=True)
        return Baseline(self.method.name, C, code, scores, float(sum(seconds)))

    def _seconds_of_a_fit(self) -> float:
        """Seconds of a fit and its predictions, from those on few samples of a fold."""
        train, test = self._parts(0)
        some, few = train[:: -(-len(train) // TRIAL)], test[:: -(-len(test) // TRIAL)]
        if len(np.unique(self.grid.y[some])) < 2:
            some = train
        pipeline = self.method.made(self.method.C[-1], trial=True)
        begin = perf_counter()
        _in_background(lambda: self._fit(pipeline, some, 0).predict(self.X[few]))
        spent = perf_counter() - begin
        if self.method.probabilities:
            spent *= ROUNDS / TRIAL_ROUNDS
        return float(spent * (len(train) / len(some)) ** self.method.power)

    def _fitted(self, C: float | None, fold: int) -> tuple[float, float]:
        """Score of a candidate on a fold, NaN if the scorer fails, and the seconds."""
        train, test = self._parts(fold)
        pipeline = self.method.made(C)
        begin = perf_counter()
        score = _in_background(lambda: self._score(self._fit(pipeline, train, fold), test))
        return score, perf_counter() - begin

    def _parts(self, fold: int) -> tuple[Indices, Indices]:
        """Samples that a fold trains on, each once, and those that it holds out."""
        return np.flatnonzero(self.grid.weights[fold] > 0), self.grid.folds[fold][1]

    def _fit(self, pipeline: Any, train: Indices, fold: int) -> Any:
        from sklearn.exceptions import ConvergenceWarning

        weights: Floats = self.grid.weights[fold][train]
        name = f"{pipeline.steps[-1][0]}__sample_weight"
        weighted = {} if (weights == 1).all() else {name: weights}
        labels: NDArray[Any] = self.grid.classes[self.grid.y[train]]
        with warnings.catch_warnings():  # as people use it, with the iterations that it has
            warnings.simplefilter("ignore", ConvergenceWarning)
            return pipeline.fit(self.X[train], labels, **weighted)

    def _score(self, fitted: Any, test: Indices) -> float:
        labels = self.grid.classes[self.grid.y[test]]
        try:
            return float(self.grid.scoring.scorer(fitted, self.X[test], labels))
        except Exception:  # noqa: BLE001  # a scorer may be anybody's function
            return math.nan

    def _name(self, C: float | None, fold: int) -> str:
        return digest_of(self.key, self.method.code, C, fold)

    def _kept(self, C: float | None, fold: int) -> tuple[float, float] | None:
        """Score and seconds that an earlier run has found."""
        return self._checkpoint.get(
            self._name(C, fold), lambda entry: (float(entry["score"]), float(entry["seconds"]))
        )

    def _keep(self, C: float | None, fold: int, entry: tuple[float, float]) -> None:
        self._checkpoint.put(
            self._name(C, fold), {"score": np.array(entry[0]), "seconds": np.array(entry[1])}
        )


def _too_long(seconds: float) -> str:
    return f"takes {rough_seconds(seconds)}, more than a fifth of this run"


def _in_background(task: Callable[[], Any]) -> Any:
    """Result of a task on another thread, so that an interrupt need not wait for LIBLINEAR.

    The thread is a daemon: a process that ends does not wait for it either.
    """
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            done.put((task(), None))
        except BaseException as error:  # noqa: BLE001  # it is raised on the thread that waits
            done.put((None, error))

    Thread(target=run, name="dhsk-baseline", daemon=True).start()
    result, error = done.get()
    if error is not None:
        raise error
    return result
