"""Scores of diversity of many samples: time, memory, and passes over the matrix.

Run as ``python tests/benchmarks/diversity.py [N]``; N samples, by default 100,000, of 100 features
are proportions around 200 centres. Of the first 5,000 the scores are compared with those of all
eigenvalues by numpy, which takes N^3 steps and N^2 numbers.
"""

import resource
import sys
import time
from typing import Any

import numpy as np

import dhsk
from dhsk.gram.diversity import WHOLE

SCALE = 0.3


def samples(n: int, dim: int = 100) -> Any:
    """Proportions around 200 centres."""
    rng = np.random.default_rng(0)
    centres = rng.dirichlet(np.full(dim, 0.3), 200)
    return rng.gamma(300 * centres[rng.integers(200, size=n)] + 1e-3)


def timed(score: Any) -> tuple[float, float, int]:
    """Score, seconds, and passes."""
    told: list[Any] = []
    begun = time.perf_counter()
    found = score(progress=told.append)
    passes = max((event.done for event in told if event.stage == "passes"), default=1)
    return found, time.perf_counter() - begun, passes


def main() -> None:
    """Print both tables."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    X = samples(n)
    for some in (WHOLE, WHOLE + 1000):  # all eigenvalues, and the estimate
        G = dhsk.compute_gram(X[:some], dhsk.HeatKernel.at_scale(100, SCALE))
        begun = time.perf_counter()
        p = np.linalg.eigvalsh(G[:, :] / some)
        p = p[p > 0]
        exact = float(np.exp(-(p * np.log(p)).sum()))
        print(f"numpy, {some:,} samples: {exact:.3f}, {time.perf_counter() - begun:.1f} s")
        found, seconds, passes = timed(G.vendi)
        off = abs(found / exact - 1)
        print(f"vendi, {some:,} samples: off by {off:.1e}, {passes} passes, {seconds:.1f} s")
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(100, SCALE), dtype="float32")
    for name in ("rke", "vendi"):
        found, seconds, passes = timed(getattr(G, name))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name}, {n:,} samples: {found:.2f}, {passes} passes, {seconds:.0f} s, "
              f"{memory:.2f} GiB")  # fmt: skip


if __name__ == "__main__":
    main()
