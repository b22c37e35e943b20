"""Peak memory of commands over their whole process tree (Linux), looked at every 20 ms.

``python tests/benchmarks/memory.py`` measures `dhsk gram` against the plan's prediction, ``python
tests/benchmarks/memory.py allowed`` all commands on dense, sparse and uneven samples against what
they were allowed. Pages that processes share count once, whoever else on the machine has them too.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from records import parsed, parser_of, record
from scipy.sparse import csr_matrix, random_array, save_npz

from dhsk.units import parse_bytes

Job = tuple[list[str], int, int, float | None]

JOBS: dict[str, Job] = {
    "float64, tile 2000": (["--tile", "2000"], 9_000, 393, None),
    "float64, tile 2000, edges": (["--tile", "2000"], 9_100, 393, None),
    "float32, tile 2000, edges": (["--tile", "2000", "--dtype", "float32"], 9_100, 393, None),
    "float32 products, tile 2000": (
        ["--tile", "2000", "--dtype", "float32", "--product-dtype", "float32"],
        9_100,
        393,
        None,
    ),
    "float64, tile 500": (["--tile", "500"], 9_000, 393, None),
    "float64, tile 500, wide": (["--tile", "500"], 2_000, 20_000, None),
    "float64, 600 MB allowed": (["--memory", "600MB"], 9_100, 393, None),
    "50000, float32, 2 GB allowed": (["--memory", "2GB", "--dtype", "float32"], 50_000, 393, None),
    "sparse, 12 % of 400": ([], 9_100, 400, 0.12),
    "sparse, 30 % of 2000": ([], 8_000, 2_000, 0.3),
    "sparse, 0.5 % of 20000": ([], 9_100, 20_000, 0.005),
}
"""Options, samples, features and density (None: dense) of each job."""


REFUSED = 3
"""Exit code of a command that does not fit the memory."""


def peak_bytes(words: list[str]) -> int:
    """Run a command to its end; most memory that its process tree held at a time, in bytes.

    0 if it was refused.
    """
    process = psutil.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_bytes(process))
        time.sleep(0.02)
    if process.returncode == REFUSED:
        return 0
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode} from {' '.join(words)}")
    return peak


def tree_bytes(process: psutil.Process) -> int:
    """Bytes that a process and its descendants hold now; 0 if one of them has just ended."""
    own = shared = 0
    try:
        for member in (process, *process.children(recursive=True)):
            found = member.memory_full_info()
            own += found.uss
            shared = max(shared, found.rss - found.uss)
    except psutil.Error:  # a process ended meanwhile: this sample is partial
        return 0
    return own + shared


def predicted_bytes(samples: Path, options: list[str]) -> float:
    """What `dhsk plan` says, in bytes."""
    words = [sys.executable, "-m", "dhsk", "plan", str(samples), *options]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"memory +([\d.]+ [MG]iB) predicted", text)
    assert found, text
    return parse_bytes(found[1])


def make_samples(n: int, dim: int, density: float | None, folder: Path) -> Path:
    """Write made-up counts, dense or CSR."""
    rng = np.random.default_rng(0)
    if density is None:
        path = folder / f"{n}x{dim}.npy"
        np.save(path, rng.poisson(1.0, size=(n, dim)) + 1.0)
    else:
        path = folder / f"{n}x{dim}.npz"
        save_npz(path, csr_matrix(random_array((n, dim), density=density, rng=rng)))
    return path


def measure(job: Job, folder: Path) -> tuple[float, float]:
    """Bytes predicted and measured for one job."""
    options, n, dim, density = job
    samples = make_samples(n, dim, density, folder)
    store = tempfile.mkdtemp(dir=folder)
    words = [sys.executable, "-m", "dhsk", "gram", str(samples), "--out", store, *options]
    return predicted_bytes(samples, options), peak_bytes(words)


KINDS = ("uneven", "sorted", "dense", "even")
"""Dense samples; sparse ones with about as many entries each; every fiftieth with a hundred times
as many; the same with those at the end."""

ALLOWED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "train": (("--C", "10"), ("450MB", "600MB", "800MB", "1GB")),
    "cv": (("--C", "1,10", "--folds", "3", "--time-scale", "0.5,1"), ("750MB", "850MB", "1GB")),
    "gram": (("--time-scale", "1"), ("650MB", "800MB")),
}
"""Options of each command, and memory to allow."""


def make_kind(kind: str, folder: Path, n: int = 6_000) -> tuple[Path, Path]:
    """Write made-up word counts in two classes, and their labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    labels = folder / "labels.txt"
    labels.write_text("".join(f"{label}\n" for label in y))
    if kind == "dense":
        path = folder / "dense.npy"
        np.save(path, rng.poisson(1 + 0.5 * y[:, None] * rng.random(300), size=(n, 300)) + 0.1)
        return path, labels
    dim = 20_000
    lengths = rng.poisson(60 if kind != "even" else 150, n) + 1
    if kind != "even":
        heavy = np.arange(n - n // 50, n) if kind == "sorted" else np.arange(0, n, 50)
        lengths[heavy] *= 100
    words = 1 / np.arange(1, dim + 1)
    columns = rng.choice(dim, lengths.sum(), p=words / words.sum())
    rows = np.repeat(np.arange(n), lengths)
    columns = np.where(rng.random(columns.size) < 0.3, (columns + 7 * y[rows]) % dim, columns)
    counts = csr_matrix((np.ones(columns.size), (rows, columns)), shape=(n, dim))
    save_npz(folder / f"{kind}.npz", counts)
    return folder / f"{kind}.npz", labels


def measure_allowed(command: str, kind: str, allowed: str, folder: Path) -> float:
    """Bytes that a command took, in a folder of its own."""
    samples, labels = make_kind(kind, folder)
    words = [sys.executable, "-m", "dhsk", command, str(samples), "--memory", allowed]
    words += [*ALLOWED[command][0], "--out", str(folder / f"{command}-{allowed}")]
    return peak_bytes(words if command == "gram" else [*words, "--labels", str(labels)])


def print_allowed(commands: list[str]) -> int:
    """Print a line a run; how many took more than they were allowed."""
    over = runs = 0
    for command in commands:
        for kind in KINDS:
            for allowed in ALLOWED[command][1]:
                with tempfile.TemporaryDirectory() as folder:
                    seen = measure_allowed(command, kind, allowed, Path(folder))
                runs, over = runs + 1, over + (seen > parse_bytes(allowed))
                said = f"{seen / 1e6:.0f} MB" if seen else "refused"
                print(f"{command:<6} {kind:<7} {allowed:>6} {said:>8}", flush=True)
    what = f"commands ({', '.join(commands)}) above the memory they were allowed"
    record("memory", what, over, f"of {runs} runs")
    return over


def main() -> None:
    """Print a line a job."""
    given = parsed(parser_of(__doc__, ["allowed", *ALLOWED])).sections
    if given:
        commands = [name for name in given if name in ALLOWED] or list(ALLOWED)
        sys.exit(print_allowed(commands))
    with tempfile.TemporaryDirectory() as folder:
        for name, job in JOBS.items():
            said, seen = measure(job, Path(folder))
            record("memory", f"dhsk gram, {name}", seen / 1e9, "GB", {"predicted": said / 1e9})


if __name__ == "__main__":
    main()
