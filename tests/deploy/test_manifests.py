"""deploy/kubernetes: manifests against schemas, and their commands as processes of this machine."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from distributed import Client
from distributed.security import Security

import dhsk
from dhsk.execution.cluster_options import NANNY_BYTES
from dhsk.execution.pods import USER
from dhsk.units import parse_bytes

yaml = pytest.importorskip("yaml", reason="manifests are YAML")

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
NAMES = (
    "cluster.yaml",
    "job.yaml",
    "network-policy.yaml",
    "storage.yaml",
    "disruption-budget.yaml",
)


def documents(name: str) -> list[dict[str, Any]]:
    """The manifests in a file."""
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text()) if one]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods of all manifests, with the names of their containers."""
    (cluster,), (job,) = documents("cluster.yaml"), documents("job.yaml")
    for part in ("scheduler", "worker"):
        yield part, cluster["spec"][part]["spec"]
    yield "dhsk", job["spec"]["template"]["spec"]


PODS = dict(pods())


@pytest.mark.parametrize("name", PODS)
def test_pods_have_no_rights(name: str) -> None:
    """Not root, a read-only root, no capabilities, no token, and keys for their group only."""
    pod, (container,) = PODS[name], PODS[name]["containers"]
    assert container["name"] == name
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {USER}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (secret,) = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert secret["defaultMode"] == 0o440


@pytest.mark.parametrize("name", PODS)
def test_pods_get_what_they_ask_for(name: str) -> None:
    """Requests are limits, so that no pod is evicted for another's sake; its disk has one too."""
    (container,) = PODS[name]["containers"]
    resources = container["resources"]
    assert resources["requests"] == resources["limits"]
    (scratch,) = [one["emptyDir"] for one in PODS[name]["volumes"] if "emptyDir" in one]
    assert scratch["sizeLimit"] == resources["limits"]["ephemeral-storage"]


def test_memory_limit_of_a_worker() -> None:
    """That of its pod without the process that watches it, and one thread for its one core."""
    (container,) = PODS["worker"]["containers"]
    words = dict(word.split("=", 1) for word in container["args"] if "=" in word)
    limit = parse_bytes(container["resources"]["limits"]["memory"] + "B")
    assert parse_bytes(words["--memory-limit"]) == limit - NANNY_BYTES
    assert (words["--nthreads"], container["resources"]["limits"]["cpu"]) == ("1", "1")


