"""Measured rates of this machine: products, kernels, disk and scheduler.

All cores are measured at once, because workers share the memory bandwidth and the disk.

Rejected: one rate for each dim (a new measurement for each file); rates of single threads.
"""

import json
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from time import perf_counter, process_time
from typing import Any, Final, TypeAlias

import numpy as np
from platformdirs import user_cache_path
from scipy.sparse import csr_array

from dhsk import systems
from dhsk.arrays import Rows
from dhsk.execution.folder import TemporaryFolder
from dhsk.execution.limits import core_count
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.workers import Workers
from dhsk.files import parse_json, written_beside
from dhsk.gram.storage.chunks import read_chunk, write_chunk
from dhsk.gram.storage.tiling import DtypeName
from dhsk.kernels import Kernel
from dhsk.kernels.rows import inner_product
from dhsk.progress import OnProgress, Progress, ignore
from dhsk.samples import apply_map, open_samples, scan
from dhsk.units import format_bytes

Work: TypeAlias = Callable[[], object]

ASSUMED_WRITE, ASSUMED_READ = 0.3e9, 1e9
"""Bytes per second of a disk that was not measured: cloud volumes and shared file systems of the
slower kind write at 0.25 to 0.4 GB/s."""

ASSUMED_TASKS = 600.0
"""Tasks per second of a scheduler that was not measured. With 2, 64 and 256 workers that compute
nothing, its process takes 1.3 to 1.6 ms a task, 630 to 790 a second (tests/benchmarks/cluster.py).
"""

ASSUMED_WRITE_WORK = 0.5e-9
"""Processor seconds for a byte that is written: checksum and copy to the system."""

_EDGE: Final = 768  # of the square products that are timed
_DIMS: Final = (16, 512)  # where the line of GEMM is taken
_SPARSE_DIM, _FILLED = 4096, (40, 240)  # entries a row; they meet 0.4 and 14 times
_CHUNK: Final = (1024, 2048)  # 16.8 MB
_DISK_SECONDS: Final = 1.5
_DISK_THREADS: Final = 16


@dataclass(frozen=True)
class Line:
    """Seconds of one thread for an entry of a product, linear in its multiply-adds."""

    fixed: float
    """Seconds for any entry."""
    each: float
    """Seconds for each multiply-add."""

    def __call__(self, multiply_adds: float) -> float:
        """Seconds for an entry of this many multiply-adds."""
        return self.fixed + self.each * multiply_adds

    @property
    def flops(self) -> float:
        """Floating-point operations per second, of many multiply-adds an entry."""
        return 2 / self.each


@dataclass(frozen=True)
class Rates:
    """Measured rates of a machine; made by `measure_rates`."""

    float64: Line
    """GEMM in float64."""
    float32: Line
    """GEMM in float32."""
    sparse: Line
    """Sparse products, which are summed in float64."""
    stage: float
    """Seconds of one thread to check, fingerprint and map a number of the samples."""
    write: float
    """Bytes per second that all cores together write, fsync included."""
    read: float
    """Bytes per second that all cores together read from the disk, checksums tested."""
    write_work: float
    """Processor seconds for a byte that is written."""
    tasks: float
    """Empty tasks per second that client and scheduler handle."""
    note: str
    """When and how they were measured, for people."""

    def product(self, dtype: DtypeName, *, sparse: bool) -> Line:
        """Line of products of a path and type."""
        if sparse:
            return self.sparse
        return self.float32 if dtype == "float32" else self.float64

    def table(self) -> list[tuple[str, str]]:
        """Rows (what, value) for people."""
        return [
            ("products, float64", f"{self.float64.flops / 1e9:.3g} Gflop/s a thread"),
            ("products, float32", f"{self.float32.flops / 1e9:.3g} Gflop/s a thread"),
            (
                "sparse products",
                f"{1e-6 / self.sparse.each:,.0f} million multiplications/s a thread",
            ),
            ("checking samples", f"{1e-6 / self.stage:,.0f} million numbers/s"),
            ("disk", f"{format_bytes(self.write)}/s written, {format_bytes(self.read)}/s read"),
            ("scheduler", f"{self.tasks:,.0f} empty tasks/s"),
            ("measured", self.note),
        ]


