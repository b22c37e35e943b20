"""Predicted times, verdicts and limits, from rates that the tests make up."""

from dataclasses import replace
from typing import Any

import pytest

from dhsk.execution.resources import Resources
from dhsk.gram import plan as gram_plan
from dhsk.gram.plan import ENTRY_SECONDS, HUGE_TILE, LARGE_TILE, MANY_FILES, STARTS
from dhsk.gram.sides import GramSides
from dhsk.planning.fits import low_rank_seconds
from dhsk.planning.prediction import CSR_READ_BYTES, SAMPLE_WORK, START_SECONDS, Prediction
from dhsk.planning.rates import Line, Rates

RATES = Rates(
    float64=Line(1e-9, 1e-10),
    float32=Line(1e-9, 5e-11),
    sparse=Line(2e-8, 1e-8),
    stage=1e-8,
    write=1e9,
    read=2e9,
    write_work=5e-10,
    tasks=100.0,
    note="made up",
)
KERNEL = 2e-9
RESOURCES = Resources(workers=4, threads=4, memory=64 * 10**9)


def make_plan(n: int, dim: int, resources: Resources, **options: Any) -> gram_plan.GramPlan:
    """Plan of a matrix from numbers."""
    own = {k: options.pop(k) for k in ("n_cols", "nnz", "fullest", "overlap") if k in options}
    return gram_plan.make_plan(GramSides(n, dim, **own), resources, **options)


def predict(n: int = 50_000, dim: int = 400, rates: Rates = RATES, **options: Any) -> Prediction:
    """Prediction for four workers."""
    plan = make_plan(n, dim, RESOURCES, **{k: v for k, v in options.items() if k != "cores"})
    return Prediction(plan, rates, KERNEL, cores=options.get("cores"))


def test_compute_time_is_entries_times_rates() -> None:
    """An entry takes its multiply-adds, a write and its kernel, a tile two blocks of samples."""
    p = predict()
    entry = 1e-9 + 400 * 1e-10 + KERNEL
    samples = p.plan.tiling.n_tiles * 2 * p.plan.tiling.tile * 400 * 8 * SAMPLE_WORK
    assert p.compute == pytest.approx((p.plan.entries * entry + samples) / 4)
    halved = predict(product_dtype="float32")
    expected = p.plan.entries * (entry - 400 * 5e-11) + samples / 2
    assert halved.compute == pytest.approx(expected / 4)


def test_a_block_of_sparse_samples_reads_whole_chunks() -> None:
    """However few its entries are: of the numbers one chunk, and one of the indices."""
    p = predict(20_000, 10**6, nnz=20_000 * 100, tile=100)
    line = RATES.sparse(10**6 * 1e-4**2) + KERNEL
    samples = p.plan.tiling.n_tiles * 2 * CSR_READ_BYTES * SAMPLE_WORK
    assert p.compute == pytest.approx((p.plan.entries * line + samples) / 4)


def test_several_kernels_share_a_product() -> None:
    """Each of five kernels adds its pass only."""
    one, five = predict(tile=1000), predict(tile=1000, n_kernels=5)
    assert five.compute - one.compute == pytest.approx(one.plan.entries * 4 * KERNEL / 4)


def test_threads_beyond_the_cores_bring_nothing() -> None:
    """Four threads on two cores take as long as two."""
    assert predict(cores=2).compute == pytest.approx(2 * predict().compute)
    assert predict(cores=8).compute == predict().compute


def test_the_slower_of_processor_and_disk_sets_the_time() -> None:
    """Tiles are written while others are computed, so the times do not add."""
    quick = predict(rates=replace(RATES, write=1e15))
    writing = quick.plan.tile_bytes * RATES.write_work / 4
    assert quick.seconds == pytest.approx(quick.start + quick.compute + writing)
    slow = predict(rates=replace(RATES, write=1e7))
    assert slow.seconds == pytest.approx(slow.start + slow.plan.tile_bytes / 1e7)


def test_a_slow_scheduler_sets_the_time() -> None:
    """With one task in ten seconds, tasks are what it waits for."""
    p = predict(rates=replace(RATES, tasks=0.1))
    assert p.seconds == pytest.approx(p.start + 10 * p.plan.n_groups)


def test_the_rest_of_an_interrupted_run() -> None:
    """A quarter of the tiles takes a quarter of the time, and no staging."""
    p = predict()
    rest = replace(p, share=0.25, staged=True)
    assert rest.start == START_SECONDS < p.start
    assert rest.seconds - rest.start == pytest.approx((p.seconds - p.start) / 4)


