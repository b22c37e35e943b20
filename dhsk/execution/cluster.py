"""Connects to a Dask cluster: here, of jobs or pods, by address, by scheduler or cluster file."""

import logging
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

import dask
from distributed import Client

from dhsk.errors import ClusterError, InputError, warn
from dhsk.execution.batch import start_batch_cluster
from dhsk.execution.cluster_options import (
    BATCH_KINDS,
    KINDS,
    BatchJobs,
    BatchKind,
    Pods,
    read_cluster_file,
)
from dhsk.execution.heap import WORKER_HEAP
from dhsk.execution.limits import core_count, memory_limit
from dhsk.execution.local import LocalClient, await_workers, thread_client
from dhsk.execution.pods import start_pods
from dhsk.execution.processes import (
    UNGUARDED,
    imports_main,
    name_semaphores,
    obstacle,
    refusal,
    refuse_unguarded,
    root_cause,
)
from dhsk.execution.settings import SharedSetting, short_logs
from dhsk.execution.upstream import collect_failed_client, signals_blocked
from dhsk.kernels.base import whole_parameter

PROTOCOLS = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
"""Protocols of distributed."""

_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in WORKER_HEAP.items()},
}
"""Measured: profiling two idle workers a hundred times a second took 4 % of two cores."""

_quiet = SharedSetting(lambda: dask.config.set(_QUIET))

WAIT_SECONDS = 60
"""Time to wait for a scheduler, and for its workers."""


def connect(cluster: str = "local", **options: Any) -> Client:
    """Connect to a Dask cluster, or start one: on this machine, of batch jobs, or of pods.

    Parameters
    ----------
    cluster
        "local" starts one worker process per core, with a scheduler and a dashboard that listen on
        localhost only, and stops them when the client is closed. They talk over TLS with a
        certificate made for them alone, so that other users of the machine are refused;
        ``protocol="tcp"`` lets everybody on it in. A script needs ``if __name__ == "__main__"``
        for that, as the processes import it. Where no process can be started (a program from
        standard input, a daemonic process), threads of this one take their place, with a
        warning. "slurm", "pbs", "sge" and "lsf" submit jobs of workers, "kubernetes"
        asks the Dask operator for pods; they end with the client too, and lost ones are replaced.
        The path of a file that ends in .toml stands for its ``kind``, one of these words, and its
        options. "tcp://..." or "tls://..." is the address of a scheduler; anything else is the path
        of a scheduler file; if it ends in .json this call waits a minute for it to appear.
    **options
        ``n_workers``: how many to start, or to wait for, before this call returns (default: one
        per core, or one). For batch systems the rest is ``cores``, ``memory``, ``walltime``,
        ``queue`` or ``partition``, ``account``, ``interface``, ``directives``, ``setup``,
        ``python``, ``shared_folder``, ``log_folder``, ``local_folder``, ``tls``, ``dashboard``
        and ``wait``, see `BatchJobs`; for pods see `Pods`. Otherwise it is passed
        to `distributed.Client`, for "local" also to `distributed.LocalCluster`. Options given here
        replace those of a file.

    Returns
    -------
    distributed.Client
        Connected, with at least one worker; use it as a context manager or close it.

    Raises
    ------
    InputError
        Nothing answers there, or the script that starts processes has no guard; an option is
        unknown, the batch system refuses a job, or a job ends before its workers answer.
    ClusterError
        The workers of a local cluster do not start.

    Examples
    --------
    >>> import numpy as np, dhsk
    >>> with dhsk.connect("local", n_workers=2) as client:
    ...     G = dhsk.compute_gram(np.eye(4), "cosine", store="eye.gram", client=client)
    >>> G.shape
    (4, 4)
    """
    if not isinstance(cluster, str):
        raise InputError(
            f"cluster must be one of {', '.join(KINDS)}, an address, or the path of a scheduler or "
            f"cluster file, got {cluster!r}: give the number of workers as n_workers"
        )
    if options.get("n_workers", 0) is None:
        del options["n_workers"]
    if cluster.endswith(".toml"):
        cluster, described = read_cluster_file(Path(cluster))
        options = described | options
    if options.get("n_workers") is not None:
        whole_parameter("n_workers", options["n_workers"], 1)
    if cluster == "local":
        return _local(**options)
    if cluster == "kubernetes":
        return start_pods(Pods.of(options))
    if cluster in BATCH_KINDS:
        return start_batch_cluster(cast("BatchKind", cluster), BatchJobs.of(options))
    if "://" in cluster:
        if cluster.split("://")[0] not in PROTOCOLS:
            raise InputError(f"no way to reach {cluster}: give tcp://HOST:PORT or tls://HOST:PORT")
        return _existing(cluster, address=cluster, **options)
    return _existing(cluster, scheduler_file=_await_file(Path(cluster)), **options)


