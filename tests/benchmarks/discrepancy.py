"""A test of two sets of many samples by four kernels: time and memory, beside the same in numpy.

Run as ``python tests/benchmarks/discrepancy.py [N]``; N samples, by default 100,000, of 100
features are the proportions of diversity.py, and a hundredth of the second half is from elsewhere.
Of 5,000 the same test is made by numpy, which holds the matrices.
"""

import resource
import time
from typing import Any

import numpy as np
from diversity import samples
from records import parsed, parser_of, record

import dhsk

KERNELS = [dhsk.HeatKernel.at_scale(100, scale) for scale in (0.3, 0.6, 1.0, 2.0)]
FEW = 5_000
PERMUTATIONS = 1_000


def drifted(n: int) -> Any:
    """Samples, of which the last ones are from elsewhere."""
    X, some = samples(n), n // 200
    X[-some:] = np.random.default_rng(1).gamma(np.full((some, 100), 3.0))
    return X


def by_numpy(X: Any, groups: Any) -> list[float]:
    """Unbiased estimate of each kernel; those of all permutations are computed beside."""
    rng, found, n = np.random.default_rng(0), [], len(X)
    first = groups == "A"
    for kernel in KERNELS:
        K = kernel(dhsk.hyperspherical_map(X))
        np.fill_diagonal(K, 0.0)
        chosen = np.stack([first, *(rng.permutation(first) for _ in range(PERMUTATIONS))], axis=1)
        m, k = int(first.sum()), n - int(first.sum())
        own, across = chosen.astype(float), (~chosen).astype(float)
        K_own = K @ own
        within = (own * K_own).sum(axis=0) / (m * (m - 1))
        within += (across * (K @ across)).sum(axis=0) / (k * (k - 1))
        found.append(float((within - 2 * (across * K_own).sum(axis=0) / (m * k))[0]))
    return found


def tested(X: Any, groups: Any) -> tuple[Any, float]:
    """Result and seconds."""
    begun = time.perf_counter()
    grams = dhsk.compute_gram(X, KERNELS)
    found = dhsk.maximum_mean_discrepancy(grams, groups, PERMUTATIONS)
    return found, time.perf_counter() - begun


def main() -> None:
    """Print the figures."""
    parser = parser_of(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=100_000)
    for n in (FEW, parsed(parser).n):
        X, groups = drifted(n), np.repeat(["A", "B"], [n - n // 2, n // 2])
        peers = {}
        if n == FEW:
            begun = time.perf_counter()
            theirs = by_numpy(X, groups)
            peers = {"numpy, matrices in memory": time.perf_counter() - begun}
        found, seconds = tested(X, groups)
        record("methods", f"test of two samples, {n:,} x 100, 4 kernels", seconds, "s", peers)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"  p = {found.p_value:.3f}, kernel {found.kernel}, {memory:.2f} GiB so far")
        if n == FEW:
            print(f"  off by {abs(found.unbiased - theirs[found.kernel]):.1e} of numpy's estimate")


if __name__ == "__main__":
    main()
