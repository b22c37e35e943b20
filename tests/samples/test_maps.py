from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dhsk.errors import InputError
from dhsk.samples import (
    ZeroRows,
    apply_map,
    hyperspherical_map,
    multinomial_map,
    parse_sphere_map,
    projective_map,
)

EPS = np.finfo(np.float64).eps
DIM = 100
# Half an eps for each rounding: numpy adds 100 terms in 8 sums of at most 13, then 3 additions and
# at most 4 more for the remainder; the square root halves the relative error of the sum. Then at
# most three roundings for the squares, the quotient and the square root.
MAP_ERROR = ((13 + 3 + 4) / 2 + 3) * EPS / 2


def samples(signed: bool) -> np.ndarray:
    """Return heavy-tailed rows, half of whose entries are zero, at scales from 1e-305 to 1e305."""
    rng = np.random.default_rng(3)
    X = rng.lognormal(sigma=3, size=(9, DIM)) * (rng.random((9, DIM)) < 0.5)
    X *= 10.0 ** np.array([-305, -200, -20, -1, 0, 1, 20, 200, 300])[:, None]
    return X * rng.choice([-1, 1], X.shape) if signed else X


def exact(X: np.ndarray, image) -> np.ndarray:
    """Apply an image of (entry, row), both exact fractions, at 60 digits."""
    with mpmath.workdps(60):
        rows = [[Fraction(v) for v in row] for row in X.tolist()]
        return np.array([[float(image(v, row)) for v in row] for row in rows])


def root(value: Fraction) -> mpmath.mpf:
    """Return the square root."""
    return mpmath.sqrt(mpmath.mpf(value.numerator) / value.denominator)


def share(value: Fraction, row: list[Fraction]) -> mpmath.mpf:
    """Return an entry under the hyperspherical map."""
    return root(value / sum(row))


def direction(value: Fraction, row: list[Fraction]) -> mpmath.mpf:
    """Return an entry under the projective map."""
    return (-1 if value < 0 else 1) * root(value * value / sum(v * v for v in row))


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize(
    ("apply", "image", "signed"),
    [(hyperspherical_map, share, False), (projective_map, direction, True)],
    ids=["hyperspherical", "projective"],
)
def test_maps_agree_with_exact_arithmetic(apply, image, signed, layout):
    """Each entry is right to the roundings of one sum, at every scale, dense and sparse."""
    X = samples(signed)
    mapped = apply(layout(X))
    assert isinstance(mapped, sp.csr_array) == sp.issparse(layout(X))
    assert mapped.dtype == np.float64
    values = mapped.toarray() if sp.issparse(mapped) else mapped
    np.testing.assert_allclose(values, exact(X, image), rtol=MAP_ERROR, atol=0)


@pytest.mark.slow(beyond=2)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alpha", [1e-3, 0.5, 1e300])
def test_multinomial_map_agrees_with_exact_arithmetic(alpha, layout):
    """Smoothed shares are right to the roundings of one sum, and every one is positive."""
    X = np.vstack([samples(signed=False), np.zeros(DIM)])
    mapped = multinomial_map(layout(X), alpha)
    assert isinstance(mapped, np.ndarray)
    smoothing = Fraction(alpha)
    truth = exact(X, lambda v, row: root((v + smoothing) / (sum(row) + DIM * smoothing)))
    np.testing.assert_allclose(mapped, truth, rtol=MAP_ERROR, atol=0)


def test_multinomial_map_without_smoothing_is_the_hyperspherical_map():
    """At alpha 0 the image stays sparse and equals the hyperspherical one."""
    X = sp.csr_array(samples(signed=False))
    assert (multinomial_map(X, 0) != hyperspherical_map(X)).nnz == 0


def test_counts_map_alike_dense_and_sparse():
    """Integer counts add up exactly, so that dense and sparse images are equal to the last bit."""
    X = np.random.default_rng(0).poisson(0.7, size=(50, 300)) + np.eye(50, 300, dtype=int)
    np.testing.assert_array_equal(
        hyperspherical_map(sp.csr_array(X)).toarray(), hyperspherical_map(X)
    )


