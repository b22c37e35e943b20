"""Scaled columns in a cross-validation: each fold has the scaler of its training part."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dhsk

pytestmark = pytest.mark.threads

CV = StratifiedKFold(4, shuffle=True, random_state=1)
C = [0.01, 1.0, 100.0]
NO_METHODS = dhsk.Output(baselines=False)


@pytest.fixture(scope="module")
def wines() -> tuple[Any, Any]:
    """Thirteen measurements in units of their own, and below 0 too."""
    X, y = load_wine(return_X_y=True)
    X[:, 0] -= 13.0
    return X, y


def test_scores_are_those_of_a_pipeline(wines: Any) -> None:
    """With a scaler of each fold, of `GridSearchCV`."""
    X, y = wines
    kernels = [dhsk.GaussianKernel.at_gamma(0.05), "linear"]
    found = dhsk.cross_validate(
        X, y, kernels=kernels, C=C, cv=CV, sphere_map="scaled", multi_class="ovo"
    )
    peer = make_pipeline(StandardScaler(), SVC(gamma=0.05))
    for kernel, label in (("rbf", "scaled gaussian sigma=3.162"), ("linear", "scaled linear")):
        grid = {"svc__C": C, "svc__kernel": [kernel]}
        expected = GridSearchCV(peer, grid, cv=CV).fit(X, y).cv_results_["mean_test_score"]
        own = [row["mean"] for row in found.summary_ if row["label"] == label]
        np.testing.assert_allclose(own, expected, rtol=1e-15)
    assert found.samples.sphere_map == "scaled"


def test_the_default_search_has_widths_and_the_linear_kernel(wines: Any, tmp_path: Path) -> None:
    """Of samples below 0 too; its model scales what it predicts, also when read again."""
    X, y = wines
    found = dhsk.cross_validate(X, y, sphere_map="scaled", refit=True, out=NO_METHODS)
    assert found.search[0].why == "scaled: widths of 0.5 to 4 times the usual one"
    names = {row["label"].removesuffix(", one-vs-rest") for row in found.summary_}
    widths = {f"scaled gaussian sigma={s}" for s in (1.27, 2.55, 5.1, 10.2)}
    assert names == {*widths, "scaled linear"}
    assert found.best_score_ > 0.97
    model = found.best_estimator_
    assert model.get_params()["sphere_map"] == "scaled"
    model.save(tmp_path / "m.dhsk")
    read = dhsk.HeatSVC.load(tmp_path / "m.dhsk")
    np.testing.assert_array_equal(read.decision_function(X), model.decision_function(X))
    assert read.score(X * 1000.0, y) < 0.5 < model.score(X, y)


@pytest.mark.parametrize(
    ("looks", "expected", "said"),
    [
        ("z-scores", "scaled", "below 0 too, as of z-scores"),
        ("units", "scaled", "of columns in different units"),
        ("no heavy one", "scaled", "of columns in different units"),
        ("embeddings", "projective", "below 0 too, as of embeddings"),
    ],
)
def test_a_default_search_takes_the_map_by_the_looks(
    wines: Any, looks: str, expected: str, said: str
) -> None:
    """With a warning that names others; a map or a kernel of one's own is not changed."""
    X, y = wines
    X = {
        "z-scores": X,
        "units": np.abs(X),
        "no heavy one": np.abs(X[:, :12]) + 50.0,
        "embeddings": np.tile(X - X.mean(axis=0), 4),
    }[looks]
    with pytest.warns(dhsk.InputWarning, match=rf"{said}.*--map {expected}; for proportions"):
        found = dhsk.cross_validate(X, y, cv=2, out=NO_METHODS)
    assert found.samples.sphere_map == expected
    own: dict[str, Any] = {"sphere_map": "hyperspherical", "cv": 2, "out": NO_METHODS}
    if looks == "units":
        with pytest.warns(dhsk.InputWarning, match="have 84% of the sum"):
            found = dhsk.cross_validate(X, y, **own)
        assert found.samples.sphere_map == "hyperspherical"
    elif looks != "no heavy one":
        with pytest.raises(dhsk.InputError, match="needs non-negative samples"):
            dhsk.cross_validate(X, y, **own)


@pytest.mark.parametrize("search", ["halving", "full"])
def test_one_column_is_scaled(search: str) -> None:
    """As there is no point on a sphere; a middle that is another class is found."""
    X = np.random.default_rng(0).random((200, 1))
    y = np.abs(X[:, 0] - 0.5) > 0.25
    with pytest.warns(dhsk.InputWarning, match="X are of one column, which is no point"):
        found = dhsk.cross_validate(X, y, search=search, refit=True, out=NO_METHODS)
    assert found.best_score_ > 0.97 > 0.7 > found.summary_[-1]["mean"]
    assert found.best_estimator_.score(X, y) > 0.97
    grouped = X.round(1)  # equal samples are no repeats there
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dhsk.cross_validate(grouped, y, sphere_map="scaled", out=NO_METHODS)
    assert not [one for one in seen if "samples equal others" in str(one.message)]


