"""Kernels of smoothed counts against the dense smoothed map, in sparse memory."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array, random_array

import dhsk
from dhsk import errors
from dhsk.kernels import (
    CosineKernel,
    HeatKernel,
    LinearKernel,
    ParametrixKernel,
    SmoothedKernel,
    kernel_from_spec,
)
from dhsk.kernels.smoothed import smoothed_cosines

EPS = np.finfo(np.float64).eps


def word_counts(n: int, dim: int, seed: int = 0) -> np.ndarray:
    """Counts, nine in ten of them 0, with a few large ones."""
    rng = np.random.default_rng(seed)
    return rng.poisson(0.1, (n, dim)) * rng.integers(1, 1000, (n, dim)).astype(np.float64)


def dense_cosines(X: np.ndarray, Y: np.ndarray, alpha: float) -> np.ndarray:
    """Cosines of the dense smoothed rows, in extended precision."""
    rows = [A.astype(np.longdouble) + np.longdouble(alpha) for A in (X, Y)]
    x, y = (np.sqrt(A / A.sum(axis=1, keepdims=True)) for A in rows)
    return x @ y.T


@pytest.mark.parametrize("alpha", [1e-9, 0.01, 1.0, 1e4])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_cosines_are_those_of_the_dense_map(alpha, form):
    """Sparse or dense, the cosines are those of `multinomial_map` to 1e-14."""
    X, Y = word_counts(30, 500, 1), word_counts(20, 500, 2)
    computed = smoothed_cosines(form(X), form(Y), alpha)
    np.testing.assert_allclose(computed, dense_cosines(X, Y, alpha), rtol=0, atol=1e-14)
    mapped = dhsk.multinomial_map(X, alpha) @ dhsk.multinomial_map(Y, alpha).T
    np.testing.assert_allclose(computed, mapped, rtol=0, atol=1e-14)


@pytest.mark.slow
@given(
    X=arrays(np.float64, (3, 5), elements=st.floats(0, 1e6)),
    alpha=st.floats(1e-6, 1e6),
)
def test_cosines_are_right_for_any_counts(X, alpha):
    """All terms of the cosine are positive, so a few roundings are the whole error."""
    computed = smoothed_cosines(csr_array(X), csr_array(X), alpha)
    np.testing.assert_allclose(computed, dense_cosines(X, X, alpha), rtol=0, atol=16 * EPS)


def test_no_smoothing_is_the_hyperspherical_map():
    """With alpha 0 the values are those of mapped rows: maximum likelihood."""
    X = csr_array(word_counts(20, 300))
    kernel = ParametrixKernel.multinomial(0.5)
    np.testing.assert_allclose(
        SmoothedKernel(kernel, 0)(X), kernel(dhsk.hyperspherical_map(X)), rtol=0, atol=300 * EPS
    )


@pytest.mark.parametrize("inner", [ParametrixKernel(0.1), HeatKernel(500, 0.02), CosineKernel()])
def test_values_are_those_of_the_inner_kernel(inner):
    """Any kernel of a cosine takes smoothed counts; its matrix is symmetric with diagonal 1."""
    X, Y = word_counts(20, 500, 1), word_counts(10, 500, 2)
    kernel = SmoothedKernel(inner, 0.5)
    expected = inner(dhsk.multinomial_map(X, 0.5), dhsk.multinomial_map(Y, 0.5))
    # 500 eps of the cosine times the slope, at most 1/(2t)
    np.testing.assert_allclose(kernel(csr_array(X), csr_array(Y)), expected, rtol=0, atol=1e-11)
    gram = kernel(csr_array(X))
    np.testing.assert_array_equal(gram, gram.T)
    assert (np.diagonal(gram) == 1.0).all()


def test_sparse_counts_stay_sparse():
    """20,000 features with 40 counts a row: memory is far below that of dense rows."""
    dim, n = 20_000, 500
    X = random_array((n, dim), density=40 / dim, format="csr", rng=np.random.default_rng(0))
    Y = random_array((n, dim), density=40 / dim, format="csr", rng=np.random.default_rng(1))
    kernel = SmoothedKernel(ParametrixKernel.multinomial(0.5), 0.1)
    tracemalloc.start()
    try:
        kernel(X, Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The result, its sparse form while it is multiplied, and a few copies of the counts.
    assert peak < 3 * 8 * n * n + 16 * 12 * X.nnz
    assert peak < 8 * n * dim / 5


def test_gram_matrix_of_smoothed_counts(tmp_path):
    """`compute_gram` takes raw sparse counts, and the store opens with the same kernel."""
    X = csr_array(word_counts(50, 200))
    kernel = SmoothedKernel(HeatKernel(200, 0.05), 0.5)
    G = dhsk.compute_gram(X, kernel, store=tmp_path / "g", tile=20)
    np.testing.assert_allclose(G[:, :], kernel(X), rtol=0, atol=200 * EPS / 0.05)
    assert dhsk.open_gram(tmp_path / "g").kernel == kernel


def test_smoothed_kernels_are_not_derived_from_stored_products():
    """Inner products of counts do not give smoothed cosines, and a view of them is refused."""
    G = dhsk.compute_gram(word_counts(10, 20), LinearKernel())
    kernel = SmoothedKernel(ParametrixKernel(0.1), 0.5)
    with pytest.raises(errors.InputError, match="smoothed kernel cannot be derived from stored"):
        G.with_kernel(kernel)
    with pytest.raises(errors.InputError, match="needs the samples"):
        kernel.of_product(np.ones((1, 1)), np.ones(1), np.ones(1))


def test_cross_validation_takes_smoothed_kernels(tmp_path):
    """Two smoothings in one grid have a store each, and both are scored."""
    X, y = word_counts(40, 30), np.arange(40) % 2
    X[y == 1, :3] += 5
    kernels = [SmoothedKernel(ParametrixKernel(0.1), alpha) for alpha in (0.1, 1.0)]
    result = dhsk.cross_validate(
        X, y, kernels=kernels, C=[1.0], cv=2, out=dhsk.Output(store=tmp_path)
    )
    assert {row["label"] for row in result.results_} == {k.label for k in kernels}
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_unusable_counts_are_refused(form):
    """A negative count, and without smoothing an empty row, are errors that name the row."""
    X = np.ones((4, 3))
    X[2] = 0
    kernel = ParametrixKernel(0.1)
    with pytest.raises(errors.InputError, match=r"row 2 of X .* is all zero.*alpha above 0"):
        SmoothedKernel(kernel, 0)(form(X))
    assert SmoothedKernel(kernel, 0.1)(form(X)).shape == (4, 4)
    X[3, 1] = -1
    with pytest.raises(errors.InputError, match=r"row 3 of Y .* negative"):
        SmoothedKernel(kernel, 0.1)(np.ones((1, 3)), form(X))
    X[3, :2] = 1.2e308
    with pytest.raises(errors.InputError, match=r"row 3 of X .* infinite sum: rescale"):
        SmoothedKernel(kernel, 0.1)(form(X))


def test_refusals_of_a_computation_name_the_row_among_all(tmp_path):
    """`compute_gram` checks the rows before any tile, and refuses a map besides."""
    X = word_counts(40, 10)
    X[33, 4] = -2
    kernel = SmoothedKernel(ParametrixKernel(0.1), 0.5)
    with pytest.raises(errors.InputError, match="row 33 of X"):
        dhsk.compute_gram(X, kernel, store=tmp_path / "g", tile=8)
    assert not (tmp_path / "g").exists()
    with pytest.raises(errors.InputError, match=r"as they are, not mapped.*hyperspherical"):
        dhsk.compute_gram(np.ones((3, 4)), kernel, sphere_map="hyperspherical")
    with pytest.raises(errors.InputError, match="kernel is for dim 200"):
        dhsk.compute_gram(np.ones((3, 4)), SmoothedKernel(HeatKernel(200, 0.1), 1.0))


@pytest.mark.parametrize(
    ("kernel", "alpha", "message"),
    [
        (LinearKernel(), 1.0, "only kernels of a cosine"),
        (CosineKernel(), -1.0, "alpha must be at least 0"),
        (CosineKernel(), float("nan"), "alpha must be a finite number"),
    ],
)
def test_bad_parameters_are_refused(kernel, alpha, message):
    """The inner kernel is spherical and alpha a number of at least 0."""
    with pytest.raises(errors.InputError, match=message):
        SmoothedKernel(kernel, alpha)


def test_spec_and_pickle_come_back_equal():
    """The description holds the inner kernel's, and survives JSON."""
    kernel = SmoothedKernel(ParametrixKernel(0.25, 1, 9), 0.5)
    spec = json.loads(json.dumps(kernel.to_spec()))
    assert kernel_from_spec(spec) == kernel
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert kernel.label == "parametrix t=0.25 order=1 alpha=0.5"
