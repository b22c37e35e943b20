"""Time and memory of operations on a recomputed matrix, as ratios to one pass, `G @ V`.

Run as ``python tests/benchmarks/operations.py [--n 20000] [--dtype float64] [OPERATION ...]``.
Nothing is stored. Operations and products take turns in one process, on all its cores; the best of
some repeats counts. Then one more process runs each operation alone for its peak memory.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from records import parsed, parser_of, record

import dhsk

DIM = 393
CENTRES = 50


def samples(n: int) -> tuple[Any, Any]:
    """Made-up counts around some centres, so that there are near and far samples; and labels."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, 2.0, (CENTRES, DIM))
    y = rng.integers(0, CENTRES, n)
    return rng.poisson(rates[y]).astype(np.float64) + 0.01, y


def operations(G: dhsk.GramMatrix, y: Any) -> dict[str, Callable[[], object]]:
    """Operations by name; each with what it keeps forgotten."""

    def fresh() -> dhsk.GramMatrix:
        return G.with_kernel(G.kernel)

    V = np.random.default_rng(1).normal(size=(len(y), 1))
    return {
        "G @ V": lambda: fresh() @ V,
        "centered @ V": lambda: fresh().centered() @ V,
        "neighbors(10)": lambda: fresh().neighbors(10),
        "neighbors(100)": lambda: fresh().neighbors(100),
        "alignment": lambda: fresh().alignment(y),
        "total_variance": lambda: fresh().total_variance(),
        "discrepancy, 100": lambda: dhsk.maximum_mean_discrepancy(fresh(), y % 2, 100),
    }


def peak_above_start(n: int, dtype: Any, name: str) -> None:
    """Print the growth of this process's peak memory by one operation."""
    X, y = samples(n)
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(DIM, 0.7), dtype=dtype)
    X = None
    operations(dhsk.compute_gram(np.ones((9, DIM)), G.kernel), np.arange(9))  # compiled
    _ = G[:2, :2]
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that from now on
    before = status("VmRSS")
    operations(G, y)[name]()
    print(f"  {name:<18} {before:6.0f} MiB before, {status('VmHWM'):6.0f} MiB at most")


def status(name: str) -> float:
    """Memory of this process, in MiB: now ("VmRSS") or at most ("VmHWM"). Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line.split()[1] for line in lines if line.startswith(name)]
    return int(found) / 1024


def main() -> None:
    """Run the operations asked for."""
    parser = parser_of(__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peak", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parsed(parser)
    if given.peak:
        peak_above_start(given.n, given.dtype, given.names[0])
        return
    X, y = samples(given.n)
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(DIM, 0.7), dtype=given.dtype)
    asked = {
        name: run
        for name, run in operations(G, y).items()
        if name == "G @ V" or not given.names or name in given.names
    }
    best = dict.fromkeys(asked, float("inf"))
    small = dhsk.compute_gram(X[:300], G.kernel, dtype=given.dtype, tile=100)
    for run in operations(small, y[:300]).values():
        run()  # compiled
    for _ in range(given.repeats):
        for name, run in asked.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    load = os.getloadavg()[0]
    print(
        f"N = {given.n:,}, dim {DIM}, {given.dtype}, nothing stored; load of the machine {load:.1f}"
    )
    for name, seconds in best.items():
        what = f"{name}, {given.n:,} samples, recomputed"
        peers = {} if name == "G @ V" else {"one product G @ V": best["G @ V"]}
        record("gram", what, seconds, "s", peers, runs=given.repeats)
    for name in asked:
        options = ["--peak", "--n", str(given.n), "--dtype", given.dtype, name]
        subprocess.run([sys.executable, __file__, *options], check=True)


if __name__ == "__main__":
    main()
