"""What the kernel tests share: the oracle, and rows to evaluate on."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

DIGITS = 50


def exact_weights(dim: int, time: float) -> list[mp.mpf]:
    """Weights of the heat series by its definition, to 50 digits (math: exp(-l(l+n-2)t) d_l)."""
    with mp.workdps(DIGITS):
        terms, level = [mp.mpf(1)], 0
        while terms[-1] > max(terms) * mp.mpf(10) ** -DIGITS or level < 2:
            level += 1
            harmonics = mp.binomial(dim + level - 1, level)  # harmonics of degree l, as the
            if level >= 2:  # polynomials of degree l less those of degree l - 2
                harmonics -= mp.binomial(dim + level - 3, level - 2)
            terms.append(harmonics * mp.exp(-level * (level + dim - 2) * mp.mpf(time)))
        total = mp.fsum(terms)
        return [term / total for term in terms]


def exact_series(weights: list[mp.mpf], dim: int, cosine: float) -> mp.mpf:
    """Sum of the series at one cosine by the forward recurrence, to 50 digits."""
    with mp.workdps(DIGITS):
        c = mp.mpf(cosine)
        before, polynomial = mp.mpf(1), c
        value = weights[0] + weights[1] * c
        for level in range(1, len(weights) - 1):
            step = (2 * level + dim - 2) * c * polynomial - level * before
            before, polynomial = polynomial, step / (level + dim - 2)
            value += weights[level + 1] * polynomial
        return value


@pytest.fixture(scope="session")
def oracle_weights() -> Callable[[int, float], list[mp.mpf]]:
    """Exact weights of (dim, time)."""
    return exact_weights


@pytest.fixture(scope="session")
def oracle() -> Callable[[int, float, list[float]], list[mp.mpf]]:
    """Exact kernel values of (dim, time, cosines)."""

    def values(dim: int, time: float, cosines: list[float]) -> list[mp.mpf]:
        weights = exact_weights(dim, time)
        return [exact_series(weights, dim, c) for c in cosines]

    return values


@pytest.fixture
def unit_rows() -> Callable[..., np.ndarray]:
    """Random unit rows, (rows, dim), about half of the entries zero."""

    def make(rows: int, dim: int, seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(rows, dim)) * (rng.random((rows, dim)) < 0.5)
        X[:, 0] += 0.1  # no zero row
        return X / np.linalg.norm(X, axis=1, keepdims=True)

    return make
