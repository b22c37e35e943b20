"""Scores of diversity of many samples: time, memory, and passes over the matrix.

Run as ``python tests/benchmarks/diversity.py [N]``; N samples, by default 100,000, of 100 features
are proportions around 200 centres. Of the first 5,000 the scores are compared with those of all
eigenvalues by numpy, which takes N^3 steps and N^2 numbers.
"""

import resource
import time
from typing import Any

import numpy as np
from records import parsed, parser_of, record

import dhsk
from dhsk.gram.diversity import WHOLE

SCALE = 0.3
WORDS = {"rke": "Renyi kernel entropy", "vendi": "Vendi score to 1 %"}


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
    parser = parser_of(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=100_000)
    n = parsed(parser).n
    X = samples(n)
    for some in (WHOLE, WHOLE + 1000):  # all eigenvalues, and the estimate
        G = dhsk.compute_gram(X[:some], dhsk.HeatKernel.at_scale(100, SCALE))
        begun = time.perf_counter()
        p = np.linalg.eigvalsh(G[:, :] / some)
        p = p[p > 0]
        exact, theirs = float(np.exp(-(p * np.log(p)).sum())), time.perf_counter() - begun
        found, seconds, passes = timed(G.vendi)
        record("methods", f"Vendi score, {some:,} x 100", seconds, "s", {"numpy eigvalsh": theirs})
        print(f"  {exact:.3f}, vendi off by {abs(found / exact - 1):.1e}, {passes} passes")
    G = dhsk.compute_gram(X, dhsk.HeatKernel.at_scale(100, SCALE), dtype="float32")
    for name in WORDS:
        found, seconds, passes = timed(getattr(G, name))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        record("methods", f"{WORDS[name]}, {n:,} x 100, float32", seconds, "s")
        print(f"  {found:.2f}, {passes} passes, {memory:.2f} GiB")


if __name__ == "__main__":
    main()
