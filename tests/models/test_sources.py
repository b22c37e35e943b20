"""Parts and products of matrices from every source, against the whole matrix."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.gram.matrix import GramMatrix
from dhsk.models.class_blocks import ClassBlocks
from dhsk.models.classes_source import ClassesSource
from dhsk.models.gram_source import GramSource, RowsCache, row_bytes
from dhsk.models.sources import RowsSource
from dhsk.samples import open_samples
from dhsk.solvers.smo import padded
from dhsk.solvers.sources import ArraySource, Combination, Source

HEAT = dhsk.HeatKernel.at_scale(40, 0.6)
LINEAR = dhsk.LinearKernel()

N = 137

CODES = np.where(np.arange(N) % 10 < 9, np.random.default_rng(4).integers(0, 3, N), -1)
"""Classes of the samples, some left out."""

TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}
"""Entries are sums of 40 products rounded in this type; the heat kernel is as steep as 1 / time."""


def samples(n: int = N) -> Any:
    """Counts with many zeros."""
    rng = np.random.default_rng(3)
    X = rng.poisson(0.7, size=(n, 40)).astype(np.float64)
    X[:, 0] += 1.0
    return X


def array(_path: Path) -> tuple[Source, Any]:
    """Matrix in memory."""
    K = HEAT(dhsk.hyperspherical_map(samples()))
    return ArraySource(K), K


def array32(path: Path) -> tuple[Source, Any]:
    """The same in float32, memory-mapped."""
    K = array(path)[1].astype(np.float32)
    np.save(path / "K.npy", K)
    return ArraySource(np.load(path / "K.npy", mmap_mode="r")), K.astype(np.float64)


def rows(_path: Path) -> tuple[Source, Any]:
    """Samples in memory."""
    mapped = dhsk.hyperspherical_map(samples())
    return RowsSource(mapped, HEAT), HEAT(mapped)


def rows32(path: Path) -> tuple[Source, Any]:
    """Samples in float32."""
    mapped = dhsk.hyperspherical_map(samples()).astype(np.float32)
    return RowsSource(mapped, HEAT), rows(path)[1]


def csr_rows(path: Path) -> tuple[Source, Any]:
    """Sparse samples."""
    return RowsSource(csr_array(dhsk.hyperspherical_map(samples())), HEAT), rows(path)[1]


def linear_rows(_path: Path) -> tuple[Source, Any]:
    """A kernel whose diagonal is not 1."""
    return RowsSource(samples(), LINEAR), samples() @ samples().T


def stored(path: Path) -> tuple[Source, Any]:
    """Tiles of the kernel itself, several a side."""
    G = dhsk.compute_gram(samples(), HEAT, store=path / "g", tile=32)
    return GramSource(G), rows(path)[1]


def stored32(path: Path) -> tuple[Source, Any]:
    """Tiles in float32."""
    G = dhsk.compute_gram(samples(), HEAT, store=path / "g", tile=32, dtype="float32")
    return GramSource(G), rows(path)[1]


def derived(path: Path) -> tuple[Source, Any]:
    """Tiles of cosines, of which the kernel is computed."""
    G = dhsk.compute_gram(csr_array(samples()), dhsk.CosineKernel(), store=path / "g", tile=32)
    return GramSource(G.with_kernel(HEAT)), rows(path)[1]


def held(path: Path) -> tuple[Source, Any]:
    """The same with the cosines in memory."""
    G = derived(path)[0].G  # type: ignore[attr-defined]  # it is a `GramSource`
    return GramSource(G, ClassBlocks(G.stored(), CODES)), rows(path)[1]


def on_demand(path: Path) -> tuple[Source, Any]:
    """No tiles at all."""
    G = dhsk.compute_gram(samples(), HEAT, tile=32)
    return GramSource(G), rows(path)[1]


def linear_tiles(path: Path) -> tuple[Source, Any]:
    """Tiles of a kernel whose diagonal is not 1."""
    G = dhsk.compute_gram(samples(), LINEAR, sphere_map="identity", store=path / "g", tile=32)
    return GramSource(G), samples() @ samples().T


def cosines_on_demand(_path: Path) -> tuple[Source, Any]:
    """A linear kernel of sparse samples, without tiles."""
    mapped = dhsk.hyperspherical_map(samples())
    G = dhsk.compute_gram(csr_array(samples()), dhsk.CosineKernel(), tile=32)
    return GramSource(G), mapped @ mapped.T


SOURCES = [
    array, array32, rows, rows32, csr_rows, linear_rows,
    stored, stored32, derived, held, on_demand, linear_tiles, cosines_on_demand,
]  # fmt: skip


@pytest.fixture(scope="module", params=SOURCES, ids=lambda made: made.__name__)
def source(request: Any, tmp_path_factory: Any) -> tuple[Source, Any]:
    """A source and its matrix."""
    made: tuple[Source, Any] = request.param(tmp_path_factory.mktemp("source"))
    return made


def close(found: Any, expected: Any, dtype: Any, size: float = 1.0) -> None:
    """Equal but for rounding in the type of the entries."""
    size *= max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * size)


@pytest.mark.slow(beyond=42)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, N])
def test_block(source: tuple[Source, Any], count: int) -> None:
    """Some samples in any order: padded as the solver takes it, the padding finite."""
    found, K = source
    members = np.random.default_rng(count).permutation(N)[:count]
    block = found.block(members)
    assert block.shape == (count, padded(count))
    assert block.dtype == found.dtype
    assert block.flags.c_contiguous
    assert np.isfinite(block).all()
    close(block[:, :count], K[np.ix_(members, members)], found.dtype)


def test_block_is_symmetric(source: tuple[Source, Any]) -> None:
    """The solver reads rows where it means columns."""
    members = np.arange(N)[::2]
    block = source[0].block(members)[:, : len(members)]
    close(block, block.T, source[0].dtype)


def test_panels(source: tuple[Source, Any]) -> None:
    """Every entry between some samples and groups of samples of one class, once."""
    found, K = source
    rows = np.flatnonzero(CODES >= 0)[::3]
    groups = [np.flatnonzero(c == CODES)[:n] for c, n in ((2, 50), (0, 1), (1, 33), (0, 17))]
    filled = [np.full((len(rows), len(group)), np.nan) for group in groups]
    for panel in found.panels(rows, groups):
        part = np.ix_(panel.rows, panel.columns)
        assert np.isnan(filled[panel.group][part]).all()
        filled[panel.group][part] = panel.values
    for values, group in zip(filled, groups, strict=True):
        close(values, K[np.ix_(rows, group)], found.dtype)


def test_product(source: tuple[Source, Any]) -> None:
    """With several vectors, in float64; of a vector of zeros it is zero."""
    found, K = source
    V = np.random.default_rng(5).normal(size=(N, 3))
    V[:, 1] = 0
    product = found.product(V)
    assert product.shape == (N, 3)
    assert product.dtype == np.float64
    close(product, K @ V, found.dtype, np.abs(V).sum())
    assert not product[:, 1].any()
    close(found.product(V[:, :1]), K @ V[:, :1], found.dtype, np.abs(V).sum())


@pytest.mark.parametrize("edge", [7, 1024])
def test_combine(source: tuple[Source, Any], edge: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of some samples at others, with several coefficients each, whatever the blocks."""
    found, K = source
    for name in ("COMBINED_ROWS", "COMBINED_COLUMNS", "_FEWEST_ROWS"):
        monkeypatch.setattr(f"dhsk.models.combined.{name}", edge)
    monkeypatch.setattr("dhsk.models.gram_source.SPAN_BYTES", 1)
    rng = np.random.default_rng(7)
    parts = [
        Combination(np.flatnonzero(rng.random(N) < a), np.flatnonzero(rng.random(N) < b), coef)
        for a, b, coef in ((0.5, 0.2, 1), (1.0, 0.1, 3), (0.1, 1.0, 2))
    ]
    parts = [replace(p, coef=rng.normal(size=(len(p.columns), p.coef))) for p in parts]
    for part, values in zip(parts, found.combine(parts), strict=True):
        expected = K[np.ix_(part.rows, part.columns)] @ part.coef
        close(values, expected, found.dtype, np.abs(part.coef).sum())


