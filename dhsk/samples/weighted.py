"""Maps with weights of the features that a fit learns, and samples that are weighted by them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows
from dhsk.samples.base import Samples, WrappedSamples, csr_block
from dhsk.samples.maps import SphereMap, parse_sphere_map
from dhsk.samples.refusals import naming, refuse_infinite
from dhsk.samples.scan import in_blocks
from dhsk.samples.variance import width_of

TFIDF: Final = "tfidf"
SCALED: Final = "scaled"

MapName: TypeAlias = SphereMap | Literal["tfidf", "scaled"]
"""Name of a map to the sphere, or of one of `LEARNT`."""


def parse_map_name(name: object) -> MapName:
    """Return `name` if it is a map, learnt or not, or raise `InputError`."""
    return parse_sphere_map(name, *LEARNT)


def fixed_map(name: MapName | None) -> SphereMap | None:
    """Map of rows that are weighted already: projective for "tfidf"."""
    learnt = LEARNT.get(name or "")
    return name if learnt is None else learnt.after


def learnt_name(after: SphereMap) -> MapName:
    """Name of the map whose weights come before another one."""
    return next(name for name, own in LEARNT.items() if own.after == after)


def document_frequencies(samples: Samples, used: Any) -> Floats:
    """Numbers of samples in which each feature is not zero, in one pass.

    `used`, (N, groups), says which samples count for which group. The result is (groups, dim).
    """
    found = np.zeros((used.shape[1], samples.shape[1]))
    for first, block in in_blocks(samples):
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
    `document_frequencies` and `sklearn.feature_extraction.text.TfidfTransformer`. Words of texts
    that are rarer in a group than `min_df` asks for have the weight 0: its texts alone would not
    have them.
    """
    counts = used.sum(axis=0, dtype=np.float64)[:, None]
    found = document_frequencies(samples, used)
    weights: Floats = np.log((1.0 + counts) / (1.0 + found)) + 1.0
    weights[found < least_frequency(samples)] = 0.0
    return weights


def least_frequency(samples: Samples) -> int:
    """Samples of a training part that have a feature which is kept there: of words, `min_df`."""
    return 0 if samples.vectorizer is None else samples.vectorizer.min_df


def means_and_factors(samples: Samples, used: Any) -> Floats:
    """Means of the features and 1 over their standard deviations, (groups, 2, dim), in one pass.

    They are those of `sklearn.preprocessing.StandardScaler`: a constant feature has the factor 1,
    the means of sparse samples are left at 0, and gaps, NaN of dense samples, are not counted; but
    a feature that has only gaps has the factor 0. For `used` see `document_frequencies`. Raises
    InputError for infinity, and NaN of sparse samples.
    """
    moments = [_Moments(samples.shape[1]) for _ in range(used.shape[1])]
    for begin, block in in_blocks(samples):
        with naming(samples.source, samples.feature_names):
            refuse_infinite(block, begin)
        for one, own in zip(moments, used[begin : begin + block.shape[0]].T, strict=True):
            one.add(block[np.flatnonzero(own)])
    means = np.array([one.means for one in moments])
    found = [np.zeros_like(means) if samples.is_sparse else means, [one.factors for one in moments]]
    return np.stack([np.asarray(part) for part in found], axis=1)


