"""A cluster whose workers are jobs of a batch system: Slurm, PBS, SGE or LSF.

Scheduler and client are this process; `dask_jobqueue` writes and submits the jobs. Here are what it
does not do: addresses to listen on, credentials, and jobs submitted again when they are lost.
"""

import getpass
import logging
import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from distributed.security import Security
from distributed.utils import get_ip

from dhsk.errors import InputError, warn
from dhsk.execution.cluster_options import ENVIRONMENT, BatchJobs, BatchKind
from dhsk.execution.folder import TemporaryFolder
from dhsk.execution.job_keeper import MOST_FAILURES, JobKeeper, names_of
from dhsk.execution.local import OwningClient
from dhsk.execution.settings import short_logs
from dhsk.execution.upstream import WatchedJob, jobqueue, said_by

JOB_NAME: Final = "dhsk-worker"

_CLASSES: Final[dict[BatchKind, str]] = {
    "slurm": "SLURM", "pbs": "PBS", "sge": "SGE", "lsf": "LSF",
}  # fmt: skip
"""Names of classes in `dask_jobqueue`."""

_ENVIRONMENT: Final = {
    **ENVIRONMENT,
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": False,
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": 1,
}

_ROUTE: Final = (
    "import socket, sys; probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "probe.connect((sys.argv[1], 9)); print(probe.getsockname()[0])"
)
"""Program that prints the address from which a host is reached; UDP sends nothing for that."""

_CREDENTIALS: Final = {
    "ca.crt": "tls_ca_file",
    "tls.crt": "tls_worker_cert",
    "tls.key": "tls_worker_key",
}
"""Names of files, those of a Kubernetes secret for TLS, and what of `Security` is in them."""

_POLL_SECONDS: Final = 0.2
_LOG_LINES: Final = 8

_TAKEN: Final = frozenset({"CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"})
"""States of Slurm jobs that were ended from outside: others take their place."""


def start_batch_cluster(kind: BatchKind, options: BatchJobs) -> OwningClient:
    """Submit worker jobs and wait for the workers; both end with the client that is returned.

    Raises InputError if the batch system refuses a job, if a job fails before its workers answer,
    or if there is no worker in time. Jobs that Slurm cancels or preempts are submitted again.
    """
    classes = jobqueue()
    cluster_class = getattr(classes, f"{_CLASSES[kind]}Cluster")
    folder = TemporaryFolder(Path(options.shared_folder or ".").absolute())
    security = temporary_security(folder.path) if options.tls else None
    try:
        with short_logs():
            cluster = cluster_class(
                job_cls=type(f"Watched{kind}", (WatchedJob, cluster_class.job_cls), {}),
                security=security,
                protocol="tls://" if options.tls else "tcp://",
                silence_logs=logging.CRITICAL,
                **_arguments(kind, options),
            )
            keeper = JobKeeper(cluster, slurm_jobs if kind == "slurm" else None)
            client = OwningClient(cluster, folder=folder, before=keeper.stop)
    except BaseException as error:
        folder.remove()
        if isinstance(error, OSError | ValueError | RuntimeError):
            raise InputError(f"no cluster of {kind} jobs: {said_by(error)}") from error
        raise
    try:
        cluster.scale(jobs=options.jobs)
        keeper.start()
        _await_workers(client, kind, options, keeper)
    except BaseException:
        client.close()
        raise
    return client


def temporary_security(folder: Path) -> Security:
    """Make a key and a certificate, and write the workers' copies into a folder.

    The certificate is its own authority: whoever does not have the key is refused, in both
    directions. Scheduler and client hold it in memory; the workers' files have mode 0600.
    """
    security = Security.temporary()
    for name, attribute in _CREDENTIALS.items():
        file = folder / name
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(getattr(security, attribute))
        setattr(security, attribute, str(file))
    return security


