"""Samples of zeros at every door: the centre of the orthant, one warning, and a note."""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import dhsk
from dhsk.__main__ import DONE, main
from dhsk.errors import InputError, ZeroRowsWarning
from dhsk.nystrom import room

EMPTY = [0, 7, 33, 59]
N, DIM = 60, 12
CLOSE = 1e-8
"""Of the same samples in another form, solved to the end."""

KERNEL = dhsk.HeatKernel.at_scale(DIM, 0.7)


@pytest.fixture
def data(counts: Any) -> tuple[Any, Any, Any]:
    """Samples, four of zeros; the same with ones in these, whose image is the centre; labels."""
    X = counts(N, DIM)
    X[N // 2 :, :3] += 2
    X[EMPTY] = 0
    full = X.copy()
    full[EMPTY] = 1
    return X, full, np.arange(N) // (N // 2)


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def form(request: Any) -> Callable[[Any], Any]:
    """What samples are made of."""
    return csr_array if request.param else np.array


ESTIMATORS = [
    dhsk.HeatSVC(3.0, 0.7, tol=1e-10),
    dhsk.HeatSVC(3.0, 0.7, tol=1e-10, sphere_map="projective"),
    dhsk.HeatSVC(3.0, tol=1e-10, sphere_map="hyperspherical", kernel=dhsk.GaussianKernel(0.5)),
    dhsk.NystromSVC(20, 3.0, time_scale=0.7, tol=1e-10, selection=np.arange(0, N, 3)),
    dhsk.NystromFeatures(selection=np.arange(0, N, 3), time_scale=0.7),
    dhsk.HeatKernelRidge(0.1, 0.7, tol=1e-12),
    dhsk.HeatOneClassSVM(0.3, 0.7, tol=1e-10),
]


def answers(model: Any, X: Any) -> Any:
    """What an estimator says of samples, as numbers."""
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise AssertionError(model)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimators(estimator: Any, data: Any, form: Any) -> None:
    """Such samples are fitted to and predicted as samples at the centre; each call warns once."""
    X, full, y = data
    expected = answers(clone(estimator).fit(full, y), full)
    with pytest.warns(ZeroRowsWarning, match=r"^4 of 60 samples of X are all zero") as fitting:
        model = clone(estimator).fit(form(X), y)
    with pytest.warns(ZeroRowsWarning, match="^4 of 60") as predicting:
        found = answers(model, form(X))
    assert (len(fitting), len(predicting)) == (1, 1)
    assert fitting[0].filename == predicting[0].filename == __file__
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(answers(model, form(full)), expected, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimators_refuse_them_if_asked(estimator: Any, data: Any, form: Any) -> None:
    """In fit and in prediction, by number."""
    X, full, y = data
    strict = clone(estimator).set_params(zero_rows="error")
    with pytest.raises(InputError, match=r"row 0 .* all zero"):
        strict.fit(form(X), y)
    strict.fit(form(full), y)
    with pytest.raises(InputError, match=r"row 0 .* all zero"):
        answers(strict, form(X))
    with pytest.raises(InputError, match="zero_rows must be 'center' or 'error', but it is 'drop'"):
        strict.set_params(zero_rows="drop").fit(full, y)


@pytest.mark.slow(beyond=5)
@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", "kmeans"])
@pytest.mark.parametrize(
    "tier", ["features in memory", "samples in memory", "samples read in every pass"]
)
def test_low_rank_in_any_place(
    selection: str, tier: str, data: Any, form: Any, monkeypatch: Any
) -> None:
    """However landmarks are chosen, and however often samples are read: the same count."""
    X, full, y = data
    here = room.plan_here

    def planned(need: Any, left: int, threads: int) -> Any:
        whole = tier == "features in memory"
        return replace(here(need, left, threads), way=tier, whole=whole)

    monkeypatch.setattr("dhsk.models.low_rank_plan.plan_here", planned)
    model = dhsk.NystromSVC(10, 3.0, time_scale=0.7, selection=selection, tol=1e-10, random_state=0)
    with pytest.warns(ZeroRowsWarning, match="^4 of 60") as caught:
        found = clone(model).fit(form(X), y)
    assert len(caught) == 1
    assert found.model_.n_zero_rows == 4
    if selection != "kmeans":  # sparse groups have a landmark at the centre
        expected = clone(model).fit(form(full), y).decision_function(full)
        np.testing.assert_allclose(found.decision_function(full), expected, rtol=0, atol=1e-6)


def test_models_keep_the_rule_and_the_number(data: Any, form: Any, tmp_path: Path) -> None:
    """Saved and loaded they give the same bits."""
    X, full, y = data
    for made in (dhsk.HeatSVC(3.0, 0.7), dhsk.NystromSVC(20, 3.0, random_state=0)):
        with pytest.warns(ZeroRowsWarning):
            model = made.fit(form(X), y)
        model.save(tmp_path / "m")
        loaded = type(made).load(tmp_path / "m")
        assert (loaded.model_.zero_rows, loaded.model_.n_zero_rows) == ("center", 4)
        with pytest.warns(ZeroRowsWarning):
            expected = model.decision_function(form(X))
        with pytest.warns(ZeroRowsWarning):
            np.testing.assert_array_equal(loaded.decision_function(form(X)), expected)
        made.set_params(zero_rows="error").fit(form(full), y).save(tmp_path / "strict")
        strict = type(made).load(tmp_path / "strict")
        assert (strict.zero_rows, strict.model_.n_zero_rows) == ("error", 0)
        with pytest.raises(InputError, match=r"row 0 .* all zero"):
            strict.predict(form(X))


@pytest.mark.slow
def test_sklearn_sees_texts_without_a_known_word() -> None:
    """In a pipeline and a search: each fit and each prediction goes through."""
    texts = ["ball game team"] * 8 + ["vote law state"] * 8 + ["unheard", "of"]
    labels = ["sport"] * 8 + ["politics"] * 8 + ["sport", "politics"]
    words = CountVectorizer(vocabulary=["ball", "game", "team", "vote", "law", "state"])
    pipeline = make_pipeline(words, dhsk.HeatSVC())
    with pytest.warns(ZeroRowsWarning, match="^2 of 18 samples of X are all zero"):
        pipeline.fit(texts, labels)
    with pytest.warns(ZeroRowsWarning, match="^1 of 2 samples of X are all zero"):
        found = pipeline.predict(["nothing known", "the team has a game"])
    assert found[1] == "sport"
    search = GridSearchCV(pipeline, {"heatsvc__C": [0.1, 10]}, cv=2, error_score="raise")
    with pytest.warns(ZeroRowsWarning):
        search.fit(texts, labels)
    counts = words.fit_transform(texts)
    with pytest.warns(ZeroRowsWarning):
        K = np.asarray(dhsk.compute_gram(counts, "heat"))
    for C, score in zip([0.1, 10], search.cv_results_["mean_test_score"], strict=True):
        svc = SVC(C=C, kernel="precomputed")
        assert score == cross_val_score(svc, K, labels, cv=2).mean()


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize(
    "made", [dhsk.HeatSVC(3.0, 0.7, tol=1e-10), dhsk.HeatKernelRidge(0.1, 0.7, tol=1e-12)], ids=str
)
def test_fits_on_a_store_warn_once(made: Any, data: Any, form: Any, tmp_path: Path) -> None:
    """Also where the samples are mapped for the matrix and for the model."""
    X, full, y = data
    expected = answers(clone(made).fit(full, y), full)
    with pytest.warns(ZeroRowsWarning, match="^4 of 60") as caught:
        model = clone(made).set_params(store=tmp_path / "g").fit(form(X), y)
    assert len(caught) == 1
    np.testing.assert_allclose(answers(model, form(full)), expected, rtol=0, atol=1e-6)


# Gram matrices and cross-validation


def test_gram_matrices(data: Any, form: Any, tmp_path: Path) -> None:
    """Stored or computed on demand, square or not; the store says how many, and goes on."""
    X, full, _ = data
    expected = dhsk.compute_gram(full, KERNEL)[:, :]
    with pytest.warns(ZeroRowsWarning, match=r"^4 of 60 samples of X are all zero") as caught:
        G = dhsk.compute_gram(form(X), KERNEL, store=tmp_path / "g", tile=16)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_allclose(G[:, :], expected, rtol=0, atol=1e-13)
    assert (G[EMPTY, :][:, EMPTY] == 1).all()
    header = json.loads((tmp_path / "g/zarr.json").read_text())["attributes"]["dhsk"]
    assert header["zero_rows"] == [4]
    (tmp_path / "g/gram/c/0/1").unlink()
    with pytest.warns(ZeroRowsWarning):
        again = dhsk.compute_gram(form(X), KERNEL, store=tmp_path / "g")
    np.testing.assert_array_equal(again[:, :], G[:, :])
    with pytest.warns(ZeroRowsWarning, match=r"^4 of 60 samples of X and 1 of 5 samples of X are"):
        G = dhsk.compute_gram(form(X), KERNEL, form(X[33:38]))
    np.testing.assert_allclose(G[:, :], expected[:, 33:38], rtol=0, atol=1e-13)
    with pytest.raises(InputError, match=r"row 0 .* all zero"):
        dhsk.compute_gram(form(X), KERNEL, zero_rows="error", store=tmp_path / "g")


def test_stores_without_such_samples_are_as_before(data: Any, tmp_path: Path) -> None:
    """Earlier versions can read them; and kernels of unmapped samples do not count zeros."""
    X, full, _ = data
    dhsk.compute_gram(full, KERNEL, store=tmp_path / "g")
    dhsk.compute_gram(X, dhsk.GaussianKernel(2.0), store=tmp_path / "h")
    for store in ("g", "h"):
        header = json.loads((tmp_path / store / "zarr.json").read_text())["attributes"]["dhsk"]
        assert "zero_rows" not in header


def test_repair(data: Any, form: Any, tmp_path: Path) -> None:
    """Damaged samples of zeros are staged again, without a warning."""
    X, _, _ = data
    with pytest.warns(ZeroRowsWarning):
        before = dhsk.compute_gram(form(X), KERNEL, store=tmp_path / "g", tile=16)[:, :]
    chunk = next(path for path in sorted((tmp_path / "g/rows").rglob("c/**/*")) if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"?")
    (tmp_path / "g/gram/c/0/0").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dhsk.repair_gram(tmp_path / "g", form(X))
    np.testing.assert_array_equal(dhsk.open_gram(tmp_path / "g")[:, :], before)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 20])
