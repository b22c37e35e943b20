"""The command `dhsk compare`: whether two sets of samples come from one distribution."""

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from time import perf_counter
from typing import Any, Final

import click
import numpy as np

from dhsk.arrays import Floats
from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked
from dhsk.commands.console import hint, kernel_words, print_table, say, say_cost_of, say_wrapped
from dhsk.commands.earlier_run import PAGE, TABLES, WITNESS, check_earlier, opening, settings_of
from dhsk.commands.inputs import names_in_table, open_samples_of
from dhsk.commands.options import (
    KERNEL_OF_MAP,
    OF_COLUMNS,
    Cluster,
    has_no_time,
    make_kernels,
    map_rows,
    name_by_looks,
    out_option,
    shared_options,
)
from dhsk.commands.parameters import NUMBERS, NUMBERS_OR_AUTO, SEED
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.table import FIT, JUDGE, RUN, gathered, option
from dhsk.costs import Cost
from dhsk.errors import InputError, warn
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.run import Run
from dhsk.execution.workers import computing
from dhsk.gram import MeanDiscrepancy, compute_gram, maximum_mean_discrepancy
from dhsk.gram.discrepancy import permutation_bytes
from dhsk.gram.plan import make_plan
from dhsk.gram.prepare import Data, check_kernels
from dhsk.gram.sides import GramSides
from dhsk.kernels import HeatKernel, Kernel, parse_kernel
from dhsk.objects.places import (
    Place,
    check_writable,
    made_folder,
    remove_scratch,
    scratch_in,
    written,
)
from dhsk.planning.fits import FLOPS
from dhsk.report.two_samples import most_different, write_two_samples
from dhsk.results.two_samples import ComparedKernel, ComparedSet, TwoSamples
from dhsk.samples import Samples, SphereMap, ZeroRows
from dhsk.samples.dates import order_of, said_of
from dhsk.samples.gaps import GappedSamples, warn_of_codes
from dhsk.samples.joined import JoinedSamples
from dhsk.samples.looks import first_rows, warn_of_spread
from dhsk.samples.names import in_order, listed, shown
from dhsk.samples.refusals import NoNumbersError, refuse_infinite
from dhsk.samples.scan import Scan, scan
from dhsk.samples.variance import width_of
from dhsk.samples.weighted import SCALED, WeightedSamples, fixed_map, means_and_factors
from dhsk.units import counted
from dhsk.validation.start import first_scales

SETS: Final = ("A", "B")

WAYS: Final = (
    next(row for row in KERNEL_OF_MAP if row.name == "kernel"),
    option(
        "--time-scale",
        group=FIT,
        common=True,
        type=NUMBERS_OR_AUTO,
        default="auto",
        help="Times of heat and parametrix kernels in log(dim)/dim, such as 0.5,1, tested at once; "
        "auto: up to four at which samples are 0.1 to 0.9 alike.",
    ),
    option("--sigma", group=FIT, type=NUMBERS, help="Gaussian widths. [default: by the variance]"),
    *map_rows(SCALED),
    option(
        "--permutations",
        group=JUDGE,
        common=True,
        type=click.IntRange(19, 10**6),
        default=1000,
        help="Random divisions of the samples; the least p-value is 1 / (1 + this).",
    ),
    option("--seed", group=JUDGE, type=SEED, default=0, help="Of the permutations."),
)


@click.command("compare")
@click.argument("samples", metavar="A")
@click.argument("others", metavar="B")
@out_option.of(help="Results folder.")
@gathered("ways", dict, *WAYS)
@reading_options
@shared_options
@option("--overwrite", is_flag=True, group=RUN, help="Replace the results of another run in --out.")
def compare(
    samples: str,
    others: str,
    out: Place,
    ways: dict[str, Any],
    table: Reading,
    cluster: Cluster,
    overwrite: bool,
) -> None:
    """Say whether two sets of samples come from one distribution.

    A and B are files of samples with the same features. The test is by kernel mean discrepancy and
    permutations, and exact for any number of kernels. It says also which samples differ the most.
    Samples must not depend on each other: of several from one patient, say, give one or their mean.
    It runs in this process unless --cluster or --workers is given. The same command continues after
    an interrupt.
    """
    begin, limit = perf_counter(), cluster.limit
    journal = out / "fits" if cluster.part is None else None  # a part finds all that is done
    sets = _opened(samples, others, table)
    both: Samples = JoinedSamples.of(*sets)
    name_by_looks(ways, ways, both)
    with show_progress() as progress:
        chosen, described = _checked(sets, ways, Run(limit, report=progress))
        if ways["sphere_map"] == SCALED:
            both = _scaled(both)
        kernels = _kernels(both, ways, chosen)
        settings = settings_of(command="compare", **ways)
        marks = [one.fingerprint for one in described]
        mark = blake2b("".join(marks).encode(), digest_size=16).hexdigest()
        check_earlier(out, settings, lambda: mark, table.words, overwrite=overwrite)
        with _made(out, cluster), connected_if_asked(cluster, 0, out) as client:
            if isinstance(client, ArrayJob):
                client.check("samples", mark)
            run = Run(limit, client, journal=journal, report=progress)
            say_cost_of(lambda: _cost(both, len(kernels), ways["permutations"], run))
            sizes = [one.n_samples for one in described]
            found = _tested((both, sizes), kernels, chosen, ways, run)
            result = TwoSamples(
                version=version("dhsk"),
                created=datetime.now(UTC).isoformat(" ", "minutes"),
                sets=described,
                dim=both.shape[1],
                sphere_map=ways["sphere_map"] or chosen,
                kernels=_compared(kernels, found),
                best=found.kernel,
                unbiased=found.unbiased,
                biased=found.biased,
                p_value=found.p_value,
                permutations=found.permutations,
                seconds=perf_counter() - begin,
                samples={"fingerprint": mark},
                settings=settings,
            )
            if cluster.writes:
                _write(out, result, both, found.witness)
            if journal is not None:
                remove_scratch(journal)
    _say(out, result)


