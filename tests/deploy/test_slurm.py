"""The batch script for Slurm: its text, and real jobs on two nodes where Slurm is installed."""

import os
import re
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest

import dhsk

if TYPE_CHECKING:
    from conftest import Slurm

FOLDER = Path(__file__).parents[2] / "deploy" / "slurm"
SCRIPT = FOLDER / "dhsk.sbatch"
TEXT = SCRIPT.read_text()
CODE = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#"))
DIRECTIVES = re.findall(r"^#SBATCH (\S+)", TEXT, re.MULTILINE)

TWO_WORKERS = ("--ntasks-per-node=1", "--mem-per-cpu=1500", str(SCRIPT))


def run_script(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script without Slurm, as far as it goes."""
    return subprocess.run(
        ["/bin/bash", str(SCRIPT), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_is_valid_bash() -> None:
    """Bash can parse the script."""
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)


@pytest.mark.parametrize(
    "directive",
    [
        "--nodes=2",
        "--ntasks-per-node=4",
        "--cpus-per-task=1",
        "--mem-per-cpu=2G",
        "--signal=B:TERM@60",
        "--requeue",
        "--open-mode=append",
    ],
)
def test_directive_is_there(directive: str) -> None:
    """The script asks Slurm for one CPU a worker, for a warning, and to be started anew."""
    assert directive in DIRECTIVES


@pytest.mark.parametrize("absent", ["--mem=", "--exclusive", "--account", "--partition", "--array"])
def test_directive_is_absent(absent: str) -> None:
    """No directive binds to one site, and none excludes an option that a user may give."""
    assert not [d for d in DIRECTIVES if d.startswith(absent)]


@pytest.mark.parametrize(
    "option",
    [
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--overlap",
        "--no-dashboard --dashboard-address 127.0.0.1:0",
        "--nthreads 1",
        "--memory-limit",
        "--local-directory",
        '--cluster "$scheduler_file"',
        "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1",
        "set -euo pipefail",
    ],
)
def test_option_is_there(option: str) -> None:
    """Workers outlive each other, hold one thread, and show no dashboard to the network."""
    assert option in CODE


@pytest.mark.parametrize("absent", ["0.0.0.0", "[::]", "--jupyter", "eval ", "--port 8786"])
def test_option_is_absent(absent: str) -> None:
    """Nothing listens on all interfaces or on a port that two jobs would share."""
    assert absent not in CODE


def test_variables_are_documented() -> None:
    """The README names the variables that the script reads, and no other."""
    readme = (FOLDER / "README.md").read_text()
    assert set(re.findall(r"DHSK_[A-Z_]+", TEXT)) == set(re.findall(r"DHSK_[A-Z_]+", readme))


def test_no_command_is_bad_usage() -> None:
    """Without a command the job ends with exit code 2 and says how to submit."""
    done = run_script(PATH=os.environ["PATH"])
    assert done.returncode == 2
    assert "no command: sbatch dhsk.sbatch gram" in done.stderr


def test_no_dhsk_is_bad_usage() -> None:
    """Without dhsk on the PATH the job ends with exit code 2 and names the variable to set."""
    done = run_script("gram", "x.npy", PATH="/nonexistent")
    assert done.returncode == 2
    assert "set DHSK_VENV" in done.stderr


def test_too_little_memory_is_bad_usage(tmp_path: Path) -> None:
    """A node too small for its workers is refused with the numbers."""
    (tmp_path / "dhsk").touch(mode=0o755)
    done = run_script(
        "gram",
        PATH=str(tmp_path),
        SLURM_MEM_PER_CPU="300",
        SLURM_CPUS_ON_NODE="4",
        SLURM_NTASKS_PER_NODE="4",
    )
    assert done.returncode == 2
    assert "1200 MiB for 4 workers a node are too few" in done.stderr


def make_counts(folder: Path, n: int) -> Path:
    """Write n samples of 20 counts."""
    counts = np.random.default_rng(0).poisson(2.0, size=(n, 20)) + 1.0
    np.save(folder / "counts.npy", counts)
    return folder / "counts.npy"


def files_of(store: Path) -> dict[str, bytes]:
    """Content of every file of a store, by relative name."""
    return {str(f.relative_to(store)): f.read_bytes() for f in store.rglob("*") if f.is_file()}


def await_tiles(store: Path, count: int) -> None:
    """Wait until a job has finished some tiles."""
    deadline = monotonic() + 30
    while len(tiles_of(store)) < count:
        assert monotonic() < deadline, f"no {count} tiles after 30 s"
        sleep(0.05)


def tiles_of(store: Path) -> dict[str, int]:
    """Times at which the finished tiles were written."""
    found = (store / "gram" / "c").glob("*/*")
    return {f"{t.parent.name}/{t.name}": t.stat().st_mtime_ns for t in found if t.name.isdigit()}


def listeners(folder: Path) -> set[str]:
    """Addresses on which the dask processes of a job's folder listen."""
    return {
        connection.laddr.ip
        for process in psutil.process_iter(["cmdline"])
        if f"{folder}/dhsk-" in " ".join(process.info["cmdline"] or []) and "dask" in process.name()
        for connection in process.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.slow
def test_job_equals_local(slurm: "Slurm", tmp_path: Path) -> None:
    """A job on two nodes writes the same bytes as this process, and leaves only store and log."""
    counts = make_counts(tmp_path, 500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--time-scale", "1", "--tile", "64")
    job = slurm.submit(*TWO_WORKERS, *words, cwd=tmp_path)
    state = slurm.finish(job)
    log = (tmp_path / f"dhsk-{job}.out").read_text()
    assert state == ("COMPLETED", 0), log
    assert "2 of 2 workers on 2 node(s)" in log
    kernel = dhsk.HeatKernel.at_scale(dim=20, time_scale=1.0)
    local = dhsk.compute_gram(counts, kernel, store=tmp_path / "local.gram", tile=64)
    assert files_of(tmp_path / "slurm.gram") == files_of(tmp_path / "local.gram")
    assert np.array_equal(dhsk.open_gram(tmp_path / "slurm.gram")[:, :], local[:, :])
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"counts.npy", "slurm.gram", "local.gram", f"dhsk-{job}.out"}


@pytest.mark.slow
def test_job_interrupted_resumes(slurm: "Slurm", tmp_path: Path) -> None:
    """A job that Slurm ends early ends with 130; the same line computes the missing tiles only.

    On the way: nothing of the job listens on all interfaces.
    """
    counts = make_counts(tmp_path, 2500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--tile", "64")
    job = slurm.submit(*TWO_WORKERS, *words, cwd=tmp_path)
    await_tiles(tmp_path / "slurm.gram", 20)
    heard = listeners(tmp_path)
    slurm.terminate(job)
    state = slurm.finish(job)
    log = (tmp_path / f"dhsk-{job}.out").read_text()
    assert state == ("FAILED", 130), log
    assert "run the same command again" in log
    assert heard == {"127.0.0.1"}  # the address of both nodes here
    before = tiles_of(tmp_path / "slurm.gram")
    again = slurm.submit(*TWO_WORKERS, *words, cwd=tmp_path)
    assert slurm.finish(again) == ("COMPLETED", 0)
    after = tiles_of(tmp_path / "slurm.gram")
    assert len(before) < len(after)
    assert before.items() <= after.items()
    assert dhsk.open_gram(tmp_path / "slurm.gram").verify() == len(after)


@pytest.mark.slow
def test_job_with_bad_input_fails(slurm: "Slurm", tmp_path: Path) -> None:
    """The exit code of the job is that of the command: 2 for a file that is not there."""
    job = slurm.submit(*TWO_WORKERS, "gram", "none.npz", "--out", "x.gram", cwd=tmp_path)
    assert slurm.finish(job) == ("FAILED", 2)
    assert "none.npz" in (tmp_path / f"dhsk-{job}.out").read_text()
