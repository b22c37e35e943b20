"""Traces of functions of a positive semi-definite matrix that is known by its products only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.solvers.eigenpairs import Multiply

Function: TypeAlias = Callable[[Floats], Floats]
"""Values of a function at eigenvalues, entry by entry; 0 at 0."""

SKETCH: Final = 192
"""Most directions in which a function is integrated one by one, as nearly those of the largest
eigenvalues. Of 8,000 mixtures around 200 centres 64 take 33 products for 1 %, 256 take 7."""

FEWEST: Final = 32
"""Directions of a sketch at least."""

SKETCH_NUMBERS: Final = 20_000_000
"""Numbers of a sketch, so that of a million samples it has 32 directions: more samples are averaged
over, and need fewer."""

PROBES: Final = 64
"""Random vectors at a time that estimate the trace on what is left."""

STEPS: Final = 24
"""Lanczos steps of a block at most."""

CLOSE: Final = 1e-3
"""Residual of a Ritz pair, as a share of its value, at which it is taken for an eigenpair: its
value is off by the square of that. Random vectors are kept out of these directions, where the
largest eigenvalues would take two thirds of the steps."""

ROUNDING: Final = 1e-6
"""Share of the largest eigenvalue by which others may be below 0: the rounding of float32."""

COPIES: Final = 6
"""Blocks of vectors in memory: three of the recurrence, the sketch, and two on their way."""


@dataclass(frozen=True)
class TraceEstimate:
    """Estimate of a trace after some products."""

    low: float
    """Of the two quadratures, which bracket what exact integrals would give, the lower one."""
    high: float
    error: float
    """Standard error of the random vectors."""

    @property
    def value(self) -> float:
        """Middle of the bracket."""
        return (self.low + self.high) / 2


def sketch_width(n: int) -> int:
    """Directions of the sketch of so many rows."""
    return min(n, SKETCH, max(FEWEST, SKETCH_NUMBERS // n))


def trace_bytes(n: int) -> int:
    """Memory of `trace_estimates`, in bytes, besides that of a product."""
    return COPIES * 8 * n * (sketch_width(n) + PROBES)


def trace_estimates(
    multiply: Multiply,
    n: int,
    function: Function,
    narrow: Callable[[TraceEstimate], bool],
    seed: int,
) -> Iterator[TraceEstimate]:
    """Estimate tr f(A) better and better, after every product of a block.

    The trace is that on a sketch Q of the largest eigenvectors, made by three products, plus that
    on the complement, which has little variance: the mean over random vectors there [1]_. Both are
    sums of forms v' f(A) v, which Lanczos steps integrate [2]_: Gauss's rule errs to one side, and
    Gauss-Radau's with the node 0 to the other, for x^q and x log x, whose derivatives alternate.
    When the rules are `narrow`, or after `STEPS` steps, other random vectors begin; there is no
    end.

    Parameters
    ----------
    multiply
        Product of the matrix with (n, b) float64.
    n
        Number of rows.
    function
        x^q, q > 0, or x log x, or a multiple.
    narrow
        Whether the rules are near enough to each other.
    seed
        Seed of the sketch and of the random vectors.

    Raises
    ------
    InputError
        An eigenvalue is below 0 by more than rounding.

    References
    ----------
    .. [1] R. A. Meyer, C. Musco, C. Musco and D. P. Woodruff, "Hutch++: optimal stochastic trace
       estimation", SIAM Symposium on Simplicity in Algorithms (2021).
    .. [2] G. H. Golub and G. Meurant, "Matrices, Moments and Quadrature with Applications",
       Princeton (2010), chapters 6 and 7.
    """
    rng = np.random.default_rng(seed)
    Q, U = _sketch(multiply, rng.standard_normal((n, sketch_width(n))))
    known, drawn = np.zeros((2, 0)), np.zeros((2, 0))

    def without_found(V: Floats) -> Floats:
        """Products, of the random vectors less what lies in eigenvectors that are known."""
        product = multiply(V)
        product[:, -PROBES:] -= U @ (U.T @ product[:, -PROBES:])
        return product

    while True:
        Z = rng.choice((-1.0, 1.0), (n, PROBES))
        Z -= Q @ (Q.T @ Z)
        begun = Z if known.size else np.concatenate([Q, Z], axis=1)
        for forms in _forms(without_found, begun, function):
            of_sketch = known if known.size else forms[:, : Q.shape[1]]
            of_probes = np.concatenate([drawn, forms[:, -PROBES:]], axis=1)
            found = _estimate(of_sketch, of_probes)
            yield found
            if narrow(found):
                break
        known, drawn = of_sketch, of_probes


def _sketch(multiply: Multiply, Q: Floats) -> tuple[Floats, Floats]:
    """Ritz vectors of the largest eigenvalues, and those of them that are eigenvectors."""
    for _ in range(2):
        Q = np.linalg.qr(multiply(Q))[0]
    product = multiply(Q)
    values, turn = np.linalg.eigh(Q.T @ product)
    Q = Q @ turn
    residuals = np.linalg.norm(product @ turn - values * Q, axis=0)
    return Q, Q[:, residuals <= CLOSE * values]


def checked_eigenvalues(values: Floats) -> Floats:
    """Eigenvalues, 0 where rounding made them negative; InputError if one is below that."""
    lowest, highest = float(values.min()), float(np.abs(values).max())
    if lowest < -ROUNDING * highest:
        raise InputError(
            f"the matrix has an eigenvalue of {lowest:.3g} or less beside one of {highest:.3g}: a "
            "kernel must be positive semi-definite for this score"
        )
    return np.maximum(values, 0.0)


def _estimate(of_sketch: Floats, of_probes: Floats) -> TraceEstimate:
    """Estimate from forms by both rules, (2, directions) and (2, probes)."""
    low, high = np.sort(of_sketch.sum(axis=1) + of_probes.mean(axis=1))
    error = of_probes.mean(axis=0).std(ddof=1) / np.sqrt(of_probes.shape[1])
    return TraceEstimate(float(low), float(high), float(error))


def _forms(multiply: Multiply, V: Floats, function: Function) -> Iterator[Floats]:
    """Forms v' f(A) v of the columns by Gauss's and Gauss-Radau's rule, (2, b), after a product."""
    lengths = np.sqrt(np.einsum("ij,ij->j", V, V))
    v, before = V / np.maximum(lengths, np.finfo(np.float64).tiny), np.zeros_like(V)
    beside = np.zeros(V.shape[1])
    T = np.zeros((V.shape[1], 0, 0))
    for step in range(STEPS):
        product = multiply(v) - beside * before
        middle = np.einsum("ij,ij->j", v, product)
        T = np.pad(T, ((0, 0), (0, 1), (0, 1)))
        T[:, step, step] = middle
        if step:
            T[:, step, step - 1] = T[:, step - 1, step] = beside
        product -= middle * v
        beside = np.sqrt(np.einsum("ij,ij->j", product, product))
        yield lengths**2 * np.stack([_gauss(T, function), _radau(T, beside, function)])
        # A space that has all there is goes on with zeros, which have no weight.
        beside[beside <= ROUNDING**2 * np.abs(T).max(axis=(1, 2))] = 0.0
        before, v = v, product / np.where(beside > 0, beside, np.inf)


def _gauss(T: Floats, function: Function) -> Floats:
    """Gauss's rule of tridiagonal matrices, (b,)."""
    nodes, vectors = np.linalg.eigh(T)
    return np.asarray((vectors[:, 0] ** 2 * function(checked_eigenvalues(nodes))).sum(axis=1))


def _radau(T: Floats, beside: Floats, function: Function) -> Floats:
    """Gauss-Radau's rule with the node 0: the last entry makes it an eigenvalue."""
    nodes, vectors = np.linalg.eigh(T)
    floor = np.maximum(nodes, np.finfo(np.float64).eps * np.abs(nodes).max(axis=1, keepdims=True))
    size = T.shape[1]
    wider = np.pad(T, ((0, 0), (0, 1), (0, 1)))
    wider[:, size, size - 1] = wider[:, size - 1, size] = beside
    wider[:, size, size] = beside**2 * (vectors[:, -1] ** 2 / floor).sum(axis=1)
    return _gauss(wider, function)
