"""Conditions that all workers of a computation meet, those that join later too."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import sleep
from typing import Any, Final
from weakref import WeakSet

from distributed import Client, Worker, WorkerPlugin
from distributed import TimeoutError as LateError
from distributed.core import Status

log = logging.getLogger("dhsk.cluster")

TOPIC: Final = "dhsk-workers"
"""Topic of the scheduler's events in which workers say why they leave."""

ANSWER_SECONDS: Final = 5.0
"""Most time to wait for the answers of all workers: one that is stopped gives none."""

LATE_SECONDS: Final = 1.0
"""Most time for workers that have been late before, and at the end."""

_TRIALS: Final = 3

_CLIENT_ACTIONS: Final = ("add-client", "remove-client")
"""What the scheduler notes when a client comes and goes, under its identifier."""


class Condition(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """Checked on each worker; one that joins later and does not meet it leaves again.

    For workers that are there its error is raised where the condition is registered.
    """

    client = ""
    """Identifier of the client that registered it."""

    async def setup(self, worker: Worker) -> None:
        """Check a worker."""
        try:
            await self.check(worker)
        except Exception as error:
            if worker.periodic_callbacks["heartbeat"].is_running():
                raise
            if await self._is_left_over(worker):
                return
            # It is starting, and Dask would only log the error. Workers that end get no tasks.
            worker.status = Status.closing_gracefully
            worker.log_event(TOPIC, f"worker {worker.name} is not used: {error}")
            worker.loop.add_callback(partial(_leave, worker, str(error)))

    async def check(self, worker: Worker) -> None:
        """Raise InputError if a worker does not meet the condition."""
        raise NotImplementedError

    async def _is_left_over(self, worker: Worker) -> bool:
        """Whether its client has gone without removing it, as one does that is killed."""
        events = await worker.scheduler.events(topic=self.client)
        actions = [event.get("action") for _, event in events]
        return [action for action in actions if action in _CLIENT_ACTIONS][-1:] != ["add-client"]


async def _leave(worker: Worker, reason: str) -> None:
    await asyncio.sleep(1.0)  # its event is sent first
    await worker.close(reason=reason)


_listening: WeakSet[Client] = WeakSet()
"""Clients that log the events of workers that leave."""


def require(client: Client, name: str, condition: Condition) -> None:
    """Check a condition on all workers, and on those that join as long as the cluster lasts."""
    if client not in _listening:
        _listening.add(client)
        client.subscribe_topic(TOPIC, _log_event)
    condition.client = client.id
    _call(client, client._register_worker_plugin, condition, name=name, idempotent=False)


@contextmanager
def required(client: Client, name: str, condition: Condition) -> Iterator[None]:
    """Check a condition on all workers, and on those that join while the context lasts."""
    require(client, name, condition)
    try:
        yield
    finally:
        # If the cluster has ended, so have its plugins, and another error says so.
        with suppress(OSError, ValueError, AttributeError, LateError):
            client.sync(client._unregister_worker_plugin, name=name, callback_timeout=LATE_SECONDS)


def answers(client: Client, function: Any, *arguments: Any) -> dict[str, Any]:
    """What a function returns or raises on each worker, by address; empty if one is stopped.

    Workers that end meanwhile are left out.
    """
    found = _call(client, client._run, function, *arguments, on_error="return") or {}
    return {address: own for address, own in found.items() if not _is_gone(own)}


def _is_gone(answer: Any) -> bool:
    """Whether there was nobody to answer: errors of a worker's own come with their traceback."""
    return isinstance(answer, OSError) and answer.__traceback__ is None


_late: WeakSet[Client] = WeakSet()
"""Clients of which a worker has not answered in time."""


def _call(client: Client, method: Any, *arguments: Any, **options: Any) -> Any:
    """Call a method of a client; None if a worker is stopped, which later tasks find."""
    for _ in range(_TRIALS):
        limit = LATE_SECONDS if client in _late else ANSWER_SECONDS
        try:
            return client.sync(method, *arguments, callback_timeout=limit, **options)
        except LateError:
            _late.add(client)
            return None
        except OSError:  # a worker has just ended
            sleep(LATE_SECONDS)
    return None


def _log_event(event: tuple[float, str]) -> None:
    log.warning(event[1])
