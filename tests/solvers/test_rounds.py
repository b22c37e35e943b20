"""Problems in parts: the same solutions, in the memory that is there, in shared passes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.solvers.decomposition import RoundWatch
from dhsk.solvers.dual import Fit
from dhsk.solvers.pairs import largest_block, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.rounds import _FreeSetCG, solve_in_rounds
from dhsk.solvers.sources import COLUMNS, ArraySource, products
from dhsk.solvers.whole import PairTask

TOL = 1e-5

PLENTY = 10**9

EPS = float(np.finfo(float).eps)

ROUNDING = 1e-12
"""Sums of some thousand changes in float64, relative to the sum of the coefficients."""


class KilledError(Exception):
    """Stands for the end of a process."""


class CountingSource(ArraySource):
    """Remembers what it was asked for."""

    def __init__(self, K: Any) -> None:
        super().__init__(K)
        self.blocks: list[int] = []
        self.products: list[int] = []

    def block(self, members: Any) -> Any:
        """Entries between some samples."""
        self.blocks.append(len(members))
        return super().block(members)

    def product(self, V: Any) -> Any:
        """Product with V."""
        self.products.append(V.shape[1])
        return super().product(V)


def overlapping(seed: int, n: int = 400, classes: int = 2, flipped: float = 0.15) -> Any:
    """Gaussian kernel and noisy labels: many coefficients, at bounds and within."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.argmax(X[:, :classes], axis=1) if classes > 2 else (X[:, 0] > 0).astype(int)
    y = np.where(rng.random(n) < flipped, rng.integers(0, classes, n), y)
    y[:classes] = np.arange(classes)
    return np.exp(-((X[:, None] - X) ** 2).sum(-1) / 4), y


def folds_of(seed: int, n: int, count: int = 5) -> Any:
    """Weights of some folds."""
    fold = np.random.default_rng(seed).integers(0, count, n)
    return np.array([(fold != k) * 1.0 for k in range(count)])


def fits_of(source: Any, pairs: list[Pair], tol: float, room: int, threads: int = 1) -> Any:
    """Fits of each pair by its number."""
    tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
    return {k: fits for k, fits, _ in solve_pairs(tasks, tol, room, Threads(threads))}


def solve(source: Any, pairs: list[Pair], room: int, tol: float = TOL) -> list[list[Fit]]:
    """Fits of all pairs, in their order."""
    source = ArraySource(source) if isinstance(source, np.ndarray) else source
    found = fits_of(source, pairs, tol, room, 1)
    return [found[k] for k in range(len(pairs))]


def assert_feasible(pair: Pair, column: int, fit: Fit) -> None:
    """Within the box, and the sum is 0."""
    alpha = pair.dual.sign[fit.support] * fit.coef
    assert (alpha > 0).all()
    assert (alpha <= pair.dual.boxes[column, fit.support]).all()
    assert abs(fit.coef.sum()) <= ROUNDING * np.abs(fit.coef).sum()


def assert_same(pairs: list[Pair], parts: Any, whole: Any, tol: float = TOL) -> None:
    """Feasible, certified, with the same objective but for the tolerance."""
    for pair, found, expected in zip(pairs, parts, whole, strict=True):
        for column, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_feasible(pair, column, a)
            assert a.converged
            assert a.violation <= tol
            # A violation of tol costs at most tol for each unit of coefficients.
            cost = tol * max(np.abs(a.coef).sum(), np.abs(b.coef).sum())
            assert a.objective == pytest.approx(b.objective, abs=cost + ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "edge"), [(5, 64), (6, 64), (6, 128)])
