"""The cluster of a command: connected to, or started and ended with it."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec

import click
from click.core import ParameterSource
from distributed import Client

from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.cluster import connect


@contextmanager
def connected(cluster: str, workers: int | None) -> Iterator[Client]:
    """Client of the cluster that was asked for; a local one ends with it.

    Parameters
    ----------
    cluster, workers
        As on the command line.

    Yields
    ------
    Client
        The client.
    """
    with ExitStack() as stack:
        made = connect(cluster, **({} if workers is None else {"n_workers": workers}))
        client = stack.enter_context(made)
        if cluster == "local" and find_spec("bokeh"):
            click.echo(f"dashboard: {client.dashboard_link}", err=True)
        yield client
        with _undisturbed():
            stack.close()


def connected_if_asked(
    cluster: str, workers: int | None, *, needed: bool
) -> AbstractContextManager[Client | None]:
    """Client of the cluster if one of its options was given or it is needed; else none.

    Parameters
    ----------
    cluster, workers
        As on the command line.
    needed
        Whether the work cannot be done in this process.

    Returns
    -------
    context manager of Client or None
        The client.
    """
    source = click.get_current_context().get_parameter_source("cluster")
    here = source is ParameterSource.DEFAULT and workers is None and not needed
    return nullcontext() if here else connected(cluster, workers)


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
