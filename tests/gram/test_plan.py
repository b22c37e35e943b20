"""The plan: tiles, bytes and memory from arithmetic alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array, save_npz

from dhsk.commands.cli import commands
from dhsk.errors import BudgetError, InputError
from dhsk.execution.resources import Resources
from dhsk.gram import plan as gram_plan
from dhsk.gram.memory import CHUNK_BYTES
from dhsk.gram.plan import LARGE_TILE
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.tiling import Tiling
from dhsk.kernels.rows import DENSE_BYTES
from dhsk.samples import open_samples
from dhsk.units import format_bytes, parse_bytes, parse_seconds

LAPTOP = Resources(workers=2, threads=2, memory=8 * 10**9)


def make_plan(n: int, dim: int, resources: Resources, **options: Any) -> gram_plan.GramPlan:
    """Plan of a matrix from numbers."""
    own = {k: options.pop(k) for k in ("n_cols", "nnz", "fullest", "overlap") if k in options}
    return gram_plan.make_plan(GramSides(n, dim, **own), resources, **options)


@pytest.mark.parametrize("n", [1, 7, 64, 1024, 1025, 4199])
@pytest.mark.parametrize("tile", [1, 64, 1000])
def test_upper_tiles_cover_every_pair_once(n: int, tile: int) -> None:
    """Every unordered pair of blocks is one tile, and their entries are those of the plan."""
    if n / tile > 200:
        tile = n // 100
    plan = make_plan(n, 10, LAPTOP, tile=tile)
    tiling = plan.tiling
    tiles = list(tiling.tiles())
    blocks = tiling.row_blocks
    assert len(tiles) == len(set(tiles)) == tiling.n_tiles == blocks * (blocks + 1) // 2
    sizes = [tiling.rows(i).stop - tiling.rows(i).start for i in range(blocks)]
    assert sum(sizes) == n
    assert plan.entries == sum(sizes[i] * sizes[j] for i, j in tiles)


def test_rectangular_matrix_has_all_tiles() -> None:
    """Without symmetry every block of rows meets every block of columns."""
    plan = make_plan(100, 10, LAPTOP, n_cols=35, tile=10)
    assert plan.tiling.n_tiles == 10 * 4
    assert plan.entries == 100 * 35
    assert plan.layout == "full"


def test_blocks_are_balanced() -> None:
    """1030 samples make two blocks of 515, not one of 1024 and one of 6 padded to 1024."""
    assert make_plan(1030, 10, LAPTOP).tiling.tile == 515


def test_many_samples_get_large_tiles() -> None:
    """From 16384 samples on the tiles are of the larger kind."""
    assert LARGE_TILE // 2 < make_plan(100_000, 400, LAPTOP).tiling.tile <= LARGE_TILE


def test_little_memory_makes_small_tiles() -> None:
    """The tile shrinks until its tasks fit, and the plan then passes its own check."""
    idle = LAPTOP.idle_bytes
    small = make_plan(100_000, 400, Resources(2, 2, idle + 30_000_000))
    assert small.tiling.tile < 512
    small.check()


def test_memory_that_cannot_do_is_refused_with_numbers() -> None:
    """The refusal names need and allowance."""
    plan = make_plan(5000, 400, Resources(2, 2, 300_000_000))
    with pytest.raises(
        BudgetError, match=r"needs [\d.]+ MiB \(processes .* but 286\.10 MiB are allowed: give"
    ):
        plan.check()


def test_full_disk_is_refused_with_numbers() -> None:
    """The refusal names the bytes of the store and the bytes that are free."""
    plan = make_plan(50_000, 400, LAPTOP)
    with pytest.raises(BudgetError, match=r"needs 9\.\d\d GiB on disk but only 0\.93 GiB are"):
        plan.check(disk_free=10**9)


def test_sparse_rows_count_their_entries_only() -> None:
    """Ten entries of a million features are 168 bytes a row."""
    plan = make_plan(1000, 1_000_000, LAPTOP, nnz=10_000)
    assert plan.row_bytes == 16 * 10 + 8


def test_task_memory_grows_with_tile_and_rows() -> None:
    """Larger tiles, wider rows and wider types cost more."""

    def task(tile: int = 512, dim: int = 100, **options: Any) -> int:
        return make_plan(10_000, dim, LAPTOP, tile=tile, **options).task_bytes

    assert task() < task(dim=200)
    assert task() < task(tile=513)
    single = task(dtype="float32", product_dtype="float32")
    assert single < task() < task(dtype="float32")  # the last converts a tile
    assert task() < task(layout="full")  # and this transposes one
    assert task() == task(n_kernels=7)  # they are written strip by strip
    assert task(dim=100_000, nnz=10**6) < task(dim=100_000)


def test_a_task_of_a_group_holds_more_samples_only() -> None:
    """Its tiles come one after the other, in the same arrays."""
    crowd = Resources(64, 64, 10**12)
    single = make_plan(2000, 10, crowd, tile=1000)
    several = make_plan(40_000, 10, LAPTOP, tile=1000)
    assert (single.group, several.group) == (1, 4)
    blocks = 6 * 1000 * 80  # rows and columns of three more tiles along the edge
    assert several.task_bytes - single.task_bytes == blocks


@pytest.mark.parametrize("product_dtype", ["float32", "float64"])
def test_dense_strips_are_counted_where_they_may_be(product_dtype: str) -> None:
    """Rows of dim/48 entries or more may take them: three, of 64 MiB, after chunks."""

    def temporary(entries: int) -> float:
        plan = make_plan(
            5000, 48_000, LAPTOP, nnz=5000 * entries, tile=500, dtype=product_dtype,
            product_dtype=product_dtype,
        )  # fmt: skip
        assert plan.sides.row_entries == entries
        product = 500**2 * np.dtype(product_dtype).itemsize
        return plan.task_bytes - product - 2 * plan.group * 500 * plan.row_bytes

    entry_bytes = np.dtype(product_dtype).itemsize + 8
    copies = 4 * 500 * (999 * entry_bytes + 8) + 16 * 500**2
    assert temporary(999) == pytest.approx(max(copies, CHUNK_BYTES), abs=1)
    assert temporary(1000) == pytest.approx(CHUNK_BYTES + 3 * DENSE_BYTES, abs=1)


@pytest.mark.parametrize(
    ("n", "dim", "options", "message"),
    [
        (0, 5, {}, "at least one sample and one feature, got 0 x 5"),
        (5, 0, {}, "at least one sample and one feature, got 5 x 0"),
        (5, 5, {"tile": 0}, "tile must be a whole number, at least 1"),
        (5, 5, {"dtype": "int8"}, "float32 or float64, got 'int8'"),
        (5, 5, {"layout": "lower"}, "triangle or full, got 'lower'"),
    ],
)
def test_bad_parameters_are_named(n: int, dim: int, options: dict, message: str) -> None:
    """What is out of its domain is refused with its value."""
    with pytest.raises(InputError, match=message):
        make_plan(n, dim, LAPTOP, **options)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 10**9),
        ("512 MiB", 512 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        (1000, 1000),
        ("1.5kb", 1500),
        ("7", 7),
        ("1e9", 10**9),
        ("2G", 2 * 10**9),
        (" 3TiB\n", 3 * 2**40),
    ],
)
def test_sizes_are_read(text: str | int, size: int) -> None:
    """Decimal and binary units, either case, with or without a space."""
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "GB", "-1GB", "0", "2 parsecs", "nan", "infGB", "1e400", "0.5", "1,5GB", "True"],
)
def test_what_is_no_size_is_refused(text: str) -> None:
    """Only positive finite sizes pass."""
    with pytest.raises(InputError, match="memory must be a positive size such as 2GB"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30min", 1800), ("90", 90), (90, 90), (0.5, 0.5), ("1.5 hours", 5400), ("2H", 7200),
        ("1h 30min", 5400), ("1h30m20s", 5420), (" 2 days\n", 172800), ("1 sec", 1), (1e-5, 1e-5),
    ],
)  # fmt: skip
def test_durations_are_read(text: str | float, seconds: float) -> None:
    """With one unit or several, of seconds without."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "min", "-5min", "0", "0h", "soon", "nan", "inf", "1e999", "30 parsecs", "1:30", "30minx",
     "1,5h", "5 6", True],
)  # fmt: skip
def test_what_is_no_duration_is_refused(text: str | bool) -> None:
    """Only positive finite ones pass."""
    with pytest.raises(InputError, match="budget must be a positive time such as 30min, 2h or 90s"):
        parse_seconds(text)


