"""The drop-in for scikit-learn's SVR: its optimum, its attributes, certificates, sets and files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.execution.limits import held_bytes

TOL = 1e-8
"""Of both solvers, so that what they find agrees to `CLOSE`."""
CLOSE = 1e-4

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"C": 10.0},
    "linear": {"epsilon": 0.0},
    "poly": {"gamma": 0.1, "coef0": 0.7, "degree": 2},
}


def friedman(n: int = 200) -> tuple[Any, Any]:
    """Samples of ten features, and targets with noise."""
    return make_friedman1(n, noise=1.0, random_state=0)  # type: ignore[no-any-return]


def dense(array: Any) -> Any:
    """An array of any form."""
    return array.toarray() if hasattr(array, "toarray") else array


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_that_of_scikit_learn(kernel: str, sparse: bool) -> None:
    """With its attributes in their shapes, signs and types; the certificate says so too."""
    X, y = friedman()
    X = csr_matrix(np.where(X > 0.5, X, 0.0)) if sparse else X
    weights = np.random.default_rng(0).uniform(-0.2, 2.0, len(y))
    own = {"tol": TOL, "kernel": kernel, **KERNELS[kernel]}
    model, peer = dhsk.SVR(**own).fit(X, y, weights), SVR(**own).fit(X, y, weights)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=CLOSE)
    for name in ("intercept_", "n_support_", "support_", "shape_fit_", "dual_coef_",
                 "support_vectors_", "fit_status_"):  # fmt: skip
        found, expected = getattr(model, name), getattr(peer, name)
        assert type(found) is type(expected), name
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), name
        if name == "support_":  # scikit-learn numbers those of a weight above 0
            expected = np.flatnonzero(weights > 0)[expected]
        np.testing.assert_allclose(dense(found), dense(expected), atol=CLOSE, err_msg=name)
    assert hasattr(model, "coef_") == (kernel == "linear")
    if kernel == "linear":
        np.testing.assert_allclose(dense(model.coef_), dense(peer.coef_), atol=CLOSE)
    assert type(model.n_iter_) is type(peer.n_iter_)
    assert model.kkt_violation_ <= TOL
    assert 0 <= model.duality_gap_ < CLOSE


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_the_certificate_is_that_of_the_doubled_problem(epsilon: float) -> None:
    """Violation and gap from LIBSVM's two coefficients of each sample, and so is the objective."""
    X, y = friedman(120)
    model = dhsk.SVR(epsilon=epsilon, gamma=0.5, tol=1e-3, max_iter=20)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    b = np.zeros(120)
    b[model.support_] = model.dual_coef_[0]
    f = y - rbf_kernel(X, gamma=0.5) @ b
    signs, alpha = (
        np.repeat([1.0, -1.0], 120),
        np.concatenate([np.maximum(b, 0), -np.minimum(b, 0)]),
    )
    gradient = signs * np.tile(f, 2) - epsilon  # of the dual in alpha
    up = np.where(signs > 0, alpha < 1, alpha > 0)
    down = np.where(signs > 0, alpha > 0, alpha < 1)
    along = signs * gradient
    assert model.kkt_violation_ == pytest.approx(along[up].max() - along[down].min(), rel=1e-9)
    norm2 = b @ (y - f)
    errors = np.maximum(np.abs(f - model.intercept_) - epsilon, 0)
    primal, dual = norm2 / 2 + errors.sum(), y @ b - epsilon * np.abs(b).sum() - norm2 / 2
    assert model.duality_gap_ == pytest.approx((primal - dual) / primal, rel=1e-9)
    assert model.duality_gap_ > 0


@pytest.mark.slow
def test_many_samples_are_solved_on_blocks() -> None:
    """Their objective is scikit-learn's, and so are their predictions, to tol."""
    X, y = friedman(5000)
    model, peer = dhsk.SVR().fit(X, y), SVR().fit(X, y)
    assert model.converged_
    assert model.kkt_violation_ <= 1e-3
    assert 0 < model.duality_gap_ < 1e-3

    def objective(one: Any) -> float:
        coef, rows = one.dual_coef_[0], one.support_vectors_
        K = rbf_kernel(rows, gamma=peer._gamma)
        return float(y[one.support_] @ coef - 0.1 * np.abs(coef).sum() - coef @ K @ coef / 2)

    assert objective(model) == pytest.approx(objective(peer), rel=1e-5)
    np.testing.assert_allclose(model.predict(X[:500]), peer.predict(X[:500]), atol=0.02)


