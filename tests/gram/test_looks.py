"""A warning, with the way out, where samples that are used as counts seem to be none."""

import gzip
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_wine

import dhsk
from dhsk.commands.cli import commands
from dhsk.errors import InputWarning
from dhsk.samples import open_samples
from dhsk.samples.looks import differ_in_depth, first_rows

MICROBIOME = Path(os.environ.get("DHSK_DATA", "nowhere")) / "microbiome"


def counts(rows: int = 60, depth: float = 1.0) -> Any:
    """Counts of 30 features, of rows with different totals."""
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.5, 4 * depth, (1, 30)) * rng.gamma(2, 1, (rows, 1)))


LOGGED = np.log1p(counts())
NORMALISED = np.log1p(1e4 * counts() / np.maximum(counts().sum(axis=1, keepdims=True), 1))
WINE, CULTIVAR = load_wine(return_X_y=True)
HEAVY = np.random.default_rng(0).exponential(size=(60, 40)) ** 2 + 100.0 * (np.arange(40) == 12)
"""One column is half of all: a search takes a tenth of the time that it takes for 13 features."""


def warned(function: Callable[[], Any]) -> list[str]:
    """Our warnings about input during a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found if issubclass(one.category, InputWarning)]


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("X", [LOGGED, NORMALISED, LOGGED.astype(np.float32)])
def test_logarithms_are_sent_to_their_counts(X: Any, made: Any) -> None:
    """log1p of counts, or of counts brought to one total; rows of zeros change nothing."""
    X = np.vstack([X[:3], 0 * X[:1], X[3:]])
    (said,) = (
        one for one in warned(lambda: dhsk.compute_gram(made(X), "heat")) if "zero" not in one
    )
    assert "seem to be logarithms of counts" in said
    assert "np.expm1" in said
    assert "layers/counts or raw/X" in said


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "csr"])
def test_logarithms_are_told_where_a_model_predicts_them(made: Any) -> None:
    """The model is of counts; counts themselves need no words, nor do single samples."""
    X, y, kernel = counts(), np.arange(60) % 2, dhsk.HeatKernel.at_scale(30, 0.5)
    for model in (dhsk.HeatSVC(kernel=kernel), dhsk.NystromSVC(10, kernel=kernel)):
        fitted = model.fit(made(X.astype(float)), y)
        (said,) = warned(lambda m=fitted: m.predict(made(NORMALISED)))
        assert "seem to be logarithms of counts" in said
        assert not warned(lambda m=fitted: m.predict(made(X[::-1].astype(float))))
        assert not warned(lambda m=fitted: m.predict(made(NORMALISED[:1])))
    plain = dhsk.HeatSVC(kernel=dhsk.GaussianKernel(1.0)).fit(LOGGED, y)
    assert not warned(lambda: plain.predict(LOGGED))


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "csr"])
def test_a_column_of_another_unit_is_named(made: Any) -> None:
    """Of wine it is the proline of 178 wines, 83 % of all."""
    (said,) = warned(lambda: dhsk.compute_gram(made(WINE), "heat"))
    share = WINE.sum(axis=0)[12] / WINE.sum()
    assert f"{share:.0%} of the sum of all values in column 12 (counted from 0)" in said
    assert "MinMaxScaler" in said


@pytest.mark.slow
def test_columns_have_names(tmp_path: Path) -> None:
    """Those of a table, at the command line, in one sentence."""
    from click.testing import CliRunner

    names = [*(f"m{i}" for i in range(12)), "proline"]
    rows = [",".join(names), *(",".join(map(str, row)) for row in WINE)]
    (tmp_path / "wine.csv").write_text("\n".join(rows))
    words = ["gram", str(tmp_path / "wine.csv"), "--out", str(tmp_path / "wine.gram")]
    found = warned(lambda: CliRunner().invoke(commands, words, catch_exceptions=False))
    assert len(found) == 1
    assert "in column proline" in found[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dhsk.cross_validate(
            HEAVY,
            np.arange(60) % 2,
            cv=2,
            C=1,
            sphere_map="hyperspherical",
            out=dhsk.Output(baselines=False),
        ),
        lambda: dhsk.cross_validate(WINE, CULTIVAR, cv=2, C=1, kernels="cosine", sphere_map="auto"),
        lambda: dhsk.cross_validate(
            WINE, CULTIVAR, cv=2, C=1, time_scale=1.0, low_rank=dhsk.LowRank((10, 20))
        ),
        lambda: dhsk.compute_gram(WINE, ["cosine", "heat"]),
        lambda: dhsk.HeatSVC().fit(WINE, CULTIVAR),
        lambda: dhsk.NystromSVC(n_components=20).fit(WINE, CULTIVAR).predict(WINE),
        lambda: dhsk.HeatKernelRidge().fit(WINE, CULTIVAR),
        lambda: dhsk.compute_gram(WINE, dhsk.SmoothedKernel(dhsk.CosineKernel(), 1.0)),
    ],
)
def test_once_for_each_call(call: Callable[[], Any]) -> None:
    """However many kernels, folds, ranks and passes there are."""
    assert sum("in column 12" in one for one in warned(call)) == 1


@pytest.mark.parametrize("X", [WINE / WINE.max(axis=0), LOGGED, NORMALISED])
@pytest.mark.parametrize(
    "options",
    [{"kernel": "linear"}, {"kernel": "gaussian"}, {"kernel": "heat", "sphere_map": "projective"}],
    ids=str,
)
def test_other_kernels_take_values_as_they_are(X: Any, options: Any) -> None:
    """No warning where samples are not taken for counts."""
    assert not warned(lambda: dhsk.compute_gram(np.asarray(X) + 1e-9, **options))


@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("size", [0.005, 0.05])
def test_a_column_that_is_the_direction_of_all_is_named(made: Any, size: float) -> None:
    """Embeddings with the numbers of their rows; without these, of length 1 or whole they pass."""
    X, y = np.random.default_rng(0).normal(size=(60, 30)) * size, np.arange(60) % 2
    X[:, 7] = np.arange(60)
    for call in (
        lambda X: dhsk.HeatSVC(sphere_map="projective").fit(X, y),
        lambda X: dhsk.compute_gram(X, ["cosine", "heat"], sphere_map="projective"),
    ):
        (said,) = warned(lambda call=call: call(made(X)))
        assert "100% of the sum of all squares in column 7 (counted from 0)" in said
        assert "StandardScaler" in said
        plain = np.delete(X, 7, axis=1)
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        for other in (plain, unit, np.round(100 * X)):
            assert warned(lambda call=call, other=other: call(made(other))) == []
    assert warned(lambda: dhsk.compute_gram(made(X), "linear")) == []


def test_weights_of_counts_are_no_units() -> None:
    """A feature that is most of all is nothing to scale under tf-idf."""
    X = counts() * np.where(np.arange(30) == 3, 50, 1) + 1
    asked: dict[str, Any] = {"kernels": "cosine", "C": 1.0, "cv": 2, "sphere_map": "tfidf"}
    assert warned(lambda: dhsk.cross_validate(X, np.arange(60) % 2, **asked)) == []


def test_z_scores_are_refused_with_the_way_out() -> None:
    """They have no square roots; the error alone says where counts may be."""
    X = (counts() - counts().mean(axis=0)) / (counts().std(axis=0) + 1)
    assert not warned(lambda: dhsk.compute_gram(X, "gaussian"))
    with pytest.raises(dhsk.InputError, match=r"z-scores.*layers/counts or raw/X"):
        dhsk.compute_gram(X, "heat")


@pytest.mark.parametrize(
    "X",
    [
        counts(),
        counts() / np.maximum(counts().sum(axis=1, keepdims=True), 1),
        np.random.default_rng(0).dirichlet(np.full(5000, 0.3), 20),
        load_digits().data,
        load_digits().data / 16,
        np.eye(9),
        np.random.default_rng(0).random((50, 4)),
        WINE / WINE.max(axis=0),
        np.zeros((4, 3)),
    ],
    ids=["counts", "proportions", "small", "digits", "scaled", "eye", "uniform", "wine", "zero"],
)
@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "csr"])
def test_what_is_as_it_should_be(X: Any, made: Any) -> None:
    """Counts, proportions, pictures and scaled columns need no words."""
    found = warned(lambda: dhsk.compute_gram(made(X), "heat"))
    assert not [one for one in found if "are all zero" not in one]


def test_words_are_counts() -> None:
    """As those of pages, sparse."""
    X = csr_array(np.random.default_rng(1).poisson(0.05, (200, 400)))
    assert not [one for one in warned(lambda: dhsk.compute_gram(X, "heat")) if "zero" not in one]


@pytest.mark.parametrize("path", sorted(MICROBIOME.glob("*.gz")) or [None], ids=str)
def test_sequencing_counts_are_counts(path: Path | None) -> None:
    """Nothing is said of seven tables, as counts or as proportions; their depths differ."""
    if path is None:
        pytest.skip("DHSK_DATA has no microbiome")
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t")[2:] for line in file]
    X = np.array(rows[1:], dtype=float)
    for values in (X, X / X.sum(axis=1, keepdims=True), X / X.sum(axis=1).max()):
        assert not warned(lambda values=values: dhsk.compute_gram(values, "heat"))
    assert differ_in_depth(first_rows(open_samples(X)))


def test_depths() -> None:
    """Pictures have about the same totals, and measurements and z-scores are no counts."""
    for X in (load_digits().data, WINE, counts() - 1.0, counts() / 7, np.full((3, 3), np.nan)):
        assert not differ_in_depth(np.asarray(X, dtype=float))
    for made in (np.asarray, csr_array):
        assert differ_in_depth(made(counts().astype(float)))


def test_a_column_with_most_of_the_variance_is_named() -> None:
    """Where Gaussian kernels were asked for; `dhsk.SVC`, like scikit-learn's, says nothing."""
    signed = np.random.default_rng(0).normal(size=(60, 4)) * [1, 1, 9, 1]
    asked = {"kernels": ["gaussian"], "C": 1.0, "cv": 2}
    y = np.arange(60) % 2
    (said,) = warned(lambda: dhsk.cross_validate(signed, y, **asked))
    assert "of the variance of all columns in column 2 (counted from 0)" in said
    assert "StandardScaler" in said
    assert warned(lambda: dhsk.SVC().fit(signed, y)) == []
    assert warned(lambda: dhsk.cross_validate(signed / [1, 1, 9, 1], y, **asked)) == []
    assert warned(lambda: dhsk.cross_validate(csr_array(signed), y, **asked)) == []
    # A map leaves other columns than these.
    ratios = np.random.default_rng(0).gamma(2, 1, (60, 4)) * [1, 1, 9, 1]
    assert len(warned(lambda: dhsk.cross_validate(ratios, y, **asked))) == 1
    assert warned(lambda: dhsk.cross_validate(ratios, y, sphere_map="clr", **asked)) == []
