"""Whether all workers see the place of a store and can write to it."""

import asyncio
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final

from dhsk.errors import InputError, StoreError
from dhsk.execution.array_job import ArrayJob
from dhsk.execution.owner import holder_of
from dhsk.objects.places import Place, check_writable, is_url, parse_place

if TYPE_CHECKING:
    from distributed import Client, Worker

_SIGHT_SECONDS: Final = 3.0
"""Time after which a new file is seen on network file systems."""


async def _sees(place: Place, holder: bytes | None, worker: "Worker") -> None:
    """Raise InputError if a worker does not see the client's lock of a store, or cannot write."""
    who = f"worker {worker.name} on {socket.gethostname()}"
    try:
        await asyncio.to_thread(_check, place, holder, who)
    except (StoreError, OSError) as error:
        raise InputError(f"{who} cannot use the store: {error}") from None


def _check(place: Place, holder: bytes | None, who: str) -> None:
    place = parse_place("store", str(place))  # a server is asked, with little patience
    deadline = monotonic() + _SIGHT_SECONDS
    while holder_of(place) != holder:
        if monotonic() > deadline:
            raise InputError(f"{who} does not see {_unseen(place)}")
        sleep(0.1)
    check_writable(place)


def _unseen(place: Place) -> str:
    """A place that a worker does not see, and the way out."""
    if is_url(place):
        return f"{place} of this program: give workers the same AWS_ENDPOINT_URL"
    return (
        f"the folder {place} of this program: choose a folder on a disk that all workers share, "
        "at the same path; for temporary folders set TMPDIR"
    )


@contextmanager
def shared_by_workers(client: "Client | ArrayJob | None", place: Place) -> Iterator[None]:
    """Check that all workers can use a store, also those that join while the context lasts.

    It is locked by `sole_writer_of`: the lock, which names the process, tells it from a store of
    the same name on the worker's own disk or on another server. Raises InputError that names the
    worker and what it lacks, before any task is submitted.
    """
    if (
        client is None
        or isinstance(client, ArrayJob)
        or client.scheduler.address.startswith("inproc")
    ):
        yield
        return
    from dhsk.execution.plugins import Plugin, registered

    sees = partial(_sees, place.absolute(), holder_of(place))
    with registered(client, f"place-{uuid.uuid4().hex}", partial(Plugin, sees)):
        yield
