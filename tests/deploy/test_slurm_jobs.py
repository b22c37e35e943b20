"""Real jobs of the batch script on two Slurm nodes: the results of one process, bit for bit."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import dhsk

if TYPE_CHECKING:
    from conftest import Slurm

pytestmark = [pytest.mark.real, pytest.mark.slow]


def files_of(store: Path) -> dict[str, bytes]:
    """Content of every file of a store, by relative name."""
    return {str(f.relative_to(store)): f.read_bytes() for f in store.rglob("*") if f.is_file()}


def test_job_equals_local(slurm: "Slurm", tmp_path: Path) -> None:
    """A job on two nodes writes the same bytes as this process, and leaves only store and log."""
    counts = slurm.make_counts(tmp_path, 500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--time-scale", "1", "--tile", "64")
    job = slurm.batch(*words, cwd=tmp_path)
    state = job.finish()
    assert state == ("COMPLETED", 0), job.log
    assert "2 of 2 workers on 2 node(s)" in job.log
    kernel = dhsk.HeatKernel.at_scale(dim=20, time_scale=1.0)
    local = dhsk.compute_gram(counts, kernel, store=tmp_path / "local.gram", tile=64)
    assert files_of(tmp_path / "slurm.gram") == files_of(tmp_path / "local.gram")
    assert np.array_equal(dhsk.open_gram(tmp_path / "slurm.gram")[:, :], local[:, :])
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {"counts.npy", "slurm.gram", "local.gram", f"dhsk-{job.number}.out"}


def test_job_interrupted_resumes(slurm: "Slurm", tmp_path: Path) -> None:
    """A job that Slurm ends early ends with 130; the same line computes the missing tiles only."""
    counts = slurm.make_counts(tmp_path, 2500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--tile", "64")
    job = slurm.batch(*words, cwd=tmp_path)
    job.await_tiles(tmp_path / "slurm.gram", 20)
    job.terminate()
    state = job.finish()
    assert state == ("FAILED", 130), job.log
    assert "run the same command again" in job.log
    before = slurm.tiles_of(tmp_path / "slurm.gram")
    again = slurm.batch(*words, cwd=tmp_path)
    assert again.finish() == ("COMPLETED", 0)
    after = slurm.tiles_of(tmp_path / "slurm.gram")
    assert len(before) < len(after)
    assert before.items() <= after.items()
    assert dhsk.open_gram(tmp_path / "slurm.gram").verify() == len(after)


def test_job_with_bad_input_fails(slurm: "Slurm", tmp_path: Path) -> None:
    """The exit code of the job is that of the command: 2 for a file that is not there."""
    job = slurm.batch("gram", "none.npz", "--out", "x.gram", cwd=tmp_path)
    assert job.finish() == ("FAILED", 2)
    assert "none.npz" in job.log
