"""Part of `dhsk plan` on classifiers: their memory, and with labels their seconds."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.commands.console import hint, print_table, say, say_wrapped
from dhsk.commands.options import labels_option
from dhsk.commands.parameters import GRID, WHOLE_NUMBERS, MapParameter
from dhsk.commands.table import FIT, gathered, option, rows_of
from dhsk.errors import InputError
from dhsk.execution.memory import Allowance
from dhsk.gram.plan import GramPlan
from dhsk.gram.prepare import takes_float32
from dhsk.kernels import Kernel
from dhsk.models.low_rank_plan import usual_dtype
from dhsk.models.sources import RowsShape
from dhsk.planning.pilot import SMALLEST, Pilot, run_pilot
from dhsk.planning.training import (
    COLUMNS,
    GridShape,
    Training,
    equal_classes,
    exact_training,
    low_rank_training,
)
from dhsk.samples import Samples
from dhsk.samples.maps import MAPS
from dhsk.samples.weighted import LEARNT, MapName
from dhsk.verbosity import Verbosity, verbosity

RANKS = 500, 1000, 2000, 5000
"""Ranks that are planned by default."""

MOST_PILOT_RANK = 2000
"""Highest rank of a pilot fit, which takes twice as many samples and more: some seconds."""


LINEAR = 1.2
"""Power of the number of samples like which fits of a rank grow at the most: ten million took 10.1
times as long as a million."""


@dataclass(frozen=True)
class Classifiers:
    """Classifiers to plan."""

    ranks: tuple[list[int], ...]
    labels: str | None
    groups: str | None
    C: float
    classes: int | None
    grid: list[int]
    sphere_map: MapName | None
    """Map of the samples; None for the kernel's, as the first of several is."""

    def named(self, n: int) -> list[int]:
        """Ranks on the command line, at most n, ascending."""
        named = sorted({min(rank, n) for rank in chain(*self.ranks)})
        if named and named[0] < 1:
            raise InputError(f"the rank must be at least 1, got {named[0]}")
        return named


training_options = gathered(
    "training",
    Classifiers,
    *rows_of(
        FIT,
        option(
            "--rank",
            "ranks",
            common=True,
            type=WHOLE_NUMBERS,
            multiple=True,
            help=f"Ranks of low-rank classifiers. [default: {','.join(map(str, RANKS))}]",
        ),
        labels_option.of(help="FILE or FILE:COLUMN: time pilot fits and extrapolate."),
        option("--groups", help="FILE or FILE:COLUMN: no feature, and for what comes next."),
        option("--C", "C", type=float, default=1.0, help="C of the pilot fits."),
        option("--classes", type=click.IntRange(2), help="If there are no --labels. [default: 2]"),
        option(
            "--grid",
            common=True,
            type=GRID,
            default="5,3,3",
            help="Folds, values of C and kernels of a cross-validation.",
        ),
        option(
            "--map",
            "sphere_map",
            type=MapParameter((*MAPS, *LEARNT)),
            help="How samples become unit vectors. [default: the kernel's]",
        ),
    ),
)


@dataclass(frozen=True)
class TrainingPlans:
    """Plans of training on some samples, by their rank; None is exact."""

    kernel: Kernel
    labels: NDArray[Any] | None
    grid: GridShape
    ways: dict[int | None, Training]
    sphere_map: MapName | None


def plan_training(
    rows: RowsShape,
    kernel: Kernel,
    options: Classifiers,
    labels: NDArray[Any] | None,
    gram: GramPlan,
    allowed: Allowance,
) -> TrainingPlans:
    """Plan the memory of exact classifiers and of each rank.

    `rows` describes the samples, mapped in float64; `gram` is the plan of the matrix, on the
    workers of a cross-validation; `allowed` is the memory of this process.
    """
    n, single = rows.n, replace(rows, itemsize=4)
    sizes = equal_classes(n, options.classes or 2)
    if labels is not None:
        sizes = tuple(np.unique(labels, return_counts=True)[1].tolist())
    grid = GridShape(sizes, *options.grid)
    exact = replace(rows, itemsize=np.dtype(gram.product_dtype).itemsize)
    ways: dict[int | None, Training] = {None: exact_training(exact, grid, allowed, gram)}
    for rank in options.named(n) or sorted({min(rank, n) for rank in RANKS}):
        own = rows if usual_dtype(kernel, n, rank) == "float64" else single
        of_grid = single if takes_float32(kernel) else rows
        ways[rank] = low_rank_training(own, of_grid, rank, grid, allowed)
    return TrainingPlans(kernel, labels, grid, ways, options.sphere_map)


