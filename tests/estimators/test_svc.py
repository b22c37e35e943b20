"""The classifier: scikit-learn's contract, and LIBSVM's optimum wherever it is fitted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, log_loss
from sklearn.svm import SVC

import dhsk
from dhsk.solvers import pairs as pairs_module

TOL = 1e-9
"""Of both solvers, so that what they find agrees to `CLOSE`."""
CLOSE = 1e-5


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def heat(**options: Any) -> dhsk.HeatSVC:
    """An estimator that solves to the end."""
    return dhsk.HeatSVC(2.0, 0.5, **{"tol": TOL} | options)


def platt(**options: Any) -> dhsk.SVC:
    """The same with probabilities, by the parameter of scikit-learn's."""
    own = {"C": 2.0, "time_scale": 0.5, "tol": TOL, "random_state": 0} | options
    return dhsk.SVC(kernel="heat", probability=True, **own)


def libsvm(X: Any, y: Any, sample_weight: Any = None, **options: Any) -> tuple[SVC, Any]:
    """scikit-learn's on the same matrix, and what makes its test matrices."""
    kernel, unit = dhsk.HeatKernel.at_scale(64, 0.5), dhsk.hyperspherical_map(X)
    svc = SVC(C=2.0, kernel="precomputed", tol=TOL, **options)
    return svc.fit(kernel(unit), y, sample_weight), lambda Z: kernel(
        dhsk.hyperspherical_map(Z), unit
    )


def assert_same(model: dhsk.HeatSVC, svc: SVC, test: Any, K: Any, used: Any = None) -> None:
    """Attributes, decisions and labels are scikit-learn's, which was given some samples only."""
    numbers = np.arange(svc.shape_fit_[0]) if used is None else used
    np.testing.assert_array_equal(model.classes_, svc.classes_)
    np.testing.assert_array_equal(model.support_, numbers[svc.support_])
    np.testing.assert_array_equal(model.n_support_, svc.n_support_)
    np.testing.assert_allclose(model.dual_coef_, svc.dual_coef_, atol=CLOSE)
    np.testing.assert_allclose(model.intercept_, svc.intercept_, atol=CLOSE)
    np.testing.assert_allclose(model.decision_function(test), svc.decision_function(K), atol=CLOSE)
    np.testing.assert_array_equal(model.predict(test), svc.predict(K))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_that_of_scikit_learn(k: int, sparse: bool) -> None:
    """Two classes, three and ten; dense and CSR samples; the certificate says so too."""
    X, y = digits(k)
    test = load_digits().data[1500:]
    svc, matrix = libsvm(X, y)
    model = heat().fit(csr_array(X) if sparse else X, y)
    assert_same(model, svc, csr_array(test) if sparse else test, matrix(test))
    assert model.kkt_violation_ <= TOL
    assert 0 <= model.duality_gap_ < CLOSE
    assert model.support_vectors_.shape == (len(model.support_), 64)
    assert model.n_iter_.shape == (k * (k - 1) // 2,)


def test_the_dual_objective_is_that_of_scikit_learn() -> None:
    """Of two classes: the sum of the alphas less half the squared norm."""
    X, y = digits(2)
    svc, matrix = libsvm(X, y)
    coef = svc.dual_coef_[0]
    K = matrix(X)[np.ix_(svc.support_, svc.support_)]
    objective = np.abs(coef).sum() - coef @ K @ coef / 2
    found = heat().fit(X, y).model_.certificates.objective
    np.testing.assert_allclose(found, [objective], rtol=1e-9)  # its error is that of coef squared


@pytest.mark.parametrize("weight", ["balanced", {"c1": 0.3, "c2": 4.0}])
def test_class_weights_and_strings(weight: Any) -> None:
    """Labels are strings, of unequal classes; those not named weigh 1."""
    X, y = digits(3)
    keep = np.arange(len(y)) % 5 < 2
    keep |= y > 0
    X, labels = X[keep], np.array([f"c{label}" for label in y[keep]])
    svc, matrix = libsvm(X, labels, class_weight=weight)
    assert_same(heat(class_weight=weight).fit(X, labels), svc, X, matrix(X))


@pytest.mark.parametrize("k", [2, 3])
def test_sample_weights(k: int, rng: np.random.Generator) -> None:
    """As scikit-learn's; and samples of weight 0 are as if absent."""
    X, y = digits(k)
    weights = rng.uniform(0.1, 3.0, len(y))
    weights[::4] = 0
    used = np.flatnonzero(weights)
    svc, matrix = libsvm(X[used], y[used], weights[used])
    assert_same(heat().fit(X, y, weights), svc, X, matrix(X), used)


def test_balanced_weights_do_not_count_samples_of_weight_zero() -> None:
    """They are absent there too."""
    X, y = digits(2)
    weights = np.where((y == 0) & (np.arange(len(y)) % 2 == 0), 0.0, 1.0)
    # At this C all coefficients are at their bounds, which the weights move.
    model = dhsk.HeatSVC(0.01, tol=TOL, class_weight="balanced").fit(X, y, weights)
    used = weights > 0
    without = dhsk.HeatSVC(0.01, tol=TOL, class_weight="balanced").fit(X[used], y[used])
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), atol=CLOSE)


