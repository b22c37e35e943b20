"""A Slurm of two nodes on this host, made for the tests: its own munge, ports and folder."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import psutil
from outcomes import local, outcome_of

SCRIPTS = Path(__file__).parents[2] / "deploy" / "slurm"
START_SECONDS = 20
JOB_SECONDS = 180  # ten times what a job of these tests takes, for busy machines
ALIVE = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED")

SMALL = {"n_workers": "2", "cores": "1", "memory": '"1GB"', "walltime": '"00:10:00"'}
"""Options of `cluster.toml`: two jobs of a worker each."""

GRAM = ("gram", "counts.npy", "--tile", "64")
"""A matrix of 2,016 tiles of the samples that `make_counts` writes."""

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
KillWait=30
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000
PartitionName=main Nodes=n[1-2] Default=YES State=UP
"""


def await_that(
    ready: Callable[[], Any], what: str, seconds: float = JOB_SECONDS, pause: float = 0.1
) -> Any:
    """Wait until a condition holds; its value."""
    deadline = monotonic() + seconds
    while not (found := ready()):
        assert monotonic() < deadline, f"no {what} after {seconds} s"
        sleep(pause)
    return found


@dataclass
class Slurm:
    """Daemons of a cluster of two nodes, as children of this process."""

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

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
        places = (f"--{option}={self.folder}/munge.{file}" for option, file in files.items())
        self._daemon("munged", "--foreground", *places)
        self._wait_for("munge", (self.folder / "munge.socket").exists)
        self._daemon("slurmctld", "-D")
        for node in ("n1", "n2"):
            (self.folder / f"spool-{node}").mkdir()
            self.start_node(node)
        self._wait_for("nodes", lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == "2")

    def lose_node(self, node: str) -> None:
        """Kill Slurm's daemons of a node at once, as if it had crashed; jobs' processes live on."""
        daemon = self.daemons.pop(node)
        daemon.kill()
        daemon.wait()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                sockets = [c.laddr for c in process.net_connections("unix")]
                if any(str(place).startswith(f"{self.folder}/spool-{node}/") for place in sockets):
                    process.kill()
        # What the controller does by itself, after minutes.
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=lost")

    def blink(self, rng: np.random.Generator) -> str:
        """Lose a node that comes back at once; which one."""
        node = str(rng.choice(["n1", "n2"]))
        self.lose_node(node)
        sleep(0.5)
        self.start_node(node)
        return f"lost {node}"

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._daemon("slurmd", "-D", "-N", node, name=node)

    def stop(self) -> None:
        """End what was started, the jobs first."""
        self.ask("scancel", "--user=root")
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        # Of a lost node: slurmd and slurmstepd were killed, and what they had started lives on.
        left = self.processes()
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, 10)

    def processes(self) -> list[psutil.Process]:
        """All that runs on this cluster, daemons included: the environment names it."""
        found, mine = [], f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        for process in psutil.process_iter():
            # Not process.environ(): slurmstepd writes its title over the beginning.
            with suppress(OSError):
                if mine in Path(f"/proc/{process.pid}/environ").read_bytes():
                    found.append(process)
        return found

    def submit(self, *words: str, cwd: Path) -> "Job":
        """Hand a job in."""
        return Job(self, self.run("sbatch", "--parsable", *words, cwd=cwd).strip(), cwd)

    def job(self, number: str, cwd: Path) -> "Job":
        """A job, or a task of an array, by its number."""
        return Job(self, number, cwd)

    def batch(self, *words: str, cwd: Path) -> "Job":
        """Hand in a dhsk command with the batch script, on two nodes with a worker each."""
        script = str(SCRIPTS / "dhsk.sbatch")
        return self.submit("--ntasks-per-node=1", "--mem-per-cpu=1500", script, *words, cwd=cwd)

    def long_job(self, cwd: Path) -> "Job":
        """A job with some tiles done, and minutes of them to do."""
        self.make_counts(cwd, 8000)
        job = self.batch("gram", "counts.npy", "--out", "slurm.gram", "--tile", "64", cwd=cwd)
        self.await_tiles(cwd / "slurm.gram", 20)
        return job

    def jobs_of(self, folder: Path, states: str = "R") -> set[str]:
        """Numbers of the running jobs, or of others, that were submitted in a folder."""
        text = self.run("squeue", "--noheader", f"--states={states}", "--format=%i %Z")
        lines = (line.split() for line in text.splitlines())
        return {number for number, where in lines if Path(where) == folder}

    @staticmethod
    def make_recipe(folder: Path) -> None:
        """Write the client's two files, with jobs that fit the nodes of the test."""
        shutil.copy(SCRIPTS / "client.py", folder)
        text = (SCRIPTS / "cluster.toml").read_text()
        for name, value in SMALL.items():
            text, found = re.subn(rf"(?m)^{name} = \S+", f"{name} = {value}", text)
            assert found == 1
        (folder / "cluster.toml").write_text(text)

    @staticmethod
    def make_counts(folder: Path, n: int = 4000) -> Path:
        """Write n samples of 20 counts, and their labels."""
        rng = np.random.default_rng(0)
        np.save(folder / "counts.npy", rng.poisson(2.0, size=(n, 20)) + 1.0)
        np.savetxt(folder / "labels.txt", rng.integers(3, size=n), fmt="%d")
        return folder / "counts.npy"

    @staticmethod
    def verify(store: Path) -> subprocess.CompletedProcess[str]:
        """What `dhsk verify` says of a store."""
        words = [sys.executable, "-m", "dhsk", "verify", str(store)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    outcome_of = staticmethod(outcome_of)
    local = staticmethod(local)
    await_that = staticmethod(await_that)

    @staticmethod
    def tiles_of(store: Path) -> dict[str, int]:
        """Times at which the finished tiles of a store were written."""
        found = (store / "gram" / "c").glob("*/*")
        return {
            f"{t.parent.name}/{t.name}": t.stat().st_mtime_ns for t in found if t.name.isdigit()
        }

    def await_tiles(self, store: Path, count: int) -> None:
        """Wait until a store has some tiles."""
        await_that(lambda: len(self.tiles_of(store)) >= count, f"{count} tiles")

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """What a command of Slurm prints; it must succeed."""
        done = subprocess.run(
            command, env=self.environment, cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def ask(self, *command: str) -> str:
        """Like `_run`, for a cluster that may not answer."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def _daemon(self, *command: str, name: str = "") -> None:
        with (self.folder / "daemons.log").open("ab") as log:
            self.daemons[name or command[0]] = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log
            )

    def _wait_for(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = monotonic() + START_SECONDS
        while not ready():
            ended = [daemon.args for daemon in self.daemons.values() if daemon.poll() is not None]
            if ended or monotonic() > deadline:
                log = (self.folder / "daemons.log").read_text()[-3000:]
                raise AssertionError(f"no {what}; ended: {ended}\n{log}")
            sleep(0.1)


@dataclass
class Job:
    """A job, and the folder in which it was submitted."""

    slurm: Slurm
    number: str
    cwd: Path

    def shown(self) -> dict[str, str]:
        """What Slurm says about it."""
        text = self.slurm.run("scontrol", "show", "job", self.number)
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def finish(self, seconds: float = JOB_SECONDS) -> tuple[str, int]:
        """Wait for its end, without pauses of minutes after a requeue; its state and exit code."""

        def ended() -> dict[str, str] | None:
            shown = self.shown()
            if shown["JobState"] == "PENDING" and shown["Reason"] == "BeginTime":
                self.start_now()
            return None if shown["JobState"] in ALIVE else shown

        # Every look starts a process of Slurm.
        shown = await_that(ended, f"end of job {self.number}", seconds, pause=0.5)
        return shown["JobState"], int(shown["ExitCode"].partition(":")[0])

    def suffer(self, fault: str, rng: np.random.Generator) -> str:
        """Have a worker killed, a node lost and back, or the job requeued; what happened."""
        if fault == "requeue":
            self.requeue()
            return "requeued"
        if fault == "node":
            return self.slurm.blink(rng)
        workers = self.processes("worker")
        worker = workers[rng.integers(len(workers))]
        line = worker.cmdline()
        worker.kill()
        return f"killed worker {line[line.index('--name') + 1]}"

    def has_ended(self) -> bool:
        """Whether it, and every task if it is an array, neither runs nor waits any more."""
        return not self.slurm.run("squeue", "--noheader", f"--jobs={self.number}")

    @property
    def log(self) -> str:
        """What it has printed."""
        return (self.cwd / f"dhsk-{self.number}.out").read_text()

    def terminate(self) -> None:
        """Tell the batch script to end, as Slurm does before the time limit."""
        self.slurm.run("scancel", "--batch", "--signal=TERM", self.number)

    def cancel(self) -> None:
        """End the job by force, as a user does."""
        self.slurm.run("scancel", self.number)

    def requeue(self) -> None:
        """Make Slurm start the job anew, without its pause of two minutes."""
        self.slurm.run("scontrol", "requeue", self.number)
        await_that(lambda: self.shown()["JobState"] == "PENDING", "requeued job")
        self.start_now()

    def start_now(self) -> None:
        """Start a job that was requeued without the pause of two minutes."""
        sleep(2)  # a node refuses a job that starts in the second in which it was killed
        self.slurm.ask("scontrol", "update", f"jobid={self.number}", "StartTime=now")

    def credentials(self, start: int = 0) -> Path:
        """Folder of its certificate and scheduler file."""
        return self.cwd / f".dhsk-{self.number}-{start}"

    def processes(self, kind: str = "worker") -> list[psutil.Process]:
        """Its processes of Dask, of a kind: scheduler or worker."""
        found = psutil.process_iter(["cmdline"])
        lines = [(process, process.info["cmdline"] or []) for process in found]
        own = f"{self.cwd}/.dhsk-{self.number}-"
        return [
            process
            for process, line in lines
            if kind in line and any(word.startswith(own) for word in line)
        ]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports
