"""A cluster whose workers are pods of the Dask operator for Kubernetes."""

from importlib import import_module
from typing import Any, Final

from dhsk.errors import InputError, optional_module
from dhsk.execution.cluster_options import ENVIRONMENT, Pods
from dhsk.execution.local import OwningClient, await_workers
from dhsk.execution.settings import short_logs
from dhsk.units import parse_bytes

DATA_FOLDER: Final = "/data"
"""Where the persistent volume is mounted in every pod."""

SCRATCH_FOLDER: Final = "/tmp"
"""The one folder of a pod that can be written beside the volume."""

USER: Final = 10001
"""User and group in the image of deploy/docker."""

_ENVIRONMENT: Final = {
    **{name: str(value) for name, value in ENVIRONMENT.items()},
    # The user's folders: compiled code, and the cache of measured rates.
    "HOME": SCRATCH_FOLDER,
    "NUMBA_CACHE_DIR": f"{SCRATCH_FOLDER}/numba",
}

_SCHEDULER_BYTES: Final = 1 << 30


def start_pods(options: Pods) -> OwningClient:
    """Ask the operator for pods and wait for the workers; they end with the client."""
    needed = "worker pods need dask-kubernetes"
    operator = optional_module("dask_kubernetes.operator", "kubernetes", needed)
    try:
        with short_logs():
            cluster = operator.KubeCluster(
                custom_cluster_spec=pods_spec(options),
                namespace=options.namespace,
                create_mode=operator.kubecluster.CreateMode.CREATE_ONLY,
                resource_timeout=round(options.wait_seconds),
                quiet=True,
            )
    except Exception as error:  # of several libraries: HTTP, files, asyncio
        raise InputError(
            f"no cluster of pods ({type(error).__name__}: {error}): see that `kubectl get "
            "daskclusters` works here, and that the Dask operator is installed"
        ) from error
    client = OwningClient(cluster)
    await_workers(
        client,
        options.workers,
        options.wait_seconds,
        lambda found: (
            f"{found} of {options.workers} worker pods are there after {options.wait}: see "
            "`kubectl get pods` and `kubectl describe pod`"
        ),
    )
    return client


def pods_spec(options: Pods) -> dict[str, Any]:
    """The DaskCluster that is asked for."""
    make = import_module("dask_kubernetes.operator").make_cluster_spec
    given = dict(word.split("=", 1) for word in options.environment)
    limit = parse_bytes(options.memory)
    spec: dict[str, Any] = make(
        options.name, image=options.image, n_workers=options.workers, env=_ENVIRONMENT | given
    )
    worker, scheduler = (spec["spec"][part]["spec"] for part in ("worker", "scheduler"))
    _restrict(worker, options, limit)
    _restrict(scheduler, options, _SCHEDULER_BYTES)
    worker["containers"][0]["args"] = [
        *("dask", "worker", "--name", "$(DASK_WORKER_NAME)", "--nthreads", "1"),
        *("--memory-limit", f"{limit}B", "--local-directory", SCRATCH_FOLDER, "--no-dashboard"),
        *("--death-timeout", "120"),
    ]
    worker["containers"][0].pop("ports")  # those of a dashboard
    return spec


def _restrict(pod: dict[str, Any], options: Pods, memory: int) -> None:
    """Give a pod its memory and folders, and no rights beyond them."""
    pod["securityContext"] = {
        "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    pod["automountServiceAccountToken"] = False
    pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    container = pod["containers"][0]
    container["volumeMounts"] = [{"name": "scratch", "mountPath": SCRATCH_FOLDER}]
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    amounts = {"cpu": "1", "memory": str(memory)}
    container["resources"] = {"requests": amounts, "limits": amounts}
    if options.volume is not None:
        claim = {"claimName": options.volume}
        pod["volumes"].append({"name": "data", "persistentVolumeClaim": claim})
        container["volumeMounts"].append({"name": "data", "mountPath": DATA_FOLDER})
