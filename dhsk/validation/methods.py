"""Common methods of scikit-learn beside which kernels are judged, and how one is fitted."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.samples.looks import EMBEDDED, are_compositions
from dhsk.samples.maps import clr_map

TRIAL_ROUNDS: Final = 10
"""Rounds, of boosting or trees of a forest, in a fit that only tells the time, of `ROUNDS`."""

STOPPING_ROUNDS: Final = 50
"""The same of boosting that stops once ten rounds bring nothing."""

_STOPS_FROM: Final = 10_000
"""Samples from which on scikit-learn's boosting stops so."""

ROUNDS: Final = 100
"""Those of scikit-learn's defaults."""

_one_at_a_time = Lock()
"""LIBLINEAR's random numbers are those of the process: two fits at a time would change both."""


@dataclass(frozen=True)
class Method:
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
    rounds: str | None = None
    """Parameter of its last step that counts equal rounds, `ROUNDS` of them."""

    def made(self, C: float | None, trial_of: int = 0) -> Any:
        """A pipeline that is not fitted; as trial of a fit on so many samples with fewer rounds."""
        from sklearn.pipeline import make_pipeline

        pipeline = make_pipeline(*self.steps(C))
        if trial_of and self.rounds is not None:
            stops = trial_of > _STOPS_FROM and "early_stopping" in pipeline[-1].get_params()
            rounds = {self.rounds: STOPPING_ROUNDS if stops else TRIAL_ROUNDS}
            pipeline[-1].set_params(**rounds, **({"early_stopping": True} if stops else {}))
        return pipeline

    def times_of_trial(self, fitted: Any) -> float:
        """How many times the rounds of a fitted trial a fit has; 1 where the trial stopped."""
        if self.rounds is None:
            return 1.0
        rounds = fitted[-1].get_params()[self.rounds]
        return 1.0 if getattr(fitted[-1], "n_iter_", rounds) < rounds else ROUNDS / rounds


def _tfidf(C: float | None) -> Sequence[Any]:
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    return TfidfTransformer(), LinearSVC(C=C, random_state=0)


def _sublinear(C: float | None) -> Sequence[Any]:
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.svm import LinearSVC

    return TfidfTransformer(sublinear_tf=True), LinearSVC(C=C, random_state=0)


def _bayes(C: float | None) -> Sequence[Any]:
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.naive_bayes import ComplementNB

    del C
    return TfidfTransformer(sublinear_tf=True), ComplementNB()


def _square_roots(C: float | None) -> Sequence[Any]:
    from sklearn.preprocessing import FunctionTransformer, Normalizer
    from sklearn.svm import LinearSVC

    return Normalizer("l1"), FunctionTransformer(np.sqrt), LinearSVC(C=C, random_state=0)


def _scaled(C: float | None) -> Sequence[Any]:
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return StandardScaler(), SVC(C=C)


