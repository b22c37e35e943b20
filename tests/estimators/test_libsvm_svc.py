"""The drop-in for scikit-learn's SVC: its optimum, its attributes, and what is not in its tests."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dhsk
from dhsk.bars import ToldIfLong
from dhsk.errors import InputError
from dhsk.execution.limits import held_bytes

TOL = 1e-9
"""Of both solvers, so that what they find agrees to `CLOSE`."""
CLOSE = 1e-5

KERNELS = {
    "rbf": {},
    "gaussian": {"gamma": "auto"},
    "linear": {},
    "poly": {"gamma": 1e-3, "coef0": 0.7, "degree": 2},
    "sigmoid": {"gamma": 1e-4, "coef0": -0.5},
}
SCIKIT = {"gaussian": "rbf"}


def digits(k: int, n: int = 300) -> tuple[Any, Any]:
    """Images of the first k digits, and which."""
    X, y = load_digits(n_class=k, return_X_y=True)
    return X[:n], y[:n]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_that_of_scikit_learn(name: str, k: int, sparse: bool) -> None:
    """Of every kernel, with its attributes in their shapes, signs and types."""
    X, y = digits(k)
    X = csr_matrix(X) if sparse else X
    own: Any = KERNELS[name]
    peer = SVC(kernel=SCIKIT.get(name, name), tol=TOL, decision_function_shape="ovo", **own)
    model = dhsk.SVC(kernel=name, tol=TOL, decision_function_shape="ovo", **own)
    model.fit(X, y), peer.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=CLOSE)
    for attribute in (
        "support_", "n_support_", "dual_coef_", "intercept_", "class_weight_", "classes_",
        "support_vectors_", "shape_fit_", "fit_status_", "n_features_in_",
    ):  # fmt: skip
        found, expected = getattr(model, attribute), getattr(peer, attribute)
        assert type(found) is type(expected), attribute
        assert getattr(found, "dtype", None) == getattr(expected, "dtype", None), attribute
        found, expected = (a.toarray() if hasattr(a, "toarray") else a for a in (found, expected))
        np.testing.assert_allclose(found, expected, atol=CLOSE, err_msg=attribute)
    assert hasattr(model, "coef_") == (name == "linear")
    if name == "linear":
        assert type(model.coef_) is type(peer.coef_)
        np.testing.assert_allclose(*(_dense(m.coef_) for m in (model, peer)), atol=CLOSE)
    assert (model.n_iter_.shape, model.n_iter_.dtype) == (peer.n_iter_.shape, peer.n_iter_.dtype)
    assert model.kkt_violation_ <= TOL
    assert model._gamma == pytest.approx(peer._gamma if name != "linear" else 0.0)


def _dense(array: Any) -> Any:
    return array.toarray() if hasattr(array, "toarray") else array


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_ovr_decisions_and_ties_are_those_of_scikit_learn(shape: str) -> None:
    """Votes by default; the classes of the highest decisions with break_ties."""
    X, y = digits(5)
    for ties in [False, True][: 1 + (shape == "ovr")]:
        own: Any = {"tol": TOL, "decision_function_shape": shape, "break_ties": ties, "gamma": 0.01}
        model, peer = dhsk.SVC(**own).fit(X, y), SVC(**own).fit(X, y)
        new = np.random.default_rng(0).uniform(0, 16, (200, 64))
        np.testing.assert_allclose(
            model.decision_function(new), peer.decision_function(new), atol=CLOSE
        )
        np.testing.assert_array_equal(model.predict(new), peer.predict(new))


def test_weights_are_those_of_scikit_learn() -> None:
    """Samples of negative weight are left out; classes weigh what is said."""
    X, y = digits(3)
    weights = np.random.default_rng(0).uniform(-0.5, 2.0, len(y))
    own: Any = {"tol": TOL, "class_weight": {0: 0.3, 2: 3.0}}
    model, peer = dhsk.SVC(**own).fit(X, y, weights), SVC(**own).fit(X, y, weights)
    # scikit-learn numbers those that are left.
    np.testing.assert_array_equal(model.support_, np.flatnonzero(weights > 0)[peer.support_])
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=CLOSE)
    np.testing.assert_array_equal(model.class_weight_, [0.3, 1.0, 3.0])


def test_names_of_dhsk_and_its_kernels() -> None:
    """The heat kernel with its map, as HeatSVC has it; and a kernel by itself."""
    X, y = digits(3)
    heat = dhsk.HeatSVC(1.0).fit(X, y)
    found = dhsk.SVC(kernel="heat").fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), heat.decision_function(X))
    assert found.time_scale_ == heat.time_scale_
    kernel = dhsk.GaussianKernel(20.0)
    given = dhsk.SVC(kernel=kernel).fit(X, y)
    assert given.kernel_ == kernel
    named = dhsk.SVC(gamma=0.5 / 400).fit(X, y)
    np.testing.assert_allclose(given.decision_function(X), named.decision_function(X), atol=1e-9)


def test_cosines_of_scikit_learn_are_those_of_the_projective_map() -> None:
    """As docs/svc.md says: by its name the kernel takes square roots of proportions first."""
    X, y = digits(3)
    theirs = SVC(kernel=cosine_similarity).fit(X, y).decision_function(X)
    ours = dhsk.SVC(kernel="cosine", sphere_map="projective").fit(X, y).decision_function(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-3)
    assert abs(dhsk.SVC(kernel="cosine").fit(X, y).decision_function(X) - theirs).max() > 0.1


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_class_without_weight_is_no_class(weight: float) -> None:
    """Nor one that could be predicted; and one number is the weight of all."""
    X, y = load_iris(return_X_y=True)
    model = dhsk.SVC().fit(X, y, sample_weight=np.where(y == 2, weight, 1.0))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    twice = dhsk.SVC().fit(X, y, sample_weight=2)
    np.testing.assert_array_equal(
        twice.decision_function(X), dhsk.SVC(C=2).fit(X, y).decision_function(X)
    )


def test_gamma_of_mapped_samples() -> None:
    """It is that of the rows that the kernel sees."""
    X, y = digits(2)
    rows = dhsk.projective_map(X)
    mapped = dhsk.SVC(sphere_map="projective").fit(X, y)
    assert mapped._gamma == pytest.approx(1 / (64 * rows.var()), rel=1e-12)
    np.testing.assert_allclose(
        mapped.decision_function(X), dhsk.SVC().fit(rows, y).decision_function(rows), atol=1e-9
    )


def test_constant_samples_have_a_gamma() -> None:
    """Of 1, as in scikit-learn."""
    X, y = np.ones((6, 2)), [0, 1] * 3
    assert dhsk.SVC().fit(X, y)._gamma == pytest.approx(SVC().fit(X, y)._gamma, rel=1e-12)


# Matrices that are given


@pytest.mark.parametrize("form", ["matrix", "function"])
def test_given_values_in_a_search(form: str) -> None:
    """GridSearchCV cuts rows and columns of a matrix, and clones a function."""
    X, y = digits(3, 120)

    def kernel(A: Any, B: Any) -> Any:
        return rbf_kernel(A, B, 1e-3)

    given: Any = kernel(X, X) if form == "matrix" else X
    named: Any = "precomputed" if form == "matrix" else kernel
    grid = {"C": [0.01, 1.0]}
    found = GridSearchCV(dhsk.SVC(kernel=named), grid, cv=3).fit(given, y)
    expected = GridSearchCV(SVC(kernel="rbf", gamma=1e-3), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(found.predict(given), expected.predict(X))
    assert found.best_estimator_.support_vectors_.shape == (0, 0)


def test_a_matrix_is_not_copied_and_not_changed() -> None:
    """What is given is what is solved, for many samples too."""
    X, y = digits(2, 200)
    K = rbf_kernel(X, X, 1e-3)
    before = K.copy()
    model = dhsk.SVC(kernel="precomputed", tol=TOL).fit(K, y)
    np.testing.assert_array_equal(K, before)
    named = dhsk.SVC(gamma=1e-3, tol=TOL).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, named.dual_coef_, atol=CLOSE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((4, 3)), "must be a square matrix. Input is a 4x3 matrix"),
        (np.full((4, 4), np.nan), "contains NaN"),
    ],
)
def test_other_matrices_are_refused(given: Any, message: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=message):
        dhsk.SVC(kernel="precomputed").fit(given, [0, 1, 0, 1])


def test_a_function_that_makes_no_matrix_is_refused() -> None:
    """At the fit, and at the prediction."""
    X, y = digits(2, 20)
    with pytest.raises(InputError, match="a 20x64 matrix of samples whose matrix is 20x20"):
        dhsk.SVC(kernel=lambda A, _: A).fit(X, y)
    model = dhsk.SVC(kernel=lambda A, B: A @ B.T if len(A) == 20 else A[:, :3]).fit(X, y)
    with pytest.raises(InputError, match="a 5x3 matrix of samples whose matrix is 5x20"):
        model.predict(X[:5])


# Steps


def test_steps_are_bounded() -> None:
    """Each pair takes at most as many, warns, and says so; enough of them are the same fit."""
    X, y = digits(3)
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=7\).* tol=0.001"):
        model = dhsk.SVC(max_iter=7).fit(X, y)
    np.testing.assert_array_equal(model.n_iter_, 7)
    assert (model.fit_status_, model.converged_) == (1, False)
    assert model.kkt_violation_ > model.tol
    free = dhsk.SVC(tol=TOL).fit(X, y)
    bounded = dhsk.SVC(tol=TOL, max_iter=100_000).fit(X, y)
    assert bounded.converged_
    np.testing.assert_allclose(bounded.decision_function(X), free.decision_function(X), atol=CLOSE)


def test_bounded_steps_need_not_the_whole_matrix() -> None:
    """If it does not fit, a step computes its two rows: the same fit."""
    X, y = np.random.default_rng(0).normal(size=(6000, 2)), np.arange(6000) % 2
    room = held_bytes() + 300_000_000  # of the 432 MB that the matrix takes
    models = []
    for memory in ("4GB", room):
        with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=50\)"):
            models.append(dhsk.SVC(max_iter=50, memory=memory).fit(X, y))
    whole, on_rows = models
    np.testing.assert_array_equal(on_rows.support_, whole.support_)
    np.testing.assert_allclose(on_rows.dual_coef_, whole.dual_coef_, atol=CLOSE)
    assert (on_rows.n_iter_, on_rows.kkt_violation_) == (50, pytest.approx(whole.kkt_violation_))


# Files and parameters


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear", "heat", "precomputed"])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_comes_back_from_a_file(kernel: str, sparse: bool, tmp_path: Path) -> None:
    """With its parameters, attributes and results; and from a pickle."""
    if sparse and kernel == "precomputed":
        return
    X, y = digits(3, 90)
    given: Any = X @ X.T if kernel == "precomputed" else csr_array(X) if sparse else X
    C = 1.0 if kernel == "sigmoid" else np.inf
    model = dhsk.SVC(kernel=kernel, gamma=1e-3, class_weight={0: 2.0}, C=C).fit(given, y)
    model.save(tmp_path / "m")
    for found in (dhsk.SVC.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        for name in ("predict", "decision_function"):
            np.testing.assert_array_equal(getattr(found, name)(given), getattr(model, name)(given))
        for name in ("support_", "class_weight_", "shape_fit_", "intercept_", "n_support_"):
            np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
        for name in ("dual_coef_", "support_vectors_"):
            np.testing.assert_array_equal(*(_dense(getattr(m, name)) for m in (found, model)))
            assert type(getattr(found, name)) is type(getattr(model, name))
        assert found.get_params() == model.get_params()


def test_files_are_read_by_what_wrote_them(tmp_path: Path) -> None:
    """HeatSVC does not read that of SVC, nor the other way round."""
    X, y = digits(2, 40)
    dhsk.SVC().fit(X, y).save(tmp_path / "svc")
    dhsk.HeatSVC().fit(X, y).save(tmp_path / "heat")
    with pytest.raises(InputError, match=r"of dhsk\.SVC: read it with SVC\.load"):
        dhsk.HeatSVC.load(tmp_path / "svc")
    with pytest.raises(InputError, match=r"of dhsk\.HeatSVC: read it with HeatSVC\.load"):
        dhsk.SVC.load(tmp_path / "heat")
    with pytest.raises(InputError, match="a function cannot be written to a file"):
        dhsk.SVC(kernel=lambda A, B: A @ B.T).fit(X, y).save(tmp_path / "function")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "rbv"}, "kernel must be one of cosine, heat, linear, .* it is 'rbv'"),
        ({"gamma": "wide"}, 'gamma must be "scale", "auto" or a number'),
        ({"gamma": 0.0}, "gamma must be above 0"),
        ({"degree": -1}, "degree must be a whole number, at least 0"),
        ({"coef0": np.inf}, "coef0 must be a finite number"),
        ({"max_iter": -2}, "max_iter must be a whole number, at least -1"),
        ({"C": 0.0}, "C must be above 0"),
        ({"decision_function_shape": "one"}, "must be 'ovr' or 'ovo'"),
        ({"kernel": "precomputed", "sphere_map": "projective"}, "but kernel values are given"),
        ({"break_ties": "no"}, "break_ties must be True or False, but it is 'no'"),
        ({"probability": "no"}, "probability must be True or False, but it is 'no'"),
        ({"shrinking": 0}, "shrinking must be True or False, but it is 0"),
    ],
)
def test_wrong_parameters_are_refused(wrong: Any, message: str) -> None:
    """Before anything is computed."""
    with pytest.raises(InputError, match=message):
        dhsk.SVC(**wrong).fit(*digits(2, 20))


def test_samples_in_files(tmp_path: Path) -> None:
    """As `fit` takes them, but for functions."""
    X, y = digits(3, 90)
    np.save(tmp_path / "X.npy", X)
    found, expected = dhsk.SVC().fit_samples(tmp_path / "X.npy", y), dhsk.SVC().fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    assert found.shape_fit_ == (90, 64)
    with pytest.raises(InputError, match="a function has no samples of a file"):
        dhsk.SVC(kernel=lambda A, B: A @ B.T).fit_samples(tmp_path / "X.npy", y)


def test_in_a_pipeline_with_a_search() -> None:
    """Where parameters of both are searched; a clone is as the first."""
    X, y = digits(3, 120)
    steps = make_pipeline(StandardScaler(), dhsk.SVC())
    grid = {"svc__C": [0.1, 10.0], "svc__gamma": ["scale", 0.01]}
    found = GridSearchCV(steps, grid, cv=3).fit(X, y)
    expected = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=3).fit(X, y)
    assert found.best_params_ == expected.best_params_
    assert clone(dhsk.SVC(C=3.0, kernel="poly")).get_params()["C"] == 3.0


def test_verbose_shows_bars(capsys: pytest.CaptureFixture[str]) -> None:
    """And quiet fits show none."""
    shown = []
    for verbose in (True, False):
        seen: list[Any] = []
        model = dhsk.SVC(verbose=verbose)
        quiet = isinstance(model._shows(None), ToldIfLong)
        assert quiet is not verbose
        assert model._shows(seen.append) == seen.append
        shown.append(model.fit(*digits(2, 20)))
    assert capsys.readouterr().out == ""


def test_balanced_weights_count_all_samples_as_scikit_learn_does() -> None:
    """Those of weight 0, and of a negative weight, too: as of a bootstrap sample."""
    X, y = load_breast_cancer(return_X_y=True)
    X, weights = StandardScaler().fit_transform(X), np.ones(len(y))
    weights[np.flatnonzero(y == 1)[60:]], weights[3] = 0, -1
    given: Any = {"class_weight": "balanced", "tol": TOL}
    ours = dhsk.SVC(**given).fit(X, y, sample_weight=weights)
    theirs = SVC(**given).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=CLOSE)


@pytest.mark.parametrize("names", [["0", "1", "2"], ["2", "b", "007"]])
def test_classes_whose_names_are_numbers_have_weights(names: list[str]) -> None:
    """As the digits of OpenML: balanced as by scikit-learn, and given by label, or by number."""
    X, y = digits(3)
    labels = np.array(names)[y]
    ours, theirs = (one(class_weight="balanced").fit(X, labels) for one in (dhsk.SVC, SVC))
    np.testing.assert_array_equal(ours.class_weight_, theirs.class_weight_)
    given = {name: 2.0 + place for place, name in enumerate(names)}
    expected = [given[str(name)] for name in theirs.classes_]
    assert dhsk.SVC(class_weight=given).fit(X, labels).class_weight_.tolist() == expected
    by_number = {int(names[0]): 3.0}
    expected = [3.0 if name == names[0] else 1.0 for name in theirs.classes_]
    assert dhsk.SVC(class_weight=by_number).fit(X, labels).class_weight_.tolist() == expected
