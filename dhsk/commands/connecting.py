"""The cluster of a command: connected to, or started and ended with it."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec

import click
from click.core import ParameterSource
from distributed import Client

from dhsk.commands.options import ClusterOptions
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.cluster import connect


@contextmanager
def connected(asked: ClusterOptions) -> Iterator[Client]:
    """Client of the cluster that was asked for; a local one ends with it.

    Parameters
    ----------
    asked
        The options of the command.

    Yields
    ------
    Client
        The client.
    """
    with ExitStack() as stack:
        made = connect(asked.cluster, **asked.how_many)
        client = stack.enter_context(made)
        if asked.cluster == "local" and find_spec("bokeh"):
            click.echo(f"dashboard: {client.dashboard_link}", err=True)
        yield client
        with _undisturbed():
            stack.close()


def connected_if_asked(
    asked: ClusterOptions, *, needed: bool
) -> AbstractContextManager[Client | None]:
    """Client of the cluster if one of its options was given or it is needed; else none.

    Parameters
    ----------
    asked
        The options of the command.
    needed
        Whether the work cannot be done in this process.

    Returns
    -------
    context manager of Client or None
        The client.
    """
    source = click.get_current_context().get_parameter_source("cluster")
    here = source is ParameterSource.DEFAULT and asked.workers is None and not needed
    return nullcontext() if here else connected(asked)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore signals: interrupted while it ends, Dask takes ten seconds and prints tracebacks."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def wrong_out() -> Iterator[None]:
    """Say that an option is wrong where it names the store of something else: the store is not.

    Raises
    ------
    InputError
        In place of a `StoreMismatchError`.
    """
    try:
        yield
    except StoreMismatchError as error:
        raise InputError(str(error)) from error