def test_cross_validation(rank: int | None, data: Any, form: Any, tmp_path: Path) -> None:
    """One warning for all kernels, folds and the model; results, report and model say it too."""
    X, full, y = data
    options = {
        "time_scale": [0.5, 0.7],
        "C": 3.0,
        "cv": 3,
        "low_rank": rank and dhsk.LowRank(rank),
        "refit": True,
    }
    expected = dhsk.cross_validate(full, y, **options)
    with pytest.warns(ZeroRowsWarning, match="^4 of 60 samples of X are all zero") as caught:
        found = dhsk.cross_validate(form(X), y, **options)
    assert len(caught) == 1
    scores = [[row["score"] for row in r.results_] for r in (found, expected)]
    np.testing.assert_allclose(*scores)
    assert found.data["samples"]["zero_rows"] == 4
    assert found.model_.n_zero_rows == 4
    assert (found.data["samples"]["nnz"] is None) == (form is np.array)
    found.report(tmp_path / "r.html")
    assert "at the centre of the orthant" in (tmp_path / "r.html").read_text()
    expected.report(tmp_path / "e.html")
    assert "at the centre of the orthant" not in (tmp_path / "e.html").read_text()
    with pytest.raises(InputError, match=r"row 0 .* all zero"):
        dhsk.cross_validate(form(X), y, **options, fit=dhsk.Fitting(zero_rows="error"))
    test = (form(X), y)
    with pytest.warns(ZeroRowsWarning) as caught:
        tested = dhsk.cross_validate(full, y, **options | {"refit": dhsk.Refit(test=test)})
    assert len(caught) == 1
    assert tested.data["test"]["n"] == N


