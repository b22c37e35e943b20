"""Steps on blocks against whole matrices and LIBSVM, with the bits of a killed call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.svm import SVC

import dhsk
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.kernels import Kernel
from dhsk.models.sources import RowsSource
from dhsk.solvers import block_steps
from dhsk.solvers.block_steps import BlockSteps, solve_pair
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import PairTask, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.sources import ArraySource, Source

TOL = 1e-5

ROUNDING = 1e-12
"""Sums of some thousand changes in float64, relative to the sum of the coefficients."""

PLENTY = 1 << 30


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of few samples."""
    monkeypatch.setattr(block_steps, "BLOCK", 64)


def overlapping(seed: int, n: int, dim: int = 3, classes: int = 2) -> tuple[Any, Any]:
    """Samples of classes that overlap, so that a third or more are support vectors."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, dim)) + 0.5 * y[:, None], y


def solve(source: Source, pair: Pair, watch: RoundWatch | None = None) -> list[Fit]:
    """Fits of all columns."""
    quick = source.approximate(PLENTY)
    assert quick is not None
    return solve_pair(BlockSteps(source, quick, TOL, PLENTY), pair, None, watch or RoundWatch())


def assert_solved(K: Any, pair: Pair, found: list[Fit]) -> None:
    """Feasible, with the violation it says, and the objective of the whole matrix."""
    task = PairTask(0, ArraySource(K), pair)
    ((_, expected, _),) = solve_pairs([task], TOL, PLENTY, Threads(1))
    square = K[np.ix_(pair.members, pair.members)]
    for column, (fit, best) in enumerate(zip(found, expected, strict=True)):
        b = np.zeros(len(pair.members))
        b[fit.support] = fit.coef
        lower, upper = pair.dual.bounds(column)
        size = np.abs(b).sum()
        assert ((lower <= b) & (b <= upper)).all()
        assert abs(b.sum()) <= ROUNDING * size
        f = pair.dual.sign - square @ b
        highest, lowest = f[b < upper].max(initial=-np.inf), f[b > lower].min(initial=np.inf)
        violation = 0.0 if pair.dual.trivial(column) else max(0.0, highest - lowest)
        assert fit.violation == pytest.approx(violation, abs=ROUNDING * (1 + size))
        assert fit.converged
        cost = TOL * max(size, np.abs(best.coef).sum())
        assert fit.objective == pytest.approx(best.objective, abs=cost + ROUNDING)


@pytest.mark.parametrize("C", [[0.01], [1.0], [300.0], [0.1, 10.0]])
def test_solutions_are_those_of_the_whole_matrix(C: list[float]) -> None:
    """Of all folds and C."""
    X, y = overlapping(0, 500)
    kernel = dhsk.GaussianKernel(1.5)
    fold = np.random.default_rng(1).integers(0, 2, len(y))
    weights = np.array([(fold != k) * 1.0 for k in range(2)])
    (pair,) = make_pairs(y, weights, C)
    assert_solved(kernel(X), pair, solve(RowsSource(X, kernel), pair))


KERNELS: list[tuple[Kernel, bool]] = [
    (dhsk.LinearKernel(), False),
    (dhsk.LinearKernel(), True),
    (dhsk.PolynomialKernel(2, 1.0), False),
    (dhsk.GaussianKernel(4.0), True),
    (dhsk.CosineKernel(), True),
    (dhsk.HeatKernel.at_scale(30, 0.7), True),
]


@pytest.mark.parametrize(("kernel", "sparse"), KERNELS, ids=repr)
def test_every_kind_of_kernel_and_rows(kernel: Kernel, sparse: bool) -> None:
    """Whole numbers with equal rows, sparse and dense, on the sphere for those of it."""
    rng = np.random.default_rng(2)
    X: Any = (rng.random((400, 30)) < 0.2) * rng.integers(1, 3, (400, 30)).astype(np.float64)
    X[:, 0] += 1.0
    X[200:250] = X[:50]
    y = (X[:, 1] + X[:, 2] + rng.normal(size=400) > 1).astype(int)
    if kernel.spherical:
        X /= np.sqrt((X * X).sum(axis=1))[:, None]
    K = kernel(X)
    source = RowsSource(csr_array(X) if sparse else X, kernel)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [0.3])
    assert_solved(K, pair, solve(source, pair))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 200), log_C=st.floats(-3, 3))
def test_any_problem(seed: int, n: int, log_C: float) -> None:
    """Weights that leave out samples, equal samples, few or many of a class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float)
    y = (rng.random(n) < rng.random()).astype(int)
    y[:2] = 0, 1
    weights = rng.choice([0.0, 0.5, 1.0], (2, n))
    kernel = dhsk.GaussianKernel(1.0)
    (pair,) = make_pairs(y, weights, [10**log_C])
    assert_solved(kernel(X), pair, solve(RowsSource(X, kernel), pair))


