"""Randomly pivoted Cholesky: an exact factor, an exact error, and the law of its pivots."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

import dhsk
from dhsk.errors import BudgetError, InputError
from dhsk.execution.memory import require_room
from dhsk.kernels import LinearKernel
from dhsk.nystrom.cholesky import ComputedFactor, InMemoryFactor
from dhsk.nystrom.components import inverse_root
from dhsk.nystrom.landmarks import RandomPivots, uniform
from dhsk.nystrom.placed import in_memory

ROUNDING = 1e-12
"""Of a factorisation of some 100 columns with unit diagonal: k^1.5 eps, and room."""

SEEDS = range(10)

DRAWS = 1500
"""Pairs of pivots whose law is tested."""


@dataclass
class Landmarks:
    """Pivots with their whole factor."""

    indices: Any
    factor: Any
    trace_error: float


def rp_cholesky(rows: Any, kernel: Any, k: int, held: bool = True, **options: Any) -> Landmarks:
    """Landmarks with their factor, kept or computed."""
    placed = in_memory(rows, kernel, 2)
    factor: Any = InMemoryFactor(placed, min(k, placed.n)) if held else ComputedFactor(placed)
    found = RandomPivots(placed, factor, placed.diagonal(), k, **options).choose()
    whole = factor.finished() if held else kernel.of_rows(rows, factor.landmarks) @ factor.root
    return Landmarks(found.pivots, whole, found.error)


def seeded(seed: int = 0) -> np.random.Generator:
    """Random numbers of a seed."""
    return np.random.default_rng(seed)


@pytest.fixture
def heat(counts: Any) -> tuple[Any, Any, Any]:
    """Rows, kernel and matrix of well conditioned samples."""
    rows, kernel = dhsk.hyperspherical_map(counts(120, 15)), dhsk.HeatKernel.at_scale(15, 0.3)
    return rows, kernel, kernel(rows)


@pytest.fixture
def clusters(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Rows, kernel and matrix of a large cluster, small ones and outliers: a fast decay."""
    sizes = (200, 60, 20, 10, 5, 1, 1, 1, 1, 1)
    centres = 50 * (rng.gamma(0.3, size=(len(sizes), 10)) + 0.02)
    X = np.concatenate([rng.dirichlet(c, n) for c, n in zip(centres, sizes, strict=True)])
    rows, kernel = dhsk.hyperspherical_map(X), dhsk.HeatKernel.at_scale(10, 1.0)
    return rows, kernel, kernel(rows)


def left_by_best(K: Any, rank: int) -> float:
    """Relative trace error of the best approximation of a rank."""
    values = np.linalg.eigvalsh(K)[::-1]
    return float(values[rank:].sum() / values.sum())


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_factor_is_that_of_the_matrix(heat: Any, sparse: bool, held: bool) -> None:
    """At every rank F F' is the Nyström approximation from its pivots, at full rank the matrix."""
    rows, kernel, K = heat
    given = csr_array(rows) if sparse else rows
    for k in (1, 40, 120):
        found = rp_cholesky(given, kernel, k, held, rng=seeded(), block=16)
        P, F = found.indices, found.factor
        assert len(set(P)) == F.shape[1] == k
        exact = K[:, P] @ np.linalg.solve(K[np.ix_(P, P)], K[P])
        np.testing.assert_allclose(F @ F.T, exact, atol=ROUNDING)
        np.testing.assert_allclose(np.triu(F[P], 1), 0, atol=ROUNDING)
        assert found.trace_error == pytest.approx(np.trace(K - exact) / 120, abs=ROUNDING)
    np.testing.assert_allclose(F @ F.T, K, atol=ROUNDING)


def test_the_error_is_the_trace_norm(clusters: Any) -> None:
    """The sum of what the diagonal has left is the sum of all singular values of the rest."""
    rows, kernel, K = clusters
    found = rp_cholesky(rows, kernel, 20, rng=seeded())
    norm = np.linalg.norm(K - found.factor @ found.factor.T, "nuc")
    assert found.trace_error == pytest.approx(norm / len(K), abs=ROUNDING)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("block", [1, 7, 128])
