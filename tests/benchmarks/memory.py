"""Peak memory of `dhsk gram` over its whole process tree, against the plan's prediction.

Run as ``python tests/benchmarks/memory.py``. Each line is one job in a process group of its own:
client, scheduler and workers, their proportional set sizes (Linux) summed every 20 ms.
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from scipy.sparse import csr_matrix, random_array, save_npz

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


def peak_bytes(words: list[str]) -> int:
    """Run a command to its end; most memory that its process tree held at a time, in bytes."""
    process = psutil.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _tree_bytes(process))
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode} from {' '.join(words)}")
    return peak


def _tree_bytes(process: psutil.Process) -> int:
    total = 0
    try:
        for member in (process, *process.children(recursive=True)):
            total += member.memory_full_info().pss
    except psutil.Error:  # a process ended meanwhile: this sample is partial
        return 0
    return total


def predicted_bytes(samples: Path, options: list[str]) -> float:
    """What `dhsk plan` says, in bytes."""
    words = [sys.executable, "-m", "dhsk", "plan", str(samples), *options]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"memory +([\d.]+) (MB|GB) predicted", text)
    assert found, text
    return float(found[1]) * {"MB": 1e6, "GB": 1e9}[found[2]]


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


def main() -> None:
    """Print a line a job."""
    print(f"{'job':<28} {'predicted':>10} {'measured':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, job in JOBS.items():
            said, seen = measure(job, Path(folder))
            print(f"{name:<28} {said / 1e6:>7.0f} MB {seen / 1e6:>7.0f} MB {said / seen:>6.2f}")


if __name__ == "__main__":
    main()
