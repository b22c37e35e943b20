"""Former names of parameters and attributes give the same as the new ones, and warn."""

from typing import Any

import numpy as np
import pytest

import dhsk


@pytest.fixture
def X(counts: Any) -> Any:
    """A few samples."""
    return counts(40, 6)


@pytest.mark.parametrize(
    ("estimator", "old", "new"),
    [
        (dhsk.HeatOneClassSVM(), "violation_", "kkt_violation_"),
        (dhsk.HeatKernelRidge(), "n_passes_", "n_iter_"),
    ],
    ids=["one-class", "ridge"],
)
def test_former_attribute(estimator: Any, old: str, new: str, X: Any) -> None:
    """Also before a fit, where it is missing as ever."""
    assert not hasattr(estimator, old)
    estimator.fit(X, X[:, 0])
    with pytest.warns(FutureWarning, match=f"^{old} of {type(estimator).__name__} is now .* {new}"):
        assert getattr(estimator, old) == getattr(estimator, new)


@pytest.mark.parametrize(
    ("estimator", "old", "new", "value"),
    [
        (dhsk.NystromFeatures(30, random_state=0), "tol", "landmark_tol", 0.5),
        (dhsk.HeatKernelRidge(tol=1e-3), "max_passes", "max_iter", 100),
    ],
    ids=["features", "ridge"],
)
def test_former_parameter(estimator: Any, old: str, new: str, value: Any, X: Any) -> None:
    """It is checked like the new one, and the warning is at the line of the fit."""
    fitted = estimator.set_params(**{new: value}).fit(X, X[:, 0])
    former = type(estimator)(**estimator.get_params() | {old: value, new: -1})
    with pytest.warns(FutureWarning, match=f"^{old} of .* is now called {new}") as seen:
        former.fit(X, X[:, 0])
    assert seen[0].filename == __file__
    for name, learned in vars(fitted).items():
        if name.endswith("_") and isinstance(learned, np.ndarray | float | int):
            np.testing.assert_array_equal(learned, getattr(former, name))
    with pytest.raises(dhsk.InputError, match=f"{new} must be"), pytest.warns(FutureWarning):
        type(estimator)(**{old: -1}).fit(X, X[:, 0])


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
