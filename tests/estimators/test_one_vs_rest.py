"""`HeatSVC(multi_class="ovr")`: the binary SVMs of scikit-learn, one of each class."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

import dhsk
from dhsk.errors import InputError

TIGHT = 1e-8
CLOSE = 1e-5
"""Decisions of two solutions at `TIGHT`: their gradients differ by some violations."""


def digits(n: int = 500, classes: int = 10) -> tuple[NDArray[Any], NDArray[Any]]:
    """Images of some digits."""
    X, y = load_digits(return_X_y=True)
    used = np.flatnonzero(y < classes)[:n]
    return X[used], np.array([f"class {c}" for c in y])[used]


def matrix(X: NDArray[Any]) -> NDArray[Any]:
    """Kernel values of mapped samples."""
    return dhsk.HeatKernel.at_scale(64, 0.7).of_rows(dhsk.hyperspherical_map(X))


def peer(X: Any, y: Any, C: float, weights: Any = None) -> NDArray[Any]:
    """Decisions of scikit-learn's binary SVMs for the samples themselves."""
    K, found = matrix(X), []
    for c in np.unique(y):
        model = SVC(kernel="precomputed", C=C, tol=TIGHT)
        found.append(model.fit(K, y == c, sample_weight=weights).decision_function(K))
    return np.column_stack(found)


def fitted(X: Any, y: Any, C: float = 3.0, weights: Any = None, **options: Any) -> dhsk.HeatSVC:
    """A fit at one time."""
    model = dhsk.HeatSVC(C, 0.7, multi_class="ovr", tol=TIGHT, **options)
    return model.fit(X, y, weights)


@pytest.mark.parametrize(("classes", "way"), [(2, "ovo"), (10, "ovo"), (11, "ovr")])
def test_above_ten_classes_it_is_the_default(classes: int, way: str) -> None:
    """Equal to what is asked for by name."""
    X, y = digits()
    y = np.arange(len(y)) % classes
    (automatic, named) = (
        dhsk.HeatSVC(3.0, 0.7, **given).fit(X, y).model_
        for given in ({}, {"multi_class": way})  # type: ignore[arg-type]
    )
    assert automatic.multi_class == way
    np.testing.assert_array_equal(automatic.expansion.dual_coef, named.expansion.dual_coef)


@pytest.mark.parametrize("C", [0.01, 3.0, 1e4])
def test_decisions_and_labels_are_those_of_binary_machines(C: float) -> None:
    """And the classifier of scikit-learn that makes them."""
    X, y = digits()
    model = fitted(X, y, C)
    decisions = peer(X, y, C)
    np.testing.assert_allclose(model.decision_function(X), decisions, atol=CLOSE)
    whole = OneVsRestClassifier(SVC(kernel="precomputed", C=C, tol=TIGHT)).fit(matrix(X), y)
    assert (model.predict(X) == whole.predict(matrix(X))).mean() >= 1 - 1 / len(y)
    assert model.dual_coef_.shape == (10, len(model.support_))
    assert model.intercept_.shape == model.n_iter_.shape == (10,)
    assert model.converged_


@pytest.mark.parametrize("way", ["working sets", "a store", "a linear kernel"])
def test_the_way_of_solving_changes_nothing(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the whole matrix does not fit."""
    X, y = digits()
    expected = peer(X, y, 3.0)
    if way == "working sets":
        for name, count in (("FIRST", 64), ("LEAST", 64), ("SPARE", 16), ("JOINING", 32)):
            monkeypatch.setattr(f"dhsk.solvers.working_set.{name}", count)
        monkeypatch.setattr("dhsk.solvers.pairs.FINE_SAMPLES", 64)
        monkeypatch.setattr("dhsk.models.pair_fits.way_of", lambda *_, **__: "working sets")
        found = fitted(X, y).decision_function(X)
    elif way == "a store":
        found = fitted(X, y, store=tmp_path / "G").decision_function(X)
    else:  # of a linear kernel, whose normal vectors decide
        root = np.linalg.cholesky(matrix(X) + 1e-10 * np.eye(len(X)))
        model = dhsk.HeatSVC(3.0, kernel="linear", multi_class="ovr", tol=TIGHT).fit(root, y)
        found = model.decision_function(root)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_weights_are_those_of_samples() -> None:
    """In every fit; those of classes multiply them."""
    X, y = digits(300, 4)
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    found = fitted(X, y, weights=weights).decision_function(X)
    np.testing.assert_allclose(found, peer(X, y, 3.0, weights), atol=CLOSE)
    factor = {c: 1.0 + k for k, c in enumerate(np.unique(y))}
    balanced = fitted(X, y, class_weight=factor).decision_function(X)
    own = np.array([factor[c] for c in y])
    np.testing.assert_allclose(balanced, peer(X, y, 3.0, own), atol=CLOSE)


def test_two_classes_are_one_pair() -> None:
    """Whatever is asked for."""
    X, y = digits(200, 2)
    both = [dhsk.HeatSVC(3.0, 0.7, multi_class=way).fit(X, y) for way in ("ovo", "ovr")]
    one, other = (model.decision_function(X) for model in both)
    np.testing.assert_array_equal(one, other)
    assert both[1].dual_coef_.shape[0] == 1


def test_a_file_has_all(tmp_path: Path) -> None:
    """Decisions, and the parameter."""
    X, y = digits(300, 4)
    model = fitted(X, y)
    model.save(tmp_path / "m.dhsk")
    again = dhsk.HeatSVC.load(tmp_path / "m.dhsk")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.multi_class == "ovr"


def test_probabilities_sum_to_one_and_go_with_decisions() -> None:
    """They are of held-out decisions of each class."""
    X, y = digits(400, 4)
    model = dhsk.HeatSVC(3.0, 0.7, multi_class="ovr", tol=TIGHT)
    model._with_sigmoids, model._seed_of_folds = True, 0  # as `dhsk train --probability`
    model.fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    assert (model.classes_[found.argmax(axis=1)] == y).mean() > 0.97
    order = np.argsort(model.decision_function(X)[:, 0])
    own = model.model_.sigmoids
    assert own.shape == (4, 2)
    assert (own[:, 0] < 0).all()  # a higher decision is a higher probability
    assert found[order[-1], 0] > found[order[0], 0]


def test_another_name_is_refused() -> None:
    """Before any work."""
    X, y = digits(100, 3)
    with pytest.raises(InputError, match="'auto', 'ovo' or 'ovr', but it is 'crammer'"):
        dhsk.HeatSVC(multi_class="crammer").fit(X, y)  # type: ignore[arg-type]
