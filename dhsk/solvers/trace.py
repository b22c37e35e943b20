"""Traces of functions of a positive semi-definite matrix that is known by its products only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from scipy.special import stdtrit

from dhsk.arrays import Floats
from dhsk.errors import InputError
from dhsk.solvers.eigenpairs import Multiply

Function: TypeAlias = Callable[[Floats], Floats]
"""Values of a function at eigenvalues, entry by entry; 0 at 0."""

PROBES: Final = 64
"""Random vectors at a time. They share a Krylov space, so that each has what all have found: of
2,000 samples with twenty kinds of eigenvalues, 1 to 12 products of 64 gave the score of order 1 to
1 %."""

STEPS: Final = 16
"""Lanczos steps of a block at most."""

CONFIDENCE: Final = 0.95
"""Share of seeds of which the error is as small as said."""

ROUNDING: Final = 1e-6
"""Share of the largest eigenvalue by which others may be below 0: the rounding of float32. Forms
that differ by less, as a share of their trace, say nothing of one another."""

NEGLIGIBLE: Final = 1e-13
"""Length of a new direction, as a share of the largest entry, below which it is left out: it would
be mostly rounding."""

COPIES: Final = 16
"""Blocks of vectors in memory: those drawn, five of the recurrence, eight of a decomposition, and
two on their way."""


@dataclass(frozen=True)
class TraceEstimate:
    """Estimate of a trace after some products."""

    low: float
    """Of the two quadratures, which bracket what exact integrals would give, the lower one."""
    high: float
    error: float
    """What the random vectors may be off by, in `CONFIDENCE` of all draws."""

    @property
    def value(self) -> float:
        """Middle of the bracket."""
        return (self.low + self.high) / 2


def trace_bytes(n: int) -> int:
    """Memory of `trace_estimates`, in bytes, besides that of a product."""
    return COPIES * 8 * n * PROBES


def trace_estimates(
    multiply: Multiply,
    n: int,
    function: Function,
    narrow: Callable[[TraceEstimate], bool],
    seed: int,
    known: tuple[float, float],
    fewest: int = 1,
) -> Iterator[TraceEstimate]:
    """Estimate tr f(A) better and better, after every product of a block.

    The trace is the mean of forms z' f(A) z of random signs z. What z' A z and z' A² z explain of
    them is corrected, as the traces of A and A² are known: control variates [1]_. (Of twenty kinds
    of eigenvalues, 64 vectors were off by 0.006 in the entropy, and without it by 0.1.) A block of
    vectors is integrated by the block Lanczos recurrence [2]_: Gauss's rule errs to one side, and
    Gauss-Radau's with the node 0 to the other, for x^q and x log x, whose derivatives alternate.
    When the rules are `narrow`, or after `STEPS` steps, other random vectors begin; there is no
    end.

    Rejected: integrating a sketch of the largest eigenvectors by itself and drawing from the rest,
    which took three products of 192 vectors more, and 64 vectors each with a space of their own:
    12 products of 20,000 samples for a standard error of 1 %. Products in float32, of which 64
    vectors save a fifth: orders below 1 see the roots of their rounding.

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
        Seed of the random vectors.
    known
        Traces of the matrix and of its square.
    fewest
        Steps of a block at least, q / 2: until then both rules are below x^q, and nothing is said.

    Raises
    ------
    InputError
        An eigenvalue is below 0 by more than rounding.

    References
    ----------
    .. [1] P. Glasserman, "Monte Carlo Methods in Financial Engineering", Springer (2003), section
       4.1.
    .. [2] G. H. Golub and G. Meurant, "Matrices, Moments and Quadrature with Applications",
       Princeton (2010), chapters 4, 6 and 7.
    """
    rng = np.random.default_rng(seed)
    drawn = np.zeros((5, 0))
    while True:
        Z = rng.choice((-1.0, 1.0), (n, PROBES))
        for step, forms in enumerate(_forms(multiply, Z, function), start=1):
            every = np.concatenate([drawn, forms], axis=1)
            found = _estimate(every[:2], every[2:4] / np.reshape(known, (2, 1)), every[4].mean())
            # Of a space that has all there is both rules are of one matrix.
            brackets = step >= fewest or np.array_equal(*forms[:2])
            yield found if brackets else replace(found, error=np.inf)
            if brackets and narrow(found):
                break
        drawn = every


def checked_eigenvalues(values: Floats) -> Floats:
    """Eigenvalues, 0 where rounding made them negative; InputError if one is below that."""
    lowest, highest = float(values.min()), float(np.abs(values).max())
    if lowest < -ROUNDING * highest:
        raise InputError(
            f"the matrix has an eigenvalue of {lowest:.3g} or less beside one of {highest:.3g}: a "
            "kernel must be positive semi-definite for this score"
        )
    return np.maximum(values, 0.0)


def _estimate(rules: Floats, controls: Floats, lost: float) -> TraceEstimate:
    """Estimate from forms by both rules, and from two others whose means should be 1, (2, b).

    `lost` is what the rules may be off by besides.
    """
    middle, b = rules.mean(axis=0), rules.shape[1]
    means = controls.mean(axis=1, keepdims=True)
    # Least squares with a ridge, so that forms which differ by rounding explain nothing.
    sides = np.concatenate([(controls - means).T, ROUNDING * np.sqrt(b) * np.eye(2)])
    wanted = np.concatenate([middle - middle.mean(), np.zeros(2)])
    slopes = np.linalg.lstsq(sides, wanted)[0]
    low, high = np.sort(rules.mean(axis=1) - slopes @ (means - 1))
    left = wanted[:b] - slopes @ (controls - means)
    freedom = b - 3
    error = stdtrit(freedom, (1 + CONFIDENCE) / 2) * np.sqrt(left @ left / freedom / b)
    return TraceEstimate(float(low - lost), float(high + lost), float(error))


def _forms(multiply: Multiply, Z: Floats, function: Function) -> Iterator[Floats]:
    """Forms of the columns z after each product, (5, b).

    They are z' f(A) z by Gauss's and Gauss-Radau's rule, z' A z, z' A² z, and what the rules lost
    by directions that were left out.
    """
    before = np.zeros((len(Z), 0))
    v, lengths = _orthonormal(Z, 0.0, ())
    beside = np.zeros((v.shape[1], 0))
    T, lost = np.zeros((0, 0)), 0.0
    for _ in range(STEPS):
        product = multiply(v)
        product -= before @ beside.T
        middle = v.T @ product
        T = _bordered(T, beside, (middle + middle.T) / 2)
        if not before.size:
            powers = _powers(Z, product @ lengths)
        product -= v @ middle
        largest = float(np.abs(T).max())
        new, beside = _orthonormal(product, NEGLIGIBLE * largest, (before, v))
        before, v = v, new
        if v.shape[1] < before.shape[1]:
            lost = len(Z) * _change(function, largest, 2 * NEGLIGIBLE * largest)
        rules = [_form(T, lengths, function), _form(_radau(T, beside), lengths, function)]
        yield np.stack([*rules, *powers, np.full_like(powers[0], lost)])
        if not v.size:  # the space has all there is
            return


def _powers(Z: Floats, image: Floats) -> list[Floats]:
    """Forms z' A z and z' A² z, of images A z."""
    return [np.einsum("ij,ij->j", other, image) for other in (Z, image)]


def _change(function: Function, largest: float, change: float) -> float:
    """How much f(A) changes, in spectral norm, where A changes by so much.

    Without the directions left out, the recurrence is that of a matrix nearby. Of x^q, q < 1, the
    change is at most that at 0 (R. Bhatia, "Matrix Analysis", Springer (1997), theorem X.1.1). Of
    x log x the same is taken, and of a convex f that at the largest eigenvalue: not proven, and far
    below any tolerance.
    """
    at_zero, top, beyond = function(np.array([change, largest, largest + change]))
    return float(max(at_zero, abs(beyond - top)))


def _orthonormal(V: Floats, least: float, known: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Orthonormal directions of a block, those longer than the least, and what it is made of.

    They are made orthogonal to what is `known` once more: of a short one, rounding is a large part.
    """
    Q, R = np.linalg.qr(V)
    turn, lengths, rows = np.linalg.svd(R, full_matrices=False)
    kept = lengths > least
    Q = Q @ turn[:, kept]
    for other in known:
        Q -= other @ (other.T @ Q)
    Q, R = np.linalg.qr(Q)
    return Q, R @ (lengths[kept, None] * rows[kept])


def _bordered(T: Floats, beside: Floats, corner: Floats) -> Floats:
    """A block tridiagonal matrix with a further block on the diagonal."""
    size, width = len(T), len(corner)
    wider = np.pad(T, (0, width))
    wider[size:, size:] = corner
    wider[size:, size - beside.shape[1] : size] = beside
    wider[size - beside.shape[1] : size, size:] = beside.T
    return wider


def _form(T: Floats, lengths: Floats, function: Function) -> Floats:
    """Gauss's rule of block tridiagonal matrices, for each vector of the block, (b,)."""
    nodes, vectors = np.linalg.eigh(T)
    weights = (lengths.T @ vectors[: len(lengths)]) ** 2
    return np.asarray(weights @ function(checked_eigenvalues(nodes)))


def _radau(T: Floats, beside: Floats) -> Floats:
    """The matrix of Gauss-Radau's rule: the last block makes 0 an eigenvalue."""
    nodes, vectors = np.linalg.eigh(T)
    floor = np.maximum(nodes, np.finfo(np.float64).eps * np.abs(nodes).max())
    last = beside @ vectors[-beside.shape[1] :]
    return _bordered(T, beside, (last / floor) @ last.T)
