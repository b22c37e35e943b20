"""What users of scikit-learn write by habit: names of parameters and kernels, units of samples."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel

import dhsk
from dhsk.errors import InputError, InputWarning


@pytest.fixture
def wine() -> tuple[Any, Any]:
    """Standardised measurements."""
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_samples_far_from_0_are_warned_of(wine: Any, recwarn: pytest.WarningsRecorder) -> None:
    """Where squared norms have no digits left for distances; not of far samples all over."""
    X, y = wine
    kernel = dhsk.GaussianKernel.at_gamma(0.1)
    with pytest.warns(InputWarning, match=r"lie 3\.6e\+08 from 0 .* subtract X\.mean\(axis=0\)"):
        dhsk.HeatSVC(kernel=kernel).fit(X + 1e8, y)
    dhsk.HeatSVC(kernel=kernel).fit(X + 1e8, y)
    assert len([one for one in recwarn if "from 0" in str(one.message)]) == 1
    recwarn.clear()
    assert dhsk.SVC(gamma=0.1).fit(X + 1e8, y).score(X + 1e8, y) > 0.97  # it subtracts them
    assert dhsk.SVC(gamma=0.1).fit(X + 1e4, y).score(X + 1e4, y) > 0.97
    dhsk.SVC(gamma=0.1).fit(X * 1e8, y)
    assert not [one for one in recwarn if "from 0" in str(one.message)]


@pytest.mark.parametrize(
    "estimator",
    [
        dhsk.SVR(),
        dhsk.SVR(kernel=rbf_kernel),
        dhsk.HeatKernelRidge(),
        dhsk.HeatGaussianProcessRegressor(),
        dhsk.NystromRidge(),
    ],
    ids=["SVR", "SVR, a function", "ridge", "process", "low rank"],
)
@pytest.mark.parametrize("gaps", [[3], range(40)])
def test_a_target_that_is_none_is_a_gap(estimator: Any, gaps: Any) -> None:
    """As NaN is; scikit-learn itself looks at the targets before they are numbers."""
    y = np.arange(40.0).astype(object)
    y[list(gaps)] = None
    with pytest.raises(ValueError, match="Input y contains NaN"):
        estimator.fit(np.random.default_rng(0).random((40, 4)), y)


@pytest.mark.parametrize("kind", [dhsk.SVC, dhsk.SVR, dhsk.OneClassSVM, dhsk.HeatSVC])
def test_strings_of_numbers_are_numbers(kind: Any, wine: Any) -> None:
    """As `csv.reader` gives them in lists, or as an array of strings; words are none."""
    X, y = np.abs(wine[0]), wine[1]
    wanted = kind().fit(X, y).predict(X)
    for strings in (X.astype(str), X.astype(str).tolist(), X.astype("S32")):
        np.testing.assert_array_equal(kind().fit(strings, y).predict(strings), wanted)
    words = X.astype(str)
    words[7, 3] = "red"
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        kind().fit(words, y)


def test_values_too_large_for_a_solver_are_refused(wine: Any) -> None:
    """Steps are made in float32, and products of 1e200 are beyond it: the error says to scale."""
    X, y = wine
    for kernel in ("linear", "rbf"):
        with pytest.raises(InputError, match="scale the samples"):
            dhsk.SVC(kernel=kernel).fit(X * (1e200 if kernel == "rbf" else 1e100), y)
    assert dhsk.SVC(kernel="linear").fit(X * 1e15, y).score(X * 1e15, y) > 0.95


@pytest.mark.parametrize("estimator", [dhsk.HeatSVC, dhsk.HeatKernelPCA])
def test_names_of_kernels(wine: Any, estimator: Any) -> None:
    """The error says the own name of a kernel that has another in scikit-learn."""
    for theirs, ours in (("rbf", "gaussian"), ("poly", "polynomial")):
        with pytest.raises(InputError, match=f"scikit-learn's '{theirs}' is '{ours}' here"):
            estimator(kernel=theirs).fit(*wine)
    with pytest.raises(InputError, match=r"it is 'flat'$"):
        estimator(kernel="flat").fit(*wine)


def test_arguments_of_cross_validate(wine: Any) -> None:
    """Each has a sentence; no scorer is scikit-learn's default, accuracy."""
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"kernels": ["rbf"]}, "'rbf' is 'gaussian' here"),
        ({"kernel": "gaussian"}, r'has no kernel: give a list, kernels=\["gaussian"\]'),
        ({"gamma": 0.1}, r"has no gamma: give kernels=\[dhsk.GaussianKernel.at_gamma"),
        ({"n_jobs": 2}, "has no n_jobs: all cores are used"),
        ({"kernels": ["heat"]}, r"of cross_validate kernels=\['gaussian'\]"),
    )
    for options, match in wrong:
        with pytest.raises(InputError, match=match):
            dhsk.cross_validate(*wine, **options)
    one: dict[str, Any] = {"kernels": ["gaussian"], "C": [1.0], "cv": 3}
    named = dhsk.cross_validate(*wine, **one, scoring="accuracy")
    assert dhsk.cross_validate(*wine, **one, scoring=None).best_score_ == named.best_score_


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"cache_size": 0}, "cache_size must be above 0"),
        ({"random_state": "a"}, "random_state='a' cannot be used"),
    ],
)
def test_parameters_that_have_no_effect_are_checked(wine: Any, parameters: Any, match: str) -> None:
    """As scikit-learn does."""
    with pytest.raises(InputError, match=match):
        dhsk.SVC(**parameters).fit(np.abs(wine[0]), wine[1])
