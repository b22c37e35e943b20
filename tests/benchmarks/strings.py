"""Speed and memory of counting substrings: ``python tests/benchmarks/strings.py [MB] [LENGTH]``.

Each case is a process of its own, on one core: it reads a made-up file and counts its substrings.
MB/s is the size of the plain file over the processor time of the whole process, imports and all,
and over that of the counting alone. Seconds of that are given beside those of the operating system
("system"): files, and the first touch of new memory, for which a virtual machine may have to ask
its host. Memory is the peak of the process, and what counting added to that of the imports.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

MB = 1e6

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "reads of 150, FASTA": ("reads.fasta", {}),
    "reads of 150, FASTA, gz": ("reads.fasta.gz", {}),
    "reads of 150, canonical": ("reads.fasta", {"canonical": True}),
    "reads of 150, FASTQ": ("reads.fastq", {}),
    "genome of 5 records": ("genome.fasta", {}),
    "genome of 5 records, canonical": ("genome.fasta", {"canonical": True}),
    "genome, hashed to 65,536": ("genome.fasta", {"n_features": 2**16}),
}


def write_files(folder: Path, size: int) -> None:
    """Files of about `size` bytes, seeded: reads of 150 bases, and five long wrapped records."""
    rng = np.random.default_rng(0)
    letters = np.frombuffer(b"ACGT", np.uint8)
    n = size // 162
    reads = letters[rng.integers(0, 4, (n, 150))]
    with (folder / "reads.fasta").open("wb") as file:
        for k, read in enumerate(reads):
            file.write(b">r%d\n%s\n" % (k, read.tobytes()))
    with (folder / "reads.fastq").open("wb") as file:
        for k, read in enumerate(reads[: n // 2]):
            file.write(b"@r%d\n%s\n+\n%s\n" % (k, read.tobytes(), b"I" * 150))
    with (folder / "genome.fasta").open("wb") as file:
        for k in range(5):
            lines = letters[rng.integers(0, 4, (size // 5 // 61, 60))]
            file.write(b">chromosome%d\n" % k)
            file.write(b"\n".join(line.tobytes() for line in lines) + b"\n")
    plain = (folder / "reads.fasta").read_bytes()
    (folder / "reads.fasta.gz").write_bytes(gzip.compress(plain, 6))


def peak() -> int:
    """Peak memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text()  # ru_maxrss is that of who started it, if larger
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def count(file: str, length: int, options: dict[str, Any]) -> None:
    """Count in this process; print seconds, and bytes before and after."""
    import dhsk

    dhsk.spectrum_counts(["ACGT"], 2, **options)  # compiled, or read from numba's cache
    before, begin, wall, system = peak(), process_time(), perf_counter(), os.times().system
    counts, substrings = dhsk.spectrum_counts(file, length, **options)
    own, waited = process_time() - begin, perf_counter() - wall
    system = os.times().system - system
    held = counts.data.nbytes + counts.indices.nbytes + counts.indptr.nbytes
    print(own, waited, system, process_time(), before, peak(), *counts.shape, counts.nnz, held)
    assert len(substrings) == counts.shape[1]


def measure(file: Path, size: int, length: int, name: str, options: dict[str, Any]) -> float:
    """Run one case, print its row, and return its MB a second of the processor."""
    words = [sys.executable, __file__, "count", str(file), str(length), json.dumps(options)]
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    run = subprocess.run(words, capture_output=True, text=True, check=True, env=os.environ | one)
    own, waited, system, whole, before, after, n, dim, nnz, held = map(float, run.stdout.split())
    print(
        f"{name:32} {size / own / MB:6.1f} {size / waited / MB:6.1f} {size / whole / MB:6.1f}"
        f" {own:6.2f} {system:6.2f} {n:8.0f} {dim:10.0f} {nnz / MB:8.1f}"
        f" {held / MB:8.0f} {(after - before) / MB:8.0f} {after / MB:6.0f}"
    )
    return size / own / MB


def main() -> None:
    """Print a table of all cases."""
    if sys.argv[1:2] == ["count"]:
        count(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
        return
    from records import parsed, parser_of, record  # loads what `count` measures

    parser = parser_of(__doc__)
    parser.add_argument("megabytes", nargs="?", type=int, default=50)
    parser.add_argument("length", nargs="?", type=int, default=8)
    given = parsed(parser)
    megabytes, length = given.megabytes, given.length
    print(
        f"{megabytes} MB, substrings of {length}; MB/s: processor, wall clock, whole process;"
        " seconds: processor, system; MB"
    )
    print(
        f"{'':32} {'cpu':>6} {'wall':>6} {'whole':>6} {'s':>6} {'system':>6} {'records':>8}"
        f" {'distinct':>10} {'M counts':>8} {'CSR MB':>8} {'added':>8} {'peak':>6}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, int(megabytes * MB))
        for case, (file, options) in CASES.items():
            size = (folder / file.removesuffix(".gz")).stat().st_size
            rate = measure(folder / file, size, length, case, options)
            what = f"substrings of {length} letters: {case}"
            record("texts", what, rate, "MB/s of processor")


if __name__ == "__main__":
    main()
