"""Jobs that lose parts finish all the same, with the bits of one process."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import dhsk

if TYPE_CHECKING:
    from slurm_nodes import Slurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_killed_worker_is_replaced(slurm: "Slurm", tmp_path: Path) -> None:
    """In place of a killed worker its node starts another one, and the job goes on."""
    counts = slurm.make_counts(tmp_path, 3000)
    words = ("gram", counts.name, "--out", "slurm.gram", "--tile", "64")
    job = slurm.batch(*words, cwd=tmp_path)
    job.await_tiles(tmp_path / "slurm.gram", 20)
    killed = job.processes("worker")
    assert len(killed) == 2
    killed[0].kill()
    slurm.await_that(lambda: len(set(job.processes("worker")) - {killed[0]}) == 2, "new worker")
    assert job.finish() == ("COMPLETED", 0), job.log
    assert "has ended (code 137)" in job.log
    local = dhsk.compute_gram(counts, "heat", tile=64)
    assert np.array_equal(dhsk.open_gram(tmp_path / "slurm.gram")[:, :], local[:, :])


@pytest.mark.parametrize("fault", ["node", "requeue"])
def test_restarted_job_resumes(slurm: "Slurm", tmp_path: Path, fault: str) -> None:
    """A job that loses a node, or is preempted, goes on from its tiles when Slurm restarts it."""
    slurm.make_counts(tmp_path, 4000)
    words = ("gram", "counts.npy", "--tile", "64")
    rng = np.random.default_rng(16)
    job = slurm.batch(*words, "--out", "slurm.gram", cwd=tmp_path)
    job.await_tiles(tmp_path / "slurm.gram", int(rng.integers(20, 400)))
    before = slurm.tiles_of(tmp_path / "slurm.gram")
    job.suffer(fault, rng)
    assert job.finish() == ("COMPLETED", 0), job.log
    assert job.shown()["Restarts"] == "1"
    assert before.items() <= slurm.tiles_of(tmp_path / "slurm.gram").items()
    expected = slurm.local(*words, cwd=tmp_path, out="local.gram")
    assert slurm.outcome_of(tmp_path / "slurm.gram") == expected
    assert not list(tmp_path.glob(".dhsk-*"))
