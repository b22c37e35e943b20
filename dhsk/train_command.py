"""The commands `dhsk train` and `dhsk predict`: an exact SVM to a file, and labels by it."""

import csv
import os
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np
from click.core import ParameterSource
from distributed import Client
from numpy.typing import NDArray

from dhsk.connecting import connected, wrong_out
from dhsk.console import print_table, say, show_progress
from dhsk.errors import InputError
from dhsk.gram.sizes import human_bytes, human_seconds
from dhsk.options import (
    cluster_options,
    drop_option,
    kernel_options,
    make_kernel,
    map_option,
    own_label_column,
)
from dhsk.outcome import TreeMemory, peak_resident
from dhsk.progress import OnProgress
from dhsk.samples import Samples, SphereMap, open_samples, read_labels

if TYPE_CHECKING:
    from dhsk.svm.model import SvcModel


@click.command("train")
@click.argument("samples")
@click.option("--labels", help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File of the model.")
@click.option("--C", "C", type=float, default=1.0, show_default=True, help="Bound of the duals.")
@click.option("--class-weight", type=click.Choice(["balanced"]), help="Weigh classes alike.")
@click.option("--tol", type=float, default=1e-3, show_default=True, help="Greatest KKT violation.")
@click.option("--probability", is_flag=True, help="Train for `dhsk predict --proba` too.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of --probability's folds.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float64"]),
    default="float64",
    show_default=True,
    help="Type of products and kernel values.",
)
@click.option("--store", type=click.Path(path_type=Path), help="Folder to keep the Gram matrix in.")
@kernel_options
@map_option
@drop_option
@cluster_options
def train(
    samples: str,
    labels: str | None,
    out: Path,
    C: float,
    class_weight: Literal["balanced"] | None,
    tol: float,
    probability: bool,
    seed: int,
    dtype: str,
    store: Path | None,
    sphere_map: SphereMap | None,
    drop_columns: tuple[str, ...],
    cluster: str,
    workers: int | None,
    memory: str | None,
    **kernel: Any,
) -> None:
    """Train an exact SVM on SAMPLES and write it to a file.

    In this process, which holds the samples, unless --cluster, --workers or --store is given: then
    on a cluster.
    """
    from sklearn.exceptions import ConvergenceWarning

    from dhsk.estimators import HeatSVC

    _check_out(out)
    drop = (*drop_columns, *own_label_column(samples, labels))
    opened = open_samples(samples, drop_columns=drop)
    y = read_labels(labels or samples, opened.shape[0])
    estimator = HeatSVC(
        C=C,
        sphere_map=sphere_map,
        kernel=make_kernel(dim=opened.shape[1], **kernel),
        tol=tol,
        class_weight=class_weight,
        probability=probability,
        dtype=dtype,
        memory=memory,
        store=store,
        random_state=seed,
    )
    begin = perf_counter()
    with (
        TreeMemory() as tree,
        _cluster_if_asked_for(cluster, workers, store) as client,
        show_progress() as progress,
        wrong_out(),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.set_params(client=client).fit_samples(opened, y, progress)
    estimator.save(out)
    for warning in caught:
        click.echo(f"dhsk: {warning.message}", err=True)
    _print_model(estimator.model_, perf_counter() - begin)
    planned = estimator.model_.notes["planned_bytes"]
    if planned is not None:
        peak = max(tree.peak, peak_resident(os.getpid()))  # between two looks too
        say(f"memory: {human_bytes(peak)} at the peak, {human_bytes(planned)} predicted")
    say(f"output: {out}")
    say(f"next:   dhsk predict {out} SAMPLES --out FILE")


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("samples")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="CSV of the labels.")
@click.option("--labels", help="FILE or FILE:COLUMN, to print the accuracy.")
@click.option("--proba", is_flag=True, help="Write a probability of each class too.")
@drop_option
def predict(
    model: Path,
    samples: str,
    out: Path,
    labels: str | None,
    proba: bool,
    drop_columns: tuple[str, ...],
) -> None:
    """Write the label of each of SAMPLES by a MODEL of `dhsk train`, read block by block."""
    from dhsk.svm.model_file import load_model

    _check_out(out)
    loaded = load_model(model)
    if proba and loaded.sigmoids is None:
        raise InputError(f"{model} has no probabilities: train it with --probability")
    drop = (*drop_columns, *own_label_column(samples, labels))
    opened = open_samples(samples, drop_columns=drop, n_features=loaded.dim)
    if opened.shape[1] != loaded.dim:
        raise InputError(
            f"{opened.source} has {opened.shape[1]} features, but {model} was trained on "
            f"{loaded.dim}: give the same features in the same order"
        )
    truth = None if labels is None else _comparable(labels, opened.shape[0], loaded)
    with show_progress() as progress:
        right = _write_predictions(loaded, opened, out, truth, proba, progress)
    if truth is not None:
        say(f"accuracy {right / len(truth):.4f}: {right:,} of {len(truth):,} labels are right")
    say(f"output: {out}")


def _cluster_if_asked_for(
    cluster: str, workers: int | None, store: Path | None
) -> AbstractContextManager[Client | None]:
    """Client of the cluster if one of its options, or a store, was given; else none."""
    source = click.get_current_context().get_parameter_source("cluster")
    here = source is ParameterSource.DEFAULT and workers is None and store is None
    return nullcontext() if here else connected(cluster, workers)


def _check_out(out: Path) -> None:
    """Refuse a place for the result before any work."""
    if out.is_dir():
        raise InputError(f"{out} is a folder, but --out names a file")
    if not out.absolute().parent.is_dir():
        raise InputError(f"the folder {out.absolute().parent} for --out does not exist: create it")


def _print_model(model: "SvcModel", seconds: float) -> None:
    found = model.certificates
    columns = ["classes", "support vectors", "worst KKT", "duality gap", "steps", "time"]
    row = (
        f"{len(model.classes):,}",
        f"{model.rows.shape[0]:,}",
        f"{found.violation.max():.1e}",
        f"{found.gap.max():.1e}",
        f"{found.steps.sum():,}",
        human_seconds(seconds),
    )
    say(f"exact SVM of {model.kernel.label}, map {model.sphere_map}, C = {found.C:g}")
    print_table(columns, [row])


def _comparable(labels: str, n_samples: int, model: "SvcModel") -> NDArray[Any]:
    """True labels, of the kind of the model's."""
    truth = read_labels(labels, n_samples, min_classes=1)
    numbers = [array.dtype.kind in "biuf" for array in (truth, model.classes)]
    if numbers[0] != numbers[1]:
        kind = {True: "numbers", False: "text"}
        raise InputError(
            f"{labels} holds {kind[numbers[0]]}, but the classes of the model are "
            f"{kind[numbers[1]]}: give the labels as they were in training"
        )
    return truth


def _write_predictions(
    model: "SvcModel",
    samples: Samples,
    out: Path,
    truth: NDArray[Any] | None,
    proba: bool,
    progress: OnProgress,
) -> int:
    """Write the table; how many labels are right, where the truth is known."""
    from dhsk.svm.model_file import written_beside

    header = ["label", *(f"probability_{c}" for c in model.classes if proba)]
    right = first = 0
    with written_beside(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for predicted, probabilities in _predictions(model, samples, proba, progress):
            writer.writerows(zip(predicted, *probabilities.T, strict=True))
            if truth is not None:
                right += int((predicted == truth[first : first + len(predicted)]).sum())
            first += len(predicted)
    return right


def _predictions(
    model: "SvcModel", samples: Samples, proba: bool, progress: OnProgress
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Labels and probabilities, (rows, k) or (rows, 0), block by block."""
    from dhsk.svm.model import ROWS

    for _, rows in model.row_map.blocks(samples, ROWS, progress):
        decisions = model.decisions(rows)
        no_columns = np.empty((len(decisions), 0))
        probabilities = model.probabilities_of(decisions) if proba else no_columns
        yield model.labels_of(decisions), probabilities
