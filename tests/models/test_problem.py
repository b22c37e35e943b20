"""Labels and weights as fits take them."""

from typing import Any

import numpy as np
import pytest

from dhsk.estimators.problem import make_problem
from dhsk.execution.checkpoint import digest_of
from dhsk.models.problem import Problem, coded, sample_factors


@pytest.mark.parametrize("part", [3, 1 << 20])
@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array([7, -2, 7, 5, 5, 5, -2]), np.int8),
        (np.array(["b", "", "abc", "b", "abc", "c", ""]), np.int8),
        (np.array(["b", "a", "abc", "b"], object), np.int8),
        (np.array([True, False, True, True]), np.int8),
        (np.arange(128)[::-1], np.int8),
        (np.arange(129)[::-1], np.int16),
        (np.arange(40_000) % 33_000, np.int32),
    ],
)
def test_codes_of_labels(labels: Any, dtype: Any, part: int, monkeypatch: Any) -> None:
    """Those of `np.unique`, in the smallest type with room for -1, however they are cut."""
    monkeypatch.setattr("dhsk.models.problem.LABELS", part)
    classes, codes = coded(labels)
    expected = np.unique(labels, return_inverse=True)
    assert classes.tolist() == expected[0].tolist()
    assert classes.dtype == expected[0].dtype
    assert codes.dtype == dtype
    assert np.array_equal(codes, expected[1])


def test_weights_of_one_take_no_memory() -> None:
    """One value stands for all, and names entries as it does; fits of pairs get their own."""
    one = sample_factors(None, 10**9)
    assert (one.shape, one.strides, one[-1]) == ((10**9,), (0,), 1.0)
    few = sample_factors(None, 5)
    problem = Problem(np.arange(2), np.zeros(5, np.int8), few, 1.0, 1e-3)
    assert problem.fold_weights.tolist() == [[1.0] * 5]
    assert problem.fold_weights.flags.writeable
    names = {digest_of(w) for w in (few, sample_factors(None, 6), np.broadcast_to(2.0, 5))}
    names |= {digest_of(np.array([1.0, last])) for last in (1.0, 2.0)}
    assert len(names) == 5
    assert digest_of(few) in names


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 0.0, 2.0, 0.0]])
def test_a_problem_takes_a_byte_a_sample(weights: Any) -> None:
    """Classes without weight are left out; weights are the caller's, unless classes have some."""
    y, given = np.array([3, 1, 2, 1, 1]), sample_factors(weights, 5)
    problem = make_problem(y, given, None, C=1.0, tol=1e-3)
    codes = [2, 0, 1, 0, 0] if weights is None else [1, 0, 0, 0, 0]
    assert problem.codes.tolist() == codes
    assert problem.codes.dtype == np.int8
    assert problem.weights is given
    weighed = make_problem(y, given, {1: 5.0}, C=1.0, tol=1e-3)
    assert weighed.weights.tolist() == (given * [1, 5, 1, 5, 5]).tolist()
