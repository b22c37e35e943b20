"""The classifier: scikit-learn's contract, LIBSVM's optimum, and what it refuses."""

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
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.svm import pairs as pairs_module

TOL = 1e-9
"""Of both solvers, so that what they find agrees to `CLOSE`."""
CLOSE = 1e-5

ZERO_ROWS = "its samples have rows of zeros, which have no image on the sphere"
NOT_ON_A_SPHERE = dict.fromkeys(
    (
        "check_estimators_dtypes",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
    ),
    ZERO_ROWS,
)
NO_PROPORTIONS = NOT_ON_A_SPHERE | {
    "check_sample_weights_not_an_array": ZERO_ROWS,
    "check_sample_weights_pandas_series": ZERO_ROWS,
    "check_class_weight_classifiers": "its samples are negative, although the tag says not to",
}


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Checks with samples that the map of an estimator has no image for."""
    match estimator.sphere_map:
        case "hyperspherical":
            return NO_PROPORTIONS
        case "projective":
            return NOT_ON_A_SPHERE
        case _:
            return {}


# Weights and repetitions agree at the optimum: hence the tolerance.
@parametrize_with_checks(
    [
        dhsk.HeatSVC(tol=1e-10, time_scale=0.5),
        dhsk.HeatSVC(tol=1e-10, sphere_map="projective"),
        dhsk.HeatSVC(tol=1e-10, sphere_map=None, kernel=dhsk.GaussianKernel(1.0)),
    ],
    expected_failed_checks=expected_failed_checks,
)
def test_scikit_learns_contract(estimator: Any, check: Any) -> None:
    """Every check passes, but those whose samples the map cannot take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke some
        check(estimator)


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def heat(**options: Any) -> dhsk.HeatSVC:
    """An estimator that solves to the end."""
    return dhsk.HeatSVC(2.0, 0.5, **{"tol": TOL} | options)


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
    model = heat(class_weight="balanced").fit(X, y, weights)
    used = weights > 0
    without = heat(class_weight="balanced").fit(X[used], y[used])
    np.testing.assert_allclose(model.decision_function(X), without.decision_function(X), atol=CLOSE)


def test_float32_is_close() -> None:
    """Rows, kernel values and files are half as large; decisions are off by what cosines are."""
    X, y = digits(10)
    exact, single = heat().fit(X, y), heat(dtype="float32", tol=1e-4).fit(X, y)
    assert single.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(
        single.model_.decisions(single.model_.row_map(X)),
        exact.model_.decisions(exact.model_.row_map(X)),
        atol=1e-3,
    )


