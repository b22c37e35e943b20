"""Kernel PCA: scikit-learn's components, signs and scores, in memory and by passes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import dhsk
from dhsk.solvers import eigenpairs

pytestmark = pytest.mark.threads

N, DIM, K = 90, 8, 3
AGREEMENT = 1e-8
"""What the textbook half of kernel methods must agree to."""


@pytest.fixture(params=["in memory", "in passes"])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The matrix as a whole, or by tiles in a Krylov space."""
    if request.param == "in passes":
        monkeypatch.setattr(eigenpairs, "SMALL", 20)
    return str(request.param)


@pytest.fixture
def X(counts: Any) -> Any:
    """Samples of a fit and others."""
    return counts(N + 10, DIM)


def oracle(model: Any, X: Any, new: Any) -> tuple[KernelPCA, Any]:
    """scikit-learn's model of the same kernel matrix, and its scores of new samples."""
    kernel = model.kernel_
    if model.sphere_map != "identity":
        X, new = dhsk.hyperspherical_map(X), dhsk.hyperspherical_map(new)
    expected = KernelPCA(K, kernel="precomputed", eigen_solver="dense").fit(kernel(X))
    return expected, expected.transform(kernel(new, X))


@pytest.mark.parametrize("kernel", [None, dhsk.GaussianKernel(2.0), "linear"], ids=str)
def test_components_and_scores_are_scikit_learns(X: Any, kernel: Any, way: str) -> None:
    """Values, vectors with their signs, scores of samples of the fit and of new ones."""
    sphere_map = None if kernel is None else "identity"
    model = dhsk.HeatKernelPCA(K, sphere_map=sphere_map, kernel=kernel, tol=1e-12)
    scores = model.fit_transform(X[:N])
    assert (model.n_iter_ == 2) == (way == "in memory")
    expected, new = oracle(model, X[:N], X[N:])
    largest = expected.eigenvalues_[0]
    assert np.abs(model.eigenvalues_ - expected.eigenvalues_).max() <= AGREEMENT * largest
    assert np.abs(model.eigenvectors_ - expected.eigenvectors_).max() <= AGREEMENT
    assert np.abs(model.transform(X[N:]) - new).max() <= AGREEMENT * np.sqrt(largest)
    assert np.abs(model.transform(X[:N]) - scores).max() <= AGREEMENT * np.sqrt(largest)
    assert model.converged_
    assert model.residuals_.max() <= 1e-12


def test_components_that_do_not_exist_are_zero() -> None:
    """A kernel of rank 2 has two components; the others have no scores."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    model = dhsk.HeatKernelPCA(4, kernel="linear").fit(X)
    assert (model.eigenvalues_[:2] > 1).all()
    assert (model.eigenvalues_[2:] == 0).all()
    assert (model.transform(X)[:, 2:] == 0).all()
    assert dhsk.HeatKernelPCA(5).fit(np.eye(3)).eigenvalues_.shape == (3,)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_store_a_client_and_passes_give_the_same(
    X: Any, dtype: str, client: Any, tmp_path: Path, way: str
) -> None:
    """Wherever the matrix is computed."""
    rounding = float(np.finfo(dtype).eps)
    here = dhsk.HeatKernelPCA(K, dtype=dtype).fit(X)
    stored = dhsk.HeatKernelPCA(K, dtype=dtype, store=tmp_path / "gram").fit(X)
    there = dhsk.HeatKernelPCA(K, dtype=dtype)
    there.client = client
    for model in (stored, there.fit(X)):
        assert np.abs(model.eigenvalues_ - here.eigenvalues_).max() <= 100 * N * rounding
        scores = np.abs(model.transform(X) - here.transform(X))
        assert scores.max() <= (1e-6 if dtype == "float64" else 1e-2)
    assert dhsk.open_gram(tmp_path / "gram").shape == (len(X), len(X))
    assert way


def test_passes_are_resumed_from_the_journal(
    X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same fit finds its passes, with the same bits."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    model = dhsk.HeatKernelPCA(K, journal=tmp_path).fit(X)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == model.n_iter_ + 1  # and the means
    (tmp_path / names[0]).unlink()
    again = clone(model).fit(X)
    assert again.eigenvectors_.tobytes() == model.eigenvectors_.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_what_is_lacking_is_said(X: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numbers, and at the line of the user."""
    monkeypatch.setattr(eigenpairs, "SMALL", 20)
    said = r"of 3 eigenpairs did not converge: .* after 3 passes, tol=1e-13; raise max_"
    with pytest.warns(ConvergenceWarning, match=said) as caught:
        model = dhsk.HeatKernelPCA(K, tol=1e-13, max_iter=3).fit(X)
    assert caught[0].filename == __file__
    assert not model.converged_


def test_it_is_a_transformer_of_scikit_learn(X: Any) -> None:
    """In a pipeline, pickled, with names of its features; and it takes zero rows as all do."""
    X[5] = 0
    with pytest.warns(dhsk.ZeroRowsWarning):
        model = dhsk.HeatKernelPCA(K).fit(X)
    assert list(model.get_feature_names_out()) == [f"heatkernelpca{i}" for i in range(K)]
    found = pickle.loads(pickle.dumps(model)).transform(X[:5])
    assert found.tobytes() == model.transform(X[:5]).tobytes()
    labels = np.arange(len(X)) % 2
    made = make_pipeline(dhsk.HeatKernelPCA(K), dhsk.HeatSVC(kernel="linear"))
    assert made.fit(X[:5], labels[:5]).predict(X[:5]).shape == (5,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, "n_components"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 1}, "max_iter"),
        ({"random_state": "abc"}, "random_state='abc' cannot be used"),
        ({"time_scale": 0.0}, "time_scale"),
    ],
)
def test_wrong_parameters_are_refused(X: Any, options: Any, words: str) -> None:
    """In words."""
    with pytest.raises(dhsk.InputError, match=words):
        dhsk.HeatKernelPCA(**options).fit(X)
