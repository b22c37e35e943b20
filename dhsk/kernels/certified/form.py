"""One certified form of the heat kernel, ready to evaluate."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from dhsk.arrays import Floats
from dhsk.caching import cached_value
from dhsk.kernels.certified.certify import ErrorBound
from dhsk.kernels.certified.evaluate import LESS_ONE, TIME_DERIVATIVE, VALUES, Reals
from dhsk.kernels.certified.passes import Passes, with_head

RELATIVE_BOUND: Final = 1e-12
"""Largest proven relative error in float64 of a kernel that is not refused."""

LOWEST: Final = 1e-290
"""In float64, kernel values below this come out as anything from 0 to this."""


def denominators(q: Reals) -> Reals:
    """Coefficients of Q, none for Q = 1: nothing is divided."""
    return q[:0] if q.size == 1 else q


@dataclass(frozen=True, eq=False)
class Form:
    """One rational form for one floating-point type, ready to evaluate."""

    left: float
    """Cosine below which values are those at it."""
    offset: float
    """A, so that P/Q is small next to c = 1, or where K is smallest."""
    numerator: Reals
    denominator: Reals
    """Coefficients of Q; the last is 1, so Q = 1 has that one alone."""
    slopes: Reals
    """u_j, (factors,): a factor is u_j y + (1 - 2 u_j)."""
    starts: Reals
    """1 - 2 u_j, (factors,)."""
    error: ErrorBound

    def apply(self, cosines: Reals, out: Reals) -> None:
        """Write the kernel values of cosines to `out`, in one pass.

        Both are contiguous, (size,), and may be one array. The cosines have the type of the
        coefficients and no NaN; values outside [-1, 1] are clipped. `out` is rounded if it is of
        another type.
        """
        self._values(cosines, out)

    def apply_less_one(self, cosines: Floats, out: Reals, scale: float, shift: float) -> None:
        """Write scale (K - 1) + shift to `out`, in one pass; K - 1 to full relative precision.

        The arrays are as for `apply`, the cosines float64.
        """
        self._less_one(cosines, out, scale, shift)

    @cached_value
    def _values(self) -> Passes:
        return Passes(VALUES, self.sizes, self.packed)

    @cached_value
    def _less_one(self) -> Passes:
        return Passes(LESS_ONE, self.sizes, self.packed)

    def packed_less_one(self, scale: float, shift: float) -> Floats:
        """The numbers of `compiled_pass` for scale (K - 1) + shift."""
        numbers: Floats = with_head(self.packed, scale, shift)
        return numbers

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Number of coefficients of P, of Q, 0 for Q = 1, and of factors."""
        return self.numerator.size, denominators(self.denominator).size, self.slopes.size

    @cached_value
    def packed(self) -> Reals:
        """The numbers of the form in the order of `compiled_pass`."""
        number = self.numerator.dtype.type
        lowest = LOWEST if number is np.float64 else 0.0
        scalars = np.array([lowest * (1 + RELATIVE_BOUND), lowest, self.left, self.offset], number)
        polynomials = self.numerator, denominators(self.denominator)
        return np.concatenate([scalars, *polynomials, self.slopes, self.starts])


@dataclass(frozen=True, eq=False)
class TimeDerivativeForm:
    """dK/dt = K (1-c) R for one floating-point type, ready to evaluate."""

    kernel: Form
    """K, of the same left end."""
    numerator: Reals
    denominator: Reals
    """Coefficients of R = P/Q; the last of Q is 1, so Q = 1 has that one alone."""
    error: ErrorBound

    def apply(self, cosines: Reals, out: Reals) -> None:
        """Write dK/dt at cosines to `out`, in one pass; the arrays are as for `Form.apply`."""
        self._derivatives(cosines, out)

    @cached_value
    def _derivatives(self) -> Passes:
        return Passes(TIME_DERIVATIVE, self.sizes, self.packed)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Sizes of the form of K, and number of coefficients of P and of Q, 0 for Q = 1."""
        return *self.kernel.sizes, self.numerator.size, denominators(self.denominator).size

    @cached_value
    def packed(self) -> Reals:
        """The numbers of both forms in the order of `compiled_pass`."""
        rate = self.numerator, denominators(self.denominator)
        return np.concatenate([self.kernel.packed[2:], *rate])
