"""Newton steps in free coefficients: never worse, feasible, and few where others are many."""

from typing import Any

import numpy as np
import pytest

import dhsk.solvers.smo
from dhsk.solvers.newton import newton_steps, steps_between
from dhsk.solvers.smo import ascend, padded

EPS = float(np.finfo(np.float64).eps)


def low_rank(rng: Any, n: int, dtype: Any = np.float64) -> tuple[Any, Any]:
    """A padded linear kernel of five columns, and signs of two classes that overlap."""
    X = rng.normal(size=(n, 5)) * [1.0, 1.0, 0.5, 0.2, 0.1]
    s = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    K = np.full((n, padded(n)), 1e3, dtype)  # what pads it must never be used
    K[:, :n] = X @ X.T
    return K, s


def begun(K: Any, s: Any, bounds: Any, steps: int, zone: float = 0.0) -> tuple[Any, Any]:
    """Coefficients and gradient after some steps of two variables."""
    b, f = np.zeros(len(s)), s.copy()
    ascend(K, bounds, b, f, 1e-12, steps, zone=zone)
    return b, f


def objective(K: Any, s: Any, b: Any, zone: float) -> float:
    """What is maximised."""
    exact = K[:, : len(s)].astype(np.float64)
    return float(s @ b - b @ exact @ b / 2 - zone * np.abs(b).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("zone", [0.0, 0.3])
def test_steps_gain_and_stay_feasible(rng: np.random.Generator, dtype: Any, zone: float) -> None:
    """The sum, the bounds and the gradient are kept, to rounding."""
    K, s = low_rank(rng, 120, dtype)
    bounds = np.full(120, -20.0), np.full(120, 20.0)
    if zone == 0.0:
        bounds = np.minimum(20 * s, 0.0), np.maximum(20 * s, 0.0)
    else:
        s = s + rng.normal(size=120)
    b, f = begun(K, s, bounds, 150, zone)
    before, total = objective(K, s, b, zone), b.sum()
    steps = newton_steps(K, bounds, b, f, zone)
    assert steps > 0
    size = np.abs(b).sum() * np.abs(K[:, :120]).max()
    assert objective(K, s, b, zone) > before
    assert abs(b.sum() - total) <= EPS * (steps + 120) * np.abs(b).sum()
    assert (bounds[0] <= b).all()
    assert (b <= bounds[1]).all()
    exact = s - K[:, :120].astype(np.float64) @ b
    np.testing.assert_allclose(f, exact, rtol=0, atol=EPS * (steps + 120) * (1 + size))


def test_no_sign_changes_within_a_zone(rng: np.random.Generator) -> None:
    """A unit of a coefficient loses as much on the other side of 0, where steps end."""
    K, s = low_rank(rng, 120)
    s = s + rng.normal(size=120)
    bounds = np.full(120, -20.0), np.full(120, 20.0)
    b, f = begun(K, s, bounds, 150, 0.3)
    signs = np.sign(b)
    assert newton_steps(K, bounds, b, f, 0.3) > 0
    assert (np.sign(b) * signs >= 0).all()
    assert not b[signs == 0].any()


@pytest.mark.parametrize("zone", [0.0, 0.3])
def test_the_last_step_is_to_the_optimum(rng: np.random.Generator, zone: float) -> None:
    """Where no bound is met: all gradients, less what the zone takes, are equal."""
    X = rng.normal(size=(60, 60))
    K = np.zeros((60, padded(60)))
    K[:, :60] = X @ X.T
    best = rng.choice([-1.0, 1.0], 60) * rng.uniform(1, 2, 60)
    s = K[:, :60] @ best + zone * np.sign(best)
    b = best + np.repeat([0.01, -0.01], 30)
    f = s - K[:, :60] @ b
    bounds = np.full(60, -1e6), np.full(60, 1e6)
    assert newton_steps(K, bounds, b, f, zone) == 1
    kept = 60 * EPS ** (2 / 3) * np.trace(K) * np.abs(b).max()
    assert np.ptp(f - zone * np.sign(b)) <= kept


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fewer_steps(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    """A third at most of those without them, to the same objective."""
    K, s = low_rank(rng, 300, dtype)
    bounds = np.minimum(200 * s, 0.0), np.maximum(200 * s, 0.0)
    taken, found = [], []
    for way in (newton_steps, lambda *_: 0):
        monkeypatch.setattr(dhsk.solvers.smo, "newton_steps", way)
        b, f = np.zeros(300), s.copy()
        steps, violation = ascend(K, bounds, b, f, 1e-3, 10**7)
        assert violation <= 1e-3
        taken.append(steps)
        found.append(objective(K, s, b, 0.0))
    assert taken[0] <= taken[1] / 3
    # No step of the violation or less gains more than that for each unit of the coefficients.
    assert found[0] == pytest.approx(found[1], abs=2e-3 * np.abs(b).sum())


def test_they_take_no_longer_than_other_steps(rng: np.random.Generator) -> None:
    """Of 200 free coefficients nearly all end at a bound, one a step: there is time for one."""
    K, s = low_rank(rng, 200)
    b = rng.uniform(-1, 1, 200)
    bounds = np.full(200, -1.0), np.full(200, 1.0)
    f = s - K[:, :200] @ b
    assert 200**3 / 3 < 8 * 200 * steps_between(200) < 2 * 200**3 / 3
    assert newton_steps(K, bounds, b, f, 0.0) == 1


def test_a_matrix_at_the_end_of_the_range_is_left_alone(rng: np.random.Generator) -> None:
    """Its step is out of range: no coefficient becomes NaN."""
    K, s = low_rank(rng, 20)
    K[:, :20] *= 1e-310
    b = rng.uniform(-1, 1, 20)
    bounds, f, before = (np.full(20, -1.0), np.full(20, 1.0)), s.copy(), b.copy()
    assert newton_steps(K, bounds, b, f, 0.0) == 0
    assert (b == before).all()
    assert (f == s).all()
