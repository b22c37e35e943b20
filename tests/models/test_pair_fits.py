"""Fits of pairs of classes on the matrices of several kernels: journal, folds, parts, order."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Lock
from time import sleep
from typing import Any

import numpy as np
import pytest

from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.memory import MemoryNeed, Share
from dhsk.execution.threads import Threads
from dhsk.models.pair_fits import PairSolver
from dhsk.models.pair_tasks import MatrixProblem, PairFits, SharedBlocks
from dhsk.solvers.ball import smallest_ball
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.rounds import improve_part
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import BALL_TOLERANCE, Block, solve_whole
from tests.optimum import solve_block

N = 90
TOL = 1e-6
WHOLE = Share(MemoryNeed("fits", {}), 2, room=10**9)


@pytest.fixture
def solver(rng: Any, monkeypatch: pytest.MonkeyPatch) -> PairSolver:
    """Three classes, two folds, two values of C, on two Gaussian kernels of the same points.

    Each problem is a task, as large ones are.
    """
    monkeypatch.setattr("dhsk.solvers.task_groups.GROUP_SECONDS", 0.0)
    X = rng.normal(size=(N, 3))
    codes = np.arange(N) % 3
    X[:, 0] += codes
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    weights = np.stack([np.arange(N) % 4 > 0, np.arange(N) % 4 != 1]).astype(float)
    problems = [
        MatrixProblem(ArraySource(np.exp(-distances / width)), (1.0, 10.0), name=str(width))
        for width in (2.0, 20.0)
    ]
    return PairSolver(codes, weights, TOL, problems, Threads(2), WHOLE)


class Backwards(Threads):
    """Gives the last result first."""

    def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:  # noqa: ARG002
        """Run all tasks, then turn their results round."""
        yield from reversed([function(*task) for task in tasks])


def assert_same(found: PairFits, expected: PairFits) -> None:
    """Bit by bit."""
    assert found.radii2 == expected.radii2
    for own, others in zip(found.fits, expected.fits, strict=True):
        for one, other in zip(own, others, strict=True):
            np.testing.assert_array_equal(one.coef, other.coef)
            np.testing.assert_array_equal(one.support, other.support)
            assert one.intercept == other.intercept


def test_fits_are_those_of_each_pair_by_itself(solver: PairSolver) -> None:
    """Columns are fold by fold, C by C; the balls hold the samples of the pairs."""
    solver.balls = True
    found = dict(solver.solved([0, 1]))
    assert sorted(found) == [0, 1]
    for k, problem in enumerate(solver.problems):
        pairs = make_pairs(solver.codes, solver.weights, problem.C)
        assert len(found[k].fits) == len(pairs) == 3
        for pair, fits, radius2 in zip(pairs, found[k].fits, found[k].radii2, strict=True):
            K = problem.source.block(pair.members)
            for one, other in zip(fits, solve_block(K, pair.dual, TOL), strict=True):
                np.testing.assert_array_equal(one.coef, other.coef)
            assert radius2 == smallest_ball(K, BALL_TOLERANCE).radius2


def test_folds_that_are_tasks_of_their_own_give_the_same(solver: PairSolver) -> None:
    """In the order of the columns, and one ball a pair."""
    solver.balls = True
    whole = dict(solver.solved([0, 1]))
    counts: list[int] = []
    split = replace(WHOLE, split_folds=True)
    parts = replace(
        solver,
        executor=Backwards(1),
        share=split,
        on_fits=lambda count, _: counts.append(count),
    )
    for k, found in parts.solved([1, 0]):
        assert_same(found, whole[k])
    assert counts == [2] * 12


class Counted(ArraySource):
    """Counts how often its matrix is copied."""

    copies = 0

    def block(self, members: Any) -> Any:
        """The matrix of some samples."""
        self.copies += 1
        return super().block(members)


@pytest.mark.parametrize(("classes", "way"), [(2, "ovo"), (2, "ovr"), (3, "ovr")])
def test_problems_of_all_samples_share_a_matrix(solver: PairSolver, classes: int, way: Any) -> None:
    """Also as tasks of two threads, a fold each: it is copied once, and fits are the same."""
    solver = replace(solver, codes=np.arange(N) % classes, multi_class=way)
    K = solver.problems[0].source.block(np.arange(N))[:, :N]
    solver.problems = [replace(solver.problems[0], source=Counted(K))]
    parts = replace(solver, share=replace(WHOLE, split_folds=True))
    ((_, found),) = parts.solved()
    assert solver.problems[0].source.copies == 1  # type: ignore[attr-defined]  # of `Counted`
    ((_, expected),) = solver.solved()
    assert_same(found, expected)


@pytest.mark.parametrize("most", [1, 2])
def test_shared_matrices_are_few(most: int) -> None:
    """No more than `most` are in use at any time; who waits for one gets it."""
    blocks, used, seen = SharedBlocks(most), Counter[int](), list[int]()
    made, lock = Counter[int](), Lock()

    def make(kernel: int) -> Block:
        made[kernel] += 1
        return Block(np.full((2, 64), kernel, np.float32))

    def work(kernel: int) -> float:
        with blocks.lent(kernel, lambda: make(kernel)) as block:
            with lock:
                used[kernel] += 1
                seen.append(sum(count > 0 for count in used.values()))
            sleep(0.002)
            with lock:
                used[kernel] -= 1
            return float(block.K[0, 0])

    kernels = [k for k in range(6) for _ in range(5)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, kernels)) == kernels
    assert max(seen) <= most
    assert set(made) == set(range(6))
    assert sum(made.values()) <= 2 * len(made)  # in order of the kernels few are made again


@pytest.mark.parametrize("way", ["ovo", "ovr"])
def test_decisions_of_rounding_alone_are_none(way: Any) -> None:
    """Samples that have nothing in common are all the same to a fit: no score is made of that."""
    y, folds = np.arange(60) % 2, np.arange(60) // 2 % 5
    weights = np.stack([folds != fold for fold in range(5)]).astype(float)
    K = np.full((60, 60), 0.1) + 0.7 * np.eye(60)
    problems = [MatrixProblem(ArraySource(K), (0.1, 1.0, 1000.0))]
    solver = PairSolver(y, weights, 1e-3, problems, Threads(1), WHOLE, multi_class=way)
    ((k, found),) = solver.solved()
    for decided in solver.held_out(k, found, [np.flatnonzero(folds == f) for f in range(5)]):
        assert not decided.any()
    K[np.ix_(y == 0, y == 0)] += 1e-6  # samples of one class have, however little
    ((k, found),) = solver.solved()
    assert all(d.any() for d in solver.held_out(k, found, [np.flatnonzero(folds == 0)]))


def test_the_unit_of_a_matrix_scales_the_bounds(solver: PairSolver) -> None:
    """C counts in units of the kernel itself."""
    solver.problems = [replace(solver.problems[0], unit=0.5)]
    assert [pair.dual.boxes.max() for pair in solver.pairs()] == [5.0] * 3
    ((_, found),) = solver.solved()
    assert found.unit == 0.5


@pytest.mark.parametrize("room", [10**9, 40**2 * 8])
def test_what_the_journal_has_is_not_solved_again(
    solver: PairSolver, room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pair is lost: it alone is solved, whole or in rounds, and the fits are the same."""
    kept = replace(
        solver, share=replace(WHOLE, room=room), entries=Checkpoint(tmp_path), balls=True
    )
    first = dict(kept.solved([0, 1]))
    sorted(tmp_path.iterdir())[0].unlink()
    solved: set[Any] = set()

    def counting_part(task: Any, *args: Any) -> Any:
        solved.add((id(task.source), task.number))
        return improve_part(task, *args)

    def counting_whole(task: Any, *args: Any) -> Any:
        solved.add(task.key)
        return solve_whole(task, *args)

    monkeypatch.setattr("dhsk.solvers.rounds.improve_part", counting_part)
    monkeypatch.setattr("dhsk.models.pair_tasks.solve_whole", counting_whole)
    for k, found in replace(kept).solved([0, 1]):
        assert_same(found, first[k])
    assert len(solved) == 1
    kept.forget(0)
    kept.forget(1)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_pairs_that_do_not_fit_are_solved_in_rounds(solver: PairSolver) -> None:
    """To the same optimum, and folds are not divided."""
    whole = dict(solver.solved([0, 1]))
    counts: list[int] = []
    small = replace(
        solver,
        share=replace(WHOLE, room=40**2 * 8, split_folds=True),
        on_fits=lambda count, _: counts.append(count),
    )
    for k, found in small.solved([0, 1]):
        for own, others in zip(found.fits, whole[k].fits, strict=True):
            for one, other in zip(own, others, strict=True):
                assert one.converged
                assert one.objective == pytest.approx(other.objective, rel=1e-6)
    assert counts == [4] * 6


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_that_came_with_fits(classes: int, rng: Any) -> None:
    """Those of the last look are what the matrix gives, in the order of the samples asked for."""
    codes, X = rng.integers(0, classes, N), rng.normal(size=(N, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 3)
    folds = [np.flatnonzero(np.arange(N) % 3 == k) for k in range(3)]
    weights = np.array([(np.arange(N) % 3 != k) * 1.0 for k in range(3)])
    problems, way = [MatrixProblem(ArraySource(K), (1.0, 10.0))], "ovr" if classes > 2 else "ovo"
    solver = PairSolver(codes, weights, TOL, problems, Threads(1), WHOLE, multi_class=way)
    ((_, solved),) = solver.solved()
    fits = [
        [
            replace(
                fit, outside=K[np.ix_(others, pair.members[fit.support])] @ fit.coef + fit.intercept
            )
            for box, fit in zip(pair.dual.boxes, own, strict=True)
            for others in [pair.members[box == 0]]
        ]
        for pair, own in zip(solver.pairs(), solved.fits, strict=True)
    ]
    computed = list(solver.held_out(0, solved, folds))
    seen = list(solver.held_out(0, replace(solved, fits=fits), folds))
    assert [one.shape for one in seen] == [one.shape for one in computed]
    for one, other in zip(seen, computed, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
