"""Seconds and peak memory of a graph of neighbours, beside scikit-learn's by brute force.

Run as ``python tests/benchmarks/neighbors.py [--data DIR] [--n 20000] [--repeats 3]``: 15
neighbours of made-up counts of 100 features around 200 centres, with DIR those of the first n
images of MNIST. Both have the same samples: scikit-learn gets their square roots of proportions,
whose cosine has the same neighbours. Methods take turns, each in a process of its own, which has
made a small graph before; "new" is `transform` of 2,000 more samples. A method's best time counts;
seconds of processors, in brackets, depend less on what else the machine does.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from operations import status
from records import parsed, parser_of, record
from sklearn.neighbors import KNeighborsTransformer

import dhsk

K = 15
NEW = 2000
METHODS: dict[str, Callable[[], Any]] = {
    "HeatKernelNeighbors": lambda: dhsk.HeatKernelNeighbors(K),
    "the same in float32": lambda: dhsk.HeatKernelNeighbors(K, dtype="float32"),
    "scikit-learn, brute": lambda: KNeighborsTransformer(
        n_neighbors=K, metric="cosine", algorithm="brute"
    ),
}


def samples(n: int, data: Path | None) -> Any:
    """Counts, and `NEW` more."""
    if data is not None:
        with np.load(data / "mnist" / "mnist70k.npz") as file:
            images = np.concatenate([file["X_train"], file["X_test"]])
        return images.reshape(len(images), -1)[: n + NEW].astype(np.float64)
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.5, 2.0, (200, 100))
    return rng.poisson(rates[rng.integers(0, 200, n + NEW)]).astype(np.float64) + 0.01


def measure(name: str, n: int, data: Path | None) -> None:
    """Print seconds, memory and the neighbours of some samples as JSON."""
    X = samples(n, data)
    if name.startswith("scikit-learn"):
        X = dhsk.hyperspherical_map(X)
    METHODS[name]().fit(X[:500]).transform(X[:9])
    METHODS[name]().fit_transform(X[:500])
    before, model, start = status("VmRSS"), METHODS[name](), time.perf_counter()
    spent = time.process_time()
    graph = model.fit_transform(X[:n])
    middle, spent = time.perf_counter(), time.process_time() - spent
    model.transform(X[n:])
    seconds = middle - start, time.perf_counter() - middle, spent
    some = np.sort(graph.indices.reshape(n, -1)[:: n // 500], axis=1).tolist()
    print(json.dumps([*seconds, before, status("VmHWM"), some]))


def main() -> None:
    """Run each method in turns."""
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path)  # without it samples are made up
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", choices=METHODS)
    given = parsed(parser)
    if given.one:
        measure(given.one, given.n, given.data)
        return
    found: dict[str, list[Any]] = {name: [] for name in METHODS}
    for _ in range(given.repeats):
        for name, runs in found.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--one", name]
            runs.append(json.loads(subprocess.check_output(command, text=True)))
    print(f"N = {given.n:,}; load of the machine {os.getloadavg()[0]:.1f}")
    expected = np.array(found["scikit-learn, brute"][0][-1])
    taken, peaks = {}, {}
    for name, runs in found.items():
        whole, new, spent = (min(run[part] for run in runs) for part in (0, 1, 2))
        before, peak = runs[0][3:5]
        same = (np.array(runs[0][-1]) == expected).mean()
        print(
            f"  {name:<20} {whole:7.2f} s ({spent:.1f}), {NEW:,} new {new:6.2f} s, "
            f"{before:6.0f} MiB before, {peak:6.0f} MiB at most; "
            f"{same:.4f} of the neighbours as scikit-learn's"
        )
        taken[name], peaks[name] = whole, (peak - before) / 1024 * 1.073741824
    what = f"15 neighbours of {given.n:,} {'images of MNIST' if given.data else 'x 100'}"
    (first, second, peer), name = METHODS, "KNeighborsTransformer, brute force"
    for own, words in ((first, what), (second, f"{what}, float32")):
        record("methods", words, taken[own], "s", {name: taken[peer]}, runs=given.repeats)
        record("memory", words, peaks[own], "GB", {name: peaks[peer]}, runs=given.repeats)


if __name__ == "__main__":
    main()
