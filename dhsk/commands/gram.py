"""The command `dhsk gram`: a Gram matrix to a store."""

from functools import partial
from time import perf_counter
from typing import Any, Final

import click

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import hint_next, kernel_words, say, say_cost, say_cost_of
from dhsk.commands.inputs import label_words, open_samples_of
from dhsk.commands.nodes import check_nodes, node_options
from dhsk.commands.options import (
    KERNEL,
    Cluster,
    cluster_options,
    make_kernel,
    map_rows,
    out_option,
    refuse_idle,
    tile_options,
)
from dhsk.commands.outcome import Outcome
from dhsk.commands.parameters import PART as PART_OF_SEVERAL
from dhsk.commands.reading import Reading, reading_options
from dhsk.commands.table import RUN, gathered, option
from dhsk.costs import costs_told
from dhsk.execution.lock import is_occupied
from dhsk.execution.workers import resources_of
from dhsk.gram import GramMatrix, compute_gram, graph_gram, read_edges
from dhsk.gram.prepare import check_kernels
from dhsk.gram.storage.parts import is_begun
from dhsk.gram.storage.store import GramStore
from dhsk.objects.places import Place
from dhsk.samples.variance import width_of
from dhsk.systems import quoted
from dhsk.units import counted, human_seconds

PART: Final = option(
    "--part",
    group=RUN,
    type=PART_OF_SEVERAL,
    help="Compute one of several parts, such as 3/64, in this process; other processes compute the "
    "others. Afterwards run without --part.",
)


@click.command("gram")
@click.argument("samples")
@gathered("target", dict, out_option.of(help="Folder of the store, or s3://BUCKET/PREFIX."), PART)
@gathered("kernel", dict, *KERNEL, *map_rows())
@tile_options
@node_options
@reading_options
@cluster_options
def gram(
    samples: str,
    target: dict[str, Any],
    kernel: dict[str, Any],
    tiles: dict[str, Any],
    nodes: dict[str, Any],
    table: Reading,
    cluster: Cluster,
) -> None:
    """Compute the Gram matrix of SAMPLES into a zarr store.

    Fewer than 5,000 samples run in this process unless --cluster or --workers is given. The same
    command continues after an interrupt.
    """
    out, part = target["out"], target["part"]
    if check_nodes(nodes):
        _of_nodes(samples, out, tiles, nodes, cluster)
        return
    refuse_idle([kernel["kernel"]], kernel)
    opened = open_samples_of(samples, table)
    sphere_map, zero_rows = kernel.pop("sphere_map"), kernel.pop("zero_rows")
    made = make_kernel(opened.shape[1], **kernel, width=width_of(opened, sphere_map))
    chosen = check_kernels([made], [opened], sphere_map, tiles["product_dtype"])
    outcome = Outcome(made, tiles["product_dtype"], local=cluster.cluster == "local")
    connection = connected_if_asked(cluster, opened.shape[0] if part is None else 0)
    with connection as client, show_progress() as progress, wrong_out():
        complete = part is None and _was_complete(out)
        resources = resources_of(client, cluster.limit)
        own = out, resources, part, tiles
        tell = partial(say_cost_of, lambda: outcome.cost(opened, *own))
        with outcome.watched(progress, tell) as watched:
            G = compute_gram(
                opened,
                made,
                sphere_map=chosen,
                zero_rows=zero_rows,
                store=out,
                memory=cluster.memory,
                client=client,
                part=part,
                **tiles,
                progress=watched,
            )
        if complete:
            say(f"{out} was complete: nothing was computed, and all checksums are right")
    _say_gram(G, outcome, out, part)
    if part is None:
        outcome.show(G, opened, resources)
        say(f"output: {out}")
        labels = label_words(samples) or f" --labels {quoted(samples)}"
        hint_next(
            [
                f"dhsk cv {quoted(str(out))}{labels} --C 0.1,1,10 --out DIR",
                f"dhsk info {quoted(str(out))}",
            ]
        )


def _of_nodes(
    edges: str, out: Place, tiles: dict[str, Any], nodes: dict[str, Any], cluster: Cluster
) -> None:
    """Compute the matrix of the nodes of an edge list."""
    begin, own = perf_counter(), {"dtype": tiles["dtype"], "tile": tiles["tile"], **nodes}
    own["kind"] = own.pop("graph")
    graph = read_edges(edges)
    connection = connected_if_asked(cluster, graph.matrix.shape[0])
    with connection as client, show_progress() as progress, costs_told(say_cost), wrong_out():
        complete = _was_complete(out)
        G = graph_gram(
            graph, store=out, memory=cluster.memory, client=client, progress=progress, **own
        )
        if complete:
            say(f"{out} was complete: nothing was computed, and all checksums are right")
    n, m = G.shape
    seconds = human_seconds(perf_counter() - begin)
    say(f"{n:,} x {m:,} {G.dtype} of {G.kernel.label}, {G.tiling.n_tiles} tiles, {seconds}")
    named = G.feature_names or ()
    say(f"nodes:  in the order {', '.join(named[:5])}{', ...' if n > 5 else ''}, as labels must be")
    say(f"output: {out}")
    allowed = "" if G.kernel.positive_semidefinite else " --indefinite allow"
    hint_next([f"dhsk cv {quoted(str(out))} --labels LABELS --C 0.1,1,10{allowed} --out DIR"])


def _was_complete(place: Place) -> bool:
    """Whether all tiles are there, so that nothing will be computed.

    Raises CorruptTileError if anything is damaged: a run that computes nothing may not call it
    done, and one that goes on would write damaged samples again without a word.
    """
    if not is_occupied(place) or is_begun(place) or GramStore.open(place).missing_tiles():
        return False
    GramStore.open(place).check_sound()
    return True


def _say_gram(G: GramMatrix, outcome: Outcome, out: Place, part: tuple[int, int] | None) -> None:
    """Say what was computed: the matrix, or a part of it and what is to be done next."""
    n, m = G.shape
    what = f"{n:,} x {m:,} {G.dtype} of {kernel_words(G.kernel)}"
    if part is None:
        say(f"{what}, {counted(G.tiling.n_tiles, 'tile')}, {human_seconds(outcome.seconds)}")
        return
    number, count = part
    say(
        f"{what}, part {number} of {count}: {outcome.total - (outcome.found or 0)} of "
        f"{outcome.total} tiles computed, {human_seconds(outcome.seconds)}"
    )
    say(f"output: {out}")
    say("next:   when all parts have ended, the same command without --part, which finishes it")
