"""The whole engine against LIBSVM: same predictions, an objective at least as good, a certificate.

Each problem is solved on its whole matrix, in a tenth of its bytes, in parts of 64 samples, and on
working sets.
"""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import dhsk
from dhsk.execution.threads import Threads
from dhsk.solvers.decomposition import Decomposition
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import largest_block, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.smo import ascend, padded
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.votes import vote
from dhsk.solvers.whole import PairTask

VALUES_OF_C = (0.01, 1.0, 100.0, 1e4)

TOL = 1e-5

SAME = 1e-6
"""Relative difference of objectives."""

EPS = float(np.finfo(np.float64).eps)

NEAR = 1e-3
"""Decisions below it may differ in sign: LIBSVM rounds the rows of the matrix to 6e-8 of them, and
the coefficients of a pair add up to some ten thousands here."""

FEW = 2
"""Samples of a problem that may be predicted otherwise for this, over all C."""

ROUNDING = 1e-13
"""Sums of some hundred products in float64, relative to the sum of their sizes."""


@dataclass(frozen=True)
class Problem:
    """A matrix, its labels, and the samples to train on."""

    K: Any
    y: Any
    train: Any


def digits() -> Problem:
    """The first 500 digits, ten classes."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    K = dhsk.HeatKernel.at_scale(64, 0.5)(dhsk.hyperspherical_map(X))
    return Problem(K, y, np.arange(500) % 5 > 0)


def counts() -> Problem:
    """Word counts of four classes, as those of web pages: few words are common, some tell."""
    rng = np.random.default_rng(4)
    y = rng.choice(4, 320, p=[0.4, 0.3, 0.2, 0.1])
    words = rng.zipf(1.5, 300).clip(max=100) * rng.gamma(0.6, size=(4, 300))
    means = words / words.sum(axis=1, keepdims=True)
    X = rng.poisson(60 * means[y]) + np.eye(320, 300)
    K = dhsk.HeatKernel.at_scale(300, 0.7)(dhsk.hyperspherical_map(X))
    return Problem(K, y, rng.random(320) < 0.75)


def noisy() -> Problem:
    """Three classes, a fifth of the labels at random: most samples end at their bounds."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(330, 4))
    y = np.argmax(X[:, :3], axis=1)
    y = np.where(rng.random(330) < 0.2, rng.integers(0, 3, 330), y)
    K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4)
    return Problem(K, y, rng.random(330) < 0.8)


PROBLEMS = {made.__name__: made for made in (digits, counts, noisy)}


@cache
def problem(name: str, dtype: str) -> Problem:
    """A problem with a matrix of some type, made once."""
    made = PROBLEMS[name]()
    return Problem(made.K.astype(dtype), made.y, made.train)


def factors(made: Problem, weighting: str) -> Any:
    """Factors of C of all samples; 0 for those held out."""
    n = len(made.y)
    if weighting == "by sample":
        rng = np.random.default_rng(0)
        return made.train * rng.uniform(0.2, 2, n) * (rng.random(n) < 0.95)
    return made.train * 1.0


@cache
def libsvm(name: str, dtype: str, weighting: str, C: float) -> tuple[Any, Any, Any]:
    """Predictions for all samples; coefficients of each pair, and their samples."""
    made = problem(name, dtype)
    weights = factors(made, weighting)
    # (Of a precomputed kernel scikit-learn mixes up the columns if some weights are 0.)
    K, train = made.K.astype(np.float64), np.flatnonzero(weights)
    model = SVC(C=C, kernel="precomputed", tol=TOL)
    by_sample = weights[train] if weighting == "by sample" else None
    model.fit(K[np.ix_(train, train)], made.y[train], sample_weight=by_sample)
    support, of = train[model.support_], made.y[train][model.support_]
    pairs = {}
    for a, b in combinations(range(len(model.classes_)), 2):
        coefs = np.zeros(len(K))
        coefs[support[of == a]] = model.dual_coef_[b - 1, of == a]
        coefs[support[of == b]] = model.dual_coef_[a, of == b]
        pairs[a, b] = coefs if len(model.classes_) > 2 else -coefs
    turned = 1 if len(model.classes_) > 2 else -1
    return model.predict(K[:, train]), pairs, turned * model.intercept_


