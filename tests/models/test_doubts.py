"""Fits with kernels that tell no samples apart, or relate none to another, say so."""

import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk

pytestmark = pytest.mark.threads


@pytest.fixture(scope="module")
def counts() -> tuple[Any, Any]:
    """Words of six classes, in 2,000 dimensions."""
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(2000, 0.1), 6)
    y = np.arange(120) % 6
    lengths = rng.integers(30, 200, len(y))
    mixed = 0.3 * share[y] + 0.7 * share.mean(axis=0)
    X = np.array([rng.multinomial(n, p) for n, p in zip(lengths, mixed, strict=True)], float)
    return csr_array(X), y


def doubts_of(model: Any, X: Any, y: Any) -> list[str]:
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert all(issubclass(one.category, dhsk.InputWarning) for one in told)
    assert all(one.filename == __file__ for one in told)
    return [str(one.message) for one in told]


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.4, 2.0])
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_usual_times_say_nothing(counts: Any, scale: float, C: float) -> None:
    """Also where a small C makes every sample a support vector."""
    for model in (
        dhsk.HeatSVC(C, scale),
        dhsk.NystromSVC(40, C, time_scale=scale),
        dhsk.NystromSVC(40, C, time_scale=scale, oversampling=1.5, selection="uniform"),
        dhsk.NystromSVC(200, C, time_scale=scale),
    ):
        assert doubts_of(model, *counts) == []


@pytest.mark.parametrize("of", [np.asarray, csr_array])
def test_samples_that_differ_in_totals_alone_are_equal(of: Any) -> None:
    """On the sphere they are one point, to rounding; other samples next to them are not."""
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 1)) * rng.random(5), np.arange(40) % 2
    (told,) = doubts_of(dhsk.HeatSVC(), of(X), y)
    assert "cannot tell the classes apart" in told
    X[::2, 0] *= 1 + 1e-9
    assert doubts_of(dhsk.HeatSVC(), of(X), y) == []
    assert doubts_of(dhsk.SVC(), of(X), y) == []


def test_a_small_time__relates_no_samples(counts: Any) -> None:
    """Both estimators say so once, with the kernel and the way out."""
    for model, words in (
        (dhsk.HeatSVC(1.0, 0.3), "between samples are nearly 0, .*none tells about another"),
        (dhsk.NystromSVC(40, time_scale=0.3), r"squared length of \S+, 1 if exact. Take more land"),
        (dhsk.NystromSVC(40, time_scale=0.3, oversampling=1.5), "nearly 0"),
        (dhsk.NystromSVC(40, time_scale=0.3, selection="kmeans"), "nearly 0"),
    ):
        (told,) = doubts_of(model, *counts)
        assert re.search(f"values of the kernel heat .*{words}", told)
        assert "time_scale='auto'" in told


def test_equal_samples__do_not_hide_it(counts: Any) -> None:
    """A few samples that occur twice are related, all others are not."""
    X, y = counts
    twice = np.concatenate([np.arange(120), np.arange(10)])
    for C in (0.01, 1.0):  # with the small one both are support vectors
        (told,) = doubts_of(dhsk.HeatSVC(C, 0.3), X[twice], y[twice])
        assert "nearly 0" in told


def test_tight_groups_are_related() -> None:
    """Twenty groups that are far from each other: a support vector of each is enough."""
    groups = np.repeat(np.eye(20), 10, axis=0)
    X = np.abs(groups + 0.001 * np.random.default_rng(0).normal(size=groups.shape))
    y = np.arange(200) // 10 % 2
    for model in (
        dhsk.HeatSVC(10.0, 0.1),
        dhsk.NystromSVC(20, 10.0, time_scale=0.1, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 3.0), ("float64", 4.7), ("float64", 9.0)])
def test_a_large_time__tells_no_samples_apart(counts: Any, dtype: str, scale: float) -> None:
    """Low rank says so, and points to the exact fit, which does as well as ever."""
    X, y = counts
    (told,) = doubts_of(dhsk.NystromSVC(40, time_scale=scale, dtype=dtype), X, y)
    assert re.search("differ from 1 by .*on average.*take a smaller time .*or take HeatSVC", told)
    exact = dhsk.HeatSVC(1.0, scale)
    assert doubts_of(exact, X, y) == []
    assert exact.score(X, y) > 0.9


def test_one_landmark_that_was_asked_for_says_nothing(counts: Any) -> None:
    """A single feature need not be a sign of a constant kernel."""
    assert doubts_of(dhsk.NystromSVC(1, time_scale=1.2), *counts) == []


def test_kernels_without_a_scale_say_nothing() -> None:
    """Samples of the linear kernel may be orthogonal."""
    X, y = np.eye(12), np.arange(12) % 2
    for model in (
        dhsk.HeatSVC(kernel=dhsk.LinearKernel(), sphere_map="identity"),
        dhsk.NystromSVC(4, kernel=dhsk.LinearKernel(), sphere_map="identity"),
    ):
        assert doubts_of(model, X, y) == []


def test_a_cross_validation_says_nothing(counts: Any) -> None:
    """There the scores of the candidates show it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dhsk.cross_validate(*counts, time_scale=[0.3, 1.0], C=[1.0], low_rank=dhsk.LowRank((20,)))


@pytest.mark.parametrize("scale", [60.0, 1e9])
def test_a_time_at_which_all_are_one_point_is_said(scale: float) -> None:
    """Predictions were the largest class without a word, as if it were an honest fit."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 12)), np.arange(60) % 3
    X[:, :4] += y[:, None]
    model = dhsk.HeatSVC(time_scale=scale)
    (told,) = doubts_of(model, X, y)
    assert "on average, too little for a fit at C = " in told
    assert "take a smaller time" in told
    model = dhsk.HeatSVC(time_scale=20.0)
    assert doubts_of(model, X, y) == []
    assert model.score(X, y) > 0.9