finite = st.floats(allow_nan=False, allow_infinity=False)
rows = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 12)), elements=finite)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=300)
@given(rows)
def test_every_finite_row_lands_on_the_sphere(X):
    """From the smallest to the largest float64, images have norm 1, signs are kept, none is nan."""
    X[:, 0][~X.any(axis=1)] = 1.0
    for layout in (np.asarray, sp.csr_array):
        for apply, source in ((projective_map, X), (hyperspherical_map, np.abs(X))):
            mapped = apply(layout(source))
            values = mapped.toarray() if sp.issparse(mapped) else mapped
            assert ((np.sign(values) == np.sign(source)) | (values == 0)).all()
            # 12 roundings of a sum, halved, and two more; then the same for this norm
            np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1, rtol=8 * EPS)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(rows, st.integers(-1000, 1000))
def test_scaling_a_row_leaves_its_image(X, exponent):
    """Multiplying a row by a power of two changes no bit of its image."""
    X = np.clip(np.trunc(np.clip(X, -1e6, 1e6)), -1e6, 1e6)
    X[:, 0][~X.any(axis=1)] = 1.0
    np.testing.assert_array_equal(projective_map(np.ldexp(X, exponent)), projective_map(X))


@pytest.mark.parametrize("name", ["hyperspherical", "projective", "identity"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_mapping_leaves_the_block(name, layout):
    """Blocks are not written to, not even where an entry of the image underflows."""
    X = layout(np.array([[1e300, 1e-300, 1e300], [1.0, 2.0, 0.0]]))
    before = X.copy()
    mapped = apply_map(name, X)
    if name != "identity":
        mapped *= 0
    assert (before != X).sum() == 0


def test_underflow_leaves_a_canonical_block():
    """An image too small for float64 is no stored zero."""
    mapped = projective_map(sp.csr_array([[1e300, 1e-300]]))
    assert mapped.nnz == 1


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["hyperspherical", "projective", "identity"])
def test_nonfinite_entries_are_named(name, value, layout):
    """NaN and infinities are refused under every map, with absolute row and column."""
    X = np.eye(4, 5)
    X[2, 3] = value
    with pytest.raises(InputError, match=rf"row 102, column 3 \(counted from 0\) holds {value}, "):
        apply_map(name, layout(X), first_row=100)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_negative_entries_are_named(layout):
    """Negative entries have no square root; the message names one and the map that takes them."""
    X = np.eye(4, 5)
    X[2, 3] = -0.25
    either = "(projective.*--map scaled|scaled.*--map projective)"
    message = rf"row 2, column 3 .* holds -0\.25, .*--map {either}"
    with pytest.raises(InputError, match=message):
        hyperspherical_map(layout(X))
    with pytest.raises(InputError, match=r"row 2, column 3 .* holds -0\.25"):
        multinomial_map(layout(X), 1.0)
    projective_map(layout(X))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("name", "keep"), [("hyperspherical", r"X\[X\.sum"), ("projective", r"X\[abs\(X\)\.sum")]
)
def test_zero_rows_are_named(name, keep, layout):
    """A row of zeros has no direction; under the rule "error" the message says how to drop it."""
    X = layout(np.array([[1.0, 0], [0, 0], [0, 0]]))
    with pytest.raises(InputError, match=rf"row 11 .* all zero .*{keep}.*and its label"):
        apply_map(name, X, first_row=10, zero_rows=ZeroRows("error"))


def test_the_way_out_of_zero_rows_works():
    """The expressions that the message names drop exactly the zero rows."""
    X = np.array([[0.0, 2], [0, 0], [-1, 1]])
    for layout in (np.asarray, sp.csr_array):
        Y = layout(X)
        assert projective_map(Y[abs(Y).sum(axis=1) > 0]).shape == (2, 2)
        assert hyperspherical_map(abs(Y)[abs(Y).sum(axis=1) > 0]).shape == (2, 2)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
def test_smoothing_must_be_a_finite_count(alpha):
    """Alpha is refused with its value."""
    with pytest.raises(InputError, match=rf"alpha must be .* got {alpha}"):
        multinomial_map(np.eye(2), alpha)


def test_unknown_maps_are_refused():
    """A misspelt map is answered with the known ones."""
    assert parse_sphere_map("projective") == "projective"
    with pytest.raises(InputError, match=r"no map 'sphere': .*hyperspherical.*identity"):
        parse_sphere_map("sphere")
