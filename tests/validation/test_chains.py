"""Scores of several C at once are those of each C alone, and those of rational arithmetic.

The samples are those on which they once were not: coefficients within rounding of their bounds
decided the intercept, at an end of its interval.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import dhsk
from dhsk.models.fit_plan import plan_fits
from tests.rational import Exact, at_bounds, bounds_of

TOL = 1e-6

TIGHT = 1e-10
"""Tolerance of LIBSVM, whose coefficients are the candidates of the judge."""

ROUNDING = 1e-11
"""Sums of some hundred products, relative to C."""

ROOM = 64**2 * 8
"""Memory of a matrix: less than that of a fold."""


@dataclass(frozen=True, eq=False)
class Case:
    """Samples of two classes, with whole weights."""

    X: Any
    K: Any
    y: Any
    weights: Any
    kernel: dhsk.Kernel
    values: tuple[float, ...]
    folds: int

    def cross_validate(self, values: Any, **options: Any) -> dhsk.CvResult:
        """Means of all folds are in the summary."""
        return dhsk.cross_validate(
            self.X, self.y, kernels=[self.kernel], C=values, cv=self.folds,
            fit=dhsk.Fitting(tol=TOL), sample_weight=self.weights, **options,
        )  # fmt: skip

    def splits(self) -> list[tuple[Any, Any]]:
        """The folds of `cross_validate`."""
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=0)
        return list(folds.split(self.X, self.y))


def weighted(seed: int) -> Case:
    """65 samples of counts on a flat heat kernel."""
    rng, y = np.random.default_rng(seed), np.arange(65) % 2
    X = rng.poisson(2 + 1.5 * np.outer(y, rng.random(20) < 0.3)) + 1.0
    kernel = dhsk.HeatKernel.at_scale(20, 3.0)
    K = kernel(dhsk.hyperspherical_map(X))
    return Case(X, K, y, rng.integers(1, 4, 65).astype(float), kernel, (0.1, 10.0), 3)


def normal(seed: int) -> Case:
    """98 samples, all of weight 1, on a Gaussian kernel."""
    rng, y = np.random.default_rng(seed), np.arange(98) % 2
    X = rng.normal(size=(98, 2)) + 2.0 * y[:, None]
    kernel = dhsk.GaussianKernel(10.0)
    return Case(X, kernel(X), y, np.ones(98), kernel, (1.0, 10.0), 5)


CASES: list[tuple[Any, int]] = [
    (weighted, 21),  # 0.51 for 0.58 at C = 10
    (weighted, 15),  # 0.49 for 0.54
    (normal, 22),  # 0.908 for 0.897
    (normal, 39),  # 0.969 for 0.959
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0].__name__} {case[1]}")
def case(request: pytest.FixtureRequest) -> Case:
    """One of the samples."""
    make, seed = request.param
    return make(seed)


def judged(case: Case, train: Any, C: float) -> tuple[Any, Exact | None]:
    """LIBSVM's fit, for the second class, and the exact one if it is at the bounds."""
    near, y = np.zeros(len(train)), case.y[train]
    inner = case.K[np.ix_(train, train)]
    peer = SVC(C=C, kernel="precomputed", tol=TIGHT)
    peer.fit(inner, y, sample_weight=case.weights[train])
    near[peer.support_] = peer.dual_coef_[0]
    s = np.where(y == 1, 1, -1).tolist()
    box = [Fraction(int(w)) * Fraction(str(C)) for w in case.weights[train]]
    K = [[Fraction(v) for v in row] for row in inner.tolist()]
    return peer, at_bounds(K, s, bounds_of(s, box), near)


def exact_decisions(case: Case, train: Any, exact: Exact) -> Any:
    """Rational decisions of all samples, rounded in the end."""
    b, intercept = exact
    rows = [[Fraction(v) for v in row] for row in case.K[:, train].tolist()]
    sums = [sum(v * c for v, c in zip(row, b, strict=True) if c) + intercept for row in rows]
    return np.array(sums, dtype=float)


@cache
def exact_score(case: Case, C: float) -> tuple[float, int]:
    """Mean accuracy of all folds, and how many of them have no free coefficients."""
    scores, without = [], 0
    for train, test in case.splits():
        peer, exact = judged(case, train, C)
        if exact is None:
            decisions = peer.decision_function(case.K[np.ix_(test, train)])
        else:
            decisions, without = exact_decisions(case, train, exact)[test], without + 1
        scores.append(np.mean((decisions > 0) == (case.y[test] == 1)))
    return float(np.mean(scores)), without


@pytest.fixture(params=["whole", "rounds", "working sets"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers for any memory."""
    limits: dict[str, dict[str, Any]] = {
        "whole": {},
        "rounds": {"whole": False, "room": ROOM},
        "working sets": {"whole": False, "held": False, "room": ROOM},
    }
    for name, count in (("FIRST", 8), ("LEAST", 8), ("LEAST_OF_CLASS", 2), ("SPARE", 4)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)

    def planned(*args: Any, **options: Any) -> Any:
        return replace(plan_fits(*args, **options), **limits[request.param])

    monkeypatch.setattr("dhsk.validation.exact.plan_fits", planned)


@pytest.mark.slow(beyond=3)
def test_scores_do_not_hang_on_the_other_C(case: Case, room: None) -> None:
    """In any memory; the exact ones, some of which are of folds without free coefficients."""
    exact = {C: exact_score(case, C) for C in case.values}
    assert max(without for _, without in exact.values()) > 0
    together = {cell.C: cell.mean for cell in case.cross_validate(case.values).summary}
    alone = {C: case.cross_validate([C]).summary[0].mean for C in case.values}
    for C, (score, _) in exact.items():
        assert together[C] == pytest.approx(score, abs=1e-12)
        assert alone[C] == pytest.approx(score, abs=1e-12)


def test_models_decide_as_rational_arithmetic_does(case: Case) -> None:
    """The estimator, and the refit after a grid, on folds without free coefficients."""
    C, found = case.values[1], 0
    for train, _ in case.splits():
        exact = judged(case, train, C)[1]
        if exact is None:
            continue
        expected = exact_decisions(case, train, exact)
        X, y, weights = case.X[train], case.y[train], case.weights[train]
        own = dhsk.HeatSVC(kernel=case.kernel, C=C).fit(X, y, sample_weight=weights)
        part = replace(case, X=X, y=y, weights=weights)
        refitted = part.cross_validate([C], refit=True).best_estimator_
        for model in (own, refitted):
            decisions = model.decision_function(case.X)
            np.testing.assert_allclose(decisions, expected, rtol=0, atol=ROUNDING * (1 + C))
        found += 1
    assert found > 0
