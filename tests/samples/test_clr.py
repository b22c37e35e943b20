"""Centred log-ratios: the map against exact arithmetic, and at every door."""

from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import dhsk
from dhsk.errors import InputError
from dhsk.samples import apply_map, clr_map

EPS = float(np.finfo(np.float64).eps)

ROUNDINGS = 16
"""Half an eps of the largest logarithm for each: the quotient, two for log1p, 13 for the mean of
100 numbers, which are added in 8 sums; less for the difference and the length."""


CLOSE = 2 * (ROUNDINGS + 2) * EPS / 2
"""Between two images of the same samples, one of rounded proportions (two roundings more): no
logarithm here is larger than the length of them all."""

TOL = 1e-6
"""Of fits; their decisions differ by some of it."""


def counts(n: int = 60, dim: int = 30, seed: int = 0) -> tuple[Any, Any]:
    """Counts of two classes, two thirds of which are zeros, at depths that differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    rates = rng.lognormal(sigma=2, size=dim) * np.where(y[:, None] == np.arange(dim) % 2, 4.0, 1.0)
    return rng.poisson(rates * rng.uniform(0.1, 2, (n, 1))) + np.eye(n, dim), y


def test_against_exact_arithmetic(rng: np.random.Generator) -> None:
    """Of rows of 100 values at all scales, within rounding of their largest logarithm."""
    X = rng.lognormal(sigma=3, size=(8, 100)) * (rng.random((8, 100)) < 0.5)
    X *= 10.0 ** np.array([-305, -200, -20, -1, 1, 20, 200, 300])[:, None]
    found = clr_map(X)
    for row, image in zip(X, found, strict=True):
        with mpmath.workdps(60):
            least = mpmath.mpf(min(row[row > 0]))
            logs = [mpmath.log1p(mpmath.mpf(x) / least) for x in row]
            mean = mpmath.fsum(logs) / len(logs)
            length = mpmath.sqrt(mpmath.fsum((z - mean) ** 2 for z in logs))
            exact = np.array([float((z - mean) / length) for z in logs])
            size = float(max(logs) / length)
        np.testing.assert_allclose(image, exact, rtol=0, atol=ROUNDINGS * EPS / 2 * size)


def test_counts_get_one_more() -> None:
    """Where a sample has a single count: logarithms of counts + 1, as people take them."""
    X, _ = counts()
    logs = np.log1p(X)
    logs -= logs.mean(axis=1, keepdims=True)
    expected = logs / np.linalg.norm(logs, axis=1, keepdims=True)
    np.testing.assert_allclose(clr_map(X), expected, rtol=0, atol=CLOSE)


def test_factors_of_samples_change_nothing() -> None:
    """Powers of two not a bit; proportions are as good as counts."""
    X, _ = counts()
    assert (clr_map(X * 2.0**40) == clr_map(X)).all()
    shares = X / X.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clr_map(shares), clr_map(X), rtol=0, atol=CLOSE)


def test_samples_without_a_direction_are_the_centre() -> None:
    """Zeros, which are counted, and values that are all equal, whatever rounding makes of them."""
    X = np.array([[0.1] * 3, [0.0] * 3, [0.0, 0.0, 0.3]])
    with pytest.warns(dhsk.ZeroRowsWarning, match="1 of 3"):
        rows = clr_map(X)
    np.testing.assert_allclose(rows[:2], np.sqrt(1 / 3), rtol=EPS)
    with pytest.raises(InputError, match=r"row 1 .* all zero"):
        clr_map(X, zero_rows="error")


def test_ratios_out_of_range_count_as_the_largest() -> None:
    """No infinity is made of a value that is 1e320 times another."""
    (row,) = clr_map([[1e-320, 1e10, 0.0, 1.0]])
    assert np.isfinite(row).all()
    assert row @ row == pytest.approx(1)
    assert row[1] == row.max()


def test_what_has_no_logarithm_is_refused() -> None:
    """With the place and what to do; sparse samples before anything is computed of them."""
    with pytest.raises(InputError, match=r"row 0, column 1 .* the clr map needs non-negative"):
        clr_map([[1.0, -1.0]])
    X, y = counts()
    sparse = sp.csr_array(X)
    for call in (
        lambda: apply_map("clr", sparse),
        lambda: dhsk.compute_gram(sparse, dhsk.HeatKernel(30, 0.1), sphere_map="clr"),
        lambda: dhsk.HeatSVC(sphere_map="clr").fit(sparse, y),
        lambda: dhsk.cross_validate(sparse, y, sphere_map="clr"),
    ):
        with pytest.raises(ValueError, match=r"leaves no zeros.* X\.toarray\(\)"):
            call()


def test_matrices_are_those_of_mapped_samples() -> None:
    """A store says which map made it."""
    X, _ = counts()
    kernel = dhsk.HeatKernel(30, 0.1)
    found = dhsk.compute_gram(X, kernel, sphere_map="clr")
    assert found.sphere_map == "clr"
    expected = dhsk.compute_gram(clr_map(X), kernel, sphere_map="identity")
    assert (found[:] == expected[:]).all()


def test_models_keep_the_map(tmp_path: Path) -> None:
    """And predict what scikit-learn does with the matrix."""
    X, y = counts()
    new, _ = counts(seed=1)
    model = dhsk.HeatSVC(time_scale=0.5, C=2.0, sphere_map="clr", tol=TOL).fit(X, y)
    kernel = dhsk.HeatKernel.at_scale(30, 0.5)
    rows, others = clr_map(X), clr_map(new)
    peer = SVC(kernel="precomputed", C=2.0, tol=TOL).fit(kernel.of_rows(rows), y)
    expected = peer.decision_function(kernel.of_rows(others, rows))
    np.testing.assert_allclose(model.decision_function(new), expected, rtol=0, atol=10 * TOL)
    model.save(tmp_path / "model")
    again = dhsk.HeatSVC.load(tmp_path / "model")
    assert (again.decision_function(new) == model.decision_function(new)).all()


def test_a_search_is_that_of_mapped_samples() -> None:
    """The same scores; the code on the page has the map."""
    X, y = counts()
    given: dict[str, Any] = {"kernels": "heat", "cv": 3, "out": dhsk.Output(baselines=False)}
    found = dhsk.cross_validate(X, y, sphere_map="clr", **given)
    expected = dhsk.cross_validate(clr_map(X), y, sphere_map="identity", **given)
    assert [row.score for row in found.rows] == [row.score for row in expected.rows]
