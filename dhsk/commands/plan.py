"""The command `dhsk plan`: what a Gram matrix would cost, here or on a larger machine."""

import shutil
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import click

from dhsk.commands.console import print_pairs, print_table, say, show_progress
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import (
    KernelOptions,
    TableOptions,
    TileOptions,
    kernel_options,
    table_options,
    tile_options,
)
from dhsk.commands.parameters import PathParameter, WholeNumbers
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import Resources
from dhsk.gram.plan import GramPlan, make_plan
from dhsk.planning.comparison import COLUMNS, RANKS, Comparison, compare
from dhsk.planning.exact_cost import GridShape
from dhsk.planning.overlap import measured_overlap
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import Rates, kernel_seconds, measure_rates
from dhsk.planning.rates_cache import cache_file, load_rates, save_rates
from dhsk.units import parse_bytes

QUICK_REPEATS = 2
"""Products that are timed where no rates are kept: a quarter of a second in all."""


class GridNumbers(WholeNumbers):
    """Folds, values of C and kernels, separated by commas."""

    name = "folds,C,kernels"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[int]:
        """Parse, or fail with a usage error."""
        numbers = super().convert(value, param, ctx)
        if len(numbers) != 3 or min(numbers) < 1 or numbers[0] < 2:
            self.fail(f"{value!r} is not 2 folds or more, values of C and kernels", param, ctx)
        return numbers


@click.command("plan")
@click.argument("samples", required=False)
@click.option("--n", type=click.IntRange(1), help="Number of samples, without a file.")
@click.option("--dim", type=click.IntRange(1), help="Number of features, without a file.")
@click.option("--density", type=click.FloatRange(0, 1), help="Share of non-zeros, if sparse.")
@click.option("--workers", type=click.IntRange(1), help="Worker processes. [default: cores]")
@click.option("--memory", help="Most memory for all processes together, such as 4GB.")
@click.option(
    "--passes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Times that the whole matrix will be read.",
)
@click.option("--measure", is_flag=True, help="Measure this machine, and keep the rates.")
@click.option(
    "--place",
    type=PathParameter(exists=True, file_okay=False),
    default=".",
    show_default=True,
    help="Folder on the disk that --measure measures, and where stores would be.",
)
@click.option(
    "--rank",
    "ranks",
    type=WholeNumbers(),
    multiple=True,
    help=f"Ranks to compare with exact SVMs. [default: {','.join(map(str, RANKS))}]",
)
@click.option("--classes", type=click.IntRange(2), default=2, show_default=True, help="Of labels.")
@click.option(
    "--grid",
    type=GridNumbers(),
    default="5,3,3",
    show_default=True,
    help="Folds, values of C and kernels of a cross-validation.",
)
@kernel_options
@tile_options
@table_options
def plan(
    samples: str | None,
    n: int | None,
    dim: int | None,
    density: float | None,
    workers: int | None,
    memory: str | None,
    passes: int,
    measure: bool,
    place: Path,
    ranks: tuple[list[int], ...],
    classes: int,
    grid: list[int],
    table: TableOptions,
    tiles: TileOptions,
    kernel: KernelOptions,
) -> None:
    """Say what a Gram matrix would cost: tiles, bytes, arithmetic, time, memory, limits.

    Then what support vector machines on it would cost, exact and of low rank. Alone, --measure
    measures this machine for all plans to come.
    """
    rates = _measure(place) if measure else None
    if measure and samples is None and n is None and dim is None:
        return
    cores = core_count()
    count = workers or cores
    resources = Resources(count, count, parse_bytes(memory) if memory else memory_limit())
    planned, read = _plan(samples, table, n, dim, density, resources, asdict(tiles))
    made = kernel.make(planned.dim)
    prediction = Prediction(
        planned, rates or known_rates(), kernel_seconds(made, planned.product_dtype)
    )
    disk_free = shutil.disk_usage(place).free if count <= cores else None
    shape = GridShape(classes, *grid)
    comparison = compare(prediction, shape, list(chain(*ranks)) or RANKS, disk_free)
    print_pairs(
        f"Gram matrix of {samples or 'samples to come'}, {made.label}",
        [
            *planned.table(),
            *([("sparse path", f"by the first {read:,} samples")] if read else []),
            *prediction.table(passes),
            *prediction.limits(),
        ],
    )
    if count > cores:
        say(f"({count} workers on paper: each as fast as one of the {cores} cores here, one disk)")
    _say_comparison(comparison)
    planned.check()
    say(
        f"next:   dhsk gram {samples or 'SAMPLES'}{table.words} --out STORE"
        + (f" --memory {memory}" if memory else "")
    )


def _plan(
    source: str | None,
    table: TableOptions,
    n: int | None,
    dim: int | None,
    density: float | None,
    resources: Resources,
    options: dict[str, Any],
) -> tuple[GramPlan, int]:
    """Plan of a file or of numbers, and how many samples were read for it."""
    nnz, overlap, fullest, read = None, None, None, 0
    if source is not None:
        opened = open_samples_of(source, table)
        (n, dim), nnz = opened.shape, opened.nnz
        if opened.is_sparse:
            overlap, read = measured_overlap(opened)
            fullest = opened.most_entries
    elif n is None or dim is None:
        raise click.UsageError("give SAMPLES, or both --n and --dim")
    elif density is not None:
        nnz = int(density * n * dim)
    plan = make_plan(n, dim, resources, nnz=nnz, fullest=fullest, overlap=overlap, **options)
    return plan, read


def _say_comparison(found: Comparison) -> None:
    """Print what exact SVMs and those of low rank would cost, and which to take."""
    say(found.title)
    print_table(COLUMNS, found.table())
    say(f"({found.assumptions()})")
    say(f"advice: {found.advice()}")


def known_rates() -> Rates:
    """Rates kept by `dhsk plan --measure`, or else measured now, disk and scheduler assumed."""
    return load_rates() or measure_rates(None, repeats=QUICK_REPEATS)


def _measure(place: Path) -> Rates:
    """Measure this machine, print what was found, and keep it."""
    with show_progress() as progress:
        rates = measure_rates(place, progress)
    print_pairs("Rates of this machine, all cores at once", rates.table())
    try:
        save_rates(rates)
        say(f"kept in {cache_file()}")
    except OSError as error:
        click.echo(f"dhsk: the rates cannot be kept, so plans measure again: {error}", err=True)
    return rates
