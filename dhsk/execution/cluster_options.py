"""What a cluster of batch jobs or pods is made of: options, or one small TOML file."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, get_args

from dask.utils import parse_timedelta

from dhsk.errors import InputError
from dhsk.execution.heap import WORKER_HEAP
from dhsk.execution.resources import WORKER_BYTES
from dhsk.kernels.base import whole_parameter
from dhsk.units import format_bytes, parse_bytes

BatchKind: TypeAlias = Literal["slurm", "pbs", "sge", "lsf"]
"""Batch systems to which `dask_jobqueue` submits workers."""

BATCH_KINDS: Final = get_args(BatchKind)
KINDS: Final = ("local", *BATCH_KINDS, "kubernetes")

ENVIRONMENT: Final = {
    # One worker per core, so one thread per worker; more would also change the last bits.
    "OMP_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    **WORKER_HEAP,
}
"""Variables of workers."""

NANNY_BYTES: Final = 200 << 20
"""Memory of a job beside its workers: the process that starts and watches them. 120 MiB were
measured."""

_SMALLEST_WORKER: Final = 2 * WORKER_BYTES
"""Memory limit below which a worker has no room for a tile beside its libraries."""


@dataclass(frozen=True)
class _Workers:
    """Options of clusters of jobs, and of pods."""

    memory: str | int = "4GB"
    """Memory of a job, with `NANNY_BYTES` beside its workers, or of the pod of a worker."""

    n_workers: int | None = None
    """Worker processes in all jobs together, a multiple of `cores`; None for one job, or pod."""

    wait: str | int = "10m"
    """Time to wait for the workers. After it a computation starts with those of the jobs that are
    there, or ends if there are none."""

    SYNONYMS: ClassVar[dict[str, str]] = {}
    """Other words for options."""

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Options by name; InputError for an unknown one, or one of a wrong type."""
        known = {field.name: field.default for field in fields(cls)}
        values = {}
        for word, value in given.items():
            name = cls.SYNONYMS.get(word, word)
            if name != word and name in given:
                raise InputError(f"{name} and {word} are the same option: give one")
            if name not in known:
                words = ", ".join(sorted((*known, *cls.SYNONYMS)))
                raise InputError(f"no option {word!r} of such a cluster: there are {words}")
            if value is not None:
                values[name] = _typed(name, known[name], value)
        return cls(**values)

    def __post_init__(self) -> None:
        if self.n_workers is not None:
            whole_parameter("n_workers", self.n_workers, 1)
        parse_bytes(self.memory)
        _seconds(self.wait)

    @property
    def wait_seconds(self) -> float:
        """Longest time to wait for workers."""
        return _seconds(self.wait)


def _seconds(wait: str | int) -> float:
    try:
        return float(parse_timedelta(wait))
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"wait must be a time such as 10m, got {wait!r}") from error


def _typed(name: str, default: object, value: Any) -> Any:
    """A value of the type of the default of an option, where None is that of a string."""
    if isinstance(default, tuple):
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise InputError(f"{name} must be a list of strings, got {value!r}")
        return tuple(value)
    if isinstance(default, bool) != isinstance(value, bool):
        raise InputError(f"{name} must be {'true or false' if default else 'no truth value'}")
    if default is None and name != "n_workers" and not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {value!r}")
    return value


@dataclass(frozen=True)
class BatchJobs(_Workers):
    """Workers as jobs of a batch system; one worker process per core, each with one thread."""

    cores: int = 1
    """Cores of a job, and so its worker processes."""

    walltime: str | None = None
    """Time limit of a job as the batch system writes it, such as 02:00:00."""

    queue: str | None = None
    """Queue, or partition, of the jobs."""

    account: str | None = None
    """Account, or project, that pays for the jobs."""

    interface: str | None = None
    """Network interface on which scheduler and workers listen, such as ib0; None for the address
    by which each reaches the other."""

    directives: tuple[str, ...] = ()
    """Further directives of the job script, such as "--constraint=icelake"."""

    setup: tuple[str, ...] = ()
    """Commands that a job runs before its workers start, such as "module load python"."""

    python: str | None = None
    """Python interpreter of the workers; None for this one."""

    shared_folder: str | None = None
    """Folder that all nodes see, for the credentials; None for the current one."""

    log_folder: str | None = None
    """Folder for the logs of the jobs, which all nodes see; None for the current one."""

    local_folder: str | None = None
    """Folder of a node for what workers spill; None for TMPDIR, or /tmp."""

    tls: bool = True
    """Whether connections are encrypted and authenticated, with credentials made for this run."""

    dashboard: str | None = None
    """Address of Dask's dashboard, such as "127.0.0.1:8787"; None for no dashboard."""

    SYNONYMS: ClassVar[dict[str, str]] = {"partition": "queue"}

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_parameter("cores", self.cores, 1)
        if (self.n_workers or 0) % self.cores:
            raise InputError(
                f"n_workers must be a multiple of the {self.cores} cores of a job, as each has "
                f"one worker per core, but it is {self.n_workers}"
            )
        if self.worker_bytes < _SMALLEST_WORKER:
            raise InputError(
                f"memory is {self.memory} for {self.cores} workers: each needs at least "
                f"{format_bytes(_SMALLEST_WORKER)}, and {format_bytes(NANNY_BYTES)} are for the "
                "process that watches them; ask for more memory, or for fewer cores"
            )

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return self.workers // self.cores

    @property
    def workers(self) -> int:
        """Number of worker processes."""
        return self.n_workers or self.cores

    @property
    def worker_bytes(self) -> int:
        """Memory limit of a worker."""
        return (parse_bytes(self.memory) - NANNY_BYTES) // self.cores


@dataclass(frozen=True)
class Pods(_Workers):
    """Workers as pods of the Dask operator; each pod is one worker with one thread.

    There is no TLS here: `dask_kubernetes.operator.KubeCluster` itself speaks to the scheduler in
    plain TCP. For TLS see deploy/kubernetes.
    """

    image: str | None = None
    """Image with dhsk, such as that of deploy/docker."""

    name: str = "dhsk"
    """Name of the DaskCluster."""

    namespace: str | None = None
    """Namespace; None for that of the current context."""

    volume: str | None = None
    """Claim of a persistent volume, mounted at /data in all pods; None for none."""

    environment: tuple[str, ...] = ()
    """Variables of the workers, each as NAME=VALUE."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image is None:
            raise InputError("kubernetes needs an image with dhsk, such as that of deploy/docker")
        for word in self.environment:
            if "=" not in word:
                raise InputError(f"environment has NAME=VALUE words, got {word!r}")

    @property
    def workers(self) -> int:
        """Number of worker pods."""
        return self.n_workers or 1


def read_cluster_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Kind and options of a cluster in a TOML file.

    Raises InputError if it cannot be read, or its ``kind`` is not one of `KINDS`.
    """
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError as error:
        raise InputError(f"no cluster file {path}: check the path") from error
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} is not a TOML file that can be read: {error}") from error
    kind = found.pop("kind", None)
    if kind not in KINDS:
        raise InputError(f"{path}: kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return kind, found
