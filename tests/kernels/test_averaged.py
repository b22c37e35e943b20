"""Kernels averaged over posteriors: against exact integrals, their limit, and in bounded memory."""

import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import InputError
from dhsk.kernels import AveragedKernel, CosineKernel, HeatKernel, SmoothedKernel, averaged
from dhsk.kernels.stretched import stretched

EPS = np.finfo(np.float64).eps

COUNTS = np.array([[3.0, 0.0, 1.0, 0.0], [0.0, 5.0, 2.0, 40.0], [0.0, 0.0, 0.0, 0.0]])
TIME = 0.15
DRAWS, SEEDS = 1000, 20

SIGMAS = 5
"""Standard errors of a mean of draws, which one of 12 means exceeds in 1 of 100,000 cases."""


def word_counts(n: int, dim: int, seed: int = 0) -> np.ndarray:
    """Counts, most of them 0."""
    return np.random.default_rng(seed).poisson(0.3, (n, dim)).astype(np.float64)


def powers(weights: list[mp.mpf], dim: int) -> list[mp.mpf]:
    """Coefficients of the powers of the cosine in the series of the heat kernel."""
    width = len(weights)
    shift = np.eye(width, k=-1, dtype=int).astype(object)  # times c
    polynomials = [np.eye(width, dtype=int).astype(object)[0]]
    polynomials.append(shift @ polynomials[0])
    for level in range(1, width - 1):
        step = (2 * level + dim - 2) * (shift @ polynomials[-1]) - level * polynomials[-2]
        polynomials.append(step / mp.mpf(level + dim - 2))
    return list(np.dot(weights, polynomials))


def moments(x: np.ndarray, y: np.ndarray, alpha: float, most: int) -> list[mp.mpf]:
    """E[c^k] of c = Σ √(θ_i θ'_i) for θ ~ Dirichlet(x + α) and θ' ~ Dirichlet(y + α), k < most.

    For gammas g and g' with θ = g/Σg and θ' = g'/Σg' the E[√(g_i g'_i)^m] are products of gamma
    functions. The sums are independent of θ and θ', so theirs are divided out.
    """
    a, b = ([mp.mpf(float(count)) + mp.mpf(alpha) for count in row] for row in (x, y))
    series = [mp.mpf(1)] + [mp.mpf(0)] * (most - 1)
    for one, other in zip(a, b, strict=True):
        half = [mp.mpf(m) / 2 for m in range(most)]
        own = [mp.rf(one, h) * mp.rf(other, h) / mp.factorial(m) for m, h in enumerate(half)]
        series = [mp.fsum(series[j] * own[k - j] for j in range(k + 1)) for k in range(most)]
    totals = mp.fsum(a), mp.fsum(b)
    return [
        mp.factorial(k) * term / (mp.rf(totals[0], mp.mpf(k) / 2) * mp.rf(totals[1], mp.mpf(k) / 2))
        for k, term in enumerate(series)
    ]


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_values_are_integrals_over_the_posteriors(
    alpha: float, oracle_weights: Callable[[int, float], list[mp.mpf]]
) -> None:
    """Means over draws are the exact integrals, to standard errors that have a bound.

    A mean over m² pairs of draws has a variance of at most Var K/m (Hoeffding: the variances of the
    conditional means add up to no more than Var K). Of one sample it is a mean over pairs of
    different draws, of at most 2 Var K/m, and over m pairs of equal ones, where K = 1.
    """
    with mp.workdps(40):
        series = powers([w for w in oracle_weights(4, TIME) if w > 1e-18], 4)
        squared = np.convolve(series, series)
    kernel = AveragedKernel(HeatKernel(4, TIME), alpha, DRAWS)
    found = np.mean([replace(kernel, seed=seed)(COUNTS) for seed in range(SEEDS)], axis=0)
    for i, j in zip(*np.triu_indices(len(COUNTS)), strict=True):
        with mp.workdps(40):
            of_powers = moments(COUNTS[i], COUNTS[j], alpha, len(squared))
            mean = float(mp.fdot(series, of_powers[: len(series)]))
            variance = float(mp.fdot(squared, of_powers)) - mean**2
        error = SIGMAS * np.sqrt((1 + (i == j)) * variance / (DRAWS * SEEDS))
        expected = mean + (i == j) * (1 - mean) / DRAWS
        assert abs(found[i, j] - expected) < error, (i, j)


def test_many_counts_leave_no_doubt() -> None:
    """With a million times the counts the kernel is the smoothed one.

    √θ is off its limit by a vector of mean square (n - 1)/(4 Σx), and a cosine by no more than the
    two of its samples; K is by the slope times that.
    """
    counts = 1e6 * (word_counts(6, 5, 1) + 0.1)
    inner = HeatKernel(5, 0.2)
    grid = np.linspace(-1, 1, 1000)
    slope = np.abs(np.diff(inner.of_cosine(grid)) / np.diff(grid)).max()
    off = np.sqrt((5 - 1) / (4 * counts.sum(axis=1)))
    difference = np.abs(AveragedKernel(inner, 0.5)(counts) - SmoothedKernel(inner, 0.5)(counts))
    assert (difference < 2 * slope * (off[:, None] + off)).all()
    assert difference.max() > 1e-9  # there are draws