TYPICAL: Final = Rates(
    Line(0.0, 1e-10), Line(0.0, 5e-11), Line(0.0, 1e-9), 1.5e-8,
    ASSUMED_WRITE, ASSUMED_READ, ASSUMED_WRITE_WORK, ASSUMED_TASKS, "not measured",
)  # fmt: skip
"""Rates for brief runs, which are not worth a second of measuring."""


def measure_rates(place: Path | None, report: OnProgress = ignore, *, repeats: int = 8) -> Rates:
    """Measure this machine.

    A few hundred megabytes are written to the folder `place` and removed; None measures neither
    disk nor scheduler, and assumes both. Each product is computed `repeats` times.
    """
    threads = core_count()
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    stages = 6
    with one_blas_thread():
        double = _line(_dense("float64"), repeats)
        report(Progress("measuring", 1, stages))
        single = _line(_dense("float32"), repeats)
        report(Progress("measuring", 2, stages))
        sparse = _line(_sparse(), max(2, repeats // 4))
        report(Progress("measuring", 3, stages))
        stage = _stage_seconds()
        report(Progress("measuring", 4, stages))
        note = "processor measured now; disk and scheduler assumed: dhsk plan --measure"
        disk, tasks = (ASSUMED_WRITE, ASSUMED_READ, ASSUMED_WRITE_WORK), ASSUMED_TASKS
        if place is not None:
            note = f"measured {day} on {threads} threads at once, disk of {place.absolute()}"
            disk = _disk_rates(place, min(threads, _DISK_THREADS))
            report(Progress("measuring", 5, stages))
            tasks = _task_rate()
    report(Progress("measuring", stages, stages))
    return Rates(double, single, sparse, stage, *disk, tasks, note)


def kernel_seconds(kernel: Kernel, dtype: DtypeName) -> float:
    """Measured seconds of one thread to evaluate a kernel at a product of type `dtype`.

    They depend on the kernel's parameters.
    """
    product = np.random.default_rng(0).random((_EDGE, _EDGE)).astype(dtype)
    norms = np.ones(_EDGE)

    def prepare() -> Work:
        scratch = np.empty_like(product)

        def work() -> None:
            np.copyto(scratch, product)
            kernel.of_product(scratch, norms, norms)

        return work

    with one_blas_thread():
        return _seconds_each(prepare, 4) / product.size


def _seconds_each(prepare: Callable[[], Work], repeats: int) -> float:
    """Seconds of a piece of work while every core does the same: the mean over the threads.

    Of each thread the shortest repeat counts, because rates are kept: other programs come and go,
    while the contention among these threads stays.
    """
    threads = core_count()
    start = Barrier(threads)

    def timed(work: Work) -> float:
        work()  # fills caches and pages
        start.wait()
        times = [perf_counter()]
        for _ in range(repeats):
            work()
            times.append(perf_counter())
        return min(after - before for before, after in pairwise(times))

    with ThreadPoolExecutor(threads) as pool:
        times = list(pool.map(timed, [prepare() for _ in range(threads)]))
    return sum(times) / threads


def _line(points: dict[float, Rows], repeats: int) -> Line:
    """Line through the times of products of rows with themselves, by multiply-adds an entry."""

    def seconds(rows: Rows) -> float:
        def prepare() -> Work:
            others, out = rows.copy(), np.empty((_EDGE, _EDGE), rows.dtype)
            return lambda: inner_product(rows, others, out)

        return _seconds_each(prepare, repeats) / _EDGE**2

    (x0, y0), (x1, y1) = ((x, seconds(rows)) for x, rows in points.items())
    each = max(y1 / x1 / 100, (y1 - y0) / (x1 - x0))  # positive, however noisy the times
    return Line(max(0.0, y1 - each * x1), each)


def _dense(dtype: DtypeName) -> dict[float, Rows]:
    """Dense rows, by the multiply-adds of an entry of their products."""
    return {dim: np.random.default_rng(0).random((_EDGE, dim)).astype(dtype) for dim in _DIMS}


def _sparse() -> dict[float, Rows]:
    """Sparse rows, by the multiply-adds of an entry of their products."""
    found: dict[float, Rows] = {}
    for filled in _FILLED:
        columns = np.random.default_rng(0).integers(0, _SPARSE_DIM, _EDGE * filled)
        starts = np.arange(0, columns.size + 1, filled)
        parts = np.ones(columns.size), columns, starts
        found[filled**2 / _SPARSE_DIM] = csr_array(parts, shape=(_EDGE, _SPARSE_DIM))
    return found


def _stage_seconds() -> float:
    values = np.random.default_rng(0).random((2048, 256))
    samples = open_samples(values)
    scan(open_samples(values[:16]), "hyperspherical")  # loads what is compiled, or compiles it
    begin = perf_counter()
    scan(samples, "hyperspherical")
    blocks: list[Rows] = [apply_map("hyperspherical", block) for block in samples.blocks(2048)]
    del blocks
    return (perf_counter() - begin) / values.size


def _disk_rates(place: Path, threads: int) -> tuple[float, float, float]:
    """Bytes per second written and read, and processor seconds for a byte written."""
    values = np.random.default_rng(0).random(_CHUNK)
    made = TemporaryFolder(place)
    folder = made.path
    try:
        begin, begin_work = perf_counter(), process_time()

        def write(number: int) -> int:
            count = 0
            while count == 0 or perf_counter() - begin < _DISK_SECONDS:
                write_chunk(folder / f"{number}-{count}", values, _CHUNK)
                count += 1
            return count

        with ThreadPoolExecutor(threads) as pool:
            counts = list(pool.map(write, range(threads)))
            size = sum(counts) * values.nbytes
            written, work = perf_counter() - begin, process_time() - begin_work
            _forget(folder)
            begin = perf_counter()
            list(pool.map(lambda number: _read_all(folder, number, counts[number]), range(threads)))
        return size / written, size / (perf_counter() - begin), work / size
    finally:
        made.remove()


def _read_all(folder: Path, number: int, count: int) -> None:
    out = np.empty(_CHUNK)
    for k in range(count):
        read_chunk(folder / f"{number}-{k}", out)


def _forget(folder: Path) -> None:
    """Drop the written files from the system's cache, where possible, so that disks are read."""
    for file in folder.iterdir():
        systems.forget_content(file)


def _task_rate(count: int = 400) -> float:
    """Tasks a second that a scheduler hands out, of one in this process."""
    from dhsk.execution.local import thread_client

    with thread_client(core_count(), set_as_default=False) as client:
        workers = Workers(client, 8)
        list(workers.run(_nothing, (() for _ in range(20))))
        begin = perf_counter()
        list(workers.run(_nothing, (() for _ in range(count))))
        return count / (perf_counter() - begin)


def _nothing() -> None:
    pass


# Rates that are kept in the user's cache folder, for each machine and version

QUICK_REPEATS: Final = 2
"""Repeats of each product if no rates are kept: a quarter of a second in all."""


def known_rates() -> Rates:
    """Rates kept by `dhsk plan --measure`; else processor measured once a process, disk assumed."""
    return load_rates() or _quick_rates()


@cache
def _quick_rates() -> Rates:
    return measure_rates(None, repeats=QUICK_REPEATS)


def cache_file() -> Path:
    """Path of the cache: ``dhsk/rates.json`` where this system keeps a user's caches."""
    return user_cache_path("dhsk") / "rates.json"


def load_rates() -> Rates | None:
    """Rates of this machine, measured by this version; None if there are none."""
    try:
        return _rates(_read(cache_file())[_key()])
    except (KeyError, TypeError, ValueError):
        return None


def save_rates(rates: Rates) -> None:
    """Keep rates for this machine and version, beside those of others; may raise OSError."""
    file = cache_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_read(file) | {_key(): asdict(rates)}, indent=1)
    with written_beside(file, "w") as opened:
        opened.write(text)


def _key() -> str:
    return f"{platform.node()}, {core_count()} cores, dhsk {version('dhsk')}"


def _read(file: Path) -> dict[str, Any]:
    """Content of the cache; empty if it is absent or damaged, as it can be measured again."""
    try:
        found = parse_json(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _rates(found: dict[str, Any]) -> Rates:
    lines = {name: Line(**found[name]) for name in ("float64", "float32", "sparse")}
    return Rates(**(found | lines))
