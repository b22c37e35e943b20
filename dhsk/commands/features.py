"""The command `dhsk features`: Nyström features of samples to a zarr array."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, parts_of, wrong_out
from dhsk.commands.console import (
    hint_next,
    kernel_words,
    map_words,
    print_table,
    say,
    say_cost_of,
    say_wrapped,
)
from dhsk.commands.earlier_run import MODEL
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import (
    DTYPES,
    KERNEL,
    LANDMARKS,
    Cluster,
    has_no_time,
    make_kernel,
    map_rows,
    out_option,
    rank_row,
    refuse_idle,
    shared_options,
)
from dhsk.commands.parameters import SEED, PlaceParameter
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.run_costs import features_cost
from dhsk.commands.table import DATA, FIT, TableRow, gathered, option, rows_of
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.checkpoint import Checkpoint
from dhsk.execution.lock import is_occupied
from dhsk.execution.run import Run
from dhsk.gram.storage.header import short
from dhsk.models.sources import RowsShape
from dhsk.nystrom.approximation import PREFIX
from dhsk.nystrom.feature_store import FeatureStore
from dhsk.objects.places import Place, check_writable, made_folder, remove_scratch
from dhsk.results.low_rank import LowRank, usual_oversampling
from dhsk.run_progress import told_whole
from dhsk.samples import Samples
from dhsk.samples.gaps import warn_of_codes
from dhsk.samples.looks import first_rows
from dhsk.samples.names import in_order
from dhsk.samples.variance import width_of
from dhsk.systems import quoted
from dhsk.units import counted, human_seconds

if TYPE_CHECKING:
    from dhsk.estimators.nystrom import NystromFeatures

_OPTIONS: Final = {"n_components": "rank", "sphere_map": "map", "random_state": "seed"}
"""Options of parameters that have another name."""

_SELECTION, _OVERSAMPLING, _ = LANDMARKS

FIT_ROWS: Final = rows_of(
    FIT,
    rank_row.of(help="Number of features."),
    _SELECTION.of(help="How landmarks are chosen. [default: rpcholesky]"),
    _OVERSAMPLING.of(
        help="Landmarks for each feature; of more than one the leading components are kept. "
        "[default: 3 by rpcholesky, up to 3,000 landmarks; else 1]"
    ),
    option("--seed", type=SEED, default=0, help="Of the landmarks."),
    option("--dtype", type=DTYPES, help="Type of the features. [default: float64]"),
)
KERNEL_ROWS: Final = (*KERNEL, *map_rows())


@click.command("features")
@click.argument("samples")
@out_option.of(help="Folder of the zarr array, or s3://BUCKET/PREFIX.")
@option(
    "--by",
    group=DATA,
    common=True,
    type=PlaceParameter(),
    metavar="FOLDER|FILE",
    help="In place of --rank: features by the landmarks of others, of the FOLDER that this command "
    "has made of them, or the FILE of a NystromFeatures.",
)
@gathered("fit", dict, *FIT_ROWS)
@gathered("kernel", dict, *KERNEL_ROWS)
@reading_options
@shared_options
def features(
    samples: str,
    out: Place,
    by: Place | None,
    fit: dict[str, Any],
    kernel: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Write Nyström features of SAMPLES to a zarr array.

    Their inner products approximate a kernel, so that a linear model on them approximates one of
    that kernel. It runs in this process unless --cluster or --workers is given. Samples that do not
    fit the memory are read again in every pass. The same command continues after an interrupt.
    """
    begin, journal = perf_counter(), out.with_name(f"{out.name}.part")
    opened, model = _asked_for(samples, by, fit, kernel, table)
    with wrong_out():
        made = _earlier(out, journal, model, cluster) or model
    made.set_params(memory=cluster.memory)
    is_fitted = hasattr(made, "n_components_")
    if cluster.writes:
        with made_folder(out):
            check_writable(out)  # before long work
    with (
        connected_if_asked(cluster, 0, out) as client,
        show_progress() as progress,
        told_whole(progress, **({"fitting": 2} if not is_fitted else {}), writing=1) as told,
        wrong_out(),
    ):
        made.client = client
        run = Run(cluster.limit, client)
        say_cost_of(lambda: features_cost(opened, run, *_sizes(made, opened)))
        if not is_fitted:
            kept = journal if cluster.part is None else None  # a part finds all that is done
            with told.part("fitting", 1.0):
                made.fit_samples(opened, told, kept)
            if kept is not None:
                with made_folder(kept):
                    made.save(kept / MODEL)
        complete = cluster.part is None and _was_complete(out)
        with told.part("writing", 1.0):
            made.write(opened, out, progress=told)
        if cluster.writes:
            made.save(out / MODEL)
            _clear(journal)
    if complete:
        say(f"{out} was complete: nothing was computed, and all checksums are right")
    _say_features(made, opened, perf_counter() - begin, fitted=by is None)
    if missing := FeatureStore.open(out).missing():
        blocks = counted(len(missing), "block")
        say(f"this part is done: {blocks} of {out} are still to be written by others")
        return
    say(f"output: {out}")
    _say_next(out, opened, table)


def _asked_for(
    samples: str, by: Place | None, fit: dict[str, Any], kernel: dict[str, Any], table: Reading
) -> "tuple[Samples, NystromFeatures]":
    """The samples, and what makes their features: by --by a fitted one, else one to be fitted."""
    if by is not None:
        _refuse_given((*FIT_ROWS, *KERNEL_ROWS), by)
        model = _model_of(by)
        return _samples_for(model, by, samples, table), model
    if fit["rank"] is None:
        raise click.UsageError("give --rank, the number of features, or --by FOLDER of others")
    refuse_idle([kernel["kernel"]], kernel)
    opened = open_samples_of(samples, table)
    if not opened.is_sparse:
        warn_of_codes(first_rows(opened), opened)
    return opened, _new_model(opened, fit, kernel)


