"""Log-ratios of sparse counts: the time and memory of a fit, beside the dense samples.

Run as ``python tests/benchmarks/sparse_ratios.py [N]``; N samples, by default 100,000, are counts
of 5,000 taxa, some 170 of them in a sample, of two communities. An exact SVM of the heat kernel is
fitted within 4 GB. Of the first 10,000 both forms are fitted, which differ by rounding.
"""

import os
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from records import parsed, parser_of, record

import dhsk
from dhsk.systems import peak_resident

TAXA = 5000


def communities(n: int) -> tuple[Any, Any]:
    """Counts, CSR of shape (n, TAXA), and labels, (n,)."""
    rng = np.random.default_rng(0)
    shares = rng.lognormal(sigma=2, size=TAXA) * np.exp(rng.normal(0, [[0.0], [1.5]], (2, TAXA)))
    shares /= shares.sum(axis=1, keepdims=True)
    y, depths = rng.integers(0, 2, n), rng.integers(200, 400, n)
    taxa = [rng.choice(TAXA, depth, p=shares[k]) for k, depth in zip(y, depths, strict=True)]
    indptr = np.concatenate([[0], np.cumsum(depths)])
    X = sp.csr_array((np.ones(indptr[-1]), np.concatenate(taxa), indptr), shape=(n, TAXA))
    X.sum_duplicates()
    return X, y


def fitted(X: Any, y: Any) -> tuple[Any, float]:
    """The model, and its seconds; the memory at the peak is printed."""
    begun = time.perf_counter()
    model = dhsk.HeatSVC(time_scale=1.0, sphere_map="clr", memory="4GB").fit(X, y)
    seconds, peak = time.perf_counter() - begun, peak_resident(os.getpid()) / 2**30
    print(f"  {len(model.support_):,} support vectors, {peak:.2f} GiB at the peak")
    return model, seconds


def main() -> None:
    """Print the fits."""
    parser = parser_of(__doc__)
    parser.add_argument("n", nargs="?", type=int, default=100_000)
    X, y = communities(parsed(parser).n)
    print(f"sparse, {X.nnz / X.shape[0]:.0f} counts a sample")
    what = "SVM on log-ratios of {:,} sparse samples, 5,000 taxa"
    record("methods", what.format(len(y)), fitted(X, y)[1], "s")
    some, new = slice(0, 10_000), X[-1000:]
    sparse, seconds = fitted(X[some], y[some])
    dense, of_dense = fitted(X[some].toarray(), y[some])
    off = np.abs(sparse.decision_function(new) - dense.decision_function(new.toarray())).max()
    record("methods", what.format(10_000), seconds, "s", {"the same, dense": of_dense})
    print(f"decisions differ by {off:.1e}")
    kernel = dhsk.HeatKernel.at_scale(TAXA, 1.0)
    one, other = (
        dhsk.compute_gram(Z, kernel, sphere_map="clr", dtype="float64")[:]
        for Z in (new, new.toarray())
    )
    print(f"kernel values differ by {np.abs(one - other).max():.1e}")


if __name__ == "__main__":
    main()
