"""The certificate of a fit: LIBSVM's own criterion, evaluated anew."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import dhsk
from dhsk.svm.exact import fit_svc, kkt_violation

FLOAT32_CACHE = 1e-5
"""LIBSVM keeps kernel rows in float32: its own gradient is off by some 1e-7 times sum of alpha."""


def digits(n: int, classes: int) -> tuple[Any, Any]:
    """Gram matrix and labels of the first digits of some classes."""
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < classes)[:n]
    kernel = dhsk.HeatKernel.at_scale(64, 0.5)
    return kernel(dhsk.hyperspherical_map(X[chosen])), y[chosen]


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_violation_is_below_the_tolerance_of_the_fit(classes: int, tol: float, C: float) -> None:
    """Every pair of classes, two or many, satisfies the criterion at which LIBSVM stopped."""
    K, y = digits(300, classes)
    found = kkt_violation(fit_svc(K, y, C, tol), K, y)
    assert tol / 1000 < found <= tol + FLOAT32_CACHE * max(C, 1)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_moved_coefficient_shows(classes: int) -> None:
    """A solution that is not optimal is not certified."""
    K, y = digits(200, classes)
    model = fit_svc(K, y, 1.0, 1e-4)
    before = kkt_violation(model, K, y)
    model.dual_coef_[0, 0] *= 0.5
    assert kkt_violation(model, K, y) > 100 * before


def test_labels_may_be_strings() -> None:
    """Classes are compared, not computed with."""
    K, y = digits(200, 3)
    names = np.array(["zero", "one", "two"])[y]
    assert kkt_violation(fit_svc(K, names, 1.0), K, names) <= 1e-3 + FLOAT32_CACHE