def test_rounding_ends_it() -> None:
    """What no steps reach is given up, as close as rounding lets it, and says so."""
    X, y = overlapping(3, 300)
    kernel = dhsk.GaussianKernel(1.5)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1000.0])
    source = RowsSource(X, kernel)
    quick = source.approximate(PLENTY)
    assert quick is not None
    (fit,) = solve_pair(BlockSteps(source, quick, 1e-300, PLENTY), pair, None, RoundWatch())
    assert not fit.converged
    assert fit.violation <= 1e-15 * (4 + 4 * np.abs(fit.coef).sum())


class _KilledError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("rounds", [1, 3, 8, -2])
def test_a_killed_call_goes_on(
    rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the same bits, from the step that it was in, with all columns."""
    X, y = overlapping(4, 600)
    kernel = dhsk.GaussianKernel(1.0)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0, 100.0])
    source, seen = RowsSource(X, kernel), list[Round]()
    expected = solve(source, pair, RoundWatch(seen.append))
    told = 0

    def kill(one: Round) -> None:
        nonlocal told
        told += 1
        if told == range(len(seen) + 1)[rounds]:
            raise _KilledError

    def watch(on_round: Any) -> RoundWatch:
        return RoundWatch(on_round, Checkpoint(tmp_path), "one")

    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    with pytest.raises(_KilledError):
        solve(source, pair, watch(kill))
    resumed: list[Round] = []
    found = solve(source, pair, watch(resumed.append))
    assert resumed == seen[range(len(seen) + 1)[rounds] - 1 :]
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a.support, b.support)
        np.testing.assert_array_equal(a.coef, b.coef)
        same: Any = {"support": 0, "coef": 0, "seconds": 0}
        assert replace(a, **same) == replace(b, **same)


@pytest.mark.parametrize("kernel", [dhsk.GaussianKernel(2.0), dhsk.LinearKernel()], ids=str)
def test_estimators_agree_with_libsvm(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the door: three classes, most samples support vectors, the same decisions."""
    monkeypatch.setattr(block_steps, "BLOCK", 512)
    X, y = overlapping(5, 4500, 5, 3)
    model = dhsk.HeatSVC(1.0, kernel=kernel, sphere_map="identity", tol=TOL).fit(X, y)
    peer = SVC(C=1.0, kernel=kernel, tol=TOL).fit(X, y)
    assert model.kkt_violation_ <= TOL
    near = 2e-2  # how far decisions move with objectives that differ by TOL a coefficient
    np.testing.assert_allclose(
        model.decision_function(X[:500]), peer.decision_function(X[:500]), atol=near
    )


def test_violations_that_rise_while_samples_join_do_not_end_it() -> None:
    """With many times more support vectors than a block has, gradients are computed anew once."""
    X, y = overlapping(6, 6000)
    kernel = dhsk.GaussianKernel(1.5)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0])
    seen: list[Round] = []
    (fit,) = solve(RowsSource(X, kernel), pair, RoundWatch(seen.append))
    assert len(fit.support) > 20 * 64
    assert fit.converged
    lowest = np.minimum.accumulate([one.violation for one in seen])
    assert np.flatnonzero(np.diff(lowest)).size < len(seen) - 20
    assert seen[-1].entries < 5 * seen[-1].needed
