"""What is worked around in Dask and others: where it is done, and when it is no longer needed.

A test that is expected to fail says what upstream should do. When it passes with the newest
versions, the work-around can go with the versions before.
"""

import inspect
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster, Worker, WorkerPlugin
from threadpoolctl import OpenBLASController, threadpool_info, threadpool_limits

import dhsk

PACKAGE = Path(dhsk.__file__).parent

PRIVATE = re.compile(r"(client|cluster|worker|future|scheduler)\._[a-z]\w*|thread_state", re.I)
"""A private name of Dask's objects, by the names that they have here."""


def no_longer_needed(what: str) -> Callable[..., Any]:
    """Expect that upstream has not changed; fail when it has."""
    return pytest.mark.xfail(strict=True, reason=f"{what} in execution/upstream.py is needed")


def test_private_names_are_used_in_one_module() -> None:
    """A change upstream is looked for there."""
    found = {
        str(file.relative_to(PACKAGE)): PRIVATE.findall(file.read_text())
        for file in PACKAGE.rglob("*.py")
        if PRIVATE.search(file.read_text())
    }
    assert list(found) == ["execution/upstream.py"], found


@no_longer_needed("what `message_cutter` cuts")
def test_connections_keep_few_messages() -> None:
    """dask/distributed#1630."""
    with (
        LocalCluster(n_workers=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        assert max(kept_messages(cluster)) <= 10


def kept_messages(cluster: LocalCluster) -> list[int]:
    """Most messages that the scheduler keeps of each connection."""
    scheduler = cluster.scheduler
    senders = [*scheduler.stream_comms.values(), *scheduler.client_comms.values()]
    assert len(senders) > 2
    return [sender.recent_message_log.maxlen for sender in senders]


def test_the_messages_of_a_strangers_cluster_are_cut() -> None:
    """They hold the arrays of tasks, a thousand times for each worker."""
    with (
        LocalCluster(n_workers=2, processes=False, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        dhsk.compute_gram(np.eye(300) + 0.1, "heat", client=client)
        assert set(kept_messages(cluster)) == {1}
        assert client.scheduler_comm.recent_message_log.maxlen == 1


@pytest.mark.threads
def test_interrupts_stay_as_they_are() -> None:
    """The import of dask_jobqueue makes Ctrl-C end Python with code 0: that is undone."""
    pytest.importorskip("dask_jobqueue", reason="worker jobs need dask-jobqueue")
    assert interrupts_after("upstream.jobqueue()") == "same"


@pytest.mark.slow
@no_longer_needed("what `jobqueue` undoes")
def test_jobqueue_leaves_interrupts_alone() -> None:
    """dask/dask-jobqueue#697."""
    pytest.importorskip("dask_jobqueue", reason="worker jobs need dask-jobqueue")
    assert interrupts_after("import dask_jobqueue") == "same"


def interrupts_after(line: str) -> str:
    """Whether a line of Python changes what Ctrl-C does."""
    code = (
        "import signal\nfrom dhsk.execution import upstream\n"
        f"before = signal.getsignal(signal.SIGINT)\n{line}\n"
        "print('same' if signal.getsignal(signal.SIGINT) is before else 'other')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@no_longer_needed("`within`")
@pytest.mark.parametrize("name", ["run", "register_plugin", "unregister_worker_plugin"])
def test_methods_take_a_timeout(name: str) -> None:
    """One of a client that waits for all workers."""
    assert "timeout" in inspect.signature(getattr(Client, name)).parameters


@no_longer_needed("`take_control_of_blas`")
@pytest.mark.threads
def test_every_thread_may_limit_openblas() -> None:
    """joblib/threadpoolctl#220."""
    if not hasattr(OpenBLASController, "clear_controlling_thread"):
        pytest.skip("before threadpoolctl 3.8 it may")
    found = []

    def other() -> None:
        with threadpool_limits(1, user_api="blas"):
            np.ones((2, 2)) @ np.ones((2, 2))
            found.extend(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert set(found) == {1}


class Failing(WorkerPlugin):  # type: ignore[misc]  # its base is untyped
    """Cannot be set up."""

    def setup(self, worker: Worker) -> None:  # noqa: ARG002
        """Fail."""
        raise ValueError("made up")


@pytest.mark.slow
@no_longer_needed("`leave`")
def test_a_worker_on_which_a_plugin_fails_ends(caplog: Any) -> None:
    """dask/distributed#6906."""
    with (
        caplog.at_level(logging.CRITICAL, "distributed"),
        LocalCluster(processes=False, n_workers=0, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(Failing(), name="failing")
        cluster.scale(1)
        sleep(1)  # it is there after a tenth of that
        assert not client.scheduler_info(n_workers=-1)["workers"]
