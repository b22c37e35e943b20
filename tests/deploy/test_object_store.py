"""Stores and models on a real server with the interface of S3: Ceph, started and killed here."""

import csv
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import numpy as np
import pytest

pytest.importorskip("obstore")

from dhsk.objects.path import ObjectPath
from dhsk.objects.places import Place

sys.path.insert(0, str(Path(__file__).parent))
from outcomes import local, run_here

PROGRAMS = ("ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool")
DHSK = str(Path(sys.executable).parent / "dhsk")


@dataclass
class Ceph:
    """Monitor, disk in memory and gateway, each known by its process id."""

    folder: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which a process finds the gateway."""
        return {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "quite-secret",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        """Start all daemons, and make a bucket."""
        script = Path(__file__).with_name("ceph_up.sh")
        with (self.folder.parent / f"{self.folder.name}.log").open("wb") as log:
            words = ["bash", str(script), str(self.folder), str(self.port)]
            subprocess.run(words, stdout=log, stderr=log, check=True, timeout=120)
        await_that(self.answers)
        make = "import boto3\nboto3.client('s3').create_bucket(Bucket='bucket')"
        names = self.environment | {"AWS_DEFAULT_REGION": "us-east-1"}
        subprocess.run([sys.executable, "-c", make], env=os.environ | names, check=True)

    def start_gateway(self) -> None:
        """Start the gateway again, and wait until it answers."""
        self.run("radosgw", "--name", "client.rgw")
        await_that(self.answers)

    def kill(self, name: str) -> None:
        """End a daemon at once, with all its requests."""
        file = self.folder / "run" / f"{name}.pid"
        if file.exists():
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)

    def stop(self) -> None:
        """End what was started."""
        for name in ("client.rgw", "osd.0", "mon.a"):
            self.kill(name)

    def answers(self) -> bool:
        """Whether the gateway takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def run(self, name: str, *words: str) -> None:
        """Run a command of this Ceph, which must succeed."""
        command = [name, "-c", str(self.folder / "ceph.conf"), *words]
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60
        )


