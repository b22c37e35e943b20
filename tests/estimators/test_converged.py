"""What all estimators with a solver say of its end."""

from typing import Any

import numpy as np
import pytest

import dhsk


@pytest.fixture
def X(counts: Any) -> Any:
    """A few samples."""
    return counts(40, 6)


@pytest.mark.parametrize(
    "estimator",
    [
        dhsk.HeatSVC(),
        dhsk.NystromSVC(10),
        dhsk.HeatKernelRidge(),
        dhsk.HeatOneClassSVM(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_solver_says_whether_it_converged(estimator: Any, X: Any) -> None:
    """By the same names: `converged_`, a bool, and `n_iter_`, at least 1."""
    fitted = estimator.fit(X, np.arange(40) % 2)
    assert fitted.converged_ is True
    assert np.all(np.asarray(fitted.n_iter_) >= 1)
