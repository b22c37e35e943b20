"""Nyström features: scikit-learn's contract, and an error that is what it is said to be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.estimators.nystrom import NystromFeatures
from dhsk.results.low_rank import usual_oversampling

SAME = 1e-9
"""What is lost by eigenvalues of K(L, L) that are just kept: eps / sqrt(k eps), and less here."""

SINGLE = 1e-4
"""The same in float32, as a part of the trace."""


@pytest.fixture
def X(counts: Callable[[int, int], Any]) -> Any:
    """Counts."""
    return counts(150, 12)


def matrix(X: Any, scale: float = 1.0) -> Any:
    """Exact heat kernel matrix."""
    return dhsk.HeatKernel.at_scale(X.shape[1], scale)(dhsk.hyperspherical_map(X))


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", [5, 9, 9, 100, 3]])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_those_of_nystrom(
    X: Any, selection: Any, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z Z' is K(X, L) K(L, L)^+ K(L, X), in blocks and of new samples too."""
    monkeypatch.setattr("dhsk.nystrom.features.ROWS", 32)
    given = csr_array(X) if sparse else X
    model = NystromFeatures(20, selection=selection, oversampling=1, time_scale=1.0, random_state=1)
    model.fit(given[:120])
    K, L = matrix(X), model.landmark_indices_
    exact = K[:, L] @ np.linalg.pinv(K[np.ix_(L, L)], hermitian=True) @ K[L]
    Z = model.transform(given)
    np.testing.assert_allclose(Z @ Z.T, exact, atol=SAME)
    assert Z.shape == (150, model.n_components_)
    assert model.n_components_ == len(set(L))
    assert model.landmarks_.shape == (len(L), 12)


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", list(range(40)) * 2])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
def test_the_trace_error_is_the_trace_norm(X: Any, selection: Any, scale: float) -> None:
    """Of K - Z Z', by all its singular values."""
    model = NystromFeatures(40, selection=selection, time_scale=scale, random_state=0)
    Z, K = model.fit_transform(X), matrix(X, scale)
    norm = np.linalg.norm(K - Z @ Z.T, "nuc") / np.trace(K)
    assert model.trace_error_ == pytest.approx(norm, abs=SAME)
    assert scale > 1 or model.trace_error_ > 1e-3


def test_the_diagonal_of_other_kernels_is_theirs(rng: np.random.Generator) -> None:
    """Kernels of rows of any length have traces other than N."""
    X = rng.normal(size=(60, 30))
    kernel = dhsk.LinearKernel()
    model = NystromFeatures(8, kernel, sphere_map=None, random_state=0)
    Z = model.fit_transform(X)
    norm = np.linalg.norm(X @ X.T - Z @ Z.T, "nuc") / np.trace(X @ X.T)
    assert model.trace_error_ == pytest.approx(norm, abs=SAME)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_little_more_is_left_than_by_the_best_features(X: Any, scale: float) -> None:
    """By default: the leading components of three landmarks a feature."""
    model = NystromFeatures(30, time_scale=scale, random_state=0).fit(X)
    values = np.linalg.eigvalsh(matrix(X, scale))
    best = values[:-30].sum() / values.sum()
    assert (model.n_components_, len(model.landmarks_)) == (30, 90)
    assert best <= model.trace_error_ <= 1.3 * best


def test_the_number_of_landmarks_has_an_end() -> None:
    """Three a feature, 3,000 in all, and no fewer than features; one where none are looked for."""
    found = [usual_oversampling(k, "rpcholesky") for k in (1, 1000, 2000, 3000, 5000)]
    assert found == [3, 3, 1.5, 1, 1]
    assert usual_oversampling(10, "uniform") == usual_oversampling(10, [1, 2]) == 1


def test_all_samples_give_the_matrix(X: Any) -> None:
    """More components than samples are no error: the features are exact."""
    model = NystromFeatures(1000, time_scale=0.3, random_state=0)
    Z = model.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, matrix(X, 0.3), atol=SAME)
    assert model.trace_error_ < SAME
    assert model.n_components_ <= 150


def test_a_tolerance_takes_fewer_landmarks(X: Any) -> None:
    """And is kept by the error of the features."""
    model = NystromFeatures(150, time_scale=0.5, landmark_tol=0.2, random_state=0).fit(X)
    assert model.n_components_ < 150
    assert 0.19 < model.trace_error_ <= 0.2


