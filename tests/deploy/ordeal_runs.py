"""A dhsk command by each recipe of deploy/slurm, at work on Slurm, and the faults it may suffer."""

import re
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
from slurm_nodes import SCRIPTS, Slurm, await_that

PATIENCE_SECONDS = 300
TASKS = 4


@dataclass
class Run(ABC):
    """A command that writes to `out`, in a folder that holds its inputs."""

    slurm: Slurm
    folder: Path
    words: tuple[str, ...]
    out: str
    inputs: set[str] = field(init=False)

    faults: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        self.inputs = {entry.name for entry in self.folder.iterdir()}

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command, with its output."""
        return (*self.words, "--out", self.out)

    @property
    def files(self) -> int:
        """Number of files that the command has written so far: tiles, samples, checkpoints."""
        made = [entry for entry in self.folder.iterdir() if not self._is_known(entry.name)]
        return sum(entry.is_file() or len([*entry.rglob("*")]) for entry in made)

    def _is_known(self, name: str) -> bool:
        """Whether a file is no work of the command: inputs, logs, credentials."""
        return name in self.inputs or name.startswith((".dhsk-", "dhsk-"))

    @abstractmethod
    def start(self) -> None:
        """Hand the command in."""

    @abstractmethod
    def is_at_work(self) -> bool:
        """Whether a fault would now hit work."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether nothing of it runs or waits any more."""

    @abstractmethod
    def suffer(self, fault: str, rng: np.random.Generator) -> str:
        """Let one of the faults happen; what was hit."""

    @abstractmethod
    def finish(self) -> str:
        """Wait for the end, which must be a good one; what is worth saying about it."""

    def left(self) -> set[str]:
        """Names of files that should not be there after the end."""
        names = {entry.name for entry in self.folder.iterdir()} - self.inputs - {self.out}
        return {name for name in names if not re.fullmatch(r"dhsk-.*(out|err)", name)}


class BatchRun(Run):
    """By `dhsk.sbatch`, on two nodes with a worker each."""

    faults = ("worker", "node", "requeue")

    def start(self) -> None:
        """Submit the job."""
        self.job = self.slurm.batch(*self.command, cwd=self.folder)

    def is_at_work(self) -> bool:
        """Whether the command runs, has workers, and has written something."""
        return bool(self.files and self.job.processes("--cluster") and self.job.processes())

    def has_ended(self) -> bool:
        """Whether the job has."""
        return self.job.has_ended()

    def suffer(self, fault: str, rng: np.random.Generator) -> str:
        """Kill a worker, lose a node, or requeue the job."""
        return self.job.suffer(fault, rng)

    def finish(self) -> str:
        """Wait for the job."""
        assert self.job.finish(PATIENCE_SECONDS) == ("COMPLETED", 0), self.job.log
        return f"{self.job.shown()['Restarts']} restarts"


class ArrayRun(Run):
    """By `dhsk-array.sbatch`, a task a part, and then a job that does the rest."""

    faults = ("task", "node", "requeue")
    cancelled = ""

    def start(self) -> None:
        """Submit the array."""
        script = str(SCRIPTS / "dhsk-array.sbatch")
        options = f"--array=1-{TASKS}", "--cpus-per-task=1", "--mem-per-cpu=900", script
        self.array = self.slurm.submit(*options, *self.command, cwd=self.folder)

    @property
    def running(self) -> list[str]:
        """Numbers of the tasks that run."""
        words = "squeue", "--noheader", "--array", "--states=R", "--format=%i"
        return self.slurm.run(*words, f"--jobs={self.array.number}").split()

    def is_at_work(self) -> bool:
        """Whether a task runs and tiles are there."""
        return bool(self.slurm.tiles_of(self.folder / self.out) and self.running)

    def has_ended(self) -> bool:
        """Whether all tasks have."""
        return self.array.has_ended()

    def suffer(self, fault: str, rng: np.random.Generator) -> str:
        """Cancel a task, lose a node, or requeue a task."""
        if fault == "node":
            return self.slurm.blink(rng)
        task = str(rng.choice(self.running))
        if fault == "requeue":
            self.slurm.run("scontrol", "requeue", task)
            return f"requeued task {task}"
        self.slurm.run("scancel", task)
        self.cancelled = task
        return f"cancelled task {task}"

    def finish(self) -> str:
        """Wait for the tasks, then have the rest done."""
        restarts = 0
        for number in range(1, TASKS + 1):
            task = self.slurm.job(f"{self.array.number}_{number}", self.folder)
            end = task.finish(PATIENCE_SECONDS)
            assert end[0] == ("CANCELLED" if task.number == self.cancelled else "COMPLETED"), (
                task.number, end, task.log,
            )  # fmt: skip
            restarts += int(task.shown()["Restarts"])
        before = len(self.slurm.tiles_of(self.folder / self.out))
        rest = self.slurm.batch(*self.command, cwd=self.folder)
        assert rest.finish(PATIENCE_SECONDS) == ("COMPLETED", 0), rest.log
        count = len(self.slurm.tiles_of(self.folder / self.out)) - before
        return f"{restarts} restarts, {count} tiles by the last job"


class ClientRun(Run):
    """By a client that submits two jobs of a worker each, described by `cluster.toml`."""

    faults = ("worker", "node")

    def __post_init__(self) -> None:
        self.slurm.make_recipe(self.folder)
        super().__post_init__()

    def start(self) -> None:
        """Start the client, which submits its jobs."""
        dhsk = str(Path(sys.executable).with_name("dhsk"))
        with (self.folder / "dhsk-client.out").open("w") as log:
            self.client = subprocess.Popen(
                [dhsk, *self.command, "--cluster", "cluster.toml"],
                env=self.slurm.environment | {"OMP_NUM_THREADS": "1"},
                cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip

    def is_at_work(self) -> bool:
        """Whether the client runs, has jobs, and has written something."""
        return bool(not self.has_ended() and self.files and self.slurm.jobs_of(self.folder))

    def has_ended(self) -> bool:
        """Whether the client has."""
        return self.client.poll() is not None

    def suffer(self, fault: str, rng: np.random.Generator) -> str:
        """Cancel a worker job, or lose a node."""
        if fault == "node":
            return self.slurm.blink(rng)
        job = str(rng.choice(sorted(self.slurm.jobs_of(self.folder))))
        self.slurm.run("scancel", job)
        return f"cancelled worker job {job}"

    def finish(self) -> str:
        """Wait for the client, and for the end of its jobs."""
        try:
            code = self.client.wait(PATIENCE_SECONDS)
        finally:
            self.client.kill()
            self.client.wait()
        log = (self.folder / "dhsk-client.out").read_text()
        assert code == 0, log
        await_that(lambda: not self.slurm.jobs_of(self.folder), "end of the worker jobs")
        return f"{log.count('takes its place')} jobs anew"


RECIPES: dict[str, type[Run]] = {"batch": BatchRun, "array": ArrayRun, "client": ClientRun}
