"""Exact SVMs whose matrix a device holds are those of the processor.

The device is the processor, by `tests.devices.host`: the same CUDA functions, compiled as C++.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dhsk
from dhsk.devices import device
from dhsk.execution.checkpoint import Checkpoint
from dhsk.solvers.decomposition import Round, RoundWatch
from dhsk.solvers.device_pairs import solve_on_device
from dhsk.solvers.device_steps import DeviceMatrix, DeviceProblem, WholeOnDevice
from dhsk.solvers.dual import Fit
from dhsk.solvers.newton import steps_between
from dhsk.solvers.problems import make_pairs
from dhsk.solvers.smo import ascend, padded
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.whole import FINE_SAMPLES, PairTask
from tests.devices.host import HostDevice

RNG = np.random.default_rng(5)
N = 3300
X = RNG.random((N, 8)) ** 2
Y = np.argmax(X[:, :3] + 0.2 * RNG.normal(size=(N, 3)), axis=1)
"""Three classes of about 1,100 samples: each pair is large enough for a device."""

TOL = 1e-3


def fitted(**how: Any) -> dhsk.HeatSVC:
    """A model of all classes."""
    return dhsk.HeatSVC(C=20.0, time_scale=0.6, tol=TOL, **how).fit(X, Y)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_models_are_those_of_the_processor(host: HostDevice, dtype: str, multi_class: str) -> None:
    """Both are certified to the tolerance; objectives are within it times the sum of alphas."""
    model = fitted(dtype=dtype, multi_class=multi_class)
    blocks = host.taken - 1  # besides the matrix
    with device("cpu"):
        again = fitted(dtype=dtype, multi_class=multi_class)
    assert blocks <= 2  # of the unit of the kernel
    assert model.kkt_violation_ <= TOL
    found, expected = (one.model_.certificates for one in (model, again))
    alphas = expected.objective + expected.norm2 / 2
    assert np.all(np.abs(found.objective - expected.objective) <= TOL * alphas)
    assert (model.predict(X) != again.predict(X)).mean() < 1e-3


def test_a_matrix_that_does_not_fit_is_computed_in_blocks(tmp_path: Path) -> None:
    """As much as the whole matrix takes half of: its room must be twice as much."""
    for room, whole in ((2 * 8 * N**2 - 1, False), (2 * 8 * N**2, True)):
        folder = tmp_path / str(room)
        folder.mkdir()
        small = HostDevice(folder, room=room)
        with device(small):
            model = fitted()
        assert model.kkt_violation_ <= TOL
        assert (small.taken <= 3) == whole


def gaussian(rows: NDArray[Any]) -> NDArray[Any]:
    """Gaussian kernel of rows, in their type."""
    distances2 = ((rows[:, None] - rows) ** 2).sum(axis=2)
    return np.exp(-distances2 / rows.shape[1]).astype(rows.dtype)


def problem_of(n: int, C: float) -> DeviceProblem:
    """Two classes in turn, of the rows in reverse order."""
    sign = np.where(np.arange(n) % 2, 1.0, -1.0)
    bounds = np.minimum(C * sign, 0.0), np.maximum(C * sign, 0.0)
    return DeviceProblem(np.arange(n)[::-1].copy(), sign, *bounds, np.zeros(n), sign.copy())


def untold(*_: Any) -> None:
    """Nobody is told."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_are_those_of_the_processor(host: HostDevice, dtype: str) -> None:
    """The same pairs of variables, so the same number of steps but for roundings of gains."""
    values, n = gaussian(RNG.normal(size=(150, 20)).astype(dtype)), 150
    one = problem_of(n, 2.0)
    steps, more = DeviceMatrix(host, host.put(values)).improve([one], TOL, untold)
    K = np.zeros((n, padded(n)), dtype)
    K[:, :n] = values[::-1, ::-1]
    b, f = np.zeros(n), one.linear.copy()
    expected, violation = ascend(K, (one.lower, one.upper), b, f, TOL, 10_000)
    assert not len(more)
    assert violation <= TOL
    assert expected > 100
    assert abs(int(steps[0]) - expected) <= 0.02 * expected
    np.testing.assert_allclose(one.b, b, rtol=0, atol=2 * TOL)
    # 150 products of up to 2, summed in float64
    np.testing.assert_allclose(one.f, one.linear - K[:, :n].astype(float) @ one.b, atol=1e-12)


