"""gamma="scale" is scikit-learn's, for any blocks, dense or sparse."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dhsk.errors import InputError
from dhsk.samples.variance import gamma_of_scale


def test_it_is_one_over_features_times_variance() -> None:
    """Far from 0 too, in one block or several."""
    X = np.random.default_rng(0).poisson(0.7, (50, 6)) + 0.0
    for shift in (0.0, 1e6):
        expected = 1 / (6 * (X + shift).var())
        # Rounding of means of 1e6, squared, relative to a variance of about 1.
        for blocks in ([X + shift], [X[:7] + shift, X[7:8] + shift, X[8:] + shift]):
            assert gamma_of_scale(blocks) == pytest.approx(expected, rel=1e-9)


def test_sparse_samples_have_the_same_bits() -> None:
    """Also with entries of 0."""
    X = np.random.default_rng(0).poisson(0.7, (50, 6)) * 0.1
    sparse = csr_array(X)
    sparse.data[3] = X[tuple(np.argwhere(X)[3])] = 0.0
    assert gamma_of_scale([sparse]) == gamma_of_scale([X])


def test_weights_are_as_repeated_samples() -> None:
    """Also weights of 0, for whole blocks; dense and sparse."""
    rng = np.random.default_rng(0)
    X, weights = rng.poisson(0.7, (50, 6)) * 0.1, rng.integers(0, 4, 50).astype(float)
    weights[:10] = 0
    expected = 1 / (6 * X[np.repeat(np.arange(50), weights.astype(int))].var())
    for form in (np.asarray, csr_array):
        blocks = [form(X[:7]), form(X[7:20]), form(X[20:])]
        assert gamma_of_scale(blocks, weights) == pytest.approx(expected, rel=1e-12)


def test_constant_samples_and_those_that_overflow() -> None:
    """1, and an error."""
    assert gamma_of_scale([np.zeros((3, 2))]) == 1.0
    assert gamma_of_scale([np.full((3, 2), 7.0)]) == 1.0
    with pytest.raises(InputError, match="variance of X overflows"):
        gamma_of_scale([np.array([[1e200], [0.0]])])
