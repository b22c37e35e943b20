"""What a grid is made of before anything runs: weights of folds, values of C, kernels."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

import dhsk
from dhsk.kernels import TIME_SCALES
from dhsk.validation.folds import divide
from dhsk.validation.grid import candidates, make_grid, positive

Y = np.array(list("abcab" * 12 + "aaa"))
"""27 a, 24 b and 12 c."""


def grid(y: Any = Y, cv: Any = 3, groups: Any = None, **changes: Any) -> Any:
    """A grid on these labels."""
    return make_grid(divide(len(y), y, cv, groups), **{"C": 1.0} | changes)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 0.5, "b": 3.0, "c": 10.0}])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_are_those_of_scikit_learn(rng: Any, weighted: bool, class_weight: Any) -> None:
    """Of the training part of each fold, and of all samples; those held out weigh nothing."""
    own = rng.uniform(0.1, 3, len(Y)) if weighted else np.ones(len(Y))
    found = grid(class_weight=class_weight, sample_weight=own if weighted else None)
    for weights, (train, test) in zip(found.weights, found.folds, strict=True):
        expected = own[train] * compute_sample_weight(class_weight, Y[train])
        np.testing.assert_allclose(weights[train], expected, rtol=1e-15)
        assert not weights[test].any()
    expected = own * compute_sample_weight(class_weight, Y)
    np.testing.assert_allclose(found.all_weights, expected, rtol=1e-15)


def test_samples_of_weight_zero_are_absent_from_balanced_weights() -> None:
    """The classes are balanced as if these were not there."""
    own = (np.arange(len(Y)) % 4 > 0).astype(float)
    found = grid(class_weight="balanced", sample_weight=own)
    used = own > 0
    expected = compute_sample_weight("balanced", Y[used])
    np.testing.assert_allclose(found.all_weights[used], expected, rtol=1e-15)
    assert not found.all_weights[~used].any()


def test_a_sample_that_a_fold_names_twice_counts_twice() -> None:
    """As in a bootstrap."""
    train, test = np.array([0, 0, 0, 1, 5, 6, 6]), np.array([2, 3])
    found = grid(cv=[(train, test)], scoring="accuracy")
    np.testing.assert_array_equal(found.weights[0], np.bincount(train, minlength=len(Y)))


def test_folds_of_a_number_are_stratified_and_shuffled_by_the_seed() -> None:
    """Those of scikit-learn's splitter; another seed gives others."""
    peer = list(StratifiedKFold(3, shuffle=True, random_state=7).split(Y, Y))
    for (train, test), expected in zip(
        grid(cv=dhsk.StratifiedFolds(3, random_state=7)).folds, peer, strict=True
    ):
        np.testing.assert_array_equal(train, expected[0])
        np.testing.assert_array_equal(test, expected[1])
    assert not np.array_equal(grid().folds[0][1], peer[0][1])


def test_classes_are_numbered_and_counted() -> None:
    """In the order of their names, those that are left out are none of them."""
    found = grid()
    assert found.classes.tolist() == ["a", "b", "c"]
    assert found.classes[found.y].tolist() == Y.tolist()
    assert found.counts.tolist() == [27, 24, 12]
    assert found.dropped == ()
    found = grid(cv=dhsk.StratifiedFolds(3, min_class=13))
    assert found.classes.tolist() == ["a", "b"]
    assert found.counts.tolist() == [27, 24]
    assert found.dropped == (("c", 12),)
    assert (found.y == -1).tolist() == (Y == "c").tolist()
    for train, test in found.folds:
        assert not np.isin(np.concatenate([train, test]), np.flatnonzero(Y == "c")).any()


def test_classes_that_a_fold_is_trained_without() -> None:
    """They are known by number, and so are those that it does not test."""
    groups = np.where(Y == "c", 2, np.arange(len(Y)) % 2)
    found = grid(cv=LeaveOneGroupOut(), groups=groups)
    assert [found.present(fold).tolist() for fold in range(3)] == [[0, 1, 2], [0, 1, 2], [0, 1]]
    assert found.untrained == [[], [], [2]]
    assert found.untested == [[2], [2], [0, 1]]
    assert not any(grid().untrained)
    assert not any(grid().untested)