class _Moments:
    """Means of features, and sums of squares of what they differ from these.

    Blocks are joined as by Chan, Golub and LeVeque (1983, Am. Stat. 37:242), each about its own
    means: about those of other samples the squares of a feature that is constant among the used
    ones, as a rare category is in most folds, would leave rounding for its variance.
    """

    def __init__(self, dim: int) -> None:
        self.counts, self.means, self._squares = np.zeros((3, dim))

    def add(self, rows: Rows) -> None:
        """Add samples, (n, dim)."""
        if isinstance(rows, csr_array):
            n = np.full(rows.shape[1], float(rows.shape[0]))
            means = np.asarray(rows.sum(axis=0)).reshape(-1) / max(1, rows.shape[0])
            present = np.bincount(rows.indices, minlength=rows.shape[1])
            apart = (rows.data - means[rows.indices]) ** 2
            squares = np.bincount(rows.indices, apart, rows.shape[1]) + (n - present) * means**2
        else:
            n = rows.shape[0] - np.isnan(rows).sum(axis=0, dtype=np.float64)
            means = np.nansum(rows, axis=0) / np.maximum(1, n)
            squares = np.nansum((rows - means) ** 2, axis=0)
        step, counts = means - self.means, np.maximum(1, self.counts + n)
        self._squares += squares + step**2 * (n * self.counts / counts)
        self.means += step * (n / counts)
        self.counts += n

    @property
    def factors(self) -> Floats:
        """1 over standard deviations; 1 for constants, by the bound of scikit-learn, 0 for none."""
        counts = np.maximum(1, self.counts)
        variances, rounding = self._squares / counts, counts * np.finfo(np.float64).eps
        constant = variances <= rounding * variances + (rounding * self.means) ** 2
        factors = np.where(constant, 1.0, 1.0 / np.sqrt(np.where(constant, 1, variances)))
        empty = (self.counts == 0) & self.counts.any()
        return np.asarray(np.where(empty, 0.0, factors))


def weigh(block: Rows, weights: Floats) -> Rows:
    """A new block with every feature times its weight, (dim,), and a power of two.

    The power, which the projective map undoes exactly, brings the weights below 1: none overflows.
    Of two rows of weights the first is subtracted, and the second are factors as they are; gaps of
    dense samples, NaN, become 0.
    """
    if weights.ndim == 2:
        return _standardized(block, *weights)
    weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    if isinstance(block, csr_array):
        data = block.data * weights[block.indices]
        return csr_block(data, block.indices.copy(), block.indptr, block.shape[1])
    return np.asarray(block * weights)


def _standardized(block: Rows, means: Floats, factors: Floats) -> Rows:
    if isinstance(block, csr_array) and means.any():  # new samples, of a fit to dense ones
        block = block.toarray()
    if not isinstance(block, csr_array):
        scaled = (block - means) * factors
        scaled[np.isnan(block)] = 0.0  # the mean
        return np.asarray(scaled)
    data = block.data * factors[block.indices]
    return csr_block(data, block.indices.copy(), block.indptr, block.shape[1])


@dataclass(frozen=True)
class LearntMap:
    """A map after weights that a fit learns."""

    after: SphereMap
    learn: Callable[[Samples, Any], Floats]
    """Weights by group of samples, of which it is told which are used, (N, groups)."""
    does: str


LEARNT: Final[Mapping[str, LearntMap]] = {
    TFIDF: LearntMap("projective", inverse_frequencies, "tf-idf, rows of norm 1"),
    SCALED: LearntMap("identity", means_and_factors, "columns of mean 0 and variance 1"),
}
"""Maps that are learnt, by name."""


@dataclass(frozen=True, eq=False)
class WeightedSamples(WrappedSamples):
    """Samples with every feature times its weight; takes the memory of one more block."""

    weights: Floats = field(repr=False)
    """Weights of the features, (dim,), or means and factors, (2, dim), see `weigh`."""

    def _blocks(self, rows: int) -> Iterator[Rows]:
        for block in self.samples.blocks(rows):
            yield weigh(block, self.weights)


def width_under(samples: Samples, name: MapName | None) -> Callable[[], float]:
    """What finds the usual width of a Gaussian kernel under a map, learnt of all samples or not."""
    learnt = LEARNT.get(name or "")
    if learnt is None:
        return width_of(samples, name)

    def found() -> float:
        weights = learnt.learn(samples, np.ones((samples.shape[0], 1), np.bool_))[0]
        return width_of(WeightedSamples(samples, weights=weights), learnt.after)()

    return found
