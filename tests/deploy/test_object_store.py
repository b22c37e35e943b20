"""Gram stores on a real server with the interface of S3: Ceph, started here."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from uuid import uuid4

import pytest

pytest.importorskip("obstore")

from dhsk.objects.path import ObjectPath

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
    return ObjectPath("bucket", f"{uuid4().hex}/x.gram")


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
    done = subprocess.run([DHSK, "info", str(place)], capture_output=True, text=True, check=False)
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
