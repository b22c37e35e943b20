r"""Kernel ridge: passes and time with and without preconditioner, and inducing points beside them.

    python tests/benchmarks/regression.py --n 10000
    python tests/benchmarks/regression.py --n 100000 --memory 6GB --dtype float32 --skip plain
    python tests/benchmarks/regression.py --n 100000 --memory 6GB --dtype float32 --skip plain \
        --tol 0.1 --landmarks 8000

The last one stops the full kernel at a large residual, for the time in which it has the error of
inducing points.

    python tests/benchmarks/regression.py --many 110000 160000 240000 --peers 15000 30000 60000

Blocks in turn beside conjugate gradients, both extrapolated to a million samples in 6 GB: two
blocks of a million are timed, and sweeps are those of the largest size; seconds of a pass grow with
the square of N, and passes with a power that three sizes tell.

Samples are counts of mixtures of 20 topics over 100 features, and the target a smooth function of
the mixture with noise. Inducing points are the method of Falkon (Rudi, Carratino & Rosasco, 2017):
the ridge problem on Nyström features, solved exactly here, with the fewest landmarks whose error on
held-out samples is at most 1 % above that of the full kernel.
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
from records import parsed, parser_of, record
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import dhsk
from dhsk.execution.limits import core_count
from dhsk.execution.settings import one_blas_thread
from dhsk.execution.threads import Threads
from dhsk.models.sources import RowsSource
from dhsk.solvers.block_descent import BlockDescent, block_size

HELD_OUT = 2000


def samples(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Counts, (n, 100), and targets."""
    topics = rng.gamma(0.3, size=(20, 100))
    shares = rng.dirichlet(np.full(20, 0.2), n)
    mixed = shares @ (topics / topics.sum(axis=1, keepdims=True))
    X = rng.multinomial(rng.integers(100, 400, n), mixed).astype(float)
    return X, np.sin(5 * shares[:, 0]) + shares[:, 1] + 0.2 * rng.normal(size=n)


def error(predicted: Any, y: Any) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def told(name: str, seconds: float, **numbers: Any) -> None:
    """Print a line of results."""
    peak = psutil.Process().memory_info().rss / 1e9
    rest = "  ".join(f"{key} {value:.5g}" for key, value in numbers.items())
    print(f"{name:<24} {seconds:8.1f} s  {rest}  resident {peak:.2f} GB", flush=True)


def ridges(args: argparse.Namespace) -> Iterator[tuple[str, int | str]]:
    """Fits with the full kernel that are wanted."""
    if "preconditioned" not in args.skip:
        yield "preconditioned", "auto" if args.rank is None else args.rank
    if "plain" not in args.skip:
        yield "plain", 0


MILLION = 1_000_000
ROOM = 43 * 10**8
"""Bytes that 6 GB leave beside them."""
RANK = 280
"""Columns of the preconditioner of a million samples in 6 GB: a quarter of what is left."""


def fitted(n: int, **how: Any) -> tuple[float, Any, float]:
    """Seconds, the model and its error of a fit of n samples in 6 GB."""
    X, y = samples(n + HELD_OUT, np.random.default_rng(0))
    given: Any = {"alpha": 0.1, "time_scale": 1.0, "dtype": "float32", "memory": "6GB"}
    begin = time.perf_counter()
    model = dhsk.HeatKernelRidge(**given | how).fit(X[:n], y[:n])
    seconds = time.perf_counter() - begin
    return seconds, model, error(model.predict(X[n:]), y[n:])


def sweep_of_million() -> float:
    """Seconds of a sweep over the blocks of a million samples, by two of them."""
    X, y = samples(MILLION, np.random.default_rng(0))
    rows: Any = dhsk.hyperspherical_map(X).astype(np.float32)
    source = RowsSource(rows, dhsk.HeatKernel.at_scale(100, 1.0), threads=core_count())
    size, shift = block_size(MILLION, 4, ROOM), np.full((MILLION, 1), 0.1)
    run = BlockDescent(source, y[:, None] - y.mean(), shift, size, Threads(core_count()))
    run.step()  # compiles
    begin = time.perf_counter()
    with one_blas_thread():
        run.step()
        run.step()
    return (time.perf_counter() - begin) / 2 * run.blocks


