"""Time, work, bytes and requests of each way to use many samples: arithmetic alone."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dhsk.execution.limits import core_count
from dhsk.execution.memory import Share
from dhsk.gram.storage.staged import DENSE_CHUNK_BYTES
from dhsk.objects.path import PART_BYTES
from dhsk.planning.fits import COLUMNS_OF_SUPPORT, ROUNDS, few_support_seconds, passes_of
from dhsk.planning.prediction import START_SECONDS, Prediction
from dhsk.planning.training import ON_WORKERS, GridShape, Training
from dhsk.solvers.problems import way_of_model
from dhsk.units import counted, format_bytes, seconds_range

HEADS: Final = "one model, or matrix", "time", "core-hours", "read + written", "GET", "PUT"
"""Heads of the table."""

SPREAD: Final = 1.5
"""Factor between the seconds that are expected and either end of what is said. Fifteen runs took
0.7 to 1.4 times what is expected, most by their processor seconds, as others used the machine too
(10^5 to 3 x 10^6 samples, ranks 200 to 2,000, 1,655 to 21,305 support vectors). An exact fit to
10^7 took 1.3 and 1.5 times that, and 2.1 times in seconds on a busy machine."""

FEW, MANY, SHARE = 1_000, 10_000, 0.01
"""Support vectors of exact SVMs that are planned: two numbers, and a share of the samples."""

READS: Final = 3
"""Times that `dhsk train` reads samples that fit the memory: for time scale and C, to check them,
and to map them. With time scale and C that are given, two."""

TOO_BIG: Final = "*"
"""Mark of what does not fit."""

STREAMED: Final = "samples read in every pass"


@dataclass(frozen=True)
class MethodCost:
    """What one way takes."""

    name: str
    fits: bool
    """Whether memory and disk have the room."""
    seconds: float
    read: float
    """Bytes of samples and tiles."""
    written: float = 0.0
    puts: int = 0
    """Requests that write, if that is on a server."""

    @property
    def gets(self) -> int:
        """Requests that read, if that is on a server: one for each part of a file."""
        return math.ceil(self.read / PART_BYTES)

    @property
    def range(self) -> tuple[float, float]:
        """Least and most seconds."""
        return self.seconds / SPREAD, self.seconds * SPREAD

    def row(self, cores: int) -> list[str]:
        """Cells under `HEADS`."""
        name = self.name if self.fits else f"{self.name} {TOO_BIG}"
        hours, moved = self.seconds * cores / 3600, format_bytes(self.read + self.written)
        work = f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
        requests = map(_count, (self.gets, self.puts))
        return [name, seconds_range(*self.range), work, moved, *requests]

    def facts(self, cores: int) -> dict[str, Any]:
        """The numbers of the row for programs."""
        return {
            "name": self.name,
            "fits": self.fits,
            "seconds": self.range,
            "core_hours": self.seconds * cores / 3600,
            "read_bytes": math.ceil(self.read),
            "written_bytes": math.ceil(self.written),
            "get_requests": self.gets,
            "put_requests": self.puts,
        }


def _count(count: int) -> str:
    return f"{count:,}" if count < 10**7 else f"{count:.1e}"


def method_costs(
    prediction: Prediction,
    features: Prediction,
    shape: GridShape,
    ways: Mapping[int | None, Training],
    passes: int,
) -> Iterator[MethodCost]:
    """Costs of exact SVMs, of low ranks, and of the matrix, stored and computed in every pass.

    `features` is the prediction of the same matrix in their type; `ways` are the plans of their
    memory. What does not fit has the costs of a machine that it fits. Without a server requests are
    those that there would be.
    """
    n = prediction.plan.sides.samples
    for support in sorted({min(n, count) for count in (FEW, MANY, math.ceil(SHARE * n))}):
        yield _exact(prediction, shape, ways[None].model, support)
    for rank, way in ways.items():
        if rank is not None:
            yield _low_rank(features, shape, way.model, rank)
    yield from _matrix(prediction, passes)


def _on_paper(prediction: Prediction) -> bool:
    """Whether there are more workers than this machine has cores."""
    return prediction.plan.resources.threads > core_count()


def _stages(prediction: Prediction) -> bool:
    """Whether the disk has room for the mapped samples; that of other machines is not known."""
    free = prediction.free
    return free is None or _on_paper(prediction) or prediction.plan.sample_bytes <= free


def _exact(prediction: Prediction, shape: GridShape, fit: Share | None, support: int) -> MethodCost:
    each = "" if len(shape.sizes) == 2 else " a problem"
    name = f"exact, {counted(support, 'support vector')}{each}"
    samples = prediction.plan.sample_bytes
    way = way_of_model("auto", len(shape.sizes))
    cores, speeds = prediction.at_once, prediction.of_core
    seconds = few_support_seconds(shape.sizes, cores, speeds, way, support)
    if fit is not None and fit.way != ON_WORKERS and not _on_paper(prediction):
        return MethodCost(name, True, START_SECONDS + seconds, READS * samples)
    fits, staged = fit is not None and _stages(prediction), math.ceil(samples / DENSE_CHUNK_BYTES)
    read = (READS + COLUMNS_OF_SUPPORT) * samples  # staged samples for all columns
    return MethodCost(name, fits, prediction.start + seconds, read, samples, staged)


def _low_rank(features: Prediction, shape: GridShape, fit: Share | None, rank: int) -> MethodCost:
    name, samples = f"rank {rank:,}", features.plan.sample_bytes
    columns = 1 if len(shape.sizes) == 2 else len(shape.sizes)
    in_passes = (READS + ROUNDS + passes_of(columns)) * samples
    if _on_paper(features):  # features in memory are those of one machine
        seconds = features.start + features.seconds_of_low_rank(rank, columns, "on workers")
        staged = math.ceil(samples / DENSE_CHUNK_BYTES)
        return MethodCost(name, fit is not None, seconds, in_passes, samples, staged)
    tier = STREAMED if fit is None else fit.way
    seconds = START_SECONDS + features.seconds_of_low_rank(rank, columns, tier)
    read = in_passes if tier == STREAMED else READS * samples
    return MethodCost(name, fit is not None, seconds, read)


def _matrix(prediction: Prediction, passes: int) -> Iterator[MethodCost]:
    """Stored once and read in each pass, and computed in each."""
    plan, words = prediction.plan, counted(passes, "pass", "passes")
    samples, blocks = plan.sample_bytes, plan.block_reads
    staged = math.ceil(samples / DENSE_CHUNK_BYTES)
    yield MethodCost(
        f"matrix stored, {words}",
        plan.fits and prediction.fits_disk,
        prediction.stored(passes),
        2 * samples + blocks + passes * plan.tile_bytes,
        plan.disk_bytes,
        staged + plan.stored_tiles,
    )
    yield MethodCost(
        f"matrix computed in {words}",
        plan.fits and _stages(prediction),
        prediction.recomputed(passes),
        2 * samples + passes * blocks,
        samples,
        staged,
    )