def test_small_blocks_end_at_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is scarce."""
    X, y = friedman(400)
    whole = dhsk.SVR(C=5.0, tol=1e-6).fit(X, y)
    monkeypatch.setattr("dhsk.execution.run.Run.room", 400_000)
    sets = dhsk.SVR(C=5.0, tol=1e-6).fit(X, y)
    assert sets.kkt_violation_ <= 1e-6
    np.testing.assert_allclose(sets.predict(X), whole.predict(X), atol=1e-5)
    monkeypatch.setattr("dhsk.execution.run.Run.room", 90_000)
    with pytest.raises(BudgetError, match=r"a fit of 400 samples take 96\.00 kiB"):
        dhsk.SVR().fit(X, y)


def test_a_nearly_constant_kernel_keeps_its_digits() -> None:
    """With a wide Gaussian it is a linear one of other C."""
    X, y = friedman(150)
    gamma = 1e-9
    wide = dhsk.SVR(gamma=gamma, C=0.5 / gamma, tol=1e-6).fit(X, y)
    linear = dhsk.SVR(kernel="linear", C=1.0, tol=1e-6).fit(X, y)
    assert wide.converged_
    # exp(-gamma d²) is 1 - gamma d² but for (gamma d²)², 1e-17 of 1e-8.
    np.testing.assert_allclose(wide.predict(X), linear.predict(X), atol=1e-4)


def test_constant_targets_need_no_support_vector() -> None:
    """Every prediction is the target."""
    X, _ = friedman(50)
    for given in (X, csr_matrix(X), csr_matrix(np.where(X > 0.9, X, 0.0))):
        model = dhsk.SVR().fit(given, np.full(50, 3.0))
        assert model.support_vectors_.shape == (0, 10)
        assert model.dual_coef_.shape == (1, 0)
        np.testing.assert_allclose(model.predict(given), 3.0, rtol=1e-12)


def test_given_values_in_a_search() -> None:
    """As a matrix or by a function."""
    X, y = friedman(120)

    def kernel(A: Any, B: Any) -> Any:
        return rbf_kernel(A, B, 0.5)

    grid = {"C": [0.1, 10.0]}
    expected = GridSearchCV(SVR(gamma=0.5), grid, cv=3).fit(X, y)
    for form, given in (("precomputed", kernel(X, X)), (kernel, X)):
        found = GridSearchCV(dhsk.SVR(kernel=form), grid, cv=3).fit(given, y)
        np.testing.assert_allclose(
            found.cv_results_["mean_test_score"],
            expected.cv_results_["mean_test_score"],
            atol=1e-3,
        )
        np.testing.assert_allclose(found.predict(given), expected.predict(X), atol=5e-3)


def test_in_a_pipeline() -> None:
    """As scikit-learn's."""
    X, y = load_diabetes(return_X_y=True)
    found, expected = (make_pipeline(StandardScaler(), kind(C=50)) for kind in (dhsk.SVR, SVR))
    assert found.fit(X, y).score(X, y) == pytest.approx(expected.fit(X, y).score(X, y), abs=1e-4)


def test_steps_are_bounded() -> None:
    """With a warning; the whole matrix need not fit."""
    X, y = friedman()
    with pytest.warns(ConvergenceWarning, match=r"early \(max_iter=3\).* after 3 steps"):
        model = dhsk.SVR(max_iter=3).fit(X, y)
    assert (model.n_iter_, model.fit_status_) == (3, 1)
    room = held_bytes() + 300_000_000  # of the 432 MB that the matrix takes
    with pytest.warns(ConvergenceWarning):
        whole, on_rows = (
            dhsk.SVR(max_iter=60, memory=memory).fit(*friedman(6000)) for memory in ("4GB", room)
        )
    assert (on_rows.n_iter_, len(on_rows.support_)) == (60, len(whole.support_))
    np.testing.assert_allclose(on_rows.dual_coef_, whole.dual_coef_, atol=CLOSE)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_it_comes_back_from_a_file(kernel: str, tmp_path: Path) -> None:
    """With its parameters, attributes and results; and from a pickle."""
    X, y = friedman(60)
    given: Any = X @ X.T if kernel == "precomputed" else csr_matrix(X)
    model = dhsk.SVR(kernel=kernel, C=5.0, epsilon=2.0).fit(given, y)
    model.save(tmp_path / "m")
    for found in (dhsk.SVR.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(found.predict(given), model.predict(given))
        for name in ("support_", "shape_fit_", "intercept_", "n_support_", "duality_gap_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
        for name in ("dual_coef_", "support_vectors_"):
            np.testing.assert_array_equal(*(dense(getattr(m, name)) for m in (found, model)))
            assert type(getattr(found, name)) is type(getattr(model, name))
        assert found.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"epsilon": -0.1}, "epsilon must be at least 0"), ({"C": -1.0}, "C must be above 0")],
)
def test_wrong_parameters_are_refused(wrong: Any, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(InputError, match=message):
        dhsk.SVR(**wrong).fit(*friedman(20))
