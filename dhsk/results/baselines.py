"""Common methods of scikit-learn beside the kernels, on the same folds."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.results.columns import grouped
from dhsk.results.paired import PairedDifference, deviation

HOMES: Final = {
    "ComplementNB": "sklearn.naive_bayes",
    "FunctionTransformer": "sklearn.preprocessing",
    "HistGradientBoostingClassifier": "sklearn.ensemble",
    "LinearSVC": "sklearn.svm",
    "LogisticRegression": "sklearn.linear_model",
    "Normalizer": "sklearn.preprocessing",
    "RandomForestClassifier": "sklearn.ensemble",
    "SimpleImputer": "sklearn.impute",
    "StandardScaler": "sklearn.preprocessing",
    "SVC": "sklearn.svm",
    "TfidfTransformer": "sklearn.feature_extraction.text",
    "make_pipeline": "sklearn.pipeline",
}
"""Modules of the names in the code of common methods."""


@dataclass(frozen=True)
class Baseline:
    """A common method with one setting, as it scored on the folds of a grid.

    Attributes
    ----------
    method
        What is usually done, such as "LinearSVC on tf-idf".
    C
        Its C; None if it has none.
    code
        Expression of Python that makes the estimator; weights of samples and classes go to its fit.
    scores
        Scores, fold by fold.
    seconds
        Time of its fits and predictions on all folds.
    """

    method: str
    C: float | None
    code: str
    scores: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """Mean score over the folds."""
        return float(np.mean(self.scores))

    @property
    def std(self) -> float:
        """Standard deviation of the scores over the folds."""
        return deviation(self.scores)

    @property
    def brief(self) -> str:
        """Method and C: LinearSVC on tf-idf, C = 1."""
        return self.method if self.C is None else f"{self.method}, C = {self.C:g}"


@dataclass(frozen=True)
class Baselines:
    """All common methods that were tried, each setting a candidate like a kernel at one C.

    Attributes
    ----------
    tried
        Every method at every setting.
    left_out
        Methods that were not tried, with the reason, in words.
    """

    tried: tuple[Baseline, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def best(self) -> Baseline | None:
        """The candidate with the highest mean, of equals the first; None without any."""
        return max(self.tried, key=lambda one: one.mean, default=None)

    @property
    def best_of_each(self) -> tuple[Baseline, ...]:
        """The best candidate of each method, the highest mean first."""
        ordered = sorted(self.tried, key=lambda one: -one.mean)
        return tuple(own[0] for own in grouped(ordered, lambda one: one.method).values())


NO_BASELINES: Final = Baselines()


@dataclass(frozen=True)
class Beside:
    """The best common method beside the best kernel, on the same folds."""

    baseline: Baseline
    kernel: str
    """The best kernel and its C."""
    below: PairedDifference
    """Score of the kernel less that of the method."""
    taken: float
    """Mean of the kernel to take, which may be a simpler one."""

    @property
    def ahead(self) -> bool:
        """Whether no kernel has a higher mean, or the one to take is no nearer to the best."""
        return self.below.difference <= 0 or (self.below.within and self.baseline.mean > self.taken)

    @property
    def difference(self) -> str:
        """How far the best kernel is from the method, without advice."""
        return f"{self.baseline.brief}, of scikit-learn: {self.kernel} {self._apart}"

    @property
    def _apart(self) -> str:
        """Whether the best kernel is below or above the method, and by how much."""
        if not self.below.difference:
            return "has the same mean"
        side = "above" if self.below.difference > 0 else "below"
        return f"is {abs(self.below.difference):.4f} ± {self.below.standard_error:.4f} {side} it"

    @property
    def words(self) -> str:
        """What that means for who has to choose."""
        if self.ahead and self.below.difference > 0:
            return (
                f"take {self.baseline.brief}, of scikit-learn: within one standard error of the "
                f"best ({self.kernel}, {self.below.words} better), and above the kernel to take"
            )
        if self.ahead:
            return (
                f"take {self.baseline.brief}, of scikit-learn: no kernel here is better "
                f"({self.kernel} {self._apart})"
            )
        name = f"{self.baseline.brief}, of scikit-learn, is"
        if self.below.within:
            return f"{name} within one standard error of the best: {self.below.words} below"
        best = self.baseline.mean + self.below.difference
        return f"{name} {self.below.words} below the best, {best:.4f}"