def test_a_tolerance_ends_it_with_as_few_pivots_as_reach_it(
    clusters: Any, block: int, held: bool
) -> None:
    """One landmark less leaves more than the tolerance."""
    rows, kernel, _ = clusters
    found = rp_cholesky(rows, kernel, 200, held, rng=seeded(), tol=1e-3, block=block)
    gained = (found.factor**2).sum() / len(rows), (found.factor[:, :-1] ** 2).sum() / len(rows)
    assert found.trace_error <= 1e-3 < 1 - gained[1]
    assert found.trace_error == pytest.approx(1 - gained[0], abs=ROUNDING)
    assert len(found.indices) == found.factor.shape[1] < 100


def test_the_same_seed_gives_the_same_pivots(clusters: Any) -> None:
    """Bit for bit, factor and error too; another seed gives others."""
    rows, kernel, _ = clusters
    one, two, other = (rp_cholesky(rows, kernel, 30, rng=seeded(s), block=8) for s in (3, 3, 4))
    assert np.array_equal(one.indices, two.indices)
    assert np.array_equal(one.factor, two.factor)
    assert one.trace_error == two.trace_error
    assert not np.array_equal(one.indices, other.indices)
    assert np.array_equal(uniform(50, 9, seeded(3)), uniform(50, 9, seeded(3)))


def test_uniform_landmarks_are_different_samples() -> None:
    """As many as asked for, or all."""
    assert len(set(uniform(50, 40, seeded()))) == 40
    assert sorted(uniform(50, 60, seeded())) == list(range(50))


def pair_law(K: Any) -> Any:
    """Probability of each first and second pivot of plain randomly pivoted Cholesky, (N, N)."""
    first = np.diagonal(K) / np.trace(K)
    law = np.zeros_like(K)
    for i in range(len(K)):
        left = np.diagonal(K) - K[i] ** 2 / K[i, i]
        left[i] = 0
        law[i] = first[i] * left / left.sum()
    return law


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 6])
def test_the_law_of_the_pivots_is_that_of_the_plain_algorithm(block: int) -> None:
    """Ordered pairs by blocks with rejection; without it, p is below 1e-30 at blocks above 1."""
    rows = np.array([[2.0, 0.0, 0.0], [1.9, 0.5, 0.0], [0.0, 1.0, 0.2], [0.3, 1.1, 0.0], [0, 0, 1]])
    law, rng, seen = pair_law(rows @ rows.T), seeded(11), np.zeros((5, 5))
    for _ in range(DRAWS):
        first, second = rp_cholesky(rows, LinearKernel(), 2, rng=rng, block=block).indices
        seen[first, second] += 1
    possible = law > 0
    assert seen[~possible].sum() == 0
    assert chisquare(seen[possible], DRAWS * law[possible]).pvalue > 1e-3


def test_it_is_better_than_uniform_where_samples_are_uneven(clusters: Any) -> None:
    """In the mean over seeds by more than a factor 3: outliers are found."""
    rows, kernel, _ = clusters
    pivoted = [rp_cholesky(rows, kernel, 20, rng=seeded(s)).trace_error for s in SEEDS]
    blind = []
    for s in SEEDS:
        L = rows[uniform(len(rows), 20, seeded(s))]
        blind.append(1 - ((kernel(rows, L) @ inverse_root(kernel(L))) ** 2).sum() / len(rows))
    assert np.mean(pivoted) < np.mean(blind) / 3


@pytest.mark.parametrize(("rank", "epsilon"), [(1, 1.0), (3, 1.0), (3, 0.3), (5, 0.5)])
def test_the_error_keeps_its_theorem(clusters: Any, rank: int, epsilon: float) -> None:
    """(1 + epsilon) times the best of a rank, with r/epsilon + r log(1/(epsilon eta)) pivots.

    The mean bound of Chen, Epperly, Tropp and Webber; eta is the error of the best.
    """
    rows, kernel, K = clusters
    best = left_by_best(K, rank)
    k = int(np.ceil(rank / epsilon + rank * max(0.0, np.log(1 / (epsilon * best)))))
    errors = [rp_cholesky(rows, kernel, k, rng=seeded(s)).trace_error for s in SEEDS]
    assert np.mean(errors) <= (1 + epsilon) * best


