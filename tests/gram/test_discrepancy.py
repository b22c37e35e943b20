"""Maximum mean discrepancy: its definitions, its null distribution, and what it needs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import dhsk
from dhsk.gram.moments import MANY_VECTORS, moments
from dhsk.gram.passes import over_groups
from tests.killed import KilledError, kill_after

pytestmark = pytest.mark.threads

N, DIM, TILE = 53, 6, 10
HEAT = dhsk.HeatKernel(DIM, 0.1)


def by_definition(K: Any, first: Any) -> tuple[float, float]:
    """Gretton et al. (2012), equations 3 and 5."""
    A, B, C = K[first][:, first], K[~first][:, ~first], K[first][:, ~first]
    m, n = len(A), len(B)
    within = (A.sum() - np.trace(A)) / m / (m - 1) + (B.sum() - np.trace(B)) / n / (n - 1)
    return within - 2 * C.mean(), A.mean() + B.mean() - 2 * C.mean()


@pytest.mark.parametrize("kernel", [HEAT, dhsk.LinearKernel()], ids=str)
def test_estimates_are_those_of_the_definition(counts: Any, rng: Any, kernel: Any) -> None:
    """Of groups of different sizes, on the matrix and its views."""
    first = rng.permutation(N) < 17
    G = dhsk.compute_gram(counts(N, DIM), kernel, tile=TILE)
    for matrix in (G, G.centered(), G.normalized(), G.normalized().centered()):
        found = dhsk.maximum_mean_discrepancy(matrix, np.where(first, "a", "b"), 9)
        unbiased, biased = by_definition(np.asarray(matrix), first)
        rounding = 1e-13 * np.abs(np.asarray(matrix)).max()
        np.testing.assert_allclose(found.unbiased, unbiased, rtol=1e-10, atol=rounding)
        np.testing.assert_allclose(found.biased, biased, rtol=1e-10, atol=rounding)
        assert (found.sizes, found.permutations) == ((17, 36), 9)


@pytest.mark.parametrize("memory", [None, 4 * 2 * N])
def test_p_value_counts_permutations(counts: Any, memory: int | None) -> None:
    """The same grouping by grouping, also by blocks of 16 permutations that fit the memory."""
    X = counts(N, DIM)
    X[:20, 0] += 1.0
    first = np.arange(N) < 20
    G = dhsk.compute_gram(X, HEAT, tile=TILE)
    found = dhsk.maximum_mean_discrepancy(G, ~first, 99, random_state=3, memory=memory)
    rng, K = np.random.default_rng(3), np.asarray(G)
    reached = sum(by_definition(K, rng.permutation(first))[0] >= found.unbiased for _ in range(99))
    assert 0 < reached < 50
    assert found.p_value == (1 + reached) / 100


def test_a_sample_has_no_discrepancy_from_itself(counts: Any) -> None:
    """The same samples in both groups: the means of the features are the same."""
    X = counts(N, DIM)
    for kernel in (HEAT, dhsk.LinearKernel()):
        G = dhsk.compute_gram(np.concatenate([X, X]), kernel, tile=TILE)
        found = dhsk.maximum_mean_discrepancy(G, np.repeat([0, 1], N), 50)
        assert abs(found.biased) <= 1e-15 * np.asarray(G).max()
        assert found.unbiased < 0
        assert found.p_value > 0.5


def test_groupings_that_tie_with_the_observed_one_count(counts: Any) -> None:
    """Two samples a group have three groupings, so a third of the permutations tie."""
    G = dhsk.compute_gram(np.array([[0.0, 1], [0.1, 1], [5, 1], [5.2, 1]]), "linear")
    found = dhsk.maximum_mean_discrepancy(G, [0, 0, 1, 1], 999)
    assert 0.28 < found.p_value < 0.39


@pytest.mark.slow
def test_rounding_breaks_no_ties_and_makes_none(rng: Any) -> None:
    """Where samples repeat, groupings tie but for rounding; means that differ by 1e-6 do not."""
    K = dhsk.compute_gram(np.repeat(rng.random((4, 3)), 3, axis=0), dhsk.GaussianKernel(1.0))
    for seed in range(9):
        first = rng.permutation(12) < 5
        found = dhsk.maximum_mean_discrepancy(K, ~first, 99, random_state=seed)
        own = np.random.default_rng(seed)
        others = [by_definition(K[:, :], own.permutation(first))[0] for _ in range(99)]
        assert found.p_value == (1 + sum(np.array(others) >= found.unbiased - 1e-9)) / 100
    G = dhsk.compute_gram(np.array([[0, 0], [1, 0], [0, 1 + 1e-6], [1, 1 + 1e-6]]), "linear")
    assert dhsk.maximum_mean_discrepancy(G, [0, 0, 1, 1], 499).p_value < 0.42  # a third


def test_wrong_groups_are_refused(counts: Any) -> None:
    """In words, with what they are; and memory that is too small."""
    G = dhsk.compute_gram(counts(N, DIM), HEAT, tile=TILE)
    for groups, words in (
        (
            np.arange(N) % 3,
            "two different values, each at least twice, but it has 0 18 times, 1",
        ),
        (np.arange(N) == 4, "but it has 0 52 times, 1 1 times"),
        (np.arange(N - 1) % 2, "groups: 52 labels for 53 samples"),
    ):
        with pytest.raises(dhsk.InputError, match=words):
            dhsk.maximum_mean_discrepancy(G, groups)
    whole: Any = np.asarray(G)
    with pytest.raises(dhsk.InputError, match="must be a Gram matrix, as of compute_gram, but"):
        dhsk.maximum_mean_discrepancy(whole, np.arange(N) % 2)
    with pytest.raises(dhsk.InputError, match="permutations must be a whole number"):
        dhsk.maximum_mean_discrepancy(G, np.arange(N) % 2, -1)
    with pytest.raises(dhsk.BudgetError, match="eight permutations of 53 samples take 212 B but 1"):
        dhsk.maximum_mean_discrepancy(G, np.arange(N) % 2, memory=100)


@pytest.mark.parametrize("killed", [0, 1, 3])
def test_stopped_after_any_pass_it_resumes_to_the_same_bits(
    counts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: int
) -> None:
    """Where permutations take several passes; those that were made are not made again."""
    G = dhsk.compute_gram(counts(N, DIM), HEAT, tile=TILE).centered().normalized()
    options: dict[str, Any] = {"groups": np.arange(N) % 2, "permutations": 70, "memory": 4 * 2 * N}
    whole = dhsk.maximum_mean_discrepancy(G, **options)
    made: list[str] = []

    def counted(*given: Any) -> Any:
        if len(made) == killed:
            made.append("killed")
            raise KeyboardInterrupt
        made.append("pass")
        return moments(*given)

    monkeypatch.setattr("dhsk.gram.discrepancy.moments", counted)
    with pytest.raises(KeyboardInterrupt):
        dhsk.maximum_mean_discrepancy(G, **options, journal=tmp_path / "journal")
    assert dhsk.maximum_mean_discrepancy(G, **options, journal=tmp_path / "journal") == whole
    assert made.count("pass") == 5  # 71 groupings, 16 at a time
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize(("permutations", "groups"), [(70, 3), (MANY_VECTORS, 21)])
@pytest.mark.usefixtures("every_group_kept")
def test_killed_within_a_pass_it_repeats_no_group_that_is_kept(
    counts: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    permutations: int,
    groups: int,
) -> None:
    """Two groups of tiles, or tiles, are in the sums; the result has the bits of a whole run."""
    G = dhsk.compute_gram(counts(N, DIM), HEAT, tile=TILE)
    given = G, np.arange(N) % 2, permutations
    whole = dhsk.maximum_mean_discrepancy(*given)
    every, kept = over_groups, tmp_path / "journal"
    made: list[int] = []

    def counted(*given: Any) -> Any:
        made.append(0)
        for result in every(*given):
            made[-1] += 1
            yield result

    monkeypatch.setattr("dhsk.gram.moments.over_groups", counted)
    with monkeypatch.context() as patched:
        kill_after(patched, 3)  # the permutations at once, and two groups
        with pytest.raises(KilledError):
            dhsk.maximum_mean_discrepancy(*given, journal=kept)
    found = dhsk.maximum_mean_discrepancy(*given, memory="1GB", journal=kept)
    assert made == [2, groups - 2]
    assert found == whole
    np.testing.assert_array_equal(found.witness, whole.witness)
    assert not kept.exists()


@pytest.fixture
def every_group_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a pass are kept after every group of tiles."""
    monkeypatch.setattr("dhsk.execution.kept_pass.UNKEPT_SECONDS", 0.0)
    monkeypatch.setattr("dhsk.execution.checkpoint.QUIET", 0.0)


