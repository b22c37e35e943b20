"""Several hosts and what may happen between them: network namespaces on a bridge."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from network import DaskProcesses, Network, missing_for_namespaces
from outcomes import local, outcome_of
from work import GRAM, HOPELESS_SECONDS, PREDICT, SHORT, begun, ended, make_model, make_samples

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.usefixtures("hears_interrupts")]

LABELS = ("--labels", "y.txt")
GRID = ("--C", "1,10", "--time-scale", "0.5")
DOORS = {
    "gram": ("gram", "x.npy", "--tile", "100", "--out", "g"),
    "exact": ("train", "x.npy", *LABELS, "--C", "1", "--out", "m"),
    "rank": ("train", "x.npy", *LABELS, "--C", "1", "--rank", "100", "--out", "low"),
    "cv": ("cv", "x.npy", *LABELS, *GRID, "--out", "o"),
    "cv-rank": ("cv", "x.npy", *LABELS, *GRID, "--rank", "50", "--out", "o2"),
    "predict": ("predict", "m", "x.npy", "--out", "p.csv"),
}

FEW = ("cv", "x.npy", *LABELS, "--folds", "2", "--C", "1", "--time-scale", "1", "--out", "o")
SMALL_RANK = ("train", "x.npy", *LABELS, "--C", "1e-3", "--rank", "20", "--out", "low")
"""A training of few passes: each waits for the network several times."""

DELAY, LOSS = 0.1, 0.05  # each way


@contextmanager
def three_hosts(name: str) -> Iterator[Network]:
    """Hosts on a bridge, whose names begin with a name."""
    missing = missing_for_namespaces()
    if missing is not None:
        pytest.skip(missing)
    made = Network(f"{name}{os.getpid() % 10**6}h", 3)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture
def network() -> Iterator[Network]:
    """Three hosts on a bridge."""
    with three_hosts("dt") as made:
        yield made


def worsened(network: Network) -> Network:
    """The link of the first host is slow and loses packets."""
    if not Path("/dev/net/tun").exists():
        pytest.skip("a bad link needs /dev/net/tun")
    network.worsen(0, DELAY, LOSS)
    return network


@pytest.fixture
def bad_network(network: Network) -> Network:
    """The same, with a bad link."""
    return worsened(network)


@contextmanager
def dask_on(network: Network) -> Iterator[DaskProcesses]:
    """A scheduler on the first host, a worker on each of the others."""
    with (
        tempfile.TemporaryDirectory(prefix="dhsk-net-") as folder,
        DaskProcesses.running(Path(folder), network) as started,
    ):
        yield started


@pytest.fixture
def hosts(network: Network) -> Iterator[DaskProcesses]:
    """Hosts on good links."""
    with dask_on(network) as started:
        yield started


@pytest.fixture(scope="module")
def lasting() -> Iterator[DaskProcesses]:
    """The same, of all tests after which the scheduler has both workers, and of one more."""
    with three_hosts("dl") as network, dask_on(network) as started:
        yield started


@pytest.fixture
def shared_hosts(lasting: DaskProcesses, tmp_path: Path) -> DaskProcesses:
    """These in a folder of this test's own."""
    return lasting.seen_from(tmp_path)


@pytest.fixture
def bad_hosts(bad_network: Network) -> Iterator[DaskProcesses]:
    """Hosts of which the scheduler's has a bad link."""
    with dask_on(bad_network) as started:
        yield started


@pytest.fixture(scope="module")
def far_hosts() -> Iterator[DaskProcesses]:
    """The same, for tests that leave them as they are, with samples."""
    with three_hosts("df") as network, dask_on(worsened(network)) as started:
        make_samples(started.folder, 1000, 40)
        yield started


def gram_on_two_hosts(hosts: DaskProcesses, *settings: str) -> Any:
    """A command that has computed some of its tiles."""
    make_samples(hosts.folder, 2500)
    process = hosts.command(*GRAM, "--workers", "2", settings=settings)
    begun(process, hosts.folder, GRAM)
    return process


EACH_LINE = """
import sys
from dhsk.__main__ import main

for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as ended:
        if ended.code != 0:
            raise
"""
"""Runs commands, one after the other, in one process."""


def test_workers_that_cannot_reach_each_other(shared_hosts: DaskProcesses) -> None:
    """Every door works: nothing that a task needs comes from another worker."""
    folder, network = shared_hosts.folder, shared_hosts.network
    assert network is not None
    network.isolate(1, 2)
    make_samples(folder, 800, 40)
    cluster = "--workers", "2", "--cluster", str(shared_hosts.address_file)
    lines = [" ".join((*words, *cluster)) for words in DOORS.values()]
    code, output = ended(shared_hosts.start_python("-c", EACH_LINE, *lines), 180)
    network.isolate(1, 2, on=False)
    assert code == 0, output
    assert all((folder / words[-1]).exists() for words in DOORS.values())


