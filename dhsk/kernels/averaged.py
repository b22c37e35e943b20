"""Kernels of counts averaged over the posteriors of their distributions.

The draws of a sample follow from its values and a seed. So every task finds the same ones, and the
matrix is one of inner products of mean features: positive semi-definite, whatever the draws.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from dhsk.arrays import Floats, Rows, blocks
from dhsk.kernels.base import whole_parameter
from dhsk.kernels.duplicates import row_hashes
from dhsk.kernels.smoothed import SmoothedKernel

_DRAWN: Final = 32 * 2**20
"""Bytes of the draws of columns at a time, for each of which those of all rows are made anew."""

_STRIP: Final = 8 * 2**20
"""Bytes of the draws of rows at a time, and of the values of all pairs."""

_LEAST: Final = 1e-300
"""Smallest parameter of a gamma: with it, as with any smaller one, the largest takes all mass."""


@dataclass(frozen=True)
class AveragedKernel(SmoothedKernel):
    """A spherical kernel averaged over Dirichlet posteriors, Dirichlet(x + alpha) of a sample x.

    The value is the mean over all pairs of `draws` distributions of one sample and as many of the
    other, which estimates ∫∫ K(θ, θ') p(θ|x) p(θ'|x') dθ dθ'. Distributions are drawn by a sample's
    values and the seed alone: equal samples have the same ones, dense or sparse, in any process.
    Other versions of numpy may draw others.

    K(x, x) is below 1, the more so the less x says about its distribution. It is above the integral
    by a share 1/draws of the difference from 1, as each draw also meets itself.

    Try `SmoothedKernel` first: on web pages the average was no more accurate, even with ten words a
    page. It costs draws² values of the inner kernel an entry. Beside the result a task takes some
    60 MB for dense draws, or those of two samples if they are more; plans do not count them.

    Parameters
    ----------
    kernel
        The kernel of the cosine.
    alpha
        Count of the prior for every feature, at least 0; 0 draws only features with counts.
    draws
        Number of distributions drawn for each sample, at least 1.
    seed
        Seed of the draws, at least 0.

    Raises
    ------
    InputError
        If the kernel is not spherical, or a parameter is not such a number.

    References
    ----------
    Lafferty & Lebanon (2005), "Diffusion kernels on statistical manifolds", equation 3.

    Examples
    --------
    >>> import dhsk
    >>> kernel = dhsk.AveragedKernel(dhsk.HeatKernel(3, 0.2), alpha=0.5, draws=500)
    >>> kernel([[1, 2, 0], [100, 200, 0]]).round(1)
    array([[0.8, 0.8],
           [0.8, 1. ]])
    """

    name: ClassVar[str] = "averaged"

    draws: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unit_diagonal", False)
        object.__setattr__(self, "draws", whole_parameter("draws", self.draws, 1))
        object.__setattr__(self, "seed", whole_parameter("seed", self.seed, 0))

    @property
    def label(self) -> str:
        """Short name of the inner kernel, with alpha, and the number and seed of the draws."""
        return f"{super().label} draws={self.draws} seed={self.seed}"

    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Mean kernel values of the draws of all pairs of rows of counts, (a, b), a new array."""
        drawn, pairs = 8 * self.draws * max(1, rows.shape[1]), 8 * self.draws**2  # bytes
        width = max(1, min(_DRAWN // drawn, _STRIP // pairs, columns.shape[0]))
        height = max(1, min(_STRIP // drawn, _STRIP // (pairs * width)))
        values = np.empty((rows.shape[0], columns.shape[0]))
        for part in blocks(columns.shape[0], width):
            self._put_means(rows, self._drawn(columns[part]), height, values[:, part])
        return values

    def _put_means(self, rows: Rows, right: Floats, height: int, out: Floats) -> None:
        """Write means of values of rows of counts and draws of columns, in strips, to `out`."""
        for part in blocks(rows.shape[0], height):
            found = self.kernel.of_rows(self._drawn(rows[part]), right)
            by_sample = found.reshape(part.stop - part.start, self.draws, -1, self.draws)
            out[part] = by_sample.mean(axis=(1, 3))

    def _drawn(self, counts: Any) -> Floats:
        """Draws of all rows of counts as unit rows, (rows times draws, dim)."""
        dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
        drawn = np.empty((len(dense), self.draws, dense.shape[1]))
        for own, row, mark in zip(drawn, dense, row_hashes(dense), strict=True):
            self._draw(row, int(mark), own)
        return drawn.reshape(-1, dense.shape[1])

    def _draw(self, counts: Floats, mark: int, out: Floats) -> None:
        """Write unit vectors of square roots of Dirichlet(x + alpha), (draws, dim), to `out`.

        Gammas divided by their sum are Dirichlet. Of small parameters a most would underflow, so
        they are drawn as logarithms: a gamma of a is one of a + 1 times U^(1/a), and -log U is
        exponential.
        """
        random = np.random.Generator(np.random.Philox([self.seed, mark]))
        parameters = np.maximum(counts + self.alpha, _LEAST)
        np.log(random.standard_gamma(parameters + 1.0, out.shape), out=out)
        out -= random.standard_exponential(out.shape) / parameters
        out -= out.max(axis=1, keepdims=True)
        out *= 0.5
        np.exp(out, out=out)
        out /= np.linalg.norm(out, axis=1, keepdims=True)
