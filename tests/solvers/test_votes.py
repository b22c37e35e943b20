"""Votes and one-vs-rest scores against scikit-learn's own, on real fits."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from dhsk.solvers.votes import one_vs_rest, vote


def fitted(classes: int) -> tuple[SVC, Any]:
    """A poor one-vs-one model of some digits, many votes of which tie, and kernel rows of more."""
    X, y = load_digits(return_X_y=True)
    K = X @ X.T / 4096
    train = np.concatenate([np.flatnonzero(y == c)[:5] for c in range(classes)])
    return SVC(kernel="precomputed").fit(K[np.ix_(train, train)], y[train]), K[:, train]


def pairwise_decisions(model: SVC, K: Any) -> Any:
    """Decisions with the sign of multi-class LIBSVM: scikit-learn turns that of two classes."""
    model.set_params(decision_function_shape="ovo")
    found = model.decision_function(K)
    model.set_params(decision_function_shape="ovr")
    return -found[:, None] if len(model.classes_) == 2 else found


@pytest.mark.parametrize("classes", [2, 3, 4, 10])
def test_votes_are_those_of_libsvm(classes: int) -> None:
    """Every sample gets the class that scikit-learn predicts."""
    model, K = fitted(classes)
    found = vote(pairwise_decisions(model, K), classes)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(model.classes_[found], model.predict(K))


@pytest.mark.parametrize("classes", [2, 3, 4, 10])
def test_scores_are_those_of_sklearn(classes: int) -> None:
    """One-vs-rest scores are scikit-learn's to the last bit, in its shape and with its sign."""
    model, K = fitted(classes)
    found = one_vs_rest(pairwise_decisions(model, K), classes)
    np.testing.assert_array_equal(found, model.decision_function(K), strict=True)


def test_votes_of_the_fits_tie() -> None:
    """The ten-class fit tells the first of tied classes from the most confident one."""
    model, K = fitted(10)
    decisions = pairwise_decisions(model, K)
    differ = vote(decisions, 10) != one_vs_rest(decisions, 10).argmax(axis=1)
    assert np.count_nonzero(differ) > 10


@pytest.mark.parametrize("classes", [2, 3])
def test_decisions_of_zero_are_decided_as_by_sklearn(classes: int) -> None:
    """A decision of exactly 0 votes for the second class, but scores for the first."""
    # Orthogonal samples: a row that is orthogonal to all of them is undecided in every pair.
    model = SVC(kernel="precomputed").fit(np.eye(classes), np.arange(classes))
    K = np.zeros((1, classes))
    decisions = pairwise_decisions(model, K)
    np.testing.assert_array_equal(decisions, 0.0)
    np.testing.assert_array_equal(vote(decisions, classes), model.predict(K))
    np.testing.assert_array_equal(one_vs_rest(decisions, classes), model.decision_function(K))


@given(st.data(), st.integers(2, 7))
def test_vote_counts_pair_by_pair(data: st.DataObject, classes: int) -> None:
    """Ties, zeros and infinities included, the first class with the most won pairs is chosen."""
    pairs = list(combinations(range(classes), 2))
    value = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 1e-300, 1.0, np.inf])
    row = data.draw(st.lists(value, min_size=len(pairs), max_size=len(pairs)))
    winners = [a if d > 0 else b for (a, b), d in zip(pairs, row, strict=True)]
    expected = max(range(classes), key=winners.count)
    assert vote(np.array([row]), classes) == expected


def test_wrong_number_of_pairs_is_refused() -> None:
    """Decisions of three classes are not taken for those of four."""
    with pytest.raises(ValueError, match=r"^3 decision values .* 4 classes"):
        vote(np.ones((2, 3)), 4)
    with pytest.raises(ValueError, match=r"^6 decision values .* 3 classes"):
        one_vs_rest(np.ones((2, 6)), 3)
