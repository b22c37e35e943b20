"""Maximum mean discrepancy between two groups of samples, with a permutation test."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dhsk.arrays import Floats
from dhsk.bars import Show
from dhsk.errors import BudgetError, InputError
from dhsk.execution.checkpoint import Checkpoint, digest_of
from dhsk.execution.run import Run
from dhsk.gram.features import FeatureGeometry
from dhsk.gram.moments import moments
from dhsk.gram.tiled import checked_matrix
from dhsk.kernels.base import whole_parameter
from dhsk.objects.places import Place
from dhsk.run_progress import passes_reported
from dhsk.samples.labels import check_labels
from dhsk.units import format_bytes

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
    """Part of the permutations, this grouping counted as one of them, that reach `unbiased`."""

    permutations: int
    """Number of random permutations of the groups."""

    sizes: tuple[int, int]
    """Numbers of samples of the groups, in the order of their sorted names."""


def maximum_mean_discrepancy(
    G: FeatureGeometry,
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

    Parameters
    ----------
    G
        Symmetric matrix of both groups, or a view of one.
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
        Folder or ``s3://`` prefix for a checkpoint of every pass, where there are several. The same
        call with the same `memory` resumes after an interruption; it removes them at its end.

    Returns
    -------
    MeanDiscrepancy
        Unbiased and biased estimate of the squared discrepancy, and the p-value.

    Raises
    ------
    InputError
        The matrix is rectangular, or there are not two groups of at least two samples.
    BudgetError
        Not even eight permutations fit the memory.

    References
    ----------
    .. [1] A. Gretton et al., "A kernel two-sample test", Journal of Machine Learning Research 13
       (2012).
    .. [2] B. Phipson and G. Smyth, "Permutation p-values should never be zero", Statistical
       Applications in Genetics and Molecular Biology 9 (2010).

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
    """
    # Means of features differ by the same wherever their origin is.
    matrix = checked_matrix(G)._translated()
    matrix._square("tested for two groups")
    first = _first_group(groups, matrix.shape[0])
    count = whole_parameter("permutations", permutations, 0) + 1
    rng = np.random.default_rng(whole_parameter("random_state", random_state, 0))
    diagonal, _ = matrix._exact_diagonal()
    begun = Run.begun(progress, memory=memory, journal=journal, passes=1)
    with begun as (run, told), passes_reported(told):
        blocks = _bits_of_groupings(first, count, _at_once(len(first), count, run), rng)
        entries, each = Checkpoint(run.journal, PREFIX), told.each("passes", blocks)
        estimates = [_kept_estimates(entries, matrix, bits, diagonal) for bits in each]
    unbiased, biased = np.concatenate(estimates, axis=1)
    entries.remove()
    reached = unbiased >= unbiased[0] - TIE * np.abs(diagonal).mean()
    return MeanDiscrepancy(
        unbiased=float(unbiased[0]),
        biased=float(biased[0]),
        p_value=float(np.count_nonzero(reached)) / count,
        permutations=count - 1,
        sizes=(int(first.sum()), int((~first).sum())),
    )


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


def _at_once(n: int, count: int, run: Run) -> int:
    """Groupings of a pass, a multiple of 8."""
    allowed = run.room // 4 if run.memory is None else run.memory
    width = min(-(-count // 8), allowed // (TIMES_BITS * n))
    if width < 1:
        raise BudgetError(
            f"eight permutations of {n} samples need {format_bytes(TIMES_BITS * n)} but "
            f"{format_bytes(allowed)} are allowed: give more memory"
        )
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

    def part(self, rows: slice) -> "GroupingBits":
        """The same groupings, of these samples only."""
        return GroupingBits(self.bits[rows], self.count, self.mean)

    def values(self, rows: slice, columns: slice) -> Floats:
        """Whether samples are in the first group, 1 or 0, less the mean; columns start at 8 k."""
        width = slice(columns.start // 8, -(-columns.stop // 8))
        chosen = np.unpackbits(self.bits[rows, width], axis=1)
        values: Floats = chosen[:, : columns.stop - columns.start].astype(np.float64)
        return values - self.mean


def _kept_estimates(
    entries: Checkpoint, matrix: FeatureGeometry, bits: GroupingBits, diagonal: Floats
) -> Any:
    """Estimates of each grouping, (2, count), of this run or a killed one."""
    if entries.folder is None:
        return _estimates(matrix, bits, diagonal)
    name = digest_of(matrix.description, bits.bits, bits.count)
    found = entries.get(name, lambda kept: kept["estimates"].reshape(2, bits.count))
    if found is None:
        found = _estimates(matrix, bits, diagonal)
        entries.put(name, {"estimates": found})
    return found


def _estimates(matrix: FeatureGeometry, bits: GroupingBits, diagonal: Floats) -> Any:
    """Unbiased and biased estimates of each grouping, (2, count).

    Both are the same of the centred matrix, whose rows sum to 0. So the sum q over the pairs within
    the first group is that within the second one, and -q that between them.
    """
    found = moments(matrix.source, matrix.tiling, bits)
    n = len(diagonal)
    m = round(bits.mean * n)
    k, q = n - m, found.forms
    centred = diagonal - 2 * found.row_means + found.row_means.mean()
    everything = slice(0, n)
    own = np.zeros(bits.count)
    for start in range(0, bits.count, 8):
        some = slice(start, min(start + 8, bits.count))
        own[some] = centred @ (bits.values(everything, some) + bits.mean)
    other = centred.sum() - own
    unbiased = (q - own) / (m * (m - 1)) + (q - other) / (k * (k - 1)) + 2 * q / (m * k)
    return np.stack([unbiased, q * (1 / m + 1 / k) ** 2])
