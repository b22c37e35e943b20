"""Sparse rows that stand for the centre of the orthant are it, in every product."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.kernels import inner_product, squared_norms
from dhsk.kernels.centre import marked_rows, with_all_entries, with_centres

DIM = 29
EMPTY = [0, 3, 4, 11]


@pytest.fixture
def rows(rng):
    """Unit rows with four of zeros, the first and the last among them."""
    X = rng.poisson(0.4, (12, DIM)) + np.eye(12, DIM)
    X[EMPTY] = 0
    return np.sqrt(X / np.maximum(X.sum(axis=1, keepdims=True), 1))


def three_forms(rows, dtype):
    """Dense; sparse with all entries of the centre; sparse with one that stands for it."""
    zero = np.array(EMPTY)
    compact = with_centres(csr_array(rows), zero)
    forms = [with_centres(rows.copy(), zero), with_all_entries(compact), compact]
    return [form.astype(dtype) for form in forms]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_and_norms_do_not_depend_on_the_form(rows, dtype):
    """Dense, sparse and compact rows have the same cosines, to rounding, and unit norms."""
    rounding = 8 * DIM**0.5 * np.finfo(dtype).eps
    forms = three_forms(rows, dtype)
    expected = forms[0].astype(float) @ forms[0].astype(float).T
    for X, Y in product(forms, forms):
        np.testing.assert_allclose(inner_product(X, Y), expected, rtol=0, atol=rounding)
    for X in forms:
        np.testing.assert_allclose(squared_norms(X), 1.0, rtol=0, atol=rounding)
    out = np.empty((12, 12), dtype)
    assert inner_product(forms[2], forms[2], out) is out
    assert (out[np.ix_(EMPTY, EMPTY)] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [dhsk.HeatKernel.at_scale(DIM, 0.7), dhsk.LinearKernel(), dhsk.GaussianKernel(0.3)],
    ids=lambda kernel: kernel.name,
)
def test_kernels_take_it(rows, kernel):
    """Those of a cosine, of a product and of a distance."""
    dense, _, compact = three_forms(rows, "float64")
    np.testing.assert_allclose(kernel.of_rows(compact), kernel.of_rows(dense), atol=1e-13)
    np.testing.assert_allclose(kernel.of_rows(compact, dense), kernel.of_rows(dense), atol=1e-13)


def test_its_entries_are_one_a_row(rows):
    """So many empty rows take no memory; and they keep their places."""
    _, whole, compact = three_forms(rows, "float64")
    others = np.count_nonzero(rows)
    assert (whole.nnz, compact.nnz) == (others + 4 * DIM, others + 4)
    assert np.flatnonzero(marked_rows(compact)).tolist() == EMPTY
    assert marked_rows(whole) is None
    assert marked_rows(csr_array(rows)) is None
    assert marked_rows(csr_array((3, DIM))) is None


def test_what_does_not_know_of_it_gets_no_number(rows):
    """Other arithmetic gives NaN, and a kernel called with such rows refuses them."""
    compact = three_forms(rows, "float64")[2]
    assert np.isnan((compact @ np.ones(DIM))[EMPTY]).all()
    with pytest.raises(dhsk.InputError, match="row 0, column 0"):
        dhsk.CosineKernel()(compact)
