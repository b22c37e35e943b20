"""Products of equal rows are exact, of however many."""

from typing import Any

import numpy as np
import pytest

from dhsk.kernels import duplicates
from dhsk.kernels.duplicates import set_products_of_equal_rows


@pytest.mark.parametrize("pairs", [7, 1 << 16])
@pytest.mark.parametrize("square", [False, True])
def test_only_products_of_equal_rows_are_set(
    rng: Any, monkeypatch: pytest.MonkeyPatch, pairs: int, *, square: bool
) -> None:
    """Those of groups of several rows and of several columns; an only row's diagonal is left."""
    monkeypatch.setattr(duplicates, "_PAIRS", pairs)
    rows = rng.random((40, 6))[rng.integers(0, 40, 60)]
    columns = rows if square else np.concatenate([rows[10:30], rng.random((5, 6)), rows[:5]])
    norms2 = (rows**2).sum(axis=1)
    product = rows @ columns.T * (1 + 1e-9)
    expected = product.copy()
    equal = (rows[:, None] == columns[None]).all(axis=2)
    if square:
        equal &= (equal.sum(axis=1) > 1)[:, None]
    expected[equal] = np.broadcast_to(norms2[:, None], equal.shape)[equal]
    set_products_of_equal_rows(product, rows, columns, norms2)
    assert 0 < equal.sum() < equal.size
    np.testing.assert_array_equal(product, expected)


def test_rows_of_one_hash_that_differ_are_left(monkeypatch: pytest.MonkeyPatch, rng: Any) -> None:
    """A product far from the norm is no product of equal rows."""
    rows = rng.random((8, 4))
    rows[3] = rows[5]
    monkeypatch.setattr(duplicates, "row_hashes", lambda found: np.zeros(len(found), np.uint64))
    product, norms2 = rows @ rows.T, (rows**2).sum(axis=1)
    near = np.abs(product - norms2[:, None]) < 1e-2 * norms2[:, None]
    expected = np.where(near, norms2[:, None], product)
    set_products_of_equal_rows(product, rows, rows, norms2)
    assert near[3, 5]
    assert near.sum() < near.size / 2
    np.testing.assert_array_equal(product, expected)
