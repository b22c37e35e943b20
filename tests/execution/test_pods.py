"""What the Dask operator is asked for. No API server runs here: the specification is checked."""

from pathlib import Path
from typing import Any

import pytest

import dhsk
from dhsk.execution.cluster_options import Pods
from dhsk.execution.pods import pods_spec

pytest.importorskip("dask_kubernetes", reason="worker pods need dask-kubernetes")


@pytest.fixture
def spec() -> dict[str, Any]:
    """Specification of three workers on a volume."""
    given = {
        "image": "dhsk:1", "n_workers": 3, "memory": "2GiB", "volume": "samples",
        "environment": ["AWS_REGION=eu-1"],
    }  # fmt: skip
    return pods_spec(Pods.of(given))


def test_workers_have_one_thread_and_their_memory(spec: dict[str, Any]) -> None:
    """Dask's limit is that of the pod."""
    worker = spec["spec"]["worker"]
    (container,) = worker["spec"]["containers"]
    assert worker["replicas"] == 3
    assert container["resources"]["limits"] == {"cpu": "1", "memory": str(2 << 30)}
    arguments = " ".join(container["args"])
    assert "--nthreads 1 " in arguments
    assert f"--memory-limit {2 << 30}B" in arguments
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables["OPENBLAS_NUM_THREADS"] == "1"
    assert variables["AWS_REGION"] == "eu-1"


@pytest.mark.parametrize("part", ["worker", "scheduler"])
def test_pods_have_no_rights(spec: dict[str, Any], part: str) -> None:
    """Not root, nothing to write but scratch and data, no token of the API server."""
    pod = spec["spec"][part]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/tmp", "/data"}


def test_no_api_server_is_named(monkeypatch: Any, tmp_path: Path) -> None:
    """Without a configuration of kubectl the way out is said."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(dhsk.InputError, match=r"no cluster of pods .*kubectl get daskclusters"):
        dhsk.connect("kubernetes", image="dhsk:1", wait="5s")


def test_missing_package_is_named(monkeypatch: Any) -> None:
    """The extra to install is said."""
    monkeypatch.setitem(__import__("sys").modules, "dask_kubernetes.operator", None)
    with pytest.raises(dhsk.InputError, match=r'pip install "dhsk\[kubernetes\]"'):
        dhsk.connect("kubernetes", image="dhsk:1")
