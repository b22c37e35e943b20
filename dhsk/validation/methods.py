"""Common methods of scikit-learn beside which kernels are judged, and how one is fitted."""

import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from threading import Lock, Thread
from time import perf_counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Indices
from dhsk.results.baselines import HOMES
from dhsk.samples.images import EMBEDDED
from dhsk.samples.looks import are_compositions, are_tfidf
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


AT_C: Final = "{C}"
"""In the place of C, in parameters and in code."""

_WORDS: Final[Mapping[Any, str]] = {AT_C: AT_C, np.sqrt: "np.sqrt", clr_map: "dhsk.clr_map"}
"""Parameters whose `repr` is no code."""


class Step:
    """A class of scikit-learn in a pipeline, and its parameters."""

    def __init__(self, kind: str, **parameters: Any) -> None:
        self._kind, self._parameters = kind, parameters

    @property
    def code(self) -> str:
        """It as an expression."""
        given = (f"{name}={_WORDS.get(v, repr(v))}" for name, v in self._parameters.items())
        return f"{self._kind}({', '.join(given)})"

    def made(self, C: float | None) -> Any:
        """It at a C, not fitted."""
        given = {name: C if v == AT_C else v for name, v in self._parameters.items()}
        return getattr(import_module(HOMES[self._kind]), self._kind)(**given)


@dataclass(frozen=True)
class Method:
    """A method of scikit-learn."""

    name: str
    steps: tuple[Step, ...]
    C: tuple[float | None, ...] = (0.1, 1.0, 10.0)
    power: int = 1
    """The seconds of a fit grow with this power of the number of samples."""
    probabilities: bool = False
    """Whether it has `predict_proba`."""
    rounds: str | None = None
    """Parameter of its last step that counts equal rounds, `ROUNDS` of them."""

    @property
    def code(self) -> str:
        """All of it as an expression, with {C} in the place of C."""
        steps = ", ".join(step.code for step in self.steps)
        return f"make_pipeline({steps})" if len(self.steps) > 1 else steps

    def made(self, C: float | None, trial_of: int = 0) -> Any:
        """A pipeline that is not fitted; as trial of a fit on so many samples with fewer rounds."""
        from sklearn.pipeline import make_pipeline

        pipeline = make_pipeline(*(step.made(C) for step in self.steps))
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


LOOKED_AT: Final = 500
"""First samples by which rows of tf-idf are known."""

LINEAR: Final = Step("LinearSVC", C=AT_C, random_state=0)
LOGISTIC: Final = Step("LogisticRegression", C=AT_C, max_iter=1000)
RBF: Final = Step("SVC", C=AT_C)
_FILL: Final = Step("SimpleImputer", keep_empty_features=True)

OF_COUNTS: Final = (
    Method(
        "LinearSVC on sublinear tf-idf",
        (Step("TfidfTransformer", sublinear_tf=True), LINEAR),
    ),
    Method(
        "ComplementNB on sublinear tf-idf",
        (Step("TfidfTransformer", sublinear_tf=True), Step("ComplementNB", alpha=0.1)),
        C=(None,),
        probabilities=True,
    ),
    Method("LinearSVC on tf-idf", (Step("TfidfTransformer"), LINEAR)),
    Method(
        "LinearSVC on square roots of proportions",
        (Step("Normalizer", norm="l1"), Step("FunctionTransformer", func=np.sqrt), LINEAR),
    ),
)
"""On 2,000 posts of 20 groups, all words, the first had 0.819 with C = 1, the second 0.809, the
third 0.802; on 1,500 beginnings of 12 words of two of them 0.887, 0.882 and 0.885. On 500,
2,000 and 8,000 posts of 20 groups the second had 0.672, 0.828 and 0.892 with alpha = 0.1, and
0.644, 0.813 and 0.889 with scikit-learn's 1; on 500 and 1,428 posts of two of them 0.908 and 0.923,
and 0.734 and 0.866."""

OF_PROPORTIONS: Final = OF_COUNTS[2:]
"""Without those of sublinear weights."""

OF_TFIDF: Final = (Method("LinearSVC", (LINEAR,)), *OF_PROPORTIONS[1:])
"""The same of rows that have the weights of tf-idf already."""

OF_COMPOSITIONS: Final = (
    Method(
        "LogisticRegression on log-ratios",
        (Step("FunctionTransformer", func=clr_map), LOGISTIC),
        C=(1.0, 10.0, 100.0),
        probabilities=True,
    ),
)
"""Beside those of tables. With its best C, of 1 to 1,000, the mean accuracy on seven tables of
microbes was 0.814, with log(counts + 1), the usual ratios, 0.815, and that of forests 0.783."""

OF_WIDE: Final = (
    Method(
        "LogisticRegression on rows of length 1",
        (Step("Normalizer"), LOGISTIC),
        C=(1.0, 10.0, 100.0),
        probabilities=True,
    ),
    Method(
        "SVC(rbf) on rows of length 1",
        (Step("Normalizer"), RBF),
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
    (Step("StandardScaler"), RBF),
    C=(1.0, 10.0, 100.0),
    power=2,
)

OF_TABLES: Final = (
    Method(
        "LogisticRegression on scaled columns",
        (Step("StandardScaler"), LOGISTIC),
        probabilities=True,
    ),
    SCALED_RBF,
    Method(
        "RandomForestClassifier",
        (Step("RandomForestClassifier", random_state=0),),
        C=(None,),
        probabilities=True,
        rounds="n_estimators",
    ),
    Method(
        "HistGradientBoostingClassifier",
        (Step("HistGradientBoostingClassifier", random_state=0),),
        C=(None,),
        probabilities=True,
        rounds="max_iter",
    ),
)


def methods_for(X: Any) -> tuple[Method, ...]:
    """Methods that are common for samples, (N, dim), dense, where NaN stands for gaps, or CSR."""
    if not isinstance(X, np.ndarray):
        if are_tfidf(X[:LOOKED_AT]):
            return OF_TFIDF
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
    if len(method.steps) == 1:
        return method
    return replace(method, steps=(_FILL, *method.steps))


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
    kept: NDArray[np.bool_] | None = None
    """Features of each fold, (folds, dim); None for all."""

    def rows(self, members: Indices, fold: int) -> Any:
        """Some samples, with the features of a fold."""
        rows = self.X[members]
        return rows if self.kept is None else rows[:, self.kept[fold]]

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
            return pipeline.fit(self.rows(train, fold), self.labels[train], **weighted)


def timed_fit(data: MethodData, method: Method, C: float | None, fold: int) -> tuple[Any, float]:
    """Fitted pipeline of a fold, and the seconds: the task that workers run."""
    with _one_at_a_time, data.few_threads():
        begin = perf_counter()
        return data.fit(method.made(C), data.train(fold), fold), perf_counter() - begin


def in_background(task: Callable[[], Any]) -> Any:
    """Result of a task on another thread, so that an interrupt need not wait for LIBLINEAR.

    The thread is a daemon: a process that ends does not wait for it either.
    """
    done: Future[Any] = Future()

    def run() -> None:
        try:
            done.set_result(task())
        except BaseException as error:  # noqa: BLE001  # it is raised on the thread that waits
            done.set_exception(error)

    Thread(target=run, name="dhsk-baseline", daemon=True).start()
    return done.result()
