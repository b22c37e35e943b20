"""The cluster of a command: an existing one, or a local one that ends with the command."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from typing import Final

import click
from click.core import ParameterSource
from distributed import Client
from distributed import TimeoutError as LateError

from dhsk.commands.options import Cluster
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.cluster import connect
from dhsk.execution.upstream import undisturbed, without_logs
from dhsk.verbosity import Verbosity, verbosity

SMALL: Final = 5000
"""Most samples of an exact grid that runs in the command's own process. Measured on two cores:
starting a cluster and its tasks are 11 s of 27 on 600 samples and 9 of 41 on 3,003; on 39,774 its
processes are a tenth faster than threads."""

CLOSING_SECONDS = 5.0
"""Most time to wait for the answers of a cluster at the end."""


@contextmanager
def connected(asked: Cluster) -> Iterator[Client]:
    """Yield a client of the cluster of the options; a local cluster ends with the context."""
    client = connect(asked.cluster, **asked.how_many)
    with without_logs("distributed.client"), without_logs("distributed.batched"):
        try:
            if asked.cluster == "local" and verbosity() >= Verbosity.USUAL and find_spec("bokeh"):
                click.echo(f"dashboard: {client.dashboard_link}", err=True)
            yield client
        except BaseException:
            _close(client)
            raise
        with undisturbed():
            _close(client)


def _close(client: Client) -> None:
    """Close a client, in a time that does not depend on who still answers."""
    with suppress(OSError, LateError):
        client.close(timeout=CLOSING_SECONDS)


def connected_if_asked(asked: Cluster, *, needed: bool) -> AbstractContextManager[Client | None]:
    """Client of the cluster if the work needs one or an option names one; else None."""
    source = click.get_current_context().get_parameter_source("cluster")
    here = source is ParameterSource.DEFAULT and asked.workers is None and not needed
    return nullcontext() if here else connected(asked)


@contextmanager
def wrong_out() -> Iterator[None]:
    """Turn a `StoreMismatchError` into an InputError: the option is wrong, not the store."""
    try:
        yield
    except StoreMismatchError as error:
        raise InputError(str(error)) from error