@contextmanager
def _made(out: Place, cluster: Cluster) -> Iterator[None]:
    """The folder of the results, if this process writes them.

    Another part of several would remove it in the end, where it is empty yet.
    """
    if not cluster.writes:
        yield
        return
    with made_folder(out):
        check_writable(out)
        yield


def _opened(samples: str, others: str, table: Reading) -> tuple[Samples, Samples]:
    """Both sets, with their features in the same order; InputError if they cannot be compared."""
    _check_dropped((samples, others), table)
    try:
        first, second = (open_samples_of(source, table, like=()) for source in (samples, others))
    except NoNumbersError as error:
        raise InputError(
            f"{error.place}: leave it out with --drop-column NAME, or name the samples by it with "
            "--id-column NAME"
        ) from None
    for name, one in zip(SETS, (first, second), strict=True):
        if one.vectorizer is not None:
            raise InputError(
                f"{name}, {one.source}, holds texts, and words that are counted in one set alone "
                "would make the two differ: count both at once, as with scikit-learn's "
                "CountVectorizer, and save the counts of each"
            )
        if one.shape[0] < 2:
            raise InputError(
                f"{name}, {one.source}, has {one.shape[0]} sample, but the test compares the "
                "samples of a set with one another: give at least 2"
            )
    ordered = in_order(second, first.feature_names, first.source, first.shape[1])
    _warn_of_dependence(first, second)
    return first, ordered


def _warn_of_dependence(*sets: Samples) -> None:
    """Warn where samples are not drawn one by one: rows that follow dates, names in both sets."""
    for name, one in zip(SETS, sets, strict=True):
        if order := order_of(one):
            warn(
                f"rows of {name}, {one.source}, follow {said_of(order)}: the p-value takes samples "
                "as independent, and is too small where neighbours in time are alike. Keep some "
                "rows far apart, or compare many series by a row for each"
            )
    first, second = (set(one.each_id() or ()) for one in sets)
    both = len(first & second)
    if 2 * both > min(len(first), len(second)) and not all(map(str.isdecimal, first & second)):
        warn(
            f"A and B have {counted(both, 'name')} of samples in common, but the test is of sets "
            "that are independent: leave in one what is in both"
        )


def _check_dropped(sources: tuple[str, str], table: Reading) -> None:
    """Refuse a column to leave out that neither set has: each may lack those of the other."""
    there = {name for one in sources for name in names_in_table(one, table) or table.drop_columns}
    unknown = [name for name in table.drop_columns if name not in there]
    if unknown:
        raise InputError(
            f"neither {sources[0]} nor {sources[1]} has a column {shown(unknown[0])}: their "
            f"columns are {listed(sorted(there))}"
        )


def _checked(
    sets: tuple[Samples, Samples], ways: dict[str, Any], run: Run
) -> tuple[SphereMap, tuple[ComparedSet, ComparedSet]]:
    """The map, and both sets read once: errors name the file and its row."""
    kernel = parse_kernel(ways["kernel"], sets[0].shape[1], width=lambda: 1.0)
    chosen = check_kernels([kernel], sets, fixed_map(ways["sphere_map"]))
    if ways["sphere_map"] == SCALED:
        scans = [_scanned(one) for one in sets]
    else:
        scans = Data(sets, [kernel], chosen, ways["zero_rows"]).scan(run)
    first, second = (
        ComparedSet(name, one.source, scan.n_samples, scan.zero_rows, scan.fingerprint)
        for name, one, scan in zip(SETS, sets, scans, strict=True)
    )
    return chosen, (first, second)


