"""Whether workers have the same software and processor, which results depend on."""

import platform
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from weakref import WeakKeyDictionary

import llvmlite.binding as llvm
from distributed import Client, Worker
from threadpoolctl import ThreadpoolController

from dhsk.errors import InputError, warn
from dhsk.execution.health import ask
from dhsk.execution.plugins import Plugin, answers, registered

_PARTS: Final[Mapping[str, int | None]] = {"dhsk": None, "Python": 2, "zarr": 2, "numpy": 1}
"""Leading parts of a version that must be the same everywhere; None for the whole version."""

_BITS: Final = ("numpy", "numba", "BLAS", "processor", "instructions")
"""Facts on which the last bits of results depend."""

_WAY_OUT: Final = "start all workers from the environment of this program"


@lru_cache(maxsize=1)
def facts() -> dict[str, str]:
    """What results depend on in this process, by name."""
    found = {name: _version(name) for name in ("dhsk", "numpy", "numba", "zarr")}
    libraries = {
        " ".join(str(one.get(key)) for key in ("internal_api", "version", "architecture"))
        for one in ThreadpoolController().info()
        if one["user_api"] == "blas"
    }
    features = llvm.get_host_cpu_features().items()
    return found | {
        "Python": platform.python_version(),
        "BLAS": ", ".join(sorted(libraries)),
        "processor": str(llvm.get_host_cpu_name()),
        "instructions": " ".join(sorted(name for name, there in features if there)),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # a source tree on the path
        return "without a version"


def breaking(own: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Differences with which a worker cannot be used, in words."""
    return [
        f"{name} {own[name]} (here {expected[name]})"
        for name, parts in _PARTS.items()
        if own[name].split(".")[:parts] != expected[name].split(".")[:parts]
    ]


async def _compared(
    expected: dict[str, str],
    usual: dict[str, str],
    worker: Worker,  # noqa: ARG001
) -> str | None:
    """Raise InputError if a worker has other software; what to say if its bits may differ."""
    own = facts()
    different = breaking(own, expected)
    if different:
        raise InputError(f"it has {', '.join(different)}: {_WAY_OUT}")
    other = [name for name in _BITS if own[name] != usual[name]]
    return _bits_may_differ(other) if other else None


def _bits_may_differ(names: list[str]) -> str:
    return (
        f"workers differ in {', '.join(names)}, so the last bits of results may depend on which "
        "worker computes what; for the same bits everywhere choose nodes of one kind"
    )


_usual: WeakKeyDictionary[Client, dict[str, str]] = WeakKeyDictionary()
"""What the first workers of a client have in common."""


@contextmanager
def checked_versions(client: Client) -> Iterator[None]:
    """Compare the workers once per client, and those that join while the context lasts.

    Those that join the client's own cluster are compared afterwards too: it takes no more calls. A
    cluster of somebody else may get workers without dhsk when this program does not compute.

    Raises InputError that names the workers with which results would be wrong; warns if they may
    differ in the last bits. Within another such context nothing is done.
    """
    if client.scheduler is None or client.scheduler.address.startswith("inproc"):
        yield  # threads of this process
        return

    def comparison() -> Plugin:
        if client not in _usual:
            _usual[client] = _compare(client)
        return Plugin(partial(_compared, facts(), _usual[client]))

    with registered(client, "versions", comparison, stays=client.cluster is not None):
        yield


def _compare(client: Client) -> dict[str, str]:
    """Compare the workers with this process and with each other; what most have in common."""
    expected, found = facts(), answers(client, facts)
    wrong = {}
    for address, own in found.items():
        if isinstance(own, BaseException):
            wrong[address] = f"cannot import dhsk ({own})"
        elif different := breaking(own, expected):
            wrong[address] = f"has {', '.join(different)}"
    if wrong:
        names = named(client)
        shown = "; ".join(f"worker {names(address)} {why}" for address, why in wrong.items())
        raise InputError(f"{shown}: {_WAY_OUT}")
    _warn_of_bits(client, expected, found)
    return next(iter(found.values()), expected)


def _warn_of_bits(client: Client, expected: dict[str, str], found: dict[str, Any]) -> None:
    """Warn once of facts that differ between workers, with an example of each side."""
    names = named(client)
    shown = []
    for name in _BITS:
        having: dict[str, list[str]] = defaultdict(list)
        for address, own in found.items():
            having[own[name]].append(address)
        if len(having) > 1:
            sides = [_side(name, value, having, names) for value in having]
            shown.append(f"{name} ({'; '.join(sides)})")
        elif having and name in ("numpy", "numba") and next(iter(having)) != expected[name]:
            shown.append(f"{name} ({next(iter(having))} on all, {expected[name]} here)")
    if shown:
        warn(_bits_may_differ(shown))


def _side(name: str, value: str, having: dict[str, list[str]], names: Callable[[str], str]) -> str:
    """One value of a fact, with the workers that have it."""
    workers, shown = having[value], value
    if name == "instructions":  # hundreds: those that the others lack
        others = set.intersection(*(set(one.split()) for one in having if one != value))
        extra = sorted(set(value.split()) - others)
        shown = f"{len(extra)} more, such as {', '.join(extra[:3])}," if extra else "no more"
    more = f" and {len(workers) - 1} others" if len(workers) > 1 else ""
    return f"{shown} on {names(workers[0])}{more}"


def named(client: Client) -> Callable[[str], str]:
    """Words for a worker, from its address."""
    known = ask(client, client.scheduler.identity, n_workers=-1)["workers"]
    return lambda address: f"{known.get(address, {}).get('name', '')} at {address}".strip()
