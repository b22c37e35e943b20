"""What a cross-validation takes: a Gram matrix, a matrix of the user's own, or samples."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

import dhsk
from dhsk.samples import Samples
from dhsk.validation.input import ASYMMETRY, open_square

N = 1100
"""More rows than are looked at at a time."""


@pytest.fixture
def K(rng: np.random.Generator) -> Any:
    """A symmetric matrix."""
    A = rng.uniform(-1, 1, (N, N))
    return A + A.T


def test_gram_matrices_are_taken_as_they_are(counts: Any) -> None:
    """Those of one set of samples; a rectangle is refused, with its shape."""
    X = counts(12, 5)
    G = dhsk.compute_gram(X, "heat")
    assert open_square(G, precomputed=False) is G
    with pytest.raises(dhsk.InputError, match=r"needs a square Gram matrix, got \(12, 4\)"):
        open_square(dhsk.compute_gram(X, "heat", X[:4]), precomputed=False)


def test_an_index_in_another_order_is_told(counts: Any) -> None:
    """Rows are paired by position: warned of once, and not where indices are alike or others."""
    names = [f"s{k}" for k in range(40)]
    X, y = pd.DataFrame(counts(40, 5), index=names), pd.Series([0, 1] * 20, index=names)
    groups = pd.Series(range(40), index=names)[::-1]
    given: dict[str, Any] = {"kernels": "linear", "C": 1, "cv": 2}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dhsk.cross_validate(X, y[::-1], **given)
        dhsk.learning_curve(X, y[::-1], train_sizes=[10], **given)
        dhsk.cross_validate(G_or_X=X, y=y, groups=groups, **given)
    said = [str(each.message) for each in told if "another order" in str(each.message)]
    ends = [f"by the index give {name}.loc[X.index]" for name in ("y", "y", "groups")]
    assert [each.partition("them ")[2] for each in said] == ends
    assert {Path(each.filename).name for each in told} == {Path(__file__).name}
    for other in (y, y[::-1].reset_index(drop=True), y[::-1].to_numpy(), y.to_list()):
        with warnings.catch_warnings():
            warnings.simplefilter("error", dhsk.InputWarning)
            dhsk.cross_validate(X, other, **given)


def test_a_view_is_no_samples(counts: Any) -> None:
    """Its values would pass as samples: it is refused, and taken as a precomputed array."""
    X = counts(12, 5)
    view = dhsk.compute_gram(X, "heat").normalized()
    with pytest.raises(dhsk.InputError, match=r"a normalized view: pass the matrix itself, or"):
        dhsk.cross_validate(view, [0, 1] * 6, C=[1.0], cv=2)
    given = np.asarray(view)
    np.testing.assert_array_equal(open_square(given, precomputed=True), given)


def test_an_array_is_samples_unless_it_is_precomputed(counts: Any) -> None:
    """A square one too."""
    X = counts(6, 6)
    samples: Any = open_square(X, precomputed=False)
    assert isinstance(samples, Samples)
    np.testing.assert_array_equal(np.concatenate(list(samples.blocks(4))), X)
    np.testing.assert_array_equal(open_square(X + X.T, precomputed=True), X + X.T)


def test_a_matrix_is_not_copied(K: Any, tmp_path: Any) -> None:
    """Neither in memory nor on a disk; whole numbers become float64."""
    for dtype in ("f4", "f8"):
        own = K.astype(dtype)
        assert np.shares_memory(open_square(own, precomputed=True), own)
    np.save(tmp_path / "k.npy", K)
    mapped = np.load(tmp_path / "k.npy", mmap_mode="r")
    assert np.shares_memory(open_square(mapped, precomputed=True), mapped)
    whole: Any = open_square([[2, 1], [1, 2]], precomputed=True)
    assert whole.dtype == np.float64


@pytest.mark.parametrize("shape", [(3, 4), (4,), (2, 2, 2)])
def test_what_is_no_square_is_refused(shape: tuple[int, ...]) -> None:
    """With its shape."""
    with pytest.raises(dhsk.InputError, match="must be square, got"):
        open_square(np.ones(shape), precomputed=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 1090), (N - 1, N - 1)])
def test_an_entry_that_is_no_number_is_named(K: Any, value: float, row: int, column: int) -> None:
    """In any part of the matrix, both by row and by column."""
    K[row, column] = K[column, row] = value
    with pytest.raises(
        dhsk.InputError,
        match=rf"value {value} at row {row}, column {column} .*: every entry must be",
    ):
        open_square(K, precomputed=True)


@pytest.mark.parametrize(("row", "column"), [(0, 1), (7, 1090), (1091, 1030)])
def test_rounding_is_no_asymmetry(K: Any, row: int, column: int) -> None:
    """A difference to its mirror up to 1e-5 of the largest entry passes, more is named."""
    K /= np.abs(K).max()
    K[row, column] = K[column, row] + 0.9 * ASYMMETRY
    open_square(K, precomputed=True)
    K[row, column] = K[column, row] + 1.1 * ASYMMETRY
    first, second = sorted((row, column))
    with pytest.raises(
        dhsk.InputError,
        match=rf"not symmetric: row {first}, column {second} differs from its mirror by 1.1e-05",
    ):
        open_square(K, precomputed=True)


@pytest.mark.parametrize("name", ["cross_validate", "learning_curve"])
@pytest.mark.parametrize(
    ("estimator", "given"),
    [
        (dhsk.HeatSVC(2.0, 0.5), ", time_scale=0.5, C=2.0"),
        (dhsk.NystromSVC(C=3), ", C=3"),
        (SVC(C=3.0), ""),
        (dhsk.HeatSVC, ""),
    ],
)
def test_an_estimator_first_names_the_right_call(name: str, estimator: Any, given: str) -> None:
    """As scikit-learn's functions of these names take it; its own numbers are in the call."""
    X, y = np.ones((6, 2)), [0, 1] * 3
    function = getattr(dhsk, name)
    said = f"call dhsk.{name}(X, y{given}); or, .* sklearn.model_selection.{name}(estimator, X, y)"
    match = re.escape(said).replace(r"\.\*", ".*")
    for call in (
        lambda: function(estimator, X, y),
        lambda: function(estimator, X, y=y),
        lambda: function(estimator=estimator, X=X, y=y),
    ):
        with pytest.raises(dhsk.InputError, match=match):
            call()
