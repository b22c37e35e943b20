"""The commands `dhsk info` and `dhsk verify`, for Gram stores, feature stores and models."""

from collections.abc import Sequence
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected
from dhsk.commands.console import print_pairs, say
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import ClusterOptions, TableOptions, cluster_options, table_options
from dhsk.commands.parameters import PlaceParameter
from dhsk.errors import CorruptTileError, InputError
from dhsk.gram.repair import repair_gram
from dhsk.gram.storage.header import short
from dhsk.gram.storage.store import GramStore
from dhsk.kernels import kernel_from_spec
from dhsk.kernels.centre import centres_of, without_centres
from dhsk.models.exact import SvcModel
from dhsk.models.files import load_model, was_written_here
from dhsk.models.low_rank import LowRankModel
from dhsk.nystrom.feature_store import FeatureStore, is_of_features
from dhsk.objects.places import Place, bytes_below, opened, size_of
from dhsk.units import format_bytes


@click.command()
@click.argument("store", type=PlaceParameter())
def info(store: Place) -> None:
    """Describe a Gram store, complete or not, a feature store or a model."""
    if store.is_file():
        _show_model(store)
    elif is_of_features(store):
        _show_features(store)
    else:
        _show_gram(store)


@click.command()
@click.argument("store", type=PlaceParameter())
@click.option("--repair", metavar="SAMPLES", help="Recompute damaged tiles from these samples.")
@table_options
@cluster_options
def verify(store: Place, repair: str | None, table: TableOptions, cluster: ClusterOptions) -> None:
    """Test every checksum of a Gram store, with its samples, of a feature store or a model."""
    if store.is_file() or is_of_features(store):
        if repair is not None:
            raise InputError(
                f"--repair is for Gram stores, and {store} is none: train the model again, or "
                "write the features again"
            )
        _verify_other(store)
        return
    opened = GramStore.open(store)
    if repair is None:
        opened.check_sound()
    else:
        samples = open_samples_of(repair, table)
        with connected(cluster) as client, show_progress() as progress:
            made = repair_gram(
                store, samples, memory=cluster.memory, client=client, progress=progress
            )
        say(
            f"{len(made)} damaged or missing tiles computed again{': ' if made else ''}"
            + ", ".join(map(str, made))
        )
    say(f"{store}: all {opened.header.tiling.n_tiles} tiles are sound")
    say(f"next:   dhsk cv {store} --labels LABELS --out DIR")


def _verify_other(store: Place) -> None:
    """Test a model or a feature store."""
    if store.is_file():
        count = _check_model(store)
        say(f"{store}: all {count} arrays are sound")
        say(f"next:   dhsk predict {store} SAMPLES --out FILE")
        return
    features = FeatureStore.open(store)
    features.check_sound()
    say(f"{store}: all {features.n_blocks} blocks of features are sound")


def _show_gram(store: Place) -> None:
    opened = GramStore.open(store)
    header, missing = opened.header, len(opened.missing_tiles())
    total = header.tiling.n_tiles
    rows = [
        ("matrix", f"{header.n_rows:,} x {header.n_cols:,} {header.dtype}, {header.layout}"),
        ("kernel", ", ".join(kernel.label for kernel in opened.kernels)),
        (
            "samples",
            f"dim {header.dim:,}, map {header.sphere_map}, "
            f"fingerprint {'+'.join(header.fingerprints)}",
        ),
        *([] if opened.header.feature_names is None else [("features", _names_of(opened))]),
        *([] if header.zero_rows is None else [("of zeros", _zeros_of(header.zero_rows))]),
        ("tiles", f"{total - missing:,} of {total:,} done, {header.tile:,} x {header.tile:,} each"),
        ("on disk", format_bytes(bytes_below(store))),
    ]
    print_pairs(f"Gram store {store}, schema {header.schema}", rows)
    if missing:
        say("next:   run the command that made it again: it computes the missing tiles only")
    else:
        say(f"next:   dhsk verify {store}, or dhsk cv {store} --labels LABELS --out DIR")


def _zeros_of(counts: tuple[int, ...]) -> str:
    """Number of samples that are all zero, on each side of the matrix."""
    return f"{' and '.join(f'{count:,}' for count in counts)} samples, at the centre"


def _names_of(store: GramStore) -> str:
    """First names of the features of a store."""
    if not store.has_sound_names():
        return "named, but the names are damaged: see dhsk verify"
    return _listed(store.feature_names or ())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", ... ({len(names):,})" if len(names) > 5 else "")


def _show_features(path: Place) -> None:
    store = FeatureStore.open(path)
    described, missing = store.described, len(store.missing())
    n, width = store.shape
    total = store.n_blocks
    rows = [
        ("features", f"{n:,} x {width:,} {store.dtype}"),
        ("kernel", kernel_from_spec(described["kernel"]).label),
        ("samples", f"map {described['map']}, fingerprint {described['samples']}"),
        ("landmarks", f"digest {short(described['landmarks'])}"),
        ("blocks", f"{total - missing:,} of {total:,} done, {store.rows:,} rows each"),
        ("on disk", format_bytes(bytes_below(path))),
    ]
    print_pairs(f"feature store {path}, schema {described['schema']}", rows)
    if missing:
        say("next:   write the features again: only what is missing is computed")
    else:
        say(f"next:   dhsk verify {path}, or zarr.open_array({str(path)!r})")


def _show_model(path: Place) -> None:
    model = load_model(path)
    exact = isinstance(model, SvcModel)
    names = model.feature_names
    rows = [
        ("kernel", model.kernel.label),
        ("samples", f"dim {model.dim:,}, map {model.sphere_map}"),
        *([] if names is None else [("features", _listed(names))]),
        ("classes", _listed([str(label) for label in model.classes])),
        ("support vectors" if exact else "landmarks", f"{model.rows.shape[0]:,}"),
        ("C", f"{model.certificates.C:g}"),
        ("on disk", format_bytes(size_of(path) or 0)),
    ]
    print_pairs(f"{'exact' if exact else 'low-rank'} model {path}", rows)
    say(f"next:   dhsk predict {path} SAMPLES --out FILE")


def _check_model(path: Place) -> int:
    """Test a model file, and return its number of arrays.

    CorruptTileError if it is damaged, InputError if it is no model.
    """
    try:
        model = load_model(path)
    except InputError as error:
        if was_written_here(path):
            raise CorruptTileError(f"{error}; train the model again") from error
        raise
    arrays = _numbers_of(model)
    for name, values in arrays.items():
        wrong = np.flatnonzero(~np.isfinite(values).reshape(-1))
        if wrong.size:
            raise CorruptTileError(
                f"{path} is a damaged model: {wrong.size} of {values.size} numbers of {name} are "
                "not finite; train the model again"
            )
    with opened(path) as file, np.load(file, allow_pickle=False) as archive:
        return len(archive.files)


def _numbers_of(model: SvcModel | LowRankModel) -> dict[str, NDArray[Any]]:
    """Arrays of the decision function, which must be finite; certificates may hold NaN."""
    rows = without_centres(model.rows, centres_of(model.rows))
    found: dict[str, NDArray[Any]] = {"rows": rows if isinstance(rows, np.ndarray) else rows.data}
    if isinstance(model, LowRankModel):
        return {**found, "coef": model.coef, "intercepts": model.intercepts}
    expansion = model.expansion
    found |= {"dual_coef": expansion.dual_coef, "intercepts": expansion.intercepts}
    return found if model.sigmoids is None else {**found, "sigmoids": model.sigmoids}
