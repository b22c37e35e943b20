"""The classifier as a part of scikit-learn, in files, and what it refuses."""

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import dhsk
from dhsk.errors import BudgetError, InputError


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def heat(**options: Any) -> dhsk.HeatSVC:
    """An estimator that solves to the end."""
    return dhsk.HeatSVC(2.0, 0.5, **{"tol": 1e-9} | options)


def sizes() -> tuple[Any, Any]:
    """Five lengths that grow with the size of a sample alone, and two classes of sizes."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(200) % 2)
    size = np.exp(rng.normal(0, 0.12, 200) + 0.35 * y)[:, None]
    return np.array([2, 5, 3, 8, 4]) * size * np.exp(rng.normal(0, 0.05, (200, 5))), y


def warned(fit: Any) -> list[str]:
    """Warnings of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fit()
    return [str(one.message) for one in seen]


@pytest.mark.parametrize(
    "model", [dhsk.HeatSVC(), dhsk.NystromSVC(n_components=20, random_state=0)], ids=["svc", "rank"]
)
def test_classes_of_sizes_are_told(model: Any, tmp_path: Path) -> None:
    """Where the map forgets all that tells them apart; a map that was asked for is meant."""
    X, y = sizes()
    (said,) = warned(lambda: model.fit(X, y))
    assert said.startswith("the sums of rows, which the hyperspherical map forgets, predict")
    assert re.search(r"0\.9\d of 200 samples, by mapped samples for 0\.[45]\d", said)
    np.save(tmp_path / "x.npy", X)
    labels = np.where(y == 1, "large", "small")
    assert warned(lambda: model.fit_samples(str(tmp_path / "x.npy"), labels)) == [said]
    for other in ({"sphere_map": "hyperspherical"}, {"sphere_map": "scaled", "kernel": "gaussian"}):
        assert warned(lambda own=other: clone(model).set_params(**own).fit(X, y)) == []
    assert cross_val_score(dhsk.HeatSVC(sphere_map="scaled"), X, y).mean() > 0.85


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_totals_beside_proportions_that_tell_as_much_are_no_news(load: Any) -> None:
    """Of iris the totals separate a class, and so do proportions; of random labels neither does."""
    X, y = load(return_X_y=True)
    shuffled = np.random.default_rng(0).permutation(y)
    for labels in (y, shuffled):
        said = warned(lambda own=labels: dhsk.HeatSVC().fit(X, own))
        assert not [one for one in said if "sums of rows" in one]


# As a part of scikit-learn


@pytest.mark.slow
def test_it_works_in_pipelines_and_searches() -> None:
    """Grid search over C and time, behind another step, and cross-validation: LIBSVM's scores."""
    X, y = digits(3)

    def scores(X: Any, C: float, scale: float) -> Any:
        K = dhsk.HeatKernel.at_scale(64, scale)(dhsk.hyperspherical_map(X))
        return cross_val_score(SVC(C=C, kernel="precomputed"), K, y, cv=3)

    pipeline = make_pipeline(FunctionTransformer(lambda X: X + 1), dhsk.HeatSVC())
    grid = {"heatsvc__C": [0.1, 10.0], "heatsvc__time_scale": [0.3, 1.0]}
    found = GridSearchCV(pipeline, grid, cv=3).fit(X, y).cv_results_["mean_test_score"]
    expected = [scores(X + 1, C, scale).mean() for C in (0.1, 10.0) for scale in (0.3, 1.0)]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    np.testing.assert_array_equal(
        cross_val_score(dhsk.HeatSVC(10.0, 1.0), X, y, cv=3), scores(X, 10.0, 1.0)
    )


def test_clones_share_the_client(client: Client) -> None:
    """Which cannot be copied; all else is."""
    kernel = dhsk.CosineKernel()
    original = dhsk.HeatSVC(3.0, client=client, kernel=kernel, class_weight={0: 2.0})
    copied = clone(original)
    assert copied.client is original.client is client
    assert copied.class_weight == {0: 2.0}
    assert copied.class_weight is not original.class_weight
    assert (copied.C, copied.kernel) == (3.0, kernel)
    assert pickle.loads(pickle.dumps(original)).get_params() == original.get_params() | {
        "client": None
    }


def test_a_pickle_predicts_the_same() -> None:
    """As every estimator of scikit-learn."""
    X, y = digits(3, 100)
    model = heat().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("kernel", [None, dhsk.PolynomialKernel(3, 0.5)])
