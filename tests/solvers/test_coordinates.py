"""Problems of linear kernels by coordinates: whole matrices, LIBSVM, and killed calls."""

from collections.abc import Sequence
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
from dhsk.solvers import coordinates
from dhsk.solvers.coordinates import Coordinates
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.pairs import solve_pairs
from dhsk.solvers.problems import MultiClass, Pair, make_pairs
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import PairTask, Solved, Unsolved
from tests.optimum import assert_optimal

TOL = 1e-4

ROUNDING = 1e-11
"""Sums of some thousand changes in float64, relative to the sum of the coefficients."""

PLENTY = 1 << 30


class Counting(Threads):
    """Counts tasks of coordinates, those not finished, and those given up; may end as if killed."""

    def __init__(self, most: int = 1 << 30) -> None:
        super().__init__(1)
        self.tasks = self.unfinished = self.tired = 0
        self._most = most

    def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:
        """Run tasks."""
        for found in super().run(function, tasks, ordered=ordered):
            ours = function.__name__ == "_by_coordinates"
            unsolved = [one for one in found if isinstance(one, Unsolved)] if ours else []
            self.tasks += ours
            self.unfinished += len(unsolved)
            self.tired += sum(one.is_tired for one in unsolved)
            if self.tasks > self._most:
                raise KeyboardInterrupt
            yield found


@pytest.fixture(autouse=True)
def small_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of few samples are solved like those of many, each by a task."""
    monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 4)
    monkeypatch.setattr("dhsk.solvers.task_groups.GROUP_SECONDS", 0.0)


def words(seed: int, n: int = 300, dim: int = 40, classes: int = 3) -> tuple[Any, Any]:
    """Rows of few ones, and classes in any order that some of these tell apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    chance = np.full((n, dim), 0.08)
    chance[np.arange(n), y] = 0.5
    X = (rng.random((n, dim)) < chance) * 1.0
    X[:, -1] = 1.0
    return X / np.sqrt((X * X).sum(axis=1))[:, None], y


def folds_of(n: int) -> Any:
    """Weights of two folds."""
    return np.array([(np.arange(n) % 2 != k) * 1.0 for k in range(2)])


def solve(
    rows: Any,
    pairs: Sequence[Pair],
    kernel: Kernel | None = None,
    executor: Counting | None = None,
    watch: RoundWatch | None = None,
) -> dict[int, list[Any]]:
    """Fits of all pairs."""
    source = RowsSource(rows, kernel or dhsk.LinearKernel())
    tasks = [PairTask(k, source, pair) for k, pair in enumerate(pairs)]
    found: list[Solved] = list(solve_pairs(tasks, TOL, PLENTY, executor or Counting(), watch=watch))
    return {k: fits for k, fits, _ in found}


def assert_solved(K: Any, pairs: Sequence[Pair], found: dict[int, list[Any]]) -> None:
    """Optimal, as on the whole matrix."""
    tasks = [PairTask(k, ArraySource(K), pair) for k, pair in enumerate(pairs)]
    for k, expected, _ in solve_pairs(tasks, TOL, PLENTY, Threads(1)):
        assert_optimal(K, pairs[k], found[k], expected, TOL, ROUNDING)


