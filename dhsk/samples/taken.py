"""Some samples of others, in memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError
from dhsk.samples.base import Samples
from dhsk.samples.readers import open_samples
from dhsk.samples.scan import rows_within

_BLOCK_BYTES = 16 * 2**20


def taken(samples: Samples, members: Indices, check: Callable[[Rows, int], object]) -> Samples:
    """Some samples, ascending, in memory, from one pass over all.

    `check` is called with each block and the number of its first row, and raises InputError if a
    row of all cannot be used.
    """
    parts: list[Any] = []
    first = 0
    for block in samples.blocks(rows_within(samples, _BLOCK_BYTES)):
        try:
            check(block, first)
        except InputError as error:
            raise InputError(f"{samples.source}: {error}") from None
        last = first + block.shape[0]
        own = members[slice(*np.searchsorted(members, [first, last]))]
        parts.append(block[own - first])
        first = last
    rows = csr_array(vstack(parts, format="csr")) if samples.is_sparse else np.concatenate(parts)
    return replace(
        open_samples(rows),
        source=f"{len(members):,} of the samples of {samples.source}",
        feature_names=samples.feature_names,
        vectorizer=samples.vectorizer,
    )
