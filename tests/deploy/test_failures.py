"""Real schedulers, workers and networks that fail: the command goes on, or ends and says why."""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dhsk

sys.path.insert(0, str(Path(__file__).parent))
from network import DaskProcesses, Network, missing_for_namespaces

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.usefixtures("hears_interrupts")]

SHORT = ("DASK_DHSK__PROGRESS_TIMEOUT=8s", "DASK_DHSK__SCHEDULER_TIMEOUT=4s")
GRAM = ("gram", "x.npy", "--out", "g", "--tile", "64")
RANK = ("train", "x.npy", "--labels", "y.txt", "--rank", "800", "--C", "1", "--out", "m")


def make_samples(folder: Path, n: int, dim: int = 200) -> None:
    """Counts of three classes, and their labels."""
    X = np.random.default_rng(0).poisson(1.0, (n, dim)) + 0.5
    codes = np.arange(n) % 3
    for code in range(3):
        X[codes == code, 4 * code : 4 * code + 4] += 2
    np.save(folder / "x.npy", X)
    (folder / "y.txt").write_text("".join(f"{code}\n" for code in codes))


@pytest.fixture
def dask_processes(tmp_path: Path) -> Iterator[DaskProcesses]:
    """A scheduler and two workers on this host, and samples for half a minute of work."""
    make_samples(tmp_path, 6000)
    started = DaskProcesses(tmp_path)
    try:
        started.start(2)
        yield started
    finally:
        started.stop()


def begun(process: Any, folder: Path, words: tuple[str, ...]) -> None:
    """Return once a command is in the middle of its work."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        if words is GRAM and len(list((folder / "g" / "gram" / "c").glob("*/*"))) > 100:
            return
        if words is RANK and list(folder.glob("*/*.npz")):
            return
        time.sleep(0.02)
    raise AssertionError("the work does not begin")


def ended(process: Any, within: float) -> tuple[int, str]:
    """Exit code and output of a command that ends in time."""
    try:
        output, _ = process.communicate(timeout=within)
    finally:
        process.kill()
    assert "Traceback" not in output, output
    return process.returncode, output


@pytest.mark.parametrize(
    ("hanging", "number"), [("worker", signal.SIGINT), ("scheduler", signal.SIGTERM)]
)
def test_an_interrupt_ends_it_whatever_hangs(
    dask_processes: DaskProcesses, tmp_path: Path, hanging: str, number: int
) -> None:
    """130, one sentence, within ten seconds."""
    process = dask_processes.command(*GRAM, "--workers", "2")
    begun(process, tmp_path, GRAM)
    stopped = dask_processes.workers[0] if hanging == "worker" else dask_processes.scheduler
    stopped.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(number)
    code, output = ended(process, 10)
    assert code == 130, output
    assert output.count("dhsk: interrupted; what is finished is kept") == 1


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_lost_scheduler_ends_it(dask_processes: DaskProcesses, tmp_path: Path, how: int) -> None:
    """Exit code 4 and one sentence, soon after its timeout."""
    process = dask_processes.command(*GRAM, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, GRAM)
    dask_processes.scheduler.send_signal(how)
    code, output = ended(process, 25)
    assert code == 4, output
    assert "the connection to the scheduler is lost" in output
    finished = len(list((tmp_path / "g" / "gram" / "c").glob("*/*")))
    assert 100 < finished < 94 * 95 // 2


@pytest.mark.parametrize("words", [GRAM, RANK], ids=["gram", "rank"])
def test_a_stopped_worker_loses_its_tasks(
    dask_processes: DaskProcesses, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The other one computes them; a line names the worker and what it held."""
    process = dask_processes.command(*words, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, words)
    dask_processes.workers[0].send_signal(signal.SIGSTOP)
    code, output = ended(process, 90)
    assert code == 0, output
    assert "has not been heard of for" in output
    assert ("holds tile" if words is GRAM else "holds the span of samples") in output


def test_no_worker_left_ends_it(dask_processes: DaskProcesses, tmp_path: Path) -> None:
    """Exit code 4, and which worker held what."""
    process = dask_processes.command(*GRAM, "--workers", "2", settings=SHORT)
    begun(process, tmp_path, GRAM)
    for worker in dask_processes.workers:
        worker.send_signal(signal.SIGSTOP)
    code, output = ended(process, 40)
    assert code == 4, output
    assert "no worker makes progress: worker tcp://" in output
    assert "holds tile" in output


# Several hosts


@pytest.fixture
def network() -> Iterator[Network]:
    """Three hosts on a bridge."""
    missing = missing_for_namespaces()
    if missing is not None:
        pytest.skip(missing)
    made = Network(f"dt{os.getpid() % 10**6}h", 3)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def hosts(network: Network) -> Iterator[DaskProcesses]:
    """A scheduler on the first host, a worker on each of the others."""
    with tempfile.TemporaryDirectory(prefix="dhsk-net-") as folder:
        started = DaskProcesses(Path(folder), network)
        try:
            started.start(2)
            yield started
        finally:
            started.stop()


def test_workers_that_cannot_reach_each_other(network: Network, hosts: DaskProcesses) -> None:
    """Every door works: nothing that a task needs comes from another worker."""
    network.isolate(1, 2)
    make_samples(hosts.folder, 1500, 40)
    train = ("train", "x.npy", "--labels", "y.txt", "--C", "1")
    cv = ("cv", "x.npy", "--labels", "y.txt", "--C", "1,10", "--time-scale", "0.5")
    for words in (
        ("gram", "x.npy", "--out", "g", "--tile", "100"),
        (*train, "--out", "m"),
        (*train, "--rank", "100", "--out", "low"),
        (*cv, "--out", "o"),
        (*cv, "--rank", "50", "--out", "o2"),
        ("predict", "m", "x.npy", "--out", "p.csv"),
    ):
        code, output = ended(hosts.command(*words, "--workers", "2"), 60)
        assert code == 0, output


def gram_on_two_hosts(hosts: DaskProcesses) -> Any:
    """A command that has computed some of its tiles."""
    make_samples(hosts.folder, 6000)
    process = hosts.command(*GRAM, "--workers", "2", settings=SHORT)
    begun(process, hosts.folder, GRAM)
    return process


def test_a_cut_link_loses_nothing(network: Network, hosts: DaskProcesses) -> None:
    """The tasks of the host that is gone are computed by the other one."""
    process = gram_on_two_hosts(hosts)
    network.cut(2)
    code, output = ended(process, 90)
    assert code == 0, output
    assert dhsk.open_gram(hosts.folder / "g").shape == (6000, 6000)


def test_a_scheduler_that_is_cut_off_ends_it(network: Network, hosts: DaskProcesses) -> None:
    """The workers are out of reach of the scheduler for good: an error, not a wait for ever."""
    process = gram_on_two_hosts(hosts)
    network.cut(0)
    code, output = ended(process, 60)
    assert code == 4, output
    assert "kept" in output
