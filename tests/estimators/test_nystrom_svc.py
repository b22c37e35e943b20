"""The low-rank classifier: scikit-learn's contract, its attributes, and odd samples."""

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from numpy.lib.format import open_memmap
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import dhsk
from dhsk.errors import InputError
from dhsk.models.problem import LABELS
from dhsk.nystrom.approximation import approximate

CLOSE = 1e-5
"""Decisions of features in float64, solved to the end."""


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


def nystrom(**options: Any) -> dhsk.NystromSVC:
    """An estimator that solves to the end."""
    defaults = {"time_scale": 0.5, "tol": 1e-9, "dtype": "float64", "random_state": 1}
    return dhsk.NystromSVC(**{"n_components": 60, "C": 2.0, **defaults, **options})


def test_attributes() -> None:
    """What was learned, of ten classes and of two."""
    X, y = digits(10)
    model = nystrom().fit(X, y)
    assert model.classes_.tolist() == list(range(10))
    assert model.landmarks_.shape == (60, 64)
    np.testing.assert_allclose(
        model.landmarks_, dhsk.hyperspherical_map(X[model.landmark_indices_]), rtol=1e-15
    )
    assert (model.landmark_coef_.shape, model.intercept_.shape) == ((10, 60), (10,))
    K = model.kernel_(dhsk.hyperspherical_map(X), model.landmarks_)
    decisions = model.decision_function(X)
    np.testing.assert_allclose(decisions, K @ model.landmark_coef_.T + model.intercept_, atol=1e-9)
    assert (model.n_components_, model.n_features_in_, model.converged_) == (60, 64, True)
    assert 0 < model.trace_error_ < 1
    assert 0 <= model.duality_gap_ < CLOSE
    assert model.gradient_norm_ == pytest.approx(model.model_.certificates.gradient_norm.max())
    assert model.objective_.shape == (10,)
    assert model.n_iter_ > 0
    two = nystrom().fit(*digits(2))
    assert two.decision_function(X).shape == (300,)
    labels = two.classes_[(two.decision_function(X) > 0).astype(int)]
    np.testing.assert_array_equal(two.predict(X), labels)


def test_trace_error_is_that_of_the_features() -> None:
    """The same landmarks as `NystromFeatures` of the same seed, and a tolerance for them."""
    X, y = digits(3)
    features = dhsk.NystromFeatures(60, oversampling=1, time_scale=0.5, random_state=1).fit(X)
    model = nystrom().fit(X, y)
    np.testing.assert_array_equal(model.landmark_indices_, features.landmark_indices_)
    assert model.trace_error_ == pytest.approx(features.trace_error_)
    rough = nystrom(landmark_tol=0.4).fit(X, y)
    assert rough.n_components_ < 60
    assert rough.trace_error_ <= 0.4


@pytest.mark.parametrize("weight", ["balanced", {"c1": 0.3, "c2": 4.0}])
def test_class_weights_are_those_of_samples(weight: Any) -> None:
    """Every sample has the weight of its class, times its own; labels are strings."""
    X, y = digits(3)
    own = np.random.default_rng(2).uniform(0.5, 2, len(y))
    own[:9] = 0
    labels = np.array([f"c{label}" for label in y])
    model = nystrom(class_weight=weight).fit(X, labels, own)
    if weight == "balanced":
        counts = np.bincount(y[own > 0])
        factors = (own > 0).sum() / (3 * counts)
    else:
        factors = np.array([1.0, 0.3, 4.0])
    expected = nystrom().fit(X, labels, own * factors[y])
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), atol=CLOSE
    )


def test_probabilities() -> None:
    """Of the logistic loss only."""
    X, y = digits(3)
    model = nystrom(loss="logistic").fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found))
    assert not hasattr(nystrom(), "predict_proba")
    with pytest.raises(AttributeError, match="with loss='squared_hinge': fit it with loss='logis"):
        nystrom().fit(X, y).set_params(loss="logistic").predict_proba(X)


def test_single_precision_is_near() -> None:
    """The default type, dense and sparse.

    The objective is at least half the squared distance of the coefficients from the optimum above
    its minimum, and features have norms of at most 1, beside that of the intercept.
    """
    X, y = digits(4)
    double = nystrom().fit(X, y)
    for given in (X, csr_array(X)):
        single = nystrom(dtype="float32", tol=1e-4).fit(given, y)
        assert single.landmarks_.dtype == np.float32
        assert single.converged_
        np.testing.assert_array_equal(single.landmark_indices_, double.landmark_indices_)
        distance = np.sqrt(2 * single.duality_gap_ * single.objective_.max())
        np.testing.assert_allclose(
            single.decision_function(given),
            double.decision_function(X),
            atol=np.sqrt(2) * distance + CLOSE,
        )


