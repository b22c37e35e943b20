"""Commands with --part, which share their work without a scheduler, run as a person runs them."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.execution.array_job import ArrayJob

TRAIN = ["train", "x.npy", "--labels", "y.txt", "--rank", "40", "--time-scale", "0.7", "--C", "10"]
FEATURES = ["features", "x.npy", "--rank", "900", "--oversampling", "1", "--selection", "uniform"]
COMPARE = ["compare", "x.npy", "t.npy", "--permutations", "99"]


@pytest.fixture(autouse=True)
def samples(tmp_path: Path, counts: Any, rng: Any, monkeypatch: Any) -> None:
    """Three classes of counts in files of the current folder."""
    monkeypatch.chdir(tmp_path)
    X, y = counts(9000, 12), rng.integers(0, 3, 9000)
    X[y == 1, :4] += 2
    np.save("x.npy", X)
    np.save("t.npy", X[:2000] + rng.poisson(0.2, (2000, 12)))
    Path("y.txt").write_text("\n".join(map(str, y)) + "\n")


def left(folder: str) -> list[str]:
    """Files of a folder that parts shared."""
    return [file.name for file in Path(folder).iterdir()]


def finished(processes: "list[subprocess.Popen[str]]") -> list[str]:
    """What processes print, all of which end well."""
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


@pytest.mark.slow(seconds=20)
def test_killed_part_of_a_training(run: Any, start: Any, tmp_path: Path) -> None:
    """Processes make the model of one, bit for bit, also if some are killed and begun again."""
    one = ["--out", "one", "--part", "1/1"]
    assert run(*TRAIN, *one)[0] == DONE
    parts = [[*TRAIN, "--out", "m", "--part", f"{number}/3"] for number in (1, 2, 3)]
    processes = [start(tmp_path, words) for words in parts]
    rng = np.random.default_rng(os.getpid())  # other moments in every run
    for killed in (1, 0):
        begin = time.monotonic()
        while not list(Path().glob(f"m.parts/part-[1-9]*-{killed + 1}.npz")):
            assert time.monotonic() - begin < 60
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        os.killpg(processes[killed].pid, signal.SIGKILL)
        processes[killed].communicate(timeout=60)
        processes[killed] = start(tmp_path, parts[killed])
    finished(processes)
    assert Path("m").read_bytes() == Path("one").read_bytes()
    assert left("m.parts") == ["ended.npz"]
    code, out, _ = run(*parts[1])  # killed in its last moment
    assert code == DONE
    assert "all parts have ended before, and made m: to run them again, remove m.parts" in out


@pytest.mark.slow(seconds=30)
def test_killed_part_of_features(run: Any, start: Any, contents: Any, tmp_path: Path) -> None:
    """One is killed while landmarks are looked for, the other one while the store is written."""
    assert run(*FEATURES, "--out", "one", "--part", "1/1")[0] == DONE
    parts = [[*FEATURES, "--out", "f", "--part", f"{number}/2"] for number in (1, 2)]
    processes = [start(tmp_path, words) for words in parts]
    for killed, sign in ((1, "f.parts/part-[1-9]*-2.npz"), (0, "f/c/*/0")):
        begin = time.monotonic()
        while not list(Path().glob(sign)):
            assert time.monotonic() - begin < 60
            time.sleep(0.01)
        os.killpg(processes[killed].pid, signal.SIGKILL)
        processes[killed].communicate(timeout=60)
        processes[killed] = start(tmp_path, parts[killed])
    said = finished(processes)
    assert any("output: f\n" in one for one in said)
    assert contents(Path("f")) == contents(Path("one"))
    assert len(list(Path("f/c").iterdir())) == 5
    assert left("f.parts") == ["ended.npz"]
    code, out, _ = run(*parts[0])
    assert (code, "all parts have ended before, and made f" in out) == (DONE, True)
    code, out, _ = run(*FEATURES, "--out", "f")
    assert (code, "f was complete: nothing was computed" in out) == (DONE, True)


def test_part_of_other_options(run: Any) -> None:
    """A part with another C than an earlier one is refused, and leaves the others alone."""
    assert run(*TRAIN, "--out", "m", "--part", "1/1", "--C", "5")[0] == DONE
    code, _, err = run("predict", "m", "x.npy", "--out", "p.csv", "--part", "1/2")
    assert (code, err) == (DONE, "part 1 of 2 shares its work in p.csv.parts\n")
    code, _, err = run("predict", "m", "x.npy", "--out", "p.csv", "--proba", "--part", "2/2")
    assert code == BAD_INPUT
    code, _, err = run("predict", "m", "x.npy", "--out", "p.csv", "--decision", "--part", "2/2")
    assert code == BAD_INPUT
    assert "part 1 was begun with other options than part 2 of 2 has now" in err
    assert "remove p.csv.parts" in err
    assert run("predict", "m", "x.npy", "--out", "p.csv", "--part", "2/2")[0] == DONE


def test_last_part_writes_predictions(run: Any) -> None:
    """Parts one after the other make the table of one process; none waits."""
    assert run(*TRAIN, "--out", "m")[0] == DONE
    words = ["predict", "m", "x.npy", "--labels", "y.txt", "--decision"]
    whole = run(*words, "--out", "whole.csv")[1]
    for number in (2, 3):
        code, out, _ = run(*words, "--out", "p.csv", "--part", f"{number}/3")
        assert code == DONE
        assert "this part is done: the one that ends last writes p.csv" in out
        assert not Path("p.csv").exists()
    code, out, _ = run(*words, "--out", "p.csv", "--part", "1/3")
    assert code == DONE
    assert out.replace("p.csv", "whole.csv") == whole
    assert Path("p.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert left("p.csv.parts") == ["ended.npz"]


def test_what_was_written_again_is_not_passed_over(run: Any) -> None:
    """Labels after the end of a training, and the model between two parts of a prediction."""
    words = [*TRAIN, "--out", "m", "--part", "1/1"]
    assert run(*words)[0] == DONE
    predict = ["predict", "m", "x.npy", "--out", "p.csv", "--part"]
    assert run(*predict, "1/2")[0] == DONE
    code, out, err = run(*words)
    assert (code, "all parts have ended before" in out, "replaced" in err) == (DONE, True, False)
    y = Path("y.txt").read_text().split()
    Path("y.txt").write_text("\n".join(y[1:] + y[:1]) + "\n")
    code, _, err = run(*words)
    assert code == BAD_INPUT
    assert "have ended before, and what they read has been written again since" in err
    assert run(*TRAIN, "--out", "m")[0] == DONE
    code, _, err = run(*predict, "2/2")
    assert code == BAD_INPUT
    assert "part 1 began with something else than part 2 of 2 computes now" in err


@pytest.mark.slow(seconds=10)
def test_parts_compare(run: Any, start: Any, tmp_path: Path) -> None:
    """Two processes come to the results of one."""
    assert run(*COMPARE, "--out", "one")[0] == DONE
    parts = [[*COMPARE, "--out", "two", "--part", f"{number}/2"] for number in (1, 2)]
    finished([start(tmp_path, words) for words in parts])
    one, two = (json.loads(Path(out, "results.json").read_text()) for out in ("one", "two"))
    assert {name for name in one if one[name] != two[name]} <= {"seconds", "created"}
    assert Path("two/witness.csv").read_bytes() == Path("one/witness.csv").read_bytes()
    assert left("two.parts") == ["ended.npz"]
    code, out, _ = run(*parts[0])
    assert code == DONE
    assert "all parts have ended before, and made two" in out
    shutil.rmtree("two")  # and nothing says that it is there
    finished([start(tmp_path, words) for words in parts])
    assert Path("two/results.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*TRAIN, "--part", "3/2"], "there is no part 3 of 2"),
        ([*TRAIN, "--part", "1/2", "--workers", "2"], "--part needs no --cluster"),
        (["train", "x.npy", "--labels", "y.txt", "--part", "1/2"], "--part is for --rank"),
    ],
)
def test_refused(run: Any, words: list[str], said: str) -> None:
    """What has no parts says so before any work."""
    code, _, err = run(*words, "--out", "m")
    assert code == BAD_INPUT
    assert said in err
    assert not Path("m.parts").exists()


def test_a_folder_of_parts_is_told(run: Any) -> None:
    """With the parts that have begun, and those of them that have not ended."""
    job = ArrayJob(3, 4, Path("m.parts"))
    job.begin("what", is_made=lambda: False)
    ArrayJob(1, 4, Path("m.parts")).begin("what", is_made=lambda: False)
    code, _, said = run("info", "m.parts")
    assert code == BAD_INPUT
    assert "Begun: 1, 3; ended: none. The same command" in " ".join(said.split())
    job.end()
    assert "Begun: 1, 3; ended: 3." in " ".join(run("info", "m.parts")[2].split())
