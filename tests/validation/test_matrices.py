"""Matrices of the kernels of a grid: few stores, the kernels' values, keys that tell them apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk
from dhsk.execution.run import Run
from dhsk.progress import ignore
from dhsk.validation.input import open_square
from dhsk.validation.matrices import KernelMatrices

HEATS = [dhsk.HeatKernel.at_scale(12, scale) for scale in (0.5, 1.0)]
GAUSSIAN = dhsk.GaussianKernel(2.0)
SMOOTHED = [dhsk.SmoothedKernel(dhsk.CosineKernel(), alpha) for alpha in (0.5, 1.0)]

EPS = np.finfo(float).eps


@pytest.fixture
def X(counts: Any) -> Any:
    """Counts."""
    return counts(30, 12)


def matrices(
    given: Any, folder: Path, *, precomputed: bool = False, report: Any = ignore
) -> KernelMatrices:
    """What gives the matrices, with its stores in a folder."""
    square = open_square(given, precomputed=precomputed)
    return KernelMatrices(square, "hyperspherical", "center", Run(store=folder, report=report))


def entries(matrix: Any) -> Any:
    """The whole matrix of a source."""
    return matrix.source.product(np.eye(matrix.source.n))


def test_kernels_of_the_same_products_share_a_store(X: Any, tmp_path: Path) -> None:
    """One of cosines, one of inner products, and one for each kernel that needs its own."""
    given = matrices(X, tmp_path)
    kernels = [*HEATS, dhsk.CosineKernel(), GAUSSIAN, dhsk.LinearKernel(), *SMOOTHED]
    found = given.of(kernels)
    stores = sorted(path.name.partition("-")[0] for path in tmp_path.iterdir())
    assert stores == ["cosine", "linear", "smoothed", "smoothed"]
    rows = dhsk.hyperspherical_map(X)
    for kernel, matrix in zip(kernels, found, strict=True):
        expected = np.asarray(kernel(rows if kernel.spherical else X))
        np.testing.assert_allclose(
            entries(matrix), expected, rtol=0, atol=1e3 * EPS * np.abs(expected).max()
        )
        assert matrix.names.kernel == kernel.name


def test_stores_are_computed_once(X: Any, tmp_path: Path) -> None:
    """Another call takes what the first one made, and the same object does not look again."""
    events: list[Any] = []
    given = matrices(X, tmp_path, report=events.append)
    assert given.made is None
    given.of(HEATS[:1])
    assert events
    events.clear()
    given.of(HEATS)
    assert not events
    (chunk,) = (tmp_path / "cosine" / "gram" / "c").glob("*/*")
    written = chunk.stat().st_mtime_ns
    for again in (given, matrices(X, tmp_path)):
        again.of(HEATS)
        assert chunk.stat().st_mtime_ns == written
        assert again.made is not None
        assert again.made.header.n_rows == 30


def test_keys_tell_matrices_apart(X: Any, tmp_path: Path) -> None:
    """By kernel and by samples; the same ones have the same key, wherever they are stored."""
    keys = [str(m.key) for m in matrices(X, tmp_path / "a").of([*HEATS, GAUSSIAN])]
    others = [str(m.key) for m in matrices(X[::-1].copy(), tmp_path / "b").of(HEATS)]
    assert len({*keys, *others}) == 5
    again = [str(m.key) for m in matrices(X.copy(), tmp_path / "c").of([*HEATS, GAUSSIAN])]
    assert again == keys


def test_a_gram_matrix_gives_other_kernels_of_itself(X: Any, tmp_path: Path) -> None:
    """Without a store of its own."""
    G = dhsk.compute_gram(X, dhsk.CosineKernel())
    given = matrices(G, tmp_path)
    assert given.gram(G.kernel) is G
    assert given.made is G
    np.testing.assert_array_equal(entries(given.of(HEATS)[0]), G.with_kernel(HEATS[0]) @ np.eye(30))
    assert not list(tmp_path.iterdir())


def test_a_precomputed_matrix_is_taken_as_it_is(X: Any, tmp_path: Path) -> None:
    """Whatever the kernels, it is one; its content is its key."""
    K = X @ X.T
    given = matrices(K, tmp_path, precomputed=True)
    (found,) = given.of(HEATS)
    np.testing.assert_array_equal(entries(found), K)
    assert (found.names.kernel, found.names.label) == ("precomputed", "precomputed")
    assert given.made is None
    changed = K.copy()
    changed[3, 4] = changed[4, 3] = 0.5
    assert matrices(changed, tmp_path, precomputed=True).of(HEATS)[0].key != found.key
    assert matrices(K.copy(), tmp_path, precomputed=True).of(HEATS)[0].key == found.key
