"""Estimators under scikit-learn's tools: metadata routing, tables as outputs, searches."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # what follows needs it
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dhsk

N, DIM = 90, 6


@pytest.fixture
def data(counts: Any) -> tuple[Any, Any]:
    """Two classes that differ in two features, and overlap."""
    X, y = counts(N, DIM), np.repeat(["a", "b"], N // 2)
    X[: N // 2, :2] += 1
    return X, y


@pytest.fixture
def weights(rng: np.random.Generator) -> Any:
    """Weights that change the fits."""
    return rng.integers(0, 4, N).astype(float)


@pytest.fixture
def routing() -> Iterator[None]:
    """Metadata is routed within the test."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


CLASSIFIERS = {
    "HeatSVC": dhsk.HeatSVC(time_scale=0.5, C=1.0),
    "SVC": dhsk.SVC(C=1.0),
    "NystromSVC": dhsk.NystromSVC(30, time_scale=0.5, C=1.0, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_weights_go_through_a_pipeline(name: str, data: Any, weights: Any, routing: None) -> None:
    """To those who ask for them, and they change the fit."""
    X, y = data
    own = sklearn.clone(CLASSIFIERS[name])
    asks = make_pipeline(FunctionTransformer(), own.set_fit_request(sample_weight=True))
    found = asks.fit(X, y, sample_weight=weights).decision_function(X)
    expected = sklearn.clone(CLASSIFIERS[name]).fit(X, y, sample_weight=weights)
    plain = sklearn.clone(CLASSIFIERS[name]).fit(X, y)
    np.testing.assert_array_equal(found, expected.decision_function(X))
    assert np.abs(found - plain.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_weights_go_through_a_search(name: str, data: Any, weights: Any, routing: None) -> None:
    """Fits and scores of each fold have the weights of their samples."""
    X, y = data
    own = sklearn.clone(CLASSIFIERS[name]).set_fit_request(sample_weight=True)
    folds = [(np.arange(0, N, 2), np.arange(1, N, 2)), (np.arange(1, N, 2), np.arange(0, N, 2))]
    own = own.set_score_request(sample_weight=True)
    found = GridSearchCV(own, {"C": [0.1, 10.0]}, cv=folds).fit(X, y, sample_weight=weights)
    for place, C in enumerate([0.1, 10.0]):
        for number, (train, test) in enumerate(folds):
            model = sklearn.clone(CLASSIFIERS[name]).set_params(C=C)
            model.fit(X[train], y[train], sample_weight=weights[train])
            expected = model.score(X[test], y[test], sample_weight=weights[test])
            assert found.cv_results_[f"split{number}_test_score"][place] == expected


def test_weights_that_nobody_asks_for_are_refused(data: Any, weights: Any, routing: None) -> None:
    """As scikit-learn has it: neither passed on nor left out in silence."""
    X, y = data
    with pytest.raises(ValueError, match="sample_weight"):
        GridSearchCV(dhsk.HeatSVC(0.5), {"C": [1.0]}).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_halving_and_grid_searches(name: str, data: Any) -> None:
    """All candidates are scored, and the best is fitted."""
    X, y = data
    grid = {"C": [0.01, 1.0, 100.0]}
    own = sklearn.clone(CLASSIFIERS[name])
    halving = HalvingGridSearchCV(own, grid, factor=3, min_resources=30, random_state=0, cv=3)
    for search in (GridSearchCV(own, grid, cv=3), halving):
        search.fit(X, y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert search.best_params_["C"] == search.best_estimator_.C
        assert search.score(X, y) > 0.6
    assert halving.n_resources_ == [30, 90]
    assert halving.n_candidates_ == [3, 1]


TRANSFORMERS = {
    "nystromfeatures": dhsk.NystromFeatures(4, time_scale=0.5, random_state=0),
    "heatkernelpca": dhsk.HeatKernelPCA(3, time_scale=0.5),
    "": dhsk.HypersphericalMap(),
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("prefix", TRANSFORMERS)
def test_features_come_as_tables(prefix: str, library: str, data: Any, tables: Any) -> None:
    """With the names of the features, and for pandas the index of the samples."""
    (X, y), kind = data, tables(library)
    names = [f"gene{number}" for number in range(DIM)]
    plain = sklearn.clone(TRANSFORMERS[prefix])
    table = kind({name: X[:, place] for place, name in enumerate(names)})
    made = sklearn.clone(plain).set_output(transform=library)
    fitted = made.fit_transform(table)
    expected = plain.fit_transform(X)
    known = [f"{prefix}{number}" for number in range(expected.shape[1])] if prefix else names
    assert made.get_feature_names_out().tolist() == known
    for found, values in ((fitted, expected), (made.transform(table[:7]), plain.transform(X[:7]))):
        assert isinstance(found, kind)
        assert list(found.columns) == known
        np.testing.assert_array_equal(found.to_numpy(), values)
    if library == "pandas":
        index = [f"cell{number}" for number in range(N)]
        assert made.transform(table.set_axis(index)).index.tolist() == index
    pipeline = make_pipeline(sklearn.clone(made), sklearn.clone(CLASSIFIERS["SVC"]))
    assert pipeline.fit(table, y)[-1].feature_names_in_.tolist() == known
