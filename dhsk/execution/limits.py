"""What of this machine the process may use: a container or a batch job may have less than all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Final

import psutil
from dask.system import cpu_count
from distributed.system import memory_limit as limit_of_machine

from dhsk.execution.resources import LOADED_BYTES

_MEBIBYTE: Final = 2**20
"""Slurm's megabyte."""

USABLE_MEMORY: Final = 0.5
"""Part of the free memory that matrices may take where no limit is given."""


def core_count() -> int:
    """Processors that this process may use: of the machine, its affinity, its control group."""
    return int(cpu_count())


def memory_limit(
    environment: Mapping[str, str] = os.environ,
    groups: Path = Path("/proc/self/cgroup"),
    mount: Path = Path("/sys/fs/cgroup"),
) -> int:
    """Bytes that this process and those it starts may hold.

    That is the least of the machine's memory, the limits of this process's control group and of all
    groups around it (versions 1 and 2), and what Slurm has granted on this node.

    Parameters
    ----------
    environment
        Variables of the process.
    groups
        Says which control groups the process is in.
    mount
        Where the files of control groups are.

    Returns
    -------
    int
        Bytes.
    """
    limits = [*_of_groups(groups, mount), *_of_slurm(environment)]
    return min([int(limit_of_machine()), *(limit for limit in limits if limit > 0)])


def _of_groups(groups: Path, mount: Path) -> Iterator[int]:
    """Limits of the control groups around a process; version 1 without a limit says 2^63."""
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
    """Contents of those files that hold a number; "max" is none."""
    for file in files:
        with suppress(OSError, ValueError):
            yield int(file.read_text())


def _of_slurm(environment: Mapping[str, str]) -> Iterator[int]:
    """What a Slurm job was granted on this node; 0 is all there is."""
    with suppress(KeyError, ValueError):
        yield _MEBIBYTE * int(environment["SLURM_MEM_PER_NODE"])
    with suppress(KeyError, ValueError):
        each = int(environment["SLURM_MEM_PER_CPU"])
        yield _MEBIBYTE * each * int(environment["SLURM_CPUS_ON_NODE"])


def share_memory(memory: int, largest: int, threads: int) -> tuple[int, int]:
    """Divide memory among tasks: fewer at a time if then each has its whole matrix.

    Parameters
    ----------
    memory
        Bytes for all matrices together.
    largest
        Bytes of the largest matrix.
    threads
        Tasks that could run at a time.

    Returns
    -------
    int
        Tasks at a time.
    int
        Bytes for each.
    """
    at_once = max(1, min(threads, memory // max(1, largest)))
    return at_once, memory // at_once


def held_bytes() -> int:
    """Bytes that this process holds, `LOADED_BYTES` at least."""
    return max(LOADED_BYTES, int(psutil.Process().memory_info().rss))


def own_room(memory: int | None) -> int:
    """Bytes that this process may still take.

    Parameters
    ----------
    memory
        Most bytes that it may hold; None for half of what is free besides what it holds now.
    """
    held = held_bytes()
    if memory is None:
        free = min(psutil.virtual_memory().available, memory_limit() - held)
        return max(0, int(USABLE_MEMORY * free))
    return max(0, memory - held)