def test_sizes_are_written_for_people() -> None:
    """As Dask writes them; parts of a byte, which rates have, are rounded."""
    sizes = (0, 5, 340.6, 2_345_000, 4e9, np.int64(7.1e12))
    assert [format_bytes(size) for size in sizes] == [
        "0 B", "5 B", "341 B", "2.24 MiB", "3.73 GiB", "6.46 TiB",
    ]  # fmt: skip


def test_tiling_cuts_the_last_tile() -> None:
    """The last block holds what is left."""
    tiling = Tiling(10, 7, 4, symmetric=False)
    assert tiling.rows(2) == slice(8, 10)
    assert tiling.cols(1) == slice(4, 7)
    assert np.prod([tiling.row_blocks, tiling.col_blocks]) == tiling.n_tiles


def test_sparse_samples_count_where_they_are_fullest() -> None:
    """Long rows in one place take what their tiles take, whatever the others have."""

    def task(fullest: Callable[[int], float] | None) -> int:
        plan = make_plan(
            8_000, 20_000, LAPTOP, nnz=800_000, tile=1_000, overlap=1.0, fullest=fullest
        )
        return plan.task_bytes

    average = task(None)
    assert task(lambda rows: 100.0 * rows) == average
    assert task(lambda rows: 50.0 * rows) == average  # fewer than on average cannot be
    extra = 16 * 300 * 1_000  # bytes of a block's entries beyond the average
    group = make_plan(8_000, 20_000, LAPTOP, nnz=800_000, tile=1_000, overlap=1.0).group
    assert task(lambda rows: 400.0 * rows) >= average + 2 * group * extra


@pytest.mark.slow
def test_the_command_plans_uneven_samples_as_a_run_does(tmp_path: Path) -> None:
    """What `dhsk plan` predicts is what the run is held to."""
    lengths = np.ones(3_000, int)
    lengths[-300:] = 3_000
    columns = np.concatenate([np.arange(length) for length in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    X = csr_array((np.ones(columns.size), columns, indptr), shape=(3_000, 300_000))
    save_npz(tmp_path / "x.npz", X)
    sides = GramSides.of([open_samples(X)])
    planned = gram_plan.make_plan(sides, LAPTOP, tile=500).peak_bytes
    words = ["plan", str(tmp_path / "x.npz"), "--tile", "500", "--workers", "2", "--memory", "8GB"]
    output = CliRunner().invoke(commands, words).output
    assert f"{format_bytes(planned)} predicted for all processes" in output
    even = make_plan(3_000, 300_000, LAPTOP, nnz=X.nnz, tile=500).peak_bytes
    assert planned > 1.1 * even