def test_links_that_are_restored(shared_hosts: DaskProcesses) -> None:
    """A few seconds without the scheduler, and then without a worker, are waited for."""
    network = shared_hosts.network
    assert network is not None
    process = gram_on_two_hosts(shared_hosts)
    for host in (0, 2):
        network.cut(host)
        sleep(5)
        assert process.poll() is None
        network.restore(host)
    code, output = ended(process, 120)
    assert code == 0, output
    assert outcome_of(shared_hosts.folder / "g") == local(
        *GRAM[:-2], cwd=shared_hosts.folder, out="local"
    )


def test_a_cut_link_loses_nothing(shared_hosts: DaskProcesses) -> None:
    """The tasks of the host that is gone are computed by the other one; the last of these tests."""
    network = shared_hosts.network
    assert network is not None
    process = gram_on_two_hosts(shared_hosts, *SHORT)
    network.cut(2)
    code, output = ended(process, HOPELESS_SECONDS)
    assert code == 0, output
    assert outcome_of(shared_hosts.folder / "g") == local(
        *GRAM[:-2], cwd=shared_hosts.folder, out="local"
    )


def test_a_scheduler_that_is_cut_off_ends_it(network: Network, hosts: DaskProcesses) -> None:
    """The workers are out of reach of the scheduler for good: an error, not a wait for ever."""
    assert_cutting_ends_it(network, hosts)


def assert_cutting_ends_it(network: Network, hosts: DaskProcesses) -> None:
    """Exit code 4 within its timeouts, and what is finished is kept."""
    process = gram_on_two_hosts(hosts, *SHORT)
    network.cut(0)
    code, output = ended(process, HOPELESS_SECONDS)
    assert code == 4, output
    assert "kept" in output


# A bad link

ECHO = """
import socket, sys
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("10.79.0.10", 7))
print("bound", flush=True)
while True:
    here.sendto(*here.recvfrom(100))
"""

PROBE = """
import socket, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
times = []
def receive(seconds):
    here.settimeout(seconds)
    try:
        sent = float(here.recv(100))
    except TimeoutError:
        return False
    times.append(time.monotonic() - sent)
    return True
def send():
    here.settimeout(1)
    here.sendto(repr(time.monotonic()).encode(), ("10.79.0.10", 7))
send()
while not receive(1):  # until they know each other's addresses
    send()
times.clear()
for number in range(600):
    send()
    receive(0.001)
while receive(2):
    pass
print(len(times) / 600, min(times))
"""


def test_the_bad_link_is_bad(bad_network: Network) -> None:
    """Datagrams come back after both delays; a twentieth is lost each way."""
    server = [*bad_network.inside(0), sys.executable, "-c", ECHO]
    with subprocess.Popen(server, stdout=subprocess.PIPE) as echo:
        try:
            assert echo.stdout is not None
            echo.stdout.readline()
            probe = [*bad_network.inside(1), sys.executable, "-c", PROBE]
            done = subprocess.run(probe, capture_output=True, text=True, check=True, timeout=60)
        finally:
            echo.kill()
    share, fastest = map(float, done.stdout.split())
    assert fastest >= 2 * DELAY
    assert abs(share - (1 - LOSS) ** 2) < 0.05  # four standard deviations


@pytest.mark.parametrize(
    ("words", "host"), [(DOORS["gram"], 1), (SMALL_RANK, 0), (FEW, 0), (PREDICT, 1)]
)
def test_over_a_bad_link(far_hosts: DaskProcesses, words: tuple[str, ...], host: int) -> None:
    """The local bits, with the scheduler far from the workers, twice also from the command.

    Tiles of small matrices are planned for the number of workers, and the last bits depend on them.
    """
    if words is PREDICT:
        make_model(far_hosts.folder, 1000)
    code, output = ended(far_hosts.command(*words, "--workers", "2", host=host), 150)
    assert code == 0, output
    result = far_hosts.folder / words[-1]
    expected = local(*words[:-2], cwd=far_hosts.folder, out=f"local-{words[-1]}", workers=2)
    assert outcome_of(result) == expected


def test_a_bad_link_that_is_cut(bad_network: Network, bad_hosts: DaskProcesses) -> None:
    """The same, where messages take long and some are lost."""
    assert_cutting_ends_it(bad_network, bad_hosts)
