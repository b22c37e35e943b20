"""The batch script for Slurm: its text, and what it says where it cannot run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from time import sleep

import psutil
import pytest
from slurm_nodes import await_that

FOLDER = Path(__file__).parents[2] / "deploy" / "slurm"
SCRIPT = FOLDER / "dhsk.sbatch"
TEXT = SCRIPT.read_text()
CODE = "\n".join(line for line in TEXT.splitlines() if not line.startswith("#"))
DIRECTIVES = re.findall(r"^#SBATCH (\S+)", TEXT, re.MULTILINE)


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
    """The README names the variables that the scripts read, and no other."""
    readme = (FOLDER / "README.md").read_text()
    text = TEXT + (FOLDER / "dhsk-array.sbatch").read_text()
    assert set(re.findall(r"DHSK_[A-Z_]+", text)) == set(re.findall(r"DHSK_[A-Z_]+", readme))


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
    for program in ("dhsk", "dask"):
        (tmp_path / program).touch(mode=0o755)
    done = run_script(
        "gram",
        PATH=str(tmp_path),
        SLURM_MEM_PER_CPU="300",
        SLURM_CPUS_ON_NODE="4",
        SLURM_NTASKS_PER_NODE="4",
    )
    assert done.returncode == 2
    assert "1200 MiB for 4 workers a node are too few" in done.stderr


ALLOCATION = {
    "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "1", "SLURM_JOB_NUM_NODES": "1",
    "SLURM_NTASKS": "1", "SLURM_NTASKS_PER_NODE": "1", "SLURM_CPUS_PER_TASK": "1",
    "SLURM_CPUS_ON_NODE": "1", "SLURM_MEM_PER_CPU": "2000",
}  # fmt: skip
STAYS = f"""\
#!{sys.executable}
import signal
signal.signal(signal.SIGINT, signal.SIG_DFL)  # shells ignore it for what they run in the background
signal.pause()
"""


def allocation(folder: Path, **programs: str) -> dict[str, str]:
    """Variables of a job on one node, with programs in place of those of Slurm and Dask."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return ALLOCATION | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_waits_for_the_end_of_an_earlier_start(tmp_path: Path) -> None:
    """The folder of an earlier start is there until its command has ended."""
    stays = dict.fromkeys(("dhsk", "dask"), STAYS)
    environment = allocation(tmp_path, **stays, openssl="#!/bin/sh\nexit 1\n")
    earlier = tmp_path / ".dhsk-7-0"
    earlier.mkdir()
    words = ["/bin/bash", str(SCRIPT), "gram"]
    with subprocess.Popen(words, env=environment, cwd=tmp_path, stderr=subprocess.PIPE) as script:
        sleep(1.5)
        assert script.poll() is None
        assert not list(tmp_path.glob(".dhsk-7-1"))
        earlier.rmdir()
        assert b"openssl made no certificate" in script.communicate(timeout=20)[1]


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True])
def test_an_orphan_leaves_the_next_start_alone(tmp_path: Path, is_lost: bool) -> None:
    """A script whose slurmstepd is gone does not signal the step, which may be of another start."""
    python = "#!/bin/sh\ncase $2 in *SOCK_DGRAM*) echo --host=127.0.0.1;; *) exec dask;; esac\n"
    stays = dict.fromkeys(("dhsk", "dask", "srun"), STAYS)
    environment = allocation(
        tmp_path, **stays, python3=python, scancel="#!/bin/sh\ntouch signalled\n"
    )
    daemon = subprocess.Popen(
        ["/bin/bash", "-c", f"/bin/bash {SCRIPT} gram & wait"], env=environment, cwd=tmp_path
    )
    try:
        await_that(lambda: len(psutil.Process(daemon.pid).children(recursive=True)) >= 5, "start")
        (script,) = psutil.Process(daemon.pid).children()
        begun = [script, *script.children(recursive=True)]
        if is_lost:
            daemon.kill()
        else:
            script.terminate()
        psutil.wait_procs([script], 20)
        assert not script.is_running()
        assert (tmp_path / "signalled").exists() != is_lost
        assert not list(tmp_path.glob(".dhsk-*"))
        await_that(lambda: not any(one.is_running() for one in begun), "end", 10)
    finally:
        daemon.kill()
        daemon.wait()
