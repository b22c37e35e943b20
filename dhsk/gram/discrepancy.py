"""Maximum mean discrepancy between two groups of samples, with a permutation test.

Estimates of several kernels are compared in units of their spread over the permutations, as in
MMD-FUSE, whose normalisation does not depend on the grouping either. Rejected: MMDAgg, which weighs
p-values by a second set of permutations, where the largest of studentised statistics needs none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.kept_pass import passes_kept
from dhsk.execution.memory import require_room
from dhsk.execution.run import Run
from dhsk.gram.features import FeatureGeometry
from dhsk.gram.moments import FIRST, moments
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiled import checked_matrix
from dhsk.gram.tiles import SourceOfTiles, TileSource
from dhsk.kernels.base import whole_parameter
from dhsk.objects.places import Place
from dhsk.run_progress import passes_reported
from dhsk.samples.labels import check_labels

TIE: Final = 1e-12
"""Part of the mean squared norm below which two discrepancies differ by rounding only."""

PREFIX: Final = "discrepancy-"
"""Begins the names of checkpoint files."""

TIMES_BITS: Final = 4
"""Copies of the bits of permutations in memory: all of them, and those of the tasks in flight."""


@dataclass(frozen=True)
class MeanDiscrepancy:
    """Squared maximum mean discrepancy between two groups, as `maximum_mean_discrepancy` finds it.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> G = dhsk.compute_gram(X[y < 2], "heat")
    >>> found = dhsk.maximum_mean_discrepancy(G, y[y < 2])
    >>> found.sizes, round(found.unbiased, 4), found.p_value < 0.01
    ((178, 182), 0.3144, True)
    """

    unbiased: float
    """Unbiased estimate, without the diagonal; it may be below 0. The test is on it."""

    biased: float
    """Squared distance between the means of the features of the two groups."""

    p_value: float
    """Part of the permutations, this grouping counted as one of them, that reach the statistic."""

    permutations: int
    """Number of random permutations of the groups."""

    sizes: tuple[int, int]
    """Numbers of samples of the groups, in the order of their sorted names."""

    witness: Floats = field(repr=False, compare=False)
    """Mean kernel of each sample with the first group less that with the second, (N,).

    A sample is not compared with itself, so the means over the two groups differ by `unbiased`. The
    largest values are of samples that are typical of the first group alone, the smallest of the
    second. Of a centred view it is that of the matrix that is viewed.
    """

    kernel: int = 0
    """Which of several kernels has the largest statistic: the estimates and witness are its own."""

    statistics: tuple[float, ...] = ()
    """Unbiased estimate of each kernel, in units of its root mean square over all permutations."""


def maximum_mean_discrepancy(
    G: FeatureGeometry | Sequence[FeatureGeometry],
    groups: ArrayLike,
    permutations: int = 1000,
    random_state: int = 0,
    *,
    memory: int | str | None = None,
    progress: Show = None,
    journal: str | Place | None = None,
) -> MeanDiscrepancy:
    """Test whether two groups of samples have the same distribution.

    The discrepancy [1]_ is the distance between the means of their features. Its distribution, if
    they are alike, comes from random permutations [2]_ of the groups. All of them take one pass
    over the matrix, or several where a bit for each sample and permutation does not fit the memory.

    Of several kernels the statistic is the largest of their estimates, each in units of its spread
    over the permutations [3]_. The same permutations give all of them, so the p-value is exact: it
    is as for one kernel, however many are tried. Each product of samples is computed once for all.

    Parameters
    ----------
    G
        Symmetric matrix of both groups, or a view of one; or matrices of several kernels, as
        `compute_gram` gives them for a list.
    groups
        Group of each sample, (N,): two different values, each at least twice.
    permutations
        Number of permutations; the least p-value is 1 / (1 + permutations).
    random_state
        Seed of the permutations.
    memory
        Most bytes for the permutations, as a number or such as ``"2GB"``. None for a quarter of the
        free memory.
    progress
        Function that is called with a `Progress` after every group of tiles; True for bars.
    journal
        Folder or ``s3://`` prefix for checkpoints: what each pass has found, and about every 15
        seconds the sums of the pass in progress, for each kernel two numbers a sample and one a
        permutation. The same call resumes after an interruption; it removes them at its end.

    Returns
    -------
    MeanDiscrepancy
        Unbiased and biased estimate of the squared discrepancy, the p-value, and the witness: which
        samples differ.

    Raises
    ------
    InputError
        The matrix is rectangular, there are not two groups of at least two samples, or several
        matrices are not of the same samples.
    BudgetError
        Not even eight permutations fit the memory.

    References
    ----------
    .. [1] A. Gretton et al., "A kernel two-sample test", Journal of Machine Learning Research 13
       (2012).
    .. [2] B. Phipson and G. Smyth, "Permutation p-values should never be zero", Statistical
       Applications in Genetics and Molecular Biology 9 (2010).
    .. [3] F. Biggs, A. Schrab, A. Gretton, "MMD-FUSE: learning and combining kernels for two-sample
       testing without data splitting", NeurIPS (2023). The largest, in place of a soft maximum.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.poisson(1.0, (60, 20)), rng.poisson(2.0, (60, 20))])
    >>> G = dhsk.compute_gram(X, dhsk.GaussianKernel(5.0))
    >>> dhsk.maximum_mean_discrepancy(G, np.repeat(["one", "two"], 60)).p_value < 0.002
    True
    >>> round(dhsk.maximum_mean_discrepancy(G, np.tile(["one", "two"], 60)).p_value, 1)
    0.6

    Several kernels, and the samples that differ the most:

    >>> grams = dhsk.compute_gram(X, [dhsk.GaussianKernel(sigma) for sigma in (2.0, 5.0, 20.0)])
    >>> found = dhsk.maximum_mean_discrepancy(grams, np.repeat(["one", "two"], 60))
    >>> found.p_value < 0.002, len(found.statistics), found.witness.shape
    (True, 3, (120,))
    >>> bool(found.witness[:60].mean() > found.witness[60:].mean())
    True
    """
    tested = _Tested.of(G)
    first = _first_group(groups, len(tested.diagonals[0]))
    count = whole_parameter("permutations", permutations, 0) + 1
    rng = np.random.default_rng(whole_parameter("random_state", random_state, 0))
    begun = Run.begun(progress, memory=memory, journal=journal, passes=1)
    with begun as (run, told), passes_reported(told):
        entries = Checkpoint(run.journal, PREFIX)
        name = digest_of(tested.description, count)
        at_once = entries.first(name, lambda: _at_once(len(first), count, run))
        blocks = _bits_of_groupings(first, count, at_once, rng)
        found = [_kept_estimates(entries, tested, bits) for bits in told.each("passes", blocks)]
    entries.remove()
    estimates = np.concatenate([block["estimates"] for block in found], axis=2)
    p_value, statistics = _tested_at_once(estimates[:, 0], tested)
    best = int(statistics.argmax())
    return MeanDiscrepancy(
        unbiased=float(estimates[best, 0, 0]),
        biased=float(estimates[best, 1, 0]),
        p_value=p_value,
        permutations=count - 1,
        sizes=(int(first.sum()), int((~first).sum())),
        witness=found[0]["witness"][best],
        kernel=best,
        statistics=tuple(statistics.tolist()),
    )


def _tested_at_once(unbiased: Floats, tested: "_Tested") -> tuple[float, Floats]:
    """The p-value of some kernels together, and the statistic of each.

    `unbiased` are estimates of each kernel and grouping, (kernels, count). Their mean over all
    groupings is 0. The spread is over all of them, the observed one among them, so that no grouping
    is told from another before they are compared.
    """
    rounding = TIE * np.array([np.abs(diagonal).mean() for diagonal in tested.diagonals])
    spread = np.sqrt(np.square(unbiased).mean(axis=1))
    spread = np.where(spread > rounding, spread, np.inf)  # a kernel that tells nothing apart
    scaled = unbiased / spread[:, None]
    largest = scaled.max(axis=0)
    reached = largest >= largest[0] - (rounding / spread).max()
    return float(reached.mean()), scaled[:, 0]


@dataclass(frozen=True)
class _Tested:
    """Matrices of some kernels on the same samples, read together."""

    source: SourceOfTiles
    tiling: Tiling
    diagonals: Sequence[Floats]
    """Of each matrix, (N,)."""
    description: Any
    """JSON value that tells the bits of these matrices from those of others."""

    @classmethod
    def of(cls, G: FeatureGeometry | Sequence[FeatureGeometry]) -> "_Tested":
        """Take one matrix, or several that are read from the same samples; InputError for others.

        Means of features differ by the same wherever their origin is.
        """
        given = [checked_matrix(one) for one in (G if isinstance(G, Sequence) else [G])]
        if not given:
            raise InputError("no matrix was given: pass one, or several of the same samples")
        matrices = [one._square("tested for two groups")._translated() for one in given]
        sources = [matrix.source for matrix in matrices]
        source: SourceOfTiles = sources[0]
        if len(sources) > 1:
            tiles = [one for one in sources if isinstance(one, TileSource)]
            if len(tiles) < len(sources) or len({(t.path, t.compute) for t in tiles}) > 1:
                raise InputError(
                    f"these {len(sources)} matrices are not read from the same products: compute "
                    "them in one call, compute_gram(X, [kernel, ...]), and test no scaled views"
                )
            source = TileSource.joined(tiles)
        diagonals = [matrix._exact_diagonal()[0] for matrix in matrices]
        described = [matrix.description for matrix in matrices]
        return cls(source, matrices[0].tiling, diagonals, described)


def _first_group(groups: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Whether each sample is in the group whose name comes first."""
    labels = check_labels(groups, n, "groups")
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(names) != 2 or counts.min() < 2:
        pairs = zip(names[:5], counts[:5], strict=True)
        raise InputError(
            "groups must have two different values, each at least twice, but it has "
            f"{', '.join(f'{name} {times} times' for name, times in pairs)}"
        )
    found: NDArray[np.bool_] = codes == 0
    return found