def test_copies_of_a_sample_take_one_feature(X: Any) -> None:
    """Whatever the selection; and duplicates among others cost no digits."""
    same = np.repeat(X[:1], 30, axis=0)
    for selection in ("rpcholesky", "uniform", [0, 1, 2]):
        model = NystromFeatures(10, selection=selection, random_state=0)
        np.testing.assert_allclose(np.abs(model.fit_transform(same)), np.ones((30, 1)), atol=SAME)
        assert model.trace_error_ < SAME
    twice = np.concatenate([X, X, X])
    model = NystromFeatures(450, time_scale=0.3, random_state=0)
    Z = model.fit_transform(twice)
    assert model.n_components_ <= 150
    np.testing.assert_allclose(Z @ Z.T, matrix(twice, 0.3), atol=SAME)


def test_the_seed_decides(X: Any) -> None:
    """The same landmarks and features bit for bit, from a number and from a RandomState."""
    for selection in ("rpcholesky", "uniform"):
        one, two, third, other = (
            NystromFeatures(30, selection=selection, random_state=seed).fit(X)
            for seed in (4, 4, np.random.RandomState(4), 5)
        )
        assert np.array_equal(one.landmark_indices_, two.landmark_indices_)
        assert np.array_equal(one.landmark_indices_, third.landmark_indices_)
        assert np.array_equal(one.transform(X), two.transform(X))
        assert not np.array_equal(one.landmark_indices_, other.landmark_indices_)


def test_single_precision(X: Any) -> None:
    """Features in float32, of an error that is right to the rounding of the kernel."""
    model = NystromFeatures(40, time_scale=1.0, dtype="float32", random_state=0)
    Z = model.fit_transform(X)
    assert Z.dtype == np.float32
    norm = np.linalg.norm(matrix(X) - Z.astype(np.float64) @ Z.T, "nuc") / len(X)
    assert model.trace_error_ == pytest.approx(norm, abs=SINGLE)


def test_names_and_frames(X: Any) -> None:
    """Features have names, and come as a frame where that is asked for."""
    model = NystromFeatures(3, random_state=0).fit(X)
    assert list(model.get_feature_names_out()) == [f"nystromfeatures{i}" for i in range(3)]
    frame = model.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == list(model.get_feature_names_out())


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"n_components": 0}, "n_components must be a whole number, at least 1"),
        ({"landmark_tol": -0.1}, "landmark_tol must be at least 0 and below 1, but it is -0.1"),
        ({"landmark_tol": 1.0}, "landmark_tol must be at least 0 and below 1, but it is 1.0"),
        ({"landmark_tol": "small"}, "landmark_tol must be a finite number"),
        ({"selection": "best"}, "rpcholesky, uniform, kmeans or indices of rows, but it is 'best'"),
        ({"oversampling": 0.5}, "oversampling must be at least 1, but it is 0.5"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64'"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(parameters: dict[str, Any], match: str) -> None:
    """Before the samples are even looked at."""
    with pytest.raises(InputError, match=match):
        NystromFeatures(**parameters).fit("no samples")


@pytest.mark.parametrize(
    ("selection", "match"),
    [
        ([3, 150], "names row 150, but the 150 samples have rows 0 to 149"),
        ([-1], "names row -1"),
        ([0.5], r"shape \(1,\) and type float64"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([], r"shape \(0,\)"),
    ],
)
def test_rows_that_are_not_there_are_refused(X: Any, selection: Any, match: str) -> None:
    """With the number."""
    with pytest.raises(InputError, match=match):
        NystromFeatures(selection=selection).fit(X)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "match"),
    [
        (-1.0, "row 7, column 3 .* holds -1.0"),
        (np.nan, "row 7, column 3 .* holds nan"),
        (0, r"row 7 \(counted from 0\) is all zero"),
    ],
)
def test_a_bad_row_is_named(X: Any, value: float, match: str, sparse: bool) -> None:
    """In fit, and in transform, where counts are clipped."""
    model = NystromFeatures(10, zero_rows="error").fit(X)
    wrong = X.copy()
    wrong[7, slice(None) if value == 0 else 3] = value
    given = csr_array(wrong) if sparse else wrong
    with pytest.raises(InputError, match=match):
        NystromFeatures(10, zero_rows="error").fit(given)
    if value != -1:
        with pytest.raises(InputError, match=match):
            model.transform(given)