@pytest.mark.slow
def test_workers_find_the_same_bits(counts: Any) -> None:
    """Worker processes, as threads of this one."""
    grams = dhsk.compute_gram(counts(N, DIM), SEVERAL, tile=TILE)
    here = dhsk.maximum_mean_discrepancy(grams, np.arange(N) % 2, 70)
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        there = dhsk.maximum_mean_discrepancy(grams, np.arange(N) % 2, 70)
    assert there == here
    np.testing.assert_array_equal(there.witness, here.witness)


SEVERAL = (HEAT, dhsk.HeatKernel(DIM, 1.0), dhsk.CosineKernel())
"""Kernels of the same cosines, the first for small differences."""


def witness_by_definition(K: Any, first: Any) -> Any:
    """Mean kernel with the others of the first group less that with those of the second."""
    others = ~np.eye(len(K), dtype=bool)
    return np.array(
        [
            row[one & first].mean() - row[one & ~first].mean()
            for row, one in zip(K, others, strict=True)
        ]
    )


def test_the_witness_is_that_of_the_definition(counts: Any, rng: Any) -> None:
    """On the matrix and a scaled view; its means over the groups differ by the estimate."""
    first = rng.permutation(N) < 17
    G = dhsk.compute_gram(counts(N, DIM), dhsk.LinearKernel(), tile=TILE)
    for matrix in (G, G.normalized()):
        found = dhsk.maximum_mean_discrepancy(matrix, np.where(first, "a", "b"), 9)
        K = np.asarray(matrix)
        rounding = N * np.finfo(float).eps * np.abs(K).max()
        np.testing.assert_allclose(found.witness, witness_by_definition(K, first), atol=rounding)
        apart = found.witness[first].mean() - found.witness[~first].mean()
        assert abs(apart - found.unbiased) <= rounding


