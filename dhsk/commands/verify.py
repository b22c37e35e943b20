"""The command `dhsk verify`, for Gram stores, feature stores and models."""

from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dhsk.arrays import Rows
from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked
from dhsk.commands.console import say
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.options import Cluster, cluster_options
from dhsk.commands.parameters import PlaceParameter
from dhsk.commands.reading import Reading, reading_options
from dhsk.errors import CorruptTileError, InputError
from dhsk.gram.repair import repair_gram
from dhsk.gram.storage.store import GramStore
from dhsk.kernels.centre import marked_rows, without_marks
from dhsk.models.archive import was_written_here
from dhsk.models.files import FittedState, Loaded, load_any
from dhsk.models.low_rank import LowRankModel
from dhsk.nystrom.feature_store import FeatureStore, is_of_features
from dhsk.objects.places import Place, opened
from dhsk.samples import AnyVectorizer, Vectorizer, vectorizer_of
from dhsk.systems import quoted


@click.command()
@click.argument("store", type=PlaceParameter())
@click.option("--repair", metavar="SAMPLES", help="Recompute damaged tiles from these samples.")
@reading_options
@cluster_options
def verify(store: Place, repair: str | None, table: Reading, cluster: Cluster) -> None:
    """Test every checksum of a Gram store, feature store or model.

    The samples of a Gram store are tested too.
    """
    if store.is_file() or is_of_features(store):
        if repair is not None:
            raise InputError(
                f"--repair is for Gram stores, and {store} is none: train the model again, or "
                "write the features again"
            )
        with show_progress():
            _verify_other(store)
        return
    opened = GramStore.open(store)
    if repair is None:
        with show_progress():
            opened.check_sound()
    else:
        graph, kept = opened.header.graph is not None, _kept_vectorizer(opened, table)
        samples = repair if graph else open_samples_of(repair, table, vectorizer=kept)
        others = opened.other_damage()
        n = opened.header.n_rows
        with connected_if_asked(cluster, n) as client, show_progress() as progress:
            made = repair_gram(
                store, samples, memory=cluster.memory, client=client, progress=progress
            )
        for damage in others:
            say(f"{damage}: written again")
        say(
            f"{len(made)} damaged or missing tiles computed again{': ' if made else ''}"
            + ", ".join(map(str, made))
        )
    say(f"{store}: all {opened.header.tiling.n_tiles} tiles are sound")
    say(f"next:   dhsk cv {quoted(str(store))} --labels LABELS --out DIR")


def _kept_vectorizer(store: GramStore, table: Reading) -> AnyVectorizer | None:
    """How the texts of a store were counted, unless the options say it."""
    if table.vectorizer != Vectorizer() or not store.has_sound_names():
        return None
    return vectorizer_of(store.header.vectorizer, store.feature_names)


def _verify_other(store: Place) -> None:
    if store.is_file():
        model = _checked_model(store)
        with opened(store) as file, np.load(file, allow_pickle=False) as archive:
            say(f"{store}: all {len(archive.files)} arrays are sound")
        say(f"next:   {_next_of(model, store)}")
        return
    features = FeatureStore.open(store)
    features.check_sound()
    say(f"{store}: all {features.n_blocks} blocks of features are sound")


def _next_of(model: Loaded, path: Place) -> str:
    """What to do with a model."""
    if not isinstance(model, FittedState):
        return f"dhsk predict {quoted(str(path))} SAMPLES --out FILE"
    from dhsk.estimators.saving import in_python  # scikit-learn, which no store needs

    return in_python(model, path)


def _checked_model(path: Place) -> Loaded:
    """Test and read a model file.

    CorruptTileError if it is damaged, InputError if it is no model.
    """
    try:
        model = load_any(path)
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
    return model


def _numbers_of(model: Loaded) -> dict[str, NDArray[Any]]:
    """Arrays of the decision function, which must be finite; certificates may hold NaN."""
    if isinstance(model, FittedState):
        return {name: _entries(rows) for name, rows in model.numbers().items()}
    found = {"rows": _entries(model.rows)}
    if isinstance(model, LowRankModel):
        return {**found, "coef": model.coef, "intercepts": model.intercepts}
    expansion = model.expansion
    found |= {"dual_coef": expansion.dual_coef, "intercepts": expansion.intercepts}
    return found if model.sigmoids is None else {**found, "sigmoids": model.sigmoids}


def _entries(rows: Rows) -> NDArray[Any]:
    """Values of dense or CSR rows, without marks."""
    inner = without_marks(rows, marked_rows(rows))
    return inner if isinstance(inner, np.ndarray) else inner.data
