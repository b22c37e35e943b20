"""Rows of samples: checks, norms and inner products, dense and sparse."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dhsk import errors
from dhsk.kernels import as_rows, inner_product, require_unit_rows, squared_norms
from dhsk.kernels import rows as rows_module

EPS = np.finfo(np.float64).eps


def random_rows(rows: int, dim: int, density: float, seed: int) -> np.ndarray:
    """Normal entries, (rows, dim), of which a part is not zero."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, dim)) * (rng.random((rows, dim)) < density)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.bool_, np.float64])
@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_matrix,
                                  sparse.csr_array, sparse.coo_array])  # fmt: skip
def test_any_real_samples_become_float64_rows(dtype, form):
    """Dense and sparse samples of any real dtype keep their values."""
    values = (random_rows(6, 5, 0.5, 0) * 3).astype(dtype)
    rows = as_rows(form(values))
    assert rows.dtype == np.float64
    assert sparse.issparse(rows) == (form not in (np.asarray, np.asfortranarray))
    dense = rows.toarray() if sparse.issparse(rows) else rows
    np.testing.assert_array_equal(dense, values)


def test_good_rows_are_not_copied():
    """A float64 C array and a canonical float64 CSR pass as they are."""
    X = random_rows(6, 5, 0.5, 0)
    assert as_rows(X) is X
    S = sparse.csr_array(X)
    assert np.shares_memory(as_rows(S).data, S.data)


