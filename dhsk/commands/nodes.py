"""Options of `dhsk gram --graph`: kernels of the nodes of an edge list."""

from typing import Any, Final

import click
from click.core import ParameterSource

from dhsk.commands.table import FIT, gathered, option, rows_of
from dhsk.kernels.nodes import KINDS

_SHARED: Final = frozenset(
    {
        "samples",
        "out",
        "dtype",
        "tile",
        "cluster",
        "workers",
        "memory",
        "config",
        "quiet",
        "verbose",
    }
)
"""Parameters of `dhsk gram` that graphs have too."""

NODES: Final = rows_of(
    FIT,
    option(
        "--graph",
        type=click.Choice(KINDS),
        help="SAMPLES is an edge list, lines of two nodes and perhaps a weight, and the kernel one "
        "of its nodes.",
    ),
    option("--beta", type=float, help="With --graph: factor of the similarity."),
    option("--power", type=int, help="With --graph power: the exponent."),
    option(
        "--laplacian",
        is_flag=True,
        help="With --graph: take the negative Laplacian, as diffusion does, not the adjacency.",
    ),
)
node_options = gathered("nodes", dict, *NODES)


def check_nodes(nodes: dict[str, Any]) -> bool:
    """Whether SAMPLES is an edge list; UsageError for options of the other kind."""
    context, graph = click.get_current_context(), nodes["graph"] is not None
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source not in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP):
            continue
        if not graph and name in nodes:
            raise click.UsageError(f"{parameter.opts[0]} is for --graph: give --graph too")
        if graph and name not in nodes and name not in _SHARED:
            raise click.UsageError(f"{parameter.opts[0]} is not for --graph: leave it out")
    return graph
