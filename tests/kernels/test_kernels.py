"""What holds for every kernel: symmetry, dense and sparse rows, errors, specs, pickles."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dhsk import errors
from dhsk.kernels import (
    CosineKernel,
    GaussianKernel,
    HeatKernel,
    Kernel,
    LinearKernel,
    ParametrixKernel,
    PolynomialKernel,
    kernel_from_spec,
    squared_norms,
)
from dhsk.kernels.base import STRIP, mirror_upper

EPS = np.finfo(np.float64).eps
DIM = 40

KERNELS = [
    HeatKernel.at_scale(DIM, 0.7),
    ParametrixKernel.at_scale(DIM, 0.7),
    ParametrixKernel.at_scale(DIM, 0.7, order=1),
    CosineKernel(),
    LinearKernel(),
    GaussianKernel(1 / 3),
    PolynomialKernel(3, 0.1),
]
SPHERICAL = [kernel for kernel in KERNELS if kernel.spherical]
BOUNDED = [kernel for kernel in SPHERICAL if getattr(kernel, "order", None) is None]


def by_name(kernel: Kernel) -> str:
    """Test id."""
    return kernel.name


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=by_name)
every_spherical_kernel = pytest.mark.parametrize("kernel", SPHERICAL, ids=by_name)


@every_kernel
def test_gram_matrix_is_symmetric_bit_for_bit(kernel, unit_rows):
    """Without Y the matrix equals its transpose, dense and sparse, over several mirror blocks."""
    X = unit_rows(600, DIM)
    for rows in (X, sparse.csr_array(X)):
        gram = kernel(rows)
        np.testing.assert_array_equal(gram, gram.T)


@every_kernel
def test_gram_matrix_has_the_values_of_the_rectangle(kernel, unit_rows):
    """The symmetric matrix and the rectangle of the same rows agree to rounding."""
    X = unit_rows(50, DIM)
    np.testing.assert_allclose(kernel(X), kernel(X, X.copy()), rtol=0, atol=value_rounding(kernel))


@every_kernel
def test_diagonal_is_exactly_1_where_the_kernel_says_so(kernel, unit_rows):
    """Spherical kernels and the Gaussian have K(x, x) = 1 to the bit."""
    if kernel.unit_diagonal:
        assert (np.diagonal(kernel(unit_rows(50, DIM))) == 1.0).all()
    assert kernel.unit_diagonal == (kernel.spherical or kernel.name == "gaussian")


def value_rounding(kernel: Kernel) -> float:
    """Rounding of the cosine (dim eps, twice) times the steepest slope, and of the function."""
    slopes = {
        "heat": 1 / (2 * getattr(kernel, "time", 1.0)),
        "parametrix": 1 / (2 * getattr(kernel, "time", 1.0)),
        "gaussian": 9.0,  # 1/sigma²
        "polynomial": 3 * 1.1**2,
    }
    return (2 * DIM * slopes.get(kernel.name, 1.0) + 60) * EPS


@every_kernel
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
def test_dense_and_sparse_rows_agree(kernel, form, unit_rows):
    """CSR rows give the values of the dense ones, in every combination."""
    X, Y = unit_rows(30, DIM, seed=1), unit_rows(20, DIM, seed=2)
    expected = kernel(X, Y)
    for rows, columns in [(form(X), form(Y)), (form(X), Y), (X, form(Y))]:
        np.testing.assert_allclose(
            kernel(rows, columns), expected, rtol=0, atol=value_rounding(kernel)
        )


def rows_of_quarters(count: int, seed: int) -> np.ndarray:
    """Unit rows, (count, DIM), whose inner products are exact in any order of their terms."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, DIM))
    rows[:, :16] = 0.25 * rng.choice([-1.0, 1.0], (count, 16))
    return rng.permuted(rows, axis=1)


@every_kernel
def test_of_product_is_what_the_call_uses(kernel):
    """Values from products and norms are those from rows, and may overwrite the products."""
    X, Y = rows_of_quarters(30, seed=1), rows_of_quarters(20, seed=2)
    product = X @ Y.T
    values = kernel.of_product(product, squared_norms(X), squared_norms(Y))
    np.testing.assert_array_equal(values, kernel(X, Y))
    assert np.shares_memory(values, product)