def test_unsorted_sparse_rows_are_sorted_in_a_copy():
    """Duplicates are summed and columns sorted without touching the caller's matrix."""
    matrix = sparse.csr_array(([1.0, 2.0, 4.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    rows = as_rows(matrix)
    assert rows.indices.tolist() == [0, 2]
    assert rows.data.tolist() == [2.0, 5.0]
    assert matrix.indices.tolist() == [2, 0, 2]
    assert matrix.data.tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_entry_that_is_not_finite_is_named(bad, form):
    """The message has the value, the row and the column, past empty rows too."""
    X = np.zeros((5, 4))
    X[0, 1] = 1.0
    X[3, 2] = bad
    with pytest.raises(errors.InputError, match=rf"Y has the value {bad} at row 3, column 2"):
        as_rows(form(X), "Y")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([1.0, 2.0], "must be 2-D, one sample per row, but it has 1 dimensions"),
        (np.zeros((2, 2, 2)), "has 3 dimensions"),
        ([["a", "b"]], "must hold real numbers"),
        ([[1j]], "dtype is complex128"),
        (sparse.csr_array([[1j]]), "dtype is complex128"),
    ],
)
def test_samples_of_another_form_are_refused(samples, message):
    """Samples that are not a 2-D table of real numbers are errors."""
    with pytest.raises(errors.InputError, match=message):
        as_rows(samples)


def test_squared_norms_agree_for_dense_and_sparse():
    """Norms are right, also of empty rows and of no rows."""
    X = random_rows(7, 5, 0.3, 1)
    X[2] = 0.0
    expected = (X**2).sum(axis=1)
    np.testing.assert_allclose(squared_norms(X), expected, rtol=5 * EPS)
    np.testing.assert_allclose(squared_norms(sparse.csr_array(X)), expected, rtol=5 * EPS)
    assert squared_norms(X[:0]).shape == (0,)
    assert squared_norms(sparse.csr_array(X)[:0]).shape == (0,)


def test_first_row_off_the_sphere_is_named():
    """The message has the row's number among all samples and its norm."""
    norms2 = np.ones(5)
    norms2[3:] = 6.25
    with pytest.raises(errors.InputError, match=r"row 103 of X .* has norm 2\.5.*projective_map"):
        require_unit_rows(norms2, first_row=100)


def test_rows_normalised_in_single_precision_count_as_unit_rows():
    """The tolerance lets float32 unit rows pass, in thousands of dimensions."""
    X = np.random.default_rng(0).random((50, 20_000), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    require_unit_rows(squared_norms(as_rows(X)))


@pytest.mark.parametrize("density", [0.005, 0.05, 0.5])
@pytest.mark.parametrize("sparse_x", [False, True])
@pytest.mark.parametrize("sparse_y", [False, True])
def test_inner_products_agree_in_every_form(density, sparse_x, sparse_y):
    """Dense, sparse and mixed blocks give the same products in a new C-ordered array."""
    X, Y = random_rows(40, 300, density, 2), random_rows(30, 300, density, 3)
    rows = sparse.csr_array(X) if sparse_x else X
    columns = sparse.csr_array(Y) if sparse_y else Y
    computed = inner_product(rows, columns)
    assert computed.flags.c_contiguous
    assert computed.flags.owndata or computed.base.flags.owndata
    assert computed.dtype == np.float64
    rounding = 300 * EPS * np.linalg.norm(X, axis=1).max() * np.linalg.norm(Y, axis=1).max()
    np.testing.assert_allclose(computed, X @ Y.T, rtol=0, atol=rounding)


@pytest.mark.parametrize("path", ["sparse", "panels", "dense"])
@pytest.mark.parametrize("block", [8, 3 * 8 * 300, 10**9])
def test_sparse_product_does_not_depend_on_route_and_strips(path, block, monkeypatch):
    """Sparse products, panels and densified ones agree, for strips of one row, of some, of all."""
    monkeypatch.setattr(rows_module, "cheapest_path", lambda *_: path)
    monkeypatch.setattr(rows_module, "DENSE_BYTES", block)
    X, Y = random_rows(20, 300, 0.1, 4), random_rows(17, 300, 0.1, 5)
    computed = inner_product(sparse.csr_array(X), sparse.csr_array(Y))
    rounding = 300 * EPS * np.linalg.norm(X, axis=1).max() * np.linalg.norm(Y, axis=1).max()
    np.testing.assert_allclose(computed, X @ Y.T, rtol=0, atol=rounding)


@pytest.mark.parametrize(("density", "path"), [(0.05, "sparse"), (0.3, "dense")])
def test_route_follows_the_density(density, path):
    """Thin rows are multiplied as sparse matrices and thick ones are not."""
    X = as_rows(sparse.csr_array(random_rows(20, 2000, density, 6)))
    assert rows_module.path_of(X, X, X.shape[1]) == path


@pytest.mark.slow
def test_densifying_stays_within_its_bound(monkeypatch):
    """Temporaries of the dense route stay below three blocks where all of X is 40 blocks."""
    block = 400_000
    monkeypatch.setattr(rows_module, "DENSE_BYTES", block)
    monkeypatch.setattr(rows_module, "cheapest_path", lambda *_: "dense")
    X = as_rows(sparse.random_array((200, 10_000), density=0.02, format="csr", rng=7))
    assert X.shape[0] * X.shape[1] * 8 == 40 * block
    tracemalloc.start()
    try:
        computed = inner_product(X, X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < computed.nbytes + 3 * block + 2 * X.data.nbytes


def test_no_rows_give_an_empty_product():
    """Blocks of no rows multiply to an empty matrix."""
    X = random_rows(4, 5, 0.5, 0)
    assert inner_product(X[:0], X).shape == (0, 4)
    assert inner_product(sparse.csr_array(X)[:0], sparse.csr_array(X)).shape == (0, 4)


def test_empty_columns_change_no_bit_of_sparse_products(rng: np.random.Generator) -> None:
    """Columns without entries are left out of the sums, not of the choice of the path."""
    dense = rng.normal(size=(30, 40)) * (rng.random((30, 40)) < 0.1)
    rows = sparse.csr_array(dense)
    parts = (rows.data, rows.indices.astype(np.int64) * 2**40, rows.indptr)
    wide = sparse.csr_array(parts, shape=(30, 40 * 2**40))
    expected = (rows @ rows.T.tocsr()).toarray()
    np.testing.assert_array_equal(inner_product(wide, wide), expected)


@pytest.mark.parametrize("largest", [1, 700, 900, 5000])
def test_products_of_whole_numbers_are_exact(largest: int) -> None:
    """Small ones in float32, and such as would be rounded there in float64."""
    numbers = np.random.default_rng(largest).integers(-largest, largest, (50, 30), endpoint=True)
    numbers[:, 0] = largest
    rows = sparse.csr_array(numbers.astype(np.float64))
    np.testing.assert_array_equal(inner_product(rows, rows), numbers @ numbers.T)