def fits_of(source: Any, pairs: list[Pair], tol: float, room: int, threads: int = 1) -> Any:
    """Fits of each pair by its number."""
    tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
    return {k: fits for k, fits, _ in solve_pairs(tasks, tol, room, Threads(threads))}


def solve(made: Problem, weighting: str, room: str) -> tuple[list[Pair], list[list[Fit]]]:
    """Pairs, and their fits for each C."""
    pairs = make_pairs(made.y, factors(made, weighting)[None], VALUES_OF_C)
    source = ArraySource(made.K)
    if room == "working sets":
        numbered = dict(enumerate(pairs))
        found: Any = Decomposition(TOL, len(made.K)).solve(source, numbered, Threads(1))[0]
    else:
        found = fits_of(source, pairs, TOL, ROOMS[room](made.K), 1)
    return pairs, [found[k] for k in range(len(pairs))]


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Working sets begin with few of the samples of these problems, and grow by few."""
    for name, count in (("FIRST", 32), ("LEAST", 32), ("SPARE", 8), ("JOINING", 16)):
        monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)


ROOMS = {
    "whole": lambda K: K.nbytes,
    "a tenth": lambda K: K.nbytes // 10,
    "parts of 64": lambda K: 64**2 * K.itemsize,
}


@pytest.mark.slow
@pytest.mark.parametrize("room", [*ROOMS, "working sets"])
@pytest.mark.parametrize(
    ("dtype", "weighting"),
    [
        ("float64", "none"),
        ("float64", "by sample"),
        ("float32", "none"),
    ],
)
@pytest.mark.parametrize("name", PROBLEMS)
def test_predictions_and_objectives_are_those_of_libsvm(
    name: str, dtype: str, weighting: str, room: str
) -> None:
    """For every C, pair and sample, of the training part and held out."""
    made = problem(name, dtype)
    K, boxes = made.K.astype(np.float64), factors(made, weighting)
    pairs, fits = solve(made, weighting, room)
    differing = 0
    for column, C in enumerate(VALUES_OF_C):
        predicted, theirs, intercepts = libsvm(name, dtype, weighting, C)
        decisions = np.zeros((len(K), len(pairs)))
        for number, (pair, found) in enumerate(zip(pairs, fits, strict=True)):
            fit, peer = found[column], theirs[pair.first, pair.second]
            b = np.zeros(len(K))
            b[pair.members[fit.support]] = fit.coef
            sign = np.where(made.y == pair.first, 1.0, -1.0)
            box = np.where(np.isin(made.y, (pair.first, pair.second)), C * boxes, 0.0)
            allowed = assert_optimal(K, sign, box, b, fit)
            assert fit.objective >= objective(K, peer) * (1 - SAME)
            assert fit.objective == pytest.approx(objective(K, peer), rel=SAME)
            # Where no coefficient is within its bounds all intercepts between two are optimal, and
            # rounding decides which it is.
            degenerate = allowed[1] - allowed[0] > 2 * TOL
            for intercept in (fit.intercept, intercepts[number]):
                assert allowed[0] - 2 * NEAR <= intercept <= allowed[1] + 2 * NEAR
            intercept = intercepts[number] if degenerate else fit.intercept
            decisions[:, number] = K @ b + intercept
        differ = vote(decisions, made.y.max() + 1) != predicted
        assert (np.abs(decisions[differ]).min(axis=1) < NEAR).all()
        differing += int(differ.sum())
    assert differing <= FEW


def objective(K: Any, b: Any) -> float:
    """Of coefficients in the exact matrix."""
    return float(np.abs(b).sum() - b @ K @ b / 2)


def assert_optimal(K: Any, sign: Any, box: Any, b: Any, fit: Fit) -> tuple[float, float]:
    """Feasible, and by its own gradient within the tolerance; bounds of the optimal intercepts."""
    alpha, size = sign * b, float(np.abs(b).sum())
    assert ((alpha >= 0) & (alpha <= box)).all()
    assert abs(b.sum()) <= ROUNDING * size
    f = sign - K @ b
    grow = np.where(sign > 0, alpha < box, alpha > 0)
    shrink = np.where(sign > 0, alpha > 0, alpha < box)
    violation = f[grow].max() - f[shrink].min()
    assert fit.converged
    assert violation <= TOL + ROUNDING * size
    assert fit.violation == pytest.approx(max(0.0, violation), abs=ROUNDING * size)
    assert fit.objective == pytest.approx(objective(K, b), abs=EPS * len(b) * size * (1 + size))
    rounding = len(b) * EPS * np.abs(b).max()
    grow &= np.where(sign > 0, box - alpha, alpha) > rounding
    shrink &= np.where(sign > 0, alpha, box - alpha) > rounding
    return float(f[grow].max()), float(f[shrink].min())


@pytest.mark.parametrize("room", list(ROOMS)[1:])
def test_parts_are_used(room: str) -> None:
    """The rooms of these tests do not hold the pairs of the problems of few classes."""
    for name in ("counts", "noisy"):
        made = problem(name, "float64")
        pairs = make_pairs(made.y, factors(made, "none")[None], VALUES_OF_C)
        largest = largest_block(ROOMS[room](made.K), made.K.dtype)
        assert max(len(pair.members) for pair in pairs) > largest


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("room", [0, 1, 10_000, 40_000, 1_000_000, 10**9])
def test_largest_block_fits_the_room(room: int, dtype: Any) -> None:
    """With its padding; and 64 samples more would not."""
    kind = np.dtype(dtype)
    n = largest_block(room, kind)
    assert n == 2 or n * padded(n) * kind.itemsize <= room
    assert (n + 64) ** 2 * kind.itemsize > room


def test_pairs_in_the_order_of_libsvm() -> None:
    """First class first, members by class, columns fold by fold and C by C."""
    codes = np.array([2, 0, 1, 0, 2])
    weights = np.array([[1.0, 0.0, 2.0, 3.0, 1.0], [0.5, 1.0, 1.0, 1.0, 1.0]])
    pairs = make_pairs(codes, weights, [1.0, 10.0])
    assert [(pair.first, pair.second) for pair in pairs] == [(0, 1), (0, 2), (1, 2)]
    assert [pair.members.tolist() for pair in pairs] == [[1, 3, 2], [1, 3, 0, 4], [2, 0, 4]]
    assert pairs[0].dual.sign.tolist() == [1, 1, -1]
    assert pairs[0].dual.boxes.tolist() == [[0, 3, 2], [0, 30, 20], [1, 1, 1], [10, 10, 10]]
    assert pairs[0].dual.chain == 2


def test_fits_do_not_depend_on_the_runner() -> None:
    """Two threads give what one gives, pair by pair, bit by bit."""
    made = problem("counts", "float64")
    pairs = make_pairs(made.y, factors(made, "none")[None], VALUES_OF_C)
    for room in (made.K.nbytes, made.K.nbytes // 10):
        one, two = (fits_of(ArraySource(made.K), pairs, 1e-3, room, threads) for threads in (1, 2))
        for k in range(len(pairs)):
            for a, b in zip(one[k], two[k], strict=True):
                assert (a.objective, a.intercept, a.steps) == (b.objective, b.intercept, b.steps)
                np.testing.assert_array_equal(a.coef, b.coef)


def test_polishing_ends_the_drift_of_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that lost its gradient is set right by a new one, or says that it did not end."""

    def drifting(K: Any, bounds: Any, b: Any, f: Any, *limits: Any) -> Any:
        f += 1e-2 * np.sin(np.arange(len(f))) * bool(drifts.pop() if drifts else 0)
        return ascend(K, bounds, b, f, *limits)

    made = problem("noisy", "float64")
    pair = make_pairs(made.y, factors(made, "none")[None], [1.0])[0]
    monkeypatch.setattr("dhsk.solvers.dual.ascend", drifting)
    monkeypatch.setattr("dhsk.solvers.small.SMALL_SAMPLES", 0)
    for drift, converged in (([True], True), ([True] * 4, False)):
        drifts = drift
        fit = fits_of(ArraySource(made.K), [pair], TOL, 10**9)[0][0]
        assert fit.converged == converged
        assert (fit.violation <= TOL) == converged
