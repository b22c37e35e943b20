"""Processors and memory that this process may use, in a container or a batch job too."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Final

import psutil
from dask.system import cpu_count

from dhsk.execution.resources import LOADED_BYTES
from dhsk.systems import CONTROL_GROUPS

_MEBIBYTE: Final = 2**20
"""Slurm's megabyte."""

USABLE_MEMORY: Final = 0.5
"""Share of the free memory that matrices may take if no limit is given."""


def core_count() -> int:
    """Processors that affinity, control group and Slurm allow this process on this machine."""
    granted = 0
    with suppress(KeyError, ValueError):
        granted = int(os.environ["SLURM_CPUS_ON_NODE"])
    return min(int(cpu_count()), granted) if granted > 0 else int(cpu_count())


def memory_limit(
    environment: Mapping[str, str] = os.environ,
    groups: Path = CONTROL_GROUPS[0],
    mount: Path = CONTROL_GROUPS[1],
) -> int:
    """Bytes that this process and its children may hold.

    The minimum of the machine's memory, the limits of the process's control group and of all
    groups around it (versions 1 and 2), and what Slurm has granted on this node.
    """
    limits = [*_of_groups(groups, mount), *_of_slurm(environment)]
    return min([int(psutil.virtual_memory().total), *(limit for limit in limits if limit > 0)])


def _of_groups(groups: Path, mount: Path) -> Iterator[int]:
    """Limits of a process's control groups; 2^63 is version 1's "no limit"."""
    try:
        lines = groups.read_text().splitlines()
    except OSError:  # not Linux, or /proc is hidden
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            files = [mount, mount / "unified"], ["memory.max", "memory.high"]
        elif "memory" in controllers.split(","):
            files = [mount / "memory"], ["memory.limit_in_bytes"]
        else:
            continue
        # In a container the path may be the host's, and the root of the mount this group.
        own = PurePosixPath(path.lstrip("/"))
        for folder in (own, *own.parents):
            yield from _numbers(root / folder / name for root, name in product(*files))


def _numbers(files: Iterator[Path]) -> Iterator[int]:
    """Numbers that files hold; "max", which means no limit, is skipped."""
    for file in files:
        with suppress(OSError, ValueError):
            yield int(file.read_text())


def _of_slurm(environment: Mapping[str, str]) -> Iterator[int]:
    """Memory of a Slurm job on this node; 0 stands for all of the node's."""
    with suppress(KeyError, ValueError):
        yield _MEBIBYTE * int(environment["SLURM_MEM_PER_NODE"])
    with suppress(KeyError, ValueError):
        each = int(environment["SLURM_MEM_PER_CPU"])
        yield _MEBIBYTE * each * int(environment["SLURM_CPUS_ON_NODE"])


def held_bytes() -> int:
    """Resident bytes of this process, at least `LOADED_BYTES`."""
    return max(LOADED_BYTES, int(psutil.Process().memory_info().rss))


def own_room(memory: int | None) -> int:
    """Bytes that this process may still allocate of `memory`; None for half of the free memory."""
    held = held_bytes()
    if memory is None:
        free = min(psutil.virtual_memory().available, memory_limit() - held)
        return max(0, int(USABLE_MEMORY * free))
    return max(0, memory - held)
