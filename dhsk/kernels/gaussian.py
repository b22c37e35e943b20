"""The Gaussian kernel of the Euclidean distance, from inner products and squared norms."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError, warn
from dhsk.kernels.base import Kernel, largest_of, positive_parameter, strips
from dhsk.kernels.certified.evaluate import SINGLE, Reals
from dhsk.kernels.cuda import DevicePass, of_gaussian
from dhsk.kernels.duplicates import set_products_of_equal_rows
from dhsk.kernels.gaussian_pass import gaussians, gaussians_less_one
from dhsk.kernels.rows import squared_norms

SINGLE_TOLERANCE: Final = 1e-4
"""Largest bound on the error of values in float32: a tenth of the usual tolerance of violations."""

_DEVIATIONS: Final = 2.0
"""Error of a sum of n products in float32, in √n u |x| |y|.

Independent roundings stay below one such unit or a few (Higham & Mary, "A new approach to
probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019), where n of them is the bound
of the worst case. Equal terms, which all round alike, were off by 1.2 at n = 10,000, and any others
by less.
"""


_NEAR: Final = 1e-4
"""Mean squared distance from the mean, in units of its square, below which centring pays."""


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """Gaussian of the distance, exp(-|x - y|²/(2 sigma²)).

    Squared distances are computed from norms and inner products, with an absolute error of about
    eps (|x|² + |y|²); negative ones are set to 0. Centre samples that are far from the origin.

    In float32 a value is off by up to 2 (√n + 1) (R² + min(R, R²)) u, with u = 6e-8, for samples of
    norm R sigma with n entries that are not 0. Samples for which that is above 1e-4 are refused.
    Unit rows of 100 features, for example, are taken from sigma = 0.13 on.

    Parameters
    ----------
    sigma
        Width, above 0; scikit-learn's gamma is 1/(2 sigma²).

    Raises
    ------
    InputError
        If sigma is not a finite number above 0 whose square is in the range of float64.

    Examples
    --------
    >>> import dhsk
    >>> dhsk.GaussianKernel(sigma=5.0)([[0.0, 0.0], [3.0, 4.0]]).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """

    name: ClassVar[str] = "gaussian"
    unit_diagonal: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, float]] = {"sigma": 1.0}  # where there are no samples
    width_parameter: ClassVar[str | None] = "sigma"

    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", positive_parameter("sigma", self.sigma))
        if not 0.0 < self.twice_variance < math.inf:
            raise InputError(
                f"sigma² is out of the range of float64 at sigma={self.sigma!r}:"
                " rescale the samples and sigma together"
            )

    @classmethod
    def at_gamma(cls, gamma: float) -> "GaussianKernel":
        """Kernel exp(-gamma |x - y|²), as scikit-learn's "rbf" has it; gamma is above 0."""
        return cls(math.sqrt(0.5 / positive_parameter("gamma", gamma)))

    @property
    def twice_variance(self) -> float:
        """2 sigma²."""
        return 2.0 * self.sigma * self.sigma

    @property
    def label(self) -> str:
        """Short name with the width."""
        return f"gaussian sigma={self.sigma:.4g}"

    def largest_norm2(self, dtype: str = "float64") -> float:
        """Largest value of float64, in which squared distances are computed."""
        del dtype
        return largest_of("float64")

    def check_products(
        self, rows: Rows, first_row: int = 0, what: str = "X", dtype: str = "float64"
    ) -> None:
        """Refuse rows whose values from products in float32 may be off by too much (see `Kernel`).

        The error is bounded for a pair of these rows, and for one of them and any other.
        """
        if dtype != "float32":
            lost = self.lost_distances(rows)
            if lost is not None:
                warn(f"{what}: {lost}: subtract X.mean(axis=0), or put a StandardScaler before")
            return
        full: Any = (
            np.count_nonzero(rows, axis=1) if isinstance(rows, np.ndarray) else np.diff(rows.indptr)
        )
        with np.errstate(over="ignore"):
            norms2 = squared_norms(rows.astype(np.float64, copy=False))
        self.check_single(full, norms2, what, first_row)

    def lost_distances(self, rows: Rows) -> str | None:
        """How far dense rows are from 0 beside their distances, if float64 loses these; else None.

        Rows that are far from each other too are not meant: their values are near 0 either way.
        """
        if not isinstance(rows, np.ndarray) or not len(rows):
            return None
        n = rows.shape[1]

        def off(norm2: float) -> float:
            """Bound on the error of the exponent, as in `single_errors`."""
            unit = np.finfo(float).eps / 2
            return (_DEVIATIONS * math.sqrt(n) + 2.0) * norm2 / self.sigma**2 * unit

        with np.errstate(over="ignore", invalid="ignore"):
            if not SINGLE_TOLERANCE < off(float(rows[0] @ rows[0])) < math.inf:
                return None
            centre = rows.mean(axis=0)
            far2 = float(centre @ centre)
            spread2 = float(squared_norms(rows - centre).mean())
        if not (off(far2) > SINGLE_TOLERANCE and spread2 < _NEAR * far2):
            return None
        return (
            f"samples lie {math.sqrt(far2):.1e} from 0 and {math.sqrt(spread2):.1e} from their "
            f"mean, so that exponents of the Gaussian kernel are off by up to {off(far2):.1g}"
        )

    def check_single(
        self, full: NDArray[np.intp] | int, norms2: Floats, what: str, first_row: int = 0
    ) -> None:
        """Refuse rows, by their squared norms, (a,), whose values in float32 are off by too much.

        Parameters
        ----------
        full
            Number of entries of each row that are not 0, (a,), or of all rows; 0 if products were
            computed in float64 and rounded to float32.
        norms2
            Squared norms, (a,).
        what, first_row
            As for `check_rows`.

        Raises
        ------
        InputError
            There is such a row; the message names the first.
        """
        errors = self.single_errors(full, norms2)
        wrong = np.flatnonzero(~(errors <= SINGLE_TOLERANCE))
        if wrong.size:
            row = wrong[0]
            raise InputError(
                f"row {first_row + row} of {what} (counted from 0) has norm "
                f"{math.sqrt(norms2[row]):.3g}, at which values of the {self.label} kernel from "
                f"float32 products are off by up to {errors[row]:.1g}, and at most "
                f"{SINGLE_TOLERANCE:g} is allowed: centre the samples (X - X.mean(axis=0)), take a "
                "larger sigma, or use float64"
            )

    def single_errors(self, full: NDArray[np.intp] | int, norms2: Floats) -> Floats:
        """Bound on the error of values between rows as long as these, and as full, (a,).

        Of the exponent -|x - y|²/(2 sigma²), the inner product adds `_DEVIATIONS` √n u R² and the
        norms and their sum 2 u R². Rounding of the rows moves the distance by 2 u R sigma, and so
        K by 1.3 u R or 4 u R². A row farther out than R, where K is smaller, adds 0.7 R to R².
        """
        with np.errstate(over="ignore"):
            R = np.sqrt(norms2) / self.sigma
            unit = (R * R + np.minimum(R, R * R)) * SINGLE.unit
            errors: Floats = (_DEVIATIONS * np.sqrt(full) + 2.0) * unit
        return errors

    def norms2(self, rows: Rows) -> Floats:
        """Squared norms of rows, (a,), of their type; those of float32 are rounded once."""
        if rows.dtype != np.float32:
            return squared_norms(rows)
        if not isinstance(rows, np.ndarray):
            return squared_norms(rows.astype(np.float64)).astype(np.float32)
        rounded: Any = np.empty(rows.shape[0], np.float32)
        for part in strips(*rows.shape):
            rounded[part] = squared_norms(rows[part].astype(np.float64))
        return np.asarray(rounded)

    def device_pass(self, dtype: Any) -> DevicePass:
        """Pass of the Gaussian in a type."""
        return of_gaussian(dtype, self.twice_variance)

    def _between(self, rows: Rows, columns: Rows, out: Reals | None) -> Floats:
        product = self.product(rows, columns, out)
        of_rows = self.norms2(rows)
        of_columns = of_rows if columns is rows else self.norms2(columns)
        if product.dtype == np.float32:
            set_products_of_equal_rows(product, rows, columns, of_rows)
        return self.of_product(product, of_rows, of_columns)

    def of_product(self, product: Floats, row_norms2: Floats, col_norms2: Floats) -> Floats:
        """Gaussians of the distances (a, b), in the type of `product` and in place if C-ordered.

        Other types than float32 and float64 become float64. Values below 2^-1021, or 2^-125 in
        float32, are 0.
        """
        values, of_rows, of_columns = _prepared(product, row_norms2, col_norms2)
        gaussians(values, of_rows, of_columns, self.twice_variance)
        return np.asarray(values)

    def of_product_less_one(
        self,
        product: Floats,
        row_norms2: Floats,
        col_norms2: Floats,
        scale: float = 1.0,
        shift: float = 0.0,
    ) -> Floats:
        """Values of scale (K - 1) + shift, (a, b), without cancellation where K is nearly 1.

        Parameters
        ----------
        product, row_norms2, col_norms2
            As for `of_product`.
        scale, shift
            Factor of K - 1, and constant added to the product.

        Returns
        -------
        Floats
            (a, b), in the type of `product` and in place if that is C-ordered; computed in
            float64, as scale may be beyond float32.
        """
        values, of_rows, of_columns = _prepared(product, row_norms2, col_norms2)
        of_rows, of_columns = of_rows.astype(np.float64), of_columns.astype(np.float64)
        for part in strips(*values.shape):
            strip = values[part].astype(np.float64, copy=False)
            gaussians_less_one(strip, of_rows[part], of_columns, self.twice_variance, scale, shift)
            if strip.dtype != values.dtype:
                values[part] = strip
        return np.asarray(values)


def _prepared(product: Floats, row_norms2: Floats, col_norms2: Floats) -> tuple[Any, Any, Any]:
    """Products and norms as contiguous arrays of one type."""
    number = np.float32 if product.dtype == np.float32 else np.float64
    values, of_rows, of_columns = (
        np.ascontiguousarray(array, dtype=number) for array in (product, row_norms2, col_norms2)
    )
    return values, of_rows, of_columns