def test_files_clones_and_pickles(tmp_path: Path) -> None:
    """The estimator comes back with its parameters, and the same decisions."""
    X, y = digits(3)
    model = nystrom(class_weight={0: 2.0, 1: 1.0, 2: 1.0}, landmark_tol=0.3).fit(X, y)
    model.save(tmp_path / "m")
    found = dhsk.NystromSVC.load(tmp_path / "m")
    for other in (found, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    kept = {"n_components", "C", "tol", "landmark_tol", "class_weight", "dtype", "time_scale"}
    for name in kept:
        assert getattr(found, name) == getattr(model, name)
    assert found.trace_error_ == model.trace_error_
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.landmark_coef_, model.landmark_coef_)


@pytest.mark.slow
def test_centres_and_more_landmarks_than_features(nystrom_oracle: Any, tmp_path: Path) -> None:
    """Centres of groups are no samples; the leading components are fewer than the landmarks."""
    X, y = digits(3)
    centres = nystrom(selection="kmeans").fit(X, y)
    assert centres.landmark_indices_ is None
    Z = nystrom_oracle(centres.kernel_, dhsk.hyperspherical_map(X), centres.landmarks_)
    peer = LinearSVC(C=2.0, dual=False, tol=1e-9, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(centres.decision_function(X), peer.decision_function(Z), atol=CLOSE)
    centres.save(tmp_path / "m")
    found = dhsk.NystromSVC.load(tmp_path / "m")
    assert found.landmark_indices_ is None
    np.testing.assert_array_equal(found.predict(X), centres.predict(X))
    more = nystrom(oversampling=1.5).fit(X, y)
    assert (len(more.landmarks_), more.n_components_) == (90, 60)
    assert more.trace_error_ < nystrom().fit(X, y).trace_error_


@pytest.mark.slow
def test_a_client_gives_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """On its workers; clones keep it, and files of samples can be used."""
    X, y = digits(3)
    tiers = []

    def watched(*words: Any, **options: Any) -> Any:
        found = approximate(*words, **options)
        tiers.append(found.tier)
        return found

    monkeypatch.setattr("dhsk.models.train_low_rank.approximate", watched)
    with Client(
        processes=False, n_workers=1, dashboard_address="127.0.0.1:0", set_as_default=False
    ) as client:
        model = clone(nystrom(client=client)).fit_samples(X, y)
        assert model.client is client
    here = nystrom().fit_samples(X, y)
    assert tiers == ["on workers", "features in memory"]
    np.testing.assert_allclose(model.decision_function(X), here.decision_function(X), atol=1e-4)


# Odd samples


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform"])
def test_more_components_than_samples(selection: str) -> None:
    """There are no more landmarks than samples, and nothing is lost."""
    X, y = digits(3, 50)
    model = nystrom(n_components=1000, selection=selection).fit(X, y)
    assert len(model.landmark_indices_) <= 50
    assert model.trace_error_ < 1e-9
    assert model.score(X, y) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_samples_identical(dtype: str) -> None:
    """One feature, and the class of more samples."""
    X = np.ones((30, 5))
    y = np.repeat([0, 1], [20, 10])
    with pytest.warns(dhsk.InputWarning, match="Unless all are equal"):
        model = nystrom(dtype=dtype, tol=1e-4).fit(X, y)
    assert model.n_components_ == 1
    assert model.trace_error_ < 1e-6
    assert not model.predict(X).any()


def test_bad_rows_are_named() -> None:
    """NaN, and zeros where they are to be refused."""
    X, y = digits(3)
    for value, message in [(np.nan, "row 17"), (0.0, "row 17 .*all zero")]:
        bad = X.copy()
        bad[17] = value
        with pytest.raises(InputError, match=message):
            nystrom(zero_rows="error").fit(bad, y)
        with pytest.raises(InputError, match=message):
            nystrom(zero_rows="error").fit(X, y).predict(bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"C": 0.0}, "C must be above 0"),
        ({"tol": -1.0}, "tol must be above 0"),
        ({"landmark_tol": 1.0}, "landmark_tol must be at least 0 and below 1, but it is 1.0"),
        ({"oversampling": 0.5}, "oversampling must be at least 1, but it is 0.5"),
        ({"loss": "cubic"}, "loss must be 'squared_hinge' or 'logistic', but it is 'cubic'"),
        ({"selection": "best"}, "selection must be .* or indices of rows, but it is 'best'"),
        ({"selection": [1, 300]}, "selection names row 300, but the 300 samples"),
        ({"kernel": dhsk.GaussianKernel(1.0), "dtype": "float32", "sphere_map": None}, "float32"),
    ],
)
def test_parameters_that_cannot_be(options: Any, message: str) -> None:
    """Each is refused by its name."""
    with pytest.raises(InputError, match=message):
        nystrom(**options).fit(*digits(3))


