"""Dask schedulers and workers as processes, on this host or on several hosts made of namespaces."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Self

START_SECONDS = 60

LINK_SECONDS = 300
"""Most time that a bad link lasts."""


@dataclass
class Network:
    """Network namespaces on a bridge: 10.79.0.10, 10.79.0.11 and so on."""

    name: str
    hosts: int
    links: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    """Processes that forward the frames of bad links."""

    def up(self) -> None:
        """Make the namespaces."""
        bridge = f"{self.name}b"
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        _ip("-n", bridge, "link", "set", "br0", "up")
        for number in range(self.hosts):
            host, link = f"{self.name}{number}", f"v{number}"
            _ip("netns", "add", host)
            _ip("link", "add", link, "netns", bridge, "type", "veth",
                "peer", "name", "eth0", "netns", host)  # fmt: skip
            _ip("-n", host, "link", "set", "lo", "up")
            self._plug(number)

    def worsen(self, number: int, delay: float, loss: float) -> None:
        """Replace the link of a host: a delay in seconds and a share of frames lost, each way."""
        bridge, host, link = f"{self.name}b", f"{self.name}{number}", f"v{number}"
        _ip("-n", bridge, "link", "del", link)
        ends = f"{bridge}/{link}", f"{host}/eth0"
        program = [sys.executable, str(Path(__file__).with_name("bad_link.py")), *ends]
        process = subprocess.Popen(
            [*program, str(delay), str(loss), "1", str(LINK_SECONDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.links.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
        self._plug(number)

    def _plug(self, number: int) -> None:
        host = f"{self.name}{number}"
        _ip("-n", f"{self.name}b", "link", "set", f"v{number}", "master", "br0", "up")
        _ip("-n", host, "addr", "add", f"10.79.0.1{number}/24", "dev", "eth0")
        _ip("-n", host, "link", "set", "eth0", "up")

    def isolate(self, *hosts: int, on: bool = True) -> None:
        """Let some hosts reach the others, but not one another; or again."""
        for number in hosts:
            _ip("-n", f"{self.name}b", "link", "set", f"v{number}",
                "type", "bridge_slave", "isolated", "on" if on else "off")  # fmt: skip

    def cut(self, host: int) -> None:
        """Unplug a host."""
        _ip("-n", f"{self.name}b", "link", "set", f"v{host}", "down")

    def restore(self, host: int) -> None:
        """Plug a host in again."""
        _ip("-n", f"{self.name}b", "link", "set", f"v{host}", "up")

    def down(self) -> None:
        """Remove the namespaces, whose processes have ended."""
        for process in self.links:
            process.communicate()  # it ends with its input
        for name in [f"{self.name}{number}" for number in range(self.hosts)] + [f"{self.name}b"]:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def inside(self, host: int) -> list[str]:
        """Words before a command that runs on a host."""
        return ["ip", "netns", "exec", f"{self.name}{host}"]


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(words)}: {done.stderr}")


def missing_for_namespaces() -> str | None:
    """Why there can be no network namespaces here; None if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need iproute2"
    probe = subprocess.run(
        ["ip", "netns", "add", f"probe{os.getpid()}"], check=False, capture_output=True, text=True
    )
    if probe.returncode:
        return f"no network namespaces here: {probe.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"probe{os.getpid()}"], check=True)
    return None


@dataclass
class DaskProcesses:
    """A scheduler and workers, as children of this process."""

    folder: Path
    network: Network | None = None
    scheduler: "subprocess.Popen[bytes]" = field(init=False)
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def address_file(self) -> Path:
        """The scheduler file."""
        return self.folder / "scheduler.json"

    @classmethod
    @contextmanager
    def running(
        cls, folder: Path, network: Network | None = None, workers: int = 2
    ) -> Iterator[Self]:
        """A scheduler and workers, which end with the context."""
        started = cls(folder, network)
        try:
            started.start(workers)
            yield started
        finally:
            started.stop()

    def seen_from(self, folder: Path) -> Self:
        """The same processes, for commands in another folder."""
        own = type(self)(folder, self.network, workers=self.workers)
        own.scheduler = self.scheduler
        own.address_file.symlink_to(self.address_file)
        return own

    def start(self, workers: int, *options: str) -> None:
        """Start the scheduler on the first host, and each worker on one of its own."""
        self.address_file.unlink(missing_ok=True)
        self.workers.clear()
        self.scheduler = self._spawn(
            0, "scheduler", "--port", "0", "--host", self._host(0),
            "--no-dashboard", "--scheduler-file", str(self.address_file),
        )  # fmt: skip
        self._await(self.address_file.exists)
        for number in range(1, workers + 1):
            self.add_worker(number, *options)

    def add_worker(self, number: int, *options: str) -> None:
        """Start a worker."""
        place = self.folder / f"worker{len(self.workers)}"
        words = [
            "worker", "--scheduler-file", str(self.address_file), "--host", self._host(number),
            "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "2GB",
            "--local-directory", str(place), *options,
        ]  # fmt: skip
        self.workers.append(self._spawn(number, *words))

    def command(
        self, *words: str, settings: Sequence[str] = (), host: int = 0
    ) -> "subprocess.Popen[str]":
        """Start `dhsk` on a host, by default the scheduler's, with settings as NAME=VALUE."""
        cluster = "--cluster", str(self.address_file)
        return self.start_python("-m", "dhsk", *words, *cluster, settings=settings, host=host)

    def start_python(
        self, *words: str, settings: Sequence[str] = (), host: int = 0
    ) -> "subprocess.Popen[str]":
        """Start Python in the same way."""
        inside = self.network.inside(host) if self.network else []
        own = dict(setting.split("=") for setting in settings)
        return subprocess.Popen(
            [*inside, sys.executable, *words],
            cwd=self.folder, text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"} | own,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def stop(self) -> None:
        """End all of them, those that are stopped too."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    def _host(self, number: int) -> str:
        return f"10.79.0.1{number}" if self.network else "127.0.0.1"

    def _spawn(self, host: int, *words: str) -> "subprocess.Popen[bytes]":
        inside = self.network.inside(host) if self.network else []
        module = f"distributed.cli.dask_{words[0]}"
        with (self.folder / "dask.log").open("ab") as log:
            return subprocess.Popen(
                [*inside, sys.executable, "-m", module, *words[1:]],
                cwd=self.folder, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )  # fmt: skip

    def _await(self, ready: Callable[[], bool]) -> None:
        deadline = monotonic() + START_SECONDS
        while not ready():
            assert monotonic() < deadline, (self.folder / "dask.log").read_text()[-3000:]
            sleep(0.1)