def at_million(sizes: list[int], found: list[float]) -> float:
    """What a power of the size, fitted to three of them, is at a million."""
    power, start = np.polyfit(np.log(sizes), np.log(found), 1)
    return float(np.exp(start + power * np.log(MILLION)))


def many(args: argparse.Namespace) -> None:
    """Blocks beside conjugate gradients, at a million samples."""
    for n in args.many:
        seconds, model, off = fitted(n)
        told(f"blocks, {n:,}", seconds, passes=model.n_iter_, residual=model.residual_, error=off)
    blocks, theirs = model.n_iter_ * sweep_of_million(), {}
    for tol in (0.1, 1e-6):
        passes, each = [], []
        for n in args.peers:
            seconds, model, error_ = fitted(n, tol=tol, preconditioner_rank=RANK)
            told(f"passes to {tol:g}, {n:,}", seconds, passes=model.n_iter_, error=error_)
            passes.append(model.n_iter_)
            each.append(seconds / model.n_iter_ / n**2)
        theirs[f"conjugate gradients to {tol:g}"] = (
            at_million(args.peers, passes) * each[-1] * MILLION**2
        )
    what = "ridge, 1,000,000 x 100, extrapolated"
    record("methods", what, blocks, "s", theirs, scores=(off,))


def main() -> None:
    """Run the benchmark."""
    parser = parser_of("Kernel ridge beside inducing points.")
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--memory")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--max-iter", type=int, default=2000)
    parser.add_argument("--landmarks", type=int, nargs="*", default=[500, 1000, 2000, 4000])
    parser.add_argument("--skip", nargs="*", default=[])
    parser.add_argument("--many", type=int, nargs=3)
    parser.add_argument("--peers", type=int, nargs=3, default=[15_000, 30_000, 60_000])
    args = parsed(parser)
    warnings.simplefilter("ignore", ConvergenceWarning)
    (many if args.many else one_size)(args)


def one_size(args: argparse.Namespace) -> None:
    """Fits of one number of samples beside inducing points."""
    X, y = samples(args.n + HELD_OUT, np.random.default_rng(0))
    train, test = slice(0, args.n), slice(args.n, None)
    print(
        f"n {args.n}, alpha {args.alpha}, {args.dtype}; load {os.getloadavg()[0]:.1f}", flush=True
    )
    goal, taken, peers = None, 0.0, {}
    for name, rank in ridges(args):
        begin = time.perf_counter()
        model = dhsk.HeatKernelRidge(
            args.alpha,
            1.0,
            preconditioner_rank=rank,  # type: ignore[arg-type]
            dtype=args.dtype,
            memory=args.memory,
            tol=args.tol,
            max_iter=args.max_iter,
        ).fit(X[train], y[train])
        seconds = time.perf_counter() - begin
        goal = error(model.predict(X[test]), y[test])
        taken = taken or seconds  # the preconditioned one is the first
        told(
            name,
            seconds,
            passes=model.n_iter_,
            rank=model.rank_,
            residual=model.residual_,
            error=goal,
        )
    for m in args.landmarks:
        begin = time.perf_counter()
        features = dhsk.NystromFeatures(
            m, time_scale=1.0, random_state=0, memory=args.memory, dtype=args.dtype
        )
        Z = features.fit_transform(X[train])
        linear = Ridge(args.alpha, fit_intercept=False, solver="cholesky").fit(Z, y[train])
        seconds = time.perf_counter() - begin
        found = error(linear.predict(features.transform(X[test])), y[test])
        peers[f"{m:,} inducing points"] = seconds, found
        told(f"{m} inducing points", seconds, trace_error=features.trace_error_, error=found)
        if goal is not None and found <= 1.01 * goal:
            break
    if goal is not None:
        name, (theirs, found) = min(peers.items(), key=lambda peer: peer[1][1])
        what = f"ridge, {args.n:,} x 100, residual {args.tol:g}"
        record("methods", what, taken, "s", {name: theirs}, scores=(goal, found))


if __name__ == "__main__":
    main()
