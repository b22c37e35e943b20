"""Ridge systems in blocks: right, certified after every step, and the same after a kill."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.threads import Threads
from dhsk.solvers.block_descent import (
    LEAST_GOAL,
    PART_OF_ERROR,
    BlockDescent,
    Blocks,
    block_size,
    solve_in_blocks,
)
from dhsk.solvers.sources import ArraySource

N = 210
ROUNDING = 1e-12
"""Of residuals that are updated some hundred times, relative to right-hand sides near 1."""


@pytest.fixture
def K(counts: Callable[[int, int], Any]) -> Any:
    """A heat kernel matrix whose eigenvalues span four orders of magnitude."""
    return dhsk.HeatKernel.at_scale(12, 1.0)(dhsk.hyperspherical_map(counts(N, 12)))


@pytest.fixture
def shift(rng: np.random.Generator) -> Any:
    """Penalties of samples of different weights."""
    return 0.1 / rng.uniform(0.5, 2.0, N)


def descent(K: Any, Y: Any, shift: Any, size: int = 40) -> BlockDescent:
    """State before the first step."""
    return BlockDescent(ArraySource(K), Y, shift[:, None], size, Threads(1))


def test_solution_and_certificate(K: Any, shift: Any, rng: np.random.Generator) -> None:
    """Coefficients are those of a direct solver; residuals are what they are said to be."""
    Y = rng.normal(size=(N, 3)) * [1.0, 1e-3, 0.0]
    how = Blocks(40, Threads(1))
    found = solve_in_blocks(ArraySource(K), Y, shift, tol=1e-9, most=1000, how=how)
    exact = np.linalg.solve(K + np.diag(shift), Y)
    bound = 1e-9 / shift.min() * np.linalg.norm(Y, axis=0)  # |inverse| <= 1 / least penalty
    assert (np.linalg.norm(found.coef - exact, axis=0) <= 2 * bound).all()
    rest = Y - K @ found.coef - shift[:, None] * found.coef
    weights = 1 / np.sqrt(shift)[:, None]
    size = np.linalg.norm(weights * Y, axis=0)
    defined = np.linalg.norm(weights * rest, axis=0)
    np.testing.assert_allclose(found.residual * size, defined, rtol=0, atol=ROUNDING * size.max())
    assert found.converged.all()
    assert not found.coef[:, 2].any()


def test_no_step_makes_the_objective_larger(K: Any, shift: Any, rng: np.random.Generator) -> None:
    """b'(K + D) b / 2 - y'b falls, and each step solves its own equations."""
    Y, A = rng.normal(size=(N, 1)), K + np.diag(shift)
    run, before = descent(K, Y, shift), 0.0
    for _ in range(20):
        last = run.B.copy()
        run.step()
        now = float(np.sum(run.B * (A @ run.B / 2 - Y)))
        assert now < before
        before, changed = now, np.flatnonzero((last != run.B)[:, 0])
        assert len(changed) == N / 6
        assert np.abs(run.R[changed]).max() <= ROUNDING * np.abs(A).sum()


def test_a_sweep_has_all_samples_once(K: Any, shift: Any) -> None:
    """And the next one other blocks."""
    run, seen = descent(K, np.ones((N, 1)), shift), []
    for _ in range(2 * run.blocks):
        seen.append(run._members())
        run.done += 1
    for some in (seen[: run.blocks], seen[run.blocks :]):
        np.testing.assert_array_equal(np.sort(np.concatenate(some)), np.arange(N))
    assert not np.array_equal(seen[0], seen[run.blocks])


def test_it_ends_at_a_part_of_the_error_on_unused_samples(K: Any, rng: np.random.Generator) -> None:
    """Which is that of a solution of the samples before; fitted values are as near the exact."""
    vectors = np.linalg.eigh(K)[1]
    y = 10 * vectors[:, -2:].sum(axis=1, keepdims=True) + 0.1 * rng.normal(size=(N, 1))
    shift = np.full(N, 0.1)
    run, errors = descent(K, y, shift), []
    assert not run.goal(None).any()
    for number in range(run.blocks):
        members = run._members()
        errors += [((y - K @ run.B)[members] ** 2).mean()] if number >= run.blocks - 2 else []
        run.step()
    size = np.sqrt((y**2).mean())
    np.testing.assert_allclose(run.goal(None), PART_OF_ERROR * np.sqrt(np.mean(errors)) / size)
    how = Blocks(40, Threads(1))
    found = solve_in_blocks(ArraySource(K), y, shift, tol=None, most=1000, how=how)
    assert found.converged.all()
    assert found.tol == run.goal(None)[0] >= found.residual[0] > 1e-6
    exact = np.linalg.solve(K + np.diag(shift), y)
    apart = np.linalg.norm(K @ (found.coef - exact)) / np.linalg.norm(y)
    assert apart <= found.residual[0]


def test_targets_that_are_predicted_to_rounding(K: Any) -> None:
    """Their fit ends too: at a residual that is small enough for all."""
    run = descent(K, np.ones((N, 1)), np.full(N, 0.1), N)
    run.unseen, run.seen, run.done = np.zeros(1), 1.0, 1
    assert run.goal(None) == LEAST_GOAL


def test_few_sweeps_are_few(K: Any, shift: Any, rng: np.random.Generator) -> None:
    """And said not to be enough."""
    how = Blocks(40, Threads(1))
    Y = rng.normal(size=(N, 2))
    found = solve_in_blocks(ArraySource(K), Y, shift, tol=1e-9, most=3, how=how)
    assert found.passes == 3
    assert not found.converged.any()


def test_indefinite_matrices_are_said(K: Any, shift: Any) -> None:
    """No step is made along which K + D is not positive."""
    wrong = K - 50 * np.eye(N)
    how = Blocks(40, Threads(1))
    found = solve_in_blocks(ArraySource(wrong), np.ones((N, 1)), shift, tol=1e-6, most=5, how=how)
    assert found.indefinite.all()
    assert not found.converged.any()


def test_blocks_that_are_singular_to_rounding(rng: np.random.Generator) -> None:
    """Something is added to them, and the objective falls."""
    rows = rng.integers(-3, 4, (200, 5)).astype(np.float32)
    K = rows @ rows.T  # exact, of rank 5; in float32 nothing is left of the penalty
    shift, Y, A = np.full(200, 1e-8), rng.normal(size=(200, 1)), K.astype(np.float64)
    run, before = BlockDescent(ArraySource(K), Y, shift[:, None], 200, Threads(1)), 0.0
    for _ in range(5):
        run.step()
        now = float(np.sum(run.B * ((A @ run.B + 1e-8 * run.B) / 2 - Y)))
        assert now < before
        before = now
    assert not run.indefinite.any()


def test_blocks_that_are_indefinite_to_rounding(rng: np.random.Generator) -> None:
    """What is added to a block does not hide that K + D is not positive."""
    rows = rng.integers(-3, 4, (200, 5)).astype(np.float64)
    K = rows @ rows.T - 1e-12 * np.eye(200)
    run = BlockDescent(
        ArraySource(K), rng.normal(size=(200, 1)), np.full((200, 1), 1e-13), 200, Threads(1)
    )
    run.step()
    assert run.indefinite.all()
    assert not run.B.any()


class Killed(ArraySource):
    """A matrix that is only read so many times."""

    left = 9

    def combine(self, parts: Any) -> Any:
        """Combinations, or an end."""
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().combine(parts)


def test_a_killed_solve_goes_on(
    K: Any, shift: Any, rng: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its last block, to the same bits, and leaves nothing."""
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)
    Y = rng.normal(size=(N, 2))
    how = Blocks(40, Threads(1), Checkpoint(tmp_path / "kept"), "name")
    given: Any = {"tol": None, "most": 50}
    with pytest.raises(KeyboardInterrupt):
        solve_in_blocks(Killed(K), Y, shift, **given, how=how)
    source = Killed(K)
    source.left = 10_000
    found = solve_in_blocks(source, Y, shift, **given, how=how)
    clean = solve_in_blocks(ArraySource(K), Y, shift, **given, how=Blocks(40, Threads(1)))
    np.testing.assert_array_equal(found.coef, clean.coef)
    assert (
        10_000 - source.left == clean.passes * 6 - 9 or clean.passes * 6 - 9 > 10_000 - source.left
    )
    assert not list((tmp_path / "kept").iterdir())


def test_blocks_fit_the_memory() -> None:
    """And are as long to factor as to read, where there is room."""
    assert block_size(10, 8, 10**12) == 10
    assert block_size(10**6, 4, 10**12) == 26_457
    assert 4 * block_size(10**6, 4, 10**9) ** 2 <= 10**9 / 2
    assert block_size(10**6, 8, 0) == 1