@pytest.fixture(scope="module")
def client() -> Any:
    """Two threads of this process behind a Dask client."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:  # fmt: skip
        yield client


@pytest.mark.parametrize("where", ["store", "client", "both"])
@pytest.mark.parametrize("sparse", [False, True])
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
    here = heat(probability=True, random_state=0).fit(given, y)
    there = heat(probability=True, random_state=0, **means).fit(given, y)
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
    np.testing.assert_allclose(found.decision_function(X), expected, atol=1e-4)


# Probabilities


def test_probabilities_are_near_those_of_scikit_learn() -> None:
    """Other folds, hence not the same: as good on samples not seen."""
    X, y = digits(3, 200)
    test, true = load_digits(n_class=3, return_X_y=True)
    model = heat(probability=True, random_state=1).fit(X, y)
    found = model.predict_proba(test)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found.argmax(axis=1) == true).mean() > 0.97
    assert -np.log(found[np.arange(len(true)), true]).mean() < 0.15
    np.testing.assert_array_equal(model.predict_log_proba(test), np.log(found))
    again = heat(probability=True, random_state=1).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(test), found)


def test_sigmoids_come_from_samples_held_out() -> None:
    """On random labels they are nearly flat, though the fit itself is nearly perfect."""
    X, _ = digits(10)
    y = np.random.default_rng(5).integers(0, 2, len(X))
    model = dhsk.HeatSVC(100.0, 0.2, probability=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.predict_proba(X)[:, 0].std() < 0.2


def test_probabilities_are_there_only_if_asked_for() -> None:
    """Before and after the fit; and a fit without them does not give them."""
    X, y = digits(2, 60)
    model = heat().fit(X, y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        model.predict_proba(X)
    with pytest.raises(NotFittedError, match="a fit with probability=True"):
        model.set_params(probability=True).predict_proba(X)


def test_a_class_of_one_sample_has_no_probability() -> None:
    """It cannot be held out."""
    X, y = digits(3)
    keep = np.r_[np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:1]]
    with pytest.raises(InputError, match="class 2 has one sample, but probability=True"):
        heat(probability=True).fit(X[keep], y[keep])
    heat().fit(X[keep], y[keep])


# As a part of scikit-learn


def test_it_works_in_pipelines_and_searches() -> None:
    """Grid search over C and time, behind another step, and cross-validation."""
    X, y = digits(3)
    pipeline = make_pipeline(FunctionTransformer(lambda X: X + 1), dhsk.HeatSVC())
    grid = {"heatsvc__C": [0.1, 10.0], "heatsvc__time_scale": [0.3, 1.0]}
    assert GridSearchCV(pipeline, grid, cv=3).fit(X, y).best_score_ > 0.97
    assert cross_val_score(dhsk.HeatSVC(10.0), X, y, cv=3).mean() > 0.97


def test_clones_share_the_client(client: Client) -> None:
    """Which cannot be copied; all else is."""
    kernel = dhsk.CosineKernel()
    original = dhsk.HeatSVC(3.0, client=client, kernel=kernel, class_weight={0: 2.0})
    copied = clone(original)
    assert copied.client is original.client is client
    assert copied.class_weight == {0: 2.0}
    assert copied.class_weight is not original.class_weight
    assert (copied.C, copied.kernel) == (3.0, kernel)


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
    model = heat(kernel=kernel, probability=True, class_weight={0: 2.0}, random_state=0)
    model.fit(frame, y).save(tmp_path / "model")
    found = dhsk.HeatSVC.load(tmp_path / "model")
    for method in ("decision_function", "predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(found, method)(frame), getattr(model, method)(frame))
    expected = model.get_params() | {"random_state": None}
    assert found.get_params() == expected
    assert list(found.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(found.dual_coef_, model.dual_coef_)
    assert clone(found).fit(X, y).score(X, y) == model.score(frame, y)


def test_an_estimator_that_is_not_fitted_says_so(tmp_path: Path) -> None:
    """In prediction and in saving."""
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        dhsk.HeatSVC().predict(np.ones((2, 3)))
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        dhsk.HeatSVC().save(tmp_path / "m")


def test_samples_of_a_file_are_fitted_the_same(tmp_path: Path) -> None:
    """`fit_samples` reads what `open_samples` takes, and reports progress."""
    X, y = digits(3)
    np.save(tmp_path / "x.npy", X)
    seen = []
    model = heat(probability=True, random_state=0).fit_samples(
        tmp_path / "x.npy", y, progress=seen.append
    )
    expected = heat(probability=True, random_state=0).fit(X, y)
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
        ({"time_scale": "1"}, "time_scale must be a finite number"),
        ({"sphere_map": "spherical"}, "there is no map 'spherical'"),
        ({"kernel": "heat"}, "kernel must be a kernel of dhsk or None, but it is 'heat'"),
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
        ({"kernel": dhsk.GaussianKernel(1.0), "dtype": "float32"}, "too many digits in float32"),
        (
            {"kernel": dhsk.SmoothedKernel(dhsk.HeatKernel(64, 0.1), 1.0)},
            "takes samples as they are",
        ),
        ({"sphere_map": "identity"}, "row 0 .* has norm"),
        ({"class_weight": {0: 0.0}}, "class 0 has the weight 0"),
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
    model = dhsk.HeatSVC(
        10.0, sphere_map=None, kernel=dhsk.SmoothedKernel(dhsk.HeatKernel.at_scale(6, 1.0), 0.5)
    ).fit(X, y)
    assert model.score(X, y) > 0.9
    X[4, 2] = -1
    with pytest.raises(InputError, match=r"row 4 of X .* negative"):
        model.predict(X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_rows_without_an_image_are_named(sparse: bool, stored: bool, tmp_path: Path) -> None:
    """In fit, wherever it runs, and in prediction."""
    X, y = digits(2, 60)
    model = heat().fit(X, y)
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
            heat(store=store).fit(given, y)
        with pytest.raises(InputError, match=message):
            model.predict(given)


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
        (lambda y: (y < 2) * 1.0, "all samples of class 2 have the weight 0"),
        (lambda y: y * 0.0, "(?i)sample.*weights"),
    ],
)
def test_weights_that_leave_no_problem_are_refused(weights: Any, message: str) -> None:
    """Negative ones, and those that leave a class without samples."""
    X, y = digits(3, 60)
    with pytest.raises(ValueError, match=message):
        heat().fit(X, y, weights(y))


def test_what_does_not_converge_says_so_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning, and the certificate."""
    X, y = digits(3)
    monkeypatch.setattr("dhsk.svm.dual.MAX_STEPS", 1)
    # 100 steps a sample are always allowed, so that the tolerance must be out of reach too.
    with pytest.warns(
        ConvergenceWarning, match=r"3 of 3 pairs .* violation is .* above tol=1e-300"
    ):
        model = heat(tol=1e-300).fit(X, y)
    assert not model.model_.certificates.converged.any()


def test_samples_beyond_the_memory_allowed_are_refused() -> None:
    """Before they are read, with both numbers."""
    X, y = digits(2, 60)
    with pytest.raises(BudgetError, match=re.compile(r"mapped samples take .* KB but 0 B")):
        heat(memory=1000).fit(X, y)


def test_another_number_of_features_is_refused() -> None:
    """In scikit-learn's words."""
    X, y = digits(2, 60)
    with pytest.raises(ValueError, match="X has 63 features, but HeatSVC is expecting 64"):
        heat().fit(X, y).predict(X[:, 1:])
