"""Bounds on the eigenvalues of a similarity: Gershgorin's circles, and the Lanczos method."""

from typing import Any, Final, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, LinearOperator, aslinearoperator, eigsh

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.gram.graph_functions import NodeSpectrum
from dhsk.kernels.nodes import NodeKernel
from dhsk.progress import Progress
from dhsk.run_progress import passes_of_call

SMALL: Final = 1000
"""Nodes up to which all eigenvalues are computed: 0.1 s."""

TOLERANCES: Final = (1e-9, 1e-5)
"""Relative tolerances of the extreme eigenvalues of larger graphs, the second where the first takes
too many steps."""

BASIS: Final = 64
"""Vectors of the Lanczos method, and the most products between two restarts."""

RESTARTS: Final = 60
"""Restarts of the Lanczos method for each tolerance."""

_MOST_PRODUCTS: Final = BASIS * (RESTARTS + 1)

_EACH: Final = 32
"""Products between two reports."""

_ENOUGH: Final = 1.5  # Gershgorin's interval is taken if it is at most this much longer


def circles(S: "csr_array[Any, Any]") -> NodeSpectrum:
    """Interval that Gershgorin's circles prove, with the rounding of their sums."""
    diagonal = S.diagonal()
    sums = np.asarray(abs(S).sum(axis=1)).ravel() - np.abs(diagonal)
    rounding = S.shape[0] * float(np.finfo(float).eps) * float(sums.max(initial=0.0))
    # Rows are usually far shorter than this allows for; exact sums, as of whole weights, stay so.
    exact = bool(np.all(S.data == np.round(S.data)) and np.abs(S.data).sum() < 2.0**53)
    slack = 0.0 if exact else rounding
    return NodeSpectrum(
        float((diagonal - sums).min()) - slack, float((diagonal + sums).max()) + slack
    )


def similarity_is_semidefinite(S: "csr_array[Any, Any]", spectrum: NodeSpectrum) -> bool:
    """Whether S is known to be positive semi-definite: by circles, or all eigenvalues."""
    if circles(S).lowest >= 0.0:
        return True
    rounding = S.shape[0] * float(np.finfo(float).eps) * spectrum.radius
    return S.shape[0] <= SMALL and bool(np.linalg.eigvalsh(S.toarray())[0] >= -rounding)


def spectrum_of(S: "csr_array[Any, Any]", *, tight: bool) -> NodeSpectrum:
    """Interval of the eigenvalues of S: proven by circles if these are about as good.

    With `tight` these are taken only where nothing else is known.

    Otherwise it is of all eigenvalues of a small graph, or of the extreme ones by the Lanczos
    method, each with the norm of its residual added. An eigenvalue lies within that norm; that none
    lies beyond is certain up to the chance that a random vector has no part in its direction.
    """
    proven = circles(S)
    if proven.lowest == proven.highest:
        return proven
    if S.shape[0] <= SMALL:
        values = np.linalg.eigvalsh(S.toarray())
        return _with_rounding(S, float(values[0]), float(values[-1]))
    lower, upper = _extreme(S, "SA"), _extreme(S, "LA")
    if lower is None or upper is None:
        return proven
    (low, off_low), (high, off_high) = lower, upper
    if not tight and proven.highest - proven.lowest <= _ENOUGH * (high - low):
        return proven
    found = _with_rounding(S, low - off_low, high + off_high)
    return NodeSpectrum(max(proven.lowest, found.lowest), min(proven.highest, found.highest))


def _with_rounding(S: "csr_array[Any, Any]", lowest: float, highest: float) -> NodeSpectrum:
    """Interval of computed eigenvalues, wider by what N sums of N terms may be off.

    So 1/rho of any LAPACK is within it, and every machine refuses the same factors of S.
    """
    slack = S.shape[0] * float(np.finfo(float).eps) * max(abs(lowest), abs(highest))
    return NodeSpectrum(lowest - slack, highest + slack)


def _extreme(S: "csr_array[Any, Any]", which: Literal["SA", "LA"]) -> tuple[float, float] | None:
    """An extreme eigenvalue and the norm of its residual; None if the method does not converge."""
    start: Floats = np.random.default_rng(0).standard_normal(S.shape[0])
    for tol in TOLERANCES:
        products = _CountedProducts(S, "lowest" if which == "SA" else "highest")
        try:
            _, vectors = eigsh(
                products.operator, 1, which=which, v0=start, tol=tol, ncv=BASIS, maxiter=RESTARTS
            )
        except ArpackError:
            continue
        finally:
            products.end()
        vector = vectors[:, 0] / np.linalg.norm(vectors[:, 0])
        product = S @ vector
        value = float(vector @ product)
        return value, float(np.linalg.norm(product - value * vector))
    return None


class _CountedProducts:
    """Products of the Lanczos method, reported as some of at most so many."""

    def __init__(self, S: "csr_array[Any, Any]", which: str) -> None:
        self._multiply, self._what, self._done = aslinearoperator(S).matvec, which, 0
        self.operator = LinearOperator(S.shape, matvec=self._counted, dtype=S.dtype)
        self._report = passes_of_call().report
        self._tell(_MOST_PRODUCTS)

    def _counted(self, v: Floats) -> Floats:
        self._done += 1
        if self._done % _EACH == 0:
            self._tell(max(_MOST_PRODUCTS, self._done))
        return np.asarray(self._multiply(v))

    def end(self) -> None:
        """Report that there are no more."""
        self._tell(self._done)

    def _tell(self, total: int) -> None:
        self._report(Progress("products", self._done, total, f"{self._what} eigenvalue of S"))


def check_radius(kernel: NodeKernel, spectrum: NodeSpectrum) -> None:
    """Refuse a von Neumann kernel unless |beta| < 1/rho(S); the message has the numbers."""
    beta, radius = abs(kernel.beta or 0.0), spectrum.radius
    if kernel.kind == "von_neumann" and beta and not beta * radius < 1.0:
        raise InputError(
            "|beta| must be below 1/rho(S), the inverse of the spectral radius of S, which is at "
            f"least 1/{radius:.6g} = {1.0 / radius:.6g}, but |beta| is {beta:.6g}: take a smaller "
            "|beta|"
        )
