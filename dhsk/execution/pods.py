"""A cluster whose workers are pods of the Dask operator for Kubernetes."""

from dhsk.errors import InputError
from dhsk.execution.cluster_options import KubernetesOptions
from dhsk.execution.local import OwningClient


def start_pods(options: KubernetesOptions) -> OwningClient:
    """Start."""
    raise InputError(f"not yet {options}")
