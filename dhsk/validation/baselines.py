"""What is usually done with such data, from scikit-learn, on the folds of a grid.

Of counts of words, which are sparse, that is a linear SVM on tf-idf, or on the square roots of
proportions; of tables logistic regression and an SVM with a Gaussian kernel on scaled columns, a
random forest and boosted trees. Beside these it is of compositions logistic regression on
log-ratios, and of other wide tables, such as embeddings, logistic regression and an SVM on rows of
length 1. Each setting is a candidate as every kernel at every C is one, so both are chosen by the
same folds.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any, Final

import numpy as np
import sklearn
from scipy.sparse import issparse

from dhsk.arrays import stacked
from dhsk.costs import Cost, seconds_told
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.limits import core_count
from dhsk.execution.workers import Workers
from dhsk.progress import Progress, counter
from dhsk.results.baselines import Baseline, Baselines
from dhsk.results.columns import SCALED, Row
from dhsk.samples import Samples
from dhsk.samples.looks import has_few_zeros
from dhsk.samples.scan import in_blocks
from dhsk.samples.weighted import document_frequencies, least_frequency
from dhsk.units import format_bytes
from dhsk.validation.engine import CvOptions
from dhsk.validation.grid import Grid
from dhsk.validation.grid_progress import METHODS
from dhsk.validation.input import Square
from dhsk.validation.methods import (
    SCALED_RBF,
    SINGLE_SAMPLES,
    Method,
    MethodData,
    in_background,
    methods_for,
    timed_fit,
)

LEAST_SECONDS: Final = 10.0
"""Seconds that all methods together may take unasked, however soon the kernels were done."""

SHORT_SHARE: Final = 0.5
"""The same as a part of those of the kernels, while that is at most `SHORT_SECONDS`: advice that
leaves out what is better saves nobody time. Boosting of 16,000 weighted samples takes 3 to 5 s a
fold where the kernels took 26 s, for an area under the curve of 0.941, not 0.894."""

SHORT_SECONDS: Final = 60.0
"""Most seconds by that part."""

METHODS_SECONDS, VALUE_SECONDS = 2.0, 1e-4
"""Rough seconds of all methods on five folds, and what each value adds: 178 samples of 13 features
and three classes take 1.6 to 2.9, 1,797 of 64 and ten classes take 16, on two cores."""

SHARE: Final = 0.2
"""The same part of longer runs."""

LENIENCE: Final = 1.5
"""A method that has begun is left when it will take this many times what it was allowed: the work
that it has done is lost then."""

TRIAL: Final = 1000
"""Samples of the small fit by which the seconds of a method are estimated, that grow with their
square; of others `SINGLE_SAMPLES`, as the least that a fit takes would count for each thousand."""

LEAST_POWER: Final = 1.5
"""Least power with which the seconds of `SVC` grow. Of 12,000 embeddings of 20 classes it was 1.7
from 1,000 to 9,600 samples, and as much from 250 to 1,000."""

AGAIN: Final = 2.0
"""Seconds of a small fit up to which it is tried once more before its method is left out."""

COPIES: Final = 4
"""Copies of the samples in memory: as read, as joined, the training part, and that as scaled."""

TABLE_BYTES: Final = 2**28
"""Most bytes of sparse samples that are made dense."""

CACHE_BYTES: Final = 200_000_000
"""Cache of kernel values of scikit-learn's `SVC`."""


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
        together, less than `allowed_seconds`.
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
    if need > options.room:
        return Baselines(left_out=(f"all need {format_bytes(need)} of memory",))
    spent = max(seconds, sum(row.seconds for row in rows) / core_count())
    allowed = math.inf if asked else allowed_seconds(spent)
    ends = perf_counter() + allowed
    X = _whole(square)
    methods = methods_for(X)
    if any(row.kernel.startswith(SCALED) for row in rows):  # it is among the kernels
        methods = tuple(one for one in methods if one.name != SCALED_RBF.name)
    if not isinstance(X, np.ndarray) and X.nnz and X.data.min() < 0:
        return Baselines(left_out=("all are for counts, and some values are below 0",))
    tests = [test.tolist() for _, test in grid.folds]
    least = least_frequency(square)
    kept = document_frequencies(square, grid.weights.T > 0) >= least if least else None
    key = digest_of(X, least, grid.y, grid.weights, sklearn.__version__, grid.scoring.key, tests)
    data = MethodData(X, grid.classes[grid.y], grid.weights, kept)
    at_once = min(options.resources.workers, options.room // need)
    tried: list[Baseline] = []
    left_out: list[str] = []
    options.report.expect_part(METHODS, len(methods))
    for method in methods:
        options.report.what = f"{method.name}, of scikit-learn"
        trial = _Trial(method, data, grid, options, key, at_once)
        try:
            with options.report.part(METHODS, 1.0):
                options.report(Progress("fits of scikit-learn", 0, 1))
                reason = trial.run(ends)
        except Exception as error:  # noqa: BLE001  # of other people's code: the kernels are done
            reason = f"failed ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
        tried += trial.found if not reason else []
        left_out += [f"{method.name} {why}" for why in [reason or trial.note] if why]
    return Baselines(tuple(tried), tuple(left_out))


def allowed_seconds(spent: float) -> float:
    """Most seconds of all methods, unasked, where kernels took so many."""
    return max(LEAST_SECONDS, min(SHORT_SHARE * spent, SHORT_SECONDS), SHARE * spent)


def with_methods(kernels: Callable[[], Cost], square: Square, asked: bool | None) -> Cost:
    """Cost of kernels, and of methods that are tried unasked on tables, at most as allowed.

    Those of words take little.
    """
    cost = kernels()
    if asked is not None or not isinstance(square, Samples):
        return cost
    if square.is_sparse and not _is_table(square):
        return cost
    if cost.seconds is None:
        return cost
    seconds = METHODS_SECONDS + VALUE_SECONDS * square.shape[0] * square.shape[1]
    return replace(cost, seconds=cost.seconds + min(seconds, allowed_seconds(cost.seconds)))


def _bytes(samples: Samples) -> int:
    """Bytes that samples take in scikit-learn's hands."""
    n, dim = samples.shape
    dense = samples.nnz is None or _is_table(samples)
    each = 8 * n * dim if dense else 12 * (samples.nnz or 0) + 8 * n
    return COPIES * each + CACHE_BYTES


def _is_table(samples: Samples) -> bool:
    """Whether sparse samples, such as counts of microbes, are small and full as tables are."""
    return has_few_zeros(samples) and 8 * math.prod(samples.shape) <= TABLE_BYTES


def _whole(samples: Samples) -> Any:
    """All samples in memory, (N, dim), dense or CSR."""
    blocks = (block for _, block in in_blocks(samples))
    if samples.is_sparse and _is_table(samples):
        return np.vstack([block.toarray() for block in blocks])  # type: ignore[union-attr]
    return stacked(list(blocks))


@dataclass
class _Trial:
    """A method on all folds of a grid."""

    method: Method
    data: MethodData
    grid: Grid
    options: CvOptions
    key: str
    """Differs for other samples, labels, folds, weights and scorers."""
    workers: int
    """Workers that have room for a fit each."""
    found: list[Baseline] = field(default_factory=list)
    """Its candidates so far."""
    note: str = ""
    """What was left out of it."""

    def __post_init__(self) -> None:
        self._checkpoint = Checkpoint(self.options.journal, "baseline-")

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
            expected = missing * self._seconds_of_a_fit(allowed / missing) / self._at_once
            left = ends - perf_counter()
            if expected > left and self._leaves_most(expected, left):
                return self.run(ends)
            if expected > left:
                return _too_long(expected, left)
        return self._score_all(missing, allowed)

    def _leaves_most(self, expected: float, left: float) -> bool:
        """Whether the middle C alone takes no longer than is left; it is the only one then."""
        values = self.method.C
        if expected > left * len(values) or len(values) == 1:
            return False
        middle = values[len(values) // 2]
        others = ", ".join(f"{C:g}" for C in values if middle != C and C is not None)
        self.method = replace(self.method, C=(middle,))
        self.note = f"at C = {others} (with which it {_too_long(expected, left)})"
        return True

    @property
    def _folds(self) -> int:
        return len(self.grid.folds)

    @property
    def _at_once(self) -> int:
        """Fits at a time: on workers, those to sparse samples, which take one core."""
        return max(1, self.workers) if issparse(self.data.X) else 1

    def _score_all(self, missing: int, allowed: float) -> str:
        """Fit what is missing; return why not all of it."""
        fits = len(self.method.C) * self._folds
        advance = counter(self.options.report, "fits of scikit-learn", fits, fits - missing)
        # Fold by fold: after one the time of all is known, while a large C takes much of it.
        cells = list(product(range(self._folds), self.method.C))
        entries = {(fold, C): self._kept(C, fold) for fold, C in cells}
        left = [cell for cell in cells if entries[cell] is None]
        spent = 0.0
        with closing(self._entries_of(left)) as found:
            for done, ((fold, C), entry) in enumerate(zip(left, found, strict=True), 1):
                if not np.isfinite(entry[0]):
                    return f"cannot be scored by {self.grid.scoring.name}"
                self._keep(C, fold, entry)
                entries[fold, C], spent = entry, spent + entry[1]
                advance(1)
                expected = spent / done * missing / self._at_once
                if len(self.method.C) <= done < missing and expected > LENIENCE * allowed:
                    return _too_long(expected, allowed)
        for C in self.method.C:
            own = [entries[fold, C] for fold in range(self._folds)]
            self.found.append(self._candidate(C, [entry for entry in own if entry is not None]))
        return ""

    def _entries_of(
        self, cells: Sequence[tuple[int, float | None]]
    ) -> Generator[tuple[float, float], None, None]:
        """Scores and seconds of fits of some folds and C, in their order."""
        if self._at_once == 1 or self.options.client is None:
            yield from (self._fitted(C, fold) for fold, C in cells)
            return
        workers = Workers(self.options.client, self._at_once)
        data = workers.share(self.data)
        tasks = ((data, self.method, C, fold) for fold, C in cells)
        with closing(workers.run(timed_fit, tasks, ordered=True)) as fits:
            for (fold, _), (fitted, seconds) in zip(cells, fits, strict=True):
                yield self._with_few_threads(partial(self._score, fitted, fold)), seconds

    def _candidate(self, C: float | None, entries: Sequence[tuple[float, float]]) -> Baseline:
        code = self.method.code.replace("{C}", "" if C is None else f"{C:g}")
        scores, seconds = zip(*entries, strict=True)
        return Baseline(self.method.name, C, code, scores, float(sum(seconds)))

    def _seconds_of_a_fit(self, allowed: float) -> float:
        """Seconds of a fit and its predictions, from those on few samples of a fold.

        Where it would be left out by that, still fewer samples tell the power by which the seconds
        grow, or of a method that grows with the samples what they add to what any fit takes.
        """
        n, power = len(self.data.train(0)), self.method.power
        most = TRIAL if power > 1 else SINGLE_SAMPLES
        some, spent = self._trial(most)
        if spent * (n / some) ** power > allowed * self._at_once and spent < AGAIN:
            spent = min(spent, self._trial(most)[1])  # the first one loads libraries
        seconds = spent * (n / some) ** power
        if some == n or seconds <= allowed * self._at_once:
            return seconds
        fewer, less = self._trial(most // 4)
        if power > 1:
            grows = math.log(max(spent, less) / less) / math.log(some / fewer)
            return float(spent * (n / some) ** max(LEAST_POWER, min(power, grows)))
        return spent + max(0.0, spent - less) / (some - fewer) * (n - some)

    def _trial(self, most: int) -> tuple[int, float]:
        """Number of samples of a small fit, and the seconds of one with all rounds."""
        train, test = self.data.train(0), self.grid.folds[0][1]
        some, few = train[:: -(-len(train) // most)], test[:: -(-len(test) // most)]
        if len(np.unique(self.grid.y[some])) < 2:
            some = train
        pipeline = self.method.made(self.method.C[-1], trial_of=len(train))
        begin = perf_counter()
        # Threads of OpenMP wait for each other for most of such a fit where cores are busy.
        self._with_few_threads(
            lambda: self.data.fit(pipeline, some, 0).predict(self.data.rows(few, 0)), len(some)
        )
        return len(some), (perf_counter() - begin) * self.method.times_of_trial(pipeline)

    def _fitted(self, C: float | None, fold: int) -> tuple[float, float]:
        """Score of a candidate on a fold, NaN if the scorer fails, and the seconds."""
        pipeline, train = self.method.made(C), self.data.train(fold)
        begin = perf_counter()
        score = self._with_few_threads(
            lambda: self._score(self.data.fit(pipeline, train, fold), fold)
        )
        return score, perf_counter() - begin

    def _score(self, fitted: Any, fold: int) -> float:
        test = self.grid.folds[fold][1]
        labels = self.grid.classes[self.grid.y[test]]
        try:
            return float(self.grid.scoring.scorer(fitted, self.data.rows(test, fold), labels))
        except Exception:  # noqa: BLE001  # a scorer may be anybody's function
            return math.nan

    def _with_few_threads(self, task: Callable[[], Any], n: int | None = None) -> Any:
        """Result of a task on n samples, by default all, on another thread.

        OpenMP has threads of its own for that.
        """

        def run() -> Any:
            with self.data.few_threads(n):
                return task()

        return in_background(run)

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


def _too_long(seconds: float, left: float) -> str:
    return f"takes {seconds_told(seconds)}, where {seconds_told(max(left, 0.0))} are left for it"