@pytest.mark.filterwarnings("ignore::dhsk.errors.ZeroRowsWarning")
def test_combinations_of_a_linear_kernel_have_no_kernel_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """But by the sum of the columns; unless zero rows are at the centre, which is no sum."""
    calls: list[int] = []
    compute = dhsk.CosineKernel.of_rows

    def counted(kernel: Any, *given: Any) -> Any:
        calls.append(1)
        return compute(kernel, *given)

    part = Combination(np.arange(N), np.arange(0, N, 3), np.ones((len(range(0, N, 3)), 2)))
    for X in (samples(), samples() * (np.arange(N)[:, None] != 5)):
        source = GramSource(dhsk.compute_gram(csr_array(X), dhsk.CosineKernel(), tile=32))
        mapped = dhsk.hyperspherical_map(X)
        with monkeypatch.context() as patched:
            patched.setattr(dhsk.CosineKernel, "of_rows", counted)
            (found,) = source.combine([part])
        expected = mapped @ mapped[part.columns].T @ part.coef
        close(found, expected, found.dtype, len(part.columns))
        assert bool(calls) == (not X[5].any())


def test_matrix_for_a_task(source: tuple[Source, Any]) -> None:
    """What a task is given has the same block, also after it was sent to a worker."""
    found, K = source
    members = np.random.default_rng(8).permutation(N)[:50]
    own, inside = pickle.loads(pickle.dumps(found.for_task(members)))
    close(own.block(inside)[:, :50], K[np.ix_(members, members)], found.dtype)