def test_draws_follow_from_the_sample() -> None:
    """Alone or among others, dense or sparse, here or in another process, values are the same."""
    X = word_counts(12, 30)
    X[7] = X[2]
    kernel = AveragedKernel(HeatKernel.at_scale(30, 1.0), 0.1, 5)
    values = kernel(X)
    np.testing.assert_array_equal(values, kernel(csr_array(X)))
    np.testing.assert_array_equal(values, values.T)
    np.testing.assert_array_equal(kernel._drawn(X[7:8]), kernel._drawn(X)[2 * 5 : 3 * 5])
    # Products of other shapes are rounded differently, by at most 30 eps times the slope.
    close: dict[str, Any] = {"rtol": 0, "atol": 30 * EPS / kernel.kernel.time}  # type: ignore[attr-defined]
    np.testing.assert_allclose(values[[2]], values[[7]], **close)
    np.testing.assert_allclose(values[3:5, ::-1], kernel(X[3:5], X[::-1]), **close)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        np.testing.assert_array_equal(pool.submit(kernel, X).result(), values)
    assert np.abs(replace(kernel, seed=1)(X) - values).min() > 0


def test_near_samples_have_draws_of_their_own() -> None:
    """Draws of two samples are independent: with common ones all these cosines would be near 1."""
    X = word_counts(6, 30)
    cosines = AveragedKernel(CosineKernel(), 0.1, draws=1)(X, X * (1 + 1e-9))
    assert cosines.max() < 0.99


def test_gram_matrix_by_tiles(tmp_path: Path) -> None:
    """Tiles have the values of one call, as they are stored with a kernel that comes back."""
    X = csr_array(word_counts(50, 20))
    kernel = AveragedKernel(HeatKernel(20, 0.1), 0.5, 4, seed=3)
    G = dhsk.compute_gram(X, kernel, store=tmp_path / "g", tile=20)
    expected = kernel(X)
    np.testing.assert_allclose(G[:, :], expected, rtol=0, atol=20 * EPS / 0.1)
    np.testing.assert_allclose(G.diagonal(), np.diagonal(expected), rtol=0, atol=20 * EPS / 0.1)
    assert dhsk.open_gram(tmp_path / "g").kernel == kernel


@pytest.mark.parametrize("alpha", [1e-310, 1e-3, 1.0])
def test_matrices_are_positive_semidefinite(alpha: float) -> None:
    """They are of inner products of means, also with equal samples, however small alpha is."""
    X = np.vstack([word_counts(40, 8), np.zeros((2, 8)), 1e300 * np.eye(8)])
    values = AveragedKernel(HeatKernel(8, 0.02), alpha, 3)(X)
    assert ((values >= 0) & (values <= 1)).all()
    # The rounding of an entry is 8 eps times the slope, at most 1/(2t), and an eigenvalue's is
    # as many times that as there are samples.
    assert np.linalg.eigvalsh(values)[0] > -len(X) * 8 * EPS / 0.04
    assert (np.diagonal(values) < 1).any()


def test_no_prior_draws_only_what_was_seen() -> None:
    """With alpha 0 draws without a common feature are orthogonal, and those of one are sure."""
    values = AveragedKernel(CosineKernel(), 0, 4)(np.array([[2, 1, 0, 0], [0, 0, 3, 0]]))
    assert values[0, 1] == 0
    assert values[1, 1] == 1
    assert values[0, 0] < 1


def test_draws_are_made_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the result, memory is that of strips of draws and of the values of their pairs."""
    X, Y = (csr_array(word_counts(n, 500, n)) for n in (60, 90))
    kernel = AveragedKernel(CosineKernel(), 0.1, 8)
    whole, sample = kernel(X, Y), 8 * 8 * 500  # bytes of the draws of a sample
    monkeypatch.setattr(averaged, "_DRAWN", 20 * sample)
    monkeypatch.setattr(averaged, "_STRIP", 4 * sample)
    tracemalloc.start()
    try:
        found = kernel(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found, whole, rtol=0, atol=500 * EPS)
    # A strip of columns, one of rows, values of their pairs, and two arrays for drawing a sample.
    assert peak < found.nbytes + (20 + 2 * 4 + 4) * sample


def test_stretching_is_of_the_averaged_kernel() -> None:
    """1 - (1 - K)/unit of the mean is the mean of 1 - (1 - K)/unit."""
    X = word_counts(9, 12)
    kernel = AveragedKernel(HeatKernel.at_scale(12, 2.0), 0.5, 6, seed=2)
    wide = stretched(kernel, 0.125)
    assert isinstance(wide, AveragedKernel)
    np.testing.assert_allclose(wide(X), 1 - (1 - kernel(X)) / 0.125, rtol=0, atol=100 * EPS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": dhsk.LinearKernel()}, "only kernels of a cosine"),
        ({"alpha": -1}, "alpha must be at least 0"),
        ({"draws": 0}, "draws must be a whole number, at least 1, but it is 0"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
    ],
)
def test_wrong_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    """Each is an error that says what it may be."""
    with pytest.raises(InputError, match=message):
        AveragedKernel(**({"kernel": CosineKernel(), "alpha": 0.5} | given))


def test_negative_counts_are_refused() -> None:
    """By the name of this kernel."""
    with pytest.raises(InputError, match=r"row 1 of X .* averaged kernels take counts"):
        AveragedKernel(CosineKernel(), 0.5)([[1, 2], [3, -1]])
