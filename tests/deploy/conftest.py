"""A Slurm of two nodes on this host, made for the tests: its own munge, ports and folder."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")
START_SECONDS = 20
JOB_SECONDS = 60

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=10
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000
PartitionName=main Nodes=n[1-2] Default=YES State=UP
"""


@dataclass
class Slurm:
    """Daemons of a cluster of two nodes, as children of this process."""

    folder: Path
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """For Slurm's commands and for the jobs: this cluster, and the dhsk under test."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def start(self) -> None:
        """Start munge, controller and nodes; wait until the nodes are idle."""
        self.folder.chmod(0o755)  # munge insists that all may reach its socket
        (self.folder / "state").mkdir()
        (self.folder / "munge.key").write_bytes(os.urandom(128))
        (self.folder / "munge.key").chmod(0o400)
        text = CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], folder=self.folder, ports=free_ports(3)
        )
        (self.folder / "slurm.conf").write_text(text)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        self._daemon(
            "munged", "--foreground", *(f"--{o}={self.folder}/munge.{f}" for o, f in files.items())
        )
        self._wait_for("munge", (self.folder / "munge.socket").exists)
        self._daemon("slurmctld", "-D")
        for node in ("n1", "n2"):
            (self.folder / f"spool-{node}").mkdir()
            self._daemon("slurmd", "-D", "-N", node)
        self._wait_for("nodes", lambda: self._ask("sinfo", "-h", "-t", "idle", "-o", "%D") == "2")

    def stop(self) -> None:
        """End what was started, the jobs first."""
        self._ask("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def submit(self, *words: str, cwd: Path) -> str:
        """Hand a job in; its number."""
        return self._run("sbatch", "--parsable", *words, cwd=cwd).strip()

    def finish(self, job: str) -> tuple[str, int]:
        """Wait for the end of a job; its state and exit code."""
        deadline = monotonic() + JOB_SECONDS
        while monotonic() < deadline:
            shown = self._run("scontrol", "show", "job", job)
            state = re.search(r"JobState=(\w+)", shown)
            code = re.search(r"ExitCode=(\d+):", shown)
            if state and code and state[1] not in ("PENDING", "RUNNING", "COMPLETING"):
                return state[1], int(code[1])
            sleep(0.2)
        raise AssertionError(f"job {job} is not done after {JOB_SECONDS} s:\n{shown}")

    def terminate(self, job: str) -> None:
        """Tell the batch script to end, as Slurm does before the time limit."""
        self._run("scancel", "--batch", "--signal=TERM", job)

    def _run(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command, env=self.environment, cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def _ask(self, *command: str) -> str:
        """Like `_run`, for a cluster that may not answer."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def _daemon(self, *command: str) -> None:
        with (self.folder / "daemons.log").open("ab") as log:
            self.daemons.append(
                subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
            )

    def _wait_for(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = monotonic() + START_SECONDS
        while not ready():
            ended = [daemon.args for daemon in self.daemons if daemon.poll() is not None]
            if ended or monotonic() > deadline:
                log = (self.folder / "daemons.log").read_text()[-3000:]
                raise AssertionError(f"no {what}; ended: {ended}\n{log}")
            sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """Two running Slurm nodes, or a skip that says what is missing."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("slurmd and munged need root")
    # Not tmp_path: the path of a Unix socket has at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="dhsk-slurm-") as folder:
        cluster = Slurm(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