@every_kernel
def test_of_product_makes_no_temporary_of_the_tiles_size(kernel):
    """An 8 MB tile is worked on in place, with at most six strips beside it."""
    product = np.random.default_rng(0).uniform(-1, 1, (1000, 1000))
    norms2 = np.ones(1000)
    kernel.of_product(product[:2], norms2[:2], norms2)  # constants, and code that is compiled
    tracemalloc.start()
    try:
        kernel.of_product(product, norms2, norms2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 8 * STRIP


@every_kernel
def test_of_product_takes_a_strided_tile(kernel, unit_rows):
    """A tile that is a view of a larger array has the same values."""
    X = unit_rows(30, DIM)
    norms2 = squared_norms(X)
    product = X @ X.T
    expected = kernel.of_product(product[:, ::2].copy(), norms2, norms2[::2])
    strided = product[:, ::2]
    np.testing.assert_array_equal(kernel.of_product(strided, norms2, norms2[::2]), expected)


@every_spherical_kernel
def test_of_cosine_is_what_the_call_uses(kernel):
    """Values from cosines are those from rows."""
    X, Y = rows_of_quarters(30, seed=1), rows_of_quarters(20, seed=2)
    np.testing.assert_array_equal(kernel.of_cosine(X @ Y.T), kernel(X, Y))


@pytest.mark.slow(beyond=4)
@every_spherical_kernel
@pytest.mark.parametrize("given", ["float64", "float32"])
@pytest.mark.parametrize("wanted", ["float64", "float32"])
def test_evaluate_keeps_the_cosines_and_rounds_to_the_type_asked_for(kernel, given, wanted):
    """Values of another type are those of the cosines' own type, converted, to the last entry."""
    cosines = np.random.default_rng(0).uniform(-1, 1, (7, STRIP // 4)).astype(given)
    kept, values = cosines.copy(), np.full(cosines.shape, 7, wanted)
    kernel.evaluate(cosines, values)
    np.testing.assert_array_equal(values, kernel.of_cosine(cosines).astype(wanted))
    np.testing.assert_array_equal(cosines, kept)


@pytest.mark.parametrize("kernel", BOUNDED, ids=by_name)  # an expansion may exceed 1
def test_equal_rows_in_two_sets_stay_at_most_1(kernel, unit_rows):
    """Cosines that round above 1 are clipped."""
    X = unit_rows(200, DIM)
    assert kernel(X, X.copy()).max() <= 1.0


@every_kernel
def test_empty_sets_give_empty_matrices(kernel, unit_rows):
    """No rows give a matrix of no rows."""
    X = unit_rows(3, DIM)
    assert kernel(X[:0], X).shape == (0, 3)
    assert kernel(X[:0]).shape == (0, 0)


@every_spherical_kernel
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_row_off_the_sphere_is_refused(kernel, form, unit_rows):
    """A spherical kernel names the first row that is not a unit vector, and its norm."""
    X = unit_rows(5, DIM)
    X[3] *= 2
    with pytest.raises(errors.InputError, match=r"row 3 of Y .* norm 2,.*hyperspherical_map"):
        kernel(unit_rows(2, DIM), form(X))


def test_rows_of_another_dimension_are_refused(unit_rows):
    """The heat kernel of dim 40 names both numbers when given 7 columns."""
    with pytest.raises(errors.InputError, match="X has 7 columns, but this heat kernel has dim=40"):
        HeatKernel(DIM, 0.1)(unit_rows(3, 7))


def test_sets_of_different_dimension_are_refused():
    """X and Y need the same number of columns."""
    with pytest.raises(errors.InputError, match="X has 3 columns and Y has 4"):
        LinearKernel()(np.ones((2, 3)), np.ones((2, 4)))


def test_mirror_copies_the_upper_triangle():
    """The mirror keeps the upper triangle, over several blocks."""
    values = np.arange(600.0**2).reshape(600, 600)
    upper = np.triu(values)
    mirror_upper(values)
    np.testing.assert_array_equal(values, upper + np.triu(upper, 1).T)


@every_kernel
def test_spec_survives_json_exactly(kernel):
    """A kernel comes back equal from its JSON description."""
    spec = json.loads(json.dumps(kernel.to_spec()))
    assert spec["name"] == kernel.name
    assert kernel_from_spec(spec) == kernel


def test_spec_names_the_parameters():
    """The description holds the name and the parameters, nothing else."""
    assert HeatKernel(64, 0.065).to_spec() == {"name": "heat", "dim": 64, "time": 0.065}
    assert CosineKernel().to_spec() == {"name": "cosine"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "rbf"}, "unknown kernel 'rbf': choose one of heat, parametrix, cosine"),
        ({"name": "smoothed", "kernel": {"name": "rbf"}, "alpha": 1}, "unknown kernel 'rbf'"),
        ({"name": "smoothed", "kernel": "heat", "alpha": 1}, "only kernels of a cosine"),
        ({}, "unknown kernel None"),
        ({"name": ["heat"]}, "unknown kernel"),
        ({"name": "heat", "dim": 3}, "kernel 'heat' does not take .*time"),
        ({"name": "linear", "gamma": 1.0}, "kernel 'linear' does not take .*gamma"),
        ({"name": "heat", "dim": 1, "time": 1.0}, "dim must be a whole number"),
    ],
)
def test_wrong_spec_is_refused(spec, message):
    """An unknown name or parameter is an error that says which."""
    with pytest.raises(errors.InputError, match=message):
        kernel_from_spec(spec)


@every_kernel
def test_kernels_pickle_and_compare_by_parameters(kernel):
    """A pickled copy is equal and hashes equal; another class or parameter is not."""
    copy = pickle.loads(pickle.dumps(kernel))
    assert copy == kernel
    assert hash(copy) == hash(kernel)
    assert sum(kernel == other for other in KERNELS) == 1
    assert HeatKernel(3, 0.1) != HeatKernel(3, 0.2)


def test_kernels_are_frozen():
    """Parameters cannot be changed."""
    with pytest.raises(AttributeError, match="cannot assign"):
        KERNELS[0].time = 1.0


@pytest.mark.parametrize(
    ("kernel", "label"),
    [
        (HeatKernel.at_scale(393, 1.0), "heat t=0.0152"),
        (ParametrixKernel(0.25), "parametrix t=0.25"),
        (CosineKernel(), "cosine"),
        (LinearKernel(), "linear"),
        (GaussianKernel(1.5), "gaussian sigma=1.5"),
        (PolynomialKernel(2, 1), "polynomial degree=2 offset=1"),
    ],
)
def test_labels_are_short(kernel, label):
    """Labels for tables hold the name and rounded parameters."""
    assert kernel.label == label
