"""The batch script for Slurm: its text, and what it says where it cannot run."""

import os
import re
import subprocess
from pathlib import Path

import pytest

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