def test_labels_that_cannot_be() -> None:
    """One class, and too few labels."""
    X, y = digits(3)
    with pytest.raises(InputError, match="number of classes has to be greater than one"):
        nystrom().fit(X, np.zeros(len(y)))
    with pytest.raises(InputError, match=r"labels of shape \(299,\) for 300 samples"):
        nystrom().fit_samples(X, y[1:])


def test_a_warning_where_it_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the numbers; the model is there."""
    monkeypatch.setattr("dhsk.linear.newton.MOST_NEWTON", 1)
    X, y = digits(3)
    with pytest.warns(
        ConvergenceWarning, match="3 of 3 classes did not converge to tol=1e-09 in 1"
    ):
        model = nystrom().fit(X, y)
    assert not model.converged_


def test_a_fit_to_a_file_can_be_gone_on_with(tmp_path: Path) -> None:
    """From its journal, to the same bits."""
    X, y = digits(3)
    np.save(tmp_path / "x.npy", X)

    def interrupt(event: dhsk.Progress) -> None:
        if event.stage == "training":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nystrom().fit_samples(tmp_path / "x.npy", y, interrupt, tmp_path / "journal")
    assert list((tmp_path / "journal").glob("newton-*.npz"))
    found = nystrom().fit_samples(tmp_path / "x.npy", y, journal=tmp_path / "journal")
    np.testing.assert_array_equal(found.landmark_coef_, nystrom().fit(X, y).landmark_coef_)


def test_a_budget_ends_a_fit_with_a_bound(monkeypatch: Any, tmp_path: Path) -> None:
    """One warning says how good it is; the same call with checkpoints goes on."""
    X, y = digits(4)
    now = [0.0]
    monkeypatch.setattr("dhsk.clock.monotonic", lambda: now[0])

    def see(event: dhsk.Progress) -> None:
        now[0] += 2.0 * (event.stage == "training")

    with pytest.warns(ConvergenceWarning, match="stopped at budget 3s, after 2 Newton") as caught:
        model = nystrom(budget="3s").fit_samples(X, y, see, tmp_path)
    assert len(caught) == 1
    whole = nystrom().fit(X, y)
    assert not model.converged_
    missing = (model.objective_ - whole.objective_) / model.objective_
    assert missing.max() > 0
    assert missing.max() <= model.duality_gap_
    model.save(tmp_path / "m")
    loaded = dhsk.NystromSVC.load(tmp_path / "m")
    assert (loaded.budget, loaded.model_.stopped) == ("3s", model.model_.stopped)
    assert clone(model).get_params()["budget"] == "3s"
    assert "budget='3s'" in repr(clone(model))
    again = nystrom(budget="1h").fit_samples(X, y, see, tmp_path)
    np.testing.assert_array_equal(again.landmark_coef_, whole.landmark_coef_)


@pytest.mark.parametrize("budget", [0, -1, "soon", "0min", np.nan, np.inf, [1], True])
def test_a_budget_is_a_time_above_0(budget: Any) -> None:
    """Before anything is computed."""
    with pytest.raises(InputError, match="budget must be a positive time such as 30min"):
        nystrom(budget=budget).fit(*digits(2))


def test_files_of_samples_and_labels(tmp_path: Path) -> None:
    """Both are read by `fit_samples`; elsewhere a name of a file says where it goes."""
    X, y = digits(3)
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.txt").write_text("".join(f"{one}\n" for one in y))
    found = nystrom().fit_samples(tmp_path / "X.npy", tmp_path / "y.txt")
    assert np.array_equal(found.predict(X), nystrom().fit(X, y).predict(X))
    for name in (tmp_path / "X.npy", str(tmp_path / "X.npy")):
        with pytest.raises(InputError, match=r"X is the name of a file, '.*X.npy': fit_samples\("):
            nystrom().fit(name, y)
        with pytest.raises(InputError, match=r"X is the name of .*: fit_samples\(FILE\) reads"):
            dhsk.NystromFeatures(3).fit(name)


def test_before_the_features_no_number_is_held_of_each_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many samples there are labels, codes and masks of a byte, and no vector of floats."""
    n = 16 * LABELS
    open_memmap(tmp_path / "X.npy", "w+", np.float32, (n, 2))
    y = np.arange(n, dtype=np.uint8) % 3

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dhsk.models.train_low_rank.approximate", stop)
    tracemalloc.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            dhsk.NystromSVC(20, C=1.0, time_scale=0.5).fit_samples(str(tmp_path / "X.npy"), y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n
