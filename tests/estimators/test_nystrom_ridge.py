"""Ridge regression of low rank: least squares on features, in memory and streamed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import dhsk
from dhsk.errors import InputError
from dhsk.execution.memory import MemoryNeed, Share
from dhsk.nystrom import approximation

CLOSE = 1e-8
"""Relative: rounding times the condition of some hundred features, at alpha = 0.1."""


def friedman(n: int = 300) -> tuple[Any, Any]:
    """Samples, and targets with noise."""
    return make_friedman1(n, noise=1.0, random_state=0)  # type: ignore[no-any-return]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("oversampling", [1.0, 2.0])
def test_it_is_least_squares_on_the_features(intercept: bool, oversampling: float) -> None:
    """As scikit-learn's Ridge on those of NystromFeatures, weighted, for several targets."""
    X, y = friedman()
    Y = np.stack([y, X[:, 0] - y**2], axis=1)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 300)
    kernel = dhsk.GaussianKernel(1.0)
    own: Any = {"kernel": kernel, "oversampling": oversampling, "random_state": 0}
    model = dhsk.NystromRidge(40, 0.1, fit_intercept=intercept, **own).fit(X, Y, weights)
    features = dhsk.NystromFeatures(40, **own).fit(X)
    ridge = Ridge(0.1, fit_intercept=intercept, solver="cholesky")
    ridge.fit(features.transform(X), Y, weights)
    expected = ridge.predict(features.transform(X))
    np.testing.assert_allclose(model.predict(X), expected, atol=CLOSE * np.abs(Y).max())
    np.testing.assert_array_equal(model.landmark_indices_, features.landmark_indices_)
    assert model.landmark_coef_.shape == (len(model.landmarks_), 2)
    assert model.intercept_.shape == (2,)
    assert (model.intercept_ != 0).all() == intercept
    assert model.trace_error_ == pytest.approx(features.trace_error_)
    assert 0 < model.residual_ < CLOSE


def test_at_full_rank_it_is_kernel_ridge_regression() -> None:
    """Of all samples, without an intercept."""
    X, y = friedman(120)
    model = dhsk.NystromRidge(120, 0.5, kernel=dhsk.GaussianKernel(1.0), fit_intercept=False)
    expected = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.5).fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, rtol=1e-6)
    assert isinstance(model.intercept_, float)


def test_samples_of_weight_zero_are_as_if_absent() -> None:
    """And are no landmarks."""
    X, y = friedman(100)
    weights = np.arange(100) % 2 + 0.0
    own: Any = {"kernel": "gaussian", "random_state": 0}
    model = dhsk.NystromRidge(20, **own).fit(X, y, weights)
    without = dhsk.NystromRidge(20, **own).fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


@pytest.mark.parametrize("where", ["passes", "client", "file", "sparse"])
def test_it_does_not_depend_on_where_features_are(
    where: str, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Computed in every pass, on workers, or from a file that is read in blocks."""
    X, y = friedman()
    own: Any = {"kernel": dhsk.GaussianKernel(1.0), "random_state": 0}
    here = dhsk.NystromRidge(30, 0.1, **own).fit(X, y)
    np.save(tmp_path / "X.npy", X)
    model = dhsk.NystromRidge(30, 0.1, client=client if where == "client" else None, **own)
    if where == "file":
        model.fit_samples(tmp_path / "X.npy", y)
    elif where == "passes":
        plan = Share(MemoryNeed("as told", {"all": 10**9}), 2, "samples in memory", whole=False)
        monkeypatch.setattr(approximation, "plan_here", lambda *_: plan)
        model.fit(X, y)
    else:
        model.fit(csr_array(X) if where == "sparse" else X, y)
    np.testing.assert_allclose(model.predict(X), here.predict(X), atol=1e-6)


def test_it_comes_back_from_a_file(tmp_path: Path) -> None:
    """To the last bit."""
    X, y = friedman()
    model = dhsk.NystromRidge(30, 0.1, kernel="gaussian", random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    found = dhsk.NystromRidge.load(tmp_path / "m")
    np.testing.assert_array_equal(found.predict(X), model.predict(X))
    assert found.get_params() == model.get_params()
    for name in ("intercept_", "residual_", "trace_error_", "n_components_"):
        assert getattr(found, name) == getattr(model, name)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0.0}, "alpha must be above 0"),
        ({"n_components": 0}, "n_components must be a whole number, at least 1"),
        ({"selection": "some"}, "selection"),
    ],
)
def test_wrong_parameters_are_refused(wrong: Any, message: str) -> None:
    """By name."""
    with pytest.raises(InputError, match=message):
        dhsk.NystromRidge(**wrong, kernel="gaussian").fit(*friedman(30))


def test_targets_of_other_shapes_are_refused(tmp_path: Path) -> None:
    """And those that are not finite."""
    X, y = friedman(30)
    np.save(tmp_path / "X.npy", X)
    model = dhsk.NystromRidge(kernel="gaussian")
    with pytest.raises(InputError, match=r"targets of shape \(29,\) for 30 samples"):
        model.fit_samples(tmp_path / "X.npy", y[1:])
    with pytest.raises(InputError, match="targets must be finite"):
        model.fit_samples(tmp_path / "X.npy", y * np.nan)