def test_parts_give_the_solutions_of_the_whole(seed: int, edge: int) -> None:
    """Of all folds and C, also where the coefficients of a column lie outside of a part.

    With 25 columns and 64 samples a part, some columns have none of their coefficients in it: they
    must not start from their neighbour then, or the sum is lost.
    """
    K, y = overlapping(seed, n=500)
    pairs = make_pairs(y, folds_of(seed, 500), [0.01, 0.1, 1.0, 10.0, 100.0])
    assert_same(pairs, solve(K, pairs, edge**2 * 8), solve(K, pairs, PLENTY))


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 40),
    log_C=st.floats(-2, 2),
    rank=st.integers(1, 4),
)
def test_parts_of_two(seed: int, n: int, log_C: float, rank: int) -> None:
    """The smallest parts there are still lead to the optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank))
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    K = X @ X.T + 0.1 * np.eye(n)
    pairs = make_pairs(y, rng.choice([0.0, 1.0, 2.0], (2, n)), [10.0**log_C, 20.0**log_C + 10])
    assert largest_block(8, K.dtype) == 2
    assert_same(pairs, solve(K, pairs, 8, 1e-3), solve(K, pairs, PLENTY, 1e-3), 1e-3)


def test_more_columns_than_a_part_has_samples() -> None:
    """Folds that have no samples in common: a part that served them all would serve none."""
    n = 160
    rng = np.random.default_rng(0)
    K, y = np.eye(n) + 0.1, np.repeat([0, 1], n // 2)
    weights = np.zeros((n // 2, n))
    for fold, (a, b) in enumerate(zip(range(n // 2), rng.permutation(n // 2), strict=True)):
        weights[fold, [a, n // 2 + b]] = 1.0
    pairs = make_pairs(y, weights, [10.0])
    (fits,) = solve(K, pairs, 64**2 * 8, 1e-9)
    assert all(fit.converged for fit in fits)
    # Of two samples at a squared distance of 2 both alphas are 1.
    np.testing.assert_allclose([fit.coef for fit in fits], [[1.0, -1.0]] * len(fits), rtol=1e-12)


def test_parts_of_one_class_move() -> None:
    """Of a rare class no sample need be among the worst: the others go on among themselves."""
    K, _ = overlapping(11)
    y = np.zeros(400, dtype=int)
    y[7] = 1
    pairs = make_pairs(y, np.ones((1, 400)), [1e6])
    K = K + 1e-3 * np.eye(400)
    assert_same(pairs, solve(K, pairs, 64**2 * 8), solve(K, pairs, PLENTY))
    assert_same(pairs, solve(K, pairs, 8, 1e-2), solve(K, pairs, PLENTY, 1e-2), 1e-2)


def test_memory_of_parts_is_kept() -> None:
    """No part is larger than the room, and a pair that fits is asked for once."""
    K, y = overlapping(1, classes=3)
    y[:40] = 2
    y[40:] = np.where(y[40:] == 2, 0, y[40:])
    source = CountingSource(K)
    pairs = make_pairs(y, folds_of(1, len(y)), [1.0, 10.0])
    room = 256**2 * 8
    sizes = [len(pair.members) for pair in pairs]
    small = [size for size in sizes if size <= 256]
    assert 1 <= len(small) < len(sizes)
    solve(source, pairs, room)
    assert max(source.blocks) == largest_block(room, K.dtype) == 256
    assert source.blocks[: len(small)] == small


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [None, 16])
def test_all_columns_share_every_pass(monkeypatch: pytest.MonkeyPatch, at_once: int | None) -> None:
    """A pass multiplies the vectors of all pairs, folds and C that are left, or so many as fit."""
    K, y = overlapping(2, classes=3)
    pairs = make_pairs(y, folds_of(2, len(y), 2), [0.1, 1.0, 10.0])
    columns = sum(len(pair.dual.boxes) for pair in pairs)
    room = 64**2 * 8
    expected = solve(K, pairs, room)
    source = CountingSource(K)
    if at_once is not None:
        monkeypatch.setattr("dhsk.solvers.sources.PRODUCT_BYTES", (at_once + 1) * 8 * len(K))
    found = solve(source, pairs, room)
    whole = -(-columns // COLUMNS) * COLUMNS
    assert source.products[0] == (at_once or whole) == max(source.products)
    assert sum(source.products[: whole // (at_once or whole)]) == whole
    assert_same(pairs, found, expected)
    if at_once is None:
        passes = len(source.products)
        alone = CountingSource(K)
        solve(alone, pairs[:1], room)
        assert passes < 3 * len(alone.products)  # of three pairs that take about as many each


@pytest.mark.slow
def test_bits_do_not_depend_on_company() -> None:
    """A pair that is solved alone, as after an interruption, is what it is among others."""
    K, y = overlapping(2, classes=3)
    pairs = make_pairs(y, folds_of(2, len(y), 2), [0.1, 1.0, 10.0])
    room = 64**2 * 8
    for pair, together in zip(pairs, solve(K, pairs, room), strict=True):
        for a, b in zip(solve(K, [pair], room)[0], together, strict=True):
            assert replace(a, support=0, coef=0, seconds=0) == replace(
                b, support=0, coef=0, seconds=0
            )
            np.testing.assert_array_equal(a.coef, b.coef)
            np.testing.assert_array_equal(a.support, b.support)


def test_products_do_not_depend_on_company() -> None:
    """One vector alone, with a few, with many: the same to the last bit."""
    rng = np.random.default_rng(0)
    source = ArraySource(rng.normal(size=(400, 400)))
    members = rng.permutation(400)[:300]
    vectors = [(members, values) for values in rng.normal(size=(40, 300))]
    whole = list(products(source, vectors))
    for start, stop in ((0, 1), (17, 18), (3, 8), (5, 39)):
        for a, b in zip(products(source, vectors[start:stop]), whole[start:stop], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("room", [64**2 * 8, PLENTY])
def test_tolerance_below_rounding(room: int) -> None:
    """What no steps reach is given up at once, as close as rounding lets it, and says so."""
    K, y = overlapping(3, flipped=0.3)
    pairs = make_pairs(y, folds_of(3, len(y), 2), [1e-6, 1000.0])
    source, other = CountingSource(K), CountingSource(K)
    (fits,), (known,) = solve(source, pairs, room, 1e-300), solve(other, pairs, room, 1e-9)
    assert not any(fit.converged for fit in fits if fit.violation)
    assert not all(fit.converged for fit in fits)
    for fit, looser in zip(fits, known, strict=True):
        assert fit.violation <= 4 * EPS * (4 + np.abs(fit.coef).sum())
        assert fit.steps < 4 * (looser.steps + len(y))
    assert len(source.products) <= 2 * len(other.products)


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_limit_of_passes(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """What is cut short is feasible, and says what it is."""
    K, y = overlapping(7)
    pairs = make_pairs(y, folds_of(7, len(y)), [1.0, 100.0])
    room = 64**2 * 8
    source = CountingSource(K)
    monkeypatch.setattr("dhsk.solvers.rounds.MAX_PASSES", limit)
    (fits,) = solve(source, pairs, room)
    monkeypatch.undo()
    (whole,) = solve(K, pairs, PLENTY)
    assert len(source.products) <= 2 * (limit + 1) + limit
    assert not all(fit.converged for fit in fits)
    for column, (fit, best) in enumerate(zip(fits, whole, strict=True)):
        assert_feasible(pairs[0], column, fit)
        assert fit.converged == (fit.violation <= TOL)
        assert fit.gap > 0
        # The certificate holds: the optimum is between the objective and the primal.
        assert fit.objective <= best.objective * (1 + ROUNDING) + TOL * np.abs(best.coef).sum()
        b = np.zeros(len(y))
        b[fit.support] = fit.coef
        f = pairs[0].dual.sign - K[np.ix_(pairs[0].members, pairs[0].members)] @ b
        lower, upper = pairs[0].dual.bounds(column)
        violation = f[b < upper].max() - f[b > lower].min()
        assert fit.violation == pytest.approx(violation, abs=ROUNDING * np.abs(b).sum())


@pytest.mark.slow
def test_conjugate_gradients_save_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more coefficients lie within their bounds than fit, parts alone creep."""
    K, y = overlapping(8, flipped=0.4)
    K = K + 0.1 * np.eye(len(K))
    C = 1000.0
    pairs = make_pairs(y, np.ones((1, len(y))), [C])
    whole = solve(K, pairs, PLENTY)
    free = (np.abs(whole[0][0].coef) < C).sum()
    assert free > 2 * 64
    passes = {}
    for patience in (3, 0):
        monkeypatch.setattr("dhsk.solvers.rounds.PATIENCE", patience)
        source = CountingSource(K)
        assert_same(pairs, solve(source, pairs, 64**2 * 8), whole)
        passes[patience] = len(source.products)
    assert passes[3] < 0.7 * passes[0]


