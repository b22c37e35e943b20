"""The command `dhsk train`: a classifier, saved to a file."""

import os
import warnings
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import click

from dhsk.bars import show_progress
from dhsk.clock import NO_END, Deadline
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import (
    kernel_words,
    map_words,
    print_table,
    say,
    say_cost_of,
    say_wrapped,
)
from dhsk.commands.inputs import (
    check_out,
    label_source,
    open_samples_of,
    say_predict,
)
from dhsk.commands.labelled import read_labels_of, weights_of_labels
from dhsk.commands.options import (
    DTYPES,
    KERNEL_OF_MAP,
    LANDMARKS,
    Cluster,
    class_weight_row,
    has_no_time,
    labels_option,
    landmarks_in,
    make_kernel,
    map_rows,
    multi_class_row,
    name_by_looks,
    out_option,
    rank_row,
    shared_options,
)
from dhsk.commands.outcome import TreeMemory
from dhsk.commands.parameters import DURATION, SEED, PlaceParameter
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.run_costs import exact_cost, low_rank_cost
from dhsk.commands.table import FIT, gathered, option, rows_of
from dhsk.costs import Cost
from dhsk.execution.run import Run
from dhsk.kernels import HeatKernel, Kernel
from dhsk.models.archive import was_written_here
from dhsk.models.low_rank_plan import usual_dtype
from dhsk.objects.places import Place, bytes_below, remove_scratch
from dhsk.samples import Samples
from dhsk.samples.distances import warn_of_distances
from dhsk.samples.gaps import GappedSamples, warn_of_codes
from dhsk.samples.looks import first_rows
from dhsk.samples.variance import width_of
from dhsk.samples.weighted import LEARNT, SCALED, fixed_map
from dhsk.systems import peak_resident
from dhsk.units import format_bytes, human_seconds, parse_seconds

if TYPE_CHECKING:
    from dhsk.estimators.nystrom_svc import NystromSVC
    from dhsk.estimators.svc import HeatSVC
    from dhsk.models.exact import SvcModel
    from dhsk.models.low_rank import LowRankModel


FIT_ROWS: Final = rows_of(
    FIT,
    rank_row,
    *LANDMARKS,
    option(
        "--budget",
        type=DURATION,
        common=True,
        help="With --rank: most time of the command, such as 30min. Then the best model so far is "
        "written with a bound on its error, and the same command goes on.",
    ),
    option(
        "--C",
        "C",
        common=True,
        type=float,
        help="Price of samples on the wrong side, as C of scikit-learn's SVC. [default: 3 over the "
        "variance of the samples in feature space, 60 for --loss logistic]",
    ),
    multi_class_row(". [default: ovr above ten classes, else ovo]"),
    class_weight_row,
    option(
        "--tol",
        type=float,
        help="Largest violation of the optimality conditions, as in scikit-learn's SVC; with "
        "--rank, norm of the gradient relative to that at 0. [default: 1e-3; with --rank: 1e-4]",
    ),
    option(
        "--probability", is_flag=True, common=True, help="Train for `dhsk predict --proba` too."
    ),
    option("--seed", type=SEED, default=0, help="For --probability, or the landmarks."),
    option(
        "--dtype",
        type=DTYPES,
        help="Type of products and kernel values. [default: float64; with --rank: float32 where "
        "there are more than four million features and the kernel takes it]",
    ),
    option("--store", type=PlaceParameter(), help="Folder to keep the Gram matrix in."),
)


