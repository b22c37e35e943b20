"""Full and read-only disks, mounted for the purpose where nobody else sees them."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DIM = 12

PRELUDE = """
import contextlib, io, os, subprocess, sys, tempfile
from pathlib import Path
import numpy as np
from distributed import Client
import dhsk
from dhsk.__main__ import main

def command(*words):
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            main([*words, "--cluster", address])
        except SystemExit as ended:
            return ended.code, said.getvalue()

def said_aloud(*words):
    # By loggers and threads too, which know standard error as it was.
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            main(list(words))
        except SystemExit as ended:
            file.seek(0)
            return ended.code, file.read().decode()
        finally:
            os.dup2(before, 2)

def contents(path):
    files = (f for f in Path(path).rglob("*") if f.is_file())
    return {str(f.relative_to(path)): f.read_bytes() for f in files}

cluster = Client(processes=False, n_workers=1, threads_per_worker=2, protocol="tcp",
                 host="127.0.0.1", dashboard_address="127.0.0.1:0", set_as_default=False)
address = cluster.scheduler.address
words = ["gram", "x.npy", "--time-scale", "0.7", "--tile", "32", "--out"]
os.mkdir("disk")
"""


def run_with_mounts(folder: Path, script: str) -> None:
    """Run Python code in a folder, where it may mount what nobody else sees."""
    (folder / "probe").mkdir()
    probe = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(folder / "probe")]
    able = shutil.which("unshare") and not subprocess.run(probe, check=False).returncode
    if not able:
        pytest.skip("needs leave to mount in a namespace of its own (unshare -rm)")
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", PRELUDE + script],
        cwd=folder, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_read_only_store_is_read_and_not_written(tmp_path: Path, counts: Any) -> None:
    """On a disk mounted read-only everything that reads works; what writes says so first."""
    X = counts(200, DIM)
    np.save(tmp_path / "x.npy", X)
    X[5, 5] = np.nan  # would be an InputError if it were read
    np.save(tmp_path / "nan.npy", X)
    (tmp_path / "y.txt").write_text("a\nb\n" * 100)
    script = """
code, said = command(*words, "disk/g")
assert code == 0, said
before = contents("disk")
subprocess.run(["mount", "--bind", "disk", "disk"], check=True)
subprocess.run(["mount", "-o", "remount,ro,bind", "disk"], check=True)
G = dhsk.open_gram("disk/g")
assert G.verify() == 28
assert (G @ np.ones(200)).shape == (200,)
assert np.asarray(G)[3, 150] == G[150, 3]
code, said = command("verify", "disk/g")
assert (code, "all 28 tiles are sound" in said) == (0, True), said
code, said = command("cv", "disk/g", "--labels", "y.txt", "--out", "cv")
assert code == 0, said
for wrong in (
    [*words, "disk/g"], [*words, "disk/new"], ["gram", "nan.npy", "--out", "disk/new"],
    ["verify", "disk/g", "--repair", "x.npy"],
    ["cv", "x.npy", "--labels", "y.txt", "--out", "disk"],
):
    code, said = command(*wrong)
    sentence = "disk" in said and "cannot be written (Read-only file system): choose" in said
    assert (code, sentence, "Traceback" in said) == (4, True, False), (wrong, code, said)
assert contents("disk") == before
"""
    run_with_mounts(tmp_path, script)


@pytest.mark.slow
def test_full_disk_keeps_what_is_finished(tmp_path: Path, counts: Any) -> None:
    """No space left, midway through tiles or samples: exit code 3, no ruins, and it goes on."""
    np.save(tmp_path / "x.npy", counts(200, DIM))
    script = """
import shutil
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "disk"], check=True)
code, said = command(*words, "disk/g")
assert code == 0, said
whole = contents("disk")

