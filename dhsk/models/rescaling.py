"""Matrices of kernels that are nearly constant, at the scale of their differences.

A support vector machine with intercept has coefficients that sum to 0 over each pair of classes, so
a constant added to the kernel changes nothing; and the kernel divided by a unit, with C multiplied
by it, changes the coefficients alone, which are multiplied by it too. So problems are solved on
1 - (1 - K)/unit with C unit, see `dhsk.kernels.stretched`: the gradients, violations, intercepts
and relative gaps are those of K, the coefficients and objectives are divided by the unit at the
end.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dhsk.arrays import Indices, Rows
from dhsk.errors import InputError
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel, stretched, unit_of
from dhsk.solvers.dual import Fit

LOOKED_AT: Final = 256
"""Samples between which the spread is estimated: it need be right to a factor of two."""


def sample_of(n: int) -> Indices:
    """Numbers of some of n samples, evenly spread, at most `LOOKED_AT`."""
    return np.unique(np.linspace(0, n - 1, min(n, LOOKED_AT)).astype(np.intp))


def unit_for(kernel: Kernel, n: int, rows_of: Callable[[Indices], Rows]) -> float:
    """Unit of the differences of a kernel's values on n samples.

    Parameters
    ----------
    kernel
        The kernel.
    n
        Number of samples.
    rows_of
        Gives some of their mapped rows.

    Returns
    -------
    float
        A power of two near the mean of 1 - K where that is small, else 1.
    """
    if stretched(kernel, 1.0) is None:
        return 1.0
    return unit_of(kernel, rows_of(sample_of(n))) or 1.0


def kernel_in(kernel: Kernel, unit: float) -> Kernel:
    """Kernel whose matrix is the one that problems are solved on."""
    return kernel if unit == 1.0 else stretched(kernel, unit) or kernel


def matrix_in_units(G: GramMatrix) -> tuple[GramMatrix, float]:
    """Matrix that problems of a kernel are solved on, and its unit.

    Where only finished values of the kernel are stored the matrix is itself, and if they are so
    nearly the same that few digits are left a warning says so.

    Parameters
    ----------
    G
        Symmetric.

    Returns
    -------
    GramMatrix
        The stretched kernel's matrix, or G.
    float
        The unit; 1 with G.
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
    """Whether differences of such a mean have lost half of their digits in values near 1.

    With half of them a fit can still reach the usual tolerance: of some thousand support vectors
    with bounds of 15 over the spread, rounding leaves a violation of 1e-3 at most.
    """
    return spread < math.sqrt(np.finfo(dtype).eps)


def warn_of_few_digits(G: GramMatrix, spread: float) -> None:
    """Warn where stored kernel values have too few digits left."""
    if lacks_digits(spread, G.dtype):
        warnings.warn(
            f"the stored values of {G.kernel.label} differ from 1 by {spread:.1g} on average and "
            f"are rounded at {np.finfo(G.dtype).eps:.1g}: few of their digits tell samples apart. "
            "Store cosines instead (kernel='cosine'), or take a smaller time or width",
            UserWarning,
            stacklevel=2,
        )


def fit_of_kernel(fit: Fit, unit: float) -> Fit:
    """Fit on a matrix in units, as one on the kernel itself."""
    return replace(
        fit, coef=fit.coef / unit, objective=fit.objective / unit, norm2=fit.norm2 / unit
    )
