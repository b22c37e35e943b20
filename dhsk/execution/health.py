"""Answers of a cluster: calls to its scheduler that end in time, and which workers are at work.

Settings of Dask's configuration:

``dhsk.progress-timeout``
    Least time, by default 60 s, after which a task that makes no progress is given to another
    worker. If five times the slowest finished task of a run is more, that counts.
``dhsk.scheduler-timeout``
    Time, by default 30 s, after which a scheduler that does not answer counts as lost.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from threading import Lock
from time import monotonic, sleep
from typing import Any, Final
from weakref import WeakKeyDictionary

import dask
import psutil
from dask.utils import parse_timedelta
from distributed import Client
from distributed import TimeoutError as LateError

from dhsk.errors import ClusterError, InputError
from dhsk.execution.limits import core_count
from dhsk.execution.upstream import within

BEAT_SECONDS: Final = 5.0
"""Most time between two looks at a cluster that gives no results."""

LOST_SCHEDULER: Final = (
    "the connection to the scheduler is lost: what is finished is kept, run the same command again"
)

BUSY_PERCENT: Final = 10.0
"""Share of a core that a worker at work takes at least; an idle one takes up to 4 %. Both take less
where other processes wait for the cores, see `crowding`."""


def progress_timeout() -> float:
    """Seconds after which a task without progress is given to another worker, at least."""
    return _seconds("dhsk.progress-timeout", "60s")


def scheduler_timeout() -> float:
    """Seconds after which a scheduler that does not answer is lost."""
    return _seconds("dhsk.scheduler-timeout", "30s")


def _seconds(setting: str, otherwise: str) -> float:
    given = dask.config.get(setting, otherwise)
    try:
        return float(parse_timedelta(given))
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{setting} in Dask's configuration is {given!r}: give a time such as 90s or 5m"
        ) from error


def crowding(address: str) -> float:
    """Processes that wait for each core of a worker's machine, at least 1; 1 of other machines."""
    if not address.partition("://")[2].startswith(("127.0.0.1:", "[::1]:")):
        return 1.0
    return max(1.0, psutil.getloadavg()[0] / core_count())


def ask(client: Client, call: Callable[..., Awaitable[Any]], **named: Any) -> Any:
    """Await an answer of the scheduler; ClusterError if `scheduler_timeout` passes without."""
    try:
        return within(client, scheduler_timeout(), call, **named)
    except (OSError, LateError) as error:
        raise ClusterError(LOST_SCHEDULER) from error


@dataclass
class _Seen:
    """What is known of a worker."""

    last_seen: float
    """Time of its last heartbeat, by the scheduler's clock."""
    heard: float
    """When that was seen to have changed, by the clock of this process."""
    busy: float
    """When it was last seen to compute."""


class Watch:
    """Health of a cluster, as seen by one client in looks every few seconds."""

    def __init__(self) -> None:
        self.avoided: set[str] = set()
        """Workers that get no new tasks until they are heard of again."""
        self._seen: dict[str, _Seen] = {}
        self._looked = self._peopled = monotonic()

    def look(self, client: Client) -> None:
        """Ask for all workers; raise ClusterError if the scheduler is lost."""
        found = workers_of(client)
        now = monotonic()
        rare = now - self._looked > 3 * BEAT_SECONDS  # nothing is known of the time between
        self._looked = now
        self._peopled = now if found else self._peopled
        known, self._seen = self._seen, {}
        for address, worker in found.items():
            seen = known.get(address) or _Seen(worker["last_seen"], now, now)
            if worker["last_seen"] != seen.last_seen:
                seen.last_seen, seen.heard = worker["last_seen"], now
                if rare or worker["metrics"].get("cpu", 100.0) >= BUSY_PERCENT / crowding(address):
                    seen.busy = now
            self._seen[address] = seen
        self.avoided = {address for address in self.avoided if self.silence(address) > 0}

    @property
    def empty_for(self) -> float:
        """Seconds without any worker, as of the last look."""
        return 0.0 if self._seen else self._looked - self._peopled

    def silence(self, address: str) -> float:
        """Seconds since a worker was last heard of, as of the last look; 0 if it is not here."""
        return self._looked - self._seen[address].heard if address in self._seen else 0.0

    def idleness(self, address: str) -> float:
        """Seconds since a worker was last seen to compute; 0 if it is not here."""
        return self._looked - self._seen[address].busy if address in self._seen else 0.0

    def answering(self) -> set[str]:
        """Workers that were heard of lately, and are not avoided."""
        lately = 3 * BEAT_SECONDS
        return {a for a in self._seen if self.silence(a) < lately} - self.avoided


_watches: WeakKeyDictionary[Client, Watch] = WeakKeyDictionary()
_lock = Lock()


def watch_of(client: Client) -> Watch:
    """The watch that all runs of a client share."""
    with _lock:
        return _watches.setdefault(client, Watch())


def workers_of(client: Client) -> dict[str, Any]:
    """The scheduler's information on each worker, by address; ClusterError if it is lost."""
    begin = monotonic()
    while client.status == "running":
        try:
            patience = scheduler_timeout() / 3
            answer = within(client, patience, client.scheduler.identity, n_workers=-1)
            return dict(answer["workers"])
        except (OSError, LateError) as error:
            if monotonic() - begin > 2 / 3 * scheduler_timeout():
                raise ClusterError(LOST_SCHEDULER) from error
            sleep(min(1.0, scheduler_timeout() / 10))  # refused, perhaps: not at once again
    raise ClusterError(LOST_SCHEDULER)
