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
from dhsk.models.exact_checkpoint import progress_of
from dhsk.models.sources import RowsSource
from dhsk.solvers import block_steps
from dhsk.solvers.block_steps import BlockSteps, solve_pair
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import SETS_PART, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.sources import ArraySource, Source
from dhsk.solvers.whole import PairTask
from tests.optimum import assert_optimal

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
    """Optimal, as on the whole matrix."""
    task = PairTask(0, ArraySource(K), pair)
    ((_, expected, _),) = solve_pairs([task], TOL, PLENTY, Threads(1))
    assert_optimal(K, pair, found, expected, TOL, ROUNDING)


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


@pytest.mark.slow(seconds=30)
def test_a_killed_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same bits, from any step that it was in, with all columns."""
    X, y = overlapping(4, 400)
    kernel = dhsk.GaussianKernel(1.0)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0, 100.0])
    source, seen = RowsSource(X, kernel), list[Round]()
    expected = solve(source, pair, RoundWatch(seen.append))
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    same: Any = {"support": 0, "coef": 0, "seconds": 0}
    for last in np.linspace(2, len(seen) - 1, 4, dtype=int).tolist():
        told: list[Round] = []
        watch = RoundWatch(told.append, Checkpoint(tmp_path / str(last)), "one")

        def kill(one: Round, told: list[Round] = told, last: int = last) -> None:
            told.append(one)
            if len(told) == last:
                raise _KilledError

        with pytest.raises(_KilledError):
            solve(source, pair, replace(watch, on_round=kill))
        told.clear()
        found = solve(source, pair, watch)
        assert told == seen[-len(told) :]
        assert last - 1 <= len(seen) - len(told) + 1  # what was kept is not done again
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_array_equal(a.support, b.support)
            np.testing.assert_array_equal(a.coef, b.coef)
            assert replace(a, **same) == replace(b, **same)


def test_what_is_solved_leaves_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the fits are kept, by who asks for them."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
    X, y = overlapping(8, 400)
    monkeypatch.setattr("dhsk.solvers.coordinates.STEPS", 2)
    kernel, kept = dhsk.LinearKernel(), list[str]()
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0])
    watch = RoundWatch(lambda _: kept.extend(map(str, tmp_path.iterdir())), Checkpoint(tmp_path))
    tasks = [PairTask(0, RowsSource(X, kernel), pair)]
    assert len(list(solve_pairs(tasks, TOL, PLENTY, Threads(1), watch=watch))) == 1
    assert kept
    assert not list(tmp_path.iterdir())


def test_estimators_agree_with_libsvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the door: three classes, most samples support vectors, the same decisions."""
    kernel = dhsk.GaussianKernel(2.0)
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


def test_samples_of_equal_gradients_join_by_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nearly diagonal matrix and unequal classes: those without a coefficient are all alike."""
    monkeypatch.setattr(block_steps, "BLOCK", 512)
    X = np.random.default_rng(0).normal(size=(1000, 12))
    source = RowsSource(X, dhsk.GaussianKernel.at_gamma(3.0))
    (pair,) = make_pairs(np.arange(1000) // 985, np.ones((1, 1000)), [1.0])
    seen: list[Round] = []
    (fit,) = solve(source, pair, RoundWatch(seen.append))
    assert fit.converged
    assert len(fit.support) > 900
    assert len(seen) < 50


def test_blocks_are_of_the_memory_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Down to the smallest."""
    monkeypatch.setattr(block_steps, "BLOCK", 512)
    X, y = overlapping(7, 800)
    kernel = dhsk.GaussianKernel(1.5)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [1.0])
    source = RowsSource(X, kernel)
    blocks: list[int] = []
    compute = source.block

    def counted(members: Any) -> Any:
        blocks.append(len(members))
        return compute(members)

    monkeypatch.setattr(source, "block", counted)
    for room, size in ((PLENTY, 512), (128 * 128 * 12, 128), (1, 64)):
        blocks.clear()
        (fit,) = solve_pair(BlockSteps(source, source, TOL, room), pair, None, RoundWatch())
        assert fit.converged
        assert max(blocks) == size


def test_the_share_tells_how_far_it_is() -> None:
    """It rises as samples stop violating, is near the end once gradients are exact, and then 1."""
    X, y = overlapping(3, 3000)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [10.0])
    source = RowsSource(X, dhsk.GaussianKernel(1.0))
    quick = source.approximate(PLENTY)
    assert quick is not None
    shares: list[float] = []
    watch = RoundWatch(lambda one: shares.append(one.share or 0.0))
    solve_pair(BlockSteps(source, quick, 1e-3, 64 * 64 * 8), pair, None, watch)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
    assert sum(0.0 < share < 0.6 for share in shares) > 3
    assert all(share <= 1.0 for share in shares)


def test_rounds_on_sets_are_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what steps on blocks end: they tell of a small share, the last of all."""
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
    X, y = overlapping(5, 3000)
    (pair,) = make_pairs(y, np.ones((1, len(y))), [10.0])
    seen: list[Round] = []
    tasks = [PairTask(0, RowsSource(X, dhsk.GaussianKernel(1.0)), pair)]
    assert list(solve_pairs(tasks, TOL, PLENTY, Threads(1), watch=RoundWatch(seen.append)))
    told = [progress_of(one, len(y)) for one in seen]
    shares = [event.of_all for event, one in zip(told, seen, strict=True) if one.share is None]
    assert shares
    assert max(shares) <= SETS_PART
    assert told[-1].of_all == 1.0


def test_a_pair_is_a_part_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three tells of a third, beside those that were counted when they ended."""
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
    X, _ = overlapping(5, 1500)
    pairs = make_pairs(np.arange(len(X)) % 3, np.ones((1, len(X))), [10.0])
    source, seen = RowsSource(X, dhsk.GaussianKernel(1.0)), list[Round]()
    tasks = [PairTask(number, source, pair) for number, pair in enumerate(pairs)]
    assert list(solve_pairs(tasks, TOL, PLENTY, Threads(1), watch=RoundWatch(seen.append)))
    ends = [one.share for one in seen if one.share is not None and one.ended]
    assert ends == pytest.approx([1 / 3] * 3)
