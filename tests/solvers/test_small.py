"""Small problems in one compiled call, against the steps that larger ones take."""

from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.solvers import small
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import FINE_TOLERANCE, PairTask, solve_whole

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 3))
Y = np.arange(60) % 4
K = np.exp(-((X[:, None] - X) ** 2).sum(-1) / 2)
FOLDS = np.stack([np.ones(60), (np.arange(60) % 3 > 0) * 1.0, (Y > 0) * 1.0])
"""In the last one a class has no samples."""


def fits() -> list[Any]:
    """Fits of all pairs, folds and C."""
    source = ArraySource(K)
    tasks = [PairTask(0, source, pair) for pair in make_pairs(Y, FOLDS, [0.1, 3.0])]
    return [fit for task in tasks for fit in solve_whole(task, 1e-3, fine=True)[1]]  # type: ignore[union-attr]


def test_they_are_the_fits_of_larger_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """With chains of C, folds, and columns that lack a class."""
    found = fits()
    monkeypatch.setattr(small, "SMALL_SAMPLES", 0)
    for one, other in zip(found, fits(), strict=True):
        assert one.support.tolist() == other.support.tolist()
        # Objectives agree to the violation times the sum of the coefficients, of at most 3 each.
        most = FINE_TOLERANCE * 3 * len(X)
        assert abs(one.objective - other.objective) <= most
        assert abs(one.intercept - other.intercept) <= np.sqrt(most)
        assert one.converged
        assert other.converged
        assert max(one.gap, other.gap) <= np.sqrt(most)


def test_many_steps_are_left_to_newton_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem of more steps than are made between these."""
    monkeypatch.setattr(small, "steps_between", lambda _: 2)
    (pair, *_) = make_pairs(Y, FOLDS, [3.0])
    block = ArraySource(K).block(pair.members)
    assert small.fits_of_small(block, pair.dual, (1e-3, 0.0), (3, 4), 1.0) is None


@pytest.mark.parametrize(("seed", "n", "dim"), [(51, 100, 5), (54, 60, 3)])
def test_steps_to_the_finer_tolerance_lose_nothing(seed: int, n: int, dim: int) -> None:
    """Their limit may end them above the tolerance that was reached: that state is taken then."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim))
    y = rows[:, 0] + rng.normal(size=n) > 0
    model = dhsk.SVC(kernel="linear").fit(rows, y)
    assert model.converged_
    assert model.kkt_violation_ <= model.tol