def _local(**options: Any) -> Client:
    refuse_unguarded()
    defaults: dict[str, Any] = {
        "n_workers": core_count(),
        "threads_per_worker": 1,  # tasks hold the interpreter part of the time
        "dashboard_address": "127.0.0.1:0",
        # Errors of tasks are raised with their results. Beside them workers log that the scheduler
        # has ended, also if it was closed on request.
        "silence_logs": logging.CRITICAL,
    }
    chosen = defaults | options
    if not chosen.get("processes", True):
        return LocalClient(**chosen)
    chosen.setdefault("host", "127.0.0.1")
    if "protocol" not in chosen:
        chosen.setdefault("security", True)  # a certificate of this cluster alone, in memory
    chosen.setdefault("memory_limit", memory_limit() // chosen["n_workers"])
    name_semaphores()
    hindrance = obstacle()
    if hindrance is not None:
        return _threads_instead(hindrance, chosen)
    try:
        with signals_blocked(), _quiet():
            return LocalClient(**chosen)
    except (OSError, RuntimeError) as error:
        refused = refusal(error)
        if refused is not None:
            return _threads_instead(f"no process can be started ({refused})", chosen)
        if isinstance(root_cause(error), RuntimeError) and imports_main():
            raise InputError(UNGUARDED) from None
        cause = root_cause(error)
        raise ClusterError(
            f"the workers of a local cluster did not start ({type(cause).__name__}: {cause}): try "
            "again, or compute on threads, with processes=False of dhsk.connect"
        ) from error


def _threads_instead(hindrance: str, options: dict[str, Any]) -> Client:
    """Cluster of threads in place of worker processes, with as many tasks at a time."""
    threads = options["n_workers"] * options["threads_per_worker"]
    warn(f"{hindrance}: computing on {threads} threads of this process instead", UserWarning)
    return thread_client(threads)


def _await_file(path: Path) -> str:
    """Wait for a scheduler file that a batch job may still write; not for a mistyped word."""
    plausible = path.suffix == ".json" and path.parent.is_dir()
    deadline = monotonic() + (WAIT_SECONDS if plausible else 0)
    while not path.exists():
        if monotonic() >= deadline:
            raise InputError(
                f"no cluster {str(path)!r}: give {', '.join(KINDS)}, tcp://HOST:PORT, a cluster "
                "file (.toml), or the scheduler file of a running dask scheduler"
            )
        sleep(0.2)
    return str(path)


def _existing(name: str, n_workers: int = 1, **options: Any) -> Client:
    try:
        with short_logs():
            client = Client(timeout=WAIT_SECONDS, **options)
    except (OSError, ValueError) as error:  # no answer, or not an address or scheduler file
        reason = str(error)
    else:
        await_workers(
            client,
            n_workers,
            WAIT_SECONDS,
            lambda found: (
                f"the scheduler at {name} has {found} of {n_workers} workers after "
                f"{WAIT_SECONDS} s: start some, or ask for fewer"
            ),
        )
        return client
    collect_failed_client()
    raise InputError(f"no Dask scheduler answers at {name}: {reason}")