def test_a_code_for_what_is_missing_is_no_z_score(wines: Any) -> None:
    """Nor is a single mistake: they are refused, with what takes values below 0."""
    X, y = np.abs(wines[0]) / 100.0, wines[1]
    X[:, 12] /= 100.0
    for rows in (slice(0, 1), slice(0, 60)):
        coded = X.copy()
        coded[rows, 3] = -1.0
        with pytest.raises(dhsk.InputError, match=r"column 3 .* holds -1.0, .*--map scaled"):
            dhsk.cross_validate(coded, y)


def test_few_measurements_below_zero_are_scaled(wines: Any) -> None:
    """As by scikit-learn; one that the first rows do not show is refused, with that first."""
    X, y = np.abs(wines[0]) / 100.0, wines[1]
    X[:, 12] /= 100.0
    X[17, 3] = -0.09
    said = r"measurements, it seems, .* least is -0.09, in column 3 .*--map scaled; mend them first"
    with pytest.warns(dhsk.InputWarning, match=said):
        found = dhsk.cross_validate(X, y, cv=2, out=NO_METHODS)
    assert found.samples.sphere_map == "scaled"
    with pytest.raises(dhsk.InputError, match=r"non-negative samples: take for z-scores .*scaled"):
        dhsk.HeatSVC().fit(X, y)
    shares = np.abs(wines[0]) / np.abs(wines[0]).sum(axis=1, keepdims=True)
    shares[17, 4] += shares[17, 3]
    shares[17, 3] = -1e-9  # of rounding
    with pytest.raises(dhsk.InputError, match="non-negative samples: clip them at 0"):
        dhsk.cross_validate(shares, y)


def test_its_own_gaussian_svm_is_no_common_method_beside(wines: Any) -> None:
    """It is among the kernels."""
    X, y = wines
    found = dhsk.cross_validate(X, y, sphere_map="scaled")
    methods = {one.method for one in found.baselines.tried}
    assert "RandomForestClassifier" in methods
    assert "SVC(rbf) on scaled columns" not in methods


@pytest.mark.parametrize("low_rank", [None, 40])
def test_estimators_are_pipelines(wines: Any, low_rank: int | None) -> None:
    """`HeatSVC` exactly, `NystromSVC` with enough features nearly."""
    X, y = wines
    if low_rank is None:
        model = dhsk.HeatSVC(1.0, kernel="gaussian", sphere_map="scaled").fit(X, y)
    else:
        model = dhsk.NystromSVC(
            low_rank, 1.0, kernel="gaussian", sphere_map="scaled", random_state=0
        ).fit(X, y)
    gamma = 0.5 / model.kernel_.sigma**2
    assert gamma == pytest.approx(1 / 13, rel=1e-2)
    peer = make_pipeline(StandardScaler(), SVC(gamma=gamma)).fit(X, y)
    share = np.mean(model.predict(X) == peer.predict(X))
    assert share == 1.0 if low_rank is None else share > 0.97


def test_spherical_kernels_are_refused(wines: Any) -> None:
    """Scaled columns are no unit vectors."""
    X, y = wines
    with pytest.raises(dhsk.InputError, match=r"'scaled' is for kernels of columns, .* is none"):
        dhsk.cross_validate(X, y, time_scale=[1.0], sphere_map="scaled")
    for kernel in ("heat", "cosine", dhsk.HeatKernel(13, 0.1)):
        with pytest.raises(dhsk.InputError, match="take kernel='gaussian'"):
            dhsk.HeatSVC(kernel=kernel, sphere_map="scaled").fit(X, y)
    assert dhsk.HeatSVC(sphere_map="scaled").fit(X, y).kernel_.name == "gaussian"
    with pytest.raises(dhsk.InputError, match="no map 'scaled'"):
        dhsk.compute_gram(X, "gaussian", sphere_map="scaled")


def test_a_search_by_halving_ends_with_scaled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first round is on some samples, and its last on all."""
    monkeypatch.setattr("dhsk.validation.halving.FEW", 100)
    monkeypatch.setattr("dhsk.validation.halving.FIRST", (60, 60))
    monkeypatch.setattr("dhsk.validation.halving.MOST_SHARE", 10.0)
    X = np.random.default_rng(0).normal(size=(300, 3)) * [1.0, 100.0, 1e4]
    y = (X[:, 0] ** 2 + (X[:, 1] / 100) ** 2 > 1.4).astype(int)
    found = dhsk.cross_validate(X, y, sphere_map="scaled", out=NO_METHODS)
    assert [one.samples for one in found.rounds] == [60]
    assert {row["kernel"] for row in found.summary_} == {"scaled gaussian", "scaled linear"}
    assert found.best_["kernel"] == "scaled gaussian"
    assert found.best_score_ > 0.9


def test_widths_go_on_while_the_last_is_the_best() -> None:
    """Narrower ones, where classes lie in each other's gaps."""
    X = np.random.default_rng(0).random((400, 2))
    y = (np.floor(6 * X).sum(axis=1) % 2).astype(int)
    found = dhsk.cross_validate(X, y, sphere_map="scaled", cv=3, out=dhsk.Output(baselines=False))
    assert any("smallest width was the best: now a smaller one" in s.why for s in found.search)
    assert found.best.sigma is not None
    assert found.best.sigma < 0.5