def permutation_bytes(n: int, count: int) -> int:
    """Memory of so many permutations of n samples in one pass."""
    return TIMES_BITS * n * -(-count // 8)


def _at_once(n: int, count: int, run: Run) -> int:
    """Groupings of a pass, a multiple of 8."""
    allowed = run.room // 4 if run.memory is None else run.memory
    least = permutation_bytes(n, 8)
    require_room(least, allowed, f"eight permutations of {n:,} samples")
    width = min(-(-count // 8), allowed // least)
    return 8 * width


def _bits_of_groupings(
    first: NDArray[np.bool_], count: int, at_once: int, rng: np.random.Generator
) -> Iterator["GroupingBits"]:
    """The grouping itself and its permutations, in blocks."""
    for start in range(0, count, at_once):
        here = min(at_once, count - start)
        bits = np.empty((len(first), -(-here // 8)), dtype=np.uint8)
        for byte in range(bits.shape[1]):
            eight = np.zeros((len(first), 8), dtype=bool)
            for place in range(min(8, here - 8 * byte)):
                itself = start + byte + place == 0
                eight[:, place] = first if itself else rng.permutation(first)
            bits[:, byte] = np.packbits(eight, axis=1)[:, 0]
        yield GroupingBits(bits, here, float(first.mean()))


@dataclass(frozen=True)
class GroupingBits:
    """Groupings of the samples as vectors of mean 0, a bit for each sample and grouping."""

    bits: NDArray[np.uint8]
    """(N, count / 8)."""

    count: int
    """Number of groupings."""

    mean: float
    """Part of the samples in the first group."""

    @property
    def marked(self) -> tuple[NDArray[np.uint8], int, float]:
        """What tells them from others, for array jobs."""
        return self.bits, self.count, self.mean

    def part(self, rows: slice) -> "GroupingBits":
        """The same groupings, of these samples only."""
        return GroupingBits(self.bits[rows], self.count, self.mean)

    def values(self, rows: slice, columns: slice) -> Floats:
        """Whether samples are in the first group, 1 or 0, less the mean; columns start at 8 k."""
        width = slice(columns.start // 8, -(-columns.stop // 8))
        chosen = np.unpackbits(self.bits[rows, width], axis=1)
        values: Floats = chosen[:, : columns.stop - columns.start].astype(np.float64)
        return values - self.mean


def _kept_estimates(entries: Checkpoint, tested: _Tested, bits: GroupingBits) -> dict[str, Floats]:
    """Estimates of each grouping and witnesses of the first, of this run or a killed one."""
    if entries.folder is None:
        return _estimates(tested, bits)
    name = digest_of(tested.description, bits.bits, bits.count)
    found = entries.get(name, lambda kept: {key: kept[key] for key in ("estimates", "witness")})
    if found is None:
        with passes_kept(entries, name) as begun:
            found = _estimates(tested, bits)
        entries.put(name, found)
        entries.drop(*begun)
    return found


def _estimates(tested: _Tested, bits: GroupingBits) -> dict[str, Floats]:
    """Unbiased and biased estimates of each kernel and grouping, and witnesses of the first one.

    Estimates, (kernels, 2, count), and witnesses, (kernels, N). Estimates are those of the centred
    matrix, whose rows sum to 0. So the sum q over the pairs within the first group is that within
    the second one, and -q that between them.
    """
    found = moments(tested.source, tested.tiling, bits)
    n = len(bits.bits)
    m = round(bits.mean * n)
    k, everything = n - m, slice(0, n)
    forms, diagonals = np.stack([one.forms for one in found]), np.stack(tested.diagonals)
    means = np.stack([one.row_means for one in found])
    centred = diagonals - 2 * means + means.mean(axis=1, keepdims=True)
    own = np.zeros((len(found), bits.count))
    for start in range(0, bits.count, 8):
        some = slice(start, min(start + 8, bits.count))
        within = bits.values(everything, some) + bits.mean
        own[:, some] = [one @ within for one in centred]  # bits that do not depend on the others
    other = centred.sum(axis=1, keepdims=True) - own
    unbiased = (forms - own) / (m * (m - 1)) + (forms - other) / (k * (k - 1)) + 2 * forms / (m * k)
    first = bits.values(everything, FIRST)[:, 0] + bits.mean > 0.5
    with_first = np.stack([one.product for one in found]) + m * means
    with_second = n * means - with_first
    witness = np.where(
        first,
        (with_first - diagonals) / (m - 1) - with_second / k,
        with_first / m - (with_second - diagonals) / (k - 1),
    )
    biased = forms * (1 / m + 1 / k) ** 2
    return {"estimates": np.stack([unbiased, biased], axis=1), "witness": witness}
