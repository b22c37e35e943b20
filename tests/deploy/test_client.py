"""A client that submits workers: client.py and cluster.toml of deploy/slurm on a real Slurm."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import psutil
import pytest
from slurm_nodes import Slurm

import dhsk

pytestmark = [pytest.mark.slow, pytest.mark.real]
pytest.importorskip("dask_jobqueue", reason="worker jobs need dask-jobqueue")


@pytest.fixture
def recipe(slurm: Slurm, tmp_path: Path) -> Path:
    """The recipe's two files, and samples."""
    slurm.make_recipe(tmp_path)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "counts.npy", rng.poisson(2.0, size=(1500, 200)) + 1.0)
    return tmp_path


def start(slurm: Slurm, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a program in a folder where jobs can be submitted."""
    command = subprocess.Popen(
        words, env=slurm.environment | {"OMP_NUM_THREADS": "1"}, cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    STARTED.append(command)
    return command


STARTED: list[subprocess.Popen[str]] = []
"""Programs of the test at work."""


@pytest.fixture(autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """End what a failed test has left."""
    yield
    while STARTED:
        command = STARTED.pop()
        command.kill()
        command.wait()
        if command.stdout is not None:  # also if the test has read it and closed it
            command.stdout.close()


def wait_for(what: str, ready: Any, seconds: float = 150) -> Any:
    """Wait until something is true; its value."""
    deadline = monotonic() + seconds
    while not (found := ready()):
        assert monotonic() < deadline, f"no {what} after {seconds} s"
        sleep(0.1)
    return found


def waiting(slurm: Slurm, recipe: Path) -> set[str]:
    """Jobs that have not begun."""
    return slurm.jobs_of(recipe, "PD")


@contextmanager
def no_job_begins(slurm: Slurm) -> Iterator[None]:
    """Block in which jobs wait."""
    change = ("scontrol", "update", "nodename=ALL", "reason=test")
    slurm.run(*change, "state=drain")
    try:
        yield
    finally:
        slurm.run(*change, "state=resume")


def files_of(store: Path) -> dict[str, bytes]:
    """Content of every file of a store, by relative name."""
    return {str(f.relative_to(store)): f.read_bytes() for f in store.rglob("*") if f.is_file()}


def left_in(folder: Path) -> set[str]:
    """Names in a folder, without the recipe and the jobs' logs."""
    known = {"client.py", "cluster.toml", "counts.npy"}
    names = {entry.name for entry in folder.iterdir()} - known
    return {name for name in names if not name.startswith("dhsk-worker-")}


def test_client_equals_local(slurm: Slurm, recipe: Path) -> None:
    """The recipe's script gives the bytes of this process, and leaves nothing but store and logs.

    On the way: credentials are for their owner only, nothing listens on all interfaces, and a job
    that is cancelled before it begins is submitted again.
    """
    with no_job_begins(slurm):
        client = start(slurm, recipe, sys.executable, "client.py", "counts.npy", "slurm.gram")
        folder = wait_for("credentials", lambda: list(recipe.glob("dhsk-*/tls.key")))[0].parent
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        wait_for("jobs", lambda: len(waiting(slurm, recipe)) == 2)
        first = waiting(slurm, recipe)
        subprocess.run(["scancel", min(first)], env=slurm.environment, check=True)
        wait_for("another job", lambda: waiting(slurm, recipe) - first)
    heard = wait_for("listeners", lambda: listeners(str(recipe)))
    said, _ = client.communicate(timeout=150)
    assert client.returncode == 0, said
    assert "2 workers" in said
    assert "1,500 x 1,500 entries in slurm.gram" in said
    assert heard == {"127.0.0.1"}
    tile = dhsk.open_gram(recipe / "slurm.gram").header.tile
    dhsk.compute_gram(recipe / "counts.npy", "heat", store=recipe / "local.gram", tile=tile)
    assert files_of(recipe / "slurm.gram") == files_of(recipe / "local.gram")
    assert left_in(recipe) == {"slurm.gram", "local.gram"}
    wait_for("end of the jobs", lambda: not slurm.jobs_of(recipe))


def listeners(folder: str) -> set[str]:
    """Addresses on which the workers of a folder, and what they started, listen."""
    found: set[str] = set()
    for process in psutil.process_iter(["cmdline"]):
        if folder in " ".join(process.info["cmdline"] or []) and "python" in process.name():
            for member in (process, *process.children(recursive=True)):
                found |= {
                    connection.laddr.ip
                    for connection in member.net_connections(kind="tcp")
                    if connection.status == psutil.CONN_LISTEN
                }
    return found


def test_a_cancelled_job_is_replaced(slurm: Slurm, recipe: Path) -> None:
    """A worker job that is cancelled halfway is submitted again; the command ends as if not."""
    words = ("gram", "counts.npy", "--out", "slurm.gram", "--tile", "16")
    dhsk_program = str(Path(sys.executable).with_name("dhsk"))
    command = start(slurm, recipe, dhsk_program, *words, "--cluster", "cluster.toml")
    tiles = recipe / "slurm.gram" / "gram" / "c"
    wait_for("tiles", lambda: len(list(tiles.glob("*/*"))) > 50)
    command.send_signal(signal.SIGSTOP)  # the test must not lose the race with the tiles
    before = slurm.jobs_of(recipe)
    subprocess.run(["scancel", min(before)], env=slurm.environment, check=True)
    command.send_signal(signal.SIGCONT)
    new = wait_for("new job", lambda: slurm.jobs_of(recipe) - before)
    said, _ = command.communicate(timeout=120)
    assert command.returncode == 0, said
    assert f"a worker job was lost: job {min(new)} takes its place" in said
    dhsk.compute_gram(recipe / "counts.npy", "heat", store=recipe / "local.gram", tile=16)
    assert files_of(recipe / "slurm.gram") == files_of(recipe / "local.gram")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('partition = "none"', "slurm refuses a worker job: .*invalid partition specified: none"),
        ('setup = ["echo no module; exit 3"]', r"worker job \d+ ended before its workers answered"),
    ],
)
def test_jobs_that_cannot_run(slurm: Slurm, recipe: Path, line: str, message: str) -> None:
    """What the batch system or the job's log says ends the command with code 2, at once."""
    with (recipe / "cluster.toml").open("a") as file:
        file.write(f"{line}\n")
    dhsk_program = str(Path(sys.executable).with_name("dhsk"))
    words = ("gram", "counts.npy", "--out", "x.gram", "--cluster", "cluster.toml")
    command = start(slurm, recipe, dhsk_program, *words)
    said, _ = command.communicate(timeout=30)
    assert command.returncode == 2, said
    assert re.search(message, said)
    assert left_in(recipe) == set()
    assert not slurm.jobs_of(recipe)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupted_command_ends_its_jobs(
    slurm: Slurm, recipe: Path, number: int, hears_interrupts: None
) -> None:
    """Exit code 130 within ten seconds, no job and no credentials left, the store resumable."""
    words = ("gram", "counts.npy", "--out", "slurm.gram", "--tile", "16")
    dhsk_program = str(Path(sys.executable).with_name("dhsk"))
    command = start(slurm, recipe, dhsk_program, *words, "--cluster", "cluster.toml")
    tiles = recipe / "slurm.gram" / "gram" / "c"
    wait_for("tiles", lambda: list(tiles.glob("*/*")))
    command.send_signal(number)
    said, _ = command.communicate(timeout=20)  # 10, and as much for a busy machine
    assert command.returncode == 130, said
    assert "what is finished is kept" in said
    assert left_in(recipe) == {"slurm.gram"}
    wait_for("end of the jobs", lambda: not slurm.jobs_of(recipe), 20)


def test_a_killed_client_takes_its_jobs_along(slurm: Slurm, recipe: Path) -> None:
    """Jobs end with their scheduler, and the next run removes the credentials that are left."""
    words = ("gram", "counts.npy", "--out", "slurm.gram", "--tile", "16")
    dhsk_program = str(Path(sys.executable).with_name("dhsk"))
    command = start(slurm, recipe, dhsk_program, *words, "--cluster", "cluster.toml")
    tiles = recipe / "slurm.gram" / "gram" / "c"
    wait_for("tiles", lambda: list(tiles.glob("*/*")))
    command.kill()
    command.communicate()
    left = next(recipe.glob("dhsk-*/tls.key"))
    wait_for("end of the jobs", lambda: not slurm.jobs_of(recipe))
    command = start(slurm, recipe, dhsk_program, *words, "--cluster", "cluster.toml")
    said, _ = command.communicate(timeout=150)
    assert command.returncode == 0, said
    assert not left.exists()
    assert left_in(recipe) == {"slurm.gram"}