@pytest.mark.parametrize("memory", [None, 4 * 2 * N])
def test_several_kernels_share_their_permutations(counts: Any, memory: int | None) -> None:
    """Grouping by grouping, the largest of the estimates in units of their spread."""
    X = counts(N, DIM)
    X[:20, 0] += 0.4
    first = np.arange(N) < 20
    grams = dhsk.compute_gram(X, SEVERAL, tile=TILE)
    found = dhsk.maximum_mean_discrepancy(grams, ~first, 99, random_state=3, memory=memory)
    rng, Ks = np.random.default_rng(3), [np.asarray(G) for G in grams]
    groupings = [first, *(rng.permutation(first) for _ in range(99))]
    estimates = np.array([[by_definition(K, one)[0] for one in groupings] for K in Ks])
    scaled = estimates / np.sqrt((estimates**2).mean(axis=1, keepdims=True))
    largest, best = scaled.max(axis=0), int(scaled[:, 0].argmax())
    assert 1 < np.count_nonzero(largest >= largest[0]) < 60
    assert found.p_value == np.count_nonzero(largest >= largest[0]) / 100
    np.testing.assert_allclose(found.statistics, scaled[:, 0], rtol=1e-9)
    assert found.kernel == best
    alone = dhsk.maximum_mean_discrepancy(grams[best], ~first, 99, random_state=3)
    assert (found.unbiased, found.biased) == (alone.unbiased, alone.biased)
    np.testing.assert_array_equal(found.witness, alone.witness)


def test_several_kernels_take_one_pass(counts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosines of a tile are computed once for all kernels."""
    products: list[int] = []
    cosines = dhsk.HeatKernel.cosines

    def counted(kernel: Any, *given: Any) -> Any:
        products.append(1)
        return cosines(kernel, *given)

    grams = dhsk.compute_gram(counts(N, DIM), SEVERAL, tile=TILE)
    monkeypatch.setattr(dhsk.HeatKernel, "cosines", counted)
    dhsk.maximum_mean_discrepancy(grams, np.arange(N) % 2, 20)
    assert len(products) == grams[0].tiling.n_tiles


@pytest.mark.slow
def test_the_p_value_of_several_kernels_is_exact() -> None:
    """Of groups of one distribution, a twentieth is below 1/20, whatever the kernels."""
    p_values, tries = [], 200
    for seed in range(tries):
        X = np.random.default_rng(seed).poisson(1.0, (24, 8)) + 0.1
        kernels = [dhsk.HeatKernel(8, time) for time in (0.02, 0.2, 2.0)]
        grams = dhsk.compute_gram(X, kernels)
        p_values.append(dhsk.maximum_mean_discrepancy(grams, np.arange(24) < 9, 19, seed).p_value)
    rejected = np.count_nonzero(np.array(p_values) <= 0.05)
    error = np.sqrt(0.05 * 0.95 * tries)
    assert abs(rejected - 0.05 * tries) <= 4 * error  # one seed in ten thousand is further off


def test_a_constant_kernel_beside_others_decides_nothing(counts: Any) -> None:
    """At a large time all values are 1 to rounding: it has no spread to be scaled by."""
    X = counts(N, DIM)
    X[:20, 0] += 3.0
    constant = dhsk.HeatKernel(DIM, 50.0)
    grams = dhsk.compute_gram(X, [constant, HEAT], tile=TILE)
    found = dhsk.maximum_mean_discrepancy(grams, np.arange(N) < 20, 99)
    assert (found.kernel, found.statistics[0], found.p_value) == (1, 0.0, 0.01)


def test_matrices_of_other_samples_are_refused(counts: Any) -> None:
    """Or none, or scaled views: nothing is read together."""
    grams = dhsk.compute_gram(counts(N, DIM), SEVERAL, tile=TILE)
    other = dhsk.compute_gram(counts(N, DIM), HEAT, tile=TILE)
    groups = np.arange(N) % 2
    for matrices in ([grams[0], other], [G.normalized() for G in grams]):
        with pytest.raises(dhsk.InputError, match="matrices are not read from the same products"):
            dhsk.maximum_mean_discrepancy(matrices, groups)
    with pytest.raises(dhsk.InputError, match="no matrix was given: pass one"):
        dhsk.maximum_mean_discrepancy([], groups)
    centred = [G.centered() for G in grams]
    assert dhsk.maximum_mean_discrepancy(centred, groups, 9) == dhsk.maximum_mean_discrepancy(
        grams, groups, 9
    )