@click.command("train")
@click.argument("samples")
@labels_option
@out_option.of(help="File of the model.")
@gathered("fit", dict, *FIT_ROWS)
@gathered("kernel", dict, *KERNEL_OF_MAP, *map_rows(*LEARNT))
@reading_options
@shared_options
def train(
    samples: str,
    labels: str | None,
    out: Place,
    fit: dict[str, Any],
    kernel: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Train an SVM on SAMPLES and write it to a file.

    The SVM is exact, or with --rank a linear one on as many features. It runs in this process
    unless --cluster or --workers is given, or --store with 5,000 samples or more. An exact SVM
    needs the samples in memory. With --rank, samples that do not fit are read again in every pass.
    The same command continues after an interrupt.
    """
    over = NO_END if fit["budget"] is None else Deadline(parse_seconds(fit["budget"]))
    check_out(out, samples, labels, what="a dhsk model", is_one=was_written_here)
    _check_rank(fit, cluster)
    mapping = {name: kernel.pop(name) for name in ("sphere_map", "zero_rows")}
    opened = open_samples_of(samples, table, labels)
    if not opened.is_sparse:
        warn_of_codes(first_rows(opened), opened)
        warn_of_distances(opened)
    name_by_looks(kernel, mapping, opened)
    searched = has_no_time(kernel)
    y = read_labels_of(opened, label_source(labels, samples), table)
    fit["class_weight"] = weights_of_labels(fit["class_weight"], y)
    kernel["width"] = width_of(opened, fixed_map(mapping["sphere_map"]))
    of_scaled = mapping["sphere_map"] == SCALED and kernel["sigma"] is None  # in its width
    by_name = searched or (of_scaled and kernel["kernel"] == "gaussian")
    chosen = kernel["kernel"] if by_name else make_kernel(opened.shape[1], **kernel)
    estimator = _estimator(fit, over).set_params(kernel=chosen, memory=cluster.memory, **mapping)
    begin, journal = perf_counter(), out.with_name(f"{out.name}.part")
    with (
        TreeMemory() as tree,
        connected_if_asked(cluster, 0 if fit["store"] is None else len(y), out) as client,
    ):
        run = Run(cluster.limit, client, store=fit["store"])
        say_cost_of(lambda: _cost(opened, y, chosen, fit, run))
        counted = GappedSamples(opened)
        kept = journal if cluster.part is None else None  # a part finds all that is done
        _fit(estimator.set_params(client=client), counted, y, kept)
        counted.warn()
        if cluster.writes:
            estimator.save(out)
    stopped = bool(estimator.model_.notes.get("stopped"))
    _clear(journal, kept=stopped)
    _print_model(estimator.model_, perf_counter() - begin)
    found = [f"time scale {estimator.time_scale_:g}"] if searched else []
    found += [f"C = {estimator.C_:g}"] if fit["C"] is None else []
    if found:
        say(f"by the spread of the samples: {', '.join(found)}; `dhsk cv` compares others")
    planned = estimator.model_.notes.get("planned_bytes")
    if planned is not None:
        peak = max(tree.peak, peak_resident(os.getpid()))  # between two looks too
        say(f"memory: {format_bytes(peak)} at the peak, {format_bytes(planned)} predicted")
    say(f"output: {out}")
    if stopped:
        size = format_bytes(bytes_below(journal))
        say(f"better: the same command with a longer --budget, or none, goes on from {journal}")
        say(f"        ({size}; remove it if the model is good enough)")
    proba = " --proba" if fit["probability"] or fit["loss"] == "logistic" else ""
    say_predict("next:   ", out, samples, labels, table, proba)


def _cost(samples: Samples, y: Any, kernel: Kernel | str, fit: dict[str, Any], run: Run) -> Cost:
    if fit["rank"] is None:
        dtype = fit["dtype"] or "float64"
        return exact_cost(samples, y, dtype, run, fit["multi_class"] or "auto")
    n = samples.shape[0]
    landmarks = min(n, ceil(fit["rank"] * (fit["oversampling"] or 1.0)))
    shaped = HeatKernel.at_scale(samples.shape[1], 1.0) if isinstance(kernel, str) else kernel
    dtype = fit["dtype"] or usual_dtype(shaped, n, landmarks)
    return low_rank_cost(samples, y, dtype, landmarks, run)


def _clear(journal: Place, *, kept: bool) -> None:
    """Remove the checkpoints unless they are kept, and what workers read."""
    from dhsk.execution.checkpoint import Checkpoint
    from dhsk.models.exact_checkpoint import PREFIX as EXACT
    from dhsk.models.train_low_rank import PREFIX as NEWTON
    from dhsk.nystrom.approximation import PREFIX as LANDMARKS

    for prefix in () if kept else (NEWTON, LANDMARKS, EXACT):
        Checkpoint(journal, prefix).remove()
    remove_scratch(journal)


def _check_rank(fit: dict[str, Any], cluster: Cluster) -> None:
    """Refuse options that do not go together."""
    if cluster.part is not None and fit["budget"] is not None:
        raise click.UsageError(
            "--budget is not for --part, as clocks of several processes differ: leave it out, and "
            "end them all at any moment; the same commands go on"
        )
    if fit["rank"] is None:
        if cluster.part is not None:
            raise click.UsageError("--part is for --rank: an exact SVM is fitted in one process")
        if fit["budget"] is not None:
            raise click.UsageError(
                "--budget is for --rank: give --rank too, or leave it out; an exact SVM that is "
                "interrupted goes on by the same command"
            )
        for name in landmarks_in(fit):
            raise click.UsageError(f"--{name} is for --rank: give --rank too")
    elif fit["multi_class"] is not None:
        raise click.UsageError("--multi-class is not for --rank, which is always ovr: leave it out")
    elif fit["probability"]:
        raise click.UsageError("--probability is not for --rank: use --loss logistic")
    elif fit["store"] is not None:
        raise click.UsageError("--store is not for --rank: leave out one of them")


def _estimator(fit: dict[str, Any], over: Deadline) -> "HeatSVC | NystromSVC":
    """Estimator of the options; options that were not given keep its defaults."""
    from dhsk.estimators.nystrom_svc import NystromSVC
    from dhsk.estimators.svc import HeatSVC

    own: dict[str, Any] = {"class_weight": fit["class_weight"]}
    own |= {name: fit[name] for name in ("C", "tol", "dtype") if fit[name] is not None}
    if fit["rank"] is None:
        estimator = HeatSVC(store=fit["store"], multi_class=fit["multi_class"] or "auto", **own)
        estimator._with_sigmoids, estimator._seed_of_folds = fit["probability"], fit["seed"]
        return estimator
    own |= {"random_state": fit["seed"], "budget": fit["budget"]}
    low_rank = NystromSVC(fit["rank"], **own, **landmarks_in(fit))
    low_rank._deadline = over
    return low_rank


def _fit(
    estimator: "HeatSVC | NystromSVC", samples: Samples, y: Any, journal: Place | None
) -> None:
    """Fit with progress, and print warnings."""
    from sklearn.exceptions import ConvergenceWarning

    with show_progress() as progress, wrong_out(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit_samples(samples, y, progress, journal)
    for warning in caught:
        click.echo(f"dhsk: {warning.message}", err=True)


def _print_model(model: "SvcModel | LowRankModel", seconds: float) -> None:
    from dhsk.models.exact import SvcModel

    if isinstance(model, SvcModel):
        kind, columns = "exact SVM", _exact_columns(model)
        kind += ", one-vs-rest," if model.multi_class == "ovr" else ""
    else:
        kind = f"low-rank classifier, loss {model.certificates.loss},"
        columns = _low_rank_columns(model)
    C = model.certificates.C
    say_wrapped(
        f"{kind} of ", f"{kernel_words(model.kernel)}, {map_words(model.map_name)}, C = {C:g}"
    )
    own = {"classes": f"{len(model.classes):,}", **columns, "time": human_seconds(seconds)}
    print_table(list(own), [tuple(own.values())])


def _exact_columns(model: "SvcModel") -> dict[str, str]:
    found = model.certificates
    return {
        "support vectors": f"{model.rows.shape[0]:,}",
        "tol reached": f"{found.violation.max():.1e}",
        "duality gap": f"{found.gap.max():.1e}",
        "steps": f"{found.steps.sum():,}",
    }


def _low_rank_columns(model: "LowRankModel") -> dict[str, str]:
    found = model.certificates
    return {
        "landmarks": f"{model.rows.shape[0]:,}",
        "features": f"{found.width:,} {model.rows.dtype.name}",
        "trace error": f"{found.trace_error:.2e}",
        "gradient norm": f"{found.relative.max():.1e}",
        "duality gap": f"{(found.gap / found.objective).max():.1e}",
        "Newton steps": f"{found.steps:,}",
        "passes": f"{found.passes:,}",
    }
