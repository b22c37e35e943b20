"""Repair of a Gram store: damaged tiles are computed again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dhsk.bars import Show
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.resources import Resources
from dhsk.execution.run import Run
from dhsk.gram.graph import rows_of
from dhsk.gram.graph_plan import plan_of
from dhsk.gram.graph_similarity import negative_laplacian_of, similarity_of
from dhsk.gram.plan import GramPlan
from dhsk.gram.prepare import Data, open_sides
from dhsk.gram.session import Session
from dhsk.gram.sides import GramSides
from dhsk.gram.storage.store import GramStore
from dhsk.objects.places import Place, parse_place
from dhsk.run_progress import passes_reported
from dhsk.samples import Samples, ZeroRows, scan

if TYPE_CHECKING:
    from distributed import Client


def repair_gram(
    store: str | Place,
    X: Any,
    Y: Any = None,
    *,
    memory: int | str | None = None,
    client: "Client | None" = None,
    progress: Show = None,
) -> list[tuple[int, int]]:
    """Compute the damaged and missing tiles of a Gram store again, and keep the others.

    Damaged samples and descriptions of arrays are written again too.

    Parameters
    ----------
    store
        Folder of the store, or its ``s3://`` URL.
    X
        Samples from which the store was computed, as for `compute_gram`; or the similarity, the
        adjacency or the edge list of a graph, as for `graph_gram`.
    Y
        Samples of the columns of a rectangular matrix; None if it is symmetric.
    memory
        Upper bound on the memory of all processes together, in bytes or as a string like "2GB".
        None for the memory of the workers.
    client
        Dask client; None for the current one, or else for threads of this process.
    progress
        Function that is called with a `Progress` after every tile; True for bars.

    Returns
    -------
    list of (int, int)
        Indices of the tiles that were damaged or missing.

    Raises
    ------
    InputError
        The number of sets of samples, one or two, is not that of the store.
    StoreMismatchError
        The store was made from other samples; it is not changed.
    StoreError
        The store cannot be written, or another process writes to it.

    Examples
    --------
    >>> import dhsk
    >>> from sklearn.datasets import load_digits
    >>> X, _ = load_digits(return_X_y=True)
    >>> G = dhsk.compute_gram(X, "cosine", store="digits.gram", tile=512)
    >>> chunk = G.path / "gram" / "c" / "0" / "1"
    >>> chunk.unlink()
    >>> dhsk.repair_gram("digits.gram", X)
    [(0, 1)]
    >>> G.verify()
    10
    """
    opened = GramStore.open(parse_place("store", store))

    def planned(resources: Resources, tile: int) -> GramPlan:
        del tile  # a store keeps its own
        return plan_of(opened.header, resources, GramSides.of(sides))

    begun = Run.begun(
        progress, memory=memory, client=client, store=opened.path, reading=1, checking=2, tiles=2
    )
    with begun as (run, report), passes_reported(report):
        sides = _sides_of(opened, X, Y)
        with Session.begun(run, planned, opened.header.tile) as session:
            if opened.header.graph is None:
                sides = _checked(opened, sides, run)
            return session.repaired(opened, sides)


def _sides_of(store: GramStore, X: Any, Y: Any) -> Sequence[Samples]:
    """Samples of the sides of a store: of a graph the rows of the similarity."""
    if store.header.graph is not None:
        if Y is not None:
            raise InputError(f"{store.path} is a matrix of graph nodes: give the graph alone")
        return [_rows_of(store, X)]
    sides, made_from = open_sides(X, Y), len(store.samples.sides)
    if len(sides) != made_from:
        raise InputError(
            f"{store.path} was made from {made_from} sets of samples, {len(sides)} given: "
            "repair it in Python with dhsk.repair_gram(store, X), or (store, X, Y)"
        )
    return sides


def _rows_of(store: GramStore, S: Any) -> Samples:
    """Rows of the similarity that a store was made from; StoreMismatchError if it is another."""
    given = similarity_of(S)
    graphs = [given] if (given.matrix.data < 0).any() else [given, negative_laplacian_of(given)]
    for rows in map(rows_of, graphs):
        if scan(rows, "identity").fingerprint == store.header.fingerprints[0]:
            return rows
    raise StoreMismatchError(
        f"{store.path} was made from another graph, neither with this similarity nor with the "
        "Laplacian of this adjacency"
    )


def _checked(store: GramStore, sides: Sequence[Samples], run: Run) -> Sequence[Samples]:
    """The samples of a store, features in its order; StoreMismatchError if they are others."""
    data = Data(sides, store.kernels, store.header.sphere_map, ZeroRows()).in_order_of(store)
    for side, made_from, found in zip(
        data.sides, store.header.fingerprints, data.scan(run), strict=True
    ):
        if found.fingerprint != made_from:
            raise StoreMismatchError(
                f"{store.path} was made from other samples than {side.source} "
                f"({made_from[:8]}, now {found.fingerprint[:8]})"
            )
    return data.sides
