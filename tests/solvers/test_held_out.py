"""Held-out decisions of all pairs at once, against each pair by itself."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from dhsk.solvers.dual import Fit
from dhsk.solvers.held_out import SupportVectors, held_out_decisions
from dhsk.solvers.problems import make_pairs, members_of_classes
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource
from tests.optimum import solve_block


class Computed(ArraySource):
    """A matrix whose entries are computed when they are read, and then only those of columns."""

    computes = True

    def panels(self, rows: Any, groups: Any) -> Any:  # noqa: ARG002
        """All tiles would be computed."""
        raise AssertionError("panels were asked for")


@pytest.mark.parametrize("source", [ArraySource, Computed])
@pytest.mark.parametrize("classes", [2, 5])
def test_decisions_are_those_of_each_pair(classes: int, source: type[ArraySource]) -> None:
    """By fold, C and pair; a class that a fold lacks has no support vectors."""
    rng = np.random.default_rng(classes)
    codes = rng.integers(0, classes, 90)
    X = rng.normal(size=(90, 3)) + codes[:, None]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    weights = np.stack([np.arange(90) % 3 > 0, (np.arange(90) % 3 > 1) & (codes > 0)]).astype(float)
    pairs = make_pairs(codes, weights, [0.5, 20.0])
    fits = [
        solve_block(np.pad(own, ((0, 0), (0, padded(len(own)) - len(own)))), pair.dual, 1e-6)
        for pair in pairs
        for own in [K[np.ix_(pair.members, pair.members)]]
    ]
    tests = [rng.permutation(np.flatnonzero(own == 0)) for own in weights]
    rows, folds = np.concatenate(tests), np.repeat([0, 1], [len(test) for test in tests])
    found = SupportVectors.of(fits, members_of_classes(codes), 2)
    decisions = held_out_decisions(source(K), rows, folds, found)
    assert decisions.shape == (2, len(rows), len(pairs))
    for number, pair in enumerate(pairs):
        for fold, c in product((0, 1), (0, 1)):
            fit = fits[number][2 * fold + c]
            support = pair.members[fit.support]
            expected = K[np.ix_(tests[fold], support)] @ fit.coef + fit.intercept
            found_here = decisions[c, folds == fold, number]
            np.testing.assert_allclose(found_here, expected, atol=1e-12)


def test_fits_without_support_vectors_decide_by_their_intercept() -> None:
    """No column is computed for them."""
    one = Fit(
        support=np.empty(0, np.int64), coef=np.empty(0), intercept=0.5, objective=0.0, gap=0.0,
        violation=0.0, norm2=0.0, steps=0, seconds=0.0, converged=True,
    )  # fmt: skip
    classes = [np.array([0, 2]), np.array([1, 3])]
    found = SupportVectors.of([[one]], classes, 1)
    rows, folds = np.array([3, 0]), np.zeros(2, np.intp)
    decisions = held_out_decisions(Computed(np.eye(4)), rows, folds, found)
    np.testing.assert_array_equal(decisions, [[[0.5], [0.5]]])