Timed = Mapping[int | None, Pilot | str]
"""Pilot fits of classifiers by their rank, or why there are none."""


def time_training(plans: TrainingPlans, samples: Samples | None, options: Classifiers) -> Timed:
    """Time pilot fits of the exact classifier and of the ranks that were named, with labels."""
    if samples is None or plans.labels is None:
        return {}
    timed: dict[int | None, Pilot | str] = {}
    for rank in (None, *options.named(len(plans.labels))):
        if plans.ways[rank].model is None:
            continue
        try:
            timed[rank] = _pilot(samples, plans, rank, options.C)
        except InputError as error:
            timed[rank] = str(error)
    return timed


def say_training(plans: TrainingPlans, timed: Timed, options: Classifiers) -> None:
    """Print the memory of classifiers, and their seconds if there are labels."""
    grid = plans.grid
    say(f"Memory of SVMs, {len(grid.sizes)} classes: one model, and a grid search of {grid.words}")
    print_table(COLUMNS, [way.row() for way in plans.ways.values()])
    if verbosity() >= Verbosity.VERBOSE:
        for way in (plans.ways[rank] for rank in (None, *options.named(sum(grid.sizes)))):
            if way.model is not None:
                say_wrapped(f"memory of {way.name}: ", way.model.need.words)
    hint("(exact: as scikit-learn's SVC; rank R: linear on R features, as Nystroem and LinearSVC)")
    if plans.labels is None:
        hint("(for seconds give labels: dhsk plan FILE --labels L times fits to parts of them)")
        return
    n, rows = len(plans.labels), []
    for rank, pilot in timed.items():
        way = plans.ways[rank]
        if isinstance(pilot, str):
            say(f"{way.name}: {pilot}")
            continue
        say(f"pilot of {way.name}, C = {options.C:g}: {pilot.timed}")
        least = "" if way.model is None or way.model.whole else "at least "
        rows.append([way.name, *(least + pilot.words(n, fits) for fits in (1, grid.fits))])
    if not rows:
        return
    say(f"Seconds for all {n:,} samples, an extrapolation of the pilot fits; reading comes on top")
    print_table(("", "one model", f"{grid.fits} fits, one after the other"), rows)


def _pilot(samples: Samples, plans: TrainingPlans, rank: int | None, C: float) -> Pilot:
    """Times of pilot fits by the estimators that `dhsk train` uses."""
    from dhsk.estimators.nystrom_svc import NystromSVC
    from dhsk.estimators.svc import HeatSVC

    assert plans.labels is not None
    asked: Any = {"kernel": plans.kernel, "sphere_map": plans.sphere_map}
    if rank is None:
        fit, smallest, steepest = HeatSVC(C, **asked).fit_samples, SMALLEST, math.inf
    elif rank > MOST_PILOT_RANK:
        raise InputError(f"pilot fits of ranks above {MOST_PILOT_RANK:,} would take too long")
    else:
        dtype = usual_dtype(plans.kernel, samples.shape[0], rank)
        model = NystromSVC(rank, C, dtype=dtype, random_state=0, **asked)
        fit, smallest, steepest = model.fit_samples, max(SMALLEST, 2 * rank), LINEAR
    with warnings.catch_warnings():  # of the parts: those of all samples come with the fit
        warnings.simplefilter("ignore")
        return run_pilot(samples, plans.labels, fit, smallest, steepest=steepest)