def test_float32_is_close() -> None:
    """Rows, kernel values and files are half as large; decisions are off by what cosines are.

    The kernel's slope is below 7, so each of its values is off by 8 eps of float32 at most.
    """
    X, y = digits(10)
    exact, single = heat().fit(X, y), heat(dtype="float32", tol=1e-6).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        single.model_.decisions(single.model_.row_map(X)),
        exact.model_.decisions(exact.model_.row_map(X)),
        atol=8 * np.finfo(np.float32).eps * np.abs(exact.dual_coef_).sum(axis=1).max(),
    )


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize("where", ["store", "client", "both"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_predictions_do_not_depend_on_where_it_is_fitted(
    where: str, sparse: bool, client: Client, tmp_path: Path
) -> None:
    """In memory, from a stored Gram matrix, or on workers."""
    X, y = digits(4)
    given = csr_array(X) if sparse else X
    means = {
        "store": {"store": tmp_path / "g"},
        "client": {"client": client},
        "both": {"store": tmp_path / "g", "client": client},
    }[where]
    here = platt().fit(given, y)
    there = platt(**means).fit(given, y)
    np.testing.assert_array_equal(there.support_, here.support_)
    as_arrays = [
        m.support_vectors_.toarray() if sparse else m.support_vectors_ for m in (here, there)
    ]
    np.testing.assert_array_equal(*as_arrays)
    for method in ("decision_function", "predict", "predict_proba"):
        found, expected = getattr(there, method)(given), getattr(here, method)(given)
        np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)


def test_a_fit_that_does_not_fit_memory_goes_in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the same optimum."""
    X, y = digits(2)
    expected = heat().fit(X, y).decision_function(X)
    monkeypatch.setattr(pairs_module, "largest_block", lambda *_: 128)
    found = heat(tol=1e-6).fit(X, y)
    assert found.kkt_violation_ <= 1e-6
    np.testing.assert_allclose(found.decision_function(X), expected, atol=CLOSE)


# Probabilities


@pytest.mark.filterwarnings("ignore:.*probability:FutureWarning")  # of both
def test_probabilities_are_near_those_of_scikit_learn() -> None:
    """Other folds, hence not the same: on samples not seen as good as one of LIBSVM's seeds."""
    X, y = digits(3, 200)
    test, true = load_digits(n_class=3, return_X_y=True)
    peers = []
    for seed in range(5):
        svc, matrix = libsvm(X, y, probability=True, random_state=seed)
        peers.append(svc.predict_proba(matrix(test)))
    model = platt(random_state=1).fit(X, y)
    found = model.predict_proba(test)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert accuracy_score(true, found.argmax(axis=1)) >= min(
        accuracy_score(true, peer.argmax(axis=1)) for peer in peers
    )
    assert log_loss(true, found) <= max(log_loss(true, peer) for peer in peers)
    np.testing.assert_array_equal(model.predict_log_proba(test), np.log(found))
    again = platt(random_state=1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(test), found)


@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_sigmoids_come_from_samples_held_out() -> None:
    """On random labels they are nearly flat, though the fit itself is nearly perfect."""
    X, _ = digits(10)
    y = np.random.default_rng(5).integers(0, 2, len(X))
    model = platt(C=100.0, time_scale=0.2, tol=1e-3).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict_proba(X)[:, 0].std() < 0.2


@pytest.mark.parametrize(
    ("estimator", "way"),
    [
        (dhsk.HeatSVC(), r"CalibratedClassifierCV\(HeatSVC\(...\), ensemble=False\)"),
        (dhsk.NystromSVC(5), r"loss='logistic', or CalibratedClassifierCV"),
    ],
)
def test_without_probabilities_the_way_to_them_is_said(estimator: Any, way: str) -> None:
    """Before and after the fit, by the error itself and not by its cause."""
    X, y = digits(2, 60)
    for model in (clone(estimator), clone(estimator).fit(X, y)):
        for name in ("predict_proba", "predict_log_proba"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=way):
                getattr(model, name)


def test_the_parameter_of_probabilities_is_deprecated() -> None:
    """As scikit-learn's is: it works, warns at the line of the user, and names what follows it."""
    X, y = digits(2, 60)
    with pytest.warns(FutureWarning, match=r"CalibratedClassifierCV\(SVC\(\)") as caught:
        model = platt().fit(X, y)
    assert [one.filename for one in caught] == [__file__]
    assert model.predict_proba(X).shape == (60, 2)


def test_calibrated_classifiers_have_probabilities() -> None:
    """From decisions in held-out folds, on samples not seen about as good as Platt's own."""
    X, y = digits(3)
    test, true = load_digits(n_class=3, return_X_y=True)
    calibrated = CalibratedClassifierCV(heat(), ensemble=False).fit(X, y)
    assert log_loss(true, calibrated.predict_proba(test)) < 0.1


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_a_class_of_one_sample_has_probabilities(classes: int) -> None:
    """Held out, it is decided against, as LIBSVM does; most probable it is where its sample is."""
    X, y = digits(classes)
    lone = classes - 1
    keep = np.r_[np.flatnonzero(y < lone), np.flatnonzero(y == lone)[:1]]
    model = platt().fit(X[keep], y[keep])
    P = model.predict_proba(X[keep])
    assert np.abs(P.sum(axis=1) - 1).max() < 1e-12  # a few roundings of numbers below 1
    assert 0 < P[:-1, lone].max() < P[-1, lone] < 1
    one_each = platt().fit(X[keep[[0, -1]]], y[keep[[0, -1]]])
    assert np.isfinite(one_each.predict_proba(X[keep])).all()