@pytest.mark.parametrize("way", ["ovo", "ovr"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [[0.01], [1.0], [0.3, 3.0]])
def test_solutions_are_those_of_the_whole_matrix(
    C: list[float], sparse: bool, way: MultiClass
) -> None:
    """Of all folds and C, dense and sparse, in both ways; no task is given up."""
    X, y = words(0)
    pairs, counted = make_pairs(y, folds_of(len(y)), C, way), Counting()
    found = solve(csr_array(X) if sparse else X, pairs, executor=counted)
    assert_solved(X @ X.T, pairs, found)
    assert counted.tasks == len(pairs)
    assert counted.unfinished == 0


def test_rows_in_float32_and_cosines_are_rows_too() -> None:
    """The cosine kernel takes unit rows; a matrix of float32 rows has their rounding."""
    X, y = words(1)
    pairs = make_pairs(y, folds_of(len(y)), [1.0])
    assert_solved(X @ X.T, pairs, solve(csr_array(X), pairs, dhsk.CosineKernel()))
    single = X.astype(np.float32)
    wide = single.astype(np.float64)
    for k, fits in solve(single, pairs).items():
        own = wide[pairs[k].members]
        for c, fit in enumerate(fits):
            b = np.zeros(len(own))
            b[fit.support] = fit.coef
            f = pairs[k].dual.sign - own @ (own.T @ b)
            lower, upper = pairs[k].dual.bounds(c)
            eps = float(np.finfo(np.float32).eps) * np.abs(b).sum()
            assert f[b < upper].max() - f[b > lower].min() <= TOL + eps


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(6, 60),
    log_C=st.floats(-3, 0.5),
    scale=st.sampled_from([0.01, 0.3, 1.0]),
)
def test_any_problem(seed: int, n: int, log_C: float, scale: float) -> None:
    """Weights that leave out samples, equal samples, rows of zeros, few or many of a class."""
    rng = np.random.default_rng(seed)
    X = scale * rng.integers(-2, 3, (n, 3)).astype(float)
    y = (rng.random(n) < rng.random()).astype(int)
    y[:2] = 0, 1
    weights = rng.choice([0.0, 0.5, 1.0], (2, n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 4)
        pairs = make_pairs(y, weights, [10.0**log_C, 3 * 10.0**log_C])
        assert_solved(X @ X.T, pairs, solve(X, pairs))


def test_what_takes_many_steps_goes_on_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From where it is, and each pair for itself; rounds are told of."""
    monkeypatch.setattr(coordinates, "STEPS", 2)
    X, y = words(2)
    pairs, counted, seen = make_pairs(y, folds_of(len(y)), [30.0]), Counting(), list[Round]()
    found = solve(X, pairs, executor=counted, watch=RoundWatch(seen.append))
    assert counted.tired == len(pairs)
    assert seen
    assert_solved(X @ X.T, pairs, found)


def test_several_tasks_end_at_the_solution_with_the_bits_of_a_killed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task is short; the next one begins where it ended, also in another call."""
    monkeypatch.setattr(coordinates, "ENTRIES_OF_TASK", 1)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    monkeypatch.setattr("dhsk.solvers.whole.FINE_SAMPLES", 4)
    X, y = words(3)
    pairs, alone = make_pairs(y, folds_of(len(y)), [1.0, 10.0]), Counting()
    whole = solve(csr_array(X), pairs, executor=alone)
    assert alone.unfinished > 3 * len(pairs)
    assert_solved(X @ X.T, pairs, whole)
    watch = RoundWatch(checkpoint=Checkpoint(tmp_path), name="a")
    with pytest.raises(KeyboardInterrupt):
        solve(csr_array(X), pairs, executor=Counting(alone.tasks // 2), watch=watch)
    again = Counting()
    found = solve(csr_array(X), pairs, executor=again, watch=watch)
    assert again.tasks < alone.tasks
    for k in whole:
        for one, other in zip(whole[k], found[k], strict=True):
            assert one.intercept == other.intercept
            np.testing.assert_array_equal(one.coef, other.coef)
    assert not list(tmp_path.iterdir())


def test_no_entry_of_the_matrix_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither blocks nor columns."""

    def refuse(*_: Any) -> None:
        raise AssertionError("an entry was computed")

    for name in ("block", "combine", "product", "panels"):
        monkeypatch.setattr(RowsSource, name, refuse)
    X, y = words(4)
    assert len(solve(csr_array(X), make_pairs(y, folds_of(len(y)), [1.0]))) == 3


def test_few_sparse_problems_are_solved_on_blocks() -> None:
    """All cores work on one; dense ones, and more of them, have steps by coordinates."""
    X, y = words(9, classes=2)
    tasks = []
    for rows, folds in ((csr_array(X), 1), (X, 1), (csr_array(X), 2)):
        counted = Counting()
        pairs = make_pairs(y, folds_of(len(y))[:folds], [0.5, 1.0])
        assert_solved(X @ X.T, pairs, solve(rows, pairs, executor=counted))
        tasks.append(counted.tasks)
    assert tasks == [0, 1, 1]


def test_a_task_counts_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends soon after its share, solved or not, and says whether to go on."""
    monkeypatch.setattr(coordinates, "ENTRIES_OF_TASK", 4000)
    X, y = words(5)
    (pair,) = make_pairs(y % 2, np.ones((1, len(y))), [10.0])
    solver = Coordinates(X[pair.members], pair.dual, TOL)
    assert not solver.solve()
    assert not solver.is_tired
    first = solver.begun.work[0, 0]
    assert 0 < first <= 2 * len(y)
    assert abs(solver.begun.b.sum()) < ROUNDING
    more = Coordinates(X[pair.members], pair.dual, TOL, solver.begun)
    more.solve()
    assert more.begun.work[0, 0] > first


@pytest.mark.parametrize("sparse", [False, True])
def test_estimators_agree_with_libsvm(sparse: bool) -> None:
    """Through the door, with samples of both classes in any order."""
    X, y = words(6, n=2500, classes=2)
    given_X: Any = csr_array(X) if sparse else X
    model = dhsk.SVC(kernel="linear", tol=TOL).fit(given_X, y)
    peer = SVC(kernel="linear", tol=TOL).fit(X, y)
    assert model.kkt_violation_ <= TOL
    near = 2e-2  # how far decisions move with objectives that differ by TOL a coefficient
    np.testing.assert_allclose(
        model.decision_function(given_X), peer.decision_function(X), atol=near
    )


def test_what_steps_cannot_solve_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intercepts that are not found need no second task that would not find them either."""
    monkeypatch.setattr(coordinates, "SOLUTIONS", 1)
    monkeypatch.setattr(coordinates, "SHARE", 30.0)
    X, y = words(7)
    pairs, counted = make_pairs(y, folds_of(len(y)), [1.0]), Counting()
    assert_solved(X @ X.T, pairs, solve(X, pairs, executor=counted))
    assert counted.tasks == counted.tired == len(pairs)


def test_float32_rows_are_not_copied_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of all are of some rows at a time, with the values of all at once."""
    monkeypatch.setattr(coordinates, "ROWS", 64)
    X, y = words(8)
    single = X.astype(np.float32)
    b = np.where(y > 0, 0.5, -0.25)
    normal = coordinates._normal_vector(single, b)
    np.testing.assert_allclose(normal, single.astype(float).T @ b, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(
        coordinates._products(single, normal), single.astype(float) @ normal, rtol=1e-13
    )
