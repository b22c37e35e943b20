"""Some samples of others, in memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dhsk.arrays import Indices, Rows, stacked
from dhsk.samples.base import Samples
from dhsk.samples.readers import open_samples
from dhsk.samples.refusals import naming
from dhsk.samples.scan import in_blocks


def rows_taken(samples: Samples, members: Indices) -> Iterator[tuple[int, Rows, Indices]]:
    """Blocks of samples, the index of their first row, and where some, ascending, are in them."""
    for first, block in in_blocks(samples):
        inside = slice(*np.searchsorted(members, [first, first + block.shape[0]]))
        yield first, block, members[inside] - first


def taken(samples: Samples, members: Indices, check: Callable[[Rows, int], object]) -> Samples:
    """Some samples, ascending, in memory, from one pass over all.

    `check` is called with each block and the number of its first row, and raises InputError if a
    row of all cannot be used.
    """
    parts: list[Any] = []
    for first, block, inside in rows_taken(samples, members):
        with naming(samples.source, samples.feature_names):
            check(block, first)
        parts.append(block[inside])
    return replace(
        open_samples(stacked(parts)),
        source=f"{len(members):,} of the samples of {samples.source}",
        feature_names=samples.feature_names,
        vectorizer=samples.vectorizer,
    )
