"""Passes over tiles: each tile once, the sums of numpy, the same bits wherever they are made."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution.threads import Threads
from dhsk.gram.passes import STRIP_ROWS, diagonal, grouped, multiply
from dhsk.gram.storage.tiling import Tiling
from dhsk.gram.tiles import Group, TileSource, TileValues

N, M, TILE = 53, 31, 10

ROUNDING = 4 * N * np.finfo(float).eps
"""Two sums of at most N products of numbers below 2, in different orders."""


class Tiles:
    """Tiles of matrices in memory, and how often each was asked for."""

    def __init__(self, *matrices: Any, tiling: Tiling) -> None:
        self.kernels = matrices
        self.tiling = tiling
        self.asked: Counter[tuple[int, int]] = Counter()
        self._lock = threading.Lock()
        self.parts: list[tuple[slice, slice]] = []

    def part(self, rows: slice, cols: slice) -> "Tiles":
        """Give the same tiles, of which tasks ask for those within these rows and columns."""
        self.parts.append((rows, cols))
        return self

    def __call__(self, group: Group, **_: bool) -> Iterator[TileValues]:
        """Give the tiles of a group, all kernels of a tile before the next."""
        for i, j in group:
            with self._lock:
                self.asked[i, j] += 1
            rows, cols = self.tiling.rows(i), self.tiling.cols(j)
            for number, K in enumerate(self.kernels):
                yield TileValues(i, j, number, rows, cols, K[rows, cols])


def square(rng: np.random.Generator, n: int = N) -> Any:
    """A symmetric matrix."""
    A = rng.uniform(-1, 1, (n, n))
    return (A + A.T) / 2


@pytest.mark.parametrize("edge", [1, 2, 3, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_groups_are_squares_of_tiles(symmetric: bool, edge: int) -> None:
    """Every tile is in one group, whose tiles all lie in one square of the given edge."""
    tiles = list(Tiling(N, N, TILE, symmetric).tiles())
    groups = grouped(tiles, edge)
    assert sorted(tile for group in groups for tile in group) == tiles
    squares = [{(i // edge, j // edge) for i, j in group} for group in groups]
    assert all(len(own) == 1 for own in squares)
    assert len(set().union(*squares)) == len(groups)
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
def test_products_of_several_kernels(rng: Any, columns: tuple[int, ...], transposed: bool) -> None:
    """Those of numpy, from one look at each tile of the upper triangle."""
    tiling = Tiling(N, N, TILE, symmetric=True)
    source: Any = Tiles(square(rng), square(rng), tiling=tiling)
    V = rng.uniform(-1, 1, (N, *columns))
    found = multiply(source, tiling, V, np.float64, transposed=transposed)
    expected = [K @ V for K in source.kernels]
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING)
    assert source.asked == Counter(dict.fromkeys(tiling.tiles(), 1))


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_a_rectangle(rng: Any, transposed: bool) -> None:
    """Without symmetry no tile is mirrored."""
    tiling = Tiling(N, M, TILE, symmetric=False)
    source: Any = Tiles(rng.uniform(-1, 1, (N, M)), tiling=tiling)
    A = source.kernels[0].T if transposed else source.kernels[0]
    V = rng.uniform(-1, 1, (A.shape[1], 2))
    found = multiply(source, tiling, V, np.float64, transposed=transposed)
    np.testing.assert_allclose(found, [A @ V], rtol=0, atol=ROUNDING)
    assert source.asked == Counter(dict.fromkeys(tiling.tiles(), 1))


@pytest.mark.parametrize(
    ("stored", "given", "summed"),
    [("f4", "f4", "f4"), ("f4", "f8", "f8"), ("f8", "f4", "f8"), ("f4", "i8", "f8")],
)
def test_sums_are_of_the_wider_type(rng: Any, stored: str, given: str, summed: str) -> None:
    """Tiles of float32 lose nothing more under float64 vectors, in strips of some rows."""
    n = STRIP_ROWS + 40
    tiling = Tiling(n, n, n - 5, symmetric=True)
    source: Any = Tiles(square(rng, n).astype(stored), tiling=tiling)
    V = rng.integers(-9, 9, n).astype(given)
    found = multiply(source, tiling, V, stored)
    assert found.dtype == summed
    exact = source.kernels[0].astype(np.float64) @ V
    rounding = n * 9 * n * np.finfo(summed).eps
    np.testing.assert_allclose(found[0], exact, rtol=0, atol=rounding)


@pytest.mark.parametrize("shape", [(N,), (M + 1, 2), (), (M, 1, 1)])
def test_vectors_of_another_length_are_refused(shape: tuple[int, ...]) -> None:
    """In words, before any tile is read."""
    tiling = Tiling(N, M, TILE, symmetric=False)
    source: Any = Tiles(np.zeros((N, M)), tiling=tiling)
    with pytest.raises(dhsk.InputError, match=r"cannot multiply \(53, 31\) by \("):
        multiply(source, tiling, np.zeros(shape), np.float64)
    assert not source.asked


@pytest.mark.parametrize("m", [N, M])
def test_diagonal_comes_from_its_own_tiles(rng: Any, m: int) -> None:
    """Of a square and of a rectangle; no tile beside it is read."""
    tiling = Tiling(N, m, TILE, symmetric=m == N)
    source: Any = Tiles(rng.uniform(size=(N, m)), rng.uniform(size=(N, m)), tiling=tiling)
    source.kernels = source.kernels[:1]
    np.testing.assert_array_equal(diagonal(source, tiling), np.diagonal(source.kernels[0]))
    assert set(source.asked) == {(i, i) for i in range(tiling.n_tiles) if i * TILE < m}


@pytest.mark.slow
def test_sums_have_the_same_bits_wherever_they_are_made(
    counts: Any, client: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    """On threads in any number, and on the workers of a client, whichever task ends first.

    Tiles of two rows make ten groups, and as many sums.
    """
    kernels = [dhsk.CosineKernel(), dhsk.HeatKernel(12, 0.1)]
    made = dhsk.compute_gram(counts(N, 12), kernels, store=tmp_path / "g", tile=2)
    source, tiling = TileSource(tmp_path / "g", kernels), made[0].header.tiling
    V = np.random.default_rng(0).normal(size=(N, 3))
    on_workers = multiply(source, tiling, V, np.float64)
    for cores in (1, 4):
        here_on = nullcontext(Threads(cores))
        monkeypatch.setattr("dhsk.gram.passes.current_executor", lambda here_on=here_on: here_on)
        here = multiply(source, tiling, V, np.float64)
        np.testing.assert_array_equal(here, on_workers)
    dense = np.stack([np.asarray(G) for G in made])
    np.testing.assert_allclose(on_workers, dense @ V, rtol=0, atol=4 * ROUNDING)
