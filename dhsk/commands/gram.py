"""The command `dhsk gram`: a Gram matrix to a store."""

from dataclasses import asdict
from functools import partial
from shlex import quote
from time import perf_counter

import click

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import hint_next, kernel_words, say, say_cost, say_cost_of
from dhsk.commands.graph_options import GraphOptions, graph_options
from dhsk.commands.inputs import label_words, open_samples_of
from dhsk.commands.options import (
    ClusterOptions,
    KernelOptions,
    MapOptions,
    StoreOptions,
    TileOptions,
    cluster_options,
    kernel_options,
    map_options,
    store_options,
    tile_options,
)
from dhsk.commands.outcome import Outcome
from dhsk.commands.table_options import TableOptions, table_options
from dhsk.costs import costs_told
from dhsk.execution.lock import is_occupied
from dhsk.execution.workers import resources_of
from dhsk.gram import GramMatrix, compute_gram, graph_gram
from dhsk.gram.prepare import check_kernels
from dhsk.gram.storage.parts import is_begun
from dhsk.gram.storage.store import GramStore
from dhsk.objects.places import Place
from dhsk.units import counted, human_seconds, parse_bytes


@click.command("gram")
@click.argument("samples")
@store_options
@kernel_options
@map_options
@tile_options
@graph_options
@table_options
@cluster_options
def gram(
    samples: str,
    target: StoreOptions,
    kernel: KernelOptions,
    mapping: MapOptions,
    tiles: TileOptions,
    nodes: GraphOptions,
    table: TableOptions,
    cluster: ClusterOptions,
) -> None:
    """Compute the Gram matrix of SAMPLES into a zarr store.

    The same command continues after an interrupt.
    """
    if nodes.asked:
        _of_nodes(samples, target, tiles, nodes, cluster)
        return
    opened = open_samples_of(samples, table)
    made = kernel.make(opened.shape[1])
    chosen = check_kernels([made], [opened], mapping.sphere_map, tiles.product_dtype)
    outcome = Outcome(made, tiles.product_dtype, local=cluster.cluster == "local")
    connection = connected_if_asked(cluster, needed=target.part is None)
    limit = None if cluster.memory is None else parse_bytes(cluster.memory)
    with connection as client, show_progress() as progress, wrong_out():
        complete = target.part is None and _was_complete(target.out)
        resources = resources_of(client, limit)
        own = target.out, resources, target.part, asdict(tiles)
        tell = partial(say_cost_of, lambda: outcome.cost(opened, *own))
        with outcome.watched(progress, tell) as watched:
            G = compute_gram(
                opened,
                made,
                sphere_map=chosen,
                zero_rows=mapping.zero_rows,
                store=target.out,
                memory=cluster.memory,
                client=client,
                part=target.part,
                **asdict(tiles),
                progress=watched,
            )
        if complete:
            say(f"{target.out} was complete: nothing was computed, and all checksums are right")
    _say_gram(G, outcome, target)
    if target.part is None:
        outcome.show(G, opened, resources)
        say(f"output: {target.out}")
        labels = label_words(samples, None) or f" --labels {quote(samples)}"
        hint_next(
            [
                f"dhsk cv {quote(str(target.out))}{labels} --C 0.1,1,10 --out DIR",
                f"dhsk info {quote(str(target.out))}",
            ]
        )


def _of_nodes(
    edges: str,
    target: StoreOptions,
    tiles: TileOptions,
    nodes: GraphOptions,
    cluster: ClusterOptions,
) -> None:
    """Compute the matrix of the nodes of an edge list."""
    begin, own = perf_counter(), {"dtype": tiles.dtype, "tile": tiles.tile, **nodes.given}
    connection = connected_if_asked(cluster, needed=True)
    with connection as client, show_progress() as progress, costs_told(say_cost), wrong_out():
        complete = _was_complete(target.out)
        G = graph_gram(
            edges, store=target.out, memory=cluster.memory, client=client, progress=progress, **own
        )
        if complete:
            say(f"{target.out} was complete: nothing was computed, and all checksums are right")
    n, m = G.shape
    seconds = human_seconds(perf_counter() - begin)
    say(f"{n:,} x {m:,} {G.dtype} of {G.kernel.label}, {G.tiling.n_tiles} tiles, {seconds}")
    named = G.feature_names or ()
    say(f"nodes:  in the order {', '.join(named[:5])}{', ...' if n > 5 else ''}, as labels must be")
    say(f"output: {target.out}")
    allowed = "" if G.kernel.positive_semidefinite else " --indefinite allow"
    hint_next([f"dhsk cv {quote(str(target.out))} --labels LABELS --C 0.1,1,10{allowed} --out DIR"])


def _was_complete(place: Place) -> bool:
    """Whether all tiles are there, so that nothing will be computed.

    Raises CorruptTileError if anything is damaged: a run that computes nothing may not call it
    done, and one that goes on would write damaged samples again without a word.
    """
    if not is_occupied(place) or is_begun(place) or GramStore.open(place).missing_tiles():
        return False
    GramStore.open(place).check_sound()
    return True


def _say_gram(G: GramMatrix, outcome: Outcome, target: StoreOptions) -> None:
    """Say what was computed: the matrix, or a part of it and what is to be done next."""
    n, m = G.shape
    what = f"{n:,} x {m:,} {G.dtype} of {kernel_words(G.kernel)}"
    if target.part is None:
        say(f"{what}, {counted(G.tiling.n_tiles, 'tile')}, {human_seconds(outcome.seconds)}")
        return
    number, count = target.part
    say(
        f"{what}, part {number} of {count}: {outcome.total - (outcome.found or 0)} of "
        f"{outcome.total} tiles computed, {human_seconds(outcome.seconds)}"
    )
    say(f"output: {target.out}")
    say("next:   when all parts have ended, the same command without --part, which finishes it")
