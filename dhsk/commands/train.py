"""The command `dhsk train`: a classifier, saved to a file."""

import os
import warnings
from dataclasses import asdict, dataclass
from math import ceil
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import click

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import (
    kernel_words,
    map_words,
    print_table,
    say,
    say_cost_of,
    say_wrapped,
)
from dhsk.commands.inputs import check_out, label_source, open_samples_of, say_predict
from dhsk.commands.options import (
    ClusterOptions,
    KernelOptions,
    MapOptions,
    RankOptions,
    cluster_options,
    gathered,
    kernel_options,
    learnt_map_options,
    rank_options,
)
from dhsk.commands.outcome import TreeMemory, peak_resident
from dhsk.commands.parameters import PlaceParameter, Seed
from dhsk.commands.run_costs import exact_cost, low_rank_cost
from dhsk.commands.table_options import TableOptions, table_options
from dhsk.costs import Cost
from dhsk.execution.run import Run
from dhsk.kernels import HeatKernel, Kernel
from dhsk.models.low_rank_plan import usual_dtype
from dhsk.objects.places import Place, remove_scratch
from dhsk.samples import Samples, read_labels
from dhsk.units import format_bytes, human_seconds, parse_bytes

if TYPE_CHECKING:
    from dhsk.estimators import HeatSVC, NystromSVC
    from dhsk.models.exact import SvcModel
    from dhsk.models.low_rank import LowRankModel


@dataclass(frozen=True)
class FitOptions:
    """Objective and tolerance; None for a default that depends on the classifier."""

    C: float | None
    class_weight: Literal["balanced"] | None
    tol: float | None
    probability: bool
    seed: int
    dtype: str | None
    store: Place | None


fit_options = gathered(
    "fit",
    FitOptions,
    click.option(
        "--C",
        "C",
        type=float,
        help="Price of samples on the wrong side, as C of scikit-learn's SVC. [default: 3 over the "
        "variance of the samples in feature space]",
    ),
    click.option("--class-weight", type=click.Choice(["balanced"]), help="Weigh classes alike."),
    click.option(
        "--tol",
        type=float,
        help="Largest violation of the optimality conditions, as in scikit-learn's SVC; with "
        "--rank, norm of the gradient relative to that at 0. "
        "[default: 1e-3; with --rank: 1e-4]",
    ),
    click.option("--probability", is_flag=True, help="Train for `dhsk predict --proba` too."),
    click.option("--seed", type=Seed(), default=0, help="For --probability, or the landmarks."),
    click.option(
        "--dtype",
        type=click.Choice(["float32", "float64"]),
        help="Type of products and kernel values. [default: float64; with --rank: float32 where "
        "there are more than four million features and the kernel takes it]",
    ),
    click.option("--store", type=PlaceParameter(), help="Folder to keep the Gram matrix in."),
)


@click.command("train")
@click.argument("samples")
@click.option("--labels", help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]")
@click.option("--out", type=PlaceParameter(), required=True, help="File of the model.")
@rank_options
@fit_options
@kernel_options
@learnt_map_options
@table_options
@cluster_options
def train(
    samples: str,
    labels: str | None,
    out: Place,
    low_rank: RankOptions,
    fit: FitOptions,
    kernel: KernelOptions,
    mapping: MapOptions,
    table: TableOptions,
    cluster: ClusterOptions,
) -> None:
    """Train an SVM on SAMPLES and write it to a file.

    The SVM is exact, or with --rank a linear one on as many features. It runs in this process
    unless --cluster, --workers or --store is given. An exact SVM needs the samples in memory. With
    --rank, samples that do not fit are read again in every pass. The same command continues after
    an interrupt.
    """
    from dhsk.execution.checkpoint import Checkpoint
    from dhsk.models.exact_checkpoint import PREFIX as EXACT
    from dhsk.models.train_low_rank import PREFIX as NEWTON
    from dhsk.nystrom.approximation import PREFIX as LANDMARKS

    check_out(out, samples, labels)
    _check_rank(low_rank, fit)
    opened = open_samples_of(samples, table, labels)
    y = read_labels(label_source(labels, samples), opened.shape[0], header=table.header)
    chosen = kernel.kernel if kernel.is_auto else kernel.make(opened.shape[1])
    estimator = _estimator(low_rank, fit).set_params(
        kernel=chosen, memory=cluster.memory, **asdict(mapping)
    )
    begin, journal = perf_counter(), out.with_name(f"{out.name}.part")
    with TreeMemory() as tree, connected_if_asked(cluster, needed=fit.store is not None) as client:
        limit = None if cluster.memory is None else parse_bytes(cluster.memory)
        run = Run(limit, client, store=fit.store)
        say_cost_of(lambda: _cost(opened, y, chosen, low_rank, fit, run))
        _fit(estimator.set_params(client=client), opened, y, journal)
    estimator.save(out)
    for prefix in (NEWTON, LANDMARKS, EXACT):
        Checkpoint(journal, prefix).remove()
    remove_scratch(journal)
    _print_model(estimator.model_, perf_counter() - begin)
    found = [f"time scale {estimator.time_scale_:g}"] if kernel.is_auto else []
    found += [f"C = {estimator.C_:g}"] if fit.C is None else []
    if found:
        say(f"by the spread of the samples: {', '.join(found)}; `dhsk cv` compares others")
    planned = estimator.model_.notes.get("planned_bytes")
    if planned is not None:
        peak = max(tree.peak, peak_resident(os.getpid()))  # between two looks too
        say(f"memory: {format_bytes(peak)} at the peak, {format_bytes(planned)} predicted")
    say(f"output: {out}")
    say_predict("next:   ", out, samples, labels, table)


def _cost(
    samples: Samples,
    y: Any,
    kernel: Kernel | str,
    low_rank: RankOptions,
    fit: FitOptions,
    run: Run,
) -> Cost:
    """What the fit will cost."""
    if low_rank.rank is None:
        dtype = fit.dtype or "float64"
        return exact_cost(samples, y, dtype, run)
    n = samples.shape[0]
    landmarks = min(n, ceil(low_rank.rank * (low_rank.oversampling or 1.0)))
    shaped = HeatKernel.at_scale(samples.shape[1], 1.0) if isinstance(kernel, str) else kernel
    dtype = fit.dtype or usual_dtype(shaped, n, landmarks)
    return low_rank_cost(samples, y, dtype, landmarks, run)


def _check_rank(low_rank: RankOptions, fit: FitOptions) -> None:
    """Refuse options that do not go together."""
    if low_rank.rank is None:
        for name in low_rank.given:
            raise click.UsageError(f"--{name} is for --rank: give --rank too")
    elif fit.probability:
        raise click.UsageError("--probability is not for --rank: use --loss logistic")
    elif fit.store is not None:
        raise click.UsageError("--store is not for --rank: leave out one of them")


def _estimator(low_rank: RankOptions, fit: FitOptions) -> "HeatSVC | NystromSVC":
    """Estimator of the options; options that were not given keep its defaults."""
    from dhsk.estimators import HeatSVC, NystromSVC

    own: dict[str, Any] = {"class_weight": fit.class_weight, "random_state": fit.seed}
    usual = ("C", "tol", "dtype")
    own |= {name: getattr(fit, name) for name in usual if getattr(fit, name) is not None}
    if low_rank.rank is None:
        estimator = HeatSVC(store=fit.store, **own)
        estimator._with_sigmoids = fit.probability
        return estimator
    return NystromSVC(low_rank.rank, **own, **low_rank.given)


def _fit(estimator: "HeatSVC | NystromSVC", samples: Samples, y: Any, journal: Place) -> None:
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
