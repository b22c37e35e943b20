"""Traces of functions of a matrix from its products: against its eigenvalues."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.solvers.trace import (
    PROBES,
    TraceEstimate,
    trace_bytes,
    trace_estimates,
)

SPECTRA = {
    "flat": lambda n: np.full(n, 1 / n),
    "one large": lambda n: np.r_[0.7, np.full(n - 1, 0.3 / (n - 1))],
    "algebraic": lambda n: (1.0 / np.arange(1, n + 1)) ** 1.5,
    "of low rank": lambda n: np.r_[np.full(5, 0.2), np.zeros(n - 5)],
    "exponential": lambda n: np.exp(-np.arange(n) / 3),
    "many of almost 0": lambda n: np.r_[0.5 ** np.arange(20), np.logspace(-13, -18, n - 20)],
}

FUNCTIONS = {
    "x log x": lambda x: -x * np.log(np.maximum(x, 1e-300)),
    "square root": np.sqrt,
    "x^1.5": lambda x: x**1.5,
    "x^3": lambda x: x**3,
}

ROUNDED = 1e-9
"""Share of a trace by which rounding moves it: that of the products, 1e-16, and the square root of
eigenvalues that are 0 to 1e-16 of the largest, n of them."""


def matrix(eigenvalues: Any, seed: int = 0) -> Any:
    """A random matrix of these eigenvalues, which sum to 1."""
    n = len(eigenvalues)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    return (Q * (eigenvalues / eigenvalues.sum())) @ Q.T


def estimates(A: Any, function: Any, seed: int = 0, narrow: Any = lambda _: False) -> Any:
    """Estimates without an end."""
    known = (np.trace(A), (A**2).sum())
    return trace_estimates(lambda V: A @ V, len(A), function, narrow, seed, known, fewest=2)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_the_rules_bracket_the_trace(spectrum: str, function: str) -> None:
    """After every step, of diagonal matrices, whose forms of signs are all the trace."""
    values = SPECTRA[spectrum](400)
    values = values / values.sum()
    trace, rounded = FUNCTIONS[function](values).sum(), ROUNDED
    if function == "square root":
        rounded = 1e-6  # of eigenvalues that are 0 to 1e-16
    every = islice(estimates(np.diag(values), FUNCTIONS[function]), 8)
    found = [one for one in every if np.isfinite(one.error)]
    assert found
    for one in found:
        assert one.low <= trace * (1 + rounded)
        assert one.high >= trace * (1 - rounded)
    assert found[-1].value == pytest.approx(trace, rel=1e-3)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_random_vectors_estimate_the_rest(spectrum: str, function: str) -> None:
    """To five standard errors, 2.5 times what is said, and the bracket."""
    A = matrix(SPECTRA[spectrum](400))
    trace = FUNCTIONS[function](np.maximum(np.linalg.eigvalsh(A), 0.0)).sum()
    every = islice(estimates(A, FUNCTIONS[function]), 7)
    found = [one for one in every if np.isfinite(one.error)][-1]
    allowed = 2.5 * found.error + (found.high - found.low) / 2 + 1e-6 * trace
    assert abs(found.value - trace) <= allowed
    assert found.error < 0.05 * trace


@pytest.mark.parametrize("spectrum", ["one large", "algebraic", "exponential"])
def test_the_error_covers_the_trace(spectrum: str) -> None:
    """For 95 % of seeds: of forty, fewer than 32 come once in three thousand times."""
    A = matrix(SPECTRA[spectrum](300))
    function = FUNCTIONS["x log x"]
    trace = function(np.maximum(np.linalg.eigvalsh(A), 0.0)).sum()
    found = [next(islice(estimates(A, function, seed), 5, None)) for seed in range(40)]
    off = np.array([one.value - trace for one in found])
    said = np.array([one.error + (one.high - one.low) / 2 for one in found])
    assert (abs(off) <= said + ROUNDED).sum() >= 32
    # The error is that of draws, which is not far above their deviation.
    assert np.median(said) <= 3.5 * off.std() + ROUNDED


def test_known_traces_take_the_error_of_draws() -> None:
    """All of it from a quadratic function, at the second step."""
    A = matrix(SPECTRA["algebraic"](400))
    *_, found = islice(estimates(A, lambda x: 3 * x - 2 * x**2), 2)
    # A ridge of 1e-6 leaves its square, by the square of how alike both forms are.
    assert found.value == pytest.approx(3 - 2 * (A**2).sum(), rel=1e-6)
    assert found.error < 1e-6


def test_no_error_is_said_before_the_rules_bracket() -> None:
    """Of x^3, whose third derivative is positive as the second is, after one step."""
    values = SPECTRA["algebraic"](400)
    values = values / values.sum()
    first, second = islice(estimates(np.diag(values), FUNCTIONS["x^3"]), 2)
    assert first.high < (values**3).sum() * (1 - 1e-6)
    assert np.isinf(first.error)
    assert second.value == pytest.approx((values**3).sum(), rel=ROUNDED)


def test_more_vectors_begin_when_the_rules_are_near() -> None:
    """The error falls with the root of their number."""
    A = matrix(SPECTRA["algebraic"](300))
    widths, ended = [], []

    def multiply(V: Any) -> Any:
        widths.append(V.shape[1])
        return A @ V

    def narrow(found: TraceEstimate) -> bool:
        near = found.high - found.low < 1e-3
        if near:
            ended.append(found.error)
        return near

    asked = trace_estimates(multiply, 300, FUNCTIONS["x log x"], narrow, 0, (1.0, (A**2).sum()))
    list(islice(asked, 50))
    assert set(widths) == {PROBES}
    assert len(ended) >= 8
    assert ended[7] < ended[0] / 2


def test_indefinite_matrices_are_refused() -> None:
    """With the eigenvalue."""
    A = matrix(np.r_[1.0, np.full(99, 0.01)]) - 0.02 * np.eye(100)
    with pytest.raises(InputError, match=r"an eigenvalue of -0\.0\d+ or less beside one of 0\.\d+"):
        list(islice(estimates(A, np.sqrt), 30))


def test_memory_of_a_million_samples() -> None:
    """A million have eight gigabytes of vectors."""
    assert trace_bytes(10**6) < 9e9


def test_one_rule_has_the_node_0() -> None:
    """A function that is 1 above 0 has the whole weight by Gauss's rule, and less by the other."""
    A = matrix(SPECTRA["algebraic"](400) + 0.001)
    found = next(estimates(A, lambda x: (x > 1e-12).astype(float)))
    assert found.high == pytest.approx(400, rel=0.02)
    assert found.low < found.high - 10