def await_that(ready: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until a condition holds."""
    end = monotonic() + seconds
    while not ready():
        assert monotonic() < end, "it did not happen in time"
        sleep(0.1)


@pytest.fixture(scope="module")
def ceph() -> Iterator[Ceph]:
    """A Ceph of these tests."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"Ceph is not installed: {', '.join(missing)}")
    if os.getuid() != 0:
        pytest.skip("Ceph's daemons want to be root")
    for port in (3300, 6789):  # of the monitor
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip("another Ceph runs on this machine")
    folder = Path(tempfile.mkdtemp(prefix="dhsk-ceph-", dir="/tmp"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    server = Ceph(folder / "c", port)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture
def place(ceph: Ceph, monkeypatch: pytest.MonkeyPatch) -> ObjectPath:
    """Path of a store of this test's own, and the environment of its server."""
    for name, value in ceph.environment.items():
        monkeypatch.setenv(name, value)
    return ObjectPath("bucket", uuid4().hex)


COMMANDS = {
    "gram": ("gram", "x.npy", "--tile", "400", "--dtype", "float32", "--workers", "1"),
    "cv": (
        "cv",
        "x.npy",
        "--labels",
        "y.txt",
        "--folds",
        "2",
        "--C",
        "1",
        "--time-scale",
        "1",
        "--workers",
        "1",
    ),
    "model": ("train", "x.npy", "--labels", "y.txt", "--rank", "100", "--workers", "1"),
}
BEGUN = {"gram": "gram/gram/c/", "cv": "cv/fits/gram/cosine/gram/c/", "model": "model.part/"}
"""What is in the name of an object that says that a command is amid its work."""

OUTAGE_SECONDS = 60

COMMAND_SECONDS = 300
"""Far more than a command takes on a quiet machine with two cores: 20 s, and the outage."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with samples, labels, and the results of all commands on the disk."""
    folder = tmp_path_factory.mktemp("inputs")
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (2000, 30)) + 1.0
    X[1000:, :5] += rng.poisson(1.0, (1000, 5))
    np.save(folder / "x.npy", X)
    np.savetxt(folder / "y.txt", np.arange(2000) // 1000, fmt="%d")
    for name, words in COMMANDS.items():
        local(*words, cwd=folder, out=name)
    return folder


def assert_done(running: dict[str, subprocess.Popen[str]]) -> None:
    """Wait for commands, which must succeed; what is left of them is ended."""
    try:
        said = {name: one.communicate(timeout=COMMAND_SECONDS)[0] for name, one in running.items()}
    finally:
        for process in running.values():
            kill(process)
    assert [process.returncode for process in running.values()] == [0, 0, 0], said


def start(folder: Path, *words: object) -> subprocess.Popen[str]:
    """Start a command, as the head of a process group of its own."""
    line = [DHSK, *map(str, words)]
    return subprocess.Popen(
        line, cwd=folder, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def kill(process: subprocess.Popen[str]) -> None:
    """End a command and all its workers at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@contextmanager
def amid_their_work(place: ObjectPath, inputs: Path) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All commands, each stopped in the middle of its work; killed if the block raises."""
    running = {
        name: start(inputs, *words, "--out", place / name) for name, words in COMMANDS.items()
    }
    try:
        waiting = dict(running)
        while waiting:
            begun = place.sizes()
            for name in [name for name in waiting if any(BEGUN[name] in key for key in begun)]:
                os.killpg(waiting.pop(name).pid, signal.SIGSTOP)
            assert_none_has_ended(waiting)
            sleep(0.05)
        yield running
    except BaseException:
        for process in running.values():
            kill(process)
        raise


def assert_none_has_ended(running: dict[str, subprocess.Popen[str]]) -> None:
    """All commands are at work."""
    ended = [process for process in running.values() if process.poll() is not None]
    assert not ended, ended[0].communicate()[0]


@pytest.mark.real
@pytest.mark.timeout(900)
def test_results_outlast_a_restart_of_the_server(
    ceph: Ceph, place: ObjectPath, inputs: Path
) -> None:
    """Killed amid three commands, it comes back, and their results are those of the disk."""
    with amid_their_work(place, inputs) as running:
        ceph.kill("client.rgw")
        for process in running.values():
            os.killpg(process.pid, signal.SIGCONT)
        sleep(OUTAGE_SECONDS)
        assert_none_has_ended(running)
        ceph.start_gateway()
    assert_done(running)
    assert_same_results(place, inputs)


@pytest.mark.real
@pytest.mark.timeout(900)
def test_killed_commands_go_on(place: ObjectPath, inputs: Path) -> None:
    """Killed with their workers, they leave no lock, and the same again ends as on the disk."""
    with amid_their_work(place, inputs) as running:
        for process in running.values():
            kill(process)
    before = place.sizes()
    for name, words in COMMANDS.items():
        run_here(*words, "--out", str(place / name), cwd=inputs)
    assert any(BEGUN["gram"] in key for key in before)
    assert_same_results(place, inputs)
    assert not [name for name in place.sizes() if "model.part/" in name]


def assert_same_results(place: ObjectPath, inputs: Path) -> None:
    """All results of the commands are those of the disk."""
    assert_same_files(place / "gram", inputs / "gram")
    assert scores_in(place / "cv") == scores_in(inputs / "cv")
    assert arrays_in(place / "model") == arrays_in(inputs / "model")


def assert_same_files(place: ObjectPath, folder: Path) -> None:
    """A store on the server has the files of one on the disk, to the last bit."""
    files = {str(f.relative_to(folder)): f for f in folder.rglob("*") if f.is_file()}
    assert sorted(place.sizes()) == sorted(files)
    for name, file in files.items():
        assert place.joinpath(name).read_bytes() == file.read_bytes(), name


def scores_in(place: Place) -> list[dict[str, str]]:
    """Rows of a cross-validation, without the times of the fits."""
    text = (place / "results.csv").read_bytes().decode()
    rows = [row | {"seconds": ""} for row in csv.DictReader(text.splitlines())]
    assert rows
    return rows


def arrays_in(model: Place) -> dict[str, bytes]:
    """Content of a model."""
    with np.load(BytesIO(model.read_bytes())) as archive:
        return {name: archive[name].tobytes() for name in archive.files}


@pytest.mark.real
def test_an_owner_is_created_once(place: ObjectPath) -> None:
    """Of two writers that both create, the server takes one."""
    assert (place / ".lock" / "1").create(b"one")
    assert not (place / ".lock" / "1").create(b"two")
    assert (place / ".lock" / "1").read_bytes() == b"one"


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("AWS_SECRET_ACCESS_KEY", "mistaken", "refuses the credentials (SignatureDoesNotMatch)"),
        ("AWS_ACCESS_KEY_ID", "mistaken", "refuses the credentials (InvalidAccessKeyId)"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9", "the server does not answer"),
    ],
)
def test_refusals_have_exit_code_4_and_no_secret(
    place: ObjectPath, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    """In one sentence that names the variables."""
    monkeypatch.setenv(name, value)
    words = [DHSK, "info", "--quiet", str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert "quite-secret" not in done.stderr + done.stdout
    assert "mistaken" not in done.stderr + done.stdout


@pytest.mark.real
def test_a_used_up_quota_is_said(ceph: Ceph, place: ObjectPath) -> None:
    """With the way out."""
    from dhsk.errors import StoreError

    admin = ("radosgw-admin", "--name", "client.rgw", "quota")
    scope = ("--quota-scope=user", "--uid=t")
    ceph.run(*admin, "set", *scope, "--max-size=1")
    ceph.run(*admin, "enable", *scope)
    try:
        with pytest.raises(StoreError, match=r"quota of the server is used up \(QuotaExceeded\)"):
            write_much(place)
    finally:
        ceph.run(*admin, "disable", *scope)


def write_much(place: ObjectPath) -> None:
    """Write object after object: the gateway looks at quotas now and then."""
    for number in range(50):
        (place / f"{number}").write_bytes(bytes(1 << 20))
