"""Predicted seconds of a plan, whether storing pays, and its limits: arithmetic alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dhsk.gram.plan import MANY_FILES, GramPlan
from dhsk.gram.storage.staged import CSR_CHUNK, DENSE_CHUNK_BYTES
from dhsk.gram.storage.tiling import DtypeName
from dhsk.planning.fits import Speeds, exact_seconds, low_rank_seconds, reading_seconds
from dhsk.planning.rates import Rates
from dhsk.planning.training import GridShape
from dhsk.units import counted, format_bytes, human_seconds

START_SECONDS = 2.5
"""A local cluster starts in 1.5 s, and the first task of each worker loads for a second."""

SAMPLE_WORK = 1e-9
"""Processor seconds for a byte of samples that a tile reads and marks: 0.4 to 0.7 ns of dense rows,
1.2 ns of CSR."""

CSR_READ_BYTES = 2 * 8 * CSR_CHUNK
"""Bytes read for the smallest block of CSR samples: a chunk of numbers, and one of indices."""

BRIEF_SECONDS = 5.0
"""Seconds of computing below which a slow scheduler or disk is not worth a word."""

KERNEL_SECONDS: Final[Mapping[DtypeName, float]] = {"float64": 2e-9, "float32": 5e-10}
"""Seconds to evaluate a kernel at an inner product where that is not measured: 1 to 3 ns, and 0.25
to 0.5 in float32."""

NO_LIMIT = "no limit"
"""Verdict on what is far from its capacity."""

FULL_SHARE = 0.5
"""Share of the capacity of scheduler or disk that is called close to the limit."""


@dataclass(frozen=True)
class Prediction:
    """Seconds of a plan on a machine whose rates are known."""

    plan: GramPlan
    rates: Rates
    """Rates of each thread."""
    kernel: float
    """Seconds of one thread to evaluate the kernel at an entry."""
    cores: int | None = None
    """Cores that the threads share; None if each thread has its own."""
    share: float = 1.0
    """Part of the tiles that remains to be computed, in (0, 1]."""
    staged: bool = False
    """Whether the samples are in the store already."""
    free: int | None = None
    """Free bytes of the store's disk; None if it does not say."""

    @property
    def fits_disk(self) -> bool:
        """Whether the store fits its disk, as far as is known."""
        return self.free is None or self.plan.disk_bytes <= self.free

    @property
    def at_once(self) -> int:
        """Number of threads that run at a time."""
        threads = self.plan.resources.threads
        return threads if self.cores is None else min(threads, self.cores)

    @property
    def entry(self) -> float:
        """Seconds of one thread for the product and the kernels of two samples."""
        line = self.rates.product(self.plan.product_dtype, sparse=self.plan.sparse_path)
        return line(self.plan.multiply_adds) + self.plan.n_kernels * self.kernel

    def in_single(self, kernel: float) -> "Prediction":
        """The same of products in float32, at whose entries a kernel takes so many seconds."""
        return replace(self, plan=replace(self.plan, product_dtype="float32"), kernel=kernel)

    @property
    def of_core(self) -> Speeds:
        """Seconds of a core for the parts of fits to these samples."""
        product = self.rates.product(self.plan.product_dtype, sparse=False).each
        read = self._values * self.rates.stage + self.plan.row_bytes / self.rates.read
        return Speeds(self.entry, product, read)

    @property
    def compute(self) -> float:
        """Seconds of all products and kernels, and of reading their samples."""
        p, n = self.plan, self.plan.tiling.n_tiles
        return self.share * (p.entries * self.entry + n * self._samples) / self.at_once

    def seconds_of_grid(self, shape: GridShape, rank: int | None) -> float:
        """Seconds of a cross-validation whose kernel values are computed when they are needed.

        With a `rank`, of linear classifiers on as many features.
        """
        columns = shape.folds * shape.chain
        if rank is None:
            return exact_seconds(shape.sizes, columns, shape.kernels, self.at_once, self.entry)
        columns *= 1 if len(shape.sizes) == 2 else len(shape.sizes)
        return self.seconds_of_low_rank(rank, columns, "features in memory", shape.kernels)

    def seconds_of_low_rank(self, rank: int, columns: int, way: str, kernels: int = 1) -> float:
        """Seconds of linear classifiers on features of a rank, where data are as `way` says."""
        n, cores, speeds = self.plan.sides.samples, self.at_once, self.of_core
        if way == "features in memory":
            return low_rank_seconds(n, rank, columns, kernels, cores, speeds)
        if way == "samples read in every pass":
            return low_rank_seconds(n, rank, columns, kernels, cores, speeds, readers=1)
        mapped = replace(speeds, sample=SAMPLE_WORK * self.plan.row_bytes)
        passes = low_rank_seconds(n, rank, columns, kernels, cores, mapped, readers=cores)
        return reading_seconds(n, speeds) + passes

    @property
    def _samples(self) -> float:
        """Processor seconds for the two blocks of samples of a tile."""
        p = self.plan
        block = p.tiling.tile * p.row_bytes
        if p.sides.nnz is not None:
            block = max(block, min(CSR_READ_BYTES, p.sides.samples * p.row_bytes))
        return 2 * block * SAMPLE_WORK

    @property
    def _values(self) -> float:
        """Numbers of a sample, or entries."""
        sides = self.plan.sides
        return float(sides.dim) if sides.row_entries is None else sides.row_entries

    @property
    def start(self) -> float:
        """Seconds before the first tile: workers start, samples are checked, mapped and staged."""
        p = self.plan
        stage = self._values * self.rates.stage + p.row_bytes / self.rates.write
        return START_SECONDS + (0.0 if self.staged else p.sides.samples * stage)

    @property
    def disk(self) -> float:
        """Seconds to write the tiles."""
        return self.share * self.plan.tile_bytes / self.rates.write

    @property
    def read(self) -> float:
        """Seconds of a pass that reads the stored tiles."""
        return self.plan.tile_bytes / self.rates.read

    @property
    def seconds(self) -> float:
        """Seconds of `compute_gram` with a store, which writes tiles while it computes others."""
        writing = self.share * self.plan.tile_bytes * self.rates.write_work / self.at_once
        scheduling = self.share * self.plan.n_groups / self.rates.tasks
        return self.start + max(self.compute + writing, self.disk, scheduling)

    def stored(self, passes: int) -> float:
        """Seconds to compute and store once, and then read in each of some passes."""
        return self.seconds + passes * self.read

    def recomputed(self, passes: int) -> float:
        """Seconds to compute in each of some passes, and store nothing."""
        return self.start + passes * self.compute

    def break_even(self) -> int | None:
        """Fewest passes for which storing is cheaper; None if it never is."""
        gain = self.compute - self.read
        if gain <= 0:
            return None
        return math.floor((self.seconds - self.start) / gain) + 1

    def table(self) -> list[tuple[str, str]]:
        """Rows (what, value) for people, after those of the plan: of a store if one fits."""
        rows = [("speeds", self.rates.note)]
        if not self.fits_disk:
            return rows
        return [
            (
                "time",
                f"about {human_seconds(self.seconds)}: {human_seconds(self.start)} to start and "
                f"read the samples, then {human_seconds(self.compute)} of computing, "
                f"{human_seconds(self.disk)} of writing meanwhile",
            ),
            ("store or recompute", self._verdict()),
            *rows,
        ]

    def speeds(self) -> list[tuple[str, str]]:
        """Rows (what, value): the rates by which the seconds were predicted."""
        line = self.rates.product(self.plan.product_dtype, sparse=self.plan.sparse_path)
        path = "sparse products" if self.plan.sparse_path else self.plan.product_dtype
        return [
            (
                "rates",
                f"{self.at_once} x {line.flops / 1e9:.3g} Gflop/s ({path}), "
                f"kernel {1e9 * self.kernel:.2g} ns an entry, "
                f"disk {format_bytes(self.rates.write)}/s written, "
                f"{format_bytes(self.rates.read)}/s read",
            )
        ]

    def _verdict(self) -> str:
        turn = self.break_even()
        if turn is None:
            return "recomputing (store=None in Python) is faster"
        if turn <= 1:
            return "storing is faster"
        return f"storing is faster from {counted(turn, 'pass', 'passes')} over the matrix on"

    def on_paper(self) -> list[tuple[str, str]]:
        """Rows (what, value) of more workers than this machine has: tasks, and the first limit."""
        p, workers = self.plan, self.plan.resources.threads
        each = self.compute * self.at_once / p.n_groups
        edge = min(p.group * p.tiling.tile, p.tiling.n_rows)
        computing = workers * self.compute  # of one worker
        most = {
            "the scheduler": self.served,
            "one disk that all read samples from": computing * self.rates.read / p.block_reads,
        }
        if self.fits_disk:
            written = max(p.tile_bytes, 1)
            most["one disk that all write tiles to"] = computing * self.rates.write / written
        first = min(most, key=most.__getitem__)
        return [
            (
                "tasks",
                f"{p.n_groups:,} of {edge:,} x {edge:,} entries, {human_seconds(each)} each: "
                f"{workers / each:,.0f} a second",
            ),
            ("breaks first", f"{first}, from {counted(max(1, int(most[first])), 'worker')} on"),
        ]

    def binding(self) -> list[tuple[str, str]]:
        """Rows of `limits` that are a limit, or close to one."""
        brief = self.seconds - self.start < BRIEF_SECONDS
        left_out = ("scheduler", "disk") if brief else ()
        if not self.fits_disk:  # nothing is stored
            left_out = (*left_out, "disk", "files")
        return [
            (what, verdict)
            for what, verdict in self.limits()
            if NO_LIMIT not in verdict and what not in left_out
        ]

    def limits(self) -> list[tuple[str, str]]:
        """Rows (what, verdict): the load on scheduler, disk, files and memory by all workers."""
        p, r = self.plan, self.plan.resources
        busy = max(self.seconds - self.start, 1e-9)
        made = p.tile_bytes / max(self.compute, 1e-9)
        allowed = r.memory / max(r.workers, 1)
        return [
            ("scheduler", self._scheduler()),
            (
                "disk",
                f"{counted(r.threads, 'thread')} compute {format_bytes(made)}/s, it takes "
                f"{format_bytes(self.rates.write)}/s: {_verdict(made / self.rates.write)}; "
                f"they read {format_bytes(p.block_reads / busy)}/s of samples",
            ),
            ("files", self._files()),
            *([] if self.free is None else [("free disk", self._free_disk(self.free))]),
            (
                "worker memory",
                f"{format_bytes(p.worker_bytes)} of {format_bytes(allowed)} a worker: "
                + (NO_LIMIT if p.fits else "the limit, give more memory or smaller tiles (--tile)"),
            ),
        ]

    @property
    def served(self) -> float:
        """Number of threads that the scheduler keeps busy with tasks of this size."""
        tasks = self.share * self.plan.n_groups
        return self.rates.tasks * self.compute * self.at_once / tasks

    def _scheduler(self) -> str:
        p, tasks, most = self.plan, self.rates.tasks, max(1, int(self.served))
        load = p.resources.threads / self.served
        return (
            f"{counted(p.n_groups, 'task')} of {p.group} x {p.group} tiles; it starts about "
            f"{tasks:,.0f} a second, enough for {counted(most, 'worker')}: {_verdict(load)}"
            + (", take larger tiles (--tile)" if load > FULL_SHARE else "")
        )

    def _free_disk(self, free: int) -> str:
        need, share = self.plan.disk_bytes, self.plan.disk_bytes / max(free, 1)
        if not self.fits_disk:
            return f"the limit, the store takes {format_bytes(need)}, {format_bytes(free)} are free"
        word = "close to the limit" if share > FULL_SHARE else NO_LIMIT
        return f"the store takes {format_bytes(need)} of {format_bytes(free)}: {word}"

    def _files(self) -> str:
        p = self.plan
        total = p.stored_tiles + math.ceil(p.sides.samples * p.row_bytes / DENSE_CHUNK_BYTES)
        size = format_bytes(p.tile_bytes / max(p.stored_tiles, 1))
        many = total > 2 * MANY_FILES
        word = "many for a shared file system, take larger tiles (--tile)" if many else NO_LIMIT
        return f"{total:,}, tiles of {size}: {word}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _verdict(load: float) -> str:
    """Say whether a load, as a share of the capacity, is the limit."""
    if load > 1:
        return f"the limit, the load is {_rate(load)} times that"
    return "close to the limit" if load > FULL_SHARE else NO_LIMIT