def _log_ratios(C: float | None) -> Sequence[Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(clr_map), LogisticRegression(C=C, max_iter=1000)


def _unit_rows(C: float | None) -> Sequence[Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import Normalizer

    return Normalizer(), LogisticRegression(C=C, max_iter=1000)


def _unit_rows_rbf(C: float | None) -> Sequence[Any]:
    from sklearn.preprocessing import Normalizer
    from sklearn.svm import SVC

    return Normalizer(), SVC(C=C)


def _scaled_linear(C: float | None) -> Sequence[Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    return StandardScaler(), LogisticRegression(C=C, max_iter=1000)


def _forest(C: float | None) -> Sequence[Any]:
    from sklearn.ensemble import RandomForestClassifier

    del C
    return (RandomForestClassifier(random_state=0),)


def _boosted(C: float | None) -> Sequence[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    del C
    return (HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0),)


OF_COUNTS: Final = (
    Method(
        "LinearSVC on sublinear tf-idf",
        _sublinear,
        "make_pipeline(TfidfTransformer(sublinear_tf=True), LinearSVC(C={C}, random_state=0))",
    ),
    Method(
        "ComplementNB on sublinear tf-idf",
        _bayes,
        "make_pipeline(TfidfTransformer(sublinear_tf=True), ComplementNB())",
        C=(None,),
        probabilities=True,
    ),
    Method(
        "LinearSVC on tf-idf",
        _tfidf,
        "make_pipeline(TfidfTransformer(), LinearSVC(C={C}, random_state=0))",
    ),
    Method(
        "LinearSVC on square roots of proportions",
        _square_roots,
        'make_pipeline(Normalizer("l1"), FunctionTransformer(np.sqrt), '
        "LinearSVC(C={C}, random_state=0))",
    ),
)
"""On 2,000 posts of 20 groups, all words, the first had 0.819 with C = 1, the second 0.809, the
third 0.802; on 1,500 beginnings of 12 words of two of them 0.887, 0.882 and 0.885."""

OF_PROPORTIONS: Final = OF_COUNTS[2:]
"""Without those of sublinear weights."""

OF_COMPOSITIONS: Final = (
    Method(
        "LogisticRegression on log-ratios",
        _log_ratios,
        "make_pipeline(FunctionTransformer(dhsk.clr_map), "
        "LogisticRegression(C={C}, max_iter=1000))",
        C=(1.0, 10.0, 100.0),
        probabilities=True,
    ),
)
"""Beside those of tables. With its best C, of 1 to 1,000, the mean accuracy on seven tables of
microbes was 0.814, with log(counts + 1), the usual ratios, 0.815, and that of forests 0.783."""

OF_WIDE: Final = (
    Method(
        "LogisticRegression on rows of length 1",
        _unit_rows,
        "make_pipeline(Normalizer(), LogisticRegression(C={C}, max_iter=1000))",
        C=(1.0, 10.0, 100.0),
        probabilities=True,
    ),
    Method(
        "SVC(rbf) on rows of length 1",
        _unit_rows_rbf,
        "make_pipeline(Normalizer(), SVC(C={C}))",
        C=(1.0, 10.0, 100.0),
        power=2,
    ),
)
"""Beside those of tables. With their best C they had 0.806 and 0.798 on 1,500 posts of 20 groups as
embeddings of 300 columns, 0.875 and 0.943 on 1,500 of MNIST, 0.971 and 0.989 on digits; `LinearSVC`
on such rows 0.812, 0.877 and 0.963, but on 4,000 posts as embeddings of 256 columns 0.843 in 16 s
where logistic regression has 0.846 in 11 s; `SVC` on scaled columns 0.756 and 0.887 on the first
two."""

SCALED_RBF: Final = Method(
    "SVC(rbf) on scaled columns",
    _scaled,
    "make_pipeline(StandardScaler(), SVC(C={C}))",
    C=(1.0, 10.0, 100.0),
    power=2,
)

OF_TABLES: Final = (
    Method(
        "LogisticRegression on scaled columns",
        _scaled_linear,
        "make_pipeline(StandardScaler(), LogisticRegression(C={C}, max_iter=1000))",
        probabilities=True,
    ),
    SCALED_RBF,
    Method(
        "RandomForestClassifier",
        _forest,
        "RandomForestClassifier(random_state=0)",
        C=(None,),
        probabilities=True,
        rounds="n_estimators",
    ),
    Method(
        "HistGradientBoostingClassifier",
        _boosted,
        "HistGradientBoostingClassifier(random_state=0)",
        C=(None,),
        probabilities=True,
        rounds="max_iter",
    ),
)


def methods_for(X: Any) -> tuple[Method, ...]:
    """Methods that are common for samples, (N, dim), dense, where NaN stands for gaps, or CSR."""
    if not isinstance(X, np.ndarray):
        # The logarithms of sublinear weights turn below 0 what is below 1.
        return OF_COUNTS if not X.nnz or X.data.min() >= 1 else OF_PROPORTIONS
    if np.isnan(X).any():
        return tuple(_filling(method) for method in OF_TABLES)
    has_ratios = are_compositions(X) and bool(X.any(axis=1).all())
    if has_ratios:
        return *OF_COMPOSITIONS, *OF_TABLES
    return (*OF_WIDE, *OF_TABLES) if X.shape[1] >= EMBEDDED else OF_TABLES


def _filling(method: Method) -> Method:
    """A method of which means fill gaps; trees take these as they are."""
    first = "make_pipeline("
    if not method.code.startswith(first):
        return method
    code = method.code.replace(first, f"{first}SimpleImputer(keep_empty_features=True), ", 1)
    return replace(method, steps=partial(_filled, method.steps), code=code)


def _filled(steps: Callable[[float | None], Sequence[Any]], C: float | None) -> Sequence[Any]:
    from sklearn.impute import SimpleImputer

    return SimpleImputer(keep_empty_features=True), *steps(C)


SINGLE_SAMPLES: Final = 5000
"""Most samples that one thread of OpenMP is for: several wait for each other some thousand times a
fit. Measured on 178 wines beside two busy processes: 0.11 s, and 0.33 s with two threads."""


@dataclass(frozen=True, eq=False)
class MethodData:
    """What methods are fitted to."""

    X: Any
    """Samples, (N, dim), dense or CSR."""
    labels: NDArray[Any]
    """(N,)."""
    weights: Floats
    """Weights of the samples by fold, (folds, N); 0 of those that it does not train on."""

    def train(self, fold: int) -> Indices:
        """Samples that a fold trains on, each once."""
        return np.flatnonzero(self.weights[fold] > 0)

    def few_threads(self, n: int | None = None) -> AbstractContextManager[Any]:
        """OpenMP's threads of the thread that enters it: one for few samples, n or all."""
        from threadpoolctl import threadpool_limits

        few = (len(self.labels) if n is None else n) <= SINGLE_SAMPLES
        limits: AbstractContextManager[Any] = threadpool_limits(1 if few else None, "openmp")
        return limits

    def fit(self, pipeline: Any, train: Indices, fold: int) -> Any:
        """Fit a pipeline to samples of a fold."""
        from sklearn.exceptions import ConvergenceWarning

        weights: Floats = self.weights[fold][train]
        name = f"{pipeline.steps[-1][0]}__sample_weight"
        weighted = {} if (weights == 1).all() else {name: weights}
        with warnings.catch_warnings():  # as people use it, with the iterations that it has
            warnings.simplefilter("ignore", ConvergenceWarning)
            return pipeline.fit(self.X[train], self.labels[train], **weighted)


def timed_fit(data: MethodData, method: Method, C: float | None, fold: int) -> tuple[Any, float]:
    """Fitted pipeline of a fold, and the seconds: the task that workers run."""
    with _one_at_a_time, data.few_threads():
        begin = perf_counter()
        return data.fit(method.made(C), data.train(fold), fold), perf_counter() - begin


def in_background(task: Callable[[], Any]) -> Any:
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
