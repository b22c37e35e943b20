"""What a cross-validation will cost, from its grid, before the first kernel."""

from collections.abc import Sequence
from typing import Any, Final

from dhsk.costs import Cost
from dhsk.gram.plan import make_plan
from dhsk.gram.sides import GramSides
from dhsk.kernels import HeatKernel, Kernel
from dhsk.nystrom.kept_values import UNKEPT_SECONDS
from dhsk.objects.places import entries_of
from dhsk.planning.fits import (
    FLOPS,
    SUPPORT,
    Speeds,
    exact_seconds,
    features_seconds,
    low_rank_seconds,
)
from dhsk.planning.prediction import KERNEL_SECONDS, Prediction
from dhsk.planning.rates import known_rates
from dhsk.results.low_rank import LowRank
from dhsk.samples import Samples
from dhsk.units import counted
from dhsk.validation.cells import MOST_BYTES
from dhsk.validation.engine import CvOptions
from dhsk.validation.grid import Grid
from dhsk.validation.input import Square
from dhsk.validation.runs import Runs
from dhsk.validation.search import SEARCHED

PROCESS_SECONDS: Final = 6.0
"""Processor seconds until a process has loaded what it needs. A run of 200 samples on two workers,
which computes next to nothing, takes 28 of three processes where others keep the cores busy."""

ROW_BYTES: Final = 1500
"""Bytes of a row of results, in three files and a checkpoint: 1,520 of digits."""

COLUMN_BYTES: Final = 10
"""Bytes of a number in the table of held-out decisions: 194 kB of digits, 1,797 x 10."""

FINAL_C: Final = 3
"""Values of C of a kernel that is left for all samples."""

SOONER: Final = (
    "one kernel (--kernel heat --time-scale S --C C); or --rank 1000, linear on that many features"
)


def cost_of(
    runs: Runs, square: Square, grid: Grid, options: CvOptions, low_rank: LowRank | None,
    rounds: Sequence[int], *, look: bool,
) -> Cost:  # fmt: skip
    """Seconds, memory and disk of all runs; `look` says that they search for more kernels.

    With `rounds` on samples of these sizes, one kernel of each family is left for all.
    """
    first = [kernel for _, kernels in runs.runs for kernel in kernels]
    needs = [stages.engine.needs(kernels) for stages, kernels in runs.runs]
    stored = any(need.stored for need in needs)
    timed = sum(any(isinstance(k, HeatKernel) for k in own) for _, own in runs.runs)
    tried = max(1, len(first)) + (SEARCHED * timed if look else 0)
    searched, columns, ways = tried, grid.columns, grid.ways
    if rounds:
        families = {(number, k.name) for number, (_, own) in enumerate(runs.runs) for k in own}
        tried, columns, ways = len(families), FINAL_C * len(grid.folds), grid.ways[:1]
    values = _Values(square, options, stored=stored)
    working = _working_bytes(grid)
    if low_rank is None:
        solving = exact_seconds(
            grid.counts.tolist(), columns, tried, values.cores, values.entry, ways
        )
    else:
        solving = sum(
            low_rank_seconds(
                square.shape[0], rank, grid.columns * len(grid.classes), tried, values.cores,
                values.speeds,
            )
            for rank in low_rank.ranks
        )  # fmt: skip
        n, m = square.shape[0], low_rank.count(square.shape[0])
        if features_seconds(n, m, values.cores, values.speeds) > UNKEPT_SECONDS:
            working += max(need.features for need in needs)
    for size in rounds:
        counts = grid.counts_among(size)
        solving += exact_seconds(counts, grid.columns, searched, values.cores, 0.0, grid.ways)
    products = runs.disk.stored if stored else runs.disk.samples
    kept = _kept_bytes(grid, tried)
    asked = stored and not options.on_demand
    computed = isinstance(square, Samples) and low_rank is None and not stored
    how = ", kernel values computed when needed" if computed else ""
    kept_before = set() if options.journal is None else entries_of(options.journal)
    if any(name.endswith(".npz") for name in kept_before):
        how += ", less what an earlier run has finished"
    matrices = products / max(values.stored_bytes, 1) if stored else 0.0
    return Cost(
        what=_words(square, grid, first, look=look, how=_words_of(rounds) + how),
        seconds=values.start + matrices * values.gram_seconds + solving,
        memory=max(need.memory for need in needs),
        disk=products + kept + working,
        stays=kept + (products if asked else 0),
        sooner=SOONER,
    )


def _owns_its_workers(client: Any) -> bool:
    """Whether workers end with their client, and have begun with it."""
    if client is None:
        return False
    from dhsk.execution.local import OwningClient

    return isinstance(client, OwningClient)


class _Values:
    """What kernel values cost: computed once and stored, or whenever they are needed."""

    def __init__(self, square: Square, options: CvOptions, *, stored: bool) -> None:
        resources = options.resources
        self.cores = max(1, resources.threads)
        starting = _owns_its_workers(options.client)  # else these have run before
        self.start = PROCESS_SECONDS * (1 + resources.workers) / self.cores if starting else 0.0
        self.entry = self.gram_seconds = 0.0
        self.speeds = Speeds(0.0, 2 / FLOPS, 0.0)
        self.stored_bytes = 0
        if not isinstance(square, Samples):
            return
        plan = make_plan(GramSides.of([square]), resources)
        prediction = Prediction(plan, known_rates(), KERNEL_SECONDS["float64"])
        self.speeds = prediction.in_single(KERNEL_SECONDS["float32"]).of_core
        if stored:
            self.stored_bytes, self.gram_seconds = plan.disk_bytes, prediction.seconds
        else:
            self.entry = prediction.entry


def _words(square: Square, grid: Grid, kernels: Sequence[Kernel], *, look: bool, how: str) -> str:
    """What is computed: samples, kernels, values of C and folds."""
    n, dim = square.shape
    samples = f"{n:,} samples" + (f" of {dim:,} features" if isinstance(square, Samples) else "")
    search = ", then a search" if look else ""
    way = " (each against the rest only)" if grid.ways == ("ovr",) else ""
    return (
        f"{samples}, {len(grid.classes)} classes{way}, {counted(max(1, len(kernels)), 'kernel')} x "
        f"{len(grid.C)} C x {len(grid.folds)} folds{search}{how}"
    )


def _words_of(rounds: Sequence[int]) -> str:
    """Rounds on samples, in words."""
    if not rounds:
        return ""
    sizes = " and ".join(f"{size:,}" for size in rounds)
    return f" on {sizes} of them; the best of each kind on all"


PAGE_BYTES: Final = 300_000
"""Bytes of the page of results, about: 260 kB of digits."""


def _kept_bytes(grid: Grid, kernels: int) -> int:
    """Bytes of results, and of the decisions that checkpoints keep of each kernel."""
    n, k = len(grid.y) * grid.repeats, len(grid.classes)
    cell = 4 * n * (1 if k == 2 else k)
    decisions = max(cell, min(MOST_BYTES, len(grid.C) * cell))
    predicted = 4 * n * len(grid.C)
    table = COLUMN_BYTES * len(grid.y) * (k + 1)
    return PAGE_BYTES + table + kernels * (decisions + predicted + ROW_BYTES * grid.columns)


def _working_bytes(grid: Grid) -> int:
    """Bytes of the coefficients of a kernel that is being fitted, in checkpoints."""
    fits_of_sample = len(grid.classes) - 1  # one-vs-rest one more, with fewer support vectors
    return int(16 * SUPPORT * len(grid.y) * fits_of_sample * grid.columns)