def test_values_of_C_ascend_each_once() -> None:
    """There is one problem for each of them and each fold."""
    found = grid(C=[10, 0.5, 10.0, 2], cv=4)
    assert found.C == [0.5, 2.0, 10.0]
    assert found.columns == 12


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -2.0], "C must be positive and finite, got -2.0"),
        (np.inf, "C must be positive and finite, got inf"),
        ([np.nan], "C must be positive and finite, got nan"),
        ([], "C must be positive and finite, got none"),
        ("one", "C must be positive numbers, got 'one'"),
        (np.ones((2, 2)), r"C must be a number or several, got an array of \(2, 2\)"),
    ],
)
def test_numbers_that_are_not_positive_are_refused(values: Any, message: str) -> None:
    """With their name and the first of them."""
    with pytest.raises(dhsk.InputError, match=message):
        positive("C", values)
    with pytest.raises(dhsk.InputError, match=message):
        grid(C=values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cv": 1}, "cv must be at least 2 folds, got 1"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"cv": dhsk.StratifiedFolds(3, min_class=25)}, "1 of 3 classes has 25 samples or more"),
        ({"groups": "who"}, r"for 63 samples: one for each: give the column itself, X\['who'\]"),
        ({"groups": [1, 2]}, r"groups has the shape \(2,\) for 63 samples"),
        ({"groups": [None, *range(62)]}, r"groups: row 0 \(counted from 0\) has no group"),
        ({"groups": ["a"] * 62 + [np.nan]}, "groups: row 62 .* has no group"),
        ({"groups": np.arange(63) // 32}, r"of 2 groups, .* give --folds 2 \(cv=2\)"),
        ({"sample_weight": np.ones((63, 1))}, r"sample_weight has shape \(63, 1\)"),
        ({"sample_weight": np.r_[np.inf, np.ones(62)]}, "it is inf for sample 0"),
        ({"cv": [([0, 1], [99])]}, "fold 0 does not name samples 0 to 62"),
        ({"cv": [([0, 1], [1])]}, "fold 0 trains and tests on 1 of the same samples, first 1"),
        ({"cv": []}, "no folds"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused(changes: Any, message: str) -> None:
    """Before any sample is read: no grid knows the samples."""
    with pytest.raises(dhsk.InputError, match=message):
        grid(**changes)


# Kernels


SAMPLES = dhsk.open_samples(np.ones((20, 12)))


@pytest.mark.parametrize(
    ("time_scale", "expected"), [(None, TIME_SCALES), (0.5, (0.5,)), ([2, 0.5, 2], (2, 0.5))]
)
def test_times_are_those_of_heat_kernels(time_scale: Any, expected: Any) -> None:
    """Each once, in the order given; without any those around the sweet spot."""
    found = candidates(SAMPLES, time_scale, None)
    assert found == [dhsk.HeatKernel.at_scale(12, scale) for scale in expected]


def test_named_kernels_are_made_at_each_time() -> None:
    """Those that have one; the others once, and kernels that are given stay as they are."""
    own = dhsk.GaussianKernel(3.0)
    found = candidates(SAMPLES, [0.5, 1.0], ["parametrix", "linear", own, own])
    heats = [dhsk.HeatKernel.at_scale(12, scale) for scale in (0.5, 1.0)]
    others = [dhsk.ParametrixKernel.at_scale(12, scale) for scale in (0.5, 1.0)]
    assert found == [*heats, *others, dhsk.LinearKernel(), own]
    assert candidates(SAMPLES, None, [own]) == [own]


def test_a_matrix_is_tried_with_its_own_kernel(counts: Any) -> None:
    """Unless it holds cosines, of which any heat kernel can be made."""
    X = counts(10, 12)
    gaussian = dhsk.GaussianKernel(3.0)
    assert candidates(dhsk.compute_gram(X, gaussian), None, None) == [gaussian]
    cosines = dhsk.compute_gram(X, dhsk.CosineKernel())
    heats = [dhsk.HeatKernel.at_scale(12, scale) for scale in TIME_SCALES]
    assert candidates(cosines, None, None) == heats
    assert candidates(cosines, 1.0, None) == [dhsk.HeatKernel.at_scale(12, 1.0)]
