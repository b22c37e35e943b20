"""The heat kernel of hyperbolic space, on spherical normal distributions."""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from dhsk.arrays import Floats, Rows
from dhsk.errors import AccuracyError, InputError
from dhsk.kernels.base import positive_parameter, strips, whole_parameter
from dhsk.kernels.hyperbolic_profile import HyperbolicProfile, hyperbolic_profile
from dhsk.kernels.rowwise import RowKernel

MAX_DIM: Final = 11
"""Largest dimension for which the accuracy was measured."""

SHORTEST_TIME: Final = 1e-6
LONGEST_TIME: Final = 100.0
"""Range of times in which the accuracy was measured."""

SMALLEST_LOG_DENSITY: Final = -708.0
"""Logarithm of the smallest normal float64."""


@dataclass(frozen=True)
class HyperbolicHeatKernel(RowKernel):
    """Heat kernel of hyperbolic space H^dim: diffusion on spherical normal distributions.

    A row (mu_1, ..., mu_{dim-1}, sigma) is the distribution N(mu, sigma² I), sigma > 0, and the
    kernel is a decreasing function of the distance rho of Fisher's geometry scaled to curvature -1,
    cosh rho = 1 + (|mu - mu'|² + (sigma - sigma')²)/(2 sigma sigma').

    Given the distance, the relative error of values is at most 1e-10 (measured below 2e-12) if they
    are normal numbers; smaller values underflow gradually to 0. The distance is computed from
    differences of the entries, so that of equal rows is exactly 0.

    Parameters
    ----------
    dim
        Number of columns and dimension of the space, 2 to 11.
    time
        Diffusion time t, 1e-6 to 100.
    normalize
        Whether to divide by the value at distance 0, so that K(x, x) = 1. Otherwise values are
        transition densities with respect to the hyperbolic volume.

    Raises
    ------
    InputError
        If dim is not such a number or time not a finite number above 0.
    AccuracyError
        If the time is out of its range; or on first use, if the density is too small for float64.

    References
    ----------
    Lafferty & Lebanon (2002), "Information diffusion kernels", section 2.2; Grigor'yan & Noguchi
    (1998), "The heat kernel on hyperbolic space".

    Examples
    --------
    >>> import dhsk
    >>> normals = [[0.0, 1.0], [0.0, 2.0], [3.0, 1.0]]  # mean and standard deviation
    >>> dhsk.HyperbolicHeatKernel(dim=2, time=1.0)(normals).round(4)
    array([[1.    , 0.8542, 0.1621],
           [0.8542, 1.    , 0.3035],
           [0.1621, 0.3035, 1.    ]])
    """

    name: ClassVar[str] = "hyperbolic"  # the diagonal is 1 without being set: its distances are 0

    dim: int
    time: float
    normalize: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", whole_parameter("dim", self.dim, 2))
        object.__setattr__(self, "time", positive_parameter("time", self.time))
        if not isinstance(self.normalize, bool):
            raise InputError(f"normalize must be True or False, but it is {self.normalize!r}")
        if self.dim > MAX_DIM:
            raise InputError(
                f"hyperbolic heat kernels are for dim 2 to {MAX_DIM}, but dim is {self.dim}"
            )
        if not SHORTEST_TIME <= self.time <= LONGEST_TIME:
            raise AccuracyError(
                f"hyperbolic heat kernels are accurate for times {SHORTEST_TIME:g} to"
                f" {LONGEST_TIME:g}, but time is {self.time:g}: use one of these"
            )

    @property
    def label(self) -> str:
        """Short name with the time."""
        return f"hyperbolic t={self.time:.4g}{'' if self.normalize else ' density'}"

    def check_rows(
        self, rows: Rows, first_row: int = 0, what: str = "X", dtype: str = "float64"
    ) -> None:
        """Refuse rows whose last entry, sigma, is not above 0 (see `Kernel`)."""
        del dtype  # a density that overflows is refused on first use
        sigma = _dense(rows[:, -1:]).reshape(-1)
        wrong = ~(sigma > 0.0)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"row {first_row + row} of {what} (counted from 0) has sigma {sigma[row]:g} in its"
                " last column: a row is (mu_1, ..., mu_{dim-1}, sigma) with sigma above 0"
            )

    def of_distance(self, rho: ArrayLike) -> Floats:
        """Kernel values at given hyperbolic distances.

        Parameters
        ----------
        rho
            Distances, at least 0, of any shape.

        Returns
        -------
        Floats
            K(rho), of the same shape.

        Raises
        ------
        InputError
            If a distance is negative or NaN.
        """
        values = np.array(rho, dtype=np.float64, order="C")
        if not (values >= 0.0).all():
            raise InputError("distances must be 0 or above, but one is negative or NaN")
        flat = values.reshape(-1)
        for part in strips(flat.size):
            flat[part] = self._profile.evaluate(flat[part], normalize=self.normalize)
        return values

    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Kernel values of all pairs of rows, (a, b), a new array."""
        values = np.empty((rows.shape[0], columns.shape[0]))
        x, y = _dense(rows), _dense(columns)
        for part in strips(*values.shape):
            rho = _distances(x[part], y).reshape(-1)
            values[part] = self._profile.evaluate(rho, normalize=self.normalize).reshape(
                values[part].shape
            )
        return values

    def prepare(self, dtype: str = "float64") -> None:  # noqa: ARG002  # one table for both
        """Tabulate the kernel."""
        self._profile  # noqa: B018

    @property
    def _profile(self) -> HyperbolicProfile:
        profile = hyperbolic_profile(self.dim, self.time)
        if not self.normalize and profile.log_peak < SMALLEST_LOG_DENSITY:
            raise AccuracyError(
                f"the density of dim={self.dim} at time={self.time:g} is at most"
                f" exp({profile.log_peak:.0f}), below the smallest float64: use normalize=True or a"
                " shorter time"
            )
        return profile


def _dense(rows: Rows) -> Floats:
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


def _distances(x: Floats, y: Floats) -> Floats:
    """Hyperbolic distances in the upper half space, (a, b).

    sinh(rho/2) = |x - y|/(2 √(sigma sigma')); a common factor of all rows cancels, so each
    difference is scaled before it is squared.
    """
    left, right = x[:, -1:] ** -0.5, y[:, -1] ** -0.5
    total = np.zeros((x.shape[0], y.shape[0]))
    with np.errstate(over="ignore"):  # at an infinite distance the kernel is 0
        for column in range(x.shape[1]):
            difference = x[:, column, None] - y[:, column]
            difference *= left
            difference *= right
            np.square(difference, out=difference)
            total += difference
    np.sqrt(total, out=total)
    total /= 2.0
    np.arcsinh(total, out=total)
    total *= 2.0
    return total