def fill(room):
    with open("disk/ballast", "wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
    os.truncate("disk/ballast", os.path.getsize("disk/ballast") - room)

def tiles():
    return len([f for f in Path("disk/g/gram/c").glob("*/*") if f.name.isdigit()])

def attempt(room, kept):
    fill(room)
    code, said = command(*words, "disk/g")
    sentences = [line for line in said.splitlines() if "the disk is full" in line]
    assert (code, len(sentences), "Traceback" in said) == (3, 1, False), said
    assert "what is finished is kept: make room and run" in sentences[0]
    assert kept[0] <= tiles() <= kept[1], (kept, tiles())
    left = [str(f) for f in Path("disk/g").rglob("*")]
    assert not [f for f in left if f.endswith((".part", ".lock"))], left
    os.unlink("disk/ballast")
    code, said = command(*words, "disk/g")
    assert code == 0, said
    assert contents("disk") == whole

for name in [n for n in whole if "/c/" in n and n.startswith("g/gram")][:14]:
    os.unlink(f"disk/{name}")
attempt(40_000, (15, 24))      # room for four tiles of 8 kB each
shutil.rmtree("disk/g/gram/c")
shutil.rmtree("disk/g/rows")
attempt(12_000, (0, 0))        # samples take 19 kB
"""
    run_with_mounts(tmp_path, script)


@pytest.mark.slow(seconds=20)
def test_full_disk_is_one_sentence_of_every_command(tmp_path: Path, counts: Any) -> None:
    """Results, checkpoints and models: exit code 3, the file, the way out, and no half files."""
    np.save(tmp_path / "x.npy", counts(400, DIM))
    (tmp_path / "y.txt").write_text("a\nb\n" * 200)
    script = """
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", "disk"], check=True)
checks = {
    "cv x.npy --labels y.txt --rank 20 --out disk/o": "o/fits/",
    "cv x.npy --labels y.txt --rank 20 --model --time-scale 1 --C 1 --out disk/o": "o/fits/",
    "train x.npy --labels y.txt --out disk/o": "o.part/",
    "train x.npy --labels y.txt --rank 20 --out disk/o": "o.part/",
    "predict m.dhsk x.npy --out disk/o": "disk/o cannot be",
    "kernel --dim 12 --plot disk/k.png": "disk/k.png cannot be",
    "gram x.npy --out disk/o": "are free",
    "cv x.npy --labels y.txt --out disk/o": "o/fits/run.json cannot be",
}
main_words = "train x.npy --labels y.txt --out m.dhsk".split()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(main_words)
with open("disk/ballast", "wb", buffering=0) as file:
    with contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
for words, sentence in checks.items():
    where = ["--cluster", address] if words.split()[0] != "kernel" else []
    code, text = said_aloud(*words.split(), *where)
    usual = " %), ", "begins", "of disk while it runs"
    said = [line for line in text.splitlines() if not any(part in line for part in usual)]
    assert (code, len(said), sentence in said[0]) == (3, 1, True), (words, code, text)
    left = sorted(path.name for path in Path("disk").rglob("*"))
    assert left == ["ballast"], (words, left)
"""
    run_with_mounts(tmp_path, script)


@pytest.mark.slow
def test_threads_say_nothing_of_a_full_disk_but_the_sentence(tmp_path: Path, counts: Any) -> None:
    """A disk that fills up while tiles are written: Dask's tracebacks do not come before it."""
    np.save(tmp_path / "x.npy", counts(400, DIM))
    script = """
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", "disk"], check=True)
program = '''
import contextlib, numpy as np, dhsk

def fill(event):
    if event.stage == "tiles" and event.done:
        with open("disk/ballast", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

try:
    dhsk.compute_gram("x.npy", dhsk.CosineKernel(), store="disk/g", tile=20, progress=fill)
except dhsk.BudgetError as error:
    print(error)
'''
done = subprocess.run([sys.executable, "-c", program], text=True, check=False, capture_output=True)
assert (done.returncode, done.stderr) == (0, ""), done
assert (done.stdout.startswith("the disk is full: "), done.stdout.count("\\n")) == (True, 1), done
assert not [f for f in Path("disk").rglob(".*.part")]
"""
    run_with_mounts(tmp_path, script)
