"""An exact SVM of ten million samples of which few are support vectors, in 6 GB.

Run as ``python tests/benchmarks/ten_million.py [N] [--rare SHARE] [--near TIMES]``: writes N counts
of 100 words in float32, 4 GB, to a temporary folder, runs ``dhsk train --memory 6GB`` on them, and
prints what that says. Half of the samples are of each class, or a share is of a rare one; with
``--near 2.2`` more than twice as many are near the border, and some 3,000 become support vectors.
"""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mixtures import write_counts
from records import parsed, parser_of, record

MEMORY = "6GB"


def main() -> None:
    """Print what the command says, and record its seconds."""
    parser = parser_of(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=10_000_000)
    parser.add_argument("--rare", type=float)
    parser.add_argument("--near", type=float, default=1.0)
    given = parsed(parser)
    n, rare = given.n, given.rare
    with TemporaryDirectory() as folder:
        write_counts(Path(folder), n, rare, given.near)
        words = ["train", "rows.npy", "--labels", "labels.npy", "--dtype", "float32"]
        command = [sys.executable, "-m", "dhsk", *words, "--memory", MEMORY, "--out", "m.dhsk"]
        begun = time.perf_counter()
        told = subprocess.run(command, cwd=folder, check=True, text=True, capture_output=True)
        seconds = time.perf_counter() - begun
    print(told.stdout)
    classes = "" if rare is None else f", {rare:.2%} in the rarer class"
    classes += "" if given.near == 1 else f", {given.near:g} times as many near the border"
    record("svm", f"exact SVM, {n:,} x 100, float32, {MEMORY}{classes}", seconds, "s", {})


if __name__ == "__main__":
    main()
