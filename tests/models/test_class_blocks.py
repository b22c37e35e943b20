"""Stored values in memory by classes: the bits of the tiles, for every kernel derived from them."""

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.models.class_blocks import ClassBlocks
from dhsk.models.gram_source import GramSource
from dhsk.solvers.problems import make_pairs

N = 150
CODES = np.where(np.arange(N) % 7 > 0, np.arange(N) % 4, -1)


def matrix(folder: Path, kernel: Any, stored: Any, dtype: str) -> Any:
    """Matrix of a kernel, from stored values of its own or of another kernel."""
    X = np.random.default_rng(1).poisson(2.0, size=(N, 30)).astype(np.float64)
    X[100] = X[3]
    spherical: Any = "hyperspherical" if kernel.spherical else "identity"
    G = dhsk.compute_gram(X, stored, sphere_map=spherical, store=folder, tile=32, dtype=dtype)
    return G.with_kernel(kernel)


CASES = [
    (dhsk.HeatKernel.at_scale(30, 0.7), "cosine"),
    (dhsk.HeatKernel.at_scale(30, 0.7), dhsk.HeatKernel.at_scale(30, 0.7)),
    (dhsk.GaussianKernel(4.0), "linear"),
    (dhsk.PolynomialKernel(2, 1.0), "linear"),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("kernel", "stored"), CASES)
def test_values_are_those_of_the_tiles_bit_by_bit(
    kernel: Any, stored: Any, dtype: str, tmp_path: Path
) -> None:
    """Matrices of pairs, and panels, as without the values in memory."""
    G = matrix(tmp_path / "g", kernel, stored, dtype)
    held = GramSource(G, ClassBlocks(G.stored(), CODES))
    for pair in make_pairs(CODES, np.ones((1, N)), [1.0]):
        K = held.block(pair.members)
        expected = G.submatrix(pair.members, pair.members)
        assert K.dtype == expected.dtype
        np.testing.assert_array_equal(K[:, : len(K)], expected)
    rows = np.flatnonzero(CODES >= 0)[::5]
    groups = [np.flatnonzero(c == CODES)[1::3] for c in (3, 0)]
    for panel in held.panels(rows, groups):
        expected = G.submatrix(rows[panel.rows], groups[panel.group][panel.columns])
        np.testing.assert_array_equal(panel.values, expected)


def test_tiles_are_read_once_and_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By all pairs and kernels; another process reads them itself."""
    G = matrix(tmp_path / "g", dhsk.HeatKernel.at_scale(30, 0.7), "cosine", "float64")
    blocks = ClassBlocks(G.stored(), CODES)
    read: list[Any] = []
    submatrices = dhsk.GramMatrix.submatrices

    def counted(self: Any, *args: Any) -> Any:
        read.append(self)
        return submatrices(self, *args)

    monkeypatch.setattr(dhsk.GramMatrix, "submatrices", counted)
    pairs = make_pairs(CODES, np.ones((1, N)), [1.0])
    first = [GramSource(G, blocks).block(pair.members) for pair in pairs]
    other = G.with_kernel(dhsk.HeatKernel.at_scale(30, 1.5))
    GramSource(other, blocks).block(pairs[0].members)
    assert len(read) == 1
    sent = pickle.dumps([GramSource(G, blocks), GramSource(other, blocks)])
    assert len(sent) < 8 * N + 20_000
    one, two = pickle.loads(sent)
    np.testing.assert_array_equal(one.block(pairs[1].members), first[1])
    two.block(pairs[1].members)
    assert len(read) == 2


def test_other_samples_than_two_classes_are_read_from_tiles(tmp_path: Path) -> None:
    """Parts of a pair, as rounds take them."""
    G = matrix(tmp_path / "g", dhsk.HeatKernel.at_scale(30, 0.7), "cosine", "float64")
    held = GramSource(G, ClassBlocks(G.stored(), CODES))
    for members in (np.flatnonzero(CODES == 1), np.flatnonzero(CODES >= 0)[:40], np.arange(9)):
        K = held.block(members)[:, : len(members)]
        np.testing.assert_allclose(K, G.submatrix(members, members), rtol=1e-12)


def test_the_matrix_of_all_samples_keeps_nothing_beside_it(tmp_path: Path) -> None:
    """Nor what pairs kept before: the plan counts the stored values alone."""
    kernel = dhsk.HeatKernel.at_scale(30, 0.7)
    blocks = ClassBlocks(matrix(tmp_path / "g", kernel, "cosine", "float64").stored(), CODES)
    parts = [np.flatnonzero(c == CODES) for c in range(4)]

    def kept(*classes: int) -> int:
        """Bytes that are there after a matrix of some classes, and were not before."""
        before = tracemalloc.get_traced_memory()[0]
        assert blocks.whole(kernel, np.concatenate([parts[c] for c in classes])) is not None
        return tracemalloc.get_traced_memory()[0] - before

    blocks.whole(kernel, np.concatenate(parts))  # reads the values, and compiles
    square = 8 * len(parts[0]) ** 2
    tracemalloc.start()
    try:
        assert kept(0, 1) > square
        assert kept(0, 1, 2, 3) < -square
    finally:
        tracemalloc.stop()
