"""The command `dhsk verify`, for Gram stores, feature stores and models."""

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected
from dhsk.commands.console import say
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import ClusterOptions, cluster_options
from dhsk.commands.parameters import PlaceParameter
from dhsk.commands.table_options import TableOptions, table_options
from dhsk.errors import CorruptTileError, InputError
from dhsk.gram.repair import repair_gram
from dhsk.gram.storage.store import GramStore
from dhsk.kernels.centre import centres_of, without_centres
from dhsk.models.exact import SvcModel
from dhsk.models.files import load_model, was_written_here
from dhsk.models.low_rank import LowRankModel
from dhsk.nystrom.feature_store import FeatureStore, is_of_features
from dhsk.objects.places import Place, opened


@click.command()
@click.argument("store", type=PlaceParameter())
@click.option("--repair", metavar="SAMPLES", help="Recompute damaged tiles from these samples.")
@table_options
@cluster_options
def verify(store: Place, repair: str | None, table: TableOptions, cluster: ClusterOptions) -> None:
    """Test every checksum of a Gram store, feature store or model.

    The samples of a Gram store are tested too.
    """
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
        graph = opened.header.graph is not None
        samples = repair if graph else open_samples_of(repair, table)
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
