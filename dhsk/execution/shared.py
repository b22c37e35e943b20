"""Values that many tasks share: the scheduler has them, and each worker asks it for them once.

Not scattered: workers fetch scattered values from one another, and wait for ever for one that is
stopped or that they cannot reach. What a worker needs comes from the scheduler alone.

Rejected: values in every task (6 MB each for 1,000 landmarks); worker plugins (a broadcast waits
for every worker, also a stopped one).
"""

import weakref
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final, TypeVar
from uuid import uuid4

from distributed import Client, Variable, get_worker
from distributed.protocol import to_serialize
from distributed.utils import sync

from dhsk.errors import ClusterError
from dhsk.execution.health import ask

Result = TypeVar("Result")

FETCH_SECONDS: Final = 300.0
"""Most time that a worker waits for a value, which may be large."""


class SharedValue:
    """A value as an argument of tasks, which see the value; pickled as its name.

    It lasts as long as this object. Dask's variables store it on the scheduler, which needs no
    code of ours for that, and workers that join later find it too.
    """

    def __init__(self, client: Client, value: Any) -> None:
        self.name = f"{prefix_of(client)}{uuid4().hex}"
        self.value = value
        ask(client, Variable(self.name, client).set, value=to_serialize(value))
        _live.setdefault(client.id, set()).add(self.name)
        weakref.finalize(self, _delete, weakref.ref(client), client.id, self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Named, (self.name,)


class _Named:
    """A shared value in a task."""

    def __init__(self, name: str) -> None:
        self.name = name


def prefix_of(client: Client) -> str:
    """Start of the names of a client's values."""
    return f"dhsk-{client.id}-"


_live: dict[str, set[str]] = {}
"""Names of the values that exist, by the identifier of their client."""


def live_names(client: Client) -> frozenset[str]:
    """Names of a client's values that exist."""
    return frozenset(_live.get(client.id, ()))


def _delete(reference: "weakref.ref[Client]", owner: str, name: str) -> None:
    """Delete a value on the scheduler; from any thread, without waiting or a lock."""
    _live[owner].discard(name)
    client = reference()
    if client is not None:  # it does nothing if that has ended
        Variable(name, client).delete()


class _Copies:
    """Values that this process has as a worker, by name."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._values: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """A value, which the first task that needs it asks for."""
        with self._lock:
            own = self._locks.setdefault(name, Lock())
        with own:
            if name not in self._values:
                self._values[name] = _fetched(name)
            return self._values[name]

    def forget(self, unwanted: Callable[[str], bool]) -> None:
        """Drop some values."""
        with self._lock:
            for name in [name for name in self._values if unwanted(name)]:
                self._values.pop(name, None)
                self._locks.pop(name, None)


_copies = _Copies()


def _fetched(name: str) -> Any:
    worker = get_worker()
    try:
        record = sync(
            worker.loop,
            worker.scheduler.variable_get,
            name=name,
            timeout=FETCH_SECONDS,
            client=name,
            callback_timeout=FETCH_SECONDS,
        )
    except (OSError, TimeoutError) as error:
        raise ClusterError(
            f"worker {worker.address} gets no answer from the scheduler: run the same command again"
        ) from error
    return record["value"]


def forget_copies(prefix: str) -> None:
    """Drop the values of a client in this process."""
    _copies.forget(lambda name: name.startswith(prefix))


def has_shared(task: Iterable[Any]) -> bool:
    """Whether there is a shared value among the arguments of a task."""
    return any(isinstance(part, SharedValue) for part in task)


def call_with_shared(
    function: Callable[..., Result], prefix: str, used: frozenset[str], *task: Any
) -> Result:
    """Call a function with its shared values, as a task; only those in use are kept here.

    `prefix` is that of the client, and `used` has the names of its values that exist.
    """
    _copies.forget(lambda name: name.startswith(prefix) and name not in used)
    values = [_copies.get(part.name) if isinstance(part, _Named) else part for part in task]
    return function(*(_unwrapped(value) for value in values))


def _unwrapped(value: Any) -> Any:
    """The value itself, where nothing was pickled: workers in the process of the client."""
    return value.value if isinstance(value, SharedValue) else value