@pytest.mark.parametrize("seed", range(3))
def test_indefinite_matrices_end(seed: int) -> None:
    """Feasible, and honest about what was reached."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(200, 200))
    pairs = make_pairs(np.arange(200) % 2, np.ones((1, 200)), [0.1, 1.0])
    (fits,) = solve(A + A.T, pairs, 64**2 * 8, 1e-3)
    for column, fit in enumerate(fits):
        assert_feasible(pairs[0], column, fit)
        assert fit.converged
        assert fit.violation <= 1e-3


def test_columns_without_a_class() -> None:
    """They are trivial in parts as well, and do not hold up the others."""
    K, y = overlapping(9)
    weights = np.ones((3, len(y)))
    weights[0, y == 0] = 0
    weights[2] = 0
    pairs = make_pairs(y, weights, [1.0])
    (fits,) = solve(K, pairs, 64**2 * 8)
    assert [len(fit.support) > 0 for fit in fits] == [False, True, False]
    assert all(fit.converged for fit in fits)
    only = [Pair(0, 1, pairs[0].members, make_pairs(y, weights[:1], [1.0])[0].dual)]
    assert len(solve(K, only, 64**2 * 8)[0][0].support) == 0


def test_duplicates_with_opposite_labels() -> None:
    """Every sample twice, as either class: all bounds are reached, and nothing is decided."""
    K, _ = overlapping(10, n=150)
    K = np.tile(K, (2, 2))
    y = np.repeat([0, 1], 150)
    pairs = make_pairs(y, np.ones((1, 300)), [1.0])
    (found,) = solve(K, pairs, 64**2 * 8)
    assert found[0].converged
    assert found[0].objective == pytest.approx(300.0, rel=TOL)
    assert found[0].norm2 <= TOL * 300


def test_problem_that_does_not_move_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below what float64 can resolve nothing is gained by more passes."""
    K, y = overlapping(12)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    monkeypatch.setattr("dhsk.solvers.dual.ascend", lambda *_: (1, 1.0))
    source = CountingSource(K)
    ((fit,),) = solve(source, pairs, 64**2 * 8)
    assert not fit.converged
    assert len(source.products) == 1