def test_staging_counts_numbers_not_zeros() -> None:
    """Sparse samples of ten entries take ten numbers each, however wide they are."""
    p = predict(10_000, 10**6, nnz=10 * 10_000)
    row_bytes = 16 * 10 + 8
    expected = 10_000 * (10 * RATES.stage + row_bytes / RATES.write)
    assert p.start - START_SECONDS == pytest.approx(expected)


@pytest.mark.parametrize("read", [1e12, 4e9, 2e9])
def test_break_even_is_where_the_times_cross(read: float) -> None:
    """Storing is cheaper from that number of passes on, and not before."""
    p = predict(dim=2000, rates=replace(RATES, read=read))
    turn = p.break_even()
    assert turn is not None
    assert p.stored(turn) < p.recomputed(turn)
    assert turn == 1 or p.stored(turn - 1) >= p.recomputed(turn - 1)
    said = dict(p.table())["store or recompute"]
    passes = f" from {turn:,} passes over the matrix on" if turn > 1 else ""
    assert said == f"storing is faster{passes}"


def test_recomputing_always_pays_where_the_disk_is_slow() -> None:
    """No number of passes makes a disk worth its time that reads more slowly than one computes."""
    p = predict(rates=replace(RATES, read=1e6))
    assert p.break_even() is None
    assert p.recomputed(10**6) < p.stored(10**6)
    said = dict(p.table())["store or recompute"]
    assert said == "recomputing (store=None in Python) is faster"


def test_speeds_of_a_core() -> None:
    """An entry, a multiply-add of GEMM, and a sample: 400 numbers to check, 3,200 bytes to read."""
    found = predict().of_core
    entry = 1e-9 + 400 * 1e-10 + KERNEL
    expected = (entry, 1e-10, 400 * 1e-8 + 3200 / 2e9)
    assert (found.entry, found.product, found.sample) == pytest.approx(expected)
    single = predict().in_single(1e-9).of_core
    expected = (2e-9 + 400 * 5e-11, 5e-11, 400 * 1e-8 + 1600 / 2e9)
    assert (single.entry, single.product, single.sample) == pytest.approx(expected)


def test_a_low_rank_by_where_its_data_are() -> None:
    """Read by one thread in every pass, or mapped once and then by all."""
    p = predict()
    n, cores, speeds = 50_000, 4, p.of_core
    found = [
        p.seconds_of_low_rank(100, 5, way)
        for way in ("features in memory", "samples read in every pass", "on workers")
    ]
    mapped = replace(speeds, sample=3200 * SAMPLE_WORK)
    assert found == [
        low_rank_seconds(n, 100, 5, 1, cores, speeds),
        low_rank_seconds(n, 100, 5, 1, cores, speeds, 1),
        n * speeds.sample + low_rank_seconds(n, 100, 5, 1, cores, mapped, cores),
    ]


def test_a_store_that_does_not_fit_has_no_time() -> None:
    """Nor limits of its disk and its files but that."""
    p = predict(n=10**6)
    assert set(dict(p.table())) == {"time", "store or recompute", "speeds"}
    assert {"disk", "files"} & set(dict(p.binding()))
    full = replace(p, free=10**9)
    assert set(dict(full.table())) == {"speeds"}
    assert set(dict(full.binding())) == {"free disk"}


def test_tasks_of_many_workers_keep_below_what_a_scheduler_starts() -> None:
    """Of a million samples on 1,000 workers: less than 300 a second at 4 ns an entry."""
    plan = make_plan(10**6, 100, Resources(1000, 1000, 10**13))
    assert plan.group == 4
    edge = plan.group * plan.tiling.tile
    assert 1000 / (edge**2 * ENTRY_SECONDS) < STARTS
    few = make_plan(10**6, 100, Resources(100, 100, 10**13))
    assert few.n_groups >= 3 * 100


def test_what_breaks_first() -> None:
    """By the rates: 512 tasks a second, or a disk that is read and written."""
    resources = Resources(1000, 1000, 10**13)
    p = Prediction(make_plan(10**6, 100, resources), replace(RATES, tasks=500.0), KERNEL)
    said = dict(p.on_paper())
    # The 1,000 make 8 bytes in 1 + 10 + 2 ns each.
    assert said["breaks first"] == "one disk that all write tiles to, from 1 worker on"
    full = replace(p, free=0)
    edge, entry = 4 * p.plan.tiling.tile, 13e-9
    assert said["tasks"].startswith(f"{p.plan.n_groups} of {edge:,} x {edge:,} entries, ")
    most = 2e9 * p.plan.entries * entry / p.plan.block_reads
    found = dict(full.on_paper())["breaks first"]
    assert found.startswith("one disk that all read samples from, from ")
    assert int(found.split()[-3]) == pytest.approx(most, rel=0.02)


