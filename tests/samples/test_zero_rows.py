"""Samples of zeros: their image, their number, and one warning for all."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import dhsk
from dhsk.errors import InputError, ZeroRowsWarning
from dhsk.samples import ZeroRows, open_samples, scan

X = np.array([[1.0, 3, 0, 0], [0, 0, 0, 0], [0, 2, 2, 0], [0, 0, 0, 0]])
CENTRE = np.full(4, 0.5)

both_layouts = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
both_maps = pytest.mark.parametrize("mapped", [dhsk.hyperspherical_map, dhsk.projective_map])


@both_layouts
@both_maps
def test_zero_rows_map_to_the_centre(mapped, layout):
    """With one warning that counts them, in the line that called; the other rows are as before."""
    with pytest.warns(ZeroRowsWarning, match=r"^2 of 4 samples of X are all zero") as caught:
        rows = mapped(layout(X))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert sp.issparse(rows) == (layout is sp.csr_array)
    dense = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_array_equal(dense[[1, 3]], [CENTRE, CENTRE])
    np.testing.assert_array_equal(dense[[0, 2]], mapped(X[[0, 2]]))


@both_layouts
@pytest.mark.parametrize("alpha", [1e-9, 1.0, 1e9])
def test_the_centre_is_the_limit_of_smoothing(layout, alpha):
    """Smoothed counts of nothing are it at any alpha above 0, and so at 0."""
    smoothed = dhsk.multinomial_map(layout(X), alpha)
    np.testing.assert_allclose(smoothed[[1, 3]], [CENTRE, CENTRE], rtol=1e-15)
    with pytest.warns(ZeroRowsWarning):
        rows = dhsk.multinomial_map(layout(X), 0)
    dense = rows.toarray() if sp.issparse(rows) else rows
    np.testing.assert_array_equal(dense[1], CENTRE)


@both_layouts
@both_maps
def test_zero_rows_are_refused_if_asked(mapped, layout):
    """By number, with the ways out."""
    with pytest.raises(InputError, match=r"row 1 .* all zero .* drop it .* zero_rows='center'"):
        mapped(layout(X), zero_rows="error")
    with pytest.raises(InputError, match="zero_rows must be 'center' or 'error', but it is 'drop'"):
        mapped(layout(X), zero_rows="drop")


@both_layouts
def test_scan_counts_them(layout):
    """Where there is a map; the identity is defined on them."""
    found = scan(open_samples(layout(X)), "hyperspherical")
    assert found.zero_rows == 2
    sparse = layout is sp.csr_array
    assert (found.nnz, found.mapped_nnz) == ((4, 6) if sparse else (None, None))
    assert scan(open_samples(layout(X)), "identity").zero_rows == 0


def test_samples_count_once():
    """However often, and in blocks of any size, they are read; a copy counts for itself."""
    met = ZeroRows()
    for numbers in ([3, 5], [5, 9], [], [3]):
        met.add(np.array(numbers, np.intp))
    assert met.count == 3
    copy = pickle.loads(pickle.dumps(met))
    assert (copy, copy.count) == (met, 0)
    assert met != ZeroRows("error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.warn("X", 9)


@pytest.mark.parametrize(("value", "clip"), [(-1e-17, True), (-0.2, True), (-3.0, False)])
@both_layouts
def test_values_just_below_zero_may_be_clipped(layout, value, clip):
    """What a scaler leaves of samples it was not fitted to is told from samples of both signs."""
    samples = X.copy()
    samples[0, 2] = value
    with pytest.raises(InputError, match=r"row 0, column 2 .*projective") as caught:
        dhsk.hyperspherical_map(layout(samples))
    assert ("MinMaxScaler(clip=True)" in str(caught.value)) == clip


def test_z_scores_are_for_a_gaussian_kernel(rng):
    """Half of them are negative, which no clipping mends, however large the largest is."""
    Z = rng.normal(size=(50, 4))
    Z[0, 0] = 100
    with pytest.raises(InputError, match=r"z-scores and other columns a Gaussian kernel") as said:
        dhsk.hyperspherical_map(Z)
    assert "clip" not in str(said.value)
