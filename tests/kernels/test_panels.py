"""Products of rows of few entries: exact sums, the same bits in every form, and when they pay."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dhsk.kernels import panels as module
from dhsk.kernels import rows as rows_module
from dhsk.kernels.panels import DENSE_FEATURES, LEAST_ROWS, panel_product
from dhsk.kernels.rows import cheapest_path, inner_product

EPS = float(np.finfo(np.float64).eps)

TYPES = (np.float32, np.float64)


def samples(n: int, d: int, share: float, dtype: Any, seed: int = 0) -> Any:
    """Random rows of which a share of entries is not 0; the first row is empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    X[0] = 0.0
    return X.astype(dtype)


def multiplied(X: Any, Y: Any) -> Any:
    """The product by panels."""
    out = np.full((X.shape[0], Y.shape[0]), np.nan, X.dtype)
    panel_product(X, Y, out)
    return out


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("d", [1, 2, 7, 40, 123])
@pytest.mark.parametrize("columns", [1, 63, 64, 65, 128, 300])
def test_sums_are_rounded_once_a_term(dtype: Any, d: int, columns: int) -> None:
    """Each entry is off by at most the bound of d rounded multiply-adds, (d u) |x| |y|.

    The bound is that of Higham, "Accuracy and Stability of Numerical Algorithms", section 3.1.
    """
    X, Y = samples(40, d, 0.6, dtype, 1), samples(columns, d, 0.6, dtype, 2)
    of_sizes = np.abs(X).astype(np.float64) @ np.abs(Y.T).astype(np.float64)
    bound = d * np.finfo(dtype).eps * of_sizes + d * EPS * of_sizes
    exact = X.astype(np.float64) @ Y.T.astype(np.float64)
    assert (np.abs(multiplied(X, Y) - exact) <= bound).all()


def test_a_sum_is_that_of_fused_multiply_adds() -> None:
    """In the order of the features, each rounded once: by hand, in fractions."""
    X, Y = samples(33, 5, 1.0, np.float64, 3), samples(33, 5, 1.0, np.float64, 4)
    found = multiplied(X, Y)
    for i, j in ((1, 1), (7, 32), (32, 7)):
        total = 0.0
        for x, y in zip(X[i].tolist(), Y[j].tolist(), strict=True):
            total = float(Fraction(x) * Fraction(y) + Fraction(total))
        assert found[i, j] == total


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_form_has_the_same_bits(
    dtype: Any, index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dense or CSR, both factors exchanged, at other places, and in strips of one panel."""
    X, Y = samples(70, 40, 0.3, dtype, 5), samples(200, 40, 0.3, dtype, 6)
    whole = multiplied(X, Y)

    def csr(A: Any) -> Any:
        found: Any = sparse.csr_array(A)
        parts = (found.data, found.indices.astype(index), found.indptr.astype(index))
        return sparse.csr_array(parts, shape=found.shape)

    np.testing.assert_array_equal(multiplied(csr(X), csr(Y)), whole)
    np.testing.assert_array_equal(multiplied(csr(Y), csr(X)).T, whole)
    np.testing.assert_array_equal(multiplied(X[3:40], Y[11:]), whole[3:40, 11:])
    monkeypatch.setattr(module, "_STRIP_BYTES", 1)
    np.testing.assert_array_equal(multiplied(csr(X), csr(Y)), whole)
    np.testing.assert_array_equal(multiplied(X, Y), whole)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_few_entries_are_multiplied_by_panels(
    dtype: Any, form: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inner products of a narrow table, or of thin rows, are these; those of few rows are not."""
    calls: list[int] = []
    monkeypatch.setattr(
        rows_module, "panel_product", lambda X, Y, out: calls.append(panel_product(X, Y, out) or 1)
    )
    width = 5 if form is np.asarray else 123
    X = samples(LEAST_ROWS, width, 0.1, dtype)
    rows = form(X)
    np.testing.assert_allclose(inner_product(rows, rows), X @ X.T, atol=1e-5)
    assert len(calls) == 1
    inner_product(rows[1:], rows)
    assert len(calls) == 1


def test_the_path_is_the_cheapest() -> None:
    """Tables of categories go by panels, full rows by GEMM, and texts entry by entry."""
    assert cheapest_path(14**2 / 123, 14, 123) == "panels"
    assert cheapest_path(100.0, 110, 123) == "dense"
    assert cheapest_path(100**2 / 50_000, 100, 50_000) == "sparse"
    assert cheapest_path(1.0, math.inf, 123) == "sparse"


def test_bounds_of_features_are_by_type() -> None:
    """Narrow tables of float64 give way to GEMM sooner."""
    assert DENSE_FEATURES[8] < DENSE_FEATURES[4]
    for dtype in TYPES:
        most = DENSE_FEATURES[np.dtype(dtype).itemsize]
        X = samples(LEAST_ROWS, most, 1.0, dtype)
        assert module.suits_dense(X, X)
        X = samples(LEAST_ROWS, most + 1, 1.0, dtype)
        assert not module.suits_dense(X, X)
