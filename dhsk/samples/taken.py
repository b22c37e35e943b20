"""Some samples of others, in memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dhsk.arrays import Indices, Rows, numbered, stacked
from dhsk.samples.base import Samples
from dhsk.samples.readers import open_samples
from dhsk.samples.refusals import naming
from dhsk.samples.scan import rows_within

_BLOCK_BYTES = 16 * 2**20


def taken(samples: Samples, members: Indices, check: Callable[[Rows, int], object]) -> Samples:
    """Some samples, ascending, in memory, from one pass over all.

    `check` is called with each block and the number of its first row, and raises InputError if a
    row of all cannot be used.
    """
    parts: list[Any] = []
    for first, block in numbered(samples.blocks(rows_within(samples, _BLOCK_BYTES))):
        with naming(samples.source, samples.feature_names):
            check(block, first)
        own = members[slice(*np.searchsorted(members, [first, first + block.shape[0]]))]
        parts.append(block[own - first])
    return replace(
        open_samples(stacked(parts)),
        source=f"{len(members):,} of the samples of {samples.source}",
        feature_names=samples.feature_names,
        vectorizer=samples.vectorizer,
    )