def test_pair_that_does_not_move_ends_alone() -> None:
    """It is not served again while others go on."""
    K, y = overlapping(2, classes=3)
    pairs = make_pairs(y, np.ones((1, len(y))), [1.0])
    served: list[int] = []

    class Stuck(Threads):
        def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:  # noqa: ARG002
            for task in tasks:
                served.append(task[0].number)
                found = function(*task)
                yield found if found.number else replace(found, b=task[0].b)

    source = ArraySource(K)
    found = dict(solve_in_rounds(source, dict(enumerate(pairs)), TOL, 64, Stuck(1)))
    assert [found[k][0].converged for k in range(3)] == [False, True, True]
    assert served.count(0) == 1 < served.count(1)


def test_gradients_that_drifted_in_conjugate_gradients_do_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where they say that all is solved nothing moves in a part, but new ones tell the truth."""
    move, lies = _FreeSetCG.move, [True]

    def lying(line: Any, product: Any) -> None:
        move(line, product)
        if lies:
            line._f[:] = 0.0
            lies.pop()

    K, y = overlapping(8, flipped=0.4)
    pairs = make_pairs(y, np.ones((1, len(y))), [1000.0])
    K = K + 0.1 * np.eye(len(K))
    monkeypatch.setattr(_FreeSetCG, "move", lying)
    assert_same(pairs, solve(K, pairs, 64**2 * 8), solve(K, pairs, PLENTY))
    assert not lies


@pytest.mark.slow
def test_a_killed_run_goes_on_from_every_part_of_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a subproblem of two, and between two conjugate gradients: no part is done again."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    K, y = overlapping(8, n=300, classes=3, flipped=0.4)
    pairs = dict(enumerate(make_pairs(y, np.ones((1, len(y))), [10.0, 200.0])))
    K = K + 0.1 * np.eye(len(K))

    def solved(folder: Path, alive: int = PLENTY) -> tuple[dict[int, list[Fit]], int, int]:
        """Fits, and the numbers of entries and of products."""
        source, written = CountingSource(K), 0

        class Dying(Checkpoint):
            def put(self, *args: Any) -> None:
                nonlocal written
                super().put(*args)
                written += 1
                if written == alive:
                    raise KilledError

        watch = RoundWatch(checkpoint=Dying(folder), name="one")
        try:
            fits = dict(solve_in_rounds(source, pairs, TOL, 128, Threads(1), watch))
        except KilledError:
            fits = {}
        return fits, written, len(source.products)

    expected, entries, passes = solved(tmp_path / "whole")
    assert entries > passes > 12  # the subproblems and every product
    for alive in (1, 2, 3, 5, 8, entries // 2, entries - 1):
        folder = tmp_path / str(alive)
        _, _, before = solved(folder, alive)
        found, after, rest = solved(folder)
        assert after == entries - alive
        assert before + rest <= passes
        for k, fits in expected.items():
            for a, b in zip(fits, found[k], strict=True):
                np.testing.assert_array_equal(a.support, b.support)
                np.testing.assert_array_equal(a.coef, b.coef)
                assert (a.violation, a.steps) == (b.violation, b.steps)
