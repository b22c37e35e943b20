"""Maximum mean discrepancy: its definitions, its null distribution, and what it needs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.gram.moments import moments

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
    with pytest.raises(dhsk.BudgetError, match="eight permutations of 53 samples need 212 B but 1"):
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