@pytest.mark.slow
def test_workers(data: Any, form: Any) -> None:
    """On a Dask client: counted once, by the process that calls."""
    X, full, y = data
    expected = dhsk.HeatSVC(3.0, 0.7, tol=1e-10).fit(full, y).decision_function(full)
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0",
        set_as_default=False,
    ) as client:  # fmt: skip
        for made in (
            dhsk.HeatSVC(3.0, 0.7, tol=1e-10, client=client),
            dhsk.NystromSVC(N, 3.0, time_scale=0.7, tol=1e-10, random_state=0, client=client),
        ):
            with pytest.warns(ZeroRowsWarning, match="^4 of 60") as caught:
                made.fit(form(X), y)
            assert len(caught) == 1
            if isinstance(made, dhsk.HeatSVC):
                found = made.decision_function(full)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_features_on_disk(data: Any, form: Any, tmp_path: Path) -> None:
    """Their store says how many samples were of zeros; a Dask array of them is lazy and silent."""
    X, full, _ = data
    model = dhsk.NystromFeatures(20, time_scale=0.7, random_state=0).fit(full)
    expected = model.transform(full)
    with pytest.warns(ZeroRowsWarning, match="^4 of 60") as caught:
        Z = model.write(form(X), tmp_path / "z")
    assert len(caught) == 1
    np.testing.assert_allclose(Z.compute(), expected, rtol=0, atol=CLOSE)
    assert '"zero_rows": 4' in (tmp_path / "z/zarr.json").read_text()


