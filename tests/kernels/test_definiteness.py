"""Gram matrices of the heat kernel: positive semi-definite, and 1 between duplicates."""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky

from dhsk import hyperspherical_map
from dhsk.kernels import HeatKernel

ROWS = 2000
WIDTH = 500  # columns in use where dim is larger: the others are empty, so that rows fit in memory
DENSITY = 0.1  # of those columns
KINDS = ["sphere", "orthant", "clusters", "duplicates"]
PRECISIONS = [np.float64, np.float32]


def random_parameters(count: int, seed: int) -> list[tuple[int, float]]:
    """Pairs (dim, time), log-uniform over the promised domain, its two parts in turn."""
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(count):
        most, least = ((1e6, 0.2), (1e4, 0.05))[i % 2]
        dim = round(math.exp(rng.uniform(math.log(2), math.log(most))))
        scale = math.exp(rng.uniform(math.log(least), math.log(50.0)))
        pairs.append((dim, scale * math.log(dim) / dim))
    return pairs


def unit_rows(kind, dim, number, rng):
    """Random unit rows on all the sphere, in the positive orthant, in clusters, with duplicates."""
    X = rng.normal(size=(ROWS, min(dim, WIDTH)))
    if dim > WIDTH:
        X *= rng.random(X.shape) < DENSITY
    if kind == "orthant":
        X = np.abs(X)
    if kind == "clusters":
        # Squared, 1 - c in a cluster is sqrt(eps): as far above the rounding of c as below 1.
        spread = float(np.finfo(number).eps) ** 0.25
        X = X[rng.integers(0, 20, ROWS)] * (1 + spread * rng.normal(size=X.shape))
    if kind == "duplicates":
        X = X[rng.integers(0, ROWS // 4, ROWS)]
    X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(number)
    if dim <= WIDTH:
        return X
    compact, columns = sparse.csr_array(X), np.sort(rng.choice(dim, WIDTH, replace=False))
    entries = compact.data, columns[compact.indices], compact.indptr
    return sparse.csr_array(entries, shape=(ROWS, dim))


def gram_matrix(kernel, rows):
    """Gram matrix, evaluated in the precision of the rows throughout."""
    return kernel(rows) if rows.dtype == np.float64 else kernel.of_rows(rows)


def no_eigenvalue_below(gram, bound):
    """Whether a Cholesky factorisation proves it.

    The factor's rows have norm 1, so it is exact to a few eps in each entry, however large the
    largest eigenvalue. Measured, that moves the smallest by less than 0.1 rows eps: left for it.

    Where all entries are 1 but for a few eps these add up, by the number of BLAS threads. There
    1 - K is exact, and K, of which 1'K1 / rows is almost rows, has no eigenvalue below the bound if
    the part of K - 1 that is orthogonal to 1 has none: their coupling is at most rows 1e-18.
    """
    shifted = gram.astype(np.float64)
    if shifted.min() > 1 - 1e-9:
        shifted -= 1.0
        means = shifted.mean(axis=0)
        shifted += means.mean() - means - means[:, None]
    shifted.flat[:: len(gram) + 1] -= 0.9 * bound
    try:
        cholesky(shifted, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize(("number", "count"), [(np.float64, 10), (np.float32, 4)])
@pytest.mark.parametrize("kind", KINDS)
def test_gram_matrices_are_positive_semidefinite(kind, number, count):
    """At random (dim, time), no eigenvalue of 2,000 rows lies below -2,000 eps."""
    bound = -ROWS * float(np.finfo(number).eps)
    for dim, time in random_parameters(count, seed=31 + KINDS.index(kind)):
        rows = unit_rows(kind, dim, number, np.random.default_rng(dim))
        gram = gram_matrix(HeatKernel(dim, time), rows)
        assert gram.dtype == number
        assert no_eigenvalue_below(gram, bound), (dim, time)


def test_factorisation_tells_eigenvalues_of_the_bounds_size():
    """All ones less half of the bound times the identity passes, and less twice of it does not."""
    bound = -ROWS * float(np.finfo(np.float64).eps)
    ones, identity = np.ones((ROWS, ROWS)), np.eye(ROWS)
    assert no_eigenvalue_below(ones + 0.5 * bound * identity, bound)
    assert not no_eigenvalue_below(ones + 2.0 * bound * identity, bound)


def counts_by_row(dim, rng):
    """Sparse and full rows of counts, half of them of 0 and 1 only: equal terms round alike."""
    filled = rng.random((60, 1)) ** 2
    counts = rng.integers(1, 6, (60, dim)) * (rng.random((60, dim)) < filled)
    counts[30:] = counts[30:] > 0
    counts[:, 0] += 1  # no zero row
    return counts.astype(float)


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("number", PRECISIONS)
@pytest.mark.parametrize("dim", [2, 3, 5, 17, 50, 200, 393, 1000, 3000, 10_000])
def test_equal_counts_have_exactly_1(dim, number, form):
    """Equal rows, and three times their counts, have K = 1 to the bit, and no K passes 1."""
    counts = counts_by_row(dim, np.random.default_rng(dim))
    X = hyperspherical_map(form(np.concatenate([counts, counts, 3 * counts])))
    kernel = HeatKernel.at_scale(dim, 0.3)
    same = X.astype(number)
    of_rows = kernel.of_rows(same), kernel.of_rows(same, same.copy())
    assert {values.dtype for values in of_rows} == {np.dtype(number)}
    for values in (*of_rows, kernel(X), kernel(X, X.copy())):
        assert values.max() == 1.0
        for offset in (0, 60, 120):
            assert (np.diagonal(values, offset) == 1.0).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("number", PRECISIONS)
def test_near_rows_are_not_taken_for_equal(number, form):
    """Other signs and other orders make other rows; -0 instead of 0 does not."""
    small = 0.3  # the product of such a row with itself rounds below 1 in both types
    rows = np.array([[1, small, 0], [1, -small, 0], [1, 0, small], [small, 1, 0]])
    rows = (rows / np.hypot(1, small)).astype(number)
    minus_zero = rows[:1] * np.array([1, 1, -1], dtype=number)
    values = HeatKernel(3, 0.1).of_rows(form(rows), form(np.concatenate([rows, minus_zero])))
    assert values[0, 4] == 1.0
    assert ((values[:, :4] == 1.0) == np.eye(4, dtype=bool)).all()


def test_a_dense_row_equals_its_sparse_form():
    """The two forms of one row are equal rows."""
    X = np.random.default_rng(5).poisson(0.5, (30, 40)) + np.eye(30, 40)
    unit = hyperspherical_map(X)
    values = HeatKernel.at_scale(40, 0.3).of_rows(unit, sparse.csr_array(unit))
    assert (np.diagonal(values) == 1.0).all()