def test_samples_of_a_task_in_single(source: tuple[Source, Any]) -> None:
    """Entries of float64 rows in float32, of some samples alone; of nothing else."""
    (found, K), members = source, np.arange(N)[:3:-1]
    single = found.in_single(members)
    if not isinstance(found, RowsSource) or found.dtype == np.float32:
        assert single is None
        return
    assert single is not None
    assert single.dtype == np.float32
    block = single.block(np.arange(len(members)))[:, : len(members)]
    assert block.dtype == np.float32
    close(block, K[np.ix_(members, members)], block.dtype)


@pytest.mark.parametrize(
    ("dim", "kernel"), [(N, dhsk.CosineKernel()), (3, dhsk.PolynomialKernel(degree=3, offset=1.0))]
)
def test_what_has_nothing_in_single(dim: int, kernel: Any) -> None:
    """Rows that take more than their matrix saves, and kernels whose values would be wrong."""
    X = np.random.default_rng(0).random((N, dim))
    X /= np.linalg.norm(X, axis=1)[:, None]
    assert RowsSource(X, kernel).in_single(np.arange(N)) is None


def test_diagonal(source: tuple[Source, Any]) -> None:
    """In float64."""
    found, K = source
    assert found.n == N
    assert found.diagonal().shape == (N,)
    assert found.diagonal().dtype == np.float64
    close(found.diagonal(), np.diag(K), found.dtype)


@pytest.mark.parametrize("edge", [20, 50, 64, N])
@pytest.mark.parametrize("made", [array, array32, rows, csr_rows, linear_rows])
def test_edges_of_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: Any, edge: int
) -> None:
    """However the matrix is cut, nothing is left out or counted twice."""
    monkeypatch.setattr("dhsk.models.sources.EDGE", edge)
    found, K = made(tmp_path)
    V = np.random.default_rng(6).normal(size=(N, 2))
    close(found.product(V), K @ V, found.dtype, np.abs(V).sum())
    members = np.arange(N)[::-1]
    close(found.block(members)[:, :N], K[::-1, ::-1], found.dtype)
    close(found.diagonal(), np.diag(K), found.dtype)


def test_products_of_float32_entries_are_summed_in_float64() -> None:
    """A sum in float32 would lose the small entries beside the large one."""
    K = np.full((3, 3), 1.0, np.float32)
    V = np.array([[1.0], [1e-9], [-1.0]])
    np.testing.assert_allclose(ArraySource(K).product(V), 1e-9, rtol=1e-6)


def test_samples_of_files_come_mapped(tmp_path: Path) -> None:
    """Of a matrix made from a file, blocks are those of its kernel on the mapped samples."""
    np.save(tmp_path / "X.npy", samples())
    G = dhsk.compute_gram(open_samples(tmp_path / "X.npy"), HEAT, store=tmp_path / "g", tile=32)
    members = np.array([130, 3, 64, 5])
    mapped = dhsk.hyperspherical_map(samples()[members])
    close(GramSource(G).block(members)[:, :4], HEAT(mapped), G.dtype)


