"""What a container or a batch job allows is the default where it is less than the machine has."""

from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

import dhsk
from dhsk.commands.cli import commands
from dhsk.execution.health import workers_of
from dhsk.execution.limits import core_count, memory_limit, own_room
from dhsk.execution.workers import borrow_client, resources_of

TOTAL = psutil.virtual_memory().total

NONE_V1 = 9223372036854771712
"""What a control group of version 1 says that has no limit."""


def limit(tmp_path: Path, groups: str, files: dict[str, str], **environment: str) -> int:
    """Limit under made-up control groups."""
    (tmp_path / "cgroup").write_text(groups)
    for name, content in files.items():
        path = tmp_path / "fs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return memory_limit(environment, tmp_path / "cgroup", tmp_path / "fs")


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"memory.max": "300000000\n"}, 300_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "2000000\n"}, 2_000_000),
        ("0::/a\n", {"a/memory.max": "max\n", "a/memory.high": "1000000\n"}, 1_000_000),
        ("0::/of/the/host\n", {"memory.max": "5000000\n"}, 5_000_000),
        ("0::/a\n", {"unified/a/memory.max": "7000000\n"}, 7_000_000),
        ("0::/../other\n", {"memory.max": "4000000\n"}, 4_000_000),
        (
            "4:cpu,memory:/job/step\n1:cpu:/job\n0::/\n",
            {
                "memory/job/step/memory.limit_in_bytes": f"{NONE_V1}\n",
                "memory/job/memory.limit_in_bytes": "800000000\n",
                "cpu/job/memory.limit_in_bytes": "1\n",
            },
            800_000_000,
        ),
        ("4:memory:/docker/abc\n", {"memory/memory.limit_in_bytes": "900000000\n"}, 900_000_000),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": f"{NONE_V1}\n"}, None),
        ("0::/a\n", {"a/memory.max": "max\n"}, None),
        ("", {}, None),
    ],
    ids=[
        "v2 in its namespace", "v2 by a group around it", "v2 throttled", "v2 path of the host",
        "v2 beside v1", "v2 outside the namespace", "v1", "v1 path of the host", "v1 without",
        "v2 without", "no groups",
    ],
)  # fmt: skip
def test_least_limit_of_control_groups(
    tmp_path: Path, groups: str, files: dict[str, str], expected: int | None
) -> None:
    """Of all groups that a process is in, the least counts; without a limit the machine does."""
    assert limit(tmp_path, groups, files) == (TOTAL if expected is None else expected)


@pytest.mark.parametrize(
    ("environment", "mebibytes"),
    [
        ({"SLURM_MEM_PER_NODE": "512"}, 512),
        ({"SLURM_MEM_PER_CPU": "100", "SLURM_CPUS_ON_NODE": "3"}, 300),
        ({"SLURM_MEM_PER_CPU": "100"}, None),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_NODE": "lots"}, None),
        ({"SLURM_MEM_PER_NODE": "999999999"}, None),
    ],
    ids=["node", "processors", "processors unknown", "all", "no number", "more than there is"],
)
def test_least_limit_of_slurm(
    tmp_path: Path, environment: dict[str, str], mebibytes: int | None
) -> None:
    """What a job asked for is what it may take."""
    found = limit(tmp_path, "", {}, **environment)
    assert found == (TOTAL if mebibytes is None else mebibytes * 2**20)


def test_limit_of_this_process() -> None:
    """Real files: at most the memory of the machine, and not nothing."""
    assert 2**20 < memory_limit() <= TOTAL
    assert 1 <= core_count() <= (psutil.cpu_count() or 1)


@pytest.mark.slow
def test_clusters_and_fits_here_take_the_limit_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes of a local cluster together, and this one alone, without a number given."""
    allowed = 1500 * 2**20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "1500")
    with dhsk.connect("local", n_workers=2) as client:
        assert resources_of(client).memory <= allowed
        limits = [worker["memory_limit"] for worker in workers_of(client).values()]
    assert limits == [allowed // 2] * 2
    with borrow_client(None) as own:
        assert resources_of(own).memory == allowed
    assert own_room(None) <= allowed


@pytest.mark.slow
def test_plan_takes_the_limit_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of the commands, without --memory."""
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "777")
    np.save(tmp_path / "x.npy", np.ones((10, 3)))
    done = CliRunner().invoke(commands, ["plan", str(tmp_path / "x.npy"), "--workers", "1"])
    assert "777.00 MiB allowed" in " ".join(done.output.split())
