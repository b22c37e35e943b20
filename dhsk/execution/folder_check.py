"""Whether all workers see a folder and can write to it."""

import asyncio
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Final

from distributed import Client, Worker

from dhsk.errors import DhskError, InputError
from dhsk.execution.conditions import Condition, required
from dhsk.execution.lock import LOCK_NAME
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place

_PROBE: Final = ".dhsk-probe-"

_SIGHT_SECONDS: Final = 3.0
"""Time after which a new file is seen on network file systems."""


class FolderCondition(Condition):
    """A worker sees the lock of the client in a folder, and can write beside it."""

    def __init__(self, folder: Path, signature: bytes) -> None:
        self._folder, self._signature = folder, signature

    async def check(self, worker: Worker) -> None:
        """Raise InputError that says what the worker lacks."""
        who = f"worker {worker.name} on {socket.gethostname()}"
        deadline = monotonic() + _SIGHT_SECONDS
        while _signature(self._folder) != self._signature:
            if monotonic() > deadline:
                raise InputError(
                    f"{who} does not see the folder {self._folder} of this program: choose a "
                    "folder on a disk that all workers share, at the same path; for temporary "
                    "folders set TMPDIR"
                )
            await asyncio.sleep(0.1)
        own = self._folder / f"{_PROBE}{uuid.uuid4().hex}"
        try:
            own.touch()
        except OSError as error:
            raise InputError(
                f"{who} cannot write to {self._folder} ({os.strerror(error.errno or 0)}): give "
                "its user the right to, or choose another folder"
            ) from None
        with suppress(OSError):
            own.unlink()


class ServerCondition(Condition):
    """A worker reaches the server of a store, with the credentials of its own environment."""

    def __init__(self, place: ObjectPath) -> None:
        self._place = place

    async def check(self, worker: Worker) -> None:
        """Raise InputError that says what the worker lacks."""
        try:
            await asyncio.to_thread(self._place.check)
        except DhskError as error:
            raise InputError(
                f"worker {worker.name} on {socket.gethostname()} cannot use the store: {error}"
            ) from None


@contextmanager
def shared_by_workers(client: Client | None, folder: Place) -> Iterator[None]:
    """Check that all workers can use a folder, also those that join while the context lasts.

    The folder is locked by `sole_writer`: its lock, which names the process, tells it from another
    folder of the same path on the worker's own disk. Raises InputError that names the worker and
    what it lacks, before any task is submitted.
    """
    if client is None or client.scheduler.address.startswith("inproc"):
        yield
        return
    if isinstance(folder, ObjectPath):
        with required(client, f"dhsk-server-{uuid.uuid4().hex}", ServerCondition(folder)):
            yield
        return
    with (folder / LOCK_NAME).open("rb+") as lock, suppress(OSError):
        os.fsync(lock)  # network file systems may wait with it until the file is closed
    signature = _signature(folder) or b""
    condition = FolderCondition(folder.absolute(), signature)
    with required(client, f"dhsk-folder-{uuid.uuid4().hex}", condition):
        yield


def _signature(folder: Path) -> bytes | None:
    """Content of the lock in a folder; None without one."""
    try:
        return (folder / LOCK_NAME).read_bytes()
    except OSError:
        return None
