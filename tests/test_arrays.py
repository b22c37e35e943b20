"""Indices as they travel."""

import numpy as np
import pytest

from dhsk.arrays import Marked, as_type


@pytest.mark.parametrize("first", [0, 5, 10**9])
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
def test_marked_indices_come_back(first: int, share: float) -> None:
    """All of them, in their type, wherever they begin and however many bits are left over."""
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 9, 1000):
        indices = first + np.flatnonzero(rng.random(n) <= share)
        found = Marked.of(indices)
        np.testing.assert_array_equal(found.indices, indices)
        assert found.indices.dtype == indices.dtype
        assert found.bits.nbytes <= n // 8 + 1


def test_no_indices_come_back() -> None:
    """Of a part that has none of a span's samples."""
    found = Marked.of(np.empty(0, np.intp)).indices
    assert found.shape == (0,)
    assert found.dtype == np.intp


def test_one_value_for_all_stays_one() -> None:
    """In another type too; other vectors are converted."""
    one = as_type(np.broadcast_to(np.float64(0.5), 10**9), "float32")
    assert (one.dtype, one.shape, one.strides, one[-1]) == (np.float32, (10**9,), (0,), 0.5)
    other = as_type(np.arange(3.0), "float32")
    assert (other.dtype, other.tolist()) == (np.float32, [0, 1, 2])
