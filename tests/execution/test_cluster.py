"""Ways to a cluster: one made here, an address, a scheduler file."""

import gc
import json
import sys
import threading
import tracemalloc
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import dask
import numpy as np
import psutil
import pytest
from distributed import Client, LocalCluster, default_client
from distributed.utils import LoopRunner

import dhsk
from dhsk.commands.connecting import connected
from dhsk.commands.options import Cluster
from dhsk.execution import cluster
from dhsk.execution.local import thread_client


@pytest.fixture
def running() -> Any:
    """A cluster that somebody else started."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as started:  # fmt: skip
        yield started


@pytest.mark.slow
def test_local_cluster_listens_on_localhost_only() -> None:
    """Scheduler, workers and dashboard are not for others, and end with the client."""
    before = listening()
    with dhsk.connect("local", n_workers=1) as client:
        info = client.scheduler_info()
        addresses = [info["address"], *info["workers"], client.dashboard_link]
        assert all("://127.0.0.1:" in address for address in addresses)
        assert {host for _, host, _ in listening() - before} == {"127.0.0.1"}
        assert client.nthreads() == {next(iter(info["workers"])): 1}
        assert client.submit(pow, 2, 5).result() == 32
    assert client.cluster.status.name == "closed"


@pytest.mark.slow
def test_local_workers_are_not_profiled() -> None:
    """Dask's profiler stays off on workers of ours, and the caller's settings as they are."""
    before = dask.config.get("distributed.worker.profile.enabled")
    with dhsk.connect("local", n_workers=1) as client:
        found = client.run(lambda: dask.config.get("distributed.worker.profile.enabled"))
    assert list(found.values()) == [False]
    assert dask.config.get("distributed.worker.profile.enabled") == before


@pytest.mark.slow
def test_workers_that_do_not_start_are_a_sentence() -> None:
    """It has the error of the worker, which Dask wraps in two of its own."""
    with (
        dask.config.set({"distributed.worker.preload": ["no_such_module"]}),
        pytest.raises(dhsk.ClusterError, match=r"did not start .*no_such_module.* threads"),
    ):
        dhsk.connect("local", n_workers=1)


def test_a_closed_client_is_not_closed_again() -> None:
    """Garbage collection does so, perhaps where this thread holds the lock of Dask's loops."""
    client = thread_client(1, set_as_default=False)
    client.close()
    with LoopRunner._lock:
        again = threading.Thread(target=client.close, daemon=True)
        again.start()
        again.join(10)
        assert not again.is_alive()


def listening() -> set[tuple[int, str, int]]:
    """Process, host and port of every listening socket of this process and those it started."""
    members = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return {
        (member.pid, connection.laddr.ip, connection.laddr.port)
        for member in members
        for connection in member.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_do_not_hear_interrupts() -> None:
    """Ctrl-C at a terminal reaches the whole group; the workers leave it to the command."""

    # Inside, so that it travels as code: a worker cannot import this module.
    def hears_interrupts() -> bool:
        status = Path("/proc/self/status").read_text()
        blocked = next(line for line in status.splitlines() if line.startswith("SigBlk:"))
        return not int(blocked.split()[1], 16) & 0b10

    with dhsk.connect("local", n_workers=1) as client:
        assert client.submit(hears_interrupts).result(timeout=30) is False
    assert hears_interrupts()


def test_address(running: Any) -> None:
    """A scheduler by its address; its workers stay when the client goes."""
    with dhsk.connect(running.scheduler_address) as client:
        assert client.submit(pow, 2, 5).result() == 32
    assert running.status.name == "running"


def test_scheduler_file(running: Any, tmp_path: Path) -> None:
    """A scheduler by the file that it wrote."""
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": running.scheduler_address}))
    with dhsk.connect(str(path)) as client:
        assert client.submit(pow, 2, 5).result() == 32


@pytest.mark.slow(beyond=3)
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("lokal", "no cluster 'lokal': give local, slurm, pbs, sge, lsf, kubernetes, tcp://HOST"),
        ("scheduler.json", "no cluster 'scheduler.json'"),
        ("/nowhere/scheduler.json", "no cluster '/nowhere/scheduler.json'"),
        ("tcp://127.0.0.1:1", "no Dask scheduler answers at tcp://127.0.0.1:1"),
        (
            "carrier-pigeon://x",
            "no way to reach carrier-pigeon://x: give tcp://HOST:PORT or tls://HOST:PORT",
        ),
    ],
)
def test_no_cluster_there(monkeypatch: Any, where: str, message: str) -> None:
    """What does not answer is named, with the ways there are."""
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 0.5)
    with pytest.raises(dhsk.InputError, match=message):
        dhsk.connect(where)
    with pytest.raises(ValueError, match="No client"):
        default_client()  # a connection that failed is not left as the one to use


def test_a_client_without_scheduler_is_gone(monkeypatch: Any) -> None:
    """Collected within the start of the next client, it would wait for a lock for ever."""
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 0.5)
    before = {id(client) for client in _clients()}
    with pytest.raises(dhsk.InputError):
        dhsk.connect("tcp://127.0.0.1:1")
    assert {id(client) for client in _clients()} <= before


def _clients() -> list[Any]:
    """Clients of this process that are not yet collected."""
    return [thing for thing in gc.get_objects() if type(thing) is Client]


@pytest.mark.slow
def test_scheduler_without_workers_is_named(monkeypatch: Any) -> None:
    """A computation without workers would wait for ever, so it does not start."""
    monkeypatch.setattr(cluster, "WAIT_SECONDS", 1)
    with (
        LocalCluster(
            n_workers=0, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as idle,
        pytest.raises(dhsk.InputError, match="has 0 of 1 workers after 1 s"),
        pytest.warns(UserWarning, match="0 of 1 workers are there: waiting 1 s for the others"),
    ):
        dhsk.connect(idle.scheduler_address)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [True, False])
def test_passes_leave_nothing_in_memory(tmp_path: Path, processes: bool) -> None:
    """Dask keeps the last messages of each connection: not those with vectors in them."""
    X = np.random.default_rng(0).random((600, 3))
    V = np.random.default_rng(1).random((600, 100))
    limit = 2 * V.nbytes  # less than the messages and results of one product
    with dhsk.connect("local", n_workers=1, processes=processes) as client:
        G = dhsk.compute_gram(X, dhsk.CosineKernel(), store=tmp_path / "g", tile=200, client=client)
        for _ in range(3):
            G @ V
        tracemalloc.start()
        try:
            for _ in range(12):
                G @ V
            kept = least_traced(limit)
        finally:
            tracemalloc.stop()
    assert kept < limit


def least_traced(limit: int, patience: float = 20) -> int:
    """Traced bytes as soon as they are below the limit, or after some seconds.

    A product is returned before the scheduler and the worker have heard that nobody needs the
    results of its tasks: until then they have those, and the messages that brought the last ones.
    """
    end = monotonic() + patience
    while True:
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0]
        if traced < limit or monotonic() > end:
            return traced
        sleep(0.05)


@pytest.mark.slow
def test_a_command_leaves_dask_without_its_cluster() -> None:
    """What is computed afterwards in this process does not look for a client that has ended."""
    before = dask.config.get("scheduler", None)
    with connected(Cluster("local", 1, None)) as client:
        assert default_client() is client
    assert dask.config.get("scheduler", None) == before
    with pytest.raises(ValueError, match="No clients found"):
        default_client()
