"""The problem that all solvers of one column share: a quadratic one in a box, with a given sum.

It is to maximise s'b - zone |b|_1 - b'Kb/2 over bounds of b and a given sum of it; the gradient is
f = s - K b. In a machine of two classes s are their signs, in regression the targets, in the
one-class SVM 0.
"""

from dataclasses import dataclass

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.solvers.smo import settle


@dataclass(frozen=True, eq=False)
class BoxProblem:
    """A problem of n samples; arrays are (n,)."""

    linear: Floats
    """s, in regression the targets."""
    lower: Floats
    upper: Floats
    zone: float = 0.0
    """What each unit of |b_i| loses: in regression the width of the zone without loss."""

    def part(self, chosen: Indices) -> "BoxProblem":
        """Restrict the problem to some samples."""
        return BoxProblem(self.linear[chosen], self.lower[chosen], self.upper[chosen], self.zone)

    def sides(self, b: Floats, f: Floats) -> tuple[Floats, Floats]:
        """Gradients of coefficients that grow, and of those that shrink; infinite at bounds."""
        grows = np.where(b < 0.0, f + self.zone, f - self.zone)
        shrinks = np.where(b > 0.0, f - self.zone, f + self.zone)
        grows[b >= self.upper] = -np.inf
        shrinks[b <= self.lower] = np.inf
        return grows, shrinks

    def violation(self, b: Floats, f: Floats) -> float:
        """KKT violation, 0 at the optimum."""
        grows, shrinks = self.sides(b, f)
        return max(0.0, float(grows.max(initial=-np.inf) - shrinks.min(initial=np.inf)))

    def intercept(self, b: Floats, f: Floats) -> float:
        """LIBSVM's -rho: the mean of the free samples, or the middle of what others allow."""
        grows, shrinks = self.sides(b, f)
        free = grows == shrinks  # inside of the bounds, and not at 0 if the loss changes there
        if free.any():
            return float(grows[free].mean())
        ends = np.array([grows.max(initial=-np.inf), shrinks.min(initial=np.inf)])
        return float(ends[np.isfinite(ends)].mean())

    def gap(self, b: Floats, f: Floats, intercept: float) -> float:
        """Duality gap of a regression, whose bounds are symmetric, relative to the primal."""
        norm2 = float(b @ (self.linear - f))
        errors = np.maximum(np.abs(f - intercept) - self.zone, 0.0)
        primal = norm2 / 2 + float(self.upper @ errors)
        dual = float(self.linear @ b) - self.zone * float(np.abs(b).sum()) - norm2 / 2
        return (primal - dual) / primal if primal > 0 else 0.0

    def settle(self, b: Floats) -> None:
        """Set coefficients within rounding of a bound, or of 0, to it, in place."""
        if self.zone > 0:
            below, above = np.minimum(self.upper, 0.0), np.maximum(self.lower, 0.0)
            settle(b, np.where(b > 0, above, self.lower), np.where(b > 0, self.upper, below))
        else:
            settle(b, self.lower, self.upper)


@dataclass(frozen=True, eq=False)
class BoxFit:
    """Solution, with its gradient f = s - K b, recomputed."""

    b: Floats
    f: Floats
    steps: int
