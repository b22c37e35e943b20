"""The drop-in for scikit-learn's OneClassSVM: its optimum, its attributes, sets and files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

import dhsk
from dhsk.errors import InputError
from dhsk.execution.limits import held_bytes

TOL = 1e-9
"""Of both solvers, so that what they find agrees to `CLOSE`."""
CLOSE = 1e-5

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {},
    "linear": {"nu": 0.3},
    "poly": {"gamma": 1e-3, "coef0": 0.7, "degree": 2},
}


def sixes(n: int = 150) -> Any:
    """Images of one digit."""
    X, y = load_digits(return_X_y=True)
    return X[y == 6][:n]


def dense(array: Any) -> Any:
    """An array of any form."""
    return array.toarray() if hasattr(array, "toarray") else array


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_that_of_scikit_learn(kernel: str, sparse: bool) -> None:
    """With its attributes in their shapes, signs and types."""
    X: Any = csr_matrix(sixes()) if sparse else sixes()
    own = {"tol": TOL, "kernel": kernel, **KERNELS[kernel]}
    model, peer = dhsk.OneClassSVM(**own).fit(X), OneClassSVM(**own).fit(X)
    scale = float(np.abs(peer.score_samples(X)).max())
    new = load_digits().data[:400]
    for method in ("decision_function", "score_samples"):
        found, expected = (getattr(one, method)(new) for one in (model, peer))
        np.testing.assert_allclose(found, expected, atol=CLOSE * scale)
    apart = np.abs(peer.decision_function(new)) > CLOSE * scale
    np.testing.assert_array_equal(model.predict(new)[apart], peer.predict(new)[apart])
    names = ["intercept_", "offset_", "n_support_", "support_", "shape_fit_", "fit_status_"]
    for name in [*names, "dual_coef_", "support_vectors_"]:
        found, expected = getattr(model, name), getattr(peer, name)
        assert type(found) is type(expected), name
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), name
        if kernel != "linear":  # whose coefficients are not unique
            np.testing.assert_allclose(dense(found), dense(expected), atol=CLOSE * scale)
    assert hasattr(model, "coef_") == (kernel == "linear")
    if kernel == "linear":
        assert type(model.coef_) is type(peer.coef_)
        np.testing.assert_allclose(dense(model.coef_), dense(peer.coef_), rtol=CLOSE)
    assert type(model.n_iter_) is type(peer.n_iter_)


def test_many_samples_are_solved_on_blocks() -> None:
    """Where few are support vectors; the objective is scikit-learn's."""
    X = np.random.default_rng(0).normal(size=(5000, 4))
    own: Any = {"nu": 0.05, "tol": 1e-5}
    model, peer = dhsk.OneClassSVM(**own).fit(X), OneClassSVM(**own).fit(X)
    coef, rows = peer.dual_coef_[0], peer.support_vectors_
    objective = coef @ rbf_kernel(rows, gamma=peer._gamma) @ coef / 2
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    assert model.kkt_violation_ <= 1e-5
    np.testing.assert_allclose(
        model.decision_function(X[:500]), peer.decision_function(X[:500]), atol=1e-3
    )


def test_given_values() -> None:
    """As a matrix or by a function, with samples of weight 0 among them."""
    X, weights = sixes(), np.ones(150)
    weights[::4] = 0.0

    def kernel(A: Any, B: Any) -> Any:
        return rbf_kernel(A, B, 1e-3)

    named = dhsk.OneClassSVM(gamma=1e-3, tol=TOL).fit(X, sample_weight=weights)
    matrix = dhsk.OneClassSVM(kernel="precomputed", tol=TOL)
    matrix.fit(kernel(X, X), sample_weight=weights)
    function = dhsk.OneClassSVM(kernel=kernel, tol=TOL).fit(X, sample_weight=weights)
    expected = named.decision_function(X)
    np.testing.assert_allclose(matrix.decision_function(kernel(X, X)), expected, atol=CLOSE)
    np.testing.assert_allclose(function.decision_function(X), expected, atol=CLOSE)
    np.testing.assert_array_equal(matrix.support_, named.support_)
    with pytest.raises(InputError, match="a function cannot be written"):
        function.save("m")


def test_steps_are_bounded() -> None:
    """With a warning; the whole matrix need not fit."""
    with pytest.warns(ConvergenceWarning, match=r"early \(max_iter=3\).* after 3 steps"):
        model = dhsk.OneClassSVM(max_iter=3).fit(sixes())
    assert (model.n_iter_, model.fit_status_) == (3, 1)
    X = np.random.default_rng(0).normal(size=(6000, 2))
    room = held_bytes() + 300_000_000  # of the 432 MB that the matrix takes
    with pytest.warns(ConvergenceWarning):
        whole, on_rows = (
            dhsk.OneClassSVM(max_iter=60, memory=memory).fit(X) for memory in ("4GB", room)
        )
    assert on_rows.n_iter_ == 60
    np.testing.assert_allclose(on_rows.score_samples(X), whole.score_samples(X), atol=CLOSE)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_it_comes_back_from_a_file(kernel: str, tmp_path: Path) -> None:
    """With its parameters, attributes and results; and from a pickle."""
    X = sixes(60)
    given: Any = X @ X.T if kernel == "precomputed" else csr_matrix(X)
    model = dhsk.OneClassSVM(kernel=kernel, nu=0.2).fit(given)
    model.save(tmp_path / "m")
    for found in (dhsk.OneClassSVM.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        for name in ("predict", "decision_function", "score_samples"):
            np.testing.assert_array_equal(getattr(found, name)(given), getattr(model, name)(given))
        for name in ("support_", "shape_fit_", "offset_", "n_support_", "objective_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
        for name in ("dual_coef_", "support_vectors_"):
            np.testing.assert_array_equal(*(dense(getattr(m, name)) for m in (found, model)))
            assert type(getattr(found, name)) is type(getattr(model, name))
        assert found.get_params() == model.get_params()
