"""Features times weights: inverse document frequencies, and samples that are weighted by them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows, numbered
from dhsk.samples.base import Samples, WrappedSamples, csr_block
from dhsk.samples.maps import SphereMap, parse_sphere_map
from dhsk.samples.scan import rows_within

TFIDF: Final = "tfidf"

MapName: TypeAlias = SphereMap | Literal["tfidf"]
"""Name of a map to the sphere, or of the projective map after weights that a fit learns."""

_BLOCK_BYTES: Final = 16 * 2**20


def parse_map_name(name: object) -> MapName:
    """Return `name` if it is a map, learnt or not, or raise `InputError`."""
    return parse_sphere_map(name, TFIDF)


def fixed_map(name: MapName | None) -> SphereMap | None:
    """Map of rows that are weighted already: projective for "tfidf"."""
    return "projective" if name == TFIDF else name


def document_frequencies(samples: Samples, used: Any) -> Floats:
    """Numbers of samples in which each feature is not zero, in one pass.

    `used`, (N, groups), says which samples count for which group. The result is (groups, dim).
    """
    found = np.zeros((used.shape[1], samples.shape[1]))
    for first, block in numbered(samples.blocks(rows_within(samples, _BLOCK_BYTES))):
        own = used[first : first + block.shape[0]].astype(np.float64)
        if isinstance(block, csr_array):
            present = csr_array((np.ones(block.nnz), block.indices, block.indptr), block.shape)
            found += (present.T @ own).T
        else:
            found += own.T @ (block != 0)
    return found


def inverse_frequencies(samples: Samples, used: Any) -> Floats:
    """Weights log((1 + n) / (1 + df)) + 1 of the features, (groups, dim), as scikit-learn has them.

    n is the number of samples of a group, df that of those in which the feature is not zero; see
    `document_frequencies` and `sklearn.feature_extraction.text.TfidfTransformer`.
    """
    counts = used.sum(axis=0, dtype=np.float64)[:, None]
    weights: Floats = np.log((1.0 + counts) / (1.0 + document_frequencies(samples, used))) + 1.0
    return weights


def weigh(block: Rows, weights: Floats) -> Rows:
    """A new block with every feature times its weight, (dim,), and a power of two.

    The power, which the projective map undoes exactly, brings the weights below 1: none overflows.
    """
    weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    if isinstance(block, csr_array):
        data = block.data * weights[block.indices]
        return csr_block(data, block.indices.copy(), block.indptr, block.shape[1])
    return np.asarray(block * weights)


@dataclass(frozen=True, eq=False)
class WeightedSamples(WrappedSamples):
    """Samples with every feature times its weight; takes the memory of one more block."""

    weights: Floats = field(repr=False)
    """Weight of each feature, (dim,), above 0."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for block in self.samples.blocks(rows):
            yield weigh(block, self.weights)
