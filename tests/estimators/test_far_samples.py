"""Drop-ins of scikit-learn on samples far from 0, as unix times are."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

import dhsk

X, Y = load_iris(return_X_y=True)
X = np.round(X * 16) / 16  # so that sums with 2^27 are exact
FAR = X + 2.0**27

DROP_INS = [dhsk.SVC(gamma=0.5), dhsk.SVR(gamma=0.5), dhsk.OneClassSVM(gamma=0.5)]
NAMES = ["SVC", "SVR", "OneClassSVM"]


@pytest.mark.parametrize("model", DROP_INS, ids=NAMES)
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "full rows"])
def test_far_samples_are_as_near_ones(model: Any, form: Any, tmp_path: Path) -> None:
    """Distances are exact, from a file too; support vectors are the samples."""
    near = type(model)(gamma=0.5).fit(X, Y)
    found = type(model)(gamma=0.5).fit(form(FAR), Y)
    decide = "predict" if isinstance(model, dhsk.SVR) else "decision_function"
    wanted = getattr(near, decide)(X)
    found.save(tmp_path / "model")
    for one in (found, type(model).load(tmp_path / "model")):
        np.testing.assert_allclose(getattr(one, decide)(form(FAR)), wanted, atol=1e-5)
        vectors = one.support_vectors_
        vectors = vectors if isinstance(vectors, np.ndarray) else vectors.toarray()
        np.testing.assert_array_equal(vectors, FAR[one.support_])


def test_unix_times_are_told_apart() -> None:
    """Of a table whose other column is near 0."""
    rng = np.random.default_rng(0)
    times = np.column_stack([1.7e9 + rng.uniform(0, 100, 300), rng.normal(size=300)])
    labels = np.sin(times[:, 0] / 5) > 0
    for table in (times, times.astype(np.int64)):
        model = dhsk.SVC(C=100, gamma=0.05).fit(table, labels)
        assert model.score(table, labels) > 0.95
        np.testing.assert_array_equal(model.support_vectors_, table[model.support_])


def test_a_file_whose_means_are_of_other_features_is_refused(tmp_path: Path) -> None:
    """As a damaged one."""
    model = dhsk.SVR(gamma=0.5).fit(FAR, Y)
    model._fitted_map = replace(model._fitted_map, weights=np.ones((2, 3)))
    model.save(tmp_path / "model")
    with pytest.raises(dhsk.InputError, match="damaged model: feature_weights has shape"):
        dhsk.SVR.load(tmp_path / "model")


def test_a_stored_matrix_is_of_centred_samples(tmp_path: Path) -> None:
    """As the model is."""
    model = dhsk.SVC(gamma=0.5, store=str(tmp_path)).fit(FAR, Y)
    near = dhsk.SVC(gamma=0.5).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(FAR), near.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("model", DROP_INS, ids=NAMES)
def test_gaps_of_new_samples_are_still_refused(model: Any) -> None:
    """A map that subtracts means fills gaps where it is asked to, but here nobody asked."""
    gaps = FAR.copy()
    gaps[3, 1] = np.nan
    fitted = type(model)(gamma=0.5).fit(FAR, Y)
    for use in (lambda: fitted.predict(gaps), lambda: type(model)().fit(gaps, Y)):
        with pytest.raises(ValueError, match="contains NaN"):
            use()


def test_near_samples_are_not_changed() -> None:
    """Nothing is subtracted of them, nor with a linear kernel."""
    for model in (dhsk.SVC(gamma=0.5).fit(X, Y), dhsk.SVC(kernel="poly", gamma=1e-16).fit(FAR, Y)):
        assert model._fitted_map.weights is None
