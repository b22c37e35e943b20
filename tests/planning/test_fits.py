"""Rough seconds of fits, by arithmetic."""

import pytest

from dhsk.planning.fits import (
    COLUMN_SECONDS,
    COLUMNS_OF_SUPPORT,
    COMBINED_SECONDS,
    FEW_SUPPORT,
    FIT_SECONDS,
    PASSES,
    PASSES_OF_ONE,
    ROUNDS,
    SET_SECONDS,
    SQUARES,
    VALUE_SECONDS,
    Speeds,
    few_support_seconds,
    low_rank_seconds,
)

SPEEDS = Speeds(entry=1e-8, product=1e-11, sample=1e-6)
OF_COLUMN = COLUMNS_OF_SUPPORT * (SPEEDS.entry + COMBINED_SECONDS)


def test_few_support_vectors_take_their_columns() -> None:
    """Of each pair of classes; of each class against the rest one column serves all."""
    solved = SET_SECONDS * FEW_SUPPORT**2
    two = few_support_seconds([500_000, 500_000], 2, SPEEDS, "ovo")
    expected = 1.0 + (FIT_SECONDS + 1e6 * FEW_SUPPORT * OF_COLUMN) / 2 + solved
    assert two == pytest.approx(expected)
    three = few_support_seconds([10_000] * 3, 1, SPEEDS, "ovo")
    expected = 0.03 + 3 * (FIT_SECONDS + 20_000 * FEW_SUPPORT * OF_COLUMN + solved)
    assert three == pytest.approx(expected)
    rest = few_support_seconds([10_000] * 3, 1, SPEEDS, "ovr", 100)
    expected = 0.03 + FIT_SECONDS + 30_000 * 100 * OF_COLUMN + SET_SECONDS * 100**2
    assert rest == pytest.approx(expected)


def test_small_problems_have_no_more_columns_than_samples() -> None:
    """A problem of 500 has 500."""
    found = few_support_seconds([250, 250], 1, Speeds(0.0, 0.0, 0.0), "ovo")
    columns = COLUMNS_OF_SUPPORT * 500**2 * COMBINED_SECONDS
    assert found == pytest.approx(FIT_SECONDS + columns + SET_SECONDS * 500**2)


def test_features_in_memory_are_computed_once() -> None:
    """A million samples, rank 1,000, five columns: 10^9 values on two cores."""
    found = low_rank_seconds(10**6, 1000, 5, 1, 2, SPEEDS)
    made = 1.0 + 1e9 * 1e-8 / 2 + SQUARES * 1e12 * 1e-11 / 2
    passes = PASSES * 1e9 * (VALUE_SECONDS + 5 * COLUMN_SECONDS) / 2
    assert found == pytest.approx(made + passes)


def test_other_features_are_computed_in_every_pass() -> None:
    """By all cores, while one thread reads samples or all do: the slower one counts."""
    made = SQUARES * 1e12 * 1e-11 / 2
    values, solved = 1e9 * 1e-8, 1e9 * 5 * COLUMN_SECONDS
    shared = low_rank_seconds(10**6, 1000, 5, 1, 2, SPEEDS, readers=2)
    assert shared == pytest.approx(
        made + ROUNDS * (1 + values) / 2 + PASSES * (1 + values + solved) / 2
    )
    slow = Speeds(1e-8, 1e-11, sample=1e-4)
    alone = low_rank_seconds(10**6, 1000, 5, 1, 2, slow, readers=1)
    assert alone == pytest.approx(made + (ROUNDS + PASSES) * 100)


def test_one_classifier_takes_fewer_passes() -> None:
    """Than several, of which the slowest counts."""
    free = Speeds(0.0, 0.0, 0.0)
    one, two = (low_rank_seconds(1000, 10, columns, 1, 1, free) for columns in (1, 2))
    assert one == pytest.approx(PASSES_OF_ONE * 1e4 * (VALUE_SECONDS + COLUMN_SECONDS))
    assert two == pytest.approx(PASSES * 1e4 * (VALUE_SECONDS + 2 * COLUMN_SECONDS))
