"""Rough seconds of exact fits, by arithmetic."""

import pytest

from dhsk.planning.fits import BLOCK_SECONDS, FEW_SUPPORT, FIT_SECONDS, few_support_seconds


def test_few_support_vectors_take_their_columns() -> None:
    """Of each pair of classes; of each class against the rest one column serves all."""
    entry = 1e-8
    of_column = entry + BLOCK_SECONDS
    two = few_support_seconds([500_000, 500_000], 2, entry, "ovo")
    assert two == pytest.approx((FIT_SECONDS + 1e6 * FEW_SUPPORT * of_column) / 2)
    three = few_support_seconds([10_000] * 3, 1, entry, "ovo")
    assert three == pytest.approx(3 * (FIT_SECONDS + 20_000 * FEW_SUPPORT * of_column))
    rest = few_support_seconds([10_000] * 3, 1, entry, "ovr")
    assert rest == pytest.approx(FIT_SECONDS + 30_000 * FEW_SUPPORT * of_column)


def test_small_problems_have_no_more_columns_than_samples() -> None:
    """A problem of 500 has 500."""
    found = few_support_seconds([250, 250], 1, 0.0, "ovo")
    assert found == pytest.approx(FIT_SECONDS + 500**2 * BLOCK_SECONDS)
