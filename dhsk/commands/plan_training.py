"""The part of `dhsk plan` about classifiers: their memory, and with labels their seconds."""

import warnings
from dataclasses import dataclass
from itertools import chain
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.commands.console import print_table, say
from dhsk.commands.options import TableOptions, gathered
from dhsk.commands.parameters import WholeNumbers
from dhsk.errors import InputError
from dhsk.execution.memory import Allowance
from dhsk.gram.plan import GramPlan
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.models.low_rank_plan import usual_dtype
from dhsk.planning.pilot import SMALLEST, Pilot, check_pilot, run_pilot
from dhsk.planning.training import (
    COLUMNS,
    RANKS,
    GridShape,
    SamplesShape,
    TrainingPlan,
    equal_classes,
    exact_training,
    low_rank_training,
)
from dhsk.samples import read_labels

MOST_PILOT_RANK = 2000
"""Highest rank of a pilot fit, which takes twice as many samples and more: some seconds."""


class GridNumbers(WholeNumbers):
    """Folds, values of C and kernels, separated by commas."""

    name = "folds,C,kernels"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Parse, or fail with a usage error."""
        numbers = super().convert(value, param, ctx)
        if len(numbers) != 3 or min(numbers) < 1 or numbers[0] < 2:
            self.fail(f"{value!r} is not 2 folds or more, values of C and kernels", param, ctx)
        return numbers


@dataclass(frozen=True)
class _Wanted:
    """Classifiers to plan."""

    grid: GridShape
    ranks: list[int]
    """At most the number of samples, ascending."""
    timed: list[int]
    """Those of them that pilot fits are made for."""
    labels: NDArray[Any] | None


@dataclass(frozen=True)
class TrainingOptions:
    """What is to be trained."""

    ranks: tuple[list[int], ...]
    labels: str | None
    C: float
    classes: int | None
    grid: list[int]

    def read(self, source: str | None, table: TableOptions, shape: SamplesShape) -> _Wanted:
        """Read the labels, and check what goes together.

        Raises
        ------
        InputError
            Ranks or labels cannot be used, or there are too few samples for pilot fits.
        """
        if self.labels is not None and (source is None or self.classes is not None):
            raise click.UsageError("--labels goes with SAMPLES, and without --classes")
        named = sorted({min(rank, shape.n) for rank in chain(*self.ranks)})
        if named and named[0] < 1:
            raise InputError(f"the rank must be at least 1, got {named[0]}")
        ranks = named or sorted({min(rank, shape.n) for rank in RANKS})
        sizes, labels = equal_classes(shape.n, self.classes or 2), None
        if self.labels is not None:
            labels = read_labels(self.labels, shape.n, header=table.header)
            sizes = tuple(np.unique(labels, return_counts=True)[1].tolist())
            check_pilot(labels)
        return _Wanted(GridShape(sizes, *self.grid), ranks, named, labels)


training_options = gathered(
    "training",
    TrainingOptions,
    click.option(
        "--rank",
        "ranks",
        type=WholeNumbers(),
        multiple=True,
        help=f"Ranks of low-rank classifiers. [default: {','.join(map(str, RANKS))}]",
    ),
    click.option("--labels", help="FILE or FILE:COLUMN: time pilot fits and extrapolate."),
    click.option("--C", "C", type=float, default=1.0, show_default=True, help="Of pilot fits."),
    click.option("--classes", type=click.IntRange(2), help="Without --labels. [default: 2]"),
    click.option(
        "--grid",
        type=GridNumbers(),
        default="5,3,3",
        show_default=True,
        help="Folds, values of C and kernels of a cross-validation.",
    ),
)


@dataclass(frozen=True)
class _Planned:
    """Ways to train some samples, by their rank; None is exact."""

    shape: SamplesShape
    kernel: Kernel
    wanted: _Wanted
    ways: dict[int | None, TrainingPlan]


def plan_training(
    shape: SamplesShape, kernel: Kernel, wanted: _Wanted, gram: GramPlan, allowed: Allowance
) -> _Planned:
    """Plan the memory of all ways to train.

    Parameters
    ----------
    shape, kernel
        The samples and the kernel.
    wanted
        The classifiers.
    gram
        Plan of the matrix, on the workers that a cross-validation uses too.
    allowed
        What this process may use.
    """
    ways: dict[int | None, TrainingPlan] = {}
    ways[None] = exact_training(shape.rows("float64"), wanted.grid, allowed, gram)
    of_grid = shape.rows("float32" if takes_float32(kernel) else "float64")
    for rank in wanted.ranks:
        rows = shape.rows(usual_dtype(kernel, shape.n, rank))
        ways[rank] = low_rank_training(rows, of_grid, rank, wanted.grid, allowed)
    return _Planned(shape, kernel, wanted, ways)


def say_training(planned: _Planned, C: float) -> None:
    """Print the memory of classifiers, and their seconds if there are labels.

    Parameters
    ----------
    planned
        The classifiers.
    C
        Of the pilot fits.
    """
    grid = planned.wanted.grid
    say(
        f"Memory of classifiers, {len(grid.sizes)} classes: one model, and a grid of "
        f"{grid.folds} folds x {grid.chain} C x {grid.kernels} kernels"
    )
    print_table(COLUMNS, [way.row() for way in planned.ways.values()])
    if planned.wanted.labels is None:
        say("(for seconds give labels: dhsk plan FILE --labels L times small pilot fits)")
        return
    rows = []
    for rank in (None, *planned.wanted.timed):
        way = planned.ways[rank]
        if way.model is None:
            continue
        try:
            pilot = _pilot(planned, rank, C)
        except InputError as error:
            say(f"{way.name}: {error}")
            continue
        say(f"pilot of {way.name}, C = {C:g}: {pilot.timed}")
        least = "" if way.model.ample else "at least "
        ranges = (pilot.words(planned.shape.n, fits) for fits in (1, grid.fits))
        rows.append([way.name, *(least + seconds for seconds in ranges)])
    say(f"Seconds for all {planned.shape.n:,} samples, an extrapolation of the pilot fits")
    print_table(("", "one model", f"{grid.fits} fits, one after the other"), rows)


def _pilot(planned: _Planned, rank: int | None, C: float) -> Pilot:
    """Times of pilot fits by the estimators that `dhsk train` uses."""
    from dhsk.estimators import HeatSVC, NystromSVC

    samples, labels = planned.shape.opened, planned.wanted.labels
    assert samples is not None  # labels come with samples
    assert labels is not None
    if rank is None:
        fit, smallest = HeatSVC(C, kernel=planned.kernel).fit_samples, SMALLEST
    elif rank > MOST_PILOT_RANK:
        raise InputError(f"pilot fits of ranks above {MOST_PILOT_RANK:,} would take too long")
    else:
        dtype = usual_dtype(planned.kernel, planned.shape.n, rank)
        model = NystromSVC(rank, C, kernel=planned.kernel, dtype=dtype, random_state=0)
        fit, smallest = model.fit_samples, max(SMALLEST, 2 * rank)
    with warnings.catch_warnings():  # of the parts: those of all samples come with the fit
        warnings.simplefilter("ignore")
        return run_pilot(samples, labels, fit, smallest)