def test_a_file_predicts_the_same(kernel: Any, tmp_path: Path) -> None:
    """To the last bit, with parameters and feature names."""
    X, y = digits(3, 150)
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    model = heat(kernel=kernel, class_weight={0: 2.0})
    model._with_sigmoids = True  # as `dhsk train --probability`
    model.fit(frame, y).save(tmp_path / "model")
    found = dhsk.HeatSVC.load(tmp_path / "model")
    for method in ("decision_function", "predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(found, method)(frame), getattr(model, method)(frame))
    assert found.get_params() == model.get_params()
    assert list(found.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(found.dual_coef_, model.dual_coef_)
    assert clone(found).fit(X, y).score(X, y) == model.score(frame, y)


def test_an_estimator_that_is_not_fitted_says_so(tmp_path: Path) -> None:
    """In prediction and in saving."""
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        dhsk.HeatSVC().predict(np.ones((2, 3)))
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        dhsk.HeatSVC().save(tmp_path / "m")


@pytest.mark.filterwarnings("ignore:probability of SVC:FutureWarning")
def test_samples_of_a_file_are_fitted_the_same(tmp_path: Path) -> None:
    """`fit_samples` reads what `open_samples` takes, and reports progress."""
    X, y = digits(3)
    np.save(tmp_path / "x.npy", X)
    seen = []
    svc = dhsk.SVC(C=2.0, kernel="heat", time_scale=0.5, probability=True, random_state=0)
    model = clone(svc).fit_samples(tmp_path / "x.npy", y, progress=seen.append)
    expected = svc.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    stages = list(dict.fromkeys(event.stage for event in seen))
    assert stages == ["reading", "pairs of classes", "held-out decisions"]
    last = {event.stage: (event.done, event.total) for event in seen}
    assert last["pairs of classes"] == (3, 3)
    assert last["reading"] == last["held-out decisions"] == (300, 300)


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0}, "C must be above 0, but it is 0"),
        ({"C": np.inf}, "C must be a finite number"),
        ({"tol": -1.0}, "tol must be above 0"),
        ({"time_scale": "1"}, 'time_scale must be "auto" or a number, but it is .1'),
        ({"sphere_map": "spherical"}, "there is no map 'spherical'"),
        ({"kernel": "heated"}, "kernel must be a kernel of dhsk or one of heat, .* 'heated'"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64'"),
        ({"memory": "much"}, "memory must be a positive size"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(options: Any, message: str) -> None:
    """Even the samples are not looked at."""
    with pytest.raises(InputError, match=message):
        dhsk.HeatSVC(**options).fit(None, None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": dhsk.HeatKernel(5, 0.1)}, "kernel is for dim 5 but X has 64 features"),
        (
            {"kernel": dhsk.GaussianKernel(1.0), "dtype": "float32"},
            "take a larger sigma, or use float64",
        ),
        (
            {
                "kernel": dhsk.SmoothedKernel(dhsk.HeatKernel(64, 0.1), 1.0),
                "sphere_map": "hyperspherical",
            },
            "takes samples as they are",
        ),
        ({"sphere_map": "identity"}, "row 0 .* has norm"),
        ({"class_weight": {0: 0.0}}, "it is 0.0 for class 0"),
        ({"class_weight": "even"}, "class_weight"),
    ],
)
def test_what_does_not_go_together_is_refused(options: Any, message: str) -> None:
    """Kernel, map, samples and types."""
    X, y = digits(2, 30)
    with pytest.raises(ValueError, match=message):
        heat(**options).fit(X, y)


def test_smoothed_counts_take_rows_of_zeros(counts: Any) -> None:
    """A kernel that is defined on them, with its own map; its own conditions hold."""
    X = counts(40, 6)
    X[20:, :2] += 9
    X[3] = 0
    y = np.arange(40) // 20
    kernel = dhsk.SmoothedKernel(dhsk.HeatKernel.at_scale(6, 1.0), 0.5)
    model = dhsk.HeatSVC(10.0, sphere_map=None, kernel=kernel, tol=1e-9).fit(X, y)
    peer = SVC(C=10.0, kernel="precomputed", tol=1e-9).fit(kernel(X), y)
    rounding = 6e-8 * np.abs(peer.dual_coef_).sum()  # LIBSVM keeps its matrix as float32
    np.testing.assert_allclose(
        model.decision_function(X), peer.decision_function(kernel(X)), atol=rounding
    )
    X[4, 2] = -1
    with pytest.raises(InputError, match=r"row 4 of X .* negative"):
        model.fit(X, y)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_rows_without_an_image_are_named(sparse: bool, stored: bool, tmp_path: Path) -> None:
    """In fit, wherever it runs, and in prediction, where counts are clipped.

    Those of zeros if it is asked for.
    """
    X, y = digits(2, 60)
    model = heat(zero_rows="error").fit(X, y)
    zero, negative = X.copy(), X.copy()
    zero[41] = 0
    negative[17, 3] = -2
    store = tmp_path / "g" if stored else None
    for wrong, message in (
        (zero, "row 41 .* is all zero"),
        (negative, r"Negative values in data passed to HeatSVC: .*row 17, column 3 .* -2\.0"),
    ):
        given = csr_array(wrong) if sparse else wrong
        with pytest.raises(InputError, match=message):
            heat(store=store, zero_rows="error").fit(given, y)
        if wrong is zero:
            with pytest.raises(InputError, match=message):
                model.predict(given)


def test_values_that_are_not_finite_are_named() -> None:
    """In the words that scikit-learn asks for, with the row."""
    X, y = digits(2, 60)
    X[5, 2] = np.nan
    with pytest.raises(InputError, match=r"X contains NaN .* row 5, column 2 .* holds nan"):
        heat().fit(X, y)


def test_one_feature_has_no_heat_kernel() -> None:
    """But another kernel takes it."""
    X, y = np.arange(1.0, 9.0)[:, None], np.arange(8) // 4
    with pytest.raises(InputError, match="needs at least 2 features"):
        dhsk.HeatSVC().fit(X, y)
    gaussian = dhsk.HeatSVC(kernel=dhsk.GaussianKernel(1.0), sphere_map=None)
    assert gaussian.fit(X, y).score(X, y) == 1


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            lambda y: np.where(y == 0, -1.0, 1.0),
            "Negative values in data passed to `sample_weight`",
        ),
        (lambda y: (y == 1) * 1.0, "samples with positive weights belong to the same class"),
        (lambda y: y * 0.0, "(?i)sample.*weights"),
    ],
)
def test_weights_that_leave_no_problem_are_refused(weights: Any, message: str) -> None:
    """Negative ones, and those that leave fewer than two classes."""
    X, y = digits(3, 60)
    with pytest.raises(ValueError, match=message):
        heat().fit(X, y, weights(y))


