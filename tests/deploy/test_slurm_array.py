"""Array jobs: parts of a Gram matrix by tasks that do not talk to one another."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from slurm_nodes import GRAM, Slurm

SCRIPT = Path(__file__).parents[2] / "deploy" / "slurm" / "dhsk-array.sbatch"
ARRAY = {f"SLURM_ARRAY_TASK_{name}": "2" for name in ("ID", "COUNT", "MAX")}


def test_is_valid_bash() -> None:
    """Bash can parse the script."""
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (["cv"], ARRAY, "gram, train, predict, compare and features have parts"),
        (["gram"], {}, "no array: sbatch --array=1-64"),
        (["gram"], ARRAY, "set DHSK_VENV"),
        (["gram"], {**ARRAY, "SLURM_ARRAY_TASK_COUNT": "1", "PATH": "."}, "set DHSK_PARTS"),
    ],
)
def test_bad_usage(
    words: list[str], environment: dict[str, str], said: str, tmp_path: Path
) -> None:
    """What cannot be meant ends with exit code 2, and the script says how to submit."""
    (tmp_path / "dhsk").touch(mode=0o755)
    done = subprocess.run(
        ["/bin/bash", SCRIPT, *words],
        env={"PATH": "/nonexistent"} | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.real
@pytest.mark.slow
def test_array_makes_the_store(slurm: Slurm, tmp_path: Path, local_gram: dict[str, Any]) -> None:
    """Tasks at once, one of them killed and one requeued, and a last job make the local store."""
    slurm.make_counts(tmp_path)
    options = "--cpus-per-task=1", "--mem-per-cpu=900", str(SCRIPT)
    array = slurm.submit("--array=1-4", *options, *GRAM, "--out", "a.gram", cwd=tmp_path)
    slurm.await_tiles(tmp_path / "a.gram", 40)
    slurm.run("scancel", f"{array.number}_2")
    slurm.run("scontrol", "requeue", f"{array.number}_3")
    for task in (1, 2, 3, 4):
        state = slurm.job(f"{array.number}_{task}", tmp_path).finish()
        assert state[0] == ("CANCELLED" if task == 2 else "COMPLETED")
    before = slurm.tiles_of(tmp_path / "a.gram")
    check = slurm.verify(tmp_path / "a.gram")
    assert check.returncode == 4
    assert "run part 2 of 4 again" in check.stderr

    last = slurm.batch(*GRAM, "--out", "a.gram", cwd=tmp_path)
    assert last.finish() == ("COMPLETED", 0), last.log
    assert before.items() <= slurm.tiles_of(tmp_path / "a.gram").items()
    assert slurm.outcome_of(tmp_path / "a.gram") == local_gram


@pytest.mark.real
@pytest.mark.slow
def test_arrays_train_and_predict(slurm: Slurm, tmp_path: Path) -> None:
    """Tasks make the model of one process, also if one is killed and one requeued meanwhile."""
    slurm.make_counts(tmp_path, 20_000)
    train = ("train", "counts.npy", "--labels", "labels.txt", "--rank", "60", "--time-scale", "1")
    options = "--cpus-per-task=1", "--mem-per-cpu=900", str(SCRIPT)
    array = slurm.submit("--array=1-3", *options, *train, "--out", "m", cwd=tmp_path)
    slurm.await_that(lambda: list((tmp_path / "m.parts").glob("part-2-*.npz")), "second pass")
    slurm.run("scancel", f"{array.number}_2")
    slurm.run("scontrol", "requeue", f"{array.number}_3")
    again = "--export=ALL,DHSK_PARTS=3", "--array=2", *options
    second = slurm.submit(*again, *train, "--out", "m", cwd=tmp_path)
    ended = [slurm.job(f"{array.number}_{task}", tmp_path).finish() for task in (1, 2, 3)]
    assert [state for state, _ in ended] == ["COMPLETED", "CANCELLED", "COMPLETED"]
    assert slurm.job(f"{second.number}_2", tmp_path).finish() == ("COMPLETED", 0)
    one = [sys.executable, "-m", "dhsk", *train, "--out", "one", "--part", "1/1"]
    subprocess.run(one, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "one").read_bytes()
    assert [file.name for file in (tmp_path / "m.parts").iterdir()] == ["ended.npz"]

    predict = "predict", "m", "counts.npy", "--out"
    array = slurm.submit("--array=1-3", *options, *predict, "p.csv", cwd=tmp_path)
    for task in (1, 2, 3):
        assert slurm.job(f"{array.number}_{task}", tmp_path).finish() == ("COMPLETED", 0)
    whole = [sys.executable, "-m", "dhsk", *predict, "whole.csv"]
    subprocess.run(whole, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
