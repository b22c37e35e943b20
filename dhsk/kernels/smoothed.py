"""Spherical kernels of Dirichlet-smoothed counts, without dense smoothed rows.

Rejected: sparse rows with more columns whose product is the cosine. They need a negative column, or
others on the left than on the right.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Floats, Rows
from dhsk.errors import InputError
from dhsk.kernels.base import real_parameter, strips
from dhsk.kernels.duplicates import set_cosines_of_equal_rows
from dhsk.kernels.rows import inner_product
from dhsk.kernels.rowwise import RowKernel
from dhsk.kernels.spherical import SphericalKernel, WrappedKernel


@dataclass(frozen=True)
class SmoothedKernel(WrappedKernel, RowKernel):
    """A spherical kernel of smoothed counts: of the cosines of `multinomial_map(X, alpha)`.

    It computes the same cosines from the counts, so that sparse counts stay sparse.
    `SmoothedKernel(ParametrixKernel.multinomial(T), alpha)` is the multinomial diffusion kernel
    with Dirichlet smoothing.

    Parameters
    ----------
    kernel
        The kernel of the cosine.
    alpha
        Count added to every feature, at least 0; 0 is the hyperspherical map.

    Raises
    ------
    InputError
        If the kernel is not spherical, or alpha is not a finite number of at least 0.

    References
    ----------
    Lafferty & Lebanon (2002), "Information diffusion kernels", section 2.

    Examples
    --------
    >>> import dhsk
    >>> kernel = dhsk.SmoothedKernel(dhsk.ParametrixKernel.multinomial(1.0), alpha=0.5)
    >>> kernel([[1, 2, 0], [2, 4, 0], [0, 0, 0]]).round(4)
    array([[1.    , 0.9935, 0.9154],
           [0.9935, 1.    , 0.8672],
           [0.9154, 0.8672, 1.    ]])
    """

    name: ClassVar[str] = "smoothed"
    unit_diagonal: ClassVar[bool] = True

    alpha: float

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, SphericalKernel):
            raise InputError(
                f"only kernels of a cosine, such as heat and parametrix, take smoothed counts:"
                f" {self.kernel!r} is not one"
            )
        super().__post_init__()
        object.__setattr__(self, "alpha", real_parameter("alpha", self.alpha, 0))

    @property
    def label(self) -> str:
        """Short name of the inner kernel, with alpha."""
        return f"{self.kernel.label} alpha={self.alpha:.4g}"

    def check_rows(
        self, rows: Rows, first_row: int = 0, what: str = "X", dtype: str = "float64"
    ) -> None:
        """Refuse negative counts and, without smoothing, rows of zeros (see `Kernel`)."""
        del dtype  # values are at most 1
        lowest = rows.min(axis=1)
        lowest = lowest.toarray() if not isinstance(lowest, np.ndarray) else lowest
        _refuse(
            lowest < 0, first_row, what, f"holds a negative number: {self.name} kernels take counts"
        )
        with np.errstate(over="ignore"):
            totals = rows.sum(axis=1) + self.alpha * rows.shape[1]
        _refuse(totals == 0, first_row, what, "is all zero: drop it or give an alpha above 0")
        _refuse(np.isinf(totals), first_row, what, "has an infinite sum: rescale the counts")

    def between(self, rows: Rows, columns: Rows) -> Floats:
        """Kernel values of all pairs of rows of counts, (a, b), a new array."""
        values = smoothed_cosines(rows, columns, self.alpha)
        set_cosines_of_equal_rows(values, rows, columns)
        if columns is rows and not self.unit_diagonal:  # a unit diagonal is set in the values
            np.fill_diagonal(values, 1.0)
        norms2 = np.ones(rows.shape[0]), np.ones(columns.shape[0])
        kernel_values: Floats = self.kernel.of_product(values, *norms2)
        return kernel_values


def smoothed_cosines(X: Rows, Y: Rows, alpha: float) -> Floats:
    """Cosines of Dirichlet-smoothed counts, (a, b), without the dense smoothed rows.

    With w = √(x+α) - √α, as sparse as x, and Z² = Σ(x+α),

        c = (⟨w_x, w_y⟩ + √α Σw_x + √α Σw_y + α n)/(Z_x Z_y);

    no count and so no term is negative, so that the error of c is a few eps.
    """
    w_x, shift_x, scale_x = _offsets(X, alpha)
    w_y, shift_y, scale_y = (w_x, shift_x, scale_x) if Y is X else _offsets(Y, alpha)
    cosines = inner_product(w_x, w_y)
    for part in strips(*cosines.shape):
        cosines[part] += shift_x[part, None] * scale_y + scale_x[part, None] * shift_y
    return cosines


def _offsets(counts: Rows, alpha: float) -> tuple[Rows, Floats, Floats]:
    """Rows w/Z, and for each row (√α Σw + αn/2)/Z and 1/Z: the terms of the cosine."""
    root, dim = alpha**0.5, counts.shape[1]
    scale = 1.0 / np.sqrt(counts.sum(axis=1) + alpha * dim)
    if isinstance(counts, csr_array):
        data = _root_gain(counts.data, alpha) * np.repeat(scale, np.diff(counts.indptr))
        w: Rows = csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    else:
        w = _root_gain(counts, alpha) * scale[:, None]
    shift = root * np.asarray(w.sum(axis=1)) + scale * (alpha * dim / 2.0)
    return w, shift, scale


def _root_gain(counts: Floats, alpha: float) -> Floats:
    """√(x+α) - √α without its cancellation."""
    with np.errstate(invalid="ignore"):  # 0/0 for a stored zero at alpha=0
        gain = counts / (np.sqrt(counts + alpha) + alpha**0.5)
    return np.asarray(np.nan_to_num(gain, copy=False, nan=0.0))


def _refuse(wrong: Any, first_row: int, what: str, reason: str) -> None:
    if np.any(wrong):
        row = first_row + int(np.argmax(wrong))
        raise InputError(f"row {row} of {what} (counted from 0) {reason}")
