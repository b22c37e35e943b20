"""What is begun on all workers while a client computes, also on those that join later."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from time import sleep
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

from distributed import Client, Worker, WorkerPlugin
from distributed import TimeoutError as LateError

from dhsk import systems
from dhsk.execution.upstream import (
    cut_own_messages,
    is_starting,
    leave,
    message_cutter,
    within,
)

log = logging.getLogger("dhsk.cluster")

TOPIC: Final = "dhsk-workers"
"""Topic of the scheduler's events in which workers say how they join, and why they leave."""

ANSWER_SECONDS: Final = 10.0
"""Most time to wait for the answers of all workers: one that is stopped gives none."""

LATE_SECONDS: Final = 1.0
"""Most time for workers that have been late before, and at the end."""

_TRIALS: Final = 3

_CLIENT_ACTIONS: Final = ("add-client", "remove-client")
"""What the scheduler notes when a client comes and goes, under its identifier."""


class Plugin(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """Begun on each worker; one that joins later and on which it fails leaves again.

    For workers that are there its error is raised where it is registered.

    Parameters
    ----------
    begin
        Coroutine function of a worker, which returns what is to be said if it joins.
    end
        Called where the plugin is unregistered, if it was begun.
    """

    client = ""
    """Identifier of the client that registered it."""

    def __init__(
        self,
        begin: Callable[[Worker], Awaitable[str | None]],
        end: Callable[[], None] | None = None,
    ) -> None:
        self._begin, self._end = begin, end
        self._is_begun = False

    async def setup(self, worker: Worker) -> None:
        """Begin on a worker."""
        starting = is_starting(worker)
        try:
            said = await self._begin(worker)
            self._is_begun = True
        except Exception as error:
            if not starting:
                raise
            if await self._is_left_over(worker):
                return
            worker.log_event(TOPIC, f"worker {worker.name} is not used: {error}")
            leave(worker, str(error))
        else:
            if starting and said is not None:
                worker.log_event(TOPIC, f"worker {worker.name} joins: {said}")

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002
        """End on a worker."""
        if self._is_begun and self._end is not None:
            self._end()

    async def _is_left_over(self, worker: Worker) -> bool:
        """Whether its client has gone without removing it, as one does that is killed."""
        events = await worker.scheduler.events(topic=self.client)
        actions = [event.get("action") for _, event in events]
        return [action for action in actions if action in _CLIENT_ACTIONS][-1:] != ["add-client"]


class _Registered:
    """Plugins that clients have registered, with the numbers of contexts that need them."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users: WeakKeyDictionary[Client, Counter[str]] = WeakKeyDictionary()


_registered = _Registered()
systems.at_fork(after_in_child=_registered.__init__)  # type: ignore[misc]  # another's lock


@contextmanager
def registered(
    client: Client, name: str, make: Callable[[], Plugin], *, stays: bool = False
) -> Iterator[None]:
    """Have a plugin on all workers while the context lasts; with `stays`, as long as the cluster.

    `make` is called by the first context of this name; within another one nothing is done.
    """
    name = f"dhsk-{name}-{client.id}"
    with _registered.lock:
        users = _registered.users.setdefault(client, Counter())
        if not users[name]:
            _register(client, name, make())
        users[name] += 1
    try:
        yield
    finally:
        with _registered.lock:
            users[name] -= not stays
            if not users[name]:
                del users[name]
                _unregister(client, name)


_listening: WeakSet[Client] = WeakSet()
"""Clients that log the events of workers that join and leave."""


def _register(client: Client, name: str, plugin: Plugin) -> None:
    if client not in _listening:
        _listening.add(client)
        client.subscribe_topic(TOPIC, _log_event)
    plugin.client = client.id
    try:
        _call(client, client.register_plugin, plugin, name=name)
    except BaseException:
        _unregister(client, name)  # else it would await those that join
        raise


def _unregister(client: Client, name: str) -> None:
    # If the cluster has ended, so have its plugins, and another error says so.
    with suppress(OSError, ValueError, AttributeError, LateError):
        within(client, LATE_SECONDS, client.unregister_worker_plugin, name)


def cut_messages(client: Client) -> None:
    """Have the connections of a client and of its scheduler keep their last message alone.

    One that refuses functions keeps them, as it may.
    """
    cut_own_messages(client)
    with suppress(OSError, ValueError, AttributeError, LateError):
        within(client, LATE_SECONDS, client.run_on_scheduler, message_cutter())


def answers(client: Client, function: Any, *arguments: Any) -> dict[str, Any]:
    """What a function returns or raises on each worker, by address; empty if one is stopped.

    Workers that end meanwhile are left out.
    """
    found = _call(client, client.run, function, *arguments, on_error="return") or {}
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
            return within(client, limit, method, *arguments, **options)
        except LateError:
            _late.add(client)
            return None
        except OSError:  # a worker has just ended
            sleep(LATE_SECONDS)
    return None


def _log_event(event: tuple[float, str]) -> None:
    log.warning(event[1])
