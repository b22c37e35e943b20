"""Kernels of scikit-learn's parameters against its own, and values that are given."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import pairwise

from dhsk.errors import InputError
from dhsk.kernels import (
    GaussianKernel,
    PrecomputedKernel,
    ScaledPolynomialKernel,
    SigmoidKernel,
    kernel_from_spec,
    unit_vectors,
)

CLOSE = 1e-12
"""Relative; products of some 30 terms of order 1."""


@pytest.fixture
def samples() -> Any:
    """Two sets of samples."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(40, 30)), rng.normal(size=(25, 30))


@pytest.mark.parametrize(
    ("degree", "scale", "offset"), [(0, 1.0, 0.5), (3, 0.1, 0.0), (2, 2, -1.0)]
)
def test_powers_are_those_of_scikit_learn(
    degree: int, scale: float, offset: float, samples: Any
) -> None:
    """Of any degree and scale, from files too."""
    kernel = ScaledPolynomialKernel(degree, scale, offset)
    expected = np.ones((40, 25))  # of degree 0, which only its SVC takes
    if degree:
        expected = pairwise.polynomial_kernel(*samples, degree=degree, gamma=scale, coef0=offset)
    np.testing.assert_allclose(kernel(*samples), expected, rtol=CLOSE, atol=CLOSE)
    assert kernel_from_spec(kernel.to_spec()) == kernel
    assert kernel.positive_semidefinite is (None if offset < 0 else True)


def test_tangents_are_those_of_scikit_learn(samples: Any) -> None:
    """And whether they are definite is not known."""
    kernel = SigmoidKernel(0.05, -0.3)
    expected = pairwise.sigmoid_kernel(*samples, gamma=0.05, coef0=-0.3)
    np.testing.assert_allclose(kernel(*samples), expected, rtol=CLOSE, atol=CLOSE)
    assert kernel_from_spec(kernel.to_spec()) == kernel
    assert kernel.positive_semidefinite is None


def test_gaussians_of_gamma(samples: Any) -> None:
    """As scikit-learn's rbf."""
    expected = pairwise.rbf_kernel(*samples, gamma=0.02)
    np.testing.assert_allclose(GaussianKernel.at_gamma(0.02)(*samples), expected, rtol=CLOSE)
    with pytest.raises(InputError, match="gamma must be above 0"):
        GaussianKernel.at_gamma(0.0)


@pytest.mark.parametrize(
    "kernel", [ScaledPolynomialKernel(9, 1e20, 0.0), SigmoidKernel(1e300, 0.0)]
)
def test_rows_whose_values_overflow_are_refused(kernel: Any) -> None:
    """By name."""
    with pytest.raises(InputError, match=r"row 1 of X .* overflow float64"):
        kernel([[0.0], [1e20]])


def test_given_values_are_found_by_unit_vectors(samples: Any) -> None:
    """To the last bit, wherever the result goes."""
    K = pairwise.rbf_kernel(samples[0])
    places = np.array([3, 7, 30])
    columns = unit_vectors(places, 40)
    kernel, out = PrecomputedKernel(), np.empty((40, 3))
    assert isinstance(columns, csr_array)
    np.testing.assert_array_equal(kernel.of_rows(K, columns), K[:, places])
    assert kernel.of_rows(K, columns, out) is out
    np.testing.assert_array_equal(out, K[:, places])
    np.testing.assert_array_equal(kernel.of_rows(csr_array(K), columns), K[:, places])
