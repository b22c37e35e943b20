"""Real jobs of the batch script on two Slurm nodes: the results of one process, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.sparse import load_npz, save_npz
from slurm_nodes import Job, Slurm

import dhsk

PREPARE = Path(__file__).parents[2] / "examples" / "webkb" / "prepare.py"

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_results_equal_local(slurm: Slurm, tmp_path: Path) -> None:
    """Matrix, cross-validation and low-rank model are those of one worker, bit for bit.

    Of a quarter of the WebKB pages where they are, else of counts drawn at random. Each job has
    both nodes, and leaves only its result and its log.
    """
    data = os.environ.get("DHSK_DATA")
    if data:
        prepare = [sys.executable, PREPARE, "--data", data, "--out", tmp_path]
        subprocess.run(prepare, check=True, capture_output=True)
        samples = "counts.npz"
        save_npz(tmp_path / samples, load_npz(tmp_path / samples)[::4])
        labels = (tmp_path / "labels.txt").read_text().splitlines(keepends=True)
        (tmp_path / "labels.txt").write_text("".join(labels[::4]))
    else:
        samples = slurm.make_counts(tmp_path, 900).name
    before = {entry.name for entry in tmp_path.iterdir()}
    of = "--labels", "labels.txt"
    matrix = ("gram", samples, "--kernel", "cosine", "--tile", "200")
    validation = ("cv", "slurm.gram", *of, "--time-scale", "1,1.4", "--C", "1,10")
    training = ("train", samples, *of, "--rank", "200")
    left = set()

    def check(job: Job, words: tuple[str, ...], out: str) -> None:
        expected = slurm.local(*words, cwd=tmp_path, out=f"local-{out}")  # while the job runs
        assert job.finish() == ("COMPLETED", 0), job.log
        assert "2 of 2 workers on 2 node(s)" in job.log
        assert "forcing job termination" not in job.log
        assert "Killed" not in job.log
        assert slurm.outcome_of(tmp_path / out) == expected
        left.update((out, f"local-{out}", f"dhsk-{job.number}.out"))

    first = slurm.batch(*matrix, "--out", "slurm.gram", cwd=tmp_path)
    beside = slurm.batch(*training, "--out", "model.npz", cwd=tmp_path)
    check(first, matrix, "slurm.gram")
    second = slurm.batch(*validation, "--out", "cv", cwd=tmp_path)
    check(beside, training, "model.npz")
    check(second, validation, "cv")
    assert {entry.name for entry in tmp_path.iterdir()} - before == left


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
