"""Traces of functions of a matrix from its products: against its eigenvalues."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.solvers.trace import (
    PROBES,
    SKETCH,
    TraceEstimate,
    sketch_width,
    trace_bytes,
    trace_estimates,
)

SPECTRA = {
    "flat": lambda n: np.full(n, 1 / n),
    "one large": lambda n: np.r_[0.7, np.full(n - 1, 0.3 / (n - 1))],
    "algebraic": lambda n: (1.0 / np.arange(1, n + 1)) ** 1.5,
    "of low rank": lambda n: np.r_[np.full(5, 0.2), np.zeros(n - 5)],
    "exponential": lambda n: np.exp(-np.arange(n) / 3),
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
    return trace_estimates(lambda V: A @ V, len(A), function, narrow, seed)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_the_rules_bracket_the_trace(spectrum: str, function: str) -> None:
    """After every step, where the sketch has all directions; and come together."""
    n = 60
    A = matrix(SPECTRA[spectrum](n))
    values = np.maximum(np.linalg.eigvalsh(A), 0.0)
    trace, rounded = FUNCTIONS[function](values).sum(), ROUNDED
    if function == "square root":
        rounded = 1e-6  # of eigenvalues that are 0 to 1e-16
    found = list(islice(estimates(A, FUNCTIONS[function]), 12))
    for one in found:
        assert one.low <= trace * (1 + rounded) + 1e-15
        assert one.high >= trace * (1 - rounded) - 1e-15
    widths = [one.high - one.low for one in found]
    assert widths[-1] <= widths[0]
    assert found[-1].value == pytest.approx(trace, rel=1e-3)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_random_vectors_estimate_the_rest(spectrum: str, function: str) -> None:
    """To five standard errors and the bracket."""
    A = matrix(SPECTRA[spectrum](400))
    trace = FUNCTIONS[function](np.maximum(np.linalg.eigvalsh(A), 0.0)).sum()
    found = next(islice(estimates(A, FUNCTIONS[function]), 19, None))
    allowed = 5 * found.error + (found.high - found.low) / 2 + 1e-6 * trace
    assert abs(found.value - trace) <= allowed
    assert found.error < 0.05 * trace


def test_the_standard_error_is_that_of_estimates() -> None:
    """Of forty seeds, whose mean is the trace."""
    A = matrix(SPECTRA["algebraic"](300))
    function = FUNCTIONS["x log x"]
    trace = function(np.maximum(np.linalg.eigvalsh(A), 0.0)).sum()
    found = [next(islice(estimates(A, function, seed), 15, None)) for seed in range(40)]
    errors = np.array([one.value - trace for one in found])
    said = np.sqrt(np.mean([one.error**2 for one in found]))
    # The deviation of forty is off by a ninth, in one standard error.
    assert said == pytest.approx(errors.std(ddof=1), rel=0.45)
    assert abs(errors.mean()) <= 4 * said / np.sqrt(40)


def test_more_vectors_begin_when_the_rules_are_near() -> None:
    """The error falls with the root of their number; the first product has the sketch too."""
    A = matrix(SPECTRA["flat"](300))
    widths = []

    def multiply(V: Any) -> Any:
        widths.append(V.shape[1])
        return A @ V

    def narrow(found: TraceEstimate) -> bool:
        return found.high - found.low < 1e-6

    found = list(islice(trace_estimates(multiply, 300, FUNCTIONS["x^1.5"], narrow, 0), 8))
    assert widths[:4] == [SKETCH, SKETCH, SKETCH, SKETCH + PROBES]
    assert set(widths[5:]) == {PROBES}
    assert found[-1].error < found[0].error / 1.8


def test_indefinite_matrices_are_refused() -> None:
    """With the eigenvalue."""
    A = matrix(np.r_[1.0, np.full(99, 0.01)]) - 0.02 * np.eye(100)
    with pytest.raises(InputError, match=r"an eigenvalue of -0\.0\d+ or less beside one of 0\.\d+"):
        list(islice(estimates(A, np.sqrt), 30))


def test_memory_grows_slower_than_the_samples() -> None:
    """A million samples have a narrower sketch, and a gigabyte for each ten million numbers."""
    assert [sketch_width(n) for n in (50, 1000, 200_000, 10**7)] == [50, SKETCH, 100, 32]
    assert trace_bytes(10**6) < 5e9


def test_one_rule_has_the_node_0() -> None:
    """A function that is 1 above 0 has the whole weight by Gauss's rule, and less by the other."""
    A = matrix(SPECTRA["algebraic"](400) + 0.001)
    found = next(estimates(A, lambda x: (x > 1e-12).astype(float)))
    assert found.high == pytest.approx(400, rel=0.02)
    assert found.low < found.high - 10


@pytest.mark.parametrize("function", ["x log x", "square root", "x^1.5"])
def test_the_rules_bracket_where_they_end(function: str) -> None:
    """Of random vectors, whose exact forms are those of the last step, to what is left open."""
    A = matrix(SPECTRA["algebraic"](400) + 0.001)
    *found, last = islice(estimates(A, FUNCTIONS[function]), 20)
    assert last.high - last.low < 1e-3 * (found[0].high - found[0].low)
    for one in found:
        assert one.low <= last.high * (1 + ROUNDED)
        assert one.high >= last.low * (1 - ROUNDED)
    assert found[0].high > found[1].high
    assert found[0].low < found[1].low