def _refuse_given(rows: Sequence[TableRow], by: Place) -> None:
    """Refuse options of what `by` has chosen."""
    context = click.get_current_context()
    for row in rows:
        if context.get_parameter_source(row.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"--{row.key} was chosen with {by}: leave it out, or --by")


def _model_of(by: Place) -> "NystromFeatures":
    """The transformer of a folder of features, or of a file."""
    from dhsk.estimators.nystrom import NystromFeatures

    if by.is_dir() and not (by / MODEL).exists():
        raise InputError(
            f"{by} has no {MODEL}, which makes features of new samples: dhsk features writes it at "
            "its end, and NystromFeatures.save in Python writes a file to give here"
        )
    return NystromFeatures.load(by / MODEL if by.is_dir() else by)


def _samples_for(model: "NystromFeatures", by: Place, samples: str, table: Reading) -> Samples:
    """Samples with the features that a transformer was fitted to, in its order."""
    names, dim = tuple(getattr(model, "feature_names_in_", ())), model.n_features_in_
    opened = open_samples_of(samples, table, n_features=dim, like=names)
    if opened.vectorizer is not None:
        raise InputError(
            f"{samples} holds texts, whose words would not be those of {by}: write the features of "
            "all texts at once"
        )
    return in_order(opened, names or None, str(by), dim)


def _new_model(opened: Samples, fit: dict[str, Any], kernel: dict[str, Any]) -> "NystromFeatures":
    """Transformer of the options; options that were not given keep its defaults."""
    from dhsk.estimators.nystrom import NystromFeatures

    mapping = {name: kernel.pop(name) for name in ("sphere_map", "zero_rows")}
    kernel["width"] = width_of(opened, mapping["sphere_map"])
    searched = has_no_time(kernel)
    chosen = kernel["kernel"] if searched else make_kernel(opened.shape[1], **kernel)
    own = {name: fit[name] for name in ("selection", "oversampling", "dtype") if fit[name]}
    return NystromFeatures(fit["rank"], chosen, random_state=fit["seed"], **mapping, **own)


def _earlier(
    out: Place, journal: Place, model: "NystromFeatures", cluster: Cluster
) -> "NystromFeatures | None":
    """The transformer of a run of the same options whose features have begun; None if none have.

    Raises StoreMismatchError if the folder holds other features, StoreError if something else.
    """
    if not is_occupied(out):
        return None
    FeatureStore.open(out)
    if hasattr(model, "n_components_"):
        return None  # that of --by, whose features are compared when they are written
    place = next((one for one in (out / MODEL, journal / MODEL) if one.exists()), None)
    if place is None:
        if cluster.part is not None and parts_of(out).exists():
            return None
        raise StoreMismatchError(
            f"{out} holds features without {MODEL}, which another program wrote or parts began: "
            "choose another path, or delete it first"
        )
    found = type(model).load(place)
    before, now = found.get_params(deep=False), model.get_params(deep=False)
    differences = [
        f"{_OPTIONS.get(name, name)} ({short(before[name])}, now {short(value)})"
        for name, value in now.items()
        if name != "memory" and before[name] != value
    ]
    if differences:
        raise StoreMismatchError(
            f"{out} holds features of other {', '.join(differences)}: choose another path, or "
            "delete it first"
        )
    return found


def _sizes(model: "NystromFeatures", opened: Samples) -> tuple[str, int, int, RowsShape | None]:
    """Type, landmarks, features, and the shape of landmarks that are known."""
    if hasattr(model, "n_components_"):
        shape = RowsShape.of(model.landmarks_)
        return model.dtype, shape.n, model.n_components_, shape
    n, rank, how = opened.shape[0], model.n_components, str(model.selection)
    each = model.oversampling or usual_oversampling(rank, how)
    return model.dtype, LowRank(rank, how, each).count(n), min(n, rank), None


def _was_complete(out: Place) -> bool:
    """Whether all features are there; CorruptTileError if any are damaged."""
    if not is_occupied(out) or (store := FeatureStore.open(out)).missing():
        return False
    store.check_sound()
    return True


def _clear(journal: Place) -> None:
    """Remove the checkpoints."""
    (journal / MODEL).unlink(missing_ok=True)
    Checkpoint(journal, PREFIX).remove()
    remove_scratch(journal)


def _say_features(
    model: "NystromFeatures", opened: Samples, seconds: float, *, fitted: bool
) -> None:
    row_map = model._features.row_map
    say_wrapped("features of ", f"{kernel_words(model.kernel_)}, {map_words(row_map.sphere_map)}")
    own = {
        "samples": f"{opened.shape[0]:,}",
        "features": f"{model.n_components_:,} {model.dtype}",
        "landmarks": f"{model.landmarks_.shape[0]:,}",
        **({"trace error": f"{model.trace_error_:.2e}"} if fitted else {}),
        "time": human_seconds(seconds),
    }
    print_table(list(own), [tuple(own.values())])


def _say_next(out: Place, opened: Samples, table: Reading) -> None:
    """Say what reads the features, and what makes those of new samples."""
    place = quoted(str(out))
    in_python = f"zarr.open_array({str(out)!r}) in Python, or " if isinstance(out, Path) else ""
    following = [f"{in_python}dhsk train {place} --labels LABELS --kernel linear --out FILE"]
    if opened.vectorizer is None:
        words = table.of_new_samples.words
        following.append(f"dhsk features NEW_SAMPLES{words} --by {place} --out FOLDER")
    hint_next(following)
