"""Block conjugate gradients: every right-hand side descends along the directions of all."""

from typing import ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dhsk.arrays import Floats, Indices
from dhsk.solvers.conjugate_gradients import ConjugateGradients, Multiply, Preconditioner


class BlockConjugateGradients(ConjugateGradients):
    """Conjugate gradients on a block of right-hand sides [1]_.

    A step is the best one in the span of the directions of all columns, so that k of them take
    fewer passes than each alone. The residuals are an orthonormal basis times small coefficients
    [2]_: columns may depend on each other, or come to, which breaks the method of [1]_. Where class
    indicators came to depend, that took 127 passes in place of 59; leaving out directions that
    depend on others took 12 to 500 in place of 26, by its threshold.

    References
    ----------
    .. [1] D. P. O'Leary, "The block conjugate gradient algorithm and related methods", Linear
       Algebra Appl. 29 (1980).
    .. [2] A. A. Dubrulle, "Retooling the method of block conjugate gradients", Electron. Trans.
       Numer. Anal. 12 (2001), algorithm BCGrQ.
    """

    ARRAYS: ClassVar = ("B", "R", "P", "active", "indefinite", "coef", "norms")

    def __init__(
        self, multiply: Multiply, Y: Floats, shift: Floats, preconditioner: Preconditioner | None
    ) -> None:
        super().__init__(multiply, Y, shift, preconditioner)
        self.coef = np.zeros((0, 0))
        """Coefficients of the residuals of the active columns in the basis R, weighted by D^1/2."""
        self.norms = super().residual()
        self._weights = np.sqrt(shift)

    def residual(self) -> Floats:
        """Relative residuals, (k,); 0 if the right-hand side is 0."""
        return self.norms

    def renew(self) -> None:
        """Recompute the residuals, which ends a descent."""
        super().renew()
        self.norms = super().residual()

    def start(self, columns: Indices) -> None:
        """Begin a descent in some columns."""
        self.descents += 1
        self.recomputed = False
        self.active = columns
        self.R, self.coef = np.linalg.qr(self.R[:, columns] / self._weights)
        self.P = self._preconditioned(self._weights * self.R)

    def step(self, tol: float) -> None:
        """Make one step in all active columns, which end together: at a residual of tol or less."""
        P, columns = self.P, self.active
        AP = self._product(P)
        curvature = P.T @ AP
        try:
            factor = cho_factor((curvature + curvature.T) / 2)
        except (LinAlgError, ValueError):  # not positive definite, or not finite
            self.indefinite[columns] = True
            self.active, self.P = columns[:0], P[:, :0]
            return
        step = cho_solve(factor, P.T @ (self._weights * self.R))
        self.B[:, columns] += P @ (step @ self.coef)
        self.R, change = np.linalg.qr(self.R - AP @ step / self._weights)
        self.coef = change @ self.coef
        size = np.sqrt(self._size2[columns])
        self.norms[columns] = np.linalg.norm(self.coef, axis=0) / size
        if (self.norms[columns] <= tol).all():
            self.active, self.P = columns[:0], P[:, :0]
            return
        Z = self._preconditioned(self._weights * self.R)
        self.P = Z - P @ cho_solve(factor, AP.T @ Z)