@pytest.mark.parametrize(("n", "how"), [(90, {"threads": 40}), (2100, {"blocks": 2})])
def test_threads_that_work_together_change_no_bit(
    tmp_path: Path, n: int, how: dict[str, int]
) -> None:
    """A warp and a part of one, or two blocks of a problem, take the steps of one thread.

    Many rows are equal, and so their gains.
    """
    found, rows = [], np.random.default_rng(n).integers(0, 2, (n, 6)).astype(np.float32)
    values, tol = gaussian(rows), TOL if n < 100 else 0.1
    for own in ({}, how):
        folder = tmp_path / str(len(own))
        folder.mkdir()
        host = HostDevice(folder, **own)
        problems = [problem_of(n, 1.0), problem_of(70, 2.0)][: 2 if n < 100 else 1]
        steps, _ = DeviceMatrix(host, host.put(values)).improve(problems, tol, untold)
        found.append(np.concatenate([steps, *(one.b for one in problems)]))
    assert found[0][0] > 20
    assert 0.0 < np.abs(found[0][1:]).min(initial=1.0, where=found[0][1:] % 1 != 0) < 1.0  # free
    np.testing.assert_array_equal(found[0], found[1])


def solved(host: HostDevice, K: NDArray[Any], C: float, watch: RoundWatch) -> list[Fit]:
    """Fits of one pair of classes, of two values of C, on a matrix; their objectives are right."""
    codes = np.arange(len(K)) % 2
    (pair,) = make_pairs(codes, np.ones((1, len(K))), [C / 2, C])
    own = K[np.ix_(pair.members, pair.members)]
    matrix = WholeOnDevice(host, pair.members, lambda: host.put(own))
    task = PairTask("pair", ArraySource(K), pair)
    ((_, fits, _),) = solve_on_device(matrix, [task], TOL, watch)
    for fit in fits:
        used = own[np.ix_(fit.support, fit.support)]
        alphas = np.abs(fit.coef).sum()
        expected = alphas - fit.coef @ used @ fit.coef / 2
        # each of n^2 products, of entries and coefficients of known sums, is rounded
        atol = len(K) * 2.0**-52 * alphas**2 * np.abs(own).max()
        np.testing.assert_allclose(fit.objective, expected, rtol=0, atol=atol)
    return fits


def test_a_matrix_of_few_features_ends_by_newton_steps(host: HostDevice) -> None:
    """As on the processor: 5 features, and C far above what separates the classes.

    Without them it takes twice as many steps.
    """
    rows = RNG.normal(size=(400, 5))
    fits = solved(host, rows @ rows.T, 100.0, RoundWatch())
    one, K = problem_of(400, 100.0), np.zeros((400, padded(400)))
    K[:, :400] = rows @ rows.T
    b, f = np.zeros(400), one.linear.copy()
    steps, _ = ascend(K, (one.lower, one.upper), b, f, TOL, 1_000_000)
    assert steps > 2 * steps_between(400)
    assert fits[1].steps <= 1.3 * steps
    assert all(fit.violation <= TOL for fit in fits)


def test_a_killed_fit_goes_on(host: HostDevice, tmp_path: Path) -> None:
    """What tries have done is in the checkpoint, and gone with the fit."""
    rows, told = RNG.normal(size=(FINE_SAMPLES + 2, 5)), list[Round]()
    watch = RoundWatch(told.append, Checkpoint(tmp_path / "kept", "fits-"), "pairs")

    def interrupt(one: Round) -> None:
        told.append(one)
        if len(told) == 2:
            raise KeyboardInterrupt

    K, how = rows @ rows.T, (10.0, replace(watch, on_round=interrupt))
    with pytest.raises(KeyboardInterrupt):
        solved(host, K, *how)
    kept = list((tmp_path / "kept").iterdir())
    before = len(told)
    fits = solved(host, K, 10.0, watch)
    after = len(told) - before
    whole = solved(host, K, 10.0, RoundWatch(told.append))
    assert len(kept) == 1
    assert after < len(told) - before - after  # what was done is not done again
    assert not list((tmp_path / "kept").iterdir())
    for one, other in zip(fits, whole, strict=True):
        assert one.violation <= TOL
        assert abs(one.objective - other.objective) <= TOL * (one.objective + one.norm2 / 2)
    assert {one.share for one in told} <= set(np.clip([one.share for one in told], 0.0, 1.0))