@pytest.mark.parametrize(("density", "sparse"), [(0.005, True), (0.3, False)])
def test_flops_are_those_of_the_path_taken(density: float, sparse: bool) -> None:
    """Uniform samples share density^2 of the features; 48 times that decides."""
    dim = 20_000
    plan = make_plan(5000, dim, RESOURCES, nnz=int(5000 * dim * density))
    shared = dim * density**2
    assert plan.sparse_path is sparse
    assert plan.sides.shared == pytest.approx(shared)
    assert plan.flops == pytest.approx(2 * plan.entries * (shared if sparse else dim))
    words = "sparse products: 0.5 multiplications an entry" if sparse else "dense products of some"
    assert words in dict(plan.table())["arithmetic"]


def test_uneven_columns_can_turn_the_path() -> None:
    """The overlap that was measured wins over that of uniform samples."""
    options = {"nnz": 5000 * 100, "tile": 500}
    assert make_plan(5000, 20_000, RESOURCES, **options).sparse_path
    crowded = make_plan(5000, 20_000, RESOURCES, overlap=95.0, **options)
    assert crowded.product_path == "panels"
    assert crowded.multiply_adds == 5.0 + 2.0 * 20_000 / 1024 * 100
    assert "100 a sample" in dict(crowded.table())["arithmetic"]


def test_a_million_samples_on_64_workers() -> None:
    """Tiles grow until their files are few, tasks stay enough for all, and the disk is named."""
    plan = make_plan(10**6, 400, Resources(64, 64, 256 * 10**9))
    assert LARGE_TILE < plan.tiling.tile <= HUGE_TILE
    assert plan.stored_tiles < 2 * MANY_FILES
    assert plan.n_groups >= 2 * 64
    plan.check()
    limits = dict(Prediction(plan, RATES, KERNEL).limits())
    # Each of 64 threads makes 8 bytes in 1 + 400/10 + 2 ns: 11.9 GB/s for a disk of 1 GB/s.
    assert "the limit, the load is 12 times that" in limits["disk"]
    assert "no limit" in limits["scheduler"]
    assert "no limit" in limits["files"]
    assert "no limit" in limits["worker memory"]


def test_a_scheduler_that_is_asked_for_too_much_is_named() -> None:
    """Small tiles of few features ask for more tasks than it handles."""
    p = predict(100_000, 2, tile=100)
    assert p.plan.n_groups / p.compute > RATES.tasks
    limits = dict(p.limits())
    assert "the limit, the load is 71 times that, take larger tiles" in limits["scheduler"]
    assert "enough for 1 worker:" in limits["scheduler"]
    assert "take larger tiles" in limits["files"]


def test_the_number_of_workers_that_a_scheduler_serves() -> None:
    """As many as take a task in the time of all their tasks; larger tiles raise it."""
    small, large = predict(tile=200), predict(tile=400)
    each = small.compute * 4 / small.plan.n_groups  # seconds of a worker for a task
    assert small.served == pytest.approx(RATES.tasks * each)
    assert 2.5 < large.served / small.served < 4
    said = dict(small.limits())["scheduler"]
    assert f"{small.plan.n_groups:,} tasks of 4 x 4 tiles; it starts about 100 a second" in said
    assert "enough for 4 workers: close to the limit, take larger" in said


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.45, "no limit"), (0.9, "close to the limit, take larger tiles"), (1.1, "the limit, the")],
)
def test_more_workers_than_a_scheduler_serves(share: float, verdict: str) -> None:
    """Half of them is close to the limit."""
    served = predict(tile=200).served
    workers = round(share * served)
    plan = make_plan(50_000, 400, Resources(workers, workers, 10**12), tile=200)
    assert verdict in dict(Prediction(plan, RATES, KERNEL).limits())["scheduler"]


def test_workers_without_memory_are_named() -> None:
    """The row says that it is the limit, as the check does."""
    plan = make_plan(5000, 400, Resources(2, 2, 300_000_000))
    assert "the limit" in dict(Prediction(plan, RATES, KERNEL).limits())["worker memory"]


@pytest.mark.parametrize("n", [100_000, 200_000, 400_000, 10**6])
def test_files_stay_a_few_thousand(n: int) -> None:
    """Default tiles are the smallest of the large ones that keep the files few."""
    plan = make_plan(n, 400, Resources(64, 64, 10**12))
    edge = plan.tiling.tile
    assert plan.stored_tiles <= MANY_FILES or edge > HUGE_TILE // 2
    if edge > LARGE_TILE:
        assert make_plan(n, 400, RESOURCES, tile=edge // 2).stored_tiles > MANY_FILES
    assert make_plan(n, 400, RESOURCES, layout="none").tiling.tile <= LARGE_TILE