@pytest.mark.slow
def test_many_samples_of_zeros_take_no_memory() -> None:
    """3,000 of a million features would be 3e9 entries, 36 GB; they are one each."""
    dim, n = 10**6, 3200
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(200), 30)
    X = csr_array((rng.poisson(1, 6000) + 1.0, (rows, rng.integers(0, dim, 6000))), (n, dim))
    with pytest.warns(ZeroRowsWarning, match="^3,000 of 3,200"):
        G = dhsk.compute_gram(X, dhsk.CosineKernel())
    assert G.header.nnz == (X.nnz + 3000,)
    unit = dhsk.hyperspherical_map(X[:1]).sum()
    np.testing.assert_allclose(G[0, 199:202], [0, unit / 1000, unit / 1000], atol=1e-12)
    assert (G[-2:, -2:] == 1).all()
    y = np.r_[np.zeros(200), np.arange(3000) % 2]
    with pytest.warns(ZeroRowsWarning, match="^3,000 of 3,200"):
        model = dhsk.HeatSVC(kernel=dhsk.CosineKernel()).fit(X, y)
    assert model.model_.rows.nnz < 10**5
    low = dhsk.NystromSVC(200, kernel=dhsk.CosineKernel(), selection="uniform", random_state=0)
    with pytest.warns(ZeroRowsWarning, match="^3,000 of 3,200"):
        low.fit(X, y)
    assert low.model_.rows.nnz < 10**5
    assert "landmarks_" not in vars(low)  # made when it is asked for: 1.5 GB


@pytest.mark.filterwarnings("ignore::dhsk.errors.ZeroRowsWarning")
def test_rows_that_users_see_have_all_entries(tmp_path: Path) -> None:
    """Support vectors, landmarks and samples of sparse zeros are 1/sqrt(dim), and models sound."""
    rng = np.random.default_rng(0)
    X = csr_array(rng.poisson(0.05, (120, 60)).astype(float))
    y = rng.integers(0, 2, 120)
    centre = np.full(60, np.sqrt(1 / 60))
    empty = np.diff(X.indptr) == 0
    assert empty.any()
    svc = dhsk.HeatSVC(C=10).fit(X, y)
    one = dhsk.HeatOneClassSVM(nu=1.0).fit(X)
    low = dhsk.NystromSVC(120, selection="uniform").fit(X, y)
    ridge = dhsk.HeatKernelRidge().fit(X, y)
    features = dhsk.NystromFeatures(120, selection="uniform").fit(X)
    G = dhsk.compute_gram(X, dhsk.CosineKernel())
    shown = [
        (svc.support_vectors_, svc.support_),
        (one.support_vectors_, one.support_),
        (low.landmarks_, low.landmark_indices_),
        (features.landmarks_, features.landmark_indices_),
        (G.samples(), np.arange(120)),
        (ridge.X_fit_, np.arange(120)),
    ]
    for rows, numbers in shown:
        own = rows.toarray()[empty[numbers]]
        assert len(own)
        np.testing.assert_array_equal(own, np.tile(centre, (len(own), 1)))
    for number, model in enumerate([svc, low]):
        model.save(tmp_path / f"{number}.model")
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(tmp_path / f"{number}.model")])
        assert ended.value.code == DONE
