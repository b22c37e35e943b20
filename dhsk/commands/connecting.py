"""The cluster of a command: an existing one, or a local one that ends with the command."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import astuple
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.request import ProxyHandler, build_opener

import click
from click.core import ParameterSource
from click.exceptions import Exit

from dhsk.commands.console import say
from dhsk.commands.earlier_run import TABLES
from dhsk.commands.manner import SOURCES
from dhsk.commands.options import Cluster
from dhsk.costs import FEW
from dhsk.errors import InputError, StoreMismatchError
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.resources import are_heavy
from dhsk.execution.upstream import undisturbed, without_logs
from dhsk.gram.storage.descriptions import DESCRIPTION
from dhsk.objects.path import Version
from dhsk.objects.places import Place
from dhsk.samples.paths import Origin
from dhsk.verbosity import Verbosity, verbosity

if TYPE_CHECKING:
    from distributed import Client

    from dhsk.execution.array_job import ArrayJob

READ = (*SOURCES, "model")
"""Parameters that name files which are read."""

CLOSING_SECONDS = 5.0
"""Most time to wait for the answers of a cluster at the end."""

DASHBOARD_SECONDS = 2.0
"""Most time to wait for its dashboard."""


@contextmanager
def connected(asked: Cluster) -> Iterator["Client"]:
    """Yield a client of the cluster of the options; a local cluster ends with the context."""
    from dhsk.execution.cluster import connect

    client = connect(asked.cluster, n_workers=asked.workers)
    with without_logs("distributed.client"), without_logs("distributed.batched"):
        try:
            if verbosity() >= Verbosity.USUAL and (link := dashboard_of(client)):
                click.echo(f"dashboard: {link}", err=True)
            yield client
        except BaseException:
            _close(client)
            raise
        with undisturbed():
            _close(client)


def dashboard_of(client: "Client") -> str | None:
    """Link to the dashboard of a cluster; None if it has none that can be read from here.

    Where bokeh is not installed, Dask serves a page that says only that.
    """
    with suppress(KeyError, OSError, ValueError):  # no such service, no answer, no address
        link = str(client.dashboard_link)
        with build_opener(ProxyHandler({})).open(link, timeout=DASHBOARD_SECONDS) as answer:
            return None if b"Dask needs bokeh" in answer.read(100) else link
    return None


def _close(client: "Client") -> None:
    """Close a client, in a time that does not depend on who still answers."""
    with suppress(OSError):
        client.close(timeout=CLOSING_SECONDS)


def connected_if_asked(
    asked: Cluster, samples: int = 0, out: Place | None = None, *, one_pass: bool = False
) -> "AbstractContextManager[Client | ArrayJob | None]":
    """Client of the cluster if an option names one or there are many samples; else None.

    `samples` is 0 for work that processes do no sooner. None too where these would leave less than
    half of the memory to the work. With --part it is that part of an array job, which shares its
    work beside `out`; of work in one pass the last part alone has all.
    """
    source = click.get_current_context().get_parameter_source("cluster")
    free = source is ParameterSource.DEFAULT and asked.workers is None
    if asked.part is not None and out is not None:
        if not free:
            raise click.UsageError("--part needs no --cluster and no --workers: leave them out")
        return _part_of_job(asked.part, out, last_reads=one_pass)
    if free and (samples < FEW or are_heavy(core_count(), asked.limit or memory_limit())):
        return nullcontext()
    return connected(asked)


def parts_of(out: Place) -> Place:
    """Folder in which several processes share the work of a command."""
    return out.with_name(f"{out.name}.parts")


@contextmanager
def _part_of_job(part: tuple[int, int], out: Place, *, last_reads: bool) -> "Iterator[ArrayJob]":
    """One of the processes that share the work of this command."""
    from dhsk.execution.array_job import AllEndedError, ArrayJob
    from dhsk.gram.storage.parts import parse_part

    number, count = astuple(parse_part(part))
    folder = parts_of(out)
    job = ArrayJob(number, count, folder, partial(click.echo, err=True), last_reads)
    given = click.get_current_context().params.items()
    options = {name: str(value) for name, value in given if name != "part"}
    asked = [count, version("dhsk"), options]

    def is_made() -> bool:
        return any(place.is_file() for place in (out, out / TABLES[0], out / DESCRIPTION))

    try:
        with job.running(asked, is_made=is_made, inputs=_versions(options)):
            job.tell(f"{job} shares its work in {folder}")
            yield job
    except AllEndedError:
        say(f"all parts have ended before, and made {out}: to run them again, remove {folder}")
        raise Exit(0) from None


def _versions(options: Mapping[str, str]) -> dict[str, Version]:
    """Versions of the files that options name: samples, labels and models."""
    found = {}
    for name, value in options.items():
        with suppress(InputError):  # an option that was not given, or no file
            if name in READ:
                found[name] = Origin.of(value).version
    return found


@contextmanager
def wrong_out() -> Iterator[None]:
    """Turn a `StoreMismatchError` into an InputError: the option is wrong, not the store."""
    try:
        yield
    except StoreMismatchError as error:
        raise InputError(str(error)) from error