def _scanned(samples: Samples) -> Scan:
    """A set whose columns will be scaled; warns of its gaps, which may be what differs."""
    counted = GappedSamples(samples)
    if not samples.is_sparse:
        warn_of_codes(first_rows(samples), samples)
    found = scan(counted, None, check=refuse_infinite)
    counted.warn()
    return found


def _scaled(both: Samples) -> Samples:
    """All samples with columns of mean 0 and variance 1, learnt of both sets alike."""
    (weights,) = means_and_factors(both, np.ones((both.shape[0], 1), np.bool_))
    return WeightedSamples(both, weights)


def _kernels(both: Samples, ways: dict[str, Any], chosen: SphereMap) -> list[Kernel]:
    """The kernels, which depend on all samples alike and never on the sets they are in."""
    given, dim = dict(ways), both.shape[1]
    if has_no_time(ways):
        given["time_scale"] = first_scales(both, chosen, ways["zero_rows"])
    made = make_kernels([ways["kernel"]], dim, given | {"parametrix_scale": None})
    if ways["kernel"] in OF_COLUMNS:
        warn_of_spread(both)
    width = width_of(both, chosen)
    return [parse_kernel(kernel, dim, width=width) for kernel in made]


def _tested(
    joined: tuple[Samples, Sequence[int]],
    kernels: list[Kernel],
    chosen: SphereMap,
    ways: dict[str, Any],
    run: Run,
) -> MeanDiscrepancy:
    """The test of all kernels at once, of samples of both sets, and how many each has."""
    both, sizes = joined
    with computing(run.client):
        grams = compute_gram(
            both,
            kernels,
            sphere_map=chosen,
            zero_rows=ZeroRows(ways["zero_rows"]),  # they were warned of
            memory=run.memory,
            scratch=None if run.journal is None else scratch_in(run.journal),
            progress=run.report,
        )
        return maximum_mean_discrepancy(
            grams,
            np.repeat(SETS, sizes),
            ways["permutations"],
            ways["seed"],
            memory=None if run.memory is None else run.memory // 4,
            progress=run.report,
            journal=run.journal,
        )


def _compared(kernels: list[Kernel], found: MeanDiscrepancy) -> tuple[ComparedKernel, ...]:
    return tuple(
        ComparedKernel(
            kernel_words(kernel),
            kernel.time_scale if isinstance(kernel, HeatKernel) else None,
            statistic,
        )
        for kernel, statistic in zip(kernels, found.statistics, strict=True)
    )


def _cost(both: Samples, kernels: int, permutations: int, run: Run) -> Cost:
    """What the test will cost: products of samples once, those with permutations a kernel."""
    plan = make_plan(GramSides.of([both]), run.resources, layout="none", n_kernels=kernels)
    n, dim = both.shape
    work = plan.multiply_adds + n * (n / 2) * kernels * permutations
    return Cost(
        what=f"test of {n:,} samples of {dim:,} features, {kernels} kernels, "
        f"{permutations:,} permutations",
        seconds=2 * work / (FLOPS * run.resources.threads),
        memory=plan.peak_bytes + permutation_bytes(n, permutations),
        disk=plan.disk_bytes,
        stays=60 * n,
        sooner="--permutations 200, or some of the samples of each set",
    )


def _write(out: Place, result: TwoSamples, both: Samples, witness: Floats) -> None:
    """Write the three files: the page last, which links to the others."""
    ids = both.each_id()
    names = None if ids is None else list(ids)
    with written(out / WITNESS, "w", newline="", encoding="utf-8") as file:
        _write_witness(csv.writer(file), result, witness, names)
    with written(out / TABLES[0], "w", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result), indent=2, allow_nan=False) + "\n")
    write_two_samples(result, witness, names, out / PAGE, (TABLES[0], WITNESS))


def _write_witness(
    writer: Any, result: TwoSamples, witness: Floats, names: Sequence[str] | None
) -> None:
    first = result.sets[0].n_samples
    writer.writerow(["set", "row", *(["id"] if names else []), "witness"])
    for k in most_different(witness, first).tolist():
        of_b = k >= first
        own = [names[k]] if names else []
        writer.writerow([SETS[of_b], k - first * of_b, *own, repr(float(witness[k]))])


def _say(out: Place, result: TwoSamples) -> None:
    say_wrapped("", f"{result.answer}. {result.meaning}")
    rows = [
        (one.kernel, f"{one.statistic:.2f}", "tested" if number == result.best else "")
        for number, one in enumerate(result.kernels)
    ]
    print_table(("kernel", "statistic", ""), rows)
    say(f"output: {out}")
    hint(f"next:   {opening(out / PAGE)}")
    hint(f"or:     open {out / WITNESS}")
    hint("        (the samples that differ the most)")