@pytest.mark.parametrize("name", ["scheduler", "worker"])
def test_probes_ask_a_port_of_the_pod(name: str) -> None:
    """The port of each probe is one that the container has and its command listens on."""
    (container,) = PODS[name]["containers"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    for probe in ("readinessProbe", "livenessProbe"):
        port = ports[container[probe]["httpGet"]["port"]]
        assert f"--dashboard-address=$(POD_IP):{port}" in container["args"]


def test_bad_input_is_final_and_an_eviction_is_no_failure() -> None:
    """A Job ends at exit codes that say so, and goes on however often nodes are drained."""
    (job,) = documents("job.yaml")
    final, ignored = job["spec"]["podFailurePolicy"]["rules"]
    assert (final["action"], final["onExitCodes"]["values"]) == ("FailJob", [2, 3])
    assert (ignored["action"], ignored["onPodConditions"][0]["type"]) == (
        "Ignore",
        "DisruptionTarget",
    )
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy asks so


def test_names_agree() -> None:
    """Claims, images, labels and the scheduler's address are the same in all files."""
    (cluster,), (job,), (policy, of_job), (claim,), budgets = map(documents, NAMES)
    text = "".join((FOLDER / name).read_text() for name in NAMES)
    assert set(re.findall(r"claimName: (\S+)}", text)) == {claim["metadata"]["name"]}
    assert len(set(re.findall(r"image: (\S+)", text))) == 1
    name = cluster["metadata"]["name"]
    assert set(re.findall(r"tls://\S+", text)) == {f"tls://{name}-scheduler:8786"}
    sources = policy["spec"]["ingress"][0]["from"]
    allowed = [source["podSelector"]["matchLabels"] for source in sources]
    assert {"dask.org/cluster-name": name} in allowed
    assert job["spec"]["template"]["metadata"]["labels"] in allowed
    assert of_job["spec"]["podSelector"]["matchLabels"] in allowed
    # Both reach the cluster, names, and an object store.
    assert policy["spec"]["egress"][1:] == of_job["spec"]["egress"][1:]
    assert {"dask.org/cluster-name": name} in [
        one["podSelector"]["matchLabels"] for one in of_job["spec"]["egress"][0]["to"]
    ]
    for budget, part in zip(budgets, ("scheduler", "worker"), strict=True):
        selected = {"dask.org/cluster-name": name, "dask.org/component": part}
        assert budget["spec"]["selector"]["matchLabels"] == selected
    readme = (FOLDER / "README.md").read_text()
    assert all(name in readme for name in NAMES)


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """Key and certificate by the script of the recipe."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    script = FOLDER / "make-credentials.sh"
    subprocess.run([str(script), str(tmp_path / "tls")], check=True)
    return tmp_path / "tls"


def test_credentials_are_for_their_owner(credentials: Path) -> None:
    """Files of mode 0600 in a folder of mode 0700; a second run does not replace them."""
    assert credentials.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in credentials.iterdir()} == {0o600}
    script = FOLDER / "make-credentials.sh"
    again = subprocess.run([str(script), str(credentials)], capture_output=True, check=False)
    assert again.returncode != 0


@contextmanager
def started(name: str, here: dict[str, str], cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command of a container with its variables, as a process; words of `here` are replaced."""
    (container,) = PODS[name]["containers"]

    def replaced(word: str) -> str:
        for before, after in here.items():
            word = word.replace(before, after)
        return word

    variables = {one["name"]: replaced(one["value"]) for one in container["env"] if "value" in one}
    program, *rest = (replaced(word) for word in container["args"])
    words = [sys.executable, "-m", program, *rest]
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd)} | variables
    with (cwd / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(words, env=environment, cwd=cwd, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.mark.slow
def test_commands_run(tmp_path: Path, credentials: Path) -> None:
    """Scheduler, worker and Job as the manifests say, but for addresses and folders."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        ports = [one.getsockname()[1], b.getsockname()[1]]
    here = {
        "$(POD_IP)": "127.0.0.1", "$(DASK_WORKER_NAME)": "w", "dhsk-scheduler:": "127.0.0.1:",
        "8786": str(ports[0]), "8787": str(ports[1]), "8788": "0", "/tls/": f"{credentials}/",
        "/data": str(tmp_path), "--workers=4": "--workers=1",
    }  # fmt: skip
    np.save(tmp_path / "counts.npy", np.random.default_rng(0).poisson(2.0, (60, 9)) + 1.0)
    with ExitStack() as stack:
        stack.enter_context(started("scheduler", here, tmp_path))
        stack.enter_context(started("worker", here, tmp_path))
        job = stack.enter_context(started("dhsk", here, tmp_path))
        code = job.wait(90)
        assert code == 0, (tmp_path / "dhsk.log").read_text()
        address = f"tls://127.0.0.1:{ports[0]}"
        security = Security(
            tls_ca_file=str(credentials / "ca.crt"),
            tls_client_cert=str(credentials / "tls.crt"),
            tls_client_key=str(credentials / "tls.key"),
        )
        with Client(address, security=security, set_as_default=False) as client:
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
        assert [(one["name"], one["nthreads"]) for one in workers] == [("w", 1)]
        with pytest.raises((OSError, TypeError)):
            Client(address.replace("tls", "tcp"), set_as_default=False, timeout=2)
        assert healthy(ports[1])
    local = dhsk.compute_gram(tmp_path / "counts.npy", "heat")
    assert np.array_equal(dhsk.open_gram(tmp_path / "counts.gram")[:, :], local[:, :])


def healthy(port: int) -> bool:
    """Whether the scheduler answers a probe."""
    deadline = monotonic() + 10
    while monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            if b" 200 " in connection.recv(100):
                return True
        sleep(0.2)
    return False
