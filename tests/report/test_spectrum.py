"""Effective dimension and covering numbers: bounds that hold, and what the page says of them."""

from dataclasses import replace
from math import log10, pi
from typing import Any

import numpy as np
import pytest

from dhsk.report.spectrum import covering_words, dimension_words, effective_dimension
from dhsk.results.parts import Results
from dhsk.results.schema import read_results


@pytest.mark.parametrize("kept", [1, 5, 19, 20])
@pytest.mark.parametrize("spectrum", ["decaying", "flat", "one"])
def test_bounds_hold_the_effective_dimension(spectrum: str, kept: int) -> None:
    """And meet where they are attained: few equal ones, all equal, nothing left."""
    values = {
        "decaying": 10 * 0.7 ** np.arange(20),
        "flat": np.full(20, 2.0),
        "one": np.eye(1, 20)[0] * 3,
    }[spectrum]
    low, high = effective_dimension(values[:kept], values.sum(), 20)
    whole = (values / (values + 1)).sum()
    assert low - 1e-12 <= whole <= high + 1e-12
    if kept == 20 or spectrum != "decaying":
        assert low == pytest.approx(high) == pytest.approx(whole)


def test_the_upper_bound_holds_for_ritz_values(rng: np.random.Generator) -> None:
    """By concavity: the sum over any orthonormal basis is not below that over eigenvectors."""
    Q = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    values = 10 * 0.7 ** np.arange(20)
    P = np.linalg.qr(rng.standard_normal((20, 5)))[0]
    ritz = np.linalg.eigvalsh(P.T @ (Q * values) @ Q.T @ P)[::-1]
    assert effective_dimension(ritz, values.sum(), 20)[1] >= (values / (values + 1)).sum()


@pytest.fixture
def read(results: Any) -> Results:
    """Typed results."""
    return read_results(Results, results())


def test_the_page_says_what_is_known(read: Results) -> None:
    """One figure if all eigenvalues are there, two bounds, or the upper one of Ritz values."""
    n = read.samples.n_samples
    assert "λ/(λ" in dimension_words(replace(read, trace=float(n)), np.ones(n))
    assert "between" not in dimension_words(
        replace(read, trace=float(n), eigenvalues_exact=True), np.ones(n)
    )
    leading = np.array([0.3 * n, 0.1 * n])
    exact = replace(read, trace=float(n), eigenvalues_exact=True)
    assert "between" in dimension_words(exact, leading)
    ritz = replace(exact, eigenvalues_exact=False)
    assert "at\u00a0most" in dimension_words(ritz, leading)


@pytest.mark.parametrize(
    ("sphere_map", "area"), [("projective", 4 * pi), ("hyperspherical", pi / 2)]
)
def test_the_volume_is_that_of_the_sphere(read: Results, sphere_map: str, area: float) -> None:
    """On the sphere in three dimensions, or one of its eight octants."""
    best = replace(read.best, kernel="heat", time=1e-8)
    samples = replace(read.samples, dim=3, sphere_map=sphere_map)
    said = covering_words(replace(read, best=best, samples=samples))
    assert "Lafferty & Lebanon 2002, theorem 4" in said
    assert "d = 2 " in said
    assert f"10^{round(log10(area * 1e8))}" in said.replace("\u00a0", " ")
    linear = replace(read, best=replace(best, kernel="linear"), samples=samples)
    assert covering_words(linear) == ""
