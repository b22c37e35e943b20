"""Corrected differences of scores on the same folds: what counts as evidence, and what not."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dhsk.errors import InputError
from dhsk.results.paired import paired_difference


def of_folds(apart: Any, k: int = 5, n: int = 890) -> Any:
    """Compare classifiers that differ so by samples, on folds of `n` samples, repeat by repeat."""
    sizes = np.tile([len(part) for part in np.array_split(np.arange(n), k)], len(apart) // k)
    right = np.round(0.9 * sizes)
    n_test = n / k
    scores = (right + apart) / sizes, right / sizes
    return paired_difference(*scores, n_train=n - n_test, n_test=n_test)


def test_the_error_is_that_of_nadeau_and_bengio() -> None:
    """Worked out in fractions: two repeats of three folds, a third held out."""
    one = [Fraction(n, 10) for n in (9, 8, 9, 7, 9, 9)]
    other = [Fraction(n, 10) for n in (8, 8, 9, 5, 8, 9)]
    apart = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(apart, Fraction(0)) / 6
    variance = sum(((d - mean) ** 2 for d in apart), Fraction(0)) / 5
    expected = variance * (Fraction(1, 6) + Fraction(1, 2))
    found = paired_difference(
        [float(x) for x in one], [float(x) for x in other], n_train=20, n_test=10
    )
    # Differences of numbers below 1 to one digit: a few roundings of 1.1e-16 over 0.07.
    assert found.difference == pytest.approx(float(mean), rel=1e-14)
    assert found.standard_error**2 == pytest.approx(float(expected), rel=1e-13)
    assert found.words == "0.0667 ± 0.0667"


@pytest.mark.parametrize("k", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("repeats", [1, 2, 5, 100])
def test_one_sample_is_no_evidence(k: int, repeats: int) -> None:
    """In whichever fold of each repeat it is held out, and whatever the sizes of the folds."""
    rng = np.random.default_rng(k)
    for n in (100, 101, 890, 1797):
        apart = np.zeros((repeats, k))
        apart[np.arange(repeats), rng.integers(k, size=repeats)] = 1
        assert of_folds(apart.ravel(), k, n).within


@pytest.mark.parametrize("amount", [1, 2, 3, 7, 40])
def test_one_fold_is_no_evidence(amount: int) -> None:
    """However much it differs, in whichever fold: the mean is two thirds of its error."""
    for fold in range(5):
        found = of_folds(amount * np.eye(5)[fold])
        assert found.within
        assert found.difference / found.standard_error == pytest.approx(2 / 3, rel=1e-9)


def test_no_last_bit_decides() -> None:
    """At 2, 1, 0, 0, 0 samples the mean is its error by algebra: within, for any folds and order.

    Among so many sizes the rounded difference is above the rounded error in some.
    """
    rng, above = np.random.default_rng(0), 0
    for n in range(100, 2000, 5):
        found = of_folds(rng.permutation([2.0, 1, 0, 0, 0]), n=n)
        above += found.difference > found.standard_error
        assert found.within
    assert above > 0


def test_equal_scores_summed_in_another_order_are_equal() -> None:
    """Rounding has no sign that a decision could hang on, also without any variance."""
    scores = np.array([0.9, 0.8, 0.7])
    found = paired_difference(scores + 1e-16 * np.array([4, 2, 1]), scores, n_train=2, n_test=1)
    assert (found.difference, found.standard_error) == (0.0, 0.0)
    assert found.within


def test_a_difference_in_every_fold_is_evidence() -> None:
    """Four of five samples each: a person would believe it too."""
    assert not of_folds([4, 5, 3, 4, 4]).within
    assert of_folds([-4, -5, -3, -4, -4]).within


def test_a_single_fold_has_no_error() -> None:
    """Only equals are as good; there is nothing else to go by."""
    assert not paired_difference([0.9], [0.8], n_train=8, n_test=2).within
    assert paired_difference([0.9], [0.9], n_train=8, n_test=2).within


def test_scores_of_other_folds_are_refused() -> None:
    """Both shapes are named."""
    with pytest.raises(InputError, match=r"same folds are needed, got shapes \(3,\) and \(2,\)"):
        paired_difference([1, 2, 3], [1, 2], n_train=2, n_test=1)
