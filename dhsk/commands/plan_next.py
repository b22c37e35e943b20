"""What `dhsk plan` proposes: nothing that it has refused, and what fits where a store does not."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from dhsk.arrays import Rows
from dhsk.commands.inputs import label_words, own_label_column
from dhsk.commands.plan_training import TrainingPlans
from dhsk.commands.reading import Reading
from dhsk.costs import LONG_SECONDS, rough_seconds
from dhsk.errors import InputError
from dhsk.gram.plan import GramPlan
from dhsk.planning.prediction import Prediction
from dhsk.samples import Samples, ZeroRows
from dhsk.samples.format import WAYS
from dhsk.samples.looks import first_rows, seems
from dhsk.samples.maps import SphereMap, check_rows, parse_sphere_map
from dhsk.samples.refusals import refuse_infinite
from dhsk.samples.scan import rows_within
from dhsk.samples.weighted import LEARNT, SCALED, MapName, fixed_map
from dhsk.systems import quoted
from dhsk.units import format_bytes

_BLOCK_BYTES, _MOST_BYTES = 2**24, 2**26
"""Bytes of samples that are read at a time, and in all, to see whether a kernel takes them."""


def refusal_of(samples: Samples | None, check: Callable[[Rows, int], Any], *, whole: bool) -> str:
    """Why samples are refused by a check of blocks; empty if they, or the first ones, are not."""
    if samples is None:
        return ""
    rows, first = rows_within(samples, _BLOCK_BYTES), 0
    try:
        for block in samples.blocks(rows):
            check(block, first)
            first += block.shape[0]
            if not whole and first * _BLOCK_BYTES >= rows * _MOST_BYTES:
                break
    except InputError as error:
        return str(error)
    return ""


def _options(
    samples: Samples | None, given: MapName | None, sphere_map: SphereMap, refused: str
) -> tuple[str, str]:
    """Options of a grid and of one matrix: the map that was given, or one that suits the values."""
    if given is not None:
        return f" --map {given}", f" --map {given}"
    if samples is not None and samples.shape[1] == 1:  # no point on a sphere
        return "", " --kernel gaussian"
    found = "" if samples is None else seems(first_rows(samples)) or ""
    found = "gaps" if samples is not None and samples.has_gaps else found
    taken = not refused and sphere_map != "identity"
    if samples is None or (taken and found != "units"):
        return "", ""  # the map of the plan is that of the commands, and takes the samples
    return WAYS.get(found, WAYS["z-scores"] if refused else ("", ""))


class Proposals:
    """What comes after a plan, by a look at the samples: at all if pilot fits read them too.

    `words` are those of samples, labels, groups and memory.
    """

    def __init__(
        self,
        opened: Samples | None,
        words: tuple[str | None, str | None, str | None, str | None],
        table: Reading,
        prediction: Prediction,
        plans: TrainingPlans,
    ) -> None:
        self.samples, self.labels, self.groups, self.memory = words
        self.table, self.prediction, self.plans = table, prediction, plans
        given, whole = plans.sphere_map, self.labels is not None
        sphere_map = fixed_map(given) or parse_sphere_map(plans.kernel.default_map)
        check = partial(check_rows, sphere_map, zero_rows=ZeroRows())
        own = refuse_infinite if given == SCALED else check
        self.refused = refusal_of(opened, own, whole=whole)
        """Why the kernel of the plan does not take the samples; empty if it does."""
        self.others = not self.refused or not refusal_of(opened, refuse_infinite, whole=whole)
        """Whether kernels of scaled columns do."""
        self.options = _options(opened, given, sphere_map, self.refused)
        """Those of a grid and of one matrix where the default kernel does not take the samples."""

    @property
    def rank(self) -> int | None:
        """Largest rank of the plan whose grid fits the memory; None if none does."""
        ways = self.plans.ways.items()
        return max((rank for rank, way in ways if rank and way.grid is not None), default=None)

    def instead(self) -> list[tuple[str, str]]:
        """Row (what, value) of what fits where the store does not fit its disk."""
        return [] if self.prediction.fits_disk else [("what fits", "; ".join(self._ways()))]

    def _ways(self) -> Iterator[str]:
        exact, rank = self.plans.ways[None], self.rank
        if rank is not None:
            grid = self.plans.ways[rank].grid
            assert grid is not None
            yield (
                f"rank {rank:,} in {format_bytes(grid.need.total)} of memory, {self._time(rank)} "
                f"(--rank {rank})"
            )
        plan: GramPlan = self.prediction.plan
        mapped = plan.sample_bytes
        free = self.prediction.free
        if free is not None and mapped > free:
            yield f"nothing that stages the samples, {format_bytes(mapped)}"
            return
        staged = f"with {format_bytes(mapped)} of samples on disk"
        if exact.grid is not None:
            yield (
                f"exact SVMs from the columns that they need, {self._time(None)}, "
                f"{staged} (cv stores no products)"
            )

    def _time(self, rank: int | None) -> str:
        """Rough time of the grid of the plan, in words."""
        shape = self.plans.grid
        return f"{rough_seconds(self.prediction.seconds_of_grid(shape, rank))} for {shape.words}"

    @property
    def _rank_option(self) -> str:
        """A rank where exact classifiers do not fit, or would take long without a store."""
        exact = self.plans.ways[None].grid is not None
        if exact and not self.prediction.fits_disk:
            exact = self.prediction.seconds_of_grid(self.plans.grid, None) < LONG_SECONDS
        return "" if exact or self.rank is None else f" --rank {self.rank}"

    def commands(self) -> list[str]:
        """The matrix, or a classifier of samples whose labels are known; none that was refused."""
        if not self.others or not self.prediction.plan.fits:
            return []
        source = quoted(self.samples or "SAMPLES")
        grouped = f" --groups {quoted(self.groups)}" if self.groups else ""
        memory = f" --memory {self.memory}" if self.memory else ""
        (several, kernel), found = self.options, list[str]()
        labels = f" --labels {quoted(self.labels or '')}"
        if self.labels is None:
            labels = label_words(self.samples) if self.samples else " --labels LABELS"
        if "LABELS" not in labels or not self.prediction.fits_disk:
            rank = self._rank_option
            if rank or self.plans.ways[None].grid is not None:
                own = f"{source}{self.table.words}{labels}{grouped}"
                found.append(f"dhsk cv {own}{several}{rank} --out DIR{memory}")
        learns = self.plans.sphere_map in LEARNT or (several and not kernel)  # as no matrix does
        if self.prediction.fits_disk and not learns:
            used = self.table
            for words in (self.groups, self.labels):  # their columns are no features
                used = used.without(own_label_column(self.samples or "", words))
            found.append(f"dhsk gram {source}{used.words}{kernel} --out STORE{memory}")
        return found