def test_it_is_near_the_best_of_its_own_rank(clusters: Any, heat: Any) -> None:
    """Measured: 1.3 times the best where the spectrum is flat, 3 times where it falls fast."""
    for (rows, kernel, K), k, factor in ((heat, 20, 1.3), (clusters, 20, 3.0)):
        errors = [rp_cholesky(rows, kernel, k, rng=seeded(s)).trace_error for s in SEEDS]
        best = left_by_best(K, k)
        assert best - ROUNDING <= min(errors) <= np.mean(errors) <= factor * best


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("block", [1, 32])
def test_it_ends_at_the_rank(counts: Any, block: int, held: bool) -> None:
    """Fewer landmarks, each from another sample, and nothing left; identical samples give one."""
    twice = np.repeat(dhsk.hyperspherical_map(counts(15, 10)), 4, axis=0)
    kernel = dhsk.HeatKernel.at_scale(10, 0.5)
    found = rp_cholesky(twice, kernel, 60, held, rng=seeded(), block=block)
    assert sorted(found.indices // 4) == list(range(15))
    assert found.trace_error < ROUNDING
    same = rp_cholesky(twice[:4], kernel, 3, held, rng=seeded(), block=block)
    assert len(same.indices) == 1
    assert same.trace_error < ROUNDING


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("block", [1, 32])
def test_rounding_is_not_taken_for_rank(
    rng: np.random.Generator, block: int, dtype: Any, held: bool
) -> None:
    """Products of rows of 5 columns have rank 5, in either precision and at any length of rows."""
    rows = (rng.normal(size=(400, 5)) * rng.uniform(0.1, 30, (400, 1))).astype(dtype)
    found = rp_cholesky(rows, LinearKernel(), 100, held, rng=seeded(), block=block)
    assert len(found.indices) == 5
    assert found.trace_error < 100 * np.finfo(dtype).eps


def test_blocks_do_not_show(heat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The factor in small spans of rows is that in one."""
    rows, kernel, _ = heat
    whole = rp_cholesky(rows, kernel, 50, rng=seeded())
    monkeypatch.setattr("dhsk.nystrom.spans._SPAN_ROWS", (32, 32))
    parts = rp_cholesky(rows, kernel, 50, rng=seeded())
    assert np.array_equal(parts.indices, whole.indices)
    np.testing.assert_allclose(parts.factor, whole.factor, atol=ROUNDING)


def test_single_precision_stays_above_its_rounding(clusters: Any) -> None:
    """Rows in float32 give an error that is right to their rounding, and no pivots from it."""
    rows, kernel, K = clusters
    found = rp_cholesky(rows.astype(np.float32), kernel, 200, rng=seeded())
    P = found.indices
    rest = K - K[:, P] @ np.linalg.pinv(K[np.ix_(P, P)], hermitian=True) @ K[P]
    assert len(P) < 200
    assert found.trace_error == pytest.approx(np.trace(rest) / len(K), abs=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    """With both numbers."""
    require_room(9600, 9600, "10 landmarks", "take fewer")
    with pytest.raises(BudgetError, match=r"10 landmarks take 9\.38 kiB but 9\.37 kiB of memory"):
        require_room(9600, 9599, "10 landmarks", "take fewer")


def test_a_zero_matrix_is_refused() -> None:
    """There is nothing to choose by."""
    with pytest.raises(InputError, match="each of the 3 samples with itself is 0"):
        rp_cholesky(np.zeros((3, 2)), LinearKernel(), 2, rng=seeded())
    with pytest.raises(InputError, match="0 between all 3 landmarks"):
        inverse_root(np.zeros((3, 3)))


def test_an_indefinite_matrix_is_refused() -> None:
    """A matrix off by rounding is not."""
    R = inverse_root(np.diag([1.0, 0.5, 1e-11, -1e-10]))
    np.testing.assert_allclose(R @ R.T, np.diag([1.0, 2.0, 0.0, 0.0]))
    with pytest.raises(InputError, match=r"4 landmarks has eigenvalue -0\.001: choose a positive"):
        inverse_root(np.diag([1.0, 0.5, 0.1, -0.001]))


def test_single_precision_drops_no_more_than_its_rounding() -> None:
    """Small eigenvalues beside a large one stay: rounding of entries is by the diagonal."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(np.column_stack([np.ones(500), rng.normal(size=(500, 499))]))[0]
    values = np.concatenate([[400.0], np.full(499, 0.01)])
    K = ((Q * values) @ Q.T).astype(np.float32)
    R = inverse_root(K)
    assert R.shape == (500, 500)
    # K is taken as it is; R is of float64, and the condition number is 4e4.
    rounding = 500 * np.finfo(float).eps * 4e4
    np.testing.assert_allclose(R.T @ K.astype(float) @ R, np.eye(500), rtol=0, atol=rounding)