def test_what_does_not_fit_the_memory_is_refused(X: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The landmarks in fit, and the features in transform."""
    model = NystromFeatures(40, random_state=0).fit(X)
    with pytest.raises(BudgetError, match=r"120 landmarks of 150 samples take .*fewer landmarks"):
        NystromFeatures(40, memory="1MB").fit(X)
    monkeypatch.setattr("dhsk.estimators.nystrom.own_room", lambda _: 8 * 300 * 40 - 1)
    many = np.concatenate([X, X])
    with pytest.raises(BudgetError, match=r"features \(300, .* transform fewer samples"):
        model.transform(many)


@pytest.mark.parametrize("selection", ["rpcholesky", "uniform", [3, 8, 90]])
def test_features_of_fitting_are_those_of_transform(X: Any, selection: Any) -> None:
    """To rounding, and made once: kernel values of the samples are not asked for again."""
    model = NystromFeatures(60, selection=selection, random_state=0)
    Z = model.fit_transform(X)
    assert Z.shape == (150, model.n_components_)
    np.testing.assert_allclose(Z, model.transform(X), atol=SAME)


def test_an_indefinite_kernel_is_refused(counts: Callable[[int, int], Any]) -> None:
    """Its approximation would have no trace error."""
    X = counts(300, 4)
    kernel = dhsk.ParametrixKernel(time=2.0, order=None, dim=4)
    with pytest.raises(InputError, match="choose a positive semi-definite kernel"):
        NystromFeatures(300, kernel, "uniform", random_state=0).fit(X)


@pytest.mark.parametrize("oversampling", [1, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_to_a_file_is_that_to_its_samples(
    X: Any, tmp_path: Path, sparse: bool, oversampling: float
) -> None:
    """Bit for bit, with the names of a table's columns; and they are told apart in transform."""
    given = csr_array(X) if sparse else X
    model = NystromFeatures(20, oversampling=oversampling, random_state=0)
    here, seen = model.fit(given), list[str]()
    there = NystromFeatures(20, oversampling=oversampling, random_state=0)
    there.fit_samples(given, lambda event: seen.append(event.stage))
    assert "landmarks" in seen
    for name in ("normalization_", "landmark_indices_"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
    np.testing.assert_array_equal(there.transform(given), here.transform(given))
    assert there.trace_error_ == here.trace_error_
    assert (there.n_components_, there.time_scale_) == (here.n_components_, here.time_scale_)
    if not sparse:
        names = [f"w{j}" for j in range(12)]
        table = "\n".join([",".join(names), *(",".join(map(str, row)) for row in X)])
        (tmp_path / "x.csv").write_text(table)
        there.fit_samples(tmp_path / "x.csv")
        np.testing.assert_array_equal(there.normalization_, here.normalization_)
        assert there.feature_names_in_.tolist() == names
        there.fit_samples(X)
        assert not hasattr(there, "feature_names_in_")


def test_a_fit_to_samples_larger_than_memory(
    X: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read in every pass, and the features are the same up to rounding."""
    np.save(tmp_path / "x.npy", X)
    whole = NystromFeatures(20, time_scale=1.0, random_state=0).fit(X)
    asked: list[str] = []

    def planned(need: Any, *_: Any) -> Any:
        asked.append(need.what)
        return need.share("samples read in every pass", 2)

    monkeypatch.setattr("dhsk.nystrom.approximation.plan_here", planned)
    model = NystromFeatures(20, time_scale=1.0, random_state=0).fit_samples(tmp_path / "x.npy")
    assert asked == ["60 landmarks of 150 samples"]
    np.testing.assert_array_equal(model.landmark_indices_, whole.landmark_indices_)
    np.testing.assert_allclose(model.trace_error_, whole.trace_error_, rtol=1e-6)
    Z, expected = model.transform(X), whole.transform(X)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=SAME)
    with pytest.raises(InputError, match="n_components must be a whole number"):
        NystromFeatures(0).fit_samples("no samples")
