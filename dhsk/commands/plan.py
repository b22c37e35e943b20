"""The command `dhsk plan`: cost of a Gram matrix and of training, here or elsewhere."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from dhsk.bars import show_progress
from dhsk.commands.console import (
    hint,
    hint_next,
    kernel_words,
    print_pairs,
    print_table,
    say,
    say_json,
)
from dhsk.commands.inputs import open_samples_of, own_label_column
from dhsk.commands.labelled import read_labels_of
from dhsk.commands.options import (
    device_option,
    has_no_time,
    json_option,
    kernel_options,
    make_kernel,
    memory_option,
    name_kernel,
    tile_options,
)
from dhsk.commands.parameters import PathParameter, PlaceParameter
from dhsk.commands.plan_json import gram_facts, training_facts
from dhsk.commands.plan_next import Proposals
from dhsk.commands.plan_training import (
    Classifiers,
    TrainingPlans,
    plan_training,
    say_training,
    time_training,
    training_options,
)
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.table import DATA, RUN, gathered, option, rows_of
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.memory import Allowance
from dhsk.execution.resources import Resources, are_heavy
from dhsk.gram.plan import GramPlan, make_plan
from dhsk.gram.prepare import takes_float32
from dhsk.gram.sides import GramSides
from dhsk.models.sources import RowsShape
from dhsk.objects.places import free_bytes
from dhsk.planning.device import device_lines
from dhsk.planning.methods import HEADS, TOO_BIG, MethodCost, method_costs
from dhsk.planning.overlap import measured_overlap
from dhsk.planning.prediction import Prediction
from dhsk.planning.rates import (
    Rates,
    cache_file,
    kernel_seconds,
    known_rates,
    measure_rates,
    save_rates,
)
from dhsk.samples import Samples, read_labels
from dhsk.samples.weighted import width_under
from dhsk.units import parse_bytes
from dhsk.verbosity import Verbosity, verbosity

PAPER: Final = rows_of(
    DATA,
    option("--n", common=True, type=click.IntRange(1), help="Number of samples, without a file."),
    option(
        "--dim", common=True, type=click.IntRange(1), help="Number of features, without a file."
    ),
    option("--density", type=click.FloatRange(0, 1), help="Share of non-zeros, if sparse."),
)

MACHINE: Final = rows_of(
    RUN,
    option(
        "--workers", common=True, type=click.IntRange(1), help="Worker processes. [default: cores]"
    ),
    memory_option,
    device_option,
    option(
        "--passes",
        type=click.IntRange(1),
        default=1,
        help="Times that the whole matrix will be read.",
    ),
    option(
        "--measure", is_flag=True, common=True, help="Measure this machine, and keep the rates."
    ),
    option(
        "--place",
        type=PathParameter(exists=True, file_okay=False),
        default=".",
        help="Folder on the disk that --measure measures.",
    ),
    option(
        "--out",
        type=PlaceParameter(),
        help="Where the store would be: whether its disk has the room. [default: this folder]",
    ),
    json_option,
)


def _rows_of_paper(paper: dict[str, Any]) -> RowsShape:
    """Samples of some numbers, mapped in float64."""
    n, dim, density = paper["n"], paper["dim"], paper["density"]
    if n is None or dim is None:
        raise click.UsageError("give SAMPLES, or both --n and --dim")
    return RowsShape(n, dim, 8, None if density is None else int(density * n * dim))


@click.command("plan")
@click.argument("samples", required=False)
@gathered("paper", dict, *PAPER)
@gathered("machine", dict, *MACHINE)
@training_options
@kernel_options
@tile_options
@reading_options
def plan(
    samples: str | None,
    paper: dict[str, Any],
    machine: dict[str, Any],
    training: Classifiers,
    kernel: dict[str, Any],
    tiles: dict[str, Any],
    table: Reading,
) -> None:
    """Say what a Gram matrix and classifiers would cost.

    First size, arithmetic, memory and time of the matrix, and what limits it. Then time,
    core-hours, bytes and requests of each way to use the samples, by the speed of this machine, and
    the memory of classifiers. With --labels their seconds too, extrapolated from fits to small
    parts of the samples. Alone, --measure measures this machine for all plans to come. --verbose
    says more.
    """
    as_json, limit = machine["as_json"], machine["memory"] and parse_bytes(machine["memory"])
    rates = _measure(machine["place"], quiet=as_json) if machine["measure"] else None
    if rates is not None and (samples, paper["n"], paper["dim"]) == (None, None, None):
        if as_json:
            say_json({"rates": asdict(rates)})
        return
    resources = _resources(machine["workers"], limit)
    on_paper = resources.workers > core_count()
    allowed = Allowance.now(resources.memory if on_paper else limit)  # before anything is read
    if training.labels is not None and (samples is None or training.classes is not None):
        raise click.UsageError("--labels goes with SAMPLES, and without --classes")
    name_kernel(kernel, training.sphere_map)
    opened = None if samples is None else _opened(samples, table, training)
    rows = _rows_of_paper(paper) if opened is None else RowsShape.of_samples(opened, "float64")
    given = training.labels
    labels = None if given is None else read_labels(given, rows.n, header=table.header)
    if rows.dim == 1 and has_no_time(kernel):  # no point on a sphere
        kernel = kernel | {"kernel": "gaussian"}
    width = None if opened is None else width_under(opened, training.sphere_map)
    made = make_kernel(rows.dim, **kernel, width=width)
    overlap = measured_overlap(opened) if opened is not None and opened.is_sparse else None
    sides = GramSides(rows.n, rows.dim, nnz=rows.nnz)
    if opened is not None:
        sides = GramSides.of([opened], None if overlap is None else overlap[0])
    gram = make_plan(sides, resources, **tiles)
    plans = plan_training(rows, made, training, labels, gram, allowed)
    seconds = kernel_seconds(made, gram.product_dtype)
    free = free_bytes(machine["out"] or Path())
    prediction = Prediction(gram, rates or known_rates(), seconds, free=free)
    costs = _costs(prediction, plans, machine["passes"])
    own = samples, training.labels, training.groups, machine["memory"]
    after = Proposals(opened, own, table, prediction, plans)
    if not as_json:
        title = f"Gram matrix of {samples or 'samples to come'}, kernel {kernel_words(made)}"
        lines = device_lines(gram, made)
        _say_gram(title, prediction, overlap and overlap[1], after, lines)
    timed = time_training(plans, opened, training)
    if as_json:
        facts = {"gram": gram_facts(prediction, machine["passes"]), **training_facts(plans, timed)}
        facts["methods"] = [cost.facts(prediction.at_once) for cost in costs]
        say_json(
            {
                "samples": samples,
                "kernel": made.to_spec(),
                **facts,
                "refused": after.refused,
                "next": after.commands(),
            }
        )
    else:
        _say_costs(costs, prediction.at_once)
        say_training(plans, timed, training)
        hint_next(after.commands())
    gram.check(free if machine["out"] is not None else None)


def _opened(samples: str, table: Reading, training: Classifiers) -> Samples:
    """The samples, without the columns of labels and groups; InputError for groups of others."""
    used = table.without(own_label_column(samples, training.groups))
    opened = open_samples_of(samples, used, training.labels)
    if training.groups is not None:
        read_labels_of(opened, training.groups, table, min_classes=1)
    return opened


def _resources(workers: int | None, limit: int | None) -> Resources:
    """Worker processes as commands start them: threads where these would take the memory.

    Each of more workers than cores has the memory of a core here, unless there is a limit.
    """
    cores, memory = core_count(), limit or memory_limit()
    if workers is None and are_heavy(cores, memory):
        return Resources(0, cores, memory)
    count = workers or cores
    return Resources(count, count, limit or memory * max(count, cores) // cores)


def _costs(prediction: Prediction, plans: TrainingPlans, passes: int) -> list[MethodCost]:
    """Costs of each way to use the samples; features are of float32 where the kernel takes it."""
    features, kernel = prediction, plans.kernel
    if takes_float32(kernel):
        features = prediction.in_single(kernel_seconds(kernel, "float32"))
    return list(method_costs(prediction, features, plans.grid, plans.ways, passes))


def _say_costs(costs: list[MethodCost], cores: int) -> None:
    print_table(HEADS, [cost.row(cores) for cost in costs])
    hint("(GET and PUT: requests of either price class, where samples and results are on S3)")
    if not all(cost.fits for cost in costs):
        hint(f"({TOO_BIG}: does not fit this memory or disk; these are its costs where it does)")


def _say_gram(
    title: str,
    prediction: Prediction,
    read: int | None,
    after: Proposals,
    on_device: list[tuple[str, str]],
) -> None:
    planned: GramPlan = prediction.plan
    rows = [*planned.table(), *prediction.table(), *on_device]
    count, cores = planned.resources.workers, core_count()
    if count > cores:
        rows += prediction.on_paper()
    if verbosity() >= Verbosity.VERBOSE:
        counted_on = [] if read is None else [("counted on", f"the first {read:,} samples")]
        rows += [*counted_on, *prediction.speeds(), *prediction.limits()]
    else:
        rows += prediction.binding() or [("limits", "none is near (--verbose lists them)")]
    if count <= cores:  # else the disk is another one
        rows += after.instead()
    if after.refused:
        rows.append(("refused", after.refused))
    print_pairs(title, rows)
    if count > cores:
        say(f"({count:,} workers on paper: each like one of the {cores} cores here, one disk)")


def _measure(place: Path, *, quiet: bool) -> Rates:
    """Measure this machine, print its rates, and keep them."""
    with show_progress() as progress:
        rates = measure_rates(place, progress)
    if not quiet:
        print_pairs("Rates of this machine, all cores at once", rates.table())
    try:
        save_rates(rates)
        if not quiet:
            hint(f"kept in {cache_file()}")
    except OSError as error:
        click.echo(f"dhsk: the rates cannot be kept, so plans measure again: {error}", err=True)
    return rates