@pytest.mark.parametrize("sparse", [False, True])
def test_kept_classes_give_the_same_blocks(sparse: bool) -> None:
    """Two whole classes from what is kept, anything else computed; asked twice, the same."""
    mapped = dhsk.hyperspherical_map(csr_array(samples()) if sparse else samples())
    codes = np.random.default_rng(3).integers(0, 3, N)
    plain, kept = RowsSource(mapped, HEAT), ClassesSource(mapped, HEAT, codes)
    of_class = [np.flatnonzero(codes == c) for c in range(3)]
    whole = [np.concatenate([of_class[a], of_class[b]]) for a, b in ((0, 1), (1, 2))]
    for members in (*whole, whole[0], whole[0][3:], of_class[1]):
        expected = plain.block(members)
        atol = TOLERANCE[expected.dtype]
        np.testing.assert_allclose(kept.block(members), expected, rtol=0, atol=atol)
    sizes = np.bincount(codes)
    assert ClassesSource.bytes_of(sizes.tolist(), 8) >= 8 * (sizes**2).sum()


@pytest.mark.parametrize("sparse", [False, True])
def test_values_are_the_same_bits_on_any_number_of_threads(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are the same, and are added in the same order."""
    monkeypatch.setattr("dhsk.models.sources.EDGE", 32)
    X = dhsk.hyperspherical_map(samples(150))
    rows = csr_array(X) if sparse else X
    kernel, codes = dhsk.HeatKernel(dim=40, time=0.1), np.arange(150) % 3
    members = np.concatenate([np.flatnonzero(codes == c) for c in (0, 2)])
    V = np.random.default_rng(0).normal(size=(150, 3))
    with one_blas_thread():
        alone, several = RowsSource(rows, kernel), RowsSource(rows, kernel, threads=4)
        np.testing.assert_array_equal(alone.block(members), several.block(members))
        np.testing.assert_array_equal(alone.product(V), several.product(V))
        kept = ClassesSource(rows, kernel, codes), ClassesSource(rows, kernel, codes, threads=4)
        np.testing.assert_array_equal(*(source.block(members) for source in kept))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_matrices_of_classes_that_are_kept(dtype: str) -> None:
    """They give blocks of some samples and combinations, and are computed when that pays."""
    mapped = dhsk.hyperspherical_map(samples()).astype(dtype)
    codes = np.maximum(CODES, 0)
    kept, other = ClassesSource(mapped, HEAT, codes), RowsSource(mapped, HEAT)
    members = np.concatenate([np.flatnonzero(codes == c)[::2] for c in (0, 2)])
    own = np.flatnonzero(codes == 1)
    rng = np.random.default_rng(9)
    parts = [
        Combination(own[::2], own[1::3], rng.normal(size=(len(own[1::3]), 2))),
        Combination(own, np.flatnonzero(codes == 2), rng.normal(size=((codes == 2).sum(), 1))),
    ]
    for share, keeps in ((0.0, False), (0.1, False), (1.0, True), (0.1, True)):
        kept.expect_columns(share)
        assert bool(kept._kept) == keeps
        close(kept.block(members), other.block(members), mapped.dtype)
        found = np.full((len(members), len(own)), np.nan)
        for panel in kept.panels(members, [own]):
            found[np.ix_(panel.rows, panel.columns)] = panel.values
        within = np.full((len(own), len(own)), np.nan)
        for panel in kept.panels(own, [own]):
            within[np.ix_(panel.rows, panel.columns)] = panel.values
        close(found, HEAT(mapped[members], mapped[own]), mapped.dtype)
        close(within, HEAT(mapped[own], mapped[own]), mapped.dtype)
        for a, b, part in zip(kept.combine(parts), other.combine(parts), parts, strict=True):
            close(a, b, mapped.dtype, np.abs(part.coef).sum())
    assert sorted(kept._kept) == [0, 1, 2]


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_kept(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order that was asked for; what is there is not read again, up to some memory."""
    X = csr_array(samples()) if sparse else samples()
    G = dhsk.compute_gram(X, HEAT, tile=32)
    read: list[int] = []
    staged = GramMatrix.staged_rows

    def watched(self: Any, rows: Any) -> Any:
        read.append(len(rows))
        return staged(self, rows)

    monkeypatch.setattr(GramMatrix, "staged_rows", watched)
    source, some = GramSource(G), np.array([4, 3, 90])
    for _ in range(2):
        K = source.block(some)[:, :3]
        close(K, HEAT(dhsk.hyperspherical_map(samples())[some]), G.dtype)
    assert read == [X.shape[0]]  # few bytes are all read at once
    read.clear()
    monkeypatch.setattr("dhsk.models.gram_source.DENSE_CHUNK_BYTES", 0)
    cache = RowsCache(G)
    first, second = np.array([5, 100, 3, 77]), np.array([77, 5])
    for chosen, count in ((first, 4), (second, 4), (np.array([9, 3]), 4 + 5)):
        found = cache.take(chosen)
        np.testing.assert_array_equal(as_dense(found), as_dense(staged(G, chosen)))
        assert sum(read) == count
    monkeypatch.setattr("dhsk.models.gram_source.KEPT_BYTES", 1)
    for _ in range(2):
        np.testing.assert_array_equal(as_dense(cache.take(first)), as_dense(staged(G, first)))
    cache.take(np.array([1, 2]))
    assert sum(read) == 9 + 2  # of the first two nothing was lacking
    cache.take(first)
    assert sum(read) == 11 + 4


def test_samples_of_a_task_travel_as_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those to look at, and those of each part, cost a byte a sample at most and not sixteen."""
    n = 4000
    G = dhsk.compute_gram(samples(n), HEAT)
    sent: list[int] = []

    class Watched(Threads):
        def run(self, function: Any, tasks: Any, *, ordered: bool = False) -> Any:
            tasks = list(tasks)
            sent.extend(len(pickle.dumps(task[1:-1])) for task in tasks)
            return super().run(function, tasks, ordered=ordered)

    @contextmanager
    def watched() -> Iterator[Threads]:
        yield Watched(1)

    monkeypatch.setattr("dhsk.models.gram_source.current_executor", watched)
    monkeypatch.setattr("dhsk.models.gram_source.SPAN_BYTES", 40 * 8 * 1500)
    monkeypatch.setattr("dhsk.models.gram_source.SPANS", 2)
    columns, other = np.arange(0, n, 400), np.arange(n // 2, n)
    parts = [Combination(own, columns, np.ones((10, 1))) for own in (np.arange(n), other)]
    source = GramSource(G)
    mapped = dhsk.hyperspherical_map(samples(n))
    for part, values in zip(parts, source.combine(parts), strict=True):
        close(values[:, 0], HEAT(mapped[part.rows], mapped[columns]).sum(axis=1), G.dtype, 10.0)
    assert len(sent) == 3
    assert sum(sent) < n


def test_few_entries_of_many_features_are_read_in_large_spans() -> None:
    """Of sparse samples the entries count, and not the features."""
    entries = np.random.default_rng(10).integers(1, 5, 4 * N)
    X = csr_array((entries * 1.0, (np.arange(4 * N) // 4, np.arange(4 * N) * 97 % 50_000)))
    sparse = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(X.shape[1], 0.6), tile=32)
    assert 4 * 12 <= row_bytes(sparse) <= 4 * 12 + 32
    dense = dhsk.compute_gram(samples(), HEAT, tile=32)
    assert row_bytes(dense) == dense.staged_rows(np.arange(1)).nbytes


def as_dense(rows: Any) -> Any:
    """Rows as an array."""
    return rows if isinstance(rows, np.ndarray) else rows.toarray()


@pytest.mark.parametrize("stored", [True, False])
def test_a_matrix_of_few_rows_is_approximated_by_them(
    stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read or computed, where the samples fit and are not many; not of a graph, which has none."""
    G = dhsk.compute_gram(samples(), "heat", store=tmp_path / "g" if stored else None, tile=16)
    source = GramSource(G)
    assert source.approximate(100) is None
    quick = source.approximate(10**6)
    assert quick is not None
    some = np.array([3, 1, 20])
    np.testing.assert_allclose(
        quick.block(some)[:, :3],
        G.submatrix(some, some),
        rtol=0,
        atol=1e-5,  # values up to 1
    )
    graph = dhsk.graph_gram(csr_array([[0.0, 1.0], [1.0, 0.0]]), "exponential", beta=0.1)
    assert GramSource(graph).approximate(10**6) is None
    monkeypatch.setattr("dhsk.models.gram_source.STEPPED_BYTES", 100)
    assert source.approximate(10**6) is None
