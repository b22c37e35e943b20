"""Hashes of rows: of the bits, whatever the layout, and of all of them."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dhsk.kernels.duplicates import row_hashes


@pytest.fixture
def X(rng: Any) -> Any:
    """Counts, many of them zero."""
    return rng.poisson(0.7, size=(60, 25)).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_layout_and_sign_of_zero_do_not_matter(X: Any, dtype: str) -> None:
    """Dense, CSR with any type of indices, and -0.0 for 0.0."""
    X = X.astype(dtype)
    found = row_hashes(X)
    for index in (np.int32, np.int64):
        A = csr_array(X)
        A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
        assert np.array_equal(row_hashes(A), found)
    assert np.array_equal(row_hashes(np.where(X == 0, np.array(-0.0, dtype), X)), found)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_lowest_bit_of_any_entry_changes_them(X: Any, dtype: str) -> None:
    """Of zeros, which become the least numbers there are, as of others."""
    X = X.astype(dtype)
    for column in range(X.shape[1]):
        other = X.copy()
        other[:, column] = np.nextafter(X[:, column], np.array(99, dtype))
        assert (row_hashes(other) != row_hashes(X)).all()


@pytest.mark.slow
def test_small_counts_that_change_places_change_them(rng: Any) -> None:
    """They differ in a few upper bits, and 200,000 rows of them in all but equal ones."""
    X = rng.integers(0, 4, size=(200_000, 12)).astype(np.float64)
    distinct = len(np.unique(X, axis=0))
    assert len(np.unique(row_hashes(X))) == distinct
