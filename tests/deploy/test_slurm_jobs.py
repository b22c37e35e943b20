"""Real jobs of the batch script on two Slurm nodes: the results of one process, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slurm_nodes import Job, Slurm

import dhsk

PREPARE = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_job_equals_local(slurm: Slurm, tmp_path: Path) -> None:
    """A job on two nodes writes the same bytes as this process, and leaves only store and log."""
    counts = slurm.make_counts(tmp_path, 500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--time-scale", "1", "--tile", "64")
    job = slurm.batch(*words, cwd=tmp_path)
    state = job.finish()
    assert state == ("COMPLETED", 0), job.log
    assert "2 of 2 workers on 2 node(s)" in job.log
    assert "forcing job termination" not in job.log
    assert "Killed" not in job.log
    kernel = dhsk.HeatKernel.at_scale(dim=20, time_scale=1.0)
    local = dhsk.compute_gram(counts, kernel, store=tmp_path / "local.gram", tile=64)
    assert slurm.outcome_of(tmp_path / "slurm.gram") == slurm.outcome_of(tmp_path / "local.gram")
    assert np.array_equal(dhsk.open_gram(tmp_path / "slurm.gram")[:, :], local[:, :])
    left = {entry.name for entry in tmp_path.iterdir()}
    assert left == {
        "counts.npy",
        "labels.txt",
        "slurm.gram",
        "local.gram",
        f"dhsk-{job.number}.out",
    }


def test_results_equal_local(slurm: Slurm, tmp_path: Path) -> None:
    """Matrix, cross-validation and low-rank model are those of one worker, bit for bit.

    Of the WebKB pages where they are, else of counts drawn at random.
    """
    data = os.environ.get("DHSK_DATA")
    if data:
        prepare = [sys.executable, PREPARE, "--data", data, "--out", tmp_path]
        subprocess.run(prepare, check=True, capture_output=True)
        samples = "counts.npz"
    else:
        samples = slurm.make_counts(tmp_path, 900).name
    of = "--labels", "labels.txt"
    matrix = ("gram", samples, "--kernel", "cosine", "--tile", "700")
    validation = ("cv", "slurm.gram", *of, "--time-scale", "1,1.4", "--C", "1,10")
    training = ("train", samples, *of, "--rank", "200")

    def check(job: Job, words: tuple[str, ...], out: str) -> None:
        expected = slurm.local(*words, cwd=tmp_path, out=f"local-{out}")  # while the job runs
        assert job.finish() == ("COMPLETED", 0), job.log
        assert slurm.outcome_of(tmp_path / out) == expected

    first = slurm.batch(*matrix, "--out", "slurm.gram", cwd=tmp_path)
    beside = slurm.batch(*training, "--out", "model.npz", cwd=tmp_path)
    check(first, matrix, "slurm.gram")
    second = slurm.batch(*validation, "--out", "cv", cwd=tmp_path)
    check(beside, training, "model.npz")
    check(second, validation, "cv")


def test_job_interrupted_resumes(slurm: Slurm, tmp_path: Path) -> None:
    """A job that Slurm ends early ends with 130; the same line computes the missing tiles only."""
    counts = slurm.make_counts(tmp_path, 2500)
    words = ("gram", counts.name, "--out", "slurm.gram", "--tile", "64")
    job = slurm.batch(*words, cwd=tmp_path)
    slurm.await_tiles(tmp_path / "slurm.gram", 20)
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


def test_job_with_bad_input_fails(slurm: Slurm, tmp_path: Path) -> None:
    """The exit code of the job is that of the command: 2 for a file that is not there."""
    job = slurm.batch("gram", "none.npz", "--out", "x.gram", cwd=tmp_path)
    assert job.finish() == ("FAILED", 2)
    assert "none.npz" in job.log
