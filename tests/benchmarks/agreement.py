"""Exact SVMs beside scikit-learn's ``SVC(kernel="precomputed")``, sample by sample.

Run as ``python tests/benchmarks/agreement.py --data DIR`` (see `svm.py` for DIR). Every problem is
solved on its whole matrix, in a tenth of its bytes, and on working sets that begin with 64 samples,
in float64 and float32, with C from 0.01 to 10,000, balanced or not, at tolerance 1e-5. Printed: how
many predictions differ, the largest decision of a pair whose sign differs, and by how much the dual
objective falls short of LIBSVM's, both in the exact matrix.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight
from svm import webkb

import dhsk
from dhsk.execution.threads import Threads
from dhsk.solvers import working_set
from dhsk.solvers.decomposition import Decomposition
from dhsk.solvers.pairs import PairTask, solve_pairs
from dhsk.solvers.problems import Pair, make_pairs
from dhsk.solvers.sources import ArraySource
from dhsk.solvers.votes import vote

TOL = 1e-5

Problem = tuple[str, NDArray[Any] | csr_array, NDArray[Any], float]


def problems(data: Path) -> Iterator[Problem]:
    """Name, samples, labels and time scale."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X, y, 0.3
    yield ("WebKB", *webkb(data), 0.8)
    rng = np.random.default_rng(0)
    for noise in (0.1, 0.3):
        y = rng.integers(0, 3, 1500)
        topics = rng.dirichlet(np.ones(60), 3)
        X = np.stack([rng.multinomial(60, 0.4 * topics[c] + 0.6 / 60) for c in y]).astype(float)
        flipped = np.where(rng.random(1500) < noise, rng.integers(0, 3, 1500), y)
        yield f"{noise:.0%} noise", X, flipped, 1.0


def objectives(model: Any, K: NDArray[Any], pairs: list[Pair]) -> list[float]:
    """Dual objective of LIBSVM's solution of each pair, in the exact matrix."""
    found = []
    ends = np.cumsum(model.n_support_)
    for pair in pairs:
        b = np.zeros(len(K))
        for own, other in ((pair.first, pair.second - 1), (pair.second, pair.first)):
            part = slice(ends[own] - model.n_support_[own], ends[own])
            b[model.support_[part]] = model.dual_coef_[other, part]
        b = b[pair.members]
        found.append(pair.dual.sign @ b - b @ K[np.ix_(pair.members, pair.members)] @ b / 2)
    return found


def fits_of(source: Any, pairs: list[Pair], room: int | None) -> Any:
    """Fits of each pair by its number, in some bytes, or on working sets."""
    if room is None:
        solver = Decomposition(TOL, source.n)
        return solver.solve(source, dict(enumerate(pairs)), Threads(2))
    tasks = (PairTask(k, source, pair) for k, pair in enumerate(pairs))
    return {k: fits for k, fits, _ in solve_pairs(tasks, TOL, room, Threads(2))}


def compare(K: NDArray[Any], y: NDArray[Any], C: float, balanced: bool, room: int | None) -> Any:
    """Predictions that differ, the largest decision of a differing sign, the worst objective."""
    train = np.arange(len(y)) % 4 > 0
    labels, codes = np.unique(y, return_inverse=True)
    weight = "balanced" if balanced else None
    weights = compute_sample_weight(weight, y[train])
    inner = K[np.ix_(train, train)].astype(np.float64)
    outer = K[:, train].astype(np.float64)
    peer = SVC(
        C=C, kernel="precomputed", tol=TOL, class_weight=weight, decision_function_shape="ovo",
        cache_size=1000,
    ).fit(inner, y[train])  # fmt: skip
    pairs = make_pairs(codes[train], weights[None], [C])
    source = ArraySource(K[np.ix_(train, train)])
    fits = fits_of(source, pairs, room)
    decisions = np.empty((len(y), len(pairs)))
    for number, pair in enumerate(pairs):
        fit = fits[number][0]
        if not fit.converged:
            raise RuntimeError(f"violation {fit.violation} at C = {C}")
        decisions[:, number] = outer[:, pair.members[fit.support]] @ fit.coef + fit.intercept
    differ = labels[vote(decisions, len(labels))] != peer.predict(outer)
    signs = (decisions > 0) != (peer.decision_function(outer) > 0)
    theirs = objectives(peer, inner, pairs)
    short = max(1 - fits[k][0].objective / value for k, value in enumerate(theirs))
    return int(differ.sum()), float(np.abs(decisions[signs]).max(initial=0.0)), short


def main() -> None:
    """Print a line for each problem, type and room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DHSK_DATA") or None)
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data DIR or set DHSK_DATA")
    for name, count in (("FIRST", 64), ("LEAST", 64), ("SPARE", 16), ("JOINING", 32)):
        setattr(working_set, name, count)  # the problems are small
    for name, X, y, scale in problems(Path(options.data)):
        exact = dhsk.HeatKernel.at_scale(X.shape[1], scale)(dhsk.hyperspherical_map(X))
        for dtype in ("float64", "float32"):
            K = np.ascontiguousarray(exact, dtype=dtype)
            rooms = {"whole": 1 << 33, "in a tenth": K.nbytes // 10, "on working sets": None}
            for how, room in rooms.items():
                found = [
                    compare(K, y, C, balanced, room)
                    for C in (0.01, 1.0, 100.0, 1e4)
                    for balanced in (False, True)
                ]
                print(
                    f"{name}, {dtype}, {how}: {sum(f[0] for f in found)} of {8 * len(y):,} "
                    f"predictions differ, signs only below {max(f[1] for f in found):.1e}, "
                    f"objective short by at most {max(f[2] for f in found):.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