def _arguments(kind: BatchKind, options: BatchJobs) -> dict[str, Any]:
    """Arguments of a cluster class of `dask_jobqueue`."""
    python = options.python or sys.executable
    local = options.local_folder
    host = None if options.interface else _own_address(kind)
    listen = ["--interface", shlex.quote(options.interface)] if options.interface else [
        "--host", f"$({shlex.quote(python)} -c {shlex.quote(_ROUTE)} {host})"
    ]  # fmt: skip
    billed = "account" if kind in ("slurm", "pbs") else "project"
    return {
        "cores": options.cores,
        "processes": options.cores,
        "memory": str(options.memory),
        "queue": options.queue,
        billed: options.account,
        "walltime": options.walltime,
        "job_extra_directives": list(options.directives),
        "job_script_prologue": [
            *(f"export {name}={value}" for name, value in _ENVIRONMENT.items()),
            *options.setup,
        ],
        "python": shlex.quote(python),
        "job_name": JOB_NAME,
        "log_directory": str(Path(options.log_folder or ".").absolute()),
        "local_directory": shlex.quote(local) if local else "${TMPDIR:-/tmp}",
        "worker_extra_args": [
            *listen,
            # Of options given twice the last one counts: this one leaves memory for the nanny.
            *("--memory-limit", f"{options.worker_bytes}B"),
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
        ],
        "scheduler_options": {
            **({"interface": options.interface} if options.interface else {"host": host}),
            "dashboard": options.dashboard is not None,
            "dashboard_address": options.dashboard or "127.0.0.1:0",
            "port": 0,
        },
    }


def _own_address(kind: BatchKind) -> str:
    """Address of this machine from which the nodes are reached; that of its default route else."""
    if kind != "slurm":
        return str(get_ip())
    shown = _asked("scontrol", "show", "node", "-o")
    found = re.search(r"\bNodeAddr=(\S+)", shown)
    if found is None:
        raise InputError(f"Slurm does not answer: scontrol show node says {shown.strip()!r}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((found[1], 9))  # sends nothing
        except OSError as error:
            raise InputError(
                f"no way from here to node {found[1]} ({error}): name the interface as interface"
            ) from error
        return str(probe.getsockname()[0])


def slurm_jobs() -> set[str] | None:
    """Numbers of the user's jobs that wait or run; None if Slurm does not answer."""
    options = ("--noheader", "--states=PD,CF,R,S", "--format=%i", "--user", getpass.getuser())
    done = subprocess.run(["squeue", *options], capture_output=True, text=True, check=False)
    return set(done.stdout.split()) if done.returncode == 0 else None


def _asked(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise InputError(
            f"no {command[0]} on PATH: run this where jobs are submitted, such as a login node"
        ) from error
    return done.stdout if done.returncode == 0 else done.stderr


def _was_taken(job_id: str) -> bool:
    """Whether a job ended for a reason that is not its own, as Slurm remembers for some minutes."""
    found = re.search(r"\bJobState=(\w+)", _asked("scontrol", "show", "job", "-o", job_id))
    return found is not None and found[1] in _TAKEN


def _await_workers(
    client: OwningClient, kind: BatchKind, options: BatchJobs, keeper: JobKeeper
) -> None:
    """Wait for all workers, or as long as `options` say."""
    deadline = monotonic() + options.wait_seconds
    cluster: Any = client.cluster
    look = 0.0
    while True:
        jobs = list(cluster.workers.values())
        gone: list[str] = []
        if kind == "slurm" and monotonic() > look + 2 and all(job.job_id for job in jobs):
            look = monotonic()
            queue = slurm_jobs()
            gone = [job.job_id for job in jobs if queue is not None and job.job_id not in queue]
        present = cluster.observed
        if len(present) >= options.workers:
            return
        for job in jobs:
            if job.refusal is not None:
                raise InputError(f"{kind} refuses a worker job: {job.refusal}")
            if job.job_id in gone and not present & names_of(cluster, job.name):
                if _was_taken(job.job_id):
                    keeper.look_soon()
                    continue
                raise InputError(
                    f"worker job {job.job_id} ended before its workers answered: "
                    f"{_end_of_log(options, job.job_id)}"
                )
        if monotonic() >= deadline or not cluster.worker_spec:
            break
        sleep(_POLL_SECONDS)
    if not cluster.worker_spec:
        raise InputError(
            f"the worker jobs were cancelled {MOST_FAILURES + 1} times in a row before they "
            "computed anything: see the site's limits (squeue, scontrol show job)"
        )
    if not present:
        raise InputError(
            f"no worker job of {len(jobs)} has started within {options.wait}: ask for less, or "
            "for a longer wait"
        )
    warn(
        f"{len(present)} of {options.workers} workers have started within {options.wait}: the "
        "others join when their jobs start, and the tiles are planned for these",
        UserWarning,
    )


def _end_of_log(options: BatchJobs, job_id: str) -> str:
    """Last lines of the log of a job."""
    folder = Path(options.log_folder or ".").absolute()
    for file in sorted(folder.glob(f"{JOB_NAME}-{job_id}.*")):
        lines = file.read_text(errors="replace").splitlines()[-_LOG_LINES:]
        if lines:
            return f"{file} ends with\n" + "\n".join(lines)
    return f"it left no log in {folder}"
