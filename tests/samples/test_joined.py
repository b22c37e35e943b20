"""Two sets of samples as one."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dhsk.samples import open_samples
from dhsk.samples.joined import JoinedSamples

SIZES = (7, 12)


@pytest.mark.parametrize("rows", [1, 3, 7, 8, 19, 40])
@pytest.mark.parametrize("sparse", [(False, False), (True, True), (True, False), (False, True)])
def test_blocks_are_full_across_the_border(counts: Any, rows: int, sparse: Any) -> None:
    """All but the last have the number of rows that was asked for, whatever the kinds."""
    parts = [counts(size, 5) for size in SIZES]
    given = [csr_array(X) if one else X for X, one in zip(parts, sparse, strict=True)]
    both = JoinedSamples.of(open_samples(given[0]), open_samples(given[1]))
    found: list[Any] = list(both.blocks(rows))
    assert both.is_sparse == any(sparse)
    assert all(isinstance(block, csr_array) == any(sparse) for block in found)
    assert [block.shape[0] for block in found[:-1]] == [rows] * (len(found) - 1)
    whole = np.concatenate([b.toarray() if any(sparse) else b for b in found])
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    if all(sparse):
        expected = csr_array(np.concatenate(parts))
        np.testing.assert_array_equal(both.indptr, expected.indptr)
        assert both.nnz == expected.nnz
