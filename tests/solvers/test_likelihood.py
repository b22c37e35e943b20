"""Marginal likelihoods: those of scikit-learn, and estimates within their standard errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.linalg import LinAlgError
from scipy.stats import multivariate_normal

import dhsk
from dhsk.execution.threads import Threads
from dhsk.nystrom.preconditioner import LowRankPreconditioner, landmarks_for, precondition_by
from dhsk.solvers.lanczos import log_quadrature
from dhsk.solvers.likelihood import (
    NoisePreconditioner,
    Probes,
    estimated_likelihood,
    exact_likelihood,
)
from dhsk.solvers.ridge import solve_ridge
from dhsk.solvers.sources import ArraySource

N, NOISE = 120, 0.05

STEP = 1e-4
"""Of central differences of logarithms: their error is near its square."""

ERRORS = 5.0
"""Standard errors within which an estimate lies, but for one of a million seeds."""

SOLVING = {"tol": 1e-10, "max_passes": 1000}


@pytest.fixture
def rows(counts: Callable[[int, int], Any]) -> Any:
    """Mapped samples."""
    return np.asarray(dhsk.hyperspherical_map(counts(N, 12)))


@pytest.fixture
def kernel() -> dhsk.HeatKernel:
    """A kernel whose eigenvalues span some orders of magnitude."""
    return dhsk.HeatKernel.at_scale(12, 0.8)


def exact(rows: Any, kernel: dhsk.HeatKernel, noise: float, Y: Any) -> Any:
    """Likelihood and gradient by Cholesky."""
    return exact_likelihood(kernel(rows), noise, Y, kernel.time_derivative().of_rows(rows))


def test_the_exact_value_is_the_density(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """Of a normal distribution, summed over the targets."""
    Y = rng.normal(size=(N, 2))
    found = exact(rows, kernel, NOISE, Y)
    A = kernel(rows) + NOISE * np.eye(N)
    expected = multivariate_normal(np.zeros(N), A).logpdf(Y.T).sum()
    np.testing.assert_allclose(found.value, expected, rtol=1e-10)
    np.testing.assert_allclose(found.coef, np.linalg.solve(A, Y), rtol=1e-9)
    assert found.value_error == 0


def test_the_exact_gradient_is_that_of_the_value(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """By central differences, in time and in noise."""
    Y = rng.normal(size=(N, 2))
    found = exact(rows, kernel, NOISE, Y).gradient * [kernel.time, NOISE]
    up, down = np.exp(STEP), np.exp(-STEP)
    by_time = [exact(rows, dhsk.HeatKernel(12, kernel.time * f), NOISE, Y) for f in (up, down)]
    by_noise = [exact(rows, kernel, NOISE * f, Y) for f in (up, down)]
    for slope, (above, below) in zip(found, (by_time, by_noise), strict=True):
        np.testing.assert_allclose(slope, (above.value - below.value) / (2 * STEP), rtol=1e-5)


def test_an_amplitude_is_one_of_the_covariance(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """Value and slopes are those of targets by its root; the one of largest value is found."""
    Y, a = 30 * rng.normal(size=(N, 2)), 700.0
    one, other = (exact(rows, kernel, NOISE, y) for y in (Y, Y / np.sqrt(a)))
    found, best = one.at_amplitude(a), one.at_amplitude(None)
    np.testing.assert_allclose(found.value, other.value - N * np.log(a), rtol=1e-12)
    np.testing.assert_allclose(found.gradient, other.gradient, rtol=1e-8)
    np.testing.assert_array_equal(found.coef, one.coef)
    for factor in (0.99, 1.01):
        assert one.at_amplitude(factor * best.amplitude).value < best.value
    again = one.at_amplitude(best.amplitude)
    assert (again.value, again.gradient.tolist()) == (best.value, best.gradient.tolist())
    zeros = exact(rows, kernel, NOISE, 0 * Y)
    assert zeros.at_amplitude(None) is zeros


def test_an_indefinite_matrix_has_no_likelihood() -> None:
    """It is an error, not a number."""
    with pytest.raises(LinAlgError):
        exact_likelihood(np.diag([-1.0, 1.0]), 0.1, np.ones((2, 1)))


def test_the_quadrature_is_exact_at_the_end(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """With as many steps as there are eigenvectors in a column, or enough of them."""
    K, Y = kernel(rows), rng.normal(size=(N, 3))
    Y[:, 1] = 0.0
    found = solve_ridge(ArraySource(K), Y, 1.0, tol=1e-12, max_passes=1000, block=False)
    values, vectors = np.linalg.eigh(K + np.eye(N))
    weights = (vectors.T @ Y) ** 2
    expected = np.log(values) @ weights / np.maximum(weights.sum(axis=0), 1e-300)
    np.testing.assert_allclose(log_quadrature(found.steps, 3), expected, atol=1e-9)


def test_a_negative_direction_has_no_logarithm() -> None:
    """A quadrature with a node below 0 is not a number."""
    steps = [(np.array([0]), np.array([0.0]), np.array([0.5]))]
    assert np.isnan(log_quadrature(steps, 1)).all()


def test_a_node_that_rounds_to_0_has_no_logarithm() -> None:
    """Steps 1 and 1e300 make the matrix [[1, 2], [2, 4]], whose smaller eigenvalue is lost."""
    steps = [(np.array([0]), np.array([length]), np.array([4.0])) for length in (1.0, 1e300)]
    assert np.isnan(log_quadrature(steps, 1)).all()


def test_the_quadrature_is_of_the_first_descent(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """A wrong certificate begins a second descent, which starts from another vector."""

    class WrongOnce(ArraySource):
        made, wrong = 0, 0

        def product(self, V: Any) -> Any:
            self.made += 1
            return super().product(V) * (1.001 if self.made == self.wrong else 1.0)

    y = rng.normal(size=(N, 1))
    source = WrongOnce(kernel(rows))
    clean = solve_ridge(source, y, 1.0, tol=1e-8, max_passes=1000)
    source.made, source.wrong = 0, clean.passes
    repaired = solve_ridge(source, y, 1.0, tol=1e-8, max_passes=1000)
    assert repaired.passes > clean.passes
    assert log_quadrature(repaired.steps, 1) == log_quadrature(clean.steps, 1)


def preconditioner(rows: Any, kernel: Any, noise: float, rank: int) -> Any:
    """That of some landmarks, or the noise alone."""
    if not rank:
        return NoisePreconditioner(N, noise)
    chosen = landmarks_for(rows, kernel, 0.0, rank, 1)
    return precondition_by(rows, kernel, chosen, np.full(N, noise), 1)


@pytest.mark.parametrize("rank", [0, 60])
def test_estimates_are_within_their_errors(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator, rank: int
) -> None:
    """And the errors are what they are said to be: less with a better preconditioner."""
    K, Y = kernel(rows), rng.normal(size=(N, 2))
    derivative = ArraySource(kernel.time_derivative().of_rows(rows)).product
    true = exact(rows, kernel, NOISE, Y)
    own = preconditioner(rows, kernel, NOISE, rank)
    probes = Probes.seeded(0, N, rank, 64)
    found = estimated_likelihood(ArraySource(K), NOISE, Y, probes, own, derivative, SOLVING)
    assert abs(found.value - true.value) < ERRORS * found.value_error
    assert (np.abs(found.gradient - true.gradient) < ERRORS * found.gradient_error).all()
    np.testing.assert_allclose(found.coef, true.coef, rtol=1e-6, atol=1e-6)
    assert found.converged
    assert found.residual <= SOLVING["tol"]
    bad = NoisePreconditioner(N, NOISE)
    plain = estimated_likelihood(ArraySource(K), NOISE, Y, probes, bad, derivative, SOLVING)
    if rank:
        assert found.value_error < 0.7 * plain.value_error
        assert (found.gradient_error < plain.gradient_error).all()


@pytest.mark.slow
def test_many_probes_spread_as_their_error_says(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator
) -> None:
    """The mean of squared deviations over seeds is that of the standard errors."""
    K, Y = kernel(rows), rng.normal(size=(N, 1))
    derivative = ArraySource(kernel.time_derivative().of_rows(rows)).product
    true, own = exact(rows, kernel, NOISE, Y), preconditioner(rows, kernel, NOISE, 20)
    off, said = [], []
    for seed in range(40):
        probes = Probes.seeded(seed, N, 20, 32)
        found = estimated_likelihood(ArraySource(K), NOISE, Y, probes, own, derivative, SOLVING)
        off.append([found.value - true.value, *(found.gradient - true.gradient)])
        said.append([found.value_error, *found.gradient_error])
    squares = np.mean(np.square(said), axis=0)
    assert (np.abs(np.mean(off, axis=0)) < ERRORS * np.sqrt(squares / 40)).all()  # no bias
    ratio = np.mean(np.square(off), axis=0) / squares
    assert ((ratio > 0.4) & (ratio < 2.5)).all()  # 40 squares: a relative deviation of 0.22


@pytest.mark.parametrize("differentiated", [False, True])
def test_repeated_targets_count_as_often_and_passes_are_counted(
    rows: Any, kernel: dhsk.HeatKernel, rng: np.random.Generator, differentiated: bool
) -> None:
    """Value, gradient and their errors of three equal targets are thrice those of one."""
    passes = []

    class Counter(ArraySource):
        def product(self, V: Any) -> Any:
            passes.append(V.shape)
            return super().product(V)

    slope = Counter(kernel.time_derivative().of_rows(rows)).product if differentiated else None
    y, probes = rng.normal(size=(N, 1)), Probes.seeded(0, N, 0, 8)
    own = NoisePreconditioner(N, NOISE)
    one, three = (
        estimated_likelihood(Counter(kernel(rows)), NOISE, Y, probes, own, slope, SOLVING)
        for Y in (y, np.repeat(y, 3, axis=1))
    )
    for name in ("value", "value_error", "gradient", "gradient_error"):
        np.testing.assert_allclose(getattr(three, name), 3 * getattr(one, name), rtol=1e-6)
    assert one.passes + three.passes == len(passes)


def test_determinant_trace_and_draws_of_a_preconditioner(rng: np.random.Generator) -> None:
    """By the definition, and draws by their covariance."""
    F = rng.normal(size=(50, 4))
    made = LowRankPreconditioner(F, np.full(50, 0.3), Threads(1))
    P = F @ F.T + 0.3 * np.eye(50)
    np.testing.assert_allclose(made.log_determinant, np.linalg.slogdet(P)[1], rtol=1e-12)
    np.testing.assert_allclose(made.inverse_trace, np.trace(np.linalg.inv(P)), rtol=1e-12)
    drawn = made.draw(rng.normal(size=(4, 20_000)), rng.normal(size=(50, 20_000)))
    # An entry of the sample covariance deviates by at most sqrt(2) max P / sqrt(20,000).
    np.testing.assert_allclose(drawn @ drawn.T / 20_000, P, atol=ERRORS * P.max() * 0.01)


def test_given_landmarks_make_the_chosen_factor(rows: Any, kernel: dhsk.HeatKernel) -> None:
    """In the order of the choice the factor is the same; and at other times it is theirs."""
    chosen = landmarks_for(rows, kernel, 0.0, 25, 1)
    shift, eye = np.full(N, NOISE), np.eye(N)
    for own in (kernel, dhsk.HeatKernel(12, kernel.time * 20)):  # all but singular at the second
        made = precondition_by(rows, own, chosen, shift, 2)
        between = own(rows, rows[chosen])
        nystrom = between @ np.linalg.pinv(own(rows[chosen]), rcond=1e-13) @ between.T
        P = np.linalg.inv(made.solve(eye))
        np.testing.assert_allclose(P, nystrom + NOISE * eye, atol=1e-6)
