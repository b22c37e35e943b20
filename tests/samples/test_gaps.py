"""Gaps, NaN in dense samples: scaled columns have their mean there, other maps refuse them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import dhsk
from dhsk.samples.gaps import code_in
from dhsk.samples.weighted import means_and_factors, weigh

NO_METHODS = dhsk.Output(baselines=False)


def _with_gaps(n: int = 120, *, share: float = 0.1) -> tuple[pd.DataFrame, Any]:
    """Columns of other units, of which the first two tell the classes."""
    rng = np.random.default_rng(3)
    x = rng.normal([10.0, -500.0, 3e4, 0.0], [2.0, 90.0, 5e3, 1.0], (n, 4))
    y = np.where((x[:, 0] - 10) / 2 + (x[:, 1] + 500) / 90 > 0, "u", "v")
    x[rng.random(x.shape) < share] = np.nan
    return pd.DataFrame(x, columns=list("abcd")), y


def test_weights_are_those_of_scikit_learn() -> None:
    """Its scaler leaves gaps out of means and variances, and its imputer puts 0 there after it."""
    table, _ = _with_gaps()
    used = np.ones((120, 2), bool)
    used[::3, 1] = False
    weights = means_and_factors(dhsk.open_samples(table), used)
    for own, found in zip(used.T, weights, strict=True):
        scaler = StandardScaler().fit(table[own])
        np.testing.assert_allclose(found[0], scaler.mean_, rtol=1e-13)
        np.testing.assert_allclose(1 / found[1], scaler.scale_, rtol=1e-13)
        expected = np.nan_to_num(scaler.transform(table))
        np.testing.assert_allclose(weigh(table.to_numpy(), found), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["frame", "array", "nullable", "csv", "question", "parquet"])
def test_a_fit_is_that_of_scikit_learns_pipeline(tmp_path: Path, kind: str) -> None:
    """Of any source, and new samples have gaps too: where those of the fit had none as well."""
    table, y = _with_gaps()
    new = table.iloc[:7].assign(d=np.nan)
    given: Any = {"frame": table, "array": table.to_numpy(), "nullable": table.convert_dtypes()}
    model = dhsk.HeatSVC(sphere_map="scaled", kernel=dhsk.GaussianKernel(2.0), C=1.0, tol=1e-9)
    path = tmp_path / ("t.parquet" if kind == "parquet" else "t.csv")
    if kind == "parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, na_rep="?" if kind == "question" else "")
    fit = model.fit if kind in given else model.fit_samples
    fit(given.get(kind, path), y)
    peer = make_pipeline(StandardScaler(), SimpleImputer(), SVC(C=1.0, gamma=1 / 8, tol=1e-9))
    peer.fit(table, y)
    # LIBSVM takes kernel values, which are at most 1, in float32.
    rounded = 2.0**-24 * np.abs(peer[-1].dual_coef_).sum()
    for samples in (table, new):
        found = model.decision_function(samples if kind != "array" else samples.to_numpy())
        np.testing.assert_allclose(found, peer.decision_function(samples), atol=rounded)
    assert model.__sklearn_tags__().input_tags.allow_nan


def test_a_saved_model_fills_too(tmp_path: Path) -> None:
    """The means are those of its training samples."""
    table, y = _with_gaps()
    model = dhsk.HeatSVC(sphere_map="scaled", kernel="gaussian").fit(table, y)
    model.save(tmp_path / "m.dhsk")
    found = dhsk.HeatSVC.load(tmp_path / "m.dhsk").decision_function(table.iloc[:9])
    np.testing.assert_array_equal(found, model.decision_function(table.iloc[:9]))


@pytest.mark.parametrize("kind", ["fit", "fold", "prediction"])
def test_columns_without_any_value(kind: str) -> None:
    """A column that a fit saw no value of counts for nothing, in samples that have it as well."""
    table, y = _with_gaps(share=0.05)
    empty = table.assign(e=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dhsk.InputWarning)
        if kind == "fold":
            first = np.arange(120) < 60
            empty["e"] = np.where(first, 1e9, np.nan)
            cv = [(np.flatnonzero(~first), np.flatnonzero(first))]
            options: Any = {"cv": cv, "C": 1.0, "sphere_map": "scaled", "out": NO_METHODS}
            results = [
                dhsk.cross_validate(one, y, kernels=[dhsk.GaussianKernel(2.0)], **options)
                for one in (table, empty)
            ]
            assert results[0].best_score_ == results[1].best_score_ > 0.8
            return
        options = {"sphere_map": "scaled", "kernel": dhsk.GaussianKernel(2.0), "tol": 1e-9}
        model, other = (dhsk.HeatSVC(**options).fit(one, y) for one in (table, empty))
        new = empty if kind == "fit" else empty.assign(e=1e9)
        found = other.decision_function(new), model.decision_function(table)
        np.testing.assert_allclose(*found, atol=1e-7)


def test_a_search_scales_by_itself() -> None:
    """Wherever the gap is; common methods are those of tables, which fill gaps or take them."""
    table, y = _with_gaps(700, share=0.0)
    table = table.abs()
    table.iloc[650, 1] = np.nan  # past the rows that are looked at
    with pytest.warns(dhsk.InputWarning) as told:
        result = dhsk.cross_validate(table, y, C=[1.0], cv=2)
    said = [str(one.message) for one in told]
    assert any("have gaps, which are filled with means: columns are scaled" in s for s in said)
    assert any("X: 1 gap in 700 rows (column b 1), where the means" in s for s in said)
    assert result.best.kernel.startswith("scaled ")
    tried = {one["method"]: one["code"] for one in result.data["baselines"]["tried"]}
    filled = "make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), Logistic"
    assert tried["LogisticRegression on scaled columns"].startswith(filled)
    assert "RandomForestClassifier" in tried
    with pytest.raises(dhsk.InputError, match=r"row 650, column 1 'b' .* nan, but samples must be"):
        dhsk.cross_validate(table, y, C=[1.0], cv=2, kernels=["gaussian"])


MIXED = pd.DataFrame({"a": [1, 2, None], "b": [None, 5.5, 6.0], "c": [True, None, False]})
ARROW = pa.Table.from_pandas(MIXED.convert_dtypes())


def _csv(path: Path) -> Any:
    MIXED.assign(d=["NA", "", "?"]).to_csv(path, index=False)
    return dhsk.open_samples(path, drop_columns=["d"])


def _lists(path: Path) -> str:
    """A column of lists of numbers."""
    rows = [[1.0, None, 1.0], [2.0, 5.5, None], [None, 6.0, 0.0]]
    pq.write_table(pa.table({"v": rows}), path)
    return f"{path}:v"


SOURCES: dict[str, Any] = {
    "t.csv": _csv,
    "t.parquet": lambda path: MIXED.convert_dtypes().to_parquet(path),
    "t.feather": lambda path: MIXED.convert_dtypes().to_feather(path),
    "lists.parquet": _lists,
    "frame": lambda _: MIXED,
    "nullable": lambda _: MIXED.convert_dtypes(),
    "arrow": lambda _: ARROW,
    "polars": lambda _: pl.from_arrow(ARROW),
}


@pytest.mark.parametrize("name", SOURCES)
def test_gaps_are_nan(tmp_path: Path, name: str) -> None:
    """Of numbers, whole numbers, and True and False, however a source writes what is missing."""
    made = SOURCES[name](tmp_path / name)
    opened = dhsk.open_samples(tmp_path / name if made is None else made)
    assert opened.has_gaps or name in ("t.feather", "lists.parquet")  # only their rows tell
    found = next(opened.blocks(3))
    np.testing.assert_array_equal(found, [[1, np.nan, 1], [2, 5.5, np.nan], [np.nan, 6, 0]])
    column = "column 1" if opened.feature_names is None else "column 1 'b'"
    with pytest.raises(
        dhsk.InputError, match=rf"row 0, {column} .* holds nan, but samples must be"
    ):
        dhsk.compute_gram(opened, "heat")


@pytest.mark.parametrize("kind", ["infinity", "sparse"])
def test_what_is_no_gap_is_refused(kind: str) -> None:
    """Infinity, and NaN of sparse samples, whose means are not subtracted."""
    table, y = _with_gaps()
    x = table.fillna(0.0).to_numpy(copy=True)
    x[40, 1] = np.inf if kind == "infinity" else np.nan
    given = x if kind == "infinity" else csr_array(x)
    with pytest.raises(dhsk.InputError, match=r"row 40, column 1 .* but samples must be finite"):
        dhsk.HeatSVC(sphere_map="scaled", kernel="gaussian").fit(given, y)


def test_sparse_samples_are_those_of_a_dense_fit() -> None:
    """Their zeros are scaled as well."""
    table, y = _with_gaps(share=0.0)
    x = table.to_numpy() * (np.random.default_rng(0).random(table.shape) < 0.5)
    model = dhsk.HeatSVC(sphere_map="scaled", kernel="gaussian").fit(x, y)
    found = model.decision_function(csr_array(x))
    np.testing.assert_allclose(found, model.decision_function(x), atol=1e-12)


@pytest.mark.parametrize("name", ["HeatKernelRidge", "HeatKernelPCA", "HeatOneClassSVM", "SVR"])
def test_advice_is_what_an_estimator_can(name: str) -> None:
    """Those without scaled columns name steps of a pipeline."""
    x, y = np.ones((20, 3)), np.arange(20.0)
    x[4, 1] = np.nan
    with pytest.raises(dhsk.InputError, match="fill it in, as SimpleImputer of") as caught:
        getattr(dhsk, name)().fit(x, y)
    assert "scaled'" not in str(caught.value)
    x[4] = [-1.5, 2.0, -0.5]
    if name != "SVR":
        with pytest.raises(dhsk.InputError, match="after StandardScaler of scikit-learn") as caught:
            getattr(dhsk, name)().fit(x, y)
        assert "scaled'" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ([3.0, 50.0, -99.0, 7.0, -99.0], -99.0),
        ([3.0, 50.0, 999.0, 7.0, 999.0, np.nan], 999.0),
        ([3.0, 50.0, -99.0, 7.0], None),  # once
        ([-3.0, 50.0, -99.0, 7.0, -99.0], None),  # others are below 0 too
        ([700.0, 800.0, 999.0, 999.0], None),  # near to others
        ([3.0, 50.0, -12.0, -12.0], None),
        ([0.0, -9.0, -9.0], None),  # of two values
    ],
)
def test_numbers_that_stand_for_gaps(values: list[float], code: float | None) -> None:
    """They come again, are written so by people, and lie far from all others."""
    assert code_in(np.array(values)) == code


def test_a_search_warns_of_such_numbers(tmp_path: Path) -> None:
    """By the names of the columns."""
    table, y = _with_gaps(share=0.0)
    table["a"] = table["a"].abs()
    table.loc[::9, "a"] = -99.0
    with pytest.warns(dhsk.InputWarning, match=r"come again in column a \(-99\): if they stand"):
        dhsk.cross_validate(table, y, cv=2, C=1.0, kernels=["linear"], sphere_map="scaled")


@pytest.mark.parametrize("name", ["HeatSVC", "NystromSVC"])
def test_scaled_columns_need_no_kernel_named(name: str) -> None:
    """The advice of a refusal is enough: the Gaussian kernel is meant, at its usual width."""
    table, y = _with_gaps()
    own: Any = {"n_components": 20, "random_state": 0} if name == "NystromSVC" else {}
    with pytest.raises(dhsk.InputError, match=r"sphere_map='scaled'\)"):
        getattr(dhsk, name)(**own).fit(table, y)
    model = getattr(dhsk, name)(sphere_map="scaled", **own).fit(table, y)
    named = getattr(dhsk, name)(sphere_map="scaled", kernel="gaussian", **own).fit(table, y)
    assert model.kernel_ == named.kernel_
    np.testing.assert_array_equal(model.decision_function(table), named.decision_function(table))
    with pytest.raises(dhsk.InputError, match="is for kernels of columns"):
        getattr(dhsk, name)(sphere_map="scaled", kernel="heat", **own).fit(table, y)
