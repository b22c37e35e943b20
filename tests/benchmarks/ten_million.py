"""An exact SVM of ten million samples of which few are support vectors, in 6 GB.

Run as ``python tests/benchmarks/ten_million.py [N]``: writes N counts of 100 words in float32, 4
GB, to a temporary folder, runs ``dhsk train --memory 6GB`` on them, and prints what that says.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mixtures
import numpy as np
from records import parsed, parser_of, record

MEMORY = "6GB"


def write_counts(folder: Path, n: int) -> None:
    """Counts and labels; as many samples are near the border as of a million."""
    mixtures.NEAR *= min(1.0, 1e6 / n)
    shape = (n, mixtures.WORDS)
    rows: Any = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype="f4", shape=shape)
    labels, start = np.empty(n, np.int8), 0
    for X, y in mixtures.draw(n):
        part = slice(start, start + len(y))
        rows[part], labels[part] = X, y
        start = part.stop
    np.save(folder / "y.npy", labels)


def main() -> None:
    """Print what the command says, and record its seconds."""
    parser = parser_of(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=10_000_000)
    n = parsed(parser).n
    with TemporaryDirectory() as folder:
        write_counts(Path(folder), n)
        words = ["train", "X.npy", "--labels", "y.npy", "--dtype", "float32", "--memory", MEMORY]
        command = [sys.executable, "-m", "dhsk", *words, "--out", "found.dhsk"]
        begun = time.perf_counter()
        told = subprocess.run(command, cwd=folder, check=True, text=True, capture_output=True)
        seconds = time.perf_counter() - begun
    print(told.stdout)
    record("svm", f"exact SVM, {n:,} x 100, float32, {MEMORY}", seconds, "s", {})


if __name__ == "__main__":
    main()
