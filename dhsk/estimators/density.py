"""Density on the sphere: the mean of heat kernels around the samples."""

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Floats, Indices, Rows, blocks
from dhsk.bars import Show
from dhsk.errors import InputError
from dhsk.estimators.automatic import Auto, is_auto
from dhsk.estimators.base import HeatEstimator, rows_of_fit
from dhsk.execution.limits import core_count
from dhsk.execution.threads import Threads
from dhsk.kernels import CosineKernel, HeatKernel
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.centre import with_all_entries
from dhsk.kernels.duplicates import row_hashes
from dhsk.kernels.peak import draw_angles, log_density
from dhsk.progress import counter
from dhsk.samples import SphereMap, ZeroRule

FIRST: Final = 6
"""Times of the first pass over the pairs of samples."""

HALVINGS: Final = 3
"""Further passes, each at two times, between the best one and those beside it."""

Advance: TypeAlias = Callable[[int], None]
"""Counts blocks that are done."""

BLOCK_BYTES: Final = 16 * 2**20
"""Cosines of a task."""

MARGIN: Final = 8.0
"""Ratio of times beyond those that the distances of the samples suggest."""


@dataclass(eq=False, repr=False)
class HeatKernelDensity(DensityMixin, HeatEstimator):  # type: ignore[misc]  # see its base
    """Kernel density on the sphere, by the exact heat kernel, which is a density itself.

    The density of a point is the mean over the samples of the probability density, by the area of
    the sphere, that a random walk from the sample is there after the diffusion time: for short
    times a normal distribution of variance 2 t around each, at long times the uniform one. It is a
    density of the images of the samples under `sphere_map`, not of the samples themselves.

    Parameters
    ----------
    time_scale
        Diffusion time in units of log(dim)/dim; "auto" for the one with the largest likelihood of
        each sample under all others but its equals, to a sixth. It takes five passes over all
        pairs of samples.
    sphere_map, zero_rows, memory

    Attributes
    ----------
    log_likelihood_
        Mean log-density of a sample under all others but its equals.
    X_fit_, kernel_, time_scale_, n_features_in_, feature_names_in_

    References
    ----------
    .. [1] P. Hall, G. S. Watson and J. Cabrera, "Kernel density estimation with spherical data",
       Biometrika 74 (1987).

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> zeros = dhsk.HeatKernelDensity().fit(X[y == 0])
    >>> scores = zeros.score_samples(X[:10])  # of the digits from 0 to 9
    >>> int(y[scores.argmax()]), round(zeros.log_likelihood_, 1)
    (0, 136.7)
    """

    _learnt = ("log_likelihood_", "_rows", "_shares")

    X_fit_ = property(rows_of_fit)
    kernel = None
    dtype = "float64"
    time_scale: float | Auto = "auto"
    sphere_map: SphereMap | None = None
    _: KW_ONLY
    zero_rows: ZeroRule = "center"
    memory: int | str | None = None

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: Show = None
    ) -> Self:
        """Fit to samples.

        Parameters
        ----------
        X, y
        sample_weight
            Weight of each sample, (N,); None for equal ones.
        progress

        Raises
        ------
        InputError
            An automatic time, and all samples are equal.
        BudgetError
        """
        del y
        self._check()
        X = self._validated(X)
        weights = self._factors(sample_weight, X.shape[0])
        self._shares = weights / weights.sum()
        with self._begun(progress, reading=1, blocks=5) as run:
            self._rows = self._map_to_fit(X, run, weights)
            self._same = np.unique(row_hashes(self._rows), return_inverse=True)[1]
            auto = is_auto(self.time_scale)
            passes = HALVINGS + 2 if auto else 1
            advance = counter(run.report, "blocks", passes * len(self._parts))
            if auto:
                kernel, self.log_likelihood_ = self._likeliest(advance)
                self._keep_map(replace(self._fitted_map, kernel=kernel))
            else:
                (self.log_likelihood_,) = self._likelihoods([self._kernel.time], advance)
        del self._same
        return self

    def score_samples(self, X: Any) -> Floats:
        """Logarithms of the density at samples, (N,); -inf where it is below 1e-280 of a peak."""
        check_is_fitted(self)
        return log_density(self._sums(X, self._rows, self._shares[:, None])[:, 0], self._kernel)

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the log-densities of samples, as that of scikit-learn's `KernelDensity`."""
        del y
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Floats:
        """Draw points of the sphere from the density.

        Parameters
        ----------
        n_samples
            Number of points.
        random_state
            Seed, or generator of scikit-learn's.

        Returns
        -------
        ndarray
            Unit vectors, (n_samples, dim), images of samples under the map.
        """
        check_is_fitted(self)
        count = whole_parameter("n_samples", n_samples, 1)
        seed = check_random_state(random_state).randint(2**31)
        rng = np.random.default_rng(seed)
        drawn: Any = rng.choice(len(self._shares), count, p=self._shares)
        chosen = with_all_entries(self._rows[drawn])
        centres = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        angles = draw_angles(self._kernel, count, rng)[:, None]
        across = rng.standard_normal(centres.shape)
        across -= np.einsum("ij,ij->i", across, centres)[:, None] * centres
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        return np.asarray(np.cos(angles) * centres + np.sin(angles) * across)

    @property
    def _kernel(self) -> HeatKernel:
        assert isinstance(self.kernel_, HeatKernel)  # there is no parameter for another
        return self.kernel_

    def _likeliest(self, advance: Advance) -> tuple[HeatKernel, float]:
        """The kernel of the time with the largest likelihood, and that."""
        dim = self.n_features_in_
        low, high = self._range(advance)
        times = [_rounded(time) for time in np.geomspace(low, high, FIRST)]
        found = self._likelihoods(times, advance)
        for _ in range(HALVINGS):
            best = int(np.argmax(found))
            pairs = list(pairwise(times[max(best - 1, 0) : best + 2]))
            between = [_rounded(math.sqrt(low * high)) for low, high in pairs]
            more = self._likelihoods(between, advance)
            tried = sorted(zip([*times, *between], [*found, *more], strict=True))
            times, found = map(list, zip(*tried, strict=True))
        best = int(np.argmax(found))
        if not np.isfinite(found[max(best - 1, 0)]):
            raise InputError(
                f"at the likeliest time some of the {len(self._shares):,} samples are too far from "
                f"all others: in {dim:,} features their density is below 1e-280 of a peak. Reduce "
                "the features, or give time_scale"
            )
        return HeatKernel(dim, times[best]), found[best]

    def _range(self, advance: Advance) -> tuple[float, float]:
        """Times between which the likelihood has its maximum.

        Around one sample alone, the likelihood of another at an angle a is largest near the time
        a²/(2 n - 2). The nearest and the farthest samples are such, and the time of all is between.
        """
        found = self._over_blocks(_angles, advance)
        nearest = np.concatenate([angles for angles, _ in found])
        nearest = nearest[np.isfinite(nearest)]
        if not nearest.size:
            raise InputError(
                f"all {len(self._shares):,} samples are equal, so that no time is likelier than a "
                "shorter one: give time_scale"
            )
        angles = np.array([np.median(nearest), max(highest for _, highest in found)])
        low, high = angles**2 / (2 * self.n_features_in_ - 2)
        return low / MARGIN, high * MARGIN

    def _likelihoods(self, times: list[float], advance: Advance) -> list[float]:
        """Mean log-density of a sample under all others but its equals, at each time."""
        kernels, shares = [HeatKernel(self.n_features_in_, time) for time in times], self._shares
        equals = np.bincount(self._same, weights=shares)[self._same]
        done = self._over_blocks(partial(_sums, kernels, shares), advance)
        used = (shares > 0) & (equals < 1)
        means = []
        for kernel, sums in zip(kernels, np.concatenate(done, axis=1), strict=True):
            logs = log_density(sums[used] / (1 - equals[used]), kernel)
            means.append(float(np.average(logs, weights=shares[used])) if used.any() else np.nan)
        return means

    def _over_blocks(self, function: Any, advance: Advance) -> list[Any]:
        """Results of a function of cosines, (rows, N), and of which samples are equal."""
        tasks = ((self._rows, self._same, part, function) for part in self._parts)
        found = []
        for result in Threads(core_count()).run(_of_block, tasks, ordered=True):
            found.append(result)
            advance(1)
        return found

    @property
    def _parts(self) -> list[slice]:
        """Rows of each task."""
        n = len(self._shares)
        return list(blocks(n, max(1, BLOCK_BYTES // (8 * n))))


def _rounded(time: float) -> float:
    """A time of few digits."""
    return float(f"{time:.3g}")


def _of_block(rows: Rows, same: Indices, part: slice, function: Any) -> Any:
    """A function of cosines of some samples with all; the own ones and their equals are 0."""
    cosines = CosineKernel().of_rows(rows[part], rows)
    return function(cosines, same[part, None] == same)


def _angles(cosines: Floats, equal: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Angle of the nearest other sample of each, infinite without one, and the largest angle."""
    nearest = np.arccos(np.where(equal, -1.0, cosines).max(axis=1))
    return np.where(equal.all(axis=1), np.inf, nearest), float(np.arccos(cosines.min()))


def _sums(
    kernels: list[HeatKernel], shares: Floats, cosines: Floats, equal: NDArray[np.bool_]
) -> Floats:
    """Sums of each kernel over other samples, (kernels, rows)."""
    found = []
    for kernel in kernels:
        values = kernel.of_cosine(cosines)
        values[equal] = 0.0
        found.append(values @ shares)
    return np.stack(found)
