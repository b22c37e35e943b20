"""Options of `dhsk gram --graph`: kernels of the nodes of an edge list."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import click
from click.core import ParameterSource

from dhsk.commands.options import gathered
from dhsk.kernels.nodes import KINDS

_SHARED = ("samples", "out", "dtype", "tile", "cluster", "workers", "memory", "quiet", "verbose")
"""Parameters of `dhsk gram` that graphs have too."""


@dataclass(frozen=True)
class GraphOptions:
    """Kernel of graph nodes; see `graph_gram`."""

    graph: str | None
    beta: float | None
    power: int | None
    laplacian: bool

    @property
    def asked(self) -> bool:
        """Whether SAMPLES is an edge list; refuse options of the other kind."""
        context, own = click.get_current_context(), {field.name for field in fields(self)}
        for option in context.command.params:
            name = option.name or ""
            typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
            if typed and self.graph is None and name in own:
                raise click.UsageError(f"{option.opts[0]} is for --graph: give --graph too")
            if typed and self.graph is not None and name not in own and name not in _SHARED:
                raise click.UsageError(f"{option.opts[0]} is not for --graph: leave it out")
        return self.graph is not None

    @property
    def given(self) -> dict[str, Any]:
        """Parameters of `graph_gram`."""
        own = asdict(self)
        return {"kind": own.pop("graph"), **own}


graph_options = gathered(
    "nodes",
    GraphOptions,
    click.option(
        "--graph",
        type=click.Choice(KINDS),
        help="SAMPLES is an edge list, lines of two nodes and perhaps a weight, and the kernel one "
        "of its nodes.",
    ),
    click.option("--beta", type=float, help="With --graph: factor of the similarity."),
    click.option("--power", type=int, help="With --graph power: the exponent."),
    click.option(
        "--laplacian",
        is_flag=True,
        help="With --graph: take the negative Laplacian, as diffusion does, not the adjacency.",
    ),
)