@pytest.mark.parametrize("estimator", [heat(), dhsk.SVC(gamma=0.001)])
def test_a_class_of_weight_zero_is_as_if_it_were_not_there(estimator: Any) -> None:
    """As BaggingClassifier draws them; its samples are in no problem."""
    X, y = digits(3, 60)
    kept = y != 1
    weighted = clone(estimator).fit(X, y, sample_weight=kept * 1.0)
    without = clone(estimator).fit(X[kept], y[kept])
    assert weighted.classes_.tolist() == [0, 2]
    np.testing.assert_array_equal(weighted.predict(X), without.predict(X))


def test_bagging_of_few_samples_has_parts_without_a_class() -> None:
    """Their weights are 0, after which scikit-learn's own SVC takes one class for another."""
    X, y = digits(10, 40)
    bagged = BaggingClassifier(dhsk.SVC(gamma=1e-3), n_estimators=5, random_state=0).fit(X, y)
    assert min(len(one.classes_) for one in bagged.estimators_) < 10
    for one, drawn in zip(bagged.estimators_, bagged.estimators_samples_, strict=True):
        peer = SVC(gamma=1e-3).fit(X[drawn], y[drawn])
        np.testing.assert_array_equal(one.predict(X), peer.predict(X))


def test_what_does_not_converge_says_so_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning, and the certificate."""
    X, y = digits(3)
    monkeypatch.setattr("dhsk.solvers.dual.MAX_STEPS", 1)
    # 100 steps a sample are always allowed, so that the tolerance must be out of reach too.
    with pytest.warns(
        ConvergenceWarning, match=r"3 of 3 fits of classes .* violation is .* above tol=1e-300"
    ):
        model = heat(tol=1e-300).fit(X, y)
    assert not model.model_.certificates.converged.any()


def test_samples_beyond_the_memory_allowed_are_refused() -> None:
    """Before they are read, with both numbers."""
    X, y = digits(2, 60)
    with pytest.raises(BudgetError, match=re.compile(r"mapped samples take .* kiB but 0 B")):
        heat(memory=1000).fit(X, y)


def test_another_number_of_features_is_refused() -> None:
    """In scikit-learn's words."""
    X, y = digits(2, 60)
    with pytest.raises(ValueError, match="X has 63 features, but HeatSVC is expecting 64"):
        heat().fit(X, y).predict(X[:, 1:])


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_features_are_those_of_scikit_learn(classes: int) -> None:
    """Of scaled columns, pair by pair and each against the rest; other kernels have none."""
    X, y = load_wine(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    kernel = {"C": 1.0, "kernel": "linear", "tol": 1e-8}
    own = dhsk.HeatSVC(**kernel, sphere_map="scaled", multi_class="ovo").fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    peer = SVC(**kernel).fit(scaled, y)
    np.testing.assert_allclose(own.coef_, peer.coef_, atol=1e-5)
    rest = dhsk.HeatSVC(**kernel, sphere_map="scaled", multi_class="ovr").fit(X, y)
    np.testing.assert_allclose(
        (scaled @ rest.coef_.T + rest.intercept_).squeeze(), rest.decision_function(X)
    )
    assert RFE(own, n_features_to_select=5).fit(X, y).support_.sum() == 5
    with pytest.raises(AttributeError, match="coef_ is for linear and cosine kernels"):
        _ = dhsk.HeatSVC(kernel="gaussian", sphere_map="scaled").fit(X, y).coef_
