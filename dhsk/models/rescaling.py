"""Rescaling of nearly constant kernels by the scale of their differences.

The coefficients of an SVM with intercept sum to 0 over each pair of classes, so adding a constant
to the kernel changes nothing. Dividing the kernel by a unit and multiplying C by it multiplies only
the coefficients by that unit. Problems are therefore solved on 1 - (1 - K)/unit with C unit, see
`dhsk.kernels.stretched`. Gradients, violations, intercepts and relative gaps are those of K;
coefficients and objectives are divided by the unit at the end.

Rejected: K - 1 itself (a diagonal of 0 says nothing of the largest entry); centring the matrix (a
pass, and no kernel of two rows).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError, warn
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel, stretched, unit_of
from dhsk.solvers.dual import Fit

LOOKED_AT: Final = 256
"""Samples by which the unit is estimated: it need be right only to a factor of two."""


def sample_of(n: int) -> Indices:
    """Indices of at most `LOOKED_AT` of n samples, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.intp))


def unit_for(kernel: Kernel, n: int, rows_of: Callable[[Indices], Rows]) -> float:
    """Unit of a kernel on n samples: a power of two near the mean of 1 - K if this is small, or 1.

    rows_of gives the mapped rows of some samples. Raises InputError if these have too few digits
    for differences as small as those of the kernel.
    """
    if stretched(kernel, 1.0) is None:
        return 1.0
    rows = rows_of(sample_of(n))
    unit = unit_of(kernel, rows) or 1.0
    if rows.dtype == np.float32:  # of others the map has warned
        kernel_in(kernel, unit).check_products(rows, what="a few samples", dtype="float32")
    return unit


def kernel_in(kernel: Kernel, unit: float) -> Kernel:
    """Kernel on whose matrix problems are solved."""
    return kernel if unit == 1.0 else stretched(kernel, unit) or kernel


def matrix_in_units(G: GramMatrix) -> tuple[GramMatrix, float]:
    """Matrix of the stretched kernel, and its unit; or G and 1.

    A matrix of finished kernel values cannot be stretched. A warning says so if their differences
    have few digits.
    """
    unit = unit_for(G.kernel, G.shape[0], G.staged_rows)
    if unit == 1.0:
        return G, 1.0
    try:
        return G.with_kernel(kernel_in(G.kernel, unit)), unit
    except InputError:  # finished values
        warn_of_few_digits(G, unit)
        return G, 1.0


def lacks_digits(spread: float, dtype: "np.dtype[Any]") -> bool:
    """Whether values near 1, with differences of this mean, have lost half of the digits of these.

    With half of them a fit can still reach the usual tolerance: with some thousand support vectors
    and bounds of 15 over the spread, rounding leaves a violation of at most 1e-3.
    """
    return spread < math.sqrt(np.finfo(dtype).eps)


def warn_of_few_digits(G: GramMatrix, spread: float) -> None:
    """Warn if the differences of stored kernel values have too few digits."""
    if lacks_digits(spread, G.dtype):
        warn(
            f"the stored values of {G.kernel.label} differ from 1 by {spread:.1g} on average and "
            f"are rounded at {np.finfo(G.dtype).eps:.1g}: few of their digits tell samples apart. "
            "Store cosines instead (kernel='cosine'), or take a smaller time or width",
            UserWarning,
        )


def fit_of_kernel(fit: Fit, unit: float) -> Fit:
    """Fit on the kernel, from one on its stretched matrix."""
    if unit == 1.0:
        return fit
    return replace(
        fit, coef=fit.coef / unit, objective=fit.objective / unit, norm2=fit.norm2 / unit
    )
